"""The MATH-500 suite: its questions and splits, its grader, and recorded replies."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from inspect_ai import eval
from inspect_ai.model import get_model

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.suite import Split
from podium.suites.data import data_folder, local_file, local_rows, sources
from podium.suites.math500 import (
    MATH500,
    MATH500_ALL,
    PROMPT,
    Math500,
    math500,
    math500_questions,
    split_members,
)
from tests.benchmarks.agree_with_math_verify import disagreements, recorded
from tests.providers.scripted import Heard, script

HERE = (data_folder() / sources()["math500"].file).is_file()
needs_data = pytest.mark.skipif(
    not HERE, reason="math500_problems/math500.jsonl is absent; name its folder in PODIUM_DATA"
)
REPLIES = local_file(sources()["recorded-math500"]).is_file()
needs_replies = pytest.mark.skipif(
    not (HERE and REPLIES), reason="saturn_lighteval/ is absent; name its folder in PODIUM_DATA"
)
SPLITS: tuple[Split, ...] = ("train", "validation", "eval")


def question(target: str) -> Question:
    return Question(id="math500-algebra-1", text="?", kind="text", target=target)


def row(number: int = 1) -> dict[str, object]:
    return {
        "problem": f"What is {number}?",
        "answer": str(number),
        "subject": "Algebra",
        "level": "Level 1",
        "unique_id": f"test/algebra/{number}.json",
    }


@needs_data
def test_the_three_splits_are_disjoint_and_make_up_the_five_hundred() -> None:
    parts = [{item.id for item in MATH500.load(split)} for split in SPLITS]
    assert [len(part) for part in parts] == [300, 100, 100]
    assert set[str]().union(*parts) == {item.id for item in MATH500_ALL.load()}
    assert len(MATH500_ALL.load()) == 500


@needs_data
def test_the_splits_are_what_they_were_when_they_were_declared() -> None:
    assert [item.id for item in MATH500.load("eval")[:3]] == FIRST_OF_EVAL


FIRST_OF_EVAL = [
    "math500-geometry-434",
    "math500-intermediate_algebra-1000",
    "math500-algebra-2193",
]


def test_a_split_does_not_depend_on_the_order_of_the_rows() -> None:
    ids = [f"math500-algebra-{number}" for number in range(500)]
    assert split_members("eval", ids) == split_members("eval", ids[::-1])
    with pytest.raises(UserError, match="has no 'test' split"):
        split_members("test", ids)  # pyright: ignore[reportArgumentType]  # what a typo would be


@needs_data
def test_a_question_is_put_in_lighteval_s_words_and_carries_its_subject_and_level() -> None:
    first = MATH500_ALL.load()[0]
    assert first.id == "math500-precalculus-807"
    assert first.text.startswith(PROMPT + "Convert the point $(0,3)$")
    assert (first.topic, first.metadata["level"]) == ("Precalculus", "Level 2")
    assert first.target == r"\left( 3, \frac{\pi}{2} \right)"


@needs_replies
def test_the_prompt_is_the_one_that_lighteval_sent() -> None:
    sent = {row["prompt"].strip() for row in local_rows("recorded-math500")}
    assert sent == {item.text for item in MATH500_ALL.load()}


@needs_data
def test_the_gold_answer_is_right_for_every_question_in_a_box_and_on_a_line_and_in_prose() -> None:
    solutions = {str(row["unique_id"]): str(row["solution"]) for row in local_rows("math500")}
    for item, solution in zip(MATH500_ALL.load(), solutions.values(), strict=True):
        said = (
            rf"\boxed{{{item.target}}}",
            f"ANSWER: {item.target}",
            f"The answer is ${item.target}$.",
            solution.splitlines()[-1] if "boxed" in solution.splitlines()[-1] else solution,
        )
        assert [MATH500.grade(item, reply).value for reply in said] == [1.0] * 4, item.id


@needs_data
def test_no_trick_is_right_for_any_question() -> None:
    tricks = ("", "exit 0", r"\boxed{}", r"\boxed{x=x}", r"\boxed{(-\infty,\infty)}", "ANSWER: yes")
    for item in MATH500_ALL.load():
        for reply in (*tricks, item.text, rf"\boxed{{{item.text}}}"):
            assert MATH500.grade(item, reply).value == 0.0, (item.id, reply)


RECORDED_RIGHT_BUT_NOT_HERE = {
    # After </think> the reply explains its method and states no answer; 144 ends a product in it.
    "math500-counting_and_probability-525": None,
    # The last box was cut off, and the reply had gone back and forth between one box and three.
    "math500-intermediate_algebra-428": None,
}


@needs_replies
def test_our_grades_are_the_recorded_verdicts_but_for_two_replies() -> None:
    found = disagreements(*recorded("math500"))
    assert {name: grade.extracted for (_, name), grade in found.items()} == (
        RECORDED_RIGHT_BUT_NOT_HERE
    )


def test_a_grade_says_which_look_decided_it() -> None:
    exact = MATH500.grade(question(r"\frac{1}{2}"), r"\boxed{0.5}")
    assert (exact.value, exact.metadata["look"]) == (1.0, "exact")
    assert exact.explanation == r"0.5 equals the target \frac{1}{2}."
    second = MATH500.grade(question(r"\cot x"), r"\boxed{\frac{\cos x}{\sin x}}")
    assert (second.value, second.metadata["look"]) == (1.0, "math-verify")


def test_a_reply_without_an_answer_is_wrong_and_unparsed() -> None:
    grade = MATH500.grade(question("5"), "I do not know.")
    facts = {"read_by": "second-thoughts"}
    assert (grade.value, grade.extracted, grade.metadata) == (0.0, None, facts)
    assert grade.explanation == "No answer was found; the target is 5."


def test_a_sealed_question_cannot_be_graded() -> None:
    with pytest.raises(ValueError, match="sealed"):
        MATH500.grade(replace(question("5"), target=None), "5")


@needs_data
def test_a_split_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="math500-all has no 'train' split; it has: eval"):
        MATH500_ALL.load("train")


def test_the_hub_s_levels_are_those_of_the_file() -> None:
    (of_hub,) = math500_questions([{**row(), "level": 2}], "hub")
    assert of_hub.metadata["level"] == "Level 2"


def test_an_id_that_comes_twice_is_refused() -> None:
    with pytest.raises(UserError, match="has the id 'math500-algebra-1' twice"):
        math500_questions([row(), row()], "rows.jsonl")


@pytest.mark.parametrize("column", ["problem", "answer", "subject", "level", "unique_id"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    rows = [row(number) for number in range(500)]
    del rows[3][column]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    with pytest.raises(UserError, match=f"row 4 has no `{column}`"):
        Math500().read_problems(path)


def test_rows_of_another_number_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row()) + "\n")
    with pytest.raises(UserError, match="has 1 rows, but MATH-500 has 500"):
        Math500().read_problems(path)


@needs_data
def test_the_task_runs_in_inspect(tmp_path: Path) -> None:
    def reply(heard: Heard) -> str:
        return r"Therefore, the final answer is: $\boxed{0}$. I hope it is correct"

    (log,) = eval(
        math500(limit=2),
        model=get_model(script("zero", reply), memoize=False),
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.status == "success"
    assert log.eval.task_version == "5-A"
    assert [sample.scores["podium"].answer for sample in log.samples or [] if sample.scores] == [
        "0",
        "0",
    ]
