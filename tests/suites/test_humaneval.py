"""HumanEval: its questions, what counts as a program, and its check in every box."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.sandbox import Box, SandboxError
from podium.suites.code_checks import complete_program
from podium.suites.data import local_path
from podium.suites.humaneval import INSTRUCTION, HumanEval
from tests.suites.checked_programs import dishonest, fenced, grades, needs_data, passed, wrong

SUITE = HumanEval()
DATA = needs_data("humaneval")

PROMPT = 'from typing import List\n\n\ndef total(numbers: List[int]) -> int:\n    """Add up."""\n'
TEST = "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n"
ROW = {"task_id": "Mine/0", "prompt": PROMPT, "entry_point": "total", "test": TEST}


def mine(tmp_path: Path, **changes: object) -> Question:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**ROW, **changes}))
    return SUITE.read_problems(file)[0]


def golds() -> list[tuple[Question, str]]:
    with gzip.open(local_path("humaneval"), "rt") as file:
        rows: list[dict[str, Any]] = [json.loads(line) for line in file]
    solutions = {row["task_id"]: row["prompt"] + row["canonical_solution"] for row in rows}
    return [(question, fenced(solutions[question.id])) for question in SUITE.load()]


@DATA
def test_there_are_164_questions_that_end_with_the_published_prompt() -> None:
    questions = SUITE.load()
    assert [item.id for item in questions] == [f"HumanEval/{n}" for n in range(164)]
    assert questions[0].text == INSTRUCTION + questions[0].metadata["prompt"]
    assert "check(" not in str(questions[0].sealed())


@DATA
@pytest.mark.docker
def test_every_published_solution_passes(docker_box: Box) -> None:
    graded = grades(SUITE, golds(), docker_box)
    assert len(graded) == 164
    assert wrong(graded) == {}


@pytest.mark.slow
@DATA
def test_published_solutions_pass_in_every_box(any_box: Box) -> None:
    sample = {0, 33, 38, 50}  # helpers of the prompt are needed by two of them
    chosen = [pair for number, pair in enumerate(golds()) if number in sample]
    assert wrong(grades(SUITE, chosen, any_box)) == {}


@pytest.mark.slow
@DATA
def test_a_program_that_solves_nothing_fails_whatever_it_tries(isolating: Box) -> None:
    question = SUITE.load()[0]
    replies = dishonest("has_close_elements", question.metadata["prompt"])
    assert passed(SUITE, question, replies, isolating) == []


def test_what_goes_wrong_is_said_and_counted(tmp_path: Path, any_box: Box) -> None:
    grade = SUITE.grade(mine(tmp_path), fenced("def total(numbers): return 3"), any_box)
    assert grade.value == 0.0
    assert grade.explanation == "line 3 of the check: AssertionError: "
    assert grade.metadata["tests_passed"] == 1
    assert grade.metadata["tests_total"] == 2


def test_an_exception_of_the_program_reaches_the_check(tmp_path: Path, any_box: Box) -> None:
    test = (
        "def check(candidate):\n    try:\n        candidate([])\n        assert False\n"
        "    except ZeroDivisionError as error:\n        assert str(error) == 'none'\n"
        "    assert candidate([4]) == 4\n"
    )
    question = mine(tmp_path, test=test)
    program = "class Mine(ZeroDivisionError): pass\ndef total(numbers):\n"
    right = f"{program}    if not numbers: raise Mine('none')\n    return numbers[0]"
    assert SUITE.grade(question, fenced(right), any_box).value == 1.0
    at_once = "raise ZeroDivisionError('none')\ndef total(numbers): return 4"
    assert SUITE.grade(question, fenced(at_once), any_box).value == 0.0


def test_calls_that_depend_on_results_are_made_one_after_another(
    tmp_path: Path, any_box: Box
) -> None:
    test = (
        "import random\ndef check(candidate):\n    value = [random.randint(1, 9)]\n"
        "    first = value[0]\n    for _ in range(5):\n        value = [candidate(value), 1]\n"
        "    assert value == [first + 4, 1]\n"
    )
    grade = SUITE.grade(mine(tmp_path, test=test), fenced("def total(x): return sum(x)"), any_box)
    assert grade.value == 1.0
    assert grade.metadata["calls"] == 5


def test_types_survive_the_way_there_and_back(tmp_path: Path, any_box: Box) -> None:
    value = "(1, [2.5, None], {'a': {3, 4}}, True, 'é', b'x', 1j, frozenset({5}))"
    test = f"def check(candidate):\n    value = {value}\n    got = candidate(value)\n"
    test += "    assert got == value and repr(got) == repr(value)\n"
    same = fenced("def total(x): return x")
    assert SUITE.grade(mine(tmp_path, test=test), same, any_box).value == 1.0
    as_list = fenced("def total(x): return list(x)")
    assert SUITE.grade(mine(tmp_path, test=test), as_list, any_box).value == 0.0


@pytest.mark.parametrize(
    "reply",
    [
        "    return sum(numbers)\n",
        "    return sum(numbers)\n\nprint(total([1]))\ndef broken(",
        "```python\ndef total(numbers: List[int]) -> int:\n    return sum(numbers)\n```",
        f"Here:\n```python\n{PROMPT}    return sum(numbers)\n```\nDone.",
        f"{PROMPT}    return sum(numbers)\n",
    ],
)
def test_a_completion_and_a_whole_function_are_the_same_program(reply: str) -> None:
    program = complete_program(PROMPT, "total", reply)
    assert program is not None
    space: dict[str, Any] = {}
    exec(program, space)
    assert space["total"]([1, 2]) == 3


@pytest.mark.parametrize("reply", ["", "  \n", "I do not know."])
def test_a_reply_without_a_program_is_counted_as_unparsed(reply: str) -> None:
    assert complete_program(PROMPT, "total", reply) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"test": None}, "line 1 is not a raw HumanEval row: test is missing or not text"),
        ({"test": "def ("}, "Mine/0 cannot be used: its prompt or test is not Python code"),
    ],
)
def test_rows_that_are_none_of_humaneval_are_refused(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        mine(tmp_path, **changes)


HUGE = """\
def check(candidate):
    assert tuple(candidate([1])) == (1,)
