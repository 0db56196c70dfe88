"""What of its plan a trained conductor lives on: the same weights, with a part of the form gone.

    PYTHONPATH=. python tests/benchmarks/form_taken_away.py --out taken
        [--checkpoint conductor/released/trained]

Copies the checkpoint once per row, with another form in its podium.json, and lets each copy sit the
practice suites' validation split (resumes). Nothing is trained anew: a conductor that learnt
without access might do without. The same questions picked the checkpoint, so the first row is
optimistic; intervals are not adjusted for several comparisons.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.paired_table import by_suite, read, table

RELEASED = Path(__file__).parents[2] / "conductor" / "released" / "trained"
SUITES = ("practice-composed", "practice-integer", "practice-choice", "practice-code")
FORMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "as-trained": ("as trained", {}),
    "no-words": ("every worker is asked to solve the question", {"subtasks": False}),
    "no-access": ("no step reads another", {"access": "off"}),
    "one-worker": ("one worker (sage) does every step", {"worker": "sage"}),
}


def with_form(checkpoint: Path, folder: Path, changes: Mapping[str, Any]) -> None:
    """Write a copy of a checkpoint with another form, unless it is there."""
    if folder.exists():
        return
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(checkpoint, fresh, ignore=shutil.ignore_patterns("log"))
    path = fresh / "podium.json"
    about = json.loads(path.read_text())
    about["form"] = {**about["form"], **changes}
    path.write_text(json.dumps(about, indent=1))
    fresh.rename(folder)


def sit(systems: Sequence[str], given: argparse.Namespace) -> Path:
    """Let systems sit the suites; return the directory of logs."""
    logs: Path = given.out / "logs"
    named = [word for suite in given.suites for word in ("--suite", suite)]
    system_run = [word for system in systems for word in ("--system", system)]
    some = ["--limit", f"{given.limit}"] if given.limit else []
    command = [sys.executable, "-m", "harness.cli", "run", *named, *system_run, *some]
    where = ["--split", given.split, "--pool", "rehearsal", "--log-dir", f"{logs}"]
    subprocess.run([*command, *where, "--display", "none"], check=True)
    return logs


def main(words: Sequence[str] | None = None) -> int:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, default=RELEASED)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--split", default="validation", choices=("validation", "eval"))
    parser.add_argument("--limit", type=int, help="first N questions of each suite (all)")
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    copies = {name: given.out.resolve() / name for name in FORMS}
    for name, folder in copies.items():
        with_form(given.checkpoint, folder, FORMS[name][1])
    systems = {name: f"conductor@{folder}" for name, folder in copies.items()}
    logs = sit(tuple(systems.values()), given)
    rows = [(systems[name], FORMS[name][0]) for name in FORMS]
    found = read(logs)
    print(table(found, systems["as-trained"], rows), end="\n\n")
    print(by_suite(found, systems["as-trained"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
