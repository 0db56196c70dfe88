"""What lines of metrics.jsonl say of a training: its best, its patience, what it costs and took."""

import json
from decimal import Decimal
from typing import Any

import anyio
import pytest

from podium.conductor.training.config import read_config
from podium.conductor.training.job import RewardRecorder, StepResults
from podium.conductor.training.run_folder import (
    cut_short,
    note_validation,
    owed_validation,
    replay_state,
    seconds_of,
    sure_share,
    ungraded_text,
    validation_due,
    validation_scalars,
    validation_text,
)
from podium.harness.rewards.outcome import RewardItem, RewardOutcome, Status
from tests import ROOT

SOME: dict[str, Any] = {
    "correct": 1.0,
    "masked": 0.75,
    "questions": 4,
    "usd": None,
    "status/scored": 0.25,
    "status/worker_error": 0.5,
    "status/timeout": 0.25,
    "status/budget": 0.0,
}


def line(step: int, correct: float | None, masked: float = 0.0, usd: float = 0.1) -> dict[str, Any]:
    return {"step": step, "validation": {"correct": correct, "masked": masked, "usd": usd}}


def test_what_has_no_grade_counts_as_not_right_and_costs_no_patience() -> None:
    lines = [line(0, 0.5), line(2, 1.0, masked=0.6), line(4, 0.6), line(6, 0.6), line(8, None, 1)]
    state = replay_state(lines)
    assert (state.best, state.best_step, state.since) == (0.6, 4, 1)
    assert not note_validation(state, 10, SOME)
    assert (state.best, state.since) == (0.6, 1)
    assert state.validation == SOME
    assert note_validation(state, 12, line(12, 0.8, masked=0.05)["validation"])
    assert state.best == pytest.approx(0.76)


def test_the_dearest_validation_says_what_the_next_one_may_cost() -> None:
    state = replay_state([line(0, 0.5, usd=0.3), line(2, 0.5, usd=0.2)])
    assert state.validating == Decimal("0.3")
    note_validation(state, 4, SOME)
    assert state.validating == Decimal("0.3")


def test_only_a_validation_that_money_ended_is_cut_short() -> None:
    assert not cut_short(SOME)
    assert cut_short({**SOME, "status/budget": 0.25})


def test_what_could_not_be_graded_is_counted_and_named() -> None:
    said = "3 of 4 held-out questions have no grade (worker error, timeout)"
    assert ungraded_text(SOME) == said


def test_the_last_step_is_validated_and_what_its_line_lacks_is_owed() -> None:
    config = read_config("practice-cpu", ["validation.every=4", "grpo.max_steps=6"])
    assert [step for step in range(7) if validation_due(config, step)] == [0, 4, 6]
    for step, kept in ((6, True), (4, True), (5, False)):
        bare: dict[str, Any] = {"step": step}
        assert owed_validation(config, [line(0, 0.5), bare]) == (bare if kept else None)
    assert owed_validation(config, [line(6, 0.5)]) is None
    assert owed_validation(config, []) is None


def test_releases_of_before_are_read_as_they_were() -> None:
    path = ROOT / "conductor/released/trained/log"
    for log in sorted(path.glob("seed-*/metrics.jsonl")):
        lines = [json.loads(text) for text in log.read_text().splitlines()]
        made = [one["validation"] for one in lines if "validation" in one]
        assert replay_state(lines).best == max(sure_share(one) or 0.0 for one in made)


def test_steps_on_end_without_a_plan_that_can_be_read_are_counted() -> None:
    steps = [{"step": n, "parsed": share} for n, share in enumerate((0.5, 0.0, 0.1, 0.0, 0.0), 1)]
    assert replay_state([line(0, 0.5), *steps]).unread == 2
    assert replay_state([line(0, 0.5)]).unread == 0


def outcome(latency_s: float, grading_s: float) -> RewardOutcome:
    return RewardOutcome(1.0, Status.SCORED, latency_s=latency_s, grading_s=grading_s)


def test_seconds_are_divided_as_plans_waited_for_workers_and_for_grades() -> None:
    seen = StepResults([], [outcome(3.0, 1.0), outcome(1.0, 0.0)], seconds=2.0)
    found = seconds_of(seen)
    assert found == {
        "reward_seconds": 2.0,
        "ahead_seconds": 0.0,
        "worker_seconds": 1.5,
        "grading_seconds": 0.5,
    }


def test_seconds_of_a_study_are_grading_for_nobody_is_asked() -> None:
    found = seconds_of(StepResults([], [outcome(0.0, 0.0)], seconds=2.0))
    assert (found["worker_seconds"], found["grading_seconds"]) == (0.0, 2.0)


def test_a_plan_that_shares_its_outcome_waited_for_nobody() -> None:
    class Slow:
        async def score(self, items: Any) -> list[RewardOutcome]:
            return [outcome(3.0, 1.0) for _ in items]

    same = [RewardItem("s", "q", "plan"), RewardItem("s", "q", "plan", replicate=1)]
    found = anyio.run(RewardRecorder(Slow(), deduplicate=True).score, same)
    assert [one.latency_s for one in found] == [3.0, 0.0]
    assert [one.grading_s for one in found] == [1.0, 0.0]


def test_a_validation_has_flat_names_for_tensorboard() -> None:
    found = validation_scalars({**SOME, "suites": {"a": 0.5, "b": None}, "workers": {"sage": 1.0}})
    assert found["validation/correct"] == 1.0
    assert found["validation/suite/a"] == 0.5
    assert found["validation/worker/sage"] == 1.0
    assert not {"validation/suite/b", "validation/usd"} & set(found)


def test_plans_that_run_on_to_the_limit_are_said_with_the_next_validation() -> None:
    line: dict[str, Any] = {"step": 80, "validation": {"correct": 0.7125, "calls": 1.75}}
    usual = "step 80: validation 0.713, 1.75 calls a question"
    assert validation_text({"step": 81, "cut_off": 1.0}) == ""
    assert validation_text({"step": 81, "validation": {"correct": None}}) == ""
    assert validation_text(line) == validation_text(line | {"cut_off": 0.49}) == usual
    assert validation_text(line | {"cut_off": 0.789}) == (
        f"{usual}; 79% of plans reach max_completion_length: raise it if few plans can be read, "
        "else lower entropy_coef, because tokens after a plan are paid for but not used"
    )
