"""BigCodeBench-Hard (`complete`): 148 functions that use many libraries, judged by unit tests.

Prompt, tests and runner are the published ones (bigcode-project/bigcodebench @47eff25): program and
tests share a process, since the tests patch functions that the program calls. So a program written
against this runner can forge its verdict; sandbox/inside rules out accidental forgery.
"""

import ast
import json
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from inspect_ai import Task, task

from podium.harness.errors import UserError
from podium.harness.python_syntax import parse_python
from podium.harness.records import Grade, Question
from podium.harness.suite import Split
from podium.sandbox import IMAGE, Box, Limits, Program, SandboxError
from podium.suites.base import required_box, unsealed, user_errors
from podium.suites.code_checks import (
    UnitTestedSuite,
    compiles,
    end_reason,
    no_program,
    read_report,
    refuse_untold,
    run_once,
)

NAME = "bigcodebench"

INSTRUCTION = (
    "Please provide a self-contained Python script that solves the following problem in a markdown "
    "code block:"
)
"""The instruction in bigcodebench/generate.py and provider/utility.py for the split `complete`."""

LIMITS = Limits(cpu_s=60.0, wall_s=240.0, memory_bytes=4 << 30, output_bytes=32 << 20)
"""Limits of all tests of a task together. Published: 1 to 240 s, depending on the reference
solution's time, and 30 GB of address space. The slowest solution here takes 17 s of CPU time (task
99), and some wait for a minute. Memory is resident memory, not address space: 4 GiB are ample."""

NEEDED = frozenset(
    ("matplotlib", "numpy", "pandas", "requests", "scikit-learn", "scipy", "seaborn")
)
"""Packages that most tasks use: in a box (sandbox) without them, most programs would fail."""

SKIPPED = Path(__file__).parent / "bigcodebench_skipped.toml"


@dataclass(frozen=True, slots=True)
class BigCodeBench(UnitTestedSuite):
    """The BigCodeBench-Hard suite, without the tasks that cannot run in the sandbox."""

    name: str = NAME
    version: str = "4-A"
    dates: str = "2024-06"
    image: str = f"{IMAGE}-bigcodebench"
    source = NAME

    @property
    def left_out(self) -> Mapping[str, str]:
        """Id of each task that cannot run in the sandbox -> the reason."""
        return skipped_tasks()

    def questions(self, split: Split) -> Sequence[Question]:
        """Return the questions whose tests can run in the sandbox."""
        every = (self.question(row, NAME) for row in self.rows())
        return [question for question in every if question.id not in skipped_tasks()]

    def question(self, row: Mapping[str, Any], where: str) -> Question:
        """Return the question of a row in the hub's or authors' schema; UserError if malformed."""
        fields = {
            "task_id": row.get("task_id") or None,
            "prompt": row.get("complete_prompt") or row.get("prompt") or None,
            "code_prompt": row.get("code_prompt") or row.get("prompt_wo_doc") or None,
            "test": row.get("test") or None,
            "entry_point": row.get("entry_point") or None,
        }
        refuse_untold(fields, [*fields], f"{where} is not a raw BigCodeBench row")
        name, prompt, code_prompt, test, entry = map(str, fields.values())
        total = _count_tests(test)
        if not total or f"def {entry}(" not in prompt:
            raise UserError(
                f"{where}: {name} cannot be used: it has no tests, or no function {entry}. "
                "Correct or delete the row."
            )
        return Question(
            id=name,
            text=f"{INSTRUCTION}\n```\n{prompt.strip()}\n```\n",
            kind="program",
            target=json.dumps({"test": test, "total": total}),
            metadata={"prompt": prompt, "entry_point": entry, "code_prompt": code_prompt.rstrip()},
        )

    def refusal(self, box: str, packages: Sequence[str]) -> str:
        """Return an error text if a sandbox (box) lacks needed packages; empty if it has all."""
        missing = sorted(NEEDED - {package.partition("==")[0].lower() for package in packages})
        if not missing:
            return ""
        return (
            f"The box {box} lacks {', '.join(missing)}. Use --box docker with the image that "
            "`podium sandbox build --image bigcodebench` makes."
        )

    def grade(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade by the published tests; SandboxError if they cannot run or `box` lacks packages."""
        box, tests = required_box(box, NAME), json.loads(unsealed(question))
        if question.id in skipped_tasks():
            raise SandboxError(f"{question.id} cannot run here: {skipped_tasks()[question.id]}.")
        if refusal := self.refusal(box.name, _packages(box, self.image)):
            raise SandboxError(refusal)
        program = self.program(question, reply)
        if program is None:
            return no_program(tests["total"])
        return grade_by_tests(question, program, box)


BIGCODEBENCH = BigCodeBench()


@task
@user_errors
def bigcodebench(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    box: str | None = None,
    data: str | None = None,
) -> Task:
    """BigCodeBench-Hard: programs run in the sandbox that --sandbox names, or in -T box=docker."""
    from podium.suites.inspect_box import boxed_task  # imports all sandboxes; only for Inspect

    return boxed_task(
        BigCodeBench(data), box, split=split, limit=limit, epochs=epochs, limits=LIMITS
    )


@cache
def skipped_tasks() -> Mapping[str, str]:
    """Return the id of each task that cannot run in the sandbox, with the reason."""
    return tomllib.loads(SKIPPED.read_text(encoding="utf-8"))


@lru_cache(maxsize=8)
def _packages(box: Box, image: str) -> Sequence[str]:
    """Return the packages that programs in a box (sandbox) can import, cached."""
    return box.facts(image).packages


def grade_by_tests(question: Question, program: str, box: Box) -> Grade:
    """Run a program with a question's tests, and grade it by the test report."""
    tests, code_prompt = json.loads(question.target or ""), question.metadata["code_prompt"]
    token = secrets.token_hex(16)
    data = json.dumps({"token": token, "test": tests["test"]}).encode()
    source = f"{code_prompt}\n    pass\n{program}"  # the published "calibrated" mode
    outcome = run_once(box, Program(source, "unittest", image=BIGCODEBENCH.image), data, LIMITS)

    def read(report: Any) -> Any:
        valid = report["token"] == token and isinstance(report["failed"], dict)
        return report if valid and isinstance(report["ran"], int) else None

    report: dict[str, Any] = read_report(outcome, read) or {"ran": 0, "failed": {}}
    ran, failed, total = int(report["ran"]), dict[str, str](report["failed"]), int(tests["total"])
    passed = ran == total and not failed
    reason = f"all {total} tests passed"
    if outcome.status != "exited":
        reason = end_reason(outcome)
    elif failed:
        name, line = next(iter(failed.items()))
        reason = f"{len(failed)} of {total} tests failed, {name}: {line}"
    elif ran != total:
        reason = f"{ran} of {total} tests ran: {end_reason(outcome, 'it ended early')}"
    facts = {
        "tests_passed": total if passed else min(max(0, ran - len(failed)), total),
        "tests_total": total,
        "seconds": outcome.wall_s,
        "cpu_s": outcome.cpu_s,
        "reason": reason,
    }
    return Grade(float(passed), program, reason, facts)


def _count_tests(text: str) -> int:
    """Return the number of test methods in `class TestCases` of a text; 0 without such a class."""
    body = parse_python(text).body if compiles(text) else []
    cases = [node for node in body if isinstance(node, ast.ClassDef) and node.name == "TestCases"]
    methods = [node for case in cases for node in case.body if isinstance(node, ast.FunctionDef)]
    return len({method.name for method in methods if method.name.startswith("test")})
