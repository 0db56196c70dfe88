"""How do podium's graders do on the battery of replies, beside others on the same rows?

    PYTHONPATH=. python tests/benchmarks/graders.py [SUITE ...] [--list] [--against-them]
        [--against CHECKOUT] [--held-back]

A table per suite: a wrong reply that passes is the worse fault and stands first. Beside podium are
math-verify, where keys are numbers or expressions, and Inspect's own scorers; they read other forms
than a suite asks for, so the table says what would happen to whoever used them, not what they are
worth. Rows that are held back are left out; `--held-back` shows those alone. `--against` grades the
same rows with the graders of another checkout. Each grader is a process of its own
(graders_judges.py); one that says nothing for a while is killed, and its verdict is "no end".
"""

import argparse
import json
import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from podium.suites.rlpr import reference_kind
from tests import ROOT
from tests.suites.battery import BatteryRow, files, held_back, rows

PROGRAM = Path(__file__).with_name("graders_judges.py")
PATIENCE_S = 20.0
"""Seconds without a verdict after which a grader is killed; the first may have to import sympy."""
BESIDE: Mapping[str, Sequence[str]] = {
    "aime25": ("math-verify", "match(numeric=True)", "math()", 'answer("line")'),
    "math500": ("math-verify", "math()", 'answer("line")', "match()"),
    "gpqa-diamond": ("choice()", 'answer("letter")'),
    "mmlu": ("choice()", 'answer("letter")'),
    "rlpr": ("math-verify", "math()", 'answer("line")', "match()"),
}
"""Inspect's scorers that fit a suite's keys; choice() reads as the solver multiple_choice does."""
NUMBERS_ONLY = ("math-verify", "math()")
"""Of RLPR's keys these are asked about numbers and expressions alone."""

Graded = tuple[int, BatteryRow, int | None]
"""Line, row and verdict."""


class JudgeProcess:
    """One grader at work, in a process that is replaced when it comes to no end."""

    def __init__(self, name: str, checkout: Path = ROOT, patience_s: float = PATIENCE_S) -> None:
        """Start nothing yet; `checkout` is whose podium it imports."""
        self._name, self._checkout, self._patience_s = name, checkout, patience_s
        self._process: subprocess.Popen[bytes] | None = None

    def judge(self, suite: str, row: BatteryRow) -> int | None:
        """Return 1 or 0; None where the grader raised or came to no end."""
        process = self._process or self._started()
        asked = {"suite": suite, "gold": row.gold, "reply": row.noisy(), "choices": row.choices}
        pipes = cast(tuple[IO[bytes], IO[bytes]], (process.stdin, process.stdout))
        pipes[0].write(json.dumps(asked).encode() + b"\n")
        pipes[0].flush()
        if select.select([pipes[1]], [], [], self._patience_s)[0] and (line := pipes[1].readline()):
            return json.loads(line)
        self.close()
        return None

    def close(self) -> None:
        """Kill the process."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> "subprocess.Popen[bytes]":
        path = os.pathsep.join((str(self._checkout), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), self._name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._checkout,
            env={**os.environ, "PYTHONPATH": path},
        )
        return self._process


@dataclass(frozen=True, slots=True)
class GraderTable:
    """What one grader said of a suite's rows."""

    name: str
    graded: tuple[Graded, ...]

    def __str__(self) -> str:
        count = Counter((row.right, said == 1) for _, row, said in self.graded)
        failed = sum(said is None for _, _, said in self.graded)
        alike = count[True, True] + count[False, False]
        return (
            f"{self.name:<24}{count[False, True]:>13}{count[True, False]:>13}"
            f"{count[True, True]:>13}{count[False, False]:>13}"
            f"{100 * alike / max(1, len(self.graded)):>9.1f} %"
            + (f"  ({failed} raised or came to no end)" if failed else "")
        )

    def verdicts(self) -> dict[int, int | None]:
        """Return the verdicts by line."""
        return {line: said for line, _, said in self.graded}