"""


def test_a_result_that_ends_the_check_is_the_programs_failure(
    tmp_path: Path, isolating: Box
) -> None:
    program = fenced("def total(numbers): return range(3 * 10**8)")
    grade = SUITE.grade(mine(tmp_path, test=HUGE), program, isolating)
    assert grade.value == 0.0
    assert "memory" in grade.explanation.lower()


def test_a_check_that_ends_before_the_program_was_called_stays_our_failure(
    tmp_path: Path, subprocess_box: Box
) -> None:
    question = mine(tmp_path, test="import os\nos._exit(3)\ndef check(candidate): pass\n")
    with pytest.raises(SandboxError, match="A check ended without a verdict"):
        SUITE.grade(question, fenced("def total(numbers): return 0"), subprocess_box)


def test_a_slow_program_that_is_wrong_at_once_is_called_once(tmp_path: Path, any_box: Box) -> None:
    slow = fenced("import time\ndef total(numbers):\n    time.sleep(1.1)\n    return 7")
    grade = SUITE.grade(mine(tmp_path), slow, any_box)
    assert (grade.value, grade.metadata["calls"]) == (0.0, 1)


def test_a_call_over_its_limit_is_the_last_one(tmp_path: Path, any_box: Box) -> None:
    big = fenced("def total(numbers): return 'x' * (9 << 20)")
    grade = SUITE.grade(mine(tmp_path), big, any_box)
    assert (grade.value, grade.metadata["calls"]) == (0.0, 1)


@pytest.mark.slow
def test_a_slow_program_that_is_right_passes(tmp_path: Path, subprocess_box: Box) -> None:
    slow = "import time\ndef total(numbers):\n    time.sleep(1.1)\n    return sum(numbers)"
    grade = SUITE.grade(mine(tmp_path), fenced(slow), subprocess_box)
    assert (grade.value, grade.metadata["calls"]) == (1.0, 2)
