"""What a plan is worth when its cost counts, and when the policy is asked again."""

import random
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from podium.conductor.grpo_reward import (
    DISCOUNT,
    CostAware,
    Discounted,
    FirstRound,
    PlanAnswerer,
    PlanSettings,
    RewardConfig,
    reward_values,
    training_reward,
)
from podium.harness.errors import UserError
from podium.harness.rewards.outcome import (
    PAPER,
    PLAIN,
    VALUED,
    Effort,
    RewardItem,
    RewardOutcome,
    Status,
)
from podium.harness.rewards.reward import Reward, RewardSettings
from tests.conductor.plans import BOOK, SOLVE, plan, spec_of
from tests.harness.rewards.service import train
from tests.harness.toy_run import Toy
from tests.providers.scripted import script

TWO = plan((0, "Solve it.", []), (0, "Check it.", ["all"]))
WRONG = plan((1, "Solve it.", []))


def outcomes(config: RewardConfig, *completions: str) -> list[RewardOutcome]:
    script("echo", lambda heard: "42")
    script("lead", lambda heard: "7")
    spec = spec_of(ada="scripted/echo", bob="scripted/lead")
    reward, _ = training_reward(config, PlanSettings(), spec, BOOK, train(Toy()))
    items = [RewardItem("toy", "train-0", one) for one in completions]
    return anyio.run(reward.score, items)


def test_a_right_plan_of_fewer_calls_is_worth_more_and_a_wrong_one_the_same() -> None:
    config = RewardConfig(name="cost-aware", cost_weight=0.4, cost_scale=4, cost_by="calls")
    cheap, dear, wrong, unread = outcomes(config, SOLVE, TWO, WRONG, "no plan")
    assert [one.value for one in (cheap, dear, wrong, unread)] == pytest.approx([0.9, 0.8, 0.5, 0])


def test_no_cost_makes_a_right_answer_worth_less_than_a_wrong_one() -> None:
    luck = random.Random(7)
    for _ in range(2000):
        cost = CostAware(weight=luck.uniform(0.001, 0.45), scale=10 ** luck.uniform(-6, 6))
        effort = Effort(Decimal(str(10 ** luck.uniform(-9, 9))), luck.randint(0, 99))
        right = cost.of(Status.SCORED, 1.0, effort)
        wrong = cost.of(Status.SCORED, 0.0, effort)
        assert right is not None
        assert wrong == PAPER.of(Status.SCORED, 0.0) == 0.5
        assert 0.55 - 1e-12 <= right <= 1.0


def test_what_cost_nobody_knows_has_no_value_right_or_wrong() -> None:
    cost = CostAware(weight=0.4, scale=0.01)
    unknown = Effort(usd=None, calls=2)
    assert [cost.of(Status.SCORED, grade, unknown) for grade in (0.0, 1.0)] == [None, None]
    assert cost.of(Status.INVALID_ACTION, 0.0, unknown) == 0.0
    settings = RewardSettings(values=cost)
    script("echo", lambda heard: "42")
    answer = PlanAnswerer(spec_of(free="scripted/other"), BOOK, PlanSettings())
    script("other", lambda heard: "42")
    reward = Reward(train(Toy()), answer, settings)
    (outcome,) = anyio.run(reward.score, [RewardItem("toy", "train-0", SOLVE)])
    assert (outcome.value, outcome.status) == (None, Status.SCORER_ERROR)
    assert outcome.components == {"correct": None, "parsed": None}


@pytest.mark.parametrize("status", [one for one in Status if one not in VALUED])
def test_our_own_failures_have_no_value_under_any_values(status: Status) -> None:
    cost = CostAware(weight=0.4, scale=1)
    for values in (PLAIN, PAPER, cost, Discounted(PAPER), Discounted(cost)):
        assert values.of(status, 0.0) is None


@pytest.mark.parametrize(
    ("config", "discount", "named"),
    [
        (RewardConfig(name="cost-aware", cost_weight=0.5, cost_scale=1), None, "at most 0.45"),
        (RewardConfig(name="cost-aware", cost_weight=0.0, cost_scale=1), None, "above 0"),
        (RewardConfig(name="cost-aware", cost_weight=0.4), None, "scale must be more than 0"),
        (RewardConfig(), 0.0, "discount must be above 0"),
    ],
)
def test_a_term_that_would_teach_the_wrong_thing_is_refused(
    config: RewardConfig, discount: float | None, named: str
) -> None:
    with pytest.raises(UserError, match=named):
        reward_values(config, discount)


def test_a_cost_in_dollars_needs_a_price_for_every_worker() -> None:
    config = RewardConfig(name="cost-aware", cost_weight=0.4, cost_scale=0.01)
    with pytest.raises(UserError, match="'bob' of pool 'made' has no price"):
        outcomes(config, SOLVE)


# --- recursion --------------------------------------------------------------------------------


def test_three_empty_lists_are_worth_the_earlier_answer_and_a_new_plan_its_own(
    tmp_path: Path,
) -> None:
    script("echo", lambda heard: "42")
    script("lead", lambda heard: "7")
    spec = spec_of(ada="scripted/echo", bob="scripted/lead")
    answer = PlanAnswerer(spec, BOOK, PlanSettings(log_dir=tmp_path, kept=frozenset()))
    exams = train(Toy())
    question = exams["toy"].questions["train-0"]
    keep = "model_id = []\nsubtasks = []\naccess_list = []"
    begun = RewardItem("toy", "train-0", WRONG)

    async def both() -> list[RewardOutcome]:
        first = await answer.first_round(begun, question)
        assert isinstance(first, FirstRound)
        answer.firsts["r1"] = first
        reward = Reward(
            exams, answer, RewardSettings(values=reward_values(RewardConfig(), DISCOUNT))
        )
        later = [RewardItem("toy", "train-0", one, first="r1") for one in (keep, SOLVE)]
        return await reward.score([begun, *later])

    first, kept, anew = anyio.run(both)
    assert (first.value, kept.value, anew.value) == (0.125, 0.5, 1.0)
    assert (kept.calls, kept.usd, kept.status) == (0, Decimal(0), Status.SCORED)
    assert first.work
    assert first.work.cached == 1, "what the first round paid is not paid again"


def test_a_first_round_that_is_not_there_is_refused_before_anything_is_done() -> None:
    script("echo", lambda heard: "42")
    answer = PlanAnswerer(spec_of(ada="scripted/echo"), BOOK)
    reward = Reward(train(Toy()), answer)
    lost = RewardItem("toy", "train-0", SOLVE, first="nowhere")
    stranger = RewardItem("toy", "train-0", SOLVE, workers=("zoe",))
    absent = "continues the first round 'nowhere', which does not exist"
    for item, named in ((lost, absent), (stranger, "no worker 'zoe'")):
        with pytest.raises(UserError, match=named):
            anyio.run(reward.score, [item])


def test_models_are_numbered_as_the_policy_was_shown_them() -> None:
    script("echo", lambda heard: "42")
    script("lead", lambda heard: "7")
    answer = PlanAnswerer(spec_of(ada="scripted/echo", bob="scripted/lead"), BOOK)
    shown = [("ada", "bob"), ("bob", "ada"), ("bob",)]
    items = [RewardItem("toy", "train-0", SOLVE, workers=one) for one in shown]
    items.append(RewardItem("toy", "train-0", WRONG, workers=("ada",)))
    found = anyio.run(Reward(train(Toy()), answer).score, items)
    assert [one.value for one in found] == [1.0, 0.0, 0.0, 0.0]
    assert found[3].status is Status.INVALID_ACTION
