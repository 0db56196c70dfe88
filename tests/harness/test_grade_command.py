"""`podium grade`: verdicts on replies made anywhere, resumed, never mixed, never lost."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.harness.grade_file import FIELDS, Graded, GradeRequest, grade_file
from podium.harness.records import Grade, Question
from podium.suites.aime25 import Aime25
from podium.suites.data import data_folder
from podium.suites.practice.integer import SUITE as INTEGER
from podium.suites.practice.programs import SUITE as CODE
from tests.harness.graded_files import RIGHT, grade, values, verdicts_in, write_replies
from tests.harness.toy_run import Toy, toy_catalogue
from tests.suites.gold import gold_reply
from tests.suites.toy_suites import VariedToy

SATURN = data_folder() / "saturn_lighteval" / "aime25_4models.jsonl.gz"
BOX = ("--box", "subprocess", "--max-sandboxes", "2")


class Unlucky(Toy):
    """The toy exam whose grader has no disk left, or a bug."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error

    def grade(self, question, reply, box=None):  # noqa: ANN001, ANN201 - as in Toy
        if self.error and reply == "7":
            raise self.error
        return Grade(float(reply == question.target), reply)


def grade_toy(folder: Path, error: Exception | None = None) -> Graded:
    request = GradeRequest("toy", folder / "replies.jsonl", folder / "out.jsonl")
    return grade_file(request, toy_catalogue(Unlucky(error)))