HEAD = (
    f"{'':<24}{'wrong passed':>13}{'right failed':>13}{'right passed':>13}{'wrong failed':>13}"
    f"{'as wanted':>11}"
)


def table(name: str, suite: str, battery: Sequence[tuple[int, BatteryRow]]) -> GraderTable:
    """Return what a grader by this name says of rows that it can be asked about."""
    asked = [one for one in battery if suite != "rlpr" or name not in NUMBERS_ONLY or _maths(one)]
    label = f"{name}, numbers" if suite == "rlpr" and name in NUMBERS_ONLY else name
    return _graded(label, JudgeProcess(name), suite, asked)


def _maths(one: tuple[int, BatteryRow]) -> bool:
    return reference_kind(one[1].gold) in ("number", "expression")


def _graded(
    label: str, judge: JudgeProcess, suite: str, battery: Sequence[tuple[int, BatteryRow]]
) -> GraderTable:
    with closing(judge):
        return GraderTable(
            label, tuple((line, row, judge.judge(suite, row)) for line, row in battery)
        )


def before(checkout: Path, suite: str, battery: Sequence[tuple[int, BatteryRow]]) -> GraderTable:
    """Return what another checkout's graders say."""
    label = f"podium at {commit_of(checkout)}"
    return _graded(label, JudgeProcess("podium", checkout.resolve()), suite, battery)


def commit_of(checkout: Path) -> str:
    """Return the commit that a checkout stands at, as git shortens it."""
    asked = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def faults(ours: GraderTable) -> Iterator[str]:
    """Yield every row whose verdict podium does not give."""
    for line, row, said in ours.graded:
        if said != int(row.right):
            kind = "passes" if said else "fails"
            yield f"  line {line}: {kind} | {_about(row)}"


def against_them(ours: GraderTable, theirs: GraderTable) -> Iterator[str]:
    """Yield every row on which podium is with the row and the other grader is not."""
    mine = ours.verdicts()
    for line, row, said in theirs.graded:
        if mine[line] == int(row.right) != said:
            verdict = {None: "no end", 0: "fails"}.get(said, "passes")
            right = "right" if row.right else "wrong"
            yield f"  line {line}: {verdict}, is {right} | {_about(row)}"


def _about(row: BatteryRow) -> str:
    end = row.reply if len(row.reply) <= 120 else f"...{row.reply[-120:]}"
    return f"{row.why} | key {row.gold!r} | {end!r}"


def show(suite: str, asked: argparse.Namespace) -> None:
    """Print a suite's table and the lists that were asked for."""
    battery = [one for one in rows(suite) if held_back(one[1]) == asked.held_back]
    right = sum(row.right for _, row in battery)
    print(f"\n{suite}: {len(battery)} rows, {right} right, {len(battery) - right} wrong\n{HEAD}")
    if asked.against:
        print(before(asked.against, suite, battery), flush=True)
    ours = table("podium", suite, battery)
    print(ours, flush=True)
    beside = {name: table(name, suite, battery) for name in BESIDE.get(suite, ())}
    for theirs in beside.values():
        print(theirs, flush=True)
    if asked.list:
        print("Rows on which podium is wrong:", *faults(ours), sep="\n")
    if asked.against_them and "math-verify" in beside:
        print("Decided against math-verify:", *against_them(ours, beside["math-verify"]), sep="\n")


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suites", nargs="*", help="all that have a battery, unless named")
    parser.add_argument("--against", type=Path, help="another checkout, whose graders come first")
    parser.add_argument("--held-back", action="store_true", help="the rows held back, alone")
    parser.add_argument("--list", action="store_true", help="every row on which podium is wrong")
    parser.add_argument(
        "--against-them", action="store_true", help="every row decided against math-verify"
    )
    asked = parser.parse_args()
    known = [path.stem for path in files()]
    if unknown := sorted({*asked.suites} - {*known}):
        parser.error(f"no battery of {', '.join(unknown)}; there are: {', '.join(known)}")
    for suite in asked.suites or known:
        show(suite, asked)


if __name__ == "__main__":
    main()
