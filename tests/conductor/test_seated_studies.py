"""A checkpoint that learnt from recorded verdicts may not sit the exam they are of."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]

from podium.cli import main
from podium.conductor.checkpoint import StudyInfo, write_study
from podium.conductor.parse import PlanFormat
from podium.conductor.trained import CheckpointMethods, conductor
from podium.harness.errors import UserError
from podium.suites.practice.integer import practice_integer
from tests.conductor.toy_checkpoint import Toy, write_checkpoint

EXAM = "practice-integer"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    about = replace(Toy().described(), role="study", suites=(EXAM,))
    return write_checkpoint(tmp_path / "study", Toy(about=about))


def study(part: str, id: str) -> StudyInfo:
    """Return a study of toy questions, with another one for one of its parts."""
    values: dict[str, Any] = {"taught": ("q-1",), "validated": ("q-2",), part: (id,)}
    said = {"source": "toy", "pinned": "toy", "exam": EXAM, "split": "share:0.5"}
    return StudyInfo(**said, split_seed=0, workers=("sage",), form=PlanFormat(), seed=0, **values)


def test_it_is_refused_on_its_exam_whichever_questions_are_asked(folder: Path) -> None:
    assert "was trained on recorded verdicts" in str(
        CheckpointMethods().suite_refusal(str(folder), EXAM, ())
    )
    assert CheckpointMethods().suite_refusal(str(folder), "practice-choice", ()) is None


@pytest.mark.parametrize("system", ["conductor", "conductor-served"])
def test_a_run_of_its_exam_is_refused_before_a_call(
    system: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(study("taught", "q-9"), folder)
    asked = ["run", "--suite", EXAM, "--pool", "rehearsal", "--limit", "1"]
    named = ["--system", f"{system}@{folder}", "--log-dir", str(tmp_path / "logs")]
    assert main([*asked, *named]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"was trained on recorded verdicts of {EXAM}" in said
    assert not (tmp_path / "logs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("part", ["taught", "validated"])
def test_inspect_alone_refuses_a_studied_question_when_it_is_asked(
    part: str, folder: Path, tmp_path: Path
) -> None:
    task = practice_integer()
    first = str(task.dataset[0].id)
    write_study(study(part, first), folder)
    logs = str(tmp_path / "logs")
    asked: dict[str, Any] = {"model": None, "limit": 1, "log_dir": logs, "display": "none"}
    [log] = evaluate(task, solver=conductor(str(folder), "rehearsal"), **asked)
    assert log.error is not None
    assert log.error.message.startswith(
        f"UserError('Question {first} was used to train or select this checkpoint:"
    )
    assert "model" not in {event.event for one in log.samples or [] for event in one.events}


def test_one_that_has_lost_its_study_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match=r"has no study\.json"):
        conductor(str(folder), "rehearsal")
