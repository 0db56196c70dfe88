"""BigCodeBench-Hard: its questions, its unit tests, and what a box must have for them."""

import json
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.sandbox import Box, SandboxError
from podium.suites.bigcodebench import INSTRUCTION, NEEDED, BigCodeBench, skipped_tasks
from tests.suites.checked_programs import fenced, grades, needs_data, wrong

SUITE = BigCodeBench()
DATA = needs_data("bigcodebench")

PROMPT = 'import numpy as np\n\ndef task_func(values):\n    """Add up."""\n'
TEST = (
    "import unittest\nclass TestCases(unittest.TestCase):\n"
    "    def test_two(self): self.assertEqual(task_func([1, 2]), 3)\n"
    "    def test_none(self): self.assertEqual(task_func([]), 0)\n"
)
ROW = {
    "task_id": "BigCodeBench/mine",
    "complete_prompt": PROMPT,
    "code_prompt": "import numpy as np\ndef task_func(values):\n",
    "entry_point": "task_func",
    "test": TEST,
}


def mine(tmp_path: Path, **changes: object) -> Question:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**ROW, **changes}))
    return SUITE.read_problems(file)[0]


@pytest.fixture
def stocked(docker_box: Box) -> Box:
    """The Docker box; skip where it has not the image with the libraries."""
    try:
        docker_box.facts(SUITE.image)
    except SandboxError as error:
        pytest.skip(f"no image {SUITE.image}: {error}")
    return docker_box


@DATA
def test_the_tasks_of_the_hard_set_are_asked_but_for_those_that_are_named() -> None:
    every = {row["task_id"] for row in BigCodeBench().rows()}
    assert len(every) == 148
    asked = [question.id for question in SUITE.load()]
    assert set(skipped_tasks()) < every
    assert asked == [
        row["task_id"] for row in BigCodeBench().rows() if row["task_id"] not in skipped_tasks()
    ]
    assert f"{len(skipped_tasks())} tasks cannot run" in SUITE.card.about
    assert SUITE.card.sizes == {"eval": len(asked)}


@DATA
def test_a_question_is_the_published_prompt_for_completion() -> None:
    question = SUITE.load()[0]
    assert question.text.startswith(f"{INSTRUCTION}\n```\nimport ")
    assert question.text.endswith("```\n")


@DATA
@pytest.mark.docker
def test_published_solutions_pass(stocked: Box) -> None:
    names = [f"BigCodeBench/{number}" for number in (13, 15, 34, 82, 120, 324, 760, 945)]
    rows = {row["task_id"]: row for row in BigCodeBench().rows()}
    pairs = [
        (question, fenced(rows[question.id]["prompt"] + rows[question.id]["canonical_solution"]))
        for question in SUITE.load()
        if question.id in names
    ]
    assert len(pairs) == len(names)
    assert wrong(grades(SUITE, pairs, stocked)) == {}


@pytest.mark.docker
def test_the_given_imports_need_not_be_repeated(tmp_path: Path, stocked: Box) -> None:
    grade = SUITE.grade(mine(tmp_path), fenced("def task_func(x): return np.sum(x)"), stocked)
    assert grade.value == 1.0
    assert grade.explanation == "all 2 tests passed"


@pytest.mark.docker
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("def task_func(x): return 3", "1 of 2 tests failed, test_none: AssertionError: 3 != 0"),
        ("import sys\nsys.exit(0)", "0 of 2 tests ran"),
        ("import os\nos._exit(0)", "0 of 2 tests ran"),
        ("import os\ndef task_func(x): os._exit(0)", "0 of 2 tests ran"),
        ("def task_func(x): raise SystemExit", "2 of 2 tests failed, test_none: SystemExit"),
        ("import unittest\nunittest.TestCase.run = print", "0 of 2 tests ran"),
        (
            'import os\nos.write(3, b\'{"token": "", "ran": 2, "failed": {}}\')\nos._exit(0)',
            "0 of 2 tests ran",
        ),
        ("def task_func(x) return", "0 of 2 tests ran: SyntaxError"),
    ],
)
def test_a_program_passes_only_when_all_tests_were_run_and_held(
    program: str, said: str, tmp_path: Path, stocked: Box
) -> None:
    grade = SUITE.grade(mine(tmp_path), fenced(program), stocked)
    assert grade.value == 0.0
    assert grade.explanation.startswith(said)


def test_a_box_without_the_libraries_is_refused_and_fails_nobody(
    tmp_path: Path, subprocess_box: Box
) -> None:
    with pytest.raises(SandboxError, match=r"The box subprocess lacks .*seaborn.*Use --box docker"):
        SUITE.grade(mine(tmp_path), fenced("def task_func(x): return 3"), subprocess_box)


def test_a_box_with_the_libraries_is_taken_and_another_refused_by_name() -> None:
    assert SUITE.refusal("docker", [f"{name}==1.0" for name in NEEDED]) == ""
    said = SUITE.refusal("bwrap", [f"{name}==1.0" for name in NEEDED - {"scipy"}])
    assert said.startswith("The box bwrap lacks scipy. ")


def test_a_task_that_cannot_run_here_is_refused_with_the_reason(
    tmp_path: Path, subprocess_box: Box
) -> None:
    question = mine(tmp_path, task_id="BigCodeBench/418")
    with pytest.raises(SandboxError, match="BigCodeBench/418 cannot run here: it imports tensorfl"):
        SUITE.grade(question, "", subprocess_box)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"test": ""}, "line 1 is not a raw BigCodeBench row: test is missing or not text"),
        ({"test": "x = 1"}, "it has no tests, or no function"),
        ({"entry_point": "other"}, "it has no tests, or no function"),
    ],
)
def test_rows_that_are_none_of_bigcodebench_are_refused(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        mine(tmp_path, **changes)


@DATA
def test_a_reply_to_a_task_that_is_not_asked_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"question_id": "BigCodeBench/101", "reply": ""}\n')
    words = ["grade", "--suite", "bigcodebench", "--replies", str(replies)]
    assert main([*words, "--out", str(tmp_path / "out.jsonl")]) == 2
    said = "bigcodebench does not ask 'BigCodeBench/101', because it downloads the Boston housing"
    assert said in capsys.readouterr().err
