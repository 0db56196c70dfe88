"""What a table says of programs: which box ran them, both verdicts, difficulty, several tries."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.harness.records import Grade, Question
from podium.harness.suite import Split
from podium.reports.intervals import accuracy, pass_at_ks
from tests.harness.runs import Crew, Exam, sit, steps
from tests.reports.small_reports import report, right_up_to, row_of

DOCKER = {
    "box": "docker",
    "box_facts": {
        "python": "3.11.2",
        "image": "podium-sandbox",
        "image_id": "sha256:9f86d081884c7d659a2feaa0c55ad015",
        "packages": ["numpy==2.0.2", "six==1.16.0"],
    },
}
BARE = {"box": "subprocess", "box_facts": {"python": "3.11.7"}}


@dataclass(frozen=True, slots=True)
class CodeExam(Exam):
    """Six questions; the published evaluator fails question 2 and, wrongly asked, passes 6."""

    name: str = "code"
    size: int = 6

    def load(self, split: Split = "eval") -> Sequence[Question]:
        loaded = Exam.load(self, split)
        ranks = ("easy", "easy", "medium", "medium", "medium", "hard")
        return [
            replace(question, metadata={"difficulty": rank, "platform": "atcoder"})
            for question, rank in zip(loaded, ranks, strict=True)
        ]

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        grade = Exam.grade(self, question, reply, box)
        official = {"q2": False, "q6": True}.get(question.id, bool(grade.value))
        errata = "several answers" if question.id == "q6" else None
        facts = {"official": official, "fragile": question.id == "q1", "errata": errata}
        return replace(grade, metadata=facts)


def sit_code(tmp_path: Path, system: str, last: int = 4, **changes: Any) -> None:
    worker = system.partition(":")[2]
    crew = Crew(**{worker: right_up_to(last)})
    sit(tmp_path / "logs", system, steps(worker), crew, exam=CodeExam(), **changes)


def test_both_verdicts_are_shown_where_they_differ(tmp_path: Path) -> None:
    sit_code(tmp_path, "single:sage", **DOCKER)
    found = report(tmp_path)
    row = row_of(found.rows, "single:sage")
    assert (row.accuracy, row.official_accuracy) == (pytest.approx(4 / 6), pytest.approx(4 / 6))
    assert (row.n_official_differ, row.n_official_errata, row.n_fragile) == (2, 1, 1)
    said = "published evaluator: accuracy 66.7 %, 2 verdicts differ (1 right only here, 1 with an"
    text = found.files[0].read_text()
    assert f"{said} erratum)" in text
    assert "1 verdict is within 20 % of the time limit" in text
    assert "published evaluator on single:sage: 66.7 % (2 verdicts differ)" in found.text
    with found.files[1].open() as file:
        (line,) = csv.DictReader(file)
    assert (line["official_accuracy"], line["n_official_differ"]) == ("0.666667", "2")


def test_a_suite_with_one_verdict_says_nothing_of_a_second_one(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    found = report(tmp_path)
    row = row_of(found.rows, "single:sage")
    assert (row.official_accuracy, row.n_official_differ, row.n_fragile) == (None, None, 0)
    assert "published" not in found.text
    assert found.shown.parts == ()


def test_a_table_names_the_box_with_its_python_and_image(tmp_path: Path) -> None:
    sit_code(tmp_path, "single:sage", **DOCKER)
    found = report(tmp_path)
    box = "docker (Python 3.11.2, podium-sandbox 9f86d081884c)"
    assert f"graded in box {box}" in found.files[0].read_text()
    assert f"box: {box}" in found.text
    assert "2 third-party packages: numpy==2.0.2, six==1.16.0; image sha256:9f86" in (
        found.files[0].read_text()
    )
    (row,) = json.loads(found.files[2].read_text())["rows"]
    assert row["box_image_id"] == DOCKER["box_facts"]["image_id"]  # type: ignore[index]
    assert max(map(len, found.text.splitlines())) <= 120


def test_two_boxes_in_one_table_are_told_apart_by_row(tmp_path: Path) -> None:
    sit_code(tmp_path, "single:sage", **DOCKER)
    sit_code(tmp_path, "single:clerk", **BARE)
    found = report(tmp_path)
    text = found.files[0].read_text()
    assert "graded in box docker (Python 3.11.2, podium-sandbox 9f86d081884c)" in text
    assert "graded in box subprocess (Python 3.11.7)" in text
    assert "| `single:clerk` (" in text
    assert "box of single:clerk: subprocess (Python 3.11.7)" in found.text


def test_another_image_is_another_sitting_even_in_one_directory(tmp_path: Path) -> None:
    sit_code(tmp_path, "single:sage", **DOCKER)
    newer = {**DOCKER, "box_facts": {**DOCKER["box_facts"], "image_id": "sha256:0"}}  # type: ignore[dict-item]
    sit(tmp_path / "logs" / "new", "single:sage", exam=CodeExam(), **newer)
    system_runs, _ = load_runs([tmp_path / "logs"])
    assert len(system_runs) == 2


def test_an_exam_is_broken_down_by_difficulty_and_platform(tmp_path: Path) -> None:
    sit_code(tmp_path, "single:sage")
    sit_code(tmp_path, "single:clerk", last=1)
    found = report(tmp_path)
    parts = json.loads(found.files[2].read_text())["parts"]
    own = {part["group"]: (part["n"], part["value"]) for part in parts if part["row"] == 0}
    expected = {"easy": (2, 1.0), "medium": (3, 0.666667), "hard": (1, 0.0)}
    assert own == {**expected, "atcoder": (6, 0.666667)}
    (head,) = [line for line in found.text.splitlines() if line.startswith("difficulty")]
    assert head.split("  ")[-3:] == ["easy (n=2)", "medium (n=3)", "hard (n=1)"]
    text = found.files[0].read_text()
    assert "### By difficulty" in text
    assert "| `single:sage` (live, pool test-pool) | 100.0 [34.2,100.0] n=2 |" in text


def test_several_tries_give_pass_at_k_without_bias(tmp_path: Path) -> None:
    values = {"a": [1.0, 0.0, 0.0, 0.0, 0.0], "b": [0.0] * 5}
    found = pass_at_ks(values)
    assert list(found) == [1, 5]
    assert accuracy(found[1]) == pytest.approx(0.1)
    assert (accuracy(found[5]), len(found[5])) == (0.5, 2)
    assert pass_at_ks({"a": [1.0, 0.0]}) == {}
    assert pass_at_ks({"a": [0.5] * 5}) == {}


def test_a_report_has_pass_at_k_where_questions_were_asked_often_enough(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", exam=Exam(size=2), epochs=5)
    found = report(tmp_path)
    row = row_of(found.rows, "single:sage")
    assert (row.pass_at_5, row.pass_at_10) == (1.0, None)
    assert "### By several tries" in found.files[0].read_text()
    assert any(line.startswith("pass@k") for line in found.text.splitlines())


def test_a_reply_without_a_program_is_wrong_by_either_rule(tmp_path: Path) -> None:
    class Silent(CodeExam):
        def grade(self, question: Question, reply: str, box: object = None) -> Grade:
            grade = CodeExam.grade(self, question, reply, box)
            return grade if grade.extracted != "0" else Grade(0.0, None)

    crew = Crew(sage=right_up_to(2))
    sit(tmp_path / "logs", "single:sage", steps("sage"), crew, exam=Silent())
    row = row_of(report(tmp_path).rows, "single:sage")
    assert row.n_unparsed == 4
    assert row.official_accuracy == pytest.approx(1 / 6)
