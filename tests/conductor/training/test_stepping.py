"""What happens between steps when a validation is whole, in part, or cut short; nothing is trained.

The trainer here hands out validations that are written down; all else is as in a training.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.conductor.training.tiny_training import tiny_config

pytestmark = pytest.mark.slow

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

from podium.cli.list_commands import controls, whole_catalogue  # noqa: E402
from podium.conductor.training.config import read_config  # noqa: E402
from podium.conductor.training.job import (  # noqa: E402
    RewardRecorder,
    TrainingRewards,
    find_job,
)
from podium.conductor.training.trainer import StepCallback  # noqa: E402

WHOLE = {"questions": 4, "masked": 0.0, "usd": 0.1, "status/scored": 1.0, "calls": 1.0, "parsed": 1}
PART = {**WHOLE, "masked": 0.5, "usd": None, "status/scored": 0.5, "status/worker_error": 0.5}
CUT = {**PART, "correct": 1.0, "status/worker_error": 0.0, "status/budget": 0.5}


class Scripted:
    """Validates as it is written, and keeps models without weights."""

    def __init__(self, *validations: dict[str, Any]) -> None:
        self.left = list(validations)

    def validated(self, validator: Any) -> dict[str, Any]:
        return self.left.pop(0)

    def save_model(self, folder: str) -> None:
        Path(folder).mkdir()


def stepping(out: Path, trainer: Scripted) -> tuple[Any, list[str]]:
    """Return what stands between the steps, and what it says to whoever waits."""
    training = find_job(
        read_config(str(tiny_config(out))),
        out,
        whole_catalogue(),
        controls().bare,
    )
    nothing: Any = None
    said: list[str] = []
    made = StepCallback(
        training,
        TrainingRewards(RewardRecorder(nothing), RewardRecorder(nothing)),
        nothing,
        said.append,
    )
    made.trainer = trainer
    return made, said


def test_what_has_no_grade_counts_as_not_right_and_is_said(tmp_path: Path) -> None:
    some = {**PART, "correct": 1.0}
    trainer = Scripted({**WHOLE, "correct": 0.5}, some, {**WHOLE, "correct": 0.6})
    made, said = stepping(tmp_path, trainer)
    card = tmp_path / "best" / "README.md"
    made.validate(0)
    before = card.read_text()
    assert made.validate(2) == some
    assert card.read_text() == before
    assert said == [
        "step 2: 2 of 4 held-out questions have no grade (worker error); they count as not right."
    ]
    assert made.state.since == 0
    made.validate(4)
    assert "right 0.600" in card.read_text()
    assert (made.state.best, made.state.best_step) == (0.6, 4)
    assert len(said) == 1


def test_a_validation_in_part_is_the_best_where_it_is_so_without_the_rest(tmp_path: Path) -> None:
    most = {**PART, "masked": 0.25, "correct": 1.0}
    made, _ = stepping(tmp_path, Scripted({**WHOLE, "correct": 0.5}, most))
    made.validate(0)
    made.validate(2)
    assert (made.state.best, made.state.best_step) == (0.75, 2)


def test_a_validation_that_money_cut_short_is_no_validation(tmp_path: Path) -> None:
    made, said = stepping(tmp_path, Scripted({**WHOLE, "correct": 0.5}, CUT))
    made.validate(0)
    before = (tmp_path / "best" / "README.md").read_text()
    assert made.validate(2) is None
    assert made.state.ended == "stopped, because the budget ran out in the validation of step 2"
    assert (tmp_path / "best" / "README.md").read_text() == before
    assert (made.state.best, made.state.since, said) == (0.5, 0, [])
