"""Judge one program on hidden tests, in a box.

The program runs in the box; its output is compared here, outside, so it never sees what is expected
of it. Standard-input tests get a fresh process each. Functional tests (a method of `class
Solution`) run one after another in one process, as in the official LiveCodeBench grader; what the
method returns comes back on a channel that the program's own printing does not touch.

The comparison is LiveCodeBench's (github.com/LiveCodeBench/LiveCodeBench @28fef95,
lcb_runner/evaluation/testing_util.py). Unlike there, a program runs as a real process with real
descriptors, and its limit is CPU time: the official mocks fail some correct programs, and wall
time makes verdicts depend on the load of the machine.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from sandbox import PYTHON, Box, Limits, Outcome

Verdict = Literal["pass", "wrong answer", "time limit", "memory limit", "runtime error", "not run"]

LIMITS = Limits(cpu_s=6.0, wall_s=18.0)
"""Per test: the official six seconds, as CPU time, with a generous wall limit."""

HEADER = """\
import sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from string import *
from typing import *
sys.setrecursionlimit(50000)
"""
"""Names that LeetCode provides; the official grader's header, less what few programs use."""

ISOLATED = (PYTHON, "-I", "-S")
"""No environment, no user site, no installed packages: a verdict must not depend on what happens to
be installed here. It also starts about four times faster than with `site`."""

LAUNCHER = """\
import builtins, sys
builtins.exit = builtins.quit = sys.exit
with open("solution.py", encoding="utf-8") as file:
    code = compile(file.read(), "solution.py", "exec")
sys.argv = ["solution.py"]
exec(code)
"""
"""Runs inside the box: the program as `__main__`, with the two names that `site` would add."""

DRIVER = """\
import builtins, json, os, signal, sys
builtins.exit = builtins.quit = sys.exit
channel = os.fdopen(os.dup(1), "w")
null = os.open(os.devnull, os.O_RDWR)
lines = iter(sys.stdin.read().splitlines())
os.dup2(null, 0)
os.dup2(null, 1)
order = json.loads(next(lines))
space = {"__name__": "solution"}
signal.setitimer(signal.ITIMER_PROF, order["cpu_s"])
for name in ("header.py", "solution.py"):
    with open(name, encoding="utf-8") as file:
        exec(compile(file.read(), name, "exec"), space)
name = order["method"]
method = getattr(space["Solution"](), name) if "Solution" in space else space[name]
for line in lines:
    signal.setitimer(signal.ITIMER_PROF, order["cpu_s"])
    channel.write(json.dumps({"returned": method(*json.loads(line))}) + "\\n")
    channel.flush()
os._exit(0)
"""
"""Runs inside the box. It holds arguments but no expected values, so there is nothing to steal: a
program that forges results has to know them. The profiling timer ends a slow test by signal."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test, in LiveCodeBench's shape: for functional tests one JSON value per line of input."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class ProgramTests:
    """The tests of one problem."""

    cases: tuple[Case, ...]
    method: str | None = None
    """Name of the method of `class Solution`; None for programs that read standard input."""

    def as_json(self) -> str:
        """Return the tests as they are kept in a question's target."""
        return json.dumps({"method": self.method, "cases": [asdict(case) for case in self.cases]})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a program: one verdict per test, `not run` after the first failure."""

    verdicts: tuple[Verdict, ...]
    cpu_s: float
    """CPU time of all the tests that ran."""

    @property
    def passed(self) -> bool:
        """True when there are tests and every one passed."""
        return bool(self.verdicts) and all(verdict == "pass" for verdict in self.verdicts)

    @property
    def summary(self) -> str:
        """Return, for people, how far the program came: `test 3 of 5: time limit`."""
        total = len(self.verdicts)
        for number, verdict in enumerate(self.verdicts, start=1):
            if verdict != "pass":
                return f"test {number} of {total}: {verdict}"
        return f"all {total} tests passed"


def read_tests(target: str) -> ProgramTests:
    """Return the tests kept in a question's target; the inverse of `ProgramTests.as_json`."""
    data = json.loads(target)
    cases = tuple(Case(case["input"], case["output"]) for case in data["cases"])
    return ProgramTests(cases, data["method"])


