"""Run a program on tests in a sandbox (box): hidden tests for its grade, shown ones for feedback.

By `real` rules, the default, each test is a separate process, limited in CPU time, so that the load
of the machine does not matter; `official` rules copy LiveCodeBench's published evaluator
(sandbox/inside/runners.py), which fails some correct programs. Outputs are compared here, as in
lcb_runner/evaluation/testing_util.py @28fef95: expected outputs never enter a box.
"""

import ast
import json
import math
import operator
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from podium.harness.program_text import extract_program
from podium.harness.python_syntax import parse_python
from podium.harness.records import Grade, Question
from podium.sandbox import Box, Limits, Program, ProgramOutcome
from podium.sandbox.box import decode, read_json, untagged
from podium.suites.base import required_box

Verdict = Literal[
    "pass", "wrong answer", "time limit", "memory limit", "output limit", "runtime error", "not run"
]

NOTE_CHARS = 200
NOT_PLAIN = "returned a value that is no plain builtin"
SLOW = -3
"""Error code of LiveCodeBench's published evaluator for a test that timed out."""

Rules = Literal["real", "official"]
LIMITS = Limits()
"""Limits per test: LiveCodeBench's 6 s, as CPU time; other limits are podium's own."""
FLOAT_TOLERANCE = 1e-9
"""Tolerance for floats that a method returns, by `real` rules: a share of the larger value."""
NEAR = 0.2
"""Share of the time limit: if a test's time is this close to the limit, a rerun may be judged
differently."""
COMPUTING = 0.05
"""Share of the CPU limit. A program that ran out of real time and used less CPU than this share
was waiting; if it used more, other processes may have had the CPU."""
OFFICIAL_S = 6
"""The published limit per test, in seconds of real time; an alarm in the program's process ends
the test."""
ROOM_BYTES = 1 << 16
"""The output limit of a test is at least twice the longest expected output plus these bytes."""
SHOWN_CHARS = 600


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a program on one test."""

    verdict: Verdict
    cpu_s: float = 0.0
    wall_s: float = 0.0
    note: str = ""
    """Why the program failed, for people: usually the last line of its stderr."""
    exact: bool = True
    """False if the test passed only because floats may differ by `FLOAT_TOLERANCE`."""


def real_result(outcome: ProgramOutcome, expected: str, method: bool, cpu_s: float) -> CaseResult:
    """Return the result of a test by `real` rules; `cpu_s` is the test's CPU limit in seconds.

    An answer that is wrong and late counts as `wrong answer`, so a rerun can only turn the verdict
    `time limit` into `pass`.
    """
    (verdict, note), exact = _end_verdict(outcome), True
    if verdict == "pass":
        if method:
            verdict, note, exact = _compare_returned(outcome, expected)
        else:
            output = outcome.stdout.decode("utf-8", errors="replace")
            verdict, note = _verdict_on(same_output(output, expected))
    if verdict == "pass" and outcome.cpu_s > cpu_s:
        verdict = "time limit"
    return CaseResult(verdict, outcome.cpu_s, outcome.wall_s, note, exact)


def official_result(outcome: ProgramOutcome, expected: str, late: bool) -> CaseResult:
    """Return a test's result by `official` rules; `late` if the time of all tests is used up."""
    verdict, note = _end_verdict(outcome)
    if verdict == "pass":
        verdict, note = _compare_reported(outcome.result, expected)
    if late and verdict == "pass":
        verdict, note = "time limit", "all tests together"
    return CaseResult(verdict, outcome.cpu_s, outcome.wall_s, note)


def _end_verdict(outcome: ProgramOutcome) -> tuple[Verdict, str]:
    line = _last_line(outcome.stderr)
    if outcome.status in ("time", "memory", "output"):
        return cast("Verdict", f"{outcome.status} limit"), ""
    if outcome.status == "processes":
        return "runtime error", "too many processes or threads"
    if outcome.status == "died":
        return "runtime error", line or "the program ended its sandbox"
    if outcome.exit_code == 0:
        return "pass", ""
    if line.startswith("MemoryError"):
        return "memory limit", line
    killed = {-sig: f"killed by {sig.name}" for sig in signal.Signals}
    return "runtime error", line or killed.get(outcome.exit_code, f"exit code {outcome.exit_code}")


def _verdict_on(same: bool) -> tuple[Verdict, str]:
    return ("pass" if same else "wrong answer"), ""


