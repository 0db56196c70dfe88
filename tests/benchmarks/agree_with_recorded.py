"""Do our verdicts agree with those that the published evaluator left on record?

    PYTHONPATH=. python tests/benchmarks/agree_with_recorded.py [--all] [--out ROWS.jsonl]
    PYTHONPATH=. python tests/benchmarks/agree_with_recorded.py --rows ROWS.jsonl

Every recorded program runs by both rules on the tests that could be had; the private tests are not
among them (reference/data.md, section 2), so a program on record as wrong may pass here, and each
that does is counted. A program on record as right must not fail: each that does is listed.
`--rows` prints the tables from an earlier run. Kinds of tests:

- `LeetCode, independent`: problems with twenty or more validated tests of another origin;
- `LeetCode, public` and `AtCoder and Codeforces`: public tests, and recovered private ones.

The independent tests were kept where programs on record as right pass them, so they cannot fail
such programs by much; what they can show is that wrong programs fail.
"""

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from podium.sandbox import Box, open_box
from podium.suites.code_grading import judge_program
from podium.suites.livecodebench import errata
from tests.suites.recorded_programs import (
    GUNI,
    O1_MINI,
    O1_MINI_OLDER,
    QWEN_7B,
    Recorded,
    have,
    recorded,
)

MODELS = {"o1-mini": O1_MINI, "Qwen2.5-7B-Instruct": QWEN_7B, **GUNI}
INDEPENDENT, PUBLIC, STDIN = "LeetCode, independent", "LeetCode, public", "AtCoder and Codeforces"
AT_ONCE = 2
CODES = {"-2": "wrong answer", "-3": "time limit", "-4": "runtime error", "-5": "runner error"}

SIGNS = {
    "sys.stdin is iterated": r"\bin (sys\.)?stdin\s*[:\])]|[(,]\s*(sys\.)?stdin\s*\)",
    "sys.stdin.buffer": r"stdin\.buffer",
    "open(0)": r"\bopen\(\s*0",
    "os.read": r"\bos\.read\(",
    "sys.stdout.buffer": r"stdout\.buffer",
    "stdout is imported": r"from sys import .*\bstdout\b",
    "readline, then read": r"stdin\.readline\([^$]*stdin\.read\(",
    "global or nonlocal name": r"(?m)^\s+(global|nonlocal) ",
    "class Solution reads stdin": r"class Solution",
    "quit or os._exit": r"\bquit\(|\bos\._exit\(",
    "numpy": r"\bnumpy\b",
    "readlines gives an empty last line": r"\breadlines\(",
}
"""What a program for standard input may do that the published evaluator does not stand."""


@dataclass(frozen=True, slots=True)
class Row:
    """One program: what the record says, and what both rules say here."""

    model: str
    kind: str
    question: str
    errata: str | None
    recorded: bool
    said: str
    """The record's class of failure, empty for a pass."""
    real: bool
    real_told: str
    fragile: bool
    official: bool
    official_told: str
    sign: str
    """The first thing in the program that the published evaluator does not stand."""


def sign(row: Recorded) -> str:
    """Return what about a program may explain that the two rules differ."""
    if re.search(r"\bThread\(", row.code) and not re.search(r"\.join\(\s*\)", row.code):
        return "thread is not joined"
    if row.tests.method:
        return "method"
    if _early_guard(row.code):
        return "__main__ guard is not last"
    return next((name for name, mark in SIGNS.items() if re.search(mark, row.code)), "none known")


def _early_guard(code: str) -> bool:
    """Return whether a `__main__` guard is followed by another statement, or has an else."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError):
        return False
    guards = [one for one in body if isinstance(one, ast.If) and "__name__" in ast.dump(one.test)]
    return any(one is not body[-1] or one.orelse for one in guards)


def kind(row: Recorded, independent: bool) -> str:
    """Return what kind of tests a program has."""
    if row.platform != "leetcode":
        return STDIN
    return INDEPENDENT if independent else PUBLIC


def compared(model: str, row: Recorded, independent: bool, box: Box) -> Row:
    """Judge one program by both rules."""
    real = judge_program(row.code, row.tests, box)
    official = judge_program(row.code, row.tests, box, rules="official")
    return Row(
        model=model,
        kind=kind(row, independent),
        question=row.question,
        errata=errata().get(row.question) or errata().get(row.title),
        recorded=row.verdict,
        said=CODES.get(row.error[:2], row.error),
        real=real.passed,
        real_told=real.summary(),
        fragile=real.fragile,
        official=official.passed,
        official_told=official.summary(),
        sign=sign(row),
    )


def run(box: Box, args: argparse.Namespace) -> Iterator[Row]:
    """Yield the verdicts on every program of every model."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for model, file in MODELS.items():
            for independent in (True, False):
                rows = list(
                    recorded(file, independent=independent, samples=None if args.all else 1)
                )[: args.limit]
                yield from threads.map(
                    lambda row, model=model, independent=independent: compared(
                        model, row, independent, box
                    ),
                    rows,
                )


