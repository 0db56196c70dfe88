"""Judge a program by a data set's check: published code that calls the program and asserts results.

As published, program and check share a process, so a program can end it early, override `==` or
read expected values. Here (code_checks_inside.py) one process calls the program, and another runs
the check on the results. Each verdict must begin with a random token that no program can know.
"""

import ast
import json
import secrets
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any

from podium.harness.errors import UserError
from podium.harness.files import read_questions
from podium.harness.program_text import code_blocks, defines, extract_program, parsed
from podium.harness.python_syntax import parse_python
from podium.harness.reasoning import spoken
from podium.harness.records import Grade, Question
from podium.harness.suite import Split
from podium.sandbox import IMAGE, Box, Limits, Program, ProgramOutcome, SandboxError
from podium.suites.base import DatasetSuite, required_box, unsealed

LIMITS = Limits()
"""Limits of one call of the program. The authors allow 3 s of wall time for a whole check (openai/
human-eval, execution.py); MBPP's solution of task 123 needs 2.3 s of CPU time for one call here."""

CHECK_LIMITS = Limits(cpu_s=20.0, wall_s=60.0)
"""Limits of one run of the check itself: the data set's code, which does little."""

PATIENCE_S = 1.0
"""Seconds of program calls after which the check runs again on the results so far, so that a slow
program that fails an early assertion is not called further."""

ROUNDS = 1000
"""Maximum runs of one check on one program: more than any check needs."""

CHECKS = "# --- the check's process ---"
"""Code below this line in code_checks_inside.py is not sent to the program's process, because
each call compiles all code that it receives."""

STOPS = ("\nclass ", "\ndef ", "\n#", "\nif ", "\nprint", "\n```")
"""Strings at which a reply that continues the prompt's code is cut: those of arXiv 2107.03374
(section 2.1), and a code fence."""


@dataclass(frozen=True, slots=True)
class CheckCode:
    """A data set's code that checks a program; `names`: the program's functions that it calls."""

    text: str
    names: Sequence[str]
    setup: str = ""
    """Code of the data set that the check needs, such as the prompt's helpers, or imports."""
    by_text: bool = False
    """Whether the check passes instances of the program's own classes to the program: then the
    program's process receives each call as source text."""

    def as_json(self) -> str:
        """Return the check as JSON text, which a question has as its target."""
        return json.dumps(asdict(self))

    @property
    def asserts(self) -> list[int]:
        """The line numbers of the check's assertions, sorted."""
        tree = ast.walk(parse_python(self.text))
        return sorted(node.lineno for node in tree if isinstance(node, ast.Assert))


@dataclass(slots=True)
class _CheckRun:
    """The judging of a program by a check; `known` has the calls made so far and their results."""

    program: str
    check: CheckCode
    box: Box
    known: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    calls: int = 0
    cpu_s: float = 0.0

    def verdict(self) -> Grade:
        """Run check and program in turn until the check passes or fails."""
        for _ in range(ROUNDS):
            message = self.ask_check()
            if "calls" not in message:
                return self.grade(message)
            del self.known[message["known"] :]
            reason = self.make_calls(message["calls"])
            if reason:
                return self.grade({"failed": reason, "line": 0})
        return self.grade({"failed": f"the check asked for calls {ROUNDS} times", "line": 0})

    def ask_check(self) -> dict[str, Any]:
        """Run the check on the known results; return its message: passed, failed, or new calls."""
        token = secrets.token_hex(16)
        order = json.dumps({**asdict(self.check), "token": token, "known": self.known}).encode()
        program = Program(f"{inside_code()}\nCheck(json.load(sys.stdin)).run()\n")
        outcome = run_once(self.box, program, order, CHECK_LIMITS)
        starved = outcome.status == "time" and outcome.cpu_s < CHECK_LIMITS.cpu_s
        if starved or outcome.status == "died":  # other processes may have caused it
            outcome = run_once(self.box, program, order, CHECK_LIMITS, alone=True)
        lines = [line for line in outcome.stdout.splitlines() if line.startswith(token.encode())]
        if lines and outcome.exit_code == 0:
            with suppress(ValueError):
                return json.loads(lines[-1][len(token) :])
        reason = end_reason(outcome)
        if self.known:  # no SandboxError: a program could cause it to avoid its grade
            return {"failed": f"the check cannot use what it returned: {reason}", "line": 0}
        raise SandboxError(f"A check ended without a verdict ({outcome.status}: {reason}).")

    def make_calls(self, calls: Sequence[str]) -> str:
        """Make the calls of the program; return why one gave no result, else an empty text.

        Stops early if a call raises (the check may expect that, or need no more calls) and after
        `PATIENCE_S` seconds (the check may already fail on the results so far).
        """
        slow_s = 0.0
        setup = self.check.setup if self.check.by_text else None
        caller = f"answer = caller({self.program!r}, {setup!r})"
        program = Program(f"{inside_code().partition(CHECKS)[0]}\n{caller}\n", "call", "answer")
        inputs = (json.dumps([call]).encode() for call in calls)
        with closing(self.box.run(program, inputs, LIMITS)) as outcomes:
            for call, outcome in zip(calls, outcomes, strict=True):
                self.calls += 1
                if outcome.status == "time" and outcome.cpu_s < LIMITS.cpu_s:
                    break
                reason = self.learn(call, outcome)
                slow_s += outcome.wall_s
                raised = not reason and self.known[-1][1]["list"][0] == "raised"
                if reason or raised or slow_s > PATIENCE_S:
                    return reason
            else:
                return ""
        # The call ran out of real time, not CPU time: repeat it while nothing else runs.
        data = json.dumps([call]).encode()
        return self.learn(call, run_once(self.box, program, data, LIMITS, alone=True))

    def learn(self, call: str, outcome: ProgramOutcome) -> str:
        self.cpu_s += outcome.cpu_s
        result = read_report(outcome, _call_result)
        if result is None:
            return f"call {self.calls}: {end_reason(outcome)}"
        self.known.append((call, result))
        return ""

    def grade(self, message: dict[str, Any]) -> Grade:
        """Return the grade by a check's last message; an assertion in a loop counts as one test."""
        asserts = self.check.asserts
        passed = message.get("passed") is True
        tests_passed = len(asserts) if passed else sum(line < message["line"] for line in asserts)
        reason = f"all {len(asserts)} assertions hold" if passed else str(message["failed"])
        if message.get("line"):
            reason = f"line {message['line']} of the check: {reason}"
        facts = {
            "tests_passed": tests_passed,
            "calls": self.calls,
            "cpu_s": round(self.cpu_s, 3),
            "reason": reason,
            "tests_total": len(asserts),
        }
        return Grade(float(passed), self.program, reason, facts)


