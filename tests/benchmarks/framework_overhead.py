"""What a framework adds: tokens, calls and dollars of each beside the native pipeline.

    make bench-frameworks                              # with podium[all-frameworks]
    python tests/benchmarks/framework_overhead.py --limit 20

The pool is the rehearsal one: its workers count tokens by length, and their replies depend on what
they are asked, so output differs where prompts do. What the framework itself adds is the input of
the planner, whose prompt no reply is in yet. Frameworks that are not installed are left out; CrewAI
needs PODIUM_SANDBOX and PODIUM_CREWAI.
"""

import argparse
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from podium.baselines import SYSTEMS
from podium.cli import main
from podium.harness.ledger.call import Call
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import system_runs_below
from podium.harness.run.preflight import missing_extra
from podium.harness.system import lacks_sandbox

NATIVE = "planner-executor-verifier"


def measured(rows: Sequence[Call], native: Sequence[Call], questions: int) -> str:
    """Return one line: means per question, and how far from the native pipeline."""

    def mean(found: Sequence[Call], role: str | None = None) -> float:
        counted = (row.input_total or 0 for row in found if role in (None, row.role))
        return sum(counted) / questions

    told, ours = mean(rows), mean(native)
    added = mean(rows, "planner") - mean(native, "planner")
    out = sum(row.output or 0 for row in rows) / questions
    usd = sum((row.usd or Decimal(0) for row in rows), Decimal(0)) / questions
    return (
        f"{rows[0].system:26}{len(rows) / questions:6.1f}{told:9.1f}{told / ours - 1:+9.1%}"
        f"{added:+10.1f}{out:9.1f}{usd:12.6f}"
    )


def measure(suite: str, limit: int) -> None:
    """Run them and print the table."""
    frameworks = [one for one in SYSTEMS.values() if one.group == "frameworks"]
    there = [one.name for one in frameworks if not missing_extra(one) and not lacks_sandbox(one)]
    with tempfile.TemporaryDirectory() as folder:
        named = [word for name in (NATIVE, *there) for word in ("--system", name)]
        extent = ["--pool", "rehearsal", "--limit", str(limit), "--log-dir", folder]
        main(["run", "--suite", suite, *named, *extent])
        rows = [row for files in system_runs_below(Path(folder)) for row in rows_of(files)]
    by_system = {name: [row for row in rows if row.system == name] for name in (NATIVE, *there)}
    print(f"rehearsal, {suite}, {limit} questions; means per question")
    heads = f"{'calls':>6}{'tok in':>9}{'in +%':>9}{'planner +':>10}{'tok out':>9}{'USD':>12}"
    print(f"{'system':26}{heads}")
    for found in by_system.values():
        print(measured(found, by_system[NATIVE], limit))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--suite", default="practice-integer")
    asked.add_argument("--limit", type=int, default=20)
    words = asked.parse_args()
    measure(words.suite, words.limit)
