"""MBPP: its splits, and its assertions in every box."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.sandbox import Box
from podium.suites.code_checks import CheckCode
from podium.suites.data import local_path
from podium.suites.mbpp import Mbpp
from tests.suites.checked_programs import dishonest, fenced, grades, needs_data, passed, wrong

SUITE = Mbpp()
DATA = needs_data("mbpp")


def golds() -> dict[str, tuple[Question, str]]:
    """Return all 974 tasks with their published solutions, the ten examples included."""
    path = local_path("mbpp")
    with gzip.open(path, "rt") as file:
        rows: list[dict[str, Any]] = [json.loads(line) for line in file]
    questions = SUITE.read_problems(path)
    replies = [fenced(row["code"]) for row in rows]
    return {
        question.id: (question, reply) for question, reply in zip(questions, replies, strict=True)
    }


@DATA
def test_the_splits_are_the_published_ones() -> None:
    ids = {split: [item.id for item in SUITE.load(split)] for split in SUITE.splits}
    assert ids["eval"] == [f"mbpp-{number}" for number in range(11, 511)]
    assert ids["validation"] == [f"mbpp-{number}" for number in range(511, 601)]
    assert ids["train"] == [f"mbpp-{number}" for number in range(601, 975)]


@DATA
def test_a_question_is_the_papers_prompt_with_three_assertions() -> None:
    text = SUITE.load()[0].text
    assert text.startswith("You are an expert Python programmer, and here is your task: Write a ")
    assert text.count("assert remove_Occ(") == 3


@DATA
@pytest.mark.docker
def test_every_published_solution_passes(docker_box: Box) -> None:
    graded = grades(SUITE, golds().values(), docker_box)
    assert len(graded) == 974
    assert wrong(graded) == {}


@pytest.mark.slow
@DATA
def test_published_solutions_pass_in_every_box(any_box: Box) -> None:
    odd = ("mbpp-126", "mbpp-367", "mbpp-533", "mbpp-596", "mbpp-601", "mbpp-927")
    every = golds()
    assert wrong(grades(SUITE, [every[name] for name in ("mbpp-11", *odd)], any_box)) == {}


@pytest.mark.slow
@DATA
@pytest.mark.parametrize(
    ("task", "name", "classes"),
    [
        ("mbpp-11", "remove_Occ", ""),
        ("mbpp-601", "max_chain_length", "class Pair:\n    def __init__(self, *_): pass\n"),
    ],
)
def test_a_program_that_solves_nothing_fails_whatever_it_tries(
    task: str, name: str, classes: str, isolating: Box
) -> None:
    question, _ = golds()[task]
    replies = {
        what: reply.replace("```python\n", f"```python\n{classes}")
        for what, reply in dishonest(name, question.text).items()
    }
    assert passed(SUITE, question, replies, isolating) == []


def test_a_reply_is_its_fenced_code_or_all_of_it_where_that_is_python() -> None:
    target = CheckCode("assert x == 1", ("x",)).as_json()
    question = Question(id="q", text="?", kind="program", target=target)
    assert SUITE.program(question, "```python\nx = 1\n```") == "x = 1"
    assert SUITE.program(question, "[BEGIN]\nx = 1\n[DONE] and so on") == "x = 1"
    assert (
        SUITE.program(question, "```python\nx = 1\n```\n```python\nassert x == 1\n```") == "x = 1"
    )
    assert SUITE.program(question, "y = 1") == "y = 1"
    assert SUITE.program(question, "I do not know.") is None
    assert SUITE.program(question, "") is None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"task_id": "x"}, "line 1 is not a raw MBPP row: its task_id 'x' is not a number"),
        ({"task_id": 1}, "line 1 is not a raw MBPP row: text is missing or not text"),
        ({"task_id": 1, "text": "?"}, "test_list is missing or not a list of tests"),
        ({"task_id": 1, "text": "?", "test_list": ["assert ("]}, "its tests are not Python code"),
    ],
)
def test_rows_that_are_none_of_mbpp_are_refused(
    row: dict[str, object], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(UserError, match=said):
        SUITE.read_problems(file)


def test_rows_in_csv_are_the_same_questions(tmp_path: Path) -> None:
    plain = tmp_path / "rows.jsonl"
    plain.write_text(json.dumps({"task_id": 1, "text": "Add.", "test_list": ["assert f(1) == 2"]}))
    table = tmp_path / "rows.csv"
    table.write_text("task_id,text,test_list\n1,Add.,\"['assert f(1) == 2']\"\n")
    assert SUITE.read_problems(plain) == SUITE.read_problems(table)
