"""Trials: the tests that a question shows are run in a box, and nothing else of the question is."""

import json
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.harness.records import Question
from podium.harness.suite import PubliclyTested
from podium.sandbox import IMAGE, Box, Limits, Program, ProgramOutcome, SandboxError, SandboxFacts
from podium.suites import SUITES
from podium.suites.code_grading import read_tests, shown_tests, starter_method
from podium.suites.practice.programs import SUITE
from tests.suites.gold import gold_reply
from tests.suites.livecodebench_rows import DOUBLE, all_rows, exam, needs_data, only, row

QUESTIONS = SUITE.load("eval")
TWO_SIDED = [
    one for one in QUESTIONS if len({case["output"] for case in one.metadata["public_tests"]}) == 2
]
"""Questions whose two examples have different outputs, so that no constant passes both."""
STDIN = next(one for one in TWO_SIDED if not one.metadata["starter_code"])
METHOD = next(one for one in TWO_SIDED if one.metadata["starter_code"])
BOTH = pytest.mark.parametrize("question", [STDIN, METHOD], ids=["stdin", "method"])


class Watched:
    """A real box behind a wall: what is handed in is written down."""

    name = "watched"

    def __init__(self, box: Box) -> None:
        self.box = box
        self.programs: list[Program] = []
        self.inputs: list[bytes] = []

    def run(
        self,
        program: Program,
        inputs: Iterable[bytes],
        limits: Limits = Limits(),  # noqa: B008 - the box's own signature
        *,
        alone: bool = False,
    ) -> Generator[ProgramOutcome]:
        self.programs.append(program)
        given = list(inputs)
        self.inputs += given
        yield from self.box.run(program, given, limits, alone=alone)

    def facts(self, image: str = IMAGE) -> SandboxFacts:
        return self.box.facts(image)

    def close(self) -> None:
        pass


class Down(Watched):
    """A box whose engine does not answer."""

    def run(self, *_: Any, **__: Any) -> Generator[ProgramOutcome]:
        raise SandboxError("the engine is down")
        yield


def constant(question: Question, at: int) -> str:
    """Return a reply that is right on one shown test only."""
    tests = read_tests(question.target or "")
    wanted = tests.cases[at].output
    if tests.method:
        value = {"true": "True", "false": "False"}.get(wanted, wanted)
        body = f"class Solution:\n    def {tests.method}(self, *_):\n        return {value}"
    else:
        body = f"print({wanted!r}, end='')"
    return f"```python\n{body}\n```"


def learnt_by_heart(question: Question) -> str:
    """Return a reply that has the shown tests in it, and knows no others."""
    shown = shown_tests(question)
    assert shown
    return gold_reply(replace(question, target=shown.as_json()))


def test_the_suites_that_show_tests_say_so() -> None:
    named = {name for name, suite in SUITES.items() if isinstance(suite, PubliclyTested)}
    assert named == {"practice-code", "livecodebench"}


def test_the_shown_tests_are_the_first_of_all_tests_and_called_in_the_same_way() -> None:
    for question in QUESTIONS:
        every, shown = read_tests(question.target or ""), shown_tests(question.sealed())
        assert shown
        assert shown.cases == every.cases[:2]
        assert shown.method == every.method


@BOTH
def test_every_shown_test_is_in_the_text_of_the_question(question: Question) -> None:
    shown = shown_tests(question)
    assert shown
    said = " ".join(question.text.split())
    for case in shown.cases:
        assert " ".join(case.output.split()) in said
        assert all(" ".join(line.split()) in said for line in case.input.split("\n"))


def test_a_method_is_found_in_starter_code_that_is_no_whole_python() -> None:
    helper = "class Solution:\n    def deep(self, x: List[int]) -> int:\n        "
    assert starter_method(f"# class Node:\n#     def f(self): ...\n{helper}") == "deep"
    assert starter_method("") is None
    assert starter_method("def f(") is None