def judge(program: str, tests: ProgramTests, box: Box, limits: Limits = LIMITS) -> Judgement:
    """Run a program on its tests until one fails; raise SandboxError when the box fails."""
    run = (
        _functional(program, tests, box, limits)
        if tests.method
        else _stdin(program, tests, box, limits)
    )
    verdicts: list[Verdict] = []
    cpu_s = 0.0
    for verdict, used_s in run:
        verdicts.append(verdict)
        cpu_s += used_s
        if verdict != "pass":
            break
    rest: list[Verdict] = ["not run"] * (len(tests.cases) - len(verdicts))
    return Judgement((*verdicts, *rest), cpu_s)


def _stdin(
    program: str, tests: ProgramTests, box: Box, limits: Limits
) -> Iterator[tuple[Verdict, float]]:
    """Run a fresh process for each test, one at a time, for as long as the caller asks."""
    files = {"run.py": LAUNCHER.encode(), "solution.py": _encoded(program)}
    for case in tests.cases:
        outcome = box.run(files, (*ISOLATED, "run.py"), case.input.encode(), limits)
        verdict = _ended(outcome)
        if verdict == "pass" and not same_output(_decoded(outcome.stdout), case.output):
            verdict = "wrong answer"
        yield verdict, outcome.cpu_s


def _functional(
    program: str, tests: ProgramTests, box: Box, limits: Limits
) -> Iterator[tuple[Verdict, float]]:
    """Run all tests in one process, then compare what came back, test by test."""
    order = json.dumps({"method": tests.method, "cpu_s": limits.cpu_s})
    arguments = (json.dumps(_values(case.input)) for case in tests.cases)
    files = {
        "driver.py": DRIVER.encode(),
        "header.py": HEADER.encode(),
        "solution.py": _encoded(program),
    }
    stdin = "\n".join((order, *arguments)).encode()
    outcome = box.run(files, (*ISOLATED, "driver.py"), stdin, _batch(limits, len(tests.cases)))
    lines = _decoded(outcome.stdout).split("\n")[:-1]
    for number, case in enumerate(tests.cases):
        used_s = outcome.cpu_s if number == 0 else 0.0
        if number < len(lines):
            yield ("pass" if _same_value(lines[number], case.output) else "wrong answer"), used_s
        else:
            ended = _ended(outcome)
            yield ("runtime error" if ended == "pass" else ended), used_s


def _batch(limits: Limits, tests: int) -> Limits:
    """Return the limits of one process that runs all tests; each keeps its own timer inside."""
    return Limits(
        cpu_s=limits.cpu_s * max(1, tests),
        wall_s=limits.wall_s * max(1, math.ceil(tests / 4)),
        memory_bytes=limits.memory_bytes,
        output_bytes=limits.output_bytes,
        processes=limits.processes,
    )


def _ended(outcome: Outcome) -> Verdict:
    """Return what the way a process ended says about its program, before any comparison."""
    if outcome.status == "timeout":
        return "time limit"
    if outcome.status == "memory":
        return "memory limit"
    if outcome.status != "exited" or outcome.exit_code != 0:
        return "runtime error"
    return "pass"


def same_output(got: str, expected: str) -> bool:
    r"""Return whether two outputs agree by the official rule: exact decimals, no tolerance.

    >>> same_output("1.0 2\n", "1.00  2"), same_output("yes", "Yes"), same_output("1.0001", "1")
    (True, False, False)
    """
    mine, theirs = _lines(got), _lines(expected)
    return len(mine) == len(theirs) and all(
        left == right or _same_numbers(left, right)
        for left, right in zip(mine, theirs, strict=True)
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_numbers(left: str, right: str) -> bool:
    try:
        return [Decimal(token) for token in left.split()] == [
            Decimal(token) for token in right.split()
        ]
    except InvalidOperation:
        return False


def _same_value(line: str, expected: str) -> bool:
    """Return whether a result line holds the expected value: JSON values, Python equality."""
    try:
        result: object = json.loads(line)
        return isinstance(result, dict) and cast("Any", result)["returned"] == json.loads(expected)
    except (ValueError, KeyError, RecursionError):
        return False


def _values(text: str) -> Sequence[object]:
    """Return the arguments of a functional test: one JSON value per line."""
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _encoded(program: str) -> bytes:
    """Return the program's bytes; lone surrogates, which no source file can hold, become `?`."""
    return program.encode("utf-8", errors="replace")


def _decoded(output: bytes) -> str:
    return output.decode("utf-8", errors="replace")