def _compare_returned(outcome: ProgramOutcome, expected: str) -> tuple[Verdict, str, bool]:
    """Return verdict, note and exactness of a method's returned value against expected JSON.

    A missing value is a runtime error, a malformed (maybe forged) value a wrong answer. Exactness
    is whether the values are equal without the float tolerance.
    """
    if not outcome.result:
        return "runtime error", _last_line(outcome.stderr) or "the method never returned", True
    try:
        value = decode(outcome.result)
    except ValueError:
        return "wrong answer", NOT_PLAIN, True
    exact = same_value(value, expected)
    return *_verdict_on(exact or close_value(value, expected)), exact


def _compare_reported(result: bytes, expected: str) -> tuple[Verdict, str]:
    if not result:
        return "runtime error", "the program ended the evaluator's process"
    data: object = None
    with suppress(ValueError):
        data = read_json(result)
    report = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    if "error" in report:
        slow = report.get("code") == SLOW
        return ("time limit" if slow else "runtime error"), _clipped(str(report["error"]))
    if isinstance(report.get("output"), str):
        return _verdict_on(same_output(report["output"], expected))
    try:
        value = untagged(report["returned"])
    except (KeyError, ValueError):
        return "wrong answer", NOT_PLAIN
    return _verdict_on(same_value(value, expected))


def _last_line(stderr: bytes) -> str:
    lines = stderr[-4096:].decode("utf-8", errors="replace").strip().splitlines()
    return _clipped(lines[-1]) if lines else ""


def _clipped(text: str) -> str:
    return text if len(text) <= NOTE_CHARS else text[: NOTE_CHARS - 3] + "..."


@dataclass(frozen=True, slots=True)
class ProgramCase:
    """One test in LiveCodeBench's format; a method's `input` has one JSON argument per line."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class ProgramTests:
    """The tests of one programming problem; a program that passes them all is right."""

    cases: tuple[ProgramCase, ...]
    method: str | None = None
    """Name of the method of `class Solution`; None for programs that read standard input."""

    def as_json(self) -> str:
        """Return the tests as JSON text, which a question has as its target."""
        return json.dumps({"method": self.method, "cases": [asdict(case) for case in self.cases]})


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The results of a program on the tests of a problem, in the order of the tests."""

    results: tuple[CaseResult, ...]
    margin: float
    """Largest time of a test that ran, as a fraction of its limit: CPU time, or real time under the
    official rules."""
    reruns: int = 0
    """Number of tests near the time limit that were run again, alone; the second run counts."""
    rerun_s: float = 0.0

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per test; `not run` for tests that a failure prevented from running."""
        return tuple(result.verdict for result in self.results)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all tests that ran; of a repeated test only the second run counts."""
        return sum((result.cpu_s for result in self.results), 0.0)

    @property
    def passed(self) -> bool:
        """True if every test passed; there is at least one test."""
        return all(verdict == "pass" for verdict in self.verdicts)

    @property
    def exact(self) -> bool:
        """True if every test passed without the float tolerance."""
        return self.passed and all(result.exact for result in self.results)

    @property
    def fragile(self) -> bool:
        """True if a test came so near the time limit that another machine might disagree."""
        return 1 - NEAR <= self.margin <= 1 + NEAR

    @property
    def first_failure(self) -> int | None:
        """The index of the first failed test, from 0; None if no test failed."""
        failed = (index for index, v in enumerate(self.verdicts) if v not in ("pass", "not run"))
        return next(failed, None)

    def summary(self, redact: Callable[[str], str] = str) -> str:
        """Return e.g. `test 3 of 5: time limit (NOTE)`; `redact` filters the note (the error)."""
        index, total = self.first_failure, len(self.results)
        if index is None:
            return f"all {total} tests passed"
        note = redact(self.results[index].note)
        return f"test {index + 1} of {total}: {self.verdicts[index]}{f' ({note})' if note else ''}"


def read_tests(target: str) -> ProgramTests:
    """Return the tests kept in a question's target; the inverse of `ProgramTests.as_json`."""
    data = json.loads(target)
    cases = tuple(ProgramCase(case["input"], case["output"]) for case in data["cases"])
    return ProgramTests(cases, data["method"])


def judge_program(
    program: str,
    tests: ProgramTests,
    box: Box,
    limits: Limits = LIMITS,
    *,
    rules: Rules = "real",
    stop_early: bool = True,
) -> ProgramResult:
    """Run a program on a problem's tests in a sandbox (box), and compare its outputs.

    By `real` rules each test has its own process and a limit of CPU time; `official` rules copy
    LiveCodeBench's evaluator. With `stop_early` the longest inputs run first and a failure ends the
    run; `official` rules keep the order and always stop early. SandboxError if the box fails,
    ValueError if the problem has no tests or an expected value is not JSON.
    """
    if not tests.cases:
        raise ValueError("The problem has no tests, so no program can be judged on it.")
    longest = max(len(case.output.encode()) for case in tests.cases)
    room = max(limits.output_bytes, 2 * longest + ROOM_BYTES)
    run = _ProgramRun(program, tests, box, replace(limits, output_bytes=room))
    return run.officially() if rules == "official" else run.really(stop_early)


