r"""Compare RLPR's rules with OpenBMB's own scorer on the same replies, and list what differs.

    git clone https://github.com/OpenBMB/RLPR; git -C RLPR checkout 8490fca
    python -m venv theirs; theirs/bin/pip install pylatexenc sympy antlr4-python3-runtime==4.11
    PYTHONPATH=. python tests/benchmarks/agree_with_rlpr.py RLPR theirs/bin/python

Replies: tests/suites/corpus, and the 500 recorded replies to MATH-500 in PODIUM_DATA. Theirs is
`compute_score` of verl/utils/reward_score/prime_math, in a process of its own: it runs `eval` on
what a reply holds, so give it replies that you trust.
"""

import argparse
import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.harness.records import Question
from podium.harness.statements import last_box
from podium.suites.data import data_folder
from podium.suites.rlpr import RLPR
from tests.suites.battery import rows

RECORDED = "saturn_lighteval/math500_1model.jsonl.gz"
THEIRS = """
import json, sys
sys.path.insert(0, sys.argv[1] + "/verl/utils/reward_score")
import prime_math
for line in sys.stdin:
    asked = json.loads(line)
    try:
        said = float(bool(prime_math.compute_score(asked["reply"], asked["target"])[0]))
    except Exception as error:
        said = type(error).__name__
    print(json.dumps(said), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One reply, with the verdict that is right where somebody said so."""

    name: str
    target: str
    reply: str
    right: float | None


def main() -> None:
    """Print a table per set of replies, then the cases of the corpus that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("python", help="an interpreter that has what their scorer imports")
    asked = parser.parse_args()
    for name, cases in {"corpus": [*corpus()], "MATH-500": [*recorded()]}.items():
        theirs = their_verdicts(cases, asked.checkout, asked.python)
        ours = [our_verdict(case) for case in cases]
        table = Counter(zip(ours, theirs, strict=True))
        print(f"{name}: {len(cases)} replies")
        for (one, other), count in sorted(table.items(), key=str):
            print(f"  ours {one}, theirs {other}: {count}")
        for label, verdicts in (("ours", ours), ("theirs", theirs)):
            agreed = sum(v == case.right for v, case in zip(verdicts, cases, strict=True))
            print(f"  {label} as recorded: {agreed}")
        for case, one, other in zip(cases, ours, theirs, strict=True):
            if one != other:
                end = case.reply[-60:].replace("\n", " ")
                print(f"    {case.name}: {case.target!r} <- {end!r}: {one}, {other}; {case.right}")


def corpus() -> Iterator[Case]:
    """Yield the awkward replies."""
    for line, row in rows("rlpr"):
        if not row.noise_kb:
            yield Case(f"line {line}, {row.why}", row.gold, row.reply, float(row.right))


def recorded() -> Iterator[Case]:
    """Yield real replies to MATH-500 with the verdict that was recorded beside them."""
    path = data_folder() / RECORDED
    if not path.is_file():
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row: dict[str, Any] = json.loads(line)
            gold = last_box(row["gold"])
            if gold and gold[0]:
                yield Case(f"row {number}", gold[0], row["output"], float(row["metric"]))


def our_verdict(case: Case) -> float | str:
    """Return our value, or why there is none."""
    try:
        return RLPR.grade(Question("q", "?", "text", case.target), case.reply).value
    except Exception as error:
        return type(error).__name__


def their_verdicts(cases: list[Case], checkout: Path, python: str) -> list[float | str]:
    """Return theirs, in order."""
    lines = "".join(json.dumps({"target": c.target, "reply": c.reply}) + "\n" for c in cases)
    command = [python, "-c", THEIRS, str(checkout)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line[:1] in '"01']


if __name__ == "__main__":
    main()
