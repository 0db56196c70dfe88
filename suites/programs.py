"""Judge one program on hidden tests, in a box, by one of two sets of rules.

`real`, the default: every test is a fresh process with real descriptors, limited in CPU time, so
that the load of the machine does not decide. `official`: as LiveCodeBench's published evaluator
runs it (sandbox/inside/runners.py), which fails some correct programs; it exists to be shown next
to the first. Both compare by the same rules (comparison.py), and both compare here: a box is never
told what is expected, so a program can neither find nor forge it.
"""

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Literal

from sandbox import IMAGE, Box, Limits, Program, ProgramOutcome
from suites.verdicts import CaseResult, Verdict, officially, really

Rules = Literal["real", "official"]

LIMITS = Limits()
"""Per test: the official six seconds, as CPU time, with a wall limit of three times as much. The
memory limit is ours under both rules: the published evaluator has none."""

NEAR = 0.2
"""A time within this fraction of its limit might fall on either side of it another time."""

COMPUTING = 0.05
"""A program that used less of its CPU time while real time ran out was waiting, not starved."""

OFFICIAL_S = 6
"""The published evaluator's limit per test, in real time; kept by the program's own process."""

ROOM_BYTES = 1 << 16
"""What a program may print beyond twice what is expected, where that passes the output limit."""


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
    """What became of a program: one result per test, in the order of the tests."""

    results: tuple[CaseResult, ...]
    margin: float
    """Largest time of a test that ran, as a part of its limit: CPU time, or real time under the
    official rules."""
    reruns: int = 0
    """Tests that came near the time limit and were run again, alone; the second time counts."""
    rerun_s: float = 0.0
    """Real time of the reruns, in seconds."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per test; `not run` for those after the first failure."""
        return tuple(result.verdict for result in self.results)

    @property
    def cpu_s(self) -> float:
        """CPU time of all the tests that ran, reruns apart."""
        return sum((result.cpu_s for result in self.results), 0.0)

    @property
    def passed(self) -> bool:
        """True when every test passed; there is at least one."""
        return all(verdict == "pass" for verdict in self.verdicts)

    @property
    def fragile(self) -> bool:
        """True when a test came so near the time limit that another machine might judge else."""
        return 1 - NEAR <= self.margin <= 1 + NEAR

    @property
    def summary(self) -> str:
        """Return, for people, how far the program came: `test 3 of 5: time limit`."""
        total = len(self.results)
        for number, result in enumerate(self.results, start=1):
            if result.verdict not in ("pass", "not run"):
                note = f" ({result.note})" if result.note else ""
                return f"test {number} of {total}: {result.verdict}{note}"
        return f"all {total} tests passed"


def read_tests(target: str) -> ProgramTests:
    """Return the tests kept in a question's target; the inverse of `ProgramTests.as_json`."""
    data = json.loads(target)
    cases = tuple(Case(case["input"], case["output"]) for case in data["cases"])
    return ProgramTests(cases, data["method"])


def judge(
    program: str,
    tests: ProgramTests,
    box: Box,
    limits: Limits = LIMITS,
    *,
    rules: Rules = "real",
    stop_early: bool = True,
    image: str = IMAGE,
) -> Judgement:
    """Run a program on its tests and compare; see the module for the two rules.

    With `stop_early` the longest inputs come first and the first failure is the last test run; the
    official rules keep the order and always stop. Raises SandboxError when the box fails, and
    ValueError when the problem is at fault: it has no tests, or an expected value is no JSON.
    """
    if not tests.cases:
        raise ValueError("The problem has no tests, so no program can be judged on it.")
    exam = _Exam(program, tests, box, _roomy(limits, tests))
    return exam.officially(image) if rules == "official" else exam.really(image, stop_early)