@dataclass(frozen=True, slots=True)
class _ProgramRun:
    """A program with the tests to run it on, the sandbox (box) and the limits of a test."""

    source: str
    tests: ProgramTests
    box: Box
    limits: Limits

    def really(self, stop_early: bool) -> ProgramResult:
        runner = "call" if self.tests.method else "script"
        program = Program(self.source, runner, self.tests.method)
        order = list(range(len(self.tests.cases)))
        if stop_early:
            order.sort(key=lambda index: -len(self.tests.cases[index].input))
        results = self._run_tests(program, order, stop_early, alone=False)
        near = [index for index in order if index in results and self._near(results[index])]
        if stop_early and any(self._failed(result) for result in results.values()):
            near = []
        again = self._run_tests(program, near, stop_early, alone=True)
        settled = results | again
        return ProgramResult(
            results=self._in_order(settled),
            margin=max(result.cpu_s for result in settled.values()) / self.limits.cpu_s,
            reruns=len(again),
            rerun_s=sum((result.wall_s for result in again.values()), 0.0),
        )

    def officially(self) -> ProgramResult:
        """Run the tests by `official` rules: in one process, in their order, until one fails.

        A program may catch the alarm that ends one test; the limit on all tests then ends it.
        """
        program = Program(self.source, "official", self.tests.method)
        cases = self.tests.cases
        most_s = float((OFFICIAL_S + 1) * len(cases) + 5)
        limits = replace(self.limits, cpu_s=most_s, wall_s=most_s)
        results, used_s = dict[int, CaseResult](), 0.0
        with closing(self.box.run(program, self._inputs(range(len(cases))), limits)) as outcomes:
            for index, outcome in zip(range(len(cases)), outcomes, strict=False):
                used_s += outcome.wall_s
                results[index] = official_result(outcome, cases[index].output, used_s >= most_s)
                if results[index].verdict != "pass":
                    break
        slowest_s = max(result.wall_s for result in results.values())
        return ProgramResult(self._in_order(results), margin=slowest_s / OFFICIAL_S)

    def _run_tests(
        self, program: Program, order: Sequence[int], stop_early: bool, *, alone: bool
    ) -> dict[int, CaseResult]:
        """Run the tests with indices `order`; with `stop_early`, only until one fails.

        Unless `alone`, a time near the limit is no failure yet: the test may be run again.
        """
        if not order:
            return {}
        limits = replace(self.limits, cpu_s=self.limits.cpu_s * (1 + NEAR))
        results: dict[int, CaseResult] = {}
        with closing(self.box.run(program, self._inputs(order), limits, alone=alone)) as outcomes:
            for index, outcome in zip(order, outcomes, strict=False):
                expected, method = self.tests.cases[index].output, self.tests.method is not None
                results[index] = real_result(outcome, expected, method, self.limits.cpu_s)
                stop = results[index].verdict != "pass" if alone else self._failed(results[index])
                if stop_early and stop:
                    break
        return results

    def _failed(self, result: CaseResult) -> bool:
        return result.verdict != "pass" and not self._near(result)

    def _near(self, result: CaseResult) -> bool:
        """Return whether a time near the limit decided a test's result: a rerun might differ.

        That includes a program that computed until its real time ran out, because other processes
        had the CPU.
        """
        fraction = result.cpu_s / self.limits.cpu_s
        starved = result.wall_s >= self.limits.wall_s and fraction >= COMPUTING
        close = starved or fraction >= 1 - NEAR
        return result.verdict in ("pass", "time limit") and close and fraction < 1 + NEAR

    def _inputs(self, order: Iterable[int]) -> Generator[bytes]:
        """Yield the input of each test as bytes, in the given order and lazily."""
        for index in order:
            text = self.tests.cases[index].input
            if self.tests.method:  # one JSON value per line, joined to one JSON list
                text = f"[{','.join(line for line in text.split(chr(10)) if line.strip())}]"
            yield text.encode()

    def _in_order(self, results: dict[int, CaseResult]) -> tuple[CaseResult, ...]:
        skipped = CaseResult("not run")
        return tuple(results.get(index, skipped) for index in range(len(self.tests.cases)))


def program_of(reply: str, method: str | None) -> str | None:
    """Return a reply's program or None; code with `method` or `class Solution` is preferred."""
    return extract_program(reply, ("Solution", method) if method else ())


