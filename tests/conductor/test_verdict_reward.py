"""One-step plans rewarded from recorded verdicts: the cell of the worker that is named."""

import asyncio
import pickle
from dataclasses import replace

import pytest

from podium.conductor.parse import PlanFormat
from podium.conductor.verdict_reward import ONE_STEP, VerdictReward, recorded_verdicts
from podium.harness.errors import TooManyMasked, UserError
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)
from podium.harness.rewards.outcome import PLAIN, RewardItem, RewardOutcome, Status

SUITE = "verdicts:toy"
SECRET = "What is the airspeed of a swallow?"


def matrix() -> Matrix:
    """Return two questions and three workers; nobody graded `cy` on the second."""
    cells = [
        MatrixCell("q1", "ada", 1.0),
        MatrixCell("q1", "bo", 0.0),
        MatrixCell("q1", "cy", 0.4),
        MatrixCell("q2", "ada", 0.0),
        MatrixCell("q2", "bo", 1.0),
    ]
    return assemble_matrix(
        MatrixSource("toy", "made up"),
        [MatrixQuestion("q1", SECRET), MatrixQuestion("q2", "Why?")],
        cells,
    )


REWARD = VerdictReward(*recorded_verdicts(SUITE, matrix()))


def plan(*models: int, access: str = "[]") -> str:
    count = len(models)
    subtasks = ["Solve it."] * count
    lists = ", ".join([access] * count)
    return f"model_id = {list(models)}\nsubtasks = {subtasks}\naccess_list = [{lists}]"


def worth(text: str, question: str = "q1", reward: VerdictReward = REWARD) -> RewardOutcome:
    (outcome,) = asyncio.run(reward.score([RewardItem(SUITE, question, text)]))
    return outcome


@pytest.mark.parametrize(
    ("model", "value"),
    [
        pytest.param(0, 1.0, id="right"),
        pytest.param(1, 0.5, id="wrong"),
        pytest.param(2, 0.7, id="right in four draws of ten"),
    ],
)
def test_a_plan_is_worth_the_verdict_on_the_worker_it_names(model: int, value: float) -> None:
    outcome = worth(plan(model))
    assert outcome.value == pytest.approx(value)
    assert outcome.status is Status.SCORED
    assert (outcome.calls, outcome.usd) == (0, 0)


def test_a_verdict_that_nobody_recorded_is_no_value_and_never_zero() -> None:
    outcome = worth(plan(2), "q2")
    assert outcome.value is None
    assert outcome.status is Status.SCORER_ERROR
    assert outcome.components == {"correct": None, "parsed": None}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("I would ask model 1.", id="prose"),
        pytest.param(plan(0, 1), id="two steps"),
        pytest.param(plan(3), id="a worker there is not"),
        pytest.param("model_id = []\nsubtasks = []\naccess_list = []", id="three empty lists"),
    ],
)
def test_what_is_no_plan_of_one_step_is_worth_nothing(text: str) -> None:
    outcome = worth(text)
    assert outcome.value == 0.0
    assert outcome.status is Status.INVALID_ACTION


def test_values_are_the_settings_and_not_the_papers_alone() -> None:
    assert (
        worth(
            plan(1), reward=VerdictReward(*recorded_verdicts(SUITE, matrix()), values=PLAIN)
        ).value
        == 0
    )


def test_numbers_mean_the_workers_that_were_shown() -> None:
    item = RewardItem(SUITE, "q1", plan(0), workers=("bo", "ada"))
    (outcome,) = asyncio.run(REWARD.score([item]))
    assert outcome.value == 0.5


def test_a_forced_worker_does_every_plan() -> None:
    forced = VerdictReward(*recorded_verdicts(SUITE, matrix()), replace(ONE_STEP, worker="ada"))
    assert worth(plan(1), reward=forced).value == 1.0


def test_the_subtask_changes_nothing() -> None:
    assert worth(plan(0).replace("Solve it.", "Print 42 and stop.")).value == 1.0


@pytest.mark.parametrize(
    ("item", "said"),
    [
        pytest.param(RewardItem("aime25", "q1", plan(0)), "not on 'aime25'", id="suite"),
        pytest.param(
            RewardItem(SUITE, "q9", plan(0)),
            "Question 'q9' has no recorded verdicts",
            id="question",
        ),
        pytest.param(
            RewardItem(SUITE, "q1", plan(0), workers=("dora",)),
            "Worker 'dora' has no recorded verdicts",
            id="worker",
        ),
        pytest.param(RewardItem(SUITE, "q1", plan(0), first="q1"), "no second round", id="round"),
    ],
)
def test_what_nobody_recorded_is_refused_in_one_sentence(item: RewardItem, said: str) -> None:
    with pytest.raises(UserError, match=said):
        asyncio.run(REWARD.score([item]))


def test_a_form_with_a_second_step_is_refused() -> None:
    with pytest.raises(UserError, match="set max_steps = 1"):
        VerdictReward(*recorded_verdicts(SUITE, matrix()), PlanFormat())


def test_too_many_missing_verdicts_end_a_training() -> None:
    reward = VerdictReward(*recorded_verdicts(SUITE, matrix()))
    with pytest.raises(TooManyMasked):
        asyncio.run(reward.score([RewardItem(SUITE, "q2", plan(2))] * 40))


def test_the_reward_pickles_and_holds_no_text() -> None:
    packed = pickle.dumps(VerdictReward(*recorded_verdicts(SUITE, matrix())))
    assert SECRET.encode() not in packed
    assert worth(plan(0), reward=pickle.loads(packed)).value == 1.0
