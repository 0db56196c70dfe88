"""The tests that a question shows: found in a sealed question, run as grading runs the hidden ones.

Who is examined may run them, so that a retry or a search has something to go by. They come from the
question's visible metadata and starter code alone, never from its target: a program, or a reader of
the outcome, learns nothing here that the question does not say.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from harness.records import Grade, Question
from sandbox import Box
from suites.programs import Case, Judgement, ProgramTests, judge

PUBLIC_TESTS = "public_tests"
STARTER = "starter_code"
"""Keys of a question's visible metadata."""

SHOWN_CHARS = 600
"""A failed test's input and output are told up to here each."""


def shown_tests(question: Question) -> ProgramTests | None:
    """Return the tests that a question shows; None when it shows none."""
    shown: Sequence[Mapping[str, Any]] = question.metadata.get(PUBLIC_TESTS) or ()
    cases = tuple(Case(str(case["input"]), str(case["output"])) for case in shown)
    if not cases:
        return None
    return ProgramTests(cases, method_shown(str(question.metadata.get(STARTER) or "")))


def method_shown(starter: str) -> str | None:
    r"""Return the method that starter code begins: the last one, helpers come before it.

    Starter code ends where the body should begin, so it is no whole Python yet.

    >>> method_shown("class Solution:\n    def f(self, x: int) -> int:\n        ")
    'f'
    """
    try:
        found = ast.walk(ast.parse(f"{starter.rstrip()} pass\n"))
    except (SyntaxError, ValueError):
        return None
    solutions = [node for node in found if isinstance(node, ast.ClassDef)]
    inside = [one for node in solutions if node.name == "Solution" for one in node.body]
    names = [one.name for one in inside if isinstance(one, ast.FunctionDef)]
    return names[-1] if names else None


def tried(question: Question, program: str | None, box: Box | None) -> Grade:
    """Return how a program does on the tests that its question shows: the share that passes.

    0 without a program, and where no test is shown. SandboxError when the box fails.
    """
    if box is None:
        raise ValueError(f"{question.id} is tried by running programs: name a sandbox with --box.")
    tests = shown_tests(question)
    if tests is None:
        return Grade(0.0, program, "the question shows no tests")
    if program is None:
        return Grade(0.0, None, "no program found")
    judgement = judge(program, tests, box, stop_early=False)
    passed, total = judgement.verdicts.count("pass"), len(tests.cases)
    return Grade(
        value=passed / total,
        extracted=program,
        explanation=_told(judgement, tests),
        metadata={"tests_passed": passed, "tests_total": total},
    )


def _told(judgement: Judgement, tests: ProgramTests) -> str:
    """Say which of the shown tests fails first, and what it wants."""
    for number, (result, case) in enumerate(
        zip(judgement.results, tests.cases, strict=True), start=1
    ):
        if result.verdict != "pass":
            why = f"{result.verdict}{f' ({result.note})' if result.note else ''}"
            return (
                f"test {number} of {len(tests.cases)}: {why}\n"
                f"input:\n{_cut(case.input)}\nexpected output:\n{_cut(case.output)}"
            )
    return judgement.summary


def _cut(text: str) -> str:
    kept = text.strip()
    return kept if len(kept) <= SHOWN_CHARS else f"{kept[:SHOWN_CHARS]} ..."