def kept(rows: Iterable[Row], file: Path | None) -> Iterator[Row]:
    """Yield rows on, each written to a file first where one is wanted."""
    with file.open("w") if file else nullcontext() as lines:
        for row in rows:
            if lines:
                lines.write(json.dumps(asdict(row)) + "\n")
                lines.flush()
            yield row


def agreement(rows: Sequence[Row], ours: Callable[[Row], bool]) -> str:
    """Return how often a rule says what the record says."""
    agreed = sum(ours(row) == row.recorded for row in rows)
    return f"{agreed}/{len(rows)} = {agreed / len(rows):.1%}"


def counted(names: Iterable[str]) -> str:
    """Return names with their counts, most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common()) or "none"


def show(model: str, tests: str, rows: Sequence[Row]) -> None:
    """Print the figures of one model on one kind of tests."""
    right = [row for row in rows if row.recorded]
    passed = [row for row in rows if not row.recorded and row.real]
    failed_there = [row for row in passed if not row.official]
    untested = [row for row in passed if row.official]
    print(f"\n{model}; {tests}: {len(rows)} programs, {len(right)} on record as right")
    print(f"  agreement   real {agreement(rows, lambda row: row.real)}")
    print(f"              official {agreement(rows, lambda row: row.official)}")
    print(f"  right on record, fail here   real {sum(not row.real for row in right)}, ", end="")
    print(f"official {sum(not row.official for row in right)}")
    print(f"  wrong on record, pass here   real {len(passed)}, on record as: ", end="")
    print(counted(row.said for row in passed))
    print(f"    the official rules fail it here too: {counted(_why(row) for row in failed_there)}")
    print(f"    both pass, for want of the test that it failed: {len(untested)}; of these ", end="")
    print(f"errata: {counted(row.errata for row in untested if row.errata)}")


def differences(rows: Sequence[Row]) -> None:
    """Print the programs on which the rules differ, classed, and those that fail where none may."""
    only_real = [row for row in rows if row.real and not row.official]
    print(f"\nreal passes, official fails: {len(only_real)} of {len(rows)}")
    for why, count in Counter(_why(row) for row in only_real).most_common():
        right = sum(row.recorded for row in only_real if _why(row) == why)
        print(f"  {count:4} {why} ({right} on record as right)")
    odd = [row for row in only_real if _why(row) in ("none known", "method", "numpy")]
    listed("of these unexplained", odd)
    listed("official passes, real fails", [row for row in rows if row.official and not row.real])
    listed(
        "right on record, fails here by either rule",
        [row for row in rows if row.recorded and not (row.real and row.official)],
    )


def listed(title: str, rows: Sequence[Row]) -> None:
    """Print rows one by one."""
    print(f"\n{title}: {len(rows)}")
    for row in rows:
        flags = [*(["fragile"] if row.fragile else []), *([row.errata] if row.errata else [])]
        print(f"  {row.model}; {row.kind}; {row.question} {' '.join(flags)} [{_why(row)}]")
        print(f"    record: {row.said or 'pass'}; real: {row.real_told};", end=" ")
        print(f"official: {row.official_told}")


def _why(row: Row) -> str:
    """Return the class of a difference between the rules; time goes before anything else."""
    return "time" if ": time limit" in row.official_told else row.sign


def regraded() -> None:
    """Print how often the evaluator's authors disagree with themselves on the same programs."""
    older = {row.question: row for row in recorded(O1_MINI_OLDER)}
    both = [(row, older[row.question]) for row in recorded(O1_MINI) if row.question in older]
    same = [(new, old) for new, old in both if new.code == old.code]
    flips = [new.question for new, old in same if new.verdict != old.verdict]
    print(f"o1-mini graded twice by the authors: {len(flips)} of {len(same)} identical programs")
    print(f"  have another verdict the second time: {', '.join(flips)}")


def tables(rows: Sequence[Row]) -> None:
    """Print everything."""
    regraded()
    for model in MODELS:
        for tests in (INDEPENDENT, STDIN, PUBLIC):
            if own := [row for row in rows if (row.model, row.kind) == (model, tests)]:
                show(model, tests, own)
    differences(rows)
    print("\nQwen3-8B and o1-preview, which reference/data.md has too, cannot be repeated:")
    print("their recorded programs are not in the data folder.")


def main() -> int:
    """Run or read, then print; 2 when the recorded programs are not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--box", default="docker")
    parser.add_argument("--all", action="store_true", help="all ten samples of the v6 models")
    parser.add_argument("--limit", type=int, help="first programs of each set")
    parser.add_argument("--out", type=Path, help="keep one JSON row per program")
    parser.add_argument("--rows", type=Path, help="print the tables of an earlier run")
    args = parser.parse_args()
    for file in MODELS.values():
        if reason := have(file):
            print(reason, file=sys.stderr)
            return 2
    if args.rows:
        tables([Row(**json.loads(line)) for line in args.rows.read_text().splitlines()])
        return 0
    box = open_box(args.box, AT_ONCE)
    print(f"{box.facts()}, {AT_ONCE} at a time", flush=True)
    rows = list(kept(run(box, args), args.out))
    box.close()
    tables(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