@dataclass(frozen=True, slots=True)
class _Exam:
    """A program that sits its tests."""

    source: str
    tests: ProgramTests
    box: Box
    limits: Limits

    def really(self, image: str, stop_early: bool) -> Judgement:
        """Run a process per test; what came near the time limit is settled alone, at the end."""
        program = Program(
            self.source, "call" if self.tests.method else "script", self.tests.method, image
        )
        order = list(range(len(self.tests.cases)))
        if stop_early:
            order.sort(key=lambda index: -len(self.tests.cases[index].input))
        found = self._sit(program, order, stop_early, alone=False)
        near = [index for index in order if index in found and self._near(found[index])]
        if stop_early and any(self._failed(result) for result in found.values()):
            near = []
        again = self._sit(program, near, stop_early, alone=True)
        settled = found | again
        return Judgement(
            results=self._in_order(settled),
            margin=max(result.cpu_s for result in settled.values()) / self.limits.cpu_s,
            reruns=len(again),
            rerun_s=sum((result.wall_s for result in again.values()), 0.0),
        )

    def officially(self, image: str) -> Judgement:
        """Run all tests in one process, in their order, until one fails.

        The process keeps its own time per test. Where a program catches the alarm, the published
        evaluator's limit for all tests together ends it.
        """
        program = Program(self.source, "official", self.tests.method, image)
        cases = self.tests.cases
        most_s = float((OFFICIAL_S + 1) * len(cases) + 5)
        limits = replace(self.limits, cpu_s=most_s, wall_s=most_s)
        found: dict[int, CaseResult] = {}
        used_s = 0.0
        with closing(self.box.run(program, self._inputs(range(len(cases))), limits)) as outcomes:
            for index, outcome in zip(range(len(cases)), outcomes, strict=False):
                used_s += outcome.wall_s
                found[index] = officially(outcome, cases[index].output, used_s >= most_s)
                if found[index].verdict != "pass":
                    break
        slowest_s = max(result.wall_s for result in found.values())
        return Judgement(self._in_order(found), margin=slowest_s / OFFICIAL_S)

    def _sit(
        self, program: Program, order: Sequence[int], stop_early: bool, *, alone: bool
    ) -> dict[int, CaseResult]:
        """Run the tests in this order; early on, a near miss is no reason to stop."""
        if not order:
            return {}
        limits = replace(self.limits, cpu_s=self.limits.cpu_s * (1 + NEAR))
        found: dict[int, CaseResult] = {}
        outcomes = self.box.run(program, self._inputs(order), limits, alone=alone)
        with closing(outcomes):
            for index, outcome in zip(order, outcomes, strict=False):
                found[index] = self._result(index, outcome)
                done = found[index].verdict != "pass" if alone else self._failed(found[index])
                if stop_early and done:
                    break
        return found

    def _result(self, index: int, outcome: ProgramOutcome) -> CaseResult:
        method = self.tests.method is not None
        return really(outcome, self.tests.cases[index].output, method, self.limits.cpu_s)

    def _failed(self, result: CaseResult) -> bool:
        return result.verdict != "pass" and not self._near(result)

    def _near(self, result: CaseResult) -> bool:
        """Return whether time alone decides this result, and might decide it otherwise.

        So does a stop by real time of a program that was computing: others had the processor.
        """
        part = result.cpu_s / self.limits.cpu_s
        starved = result.wall_s >= self.limits.wall_s and part >= COMPUTING
        close = starved or part >= 1 - NEAR
        return result.verdict in ("pass", "time limit") and close and part < 1 + NEAR

    def _inputs(self, order: Iterable[int]) -> Generator[bytes]:
        """Yield the bytes of one input after another; none is kept."""
        for index in order:
            text = self.tests.cases[index].input
            yield (_arguments(text) if self.tests.method else text).encode()

    def _in_order(self, found: dict[int, CaseResult]) -> tuple[CaseResult, ...]:
        skipped = CaseResult("not run")
        return tuple(found.get(index, skipped) for index in range(len(self.tests.cases)))


def _arguments(text: str) -> str:
    """Return the arguments of a functional test, one JSON value per line, as one JSON list."""
    return f"[{','.join(line for line in text.split(chr(10)) if line.strip())}]"


def _roomy(limits: Limits, tests: ProgramTests) -> Limits:
    """Return limits under which a right program can print what is expected of it."""
    longest = max(len(case.output.encode()) for case in tests.cases)
    return replace(limits, output_bytes=max(limits.output_bytes, 2 * longest + ROOM_BYTES))