@BOTH
def test_a_right_program_passes_all_shown_tests_in_every_box(
    question: Question, any_box: Box
) -> None:
    grade = SUITE.try_public(question.sealed(), gold_reply(question), any_box)
    assert (grade.value, grade.metadata["tests_passed"]) == (1.0, 2)


@BOTH
def test_the_value_is_the_share_of_shown_tests_that_pass(
    question: Question, subprocess_box: Box
) -> None:
    shown = shown_tests(question)
    assert shown
    halves = [SUITE.try_public(question, constant(question, at), subprocess_box) for at in (0, 1)]
    assert [grade.value for grade in halves] == [0.5, 0.5]
    assert halves[0].explanation.startswith("test 2 of 2: wrong answer")
    assert shown.cases[1].output.strip() in halves[0].explanation


def test_no_program_and_no_shown_test_are_worth_nothing(subprocess_box: Box) -> None:
    assert SUITE.try_public(STDIN.sealed(), "I cannot.", subprocess_box).value == 0
    silent = replace(STDIN.sealed(), metadata={})
    assert SUITE.try_public(silent, gold_reply(STDIN), subprocess_box).value == 0


@BOTH
def test_a_box_is_handed_the_shown_inputs_and_nothing_of_the_target(
    question: Question, subprocess_box: Box
) -> None:
    watched = Watched(subprocess_box)
    tests = read_tests(question.target or "")
    SUITE.try_public(question, constant(question, 0), watched)
    assert len(watched.inputs) == 2
    told = [" ".join(given.decode().split()) for given in watched.inputs]
    for case in tests.cases[2:]:
        assert " ".join(case.input.split()) not in told
    for case in tests.cases[:2]:
        assert case.output.encode() not in watched.inputs


@BOTH
def test_a_program_that_knows_the_shown_tests_by_heart_gains_nothing_in_the_exam(
    question: Question, subprocess_box: Box
) -> None:
    reply = learnt_by_heart(question)
    assert SUITE.try_public(question.sealed(), reply, subprocess_box).value == 1
    assert SUITE.grade(question, reply, subprocess_box).value == 0


SPY = """```python
import os, sys
seen = [sys.stdin.read(), *sys.argv, *map(str, os.environ.items())]
for place, _, names in list(os.walk("."))[:50]:
    for name in names[:50]:
        try:
            seen.append(open(os.path.join(place, name), errors="replace").read(100000))
        except OSError:
            pass
sys.stderr.write("".join(seen).encode().hex())
print("spied")
```"""


def test_a_program_that_looks_around_finds_the_input_and_no_expectation(
    subprocess_box: Box,
) -> None:
    marked = "expected-9f27c1"
    shown = [{"input": "4\n", "output": marked}, {"input": "5\n", "output": marked}]
    question = replace(STDIN, metadata={"public_tests": shown, "starter_code": ""})
    source = SPY.split("```python\n")[1].split("```")[0]
    (seen,) = subprocess_box.run(Program(source), [b"4\n"])
    assert b"4\n" in bytes.fromhex(seen.stderr.decode())
    assert marked.encode() not in bytes.fromhex(seen.stderr.decode())
    assert SUITE.try_public(question, SPY, subprocess_box).value == 0


def test_a_box_that_fails_is_no_programs_fault(subprocess_box: Box) -> None:
    with pytest.raises(SandboxError, match="engine is down"):
        SUITE.try_public(STDIN, gold_reply(STDIN), Down(subprocess_box))


@needs_data
def test_the_starter_code_of_all_1055_problems_names_the_method_that_is_tested() -> None:
    for problem in all_rows().values():
        named = json.loads(problem["metadata"]).get("func_name")
        assert starter_method(problem["starter_code"]) == named, problem["question_id"]


def test_livecodebench_tries_what_the_statement_shows_and_never_reads_the_hidden_tests(
    tmp_path: Path, subprocess_box: Box
) -> None:
    suite = exam(tmp_path, row())
    question = only(suite)
    watched = Watched(subprocess_box)
    assert suite.try_public(question.sealed(), DOUBLE, watched).value == 1
    assert watched.inputs == [b"4\n"]