def same_output(output: str, expected: str) -> bool:
    r"""Return whether two outputs agree: line by line, as texts or as exact decimals.

    >>> same_output("1.0 2\n", "1.00  2"), same_output("yes", "Yes"), same_output("1.0001", "1")
    (True, False, False)
    """
    mine, theirs = output.strip(), expected.strip()
    if mine == theirs:
        return True
    return mine.count("\n") == theirs.count("\n") and all(
        line == expected_line or _same_numbers(line, expected_line)
        for line, expected_line in zip(_lines(mine), _lines(theirs), strict=True)
    )


def same_value(value: object, expected: str) -> bool:
    """Return whether a returned value equals the expected JSON value by Python's `==`.

    A returned tuple equals a list; a tuple inside the value does not. ValueError if `expected` is
    not JSON.
    """
    return _compared(value, expected, operator.eq)


def close_value(value: object, expected: str) -> bool:
    """Return whether a returned value equals the expected JSON value within the float tolerance.

    >>> close_value([0.1 + 0.2], "[0.3]"), close_value(3.0000001, "3.0"), close_value(3.0, "3")
    (True, False, True)
    """
    return _compared(value, expected, _close)


def _compared(value: object, expected: str, same: Callable[[object, object], bool]) -> bool:
    mine = list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
    theirs = read_json(expected)
    try:
        return bool(same(mine, theirs))
    except RecursionError:
        return False


def _close(mine: object, theirs: object) -> bool:
    if isinstance(mine, list) and isinstance(theirs, list):
        items, expected_items = cast("list[object]", mine), cast("list[object]", theirs)
        return len(items) == len(expected_items) and all(map(_close, items, expected_items))
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=FLOAT_TOLERANCE)
    return bool(mine == theirs)


def _lines(text: str) -> Iterator[str]:
    """Yield a text's stripped lines lazily, since outputs may be large."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end].strip()
        start = end + 1
    yield text[start:].strip()


def _same_numbers(line: str, expected_line: str) -> bool:
    try:
        mine, theirs = line.split(), expected_line.split()
        return len(mine) == len(theirs) and all(
            Decimal(number) == Decimal(target) for number, target in zip(mine, theirs, strict=True)
        )
    except InvalidOperation:
        return False


def shown_tests(question: Question) -> ProgramTests | None:
    """Return the tests that a question shows to systems; None if it shows none."""
    public_tests: Sequence[Mapping[str, Any]] = question.metadata.get("public_tests") or ()
    cases = tuple(ProgramCase(str(case["input"]), str(case["output"])) for case in public_tests)
    starter = str(question.metadata.get("starter_code") or "")
    return ProgramTests(cases, starter_method(starter)) if cases else None


def starter_method(starter: str) -> str | None:
    r"""Return the method that starter code asks to write, the last in `class Solution`, or None.

    Starter code ends where the body should begin, so it does not parse by itself.

    >>> starter_method("class Solution:\n    def f(self, x: int) -> int:\n        ")
    'f'
    """
    try:
        nodes = ast.walk(parse_python(f"{starter.rstrip()} pass\n"))
    except (SyntaxError, ValueError):
        return None
    classes = (node for node in nodes if isinstance(node, ast.ClassDef))
    inside = (statement for node in classes if node.name == "Solution" for statement in node.body)
    names = [statement.name for statement in inside if isinstance(statement, ast.FunctionDef)]
    return names[-1] if names else None


def grade_on_shown_tests(question: Question, reply: str, box: Box | None) -> Grade:
    """Grade by the share of shown tests that the program passes; 0 without program or tests.

    The tests come from visible metadata, so the grade's reason reveals nothing hidden.
    """
    box, tests = required_box(box, question.id), shown_tests(question)
    program = program_of(reply, tests.method if tests else None)
    if tests is None:
        return Grade(0.0, program, "the question shows no tests")
    if program is None:
        return Grade(0.0, None, "no program found")
    judgement = judge_program(program, tests, box, stop_early=False)
    passed, total, summary = judgement.verdicts.count("pass"), len(tests.cases), judgement.summary()
    if judgement.first_failure is not None:
        case = tests.cases[judgement.first_failure]
        input_text, expected = _shortened(case.input), _shortened(case.output)
        summary = f"{summary}\ninput:\n{input_text}\nexpected output:\n{expected}"
    return Grade(passed / total, program, summary, {"tests_passed": passed, "tests_total": total})


def _shortened(text: str) -> str:
    body = text.strip()
    return body if len(body) <= SHOWN_CHARS else f"{body[:SHOWN_CHARS]} ..."
