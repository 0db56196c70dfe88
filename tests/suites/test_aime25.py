"""The AIME25 suite: its pinned questions, its prompt, its grader and its task."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from inspect_ai import eval
from inspect_ai.model import get_model

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.suites.aime25 import SUFFIX, Aime25, aime25, aime25_questions
from podium.suites.data import data_folder, fetch_rows, hub_rows, local_rows, sources
from tests.providers.scripted import Heard, script

HERE = (data_folder() / sources()["aime25"].file).is_file()
needs_data = pytest.mark.skipif(
    not HERE, reason="aime25_problems/aime25.jsonl is absent; name its folder in PODIUM_DATA"
)


def question(target: str = "70") -> Question:
    return Question(id="aime25-I-1", text="?", kind="integer", target=target)


@needs_data
def test_there_are_thirty_questions_with_stable_ids_and_known_answers() -> None:
    loaded = Aime25().load()
    assert [item.id for item in loaded] == [
        f"aime25-{paper}-{number}" for paper in ("I", "II") for number in range(1, 16)
    ]
    targets = [int(item.target or "") for item in loaded]
    assert targets[0] == 70
    assert targets[16] == 49
    assert all(0 <= target <= 999 for target in targets)
    assert len(set(targets)) == 30


@needs_data
def test_a_question_ends_with_the_instruction_and_carries_no_target() -> None:
    asked = Aime25().load()[2]
    assert asked.text.endswith(SUFFIX)
    assert asked.sealed().target is None
    assert asked.topic == "AIME I"


@needs_data
def test_the_answers_are_those_of_both_papers_as_published() -> None:
    folder = data_folder() / "aime25_problems"
    published = [
        line.split(",")[1]
        for paper in ("I", "II")
        for line in (folder / f"matharena_aime_2025_{paper}_answers.csv").read_text().split()[1:]
    ]
    assert [item.target for item in Aime25().load()] == published


@needs_data
def test_every_target_grades_right_and_an_empty_reply_grades_wrong() -> None:
    suite = Aime25()
    for item in suite.load():
        assert suite.grade(item, rf"\boxed{{{item.target}}}").value == 1.0
        empty = suite.grade(item, "")
        assert (empty.value, empty.extracted) == (0.0, None)


def test_a_leading_zero_makes_no_difference_and_a_longer_number_does() -> None:
    suite = Aime25()
    assert suite.grade(question("16"), "ANSWER: 016").value == 1.0
    assert suite.grade(question("49"), r"\boxed{149}").value == 0.0
    assert suite.grade(question("11"), r"\boxed{711}").value == 0.0
    assert suite.grade(question("70"), "ANSWER: 7,0").extracted is None


def test_a_sum_in_the_last_box_gets_a_second_look_and_the_grade_says_so() -> None:
    grade = Aime25().grade(question("64"), r"\boxed{2^6}")
    assert (grade.value, grade.extracted, grade.metadata) == (1.0, "64", {"look": "math-verify"})
    assert Aime25().grade(question(), r"\boxed{\frac{140}{2}}").value == 1.0
    assert Aime25().grade(question(), r"\boxed{70}").metadata == {"look": "exact", "read_by": "box"}
    assert Aime25().grade(question(), r"\boxed{\frac{141}{2}}").extracted is None


def test_an_explanation_is_a_statement_with_both_numbers() -> None:
    assert Aime25().grade(question(), r"\boxed{71}").explanation == "71 differs from the target 70."
    assert "target is 70" in Aime25().grade(question(), "").explanation


def test_a_sealed_question_cannot_be_graded() -> None:
    with pytest.raises(ValueError, match="sealed"):
        Aime25().grade(replace(question(), target=None), "70")


def test_a_split_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="has no 'train' split"):
        Aime25().load("train")


def test_a_file_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "aime25_problems" / "aime25.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps({"id": "aime25-I-1", "problem": "1+1?", "answer": 2}) + "\n")
    with pytest.raises(UserError, match="not the pinned file"):
        fetch_rows("aime25", tmp_path)


def test_a_missing_file_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"aime25_problems/aime25\.jsonl\. .* put it there"):
        local_rows("aime25", tmp_path)


def test_without_file_and_network_the_message_names_both_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"math-ai/aime25 cannot be loaded .* put the file at"):
        fetch_rows("aime25", tmp_path)


def test_rows_in_the_hub_s_schema_become_the_same_thirty_questions(tmp_path: Path) -> None:
    lines = [{"problem": f"{n}?", "answer": f"{n:03}", "id": str(n)} for n in range(30)]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    made = aime25_questions(list(hub_rows(str(tmp_path), None, None, "test")))
    assert (made[0].id, made[29].id) == ("aime25-I-1", "aime25-II-15")
    assert (made[16].target, made[16].text) == ("16", f"16?\n\n{SUFFIX}")


def test_rows_out_of_order_are_refused() -> None:
    rows = [{"problem": "?", "answer": 1, "id": "aime25-II-1"} for _ in range(30)]
    with pytest.raises(UserError, match="aime25-II-1 is in the place of aime25-I-1"):
        aime25_questions(rows)


@needs_data
def test_the_task_runs_in_inspect_and_scores_by_equality(tmp_path: Path) -> None:
    def reply(heard: Heard) -> str:
        return r"\boxed{070}" if "17_b" in heard.last else "I do not know."

    (log,) = eval(
        aime25(limit=2),
        model=get_model(script("guesser", reply), memoize=False),
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.status == "success"
    scores = [sample.scores["podium"] for sample in log.samples or [] if sample.scores]
    assert [(score.value, score.answer) for score in scores] == [(1.0, "70"), (0.0, None)]
    assert log.eval.task_version == "5-A"