def test_a_reply_is_graded_as_its_epoch_put_the_question(tmp_path: Path) -> None:
    name = VariedToy().load()[0].id
    rows = [{"question_id": name, "reply": "7", "epoch": epoch} for epoch in (1, 2, 4)]
    (tmp_path / "replies.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    request = GradeRequest("varied", tmp_path / "replies.jsonl", tmp_path / "out.jsonl")
    grade_file(request, toy_catalogue(VariedToy()))
    assert values(tmp_path) == [0.0, 1.0, 1.0]


class HalfHere(Toy):
    """The toy exam on a machine that lacks what teaches for it."""

    def load(self, split="eval"):  # noqa: ANN001, ANN201 - as in Toy
        if split == "train":
            raise UserError("The train file is absent: put it at FOLDER.")
        return super().load(split)


def test_a_split_that_is_absent_is_no_trouble_where_no_reply_is_to_it(tmp_path: Path) -> None:
    asked = GradeRequest("toy", tmp_path / "replies.jsonl", tmp_path / "out.jsonl")
    write_replies(tmp_path / "replies.jsonl", [(HalfHere().load()[0].id, "42")])
    assert grade_file(asked, toy_catalogue(HalfHere())).replies == 1
    write_replies(tmp_path / "replies.jsonl", [("train-1", "42")])
    with pytest.raises(UserError, match="put it at FOLDER"):
        grade_file(replace(asked, out=tmp_path / "other.jsonl"), toy_catalogue(HalfHere()))


class Prose(Toy):
    """The toy exam, one of whose questions only a model can judge."""

    def needs_judge(self, question: Question) -> bool:
        return question.id == self.load()[1].id

    async def judged(self, state: object, question: Question) -> Grade:
        raise NotImplementedError


def test_replies_that_only_a_model_can_judge_are_refused(tmp_path: Path) -> None:
    asked = GradeRequest("toy", tmp_path / "replies.jsonl", tmp_path / "out.jsonl")
    write_replies(tmp_path / "replies.jsonl", [(one.id, "42") for one in Prose().load()[:3]])
    with pytest.raises(UserError, match="1 of the 3 questions need a model as judge"):
        grade_file(asked, toy_catalogue(Prose()))
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.skipif(not SATURN.is_file(), reason=f"{SATURN.name} is absent; see PODIUM_DATA")
def test_recorded_replies_get_the_verdicts_that_were_recorded_with_them(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in gzip.decompress(SATURN.read_bytes()).splitlines()]
    write_replies(tmp_path / "replies.jsonl", ((row["problem_id"], row["output"]) for row in rows))
    assert grade(tmp_path, "aime25") == 0
    made = verdicts_in(tmp_path / "out.jsonl")
    assert [row["question_id"] for row in made] == [row["problem_id"] for row in rows]
    assert [tuple(row)[: len(FIELDS)] for row in made] == [FIELDS] * 120
    pairs = zip(made, rows, strict=True)
    others = [verdict["question_id"] for verdict, row in pairs if verdict["value"] != row["metric"]]
    assert others == ["aime25-II-8"]  # explained in test_recorded_aime25.py


def test_programs_are_graded_in_the_named_box_with_their_tests_counted(tmp_path: Path) -> None:
    questions = CODE.load("eval")[:4]
    replies = [(one.id, gold_reply(one)) for one in questions]
    broken = (questions[0].id, "```python\nprint('no')\n```")
    write_replies(tmp_path / "replies.jsonl", [*replies, broken, (questions[1].id, "No code.")])
    assert grade(tmp_path, "practice-code", *BOX) == 0
    made = verdicts_in(tmp_path / "out.jsonl")
    assert [row["value"] for row in made] == [1.0] * 4 + [0.0] * 2
    assert made[0]["tests_passed"] == made[0]["tests_total"] == 6
    assert made[4]["tests_passed"] < made[4]["tests_total"]
    assert made[5]["tests_total"] is None
    assert {row["answer"] for row in made} == {None}
    beside = json.loads((tmp_path / "out.jsonl.meta.json").read_text())
    assert beside["box"] == "subprocess"
    assert beside["box_facts"]["python"].startswith("3.")


def test_what_is_graded_stays_and_an_unfinished_last_line_is_graded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = INTEGER.load("train")[:6]
    replies = [(one.id, RIGHT % one.target) for one in questions]
    write_replies(tmp_path / "replies.jsonl", replies)
    assert grade(tmp_path, "practice-integer") == 0
    out = tmp_path / "out.jsonl"
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"value": 1.0', b'"value": 0.5')  # graded: not asked about again
    out.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    capsys.readouterr()
    assert grade(tmp_path, "practice-integer") == 0
    assert values(tmp_path) == [1.0, 0.5, 1.0, 1.0, 1.0, 1.0]
    graded = "6 of 6 graded, mean value 0.9167, 0 unscored; 3 of them in this run"
    assert graded in capsys.readouterr().out
    out.write_bytes(whole)
    assert grade(tmp_path, "practice-integer") == 0
    assert out.read_bytes() == whole


def test_what_could_not_be_graded_has_a_reason_and_no_value_and_is_tried_again(
    tmp_path: Path,
) -> None:
    write_replies(tmp_path / "replies.jsonl", [("eval-0", "42"), ("eval-1", "7"), ("eval-2", "42")])
    first = grade_toy(tmp_path, OSError("the disk is full"))
    assert (first.replies, first.unscored, first.mean) == (3, 1, 1.0)
    assert first.reason == "OSError: the disk is full"
    assert values(tmp_path) == [1.0, None, 1.0]
    second = grade_toy(tmp_path)
    assert (second.now, second.unscored, second.mean) == (1, 0, 2 / 3)
    assert values(tmp_path) == [1.0, 0.0, 1.0]
    assert [row["question_id"] for row in verdicts_in(tmp_path / "out.jsonl")] == [
        "eval-0",
        "eval-1",
        "eval-2",
    ]


def test_a_problem_that_the_suite_refuses_ends_the_command(tmp_path: Path) -> None:
    write_replies(tmp_path / "replies.jsonl", [("eval-0", "42"), ("eval-1", "7")])
    with pytest.raises(UserError, match="has no tests"):
        grade_toy(tmp_path, UserError("eval-1 has no tests."))


def test_a_question_may_be_answered_several_times(tmp_path: Path) -> None:
    question = INTEGER.load("eval")[0]
    replies = [(question.id, text) for text in (RIGHT % question.target, "?", "?")]
    write_replies(tmp_path / "replies.jsonl", replies)
    assert grade(tmp_path, "practice-integer") == 0
    assert values(tmp_path) == [1.0, 0.0, 0.0]


def test_verdicts_of_other_replies_problems_or_boxes_are_never_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = INTEGER.load("eval")[0]
    write_replies(tmp_path / "replies.jsonl", [(question.id, "?")])
    assert grade(tmp_path, "practice-integer") == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    write_replies(tmp_path / "replies.jsonl", [(question.id, "??")])
    capsys.readouterr()
    assert grade(tmp_path, "practice-integer") == 2
    assert "holds other verdicts: replies was" in capsys.readouterr().err
    (tmp_path / "out.jsonl.meta.json").unlink()
    assert grade(tmp_path, "practice-integer") == 2
    assert "was not written by podium grade" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_problems_may_come_as_the_hub_has_them(tmp_path: Path) -> None:
    rows = [{"problem": f"{n}?", "answer": f"{n:03}", "id": str(n)} for n in range(30)]
    problems = tmp_path / "test.jsonl"
    problems.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = tmp_path / "test.csv"
    table.write_text("problem,answer,id\n" + "".join(f'"{n}, \n?",{n},{n}\n' for n in range(30)))
    assert [one.target for one in Aime25().read_problems(problems)] == [str(n) for n in range(30)]
    assert Aime25().read_problems(table)[3].text.startswith("3, \n?")
    write_replies(tmp_path / "replies.jsonl", [("aime25-I-1", RIGHT % 0), ("aime25-I-2", "?")])
    assert grade(tmp_path, "aime25", "--problems", str(problems)) == 0
    assert values(tmp_path) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        pytest.param(["1"], "has 1 rows, but AIME25 has 30", id="too-few"),
        pytest.param(["x"] * 30, "is not an integer from 0 to 999", id="no-integer"),
    ],
)
def test_rows_that_are_no_aime_are_refused(tmp_path: Path, rows: list[str], reason: str) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps({"problem": "?", "answer": row}) + "\n" for row in rows))
    with pytest.raises(UserError, match=reason):
        Aime25().read_problems(path)


def test_a_suite_that_was_changed_grades_into_another_file(tmp_path: Path) -> None:
    write_replies(tmp_path / "replies.jsonl", [("eval-0", "42")])
    request = GradeRequest("toy", tmp_path / "replies.jsonl", tmp_path / "out.jsonl")
    grade_file(request, toy_catalogue(Toy()))
    with pytest.raises(UserError, match="suite version was 1-A and is now 2-A"):
        grade_file(request, toy_catalogue(Toy(version="2-A")))
    elsewhere = replace(request, out=tmp_path / "new.jsonl")
    assert grade_file(elsewhere, toy_catalogue(Toy(version="2-A"))).unscored == 0