@dataclass(frozen=True, slots=True)
class UnitTestedSuite(DatasetSuite):
    """A suite of programs, judged in a sandbox (box) by the check in each question's target."""

    needs_box: bool = True
    image: str = IMAGE

    @abstractmethod
    def question(self, row: Mapping[str, Any], where: str) -> Question:
        """Return the question of a published row; UserError, which names `where`, if malformed."""

    def program(self, question: Question, reply: str) -> str | None:
        """Return the reply's program, with the prompt's helpers; None if the reply has none."""
        facts = question.metadata
        return complete_program(facts["prompt"], facts["entry_point"], reply)

    def questions(self, split: Split) -> Sequence[Question]:
        """Return the questions of all data rows."""
        return [self.question(row, self.name) for row in self.rows()]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of a file of raw rows (JSONL, .gz, CSV); UserError if one is bad."""
        return read_questions(path, self.question)

    def grade(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade by the published check, in the sandbox `box`; SandboxError if the box fails."""
        box, check = required_box(box, self.name), CheckCode(**json.loads(unsealed(question)))
        program = self.program(question, reply)
        if program is None:
            return no_program(len(check.asserts))
        started = perf_counter()
        grade = _CheckRun(program, check, box).verdict()
        seconds = round(perf_counter() - started, 3)
        return replace(grade, metadata={**grade.metadata, "seconds": seconds})


def no_program(tests: int) -> Grade:
    """Return the grade 0 for a reply without a program; `tests` is the number of tests."""
    reason = "no program found"
    facts = {"tests_passed": 0, "tests_total": tests, "reason": reason}
    return Grade(0.0, None, reason, facts)


def refuse_untold(row: Mapping[str, Any], fields: Sequence[str], origin: str) -> None:
    """Raise UserError, which names `origin`, if one of a row's `fields` is missing or not text."""
    for field_name in fields:
        if not isinstance(row.get(field_name), str):
            raise UserError(f"{origin}: {field_name} is missing or not text. Correct the row.")


@cache
def inside_code() -> str:
    """Return the text of code_checks_inside.py, the code that runs in the box (sandbox)."""
    return (resources.files("podium.suites") / "code_checks_inside.py").read_text(encoding="utf-8")


def run_once(
    box: Box, program: Program, data: bytes, limits: Limits, *, alone: bool = False
) -> ProgramOutcome:
    """Run a program on one input in a box (sandbox), and return the outcome."""
    with closing(box.run(program, [data], limits, alone=alone)) as outcomes:
        return next(outcomes)


def read_report(outcome: ProgramOutcome, read: Callable[[Any], Any]) -> Any:
    """Return `read(report)` for a run's JSON report, which may be forged; None if it is invalid."""
    if outcome.status == "exited" and outcome.exit_code == 0:
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            return read(json.loads(outcome.result))
    return None


def _call_result(report: Any) -> Any:
    result = report["returned"]
    return result if result["list"][0] in ("returned", "raised") else None


def end_reason(outcome: ProgramOutcome, otherwise: str = "it ended without a result") -> str:
    """Return why a run gave no report: its limit, or stderr's last line, or else `otherwise`."""
    if outcome.status != "exited":
        return f"{outcome.status} limit" if outcome.status != "died" else "it ended its sandbox"
    lines = outcome.stderr.decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else otherwise


def complete_program(prompt: str, entry: str, reply: str) -> str | None:
    r"""Return the program that a prompt's code and a reply make together; None if there is none.

    If the reply defines the function, the prompt's code before it (imports, helpers) is put first.
    Any other reply is taken as the body of the function.

    >>> complete_program("import math\ndef f(x):\n", "f", "    return x\ndef g(")
    'import math\ndef f(x):\n    return x'
    """
    program = extract_program(reply, [entry])
    if program and defines(program, [entry]) and compiles(program):
        full_program = prompt[: prompt.rindex(f"def {entry}(")] + program
        return full_program if compiles(full_program) else program
    text = spoken(reply)[0]
    indented = [block.text for block in code_blocks(text) if block.text[0].isspace()]
    completes = text.lstrip("\n")[:1].isspace()
    completion = indented[-1] if indented else text if completes else program or text
    ends = [index for stop in STOPS if (index := completion.find(stop)) >= 0]
    for body in (completion, completion[: min(ends, default=len(completion))]):
        if body.strip() and compiles(prompt + body):
            return prompt + body
    return program


def compiles(text: str) -> bool:
    """Return whether a text is valid Python."""
    return parsed(text) is not None
