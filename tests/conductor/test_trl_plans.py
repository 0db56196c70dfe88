"""Plans through the adapter to TRL: columns, draws, metrics, and the end of the money."""

import asyncio
import math
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings, RewardConfig, training_reward
from podium.harness.errors import TooManyMasked
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.rewards.outcome import Status
from podium.harness.rewards.trainers import TrlReward, batch_metrics
from tests.conductor.plans import BOOK, SOLVE, plan, spec_of
from tests.harness.rewards.service import train
from tests.harness.toy_run import Toy, toy_pool
from tests.providers.scripted import Heard, script

TWO = plan((1, "Say 42.", []), (0, "Check it.", ["all"]))
ASKED: list[int] = []


def noted(heard: Heard) -> str:
    ASKED.append(heard.epoch)
    return "42"


def made(config: RewardConfig | None = None) -> TrlReward:
    config = config or RewardConfig()
    script("echo", noted)
    script("lead", lambda heard: "7")
    ASKED.clear()
    spec = spec_of(ada="scripted/echo", bob="scripted/lead")
    reward, _ = training_reward(config, PlanSettings(), spec, BOOK, train(Toy()))
    return TrlReward(reward, names=spec.names, again=not config.deduplicate)


def step(
    reward: TrlReward, said: list[str], at: int = 0, **columns: Any
) -> tuple[list[float | None], dict[str, list[Any]], dict[str, float]]:
    extra: dict[str, list[Any]] = {}
    logged: dict[str, float] = {}
    usual = {"suite": ["toy"] * len(said), "question": ["train-0"] * len(said)}
    values = asyncio.run(
        reward(
            said,
            said,
            trainer_state=SimpleNamespace(global_step=at),
            log_extra=lambda key, column: extra.update({key: column}),
            log_metric=lambda key, value: logged.update({key: value}),
            **{**usual, **columns},
        )
    )
    return values, extra, logged


def test_equal_plans_get_draws_of_their_own_within_a_step_and_across_steps() -> None:
    reward = made()
    for at in (0, 1, 1):
        step(reward, [SOLVE] * 3, at)
    assert len(ASKED) == len(set(ASKED)) == 6, "a step that is made again is not paid for again"
    assert ASKED[0] == 1, "the first draw of the first step is that of an evaluation"


def test_a_plan_in_other_words_gets_a_draw_of_its_own_and_shares_one_where_told() -> None:
    said = [SOLVE, f"Ada knows this.\n{SOLVE}"]
    step(made(), said)
    assert len(set(ASKED)) == 2
    step(made(RewardConfig(deduplicate=True)), said)
    assert len(ASKED) == 1


def test_equal_plans_share_one_draw_where_told_but_not_across_steps() -> None:
    reward = made(RewardConfig(deduplicate=True))
    for at in (0, 1):
        assert step(reward, [SOLVE] * 4, at)[0] == [1.0] * 4
    assert len(set(ASKED)) == len(ASKED) == 2


def test_workers_of_a_row_number_the_models_of_its_plan() -> None:
    shown = [["ada", "bob"], ["bob", "ada"], None]
    values, extra, _ = step(made(), [SOLVE] * 3, workers=[one or [] for one in shown])
    assert values == [1.0, 0.5, 1.0]
    assert extra["podium_workers"] == ["ada", "bob", "ada"]


def test_a_log_says_what_plans_did_and_never_a_target() -> None:
    values, extra, logged = step(made(), [SOLVE, TWO, "no plan"])
    assert values == [1.0, 1.0, 0.0]
    assert extra["podium_status"] == ["scored", "scored", "invalid_action"]
    assert extra["podium_steps"] == [1, 2, None]
    assert extra["podium_workers"] == ["ada", "bob ada", ""]
    assert extra["podium_leaks_answer"] == [False, True, None]
    assert logged["podium/steps"] == 1.5
    assert logged["podium/parsed"] == pytest.approx(2 / 3)
    assert logged["podium/worker/ada"] == pytest.approx(2 / 3)
    assert logged["podium/leaked"] == 0.5
    assert "42" not in "".join(extra["podium_plan"]).replace("Say 42.", "")


def test_metrics_have_the_same_keys_whatever_happened() -> None:
    reward = made()
    usual = step(reward, [SOLVE, TWO])[2]
    nothing = step(reward, ["no plan", "none"])[2]
    assert list(usual) == list(nothing)
    assert math.isnan(nothing["podium/steps"])
    assert math.isnan(nothing["podium/worker/bob"])
    assert {f"podium/{key}" for key in batch_metrics([])} < set(usual)


def test_prompts_whose_plans_are_all_worth_the_same_are_named() -> None:
    reward = made()
    questions = ["train-0", "train-0", "train-1", "train-1"]
    _, _, logged = step(reward, [SOLVE, SOLVE, SOLVE, "none"], question=questions)
    assert [prompt.question for prompt in reward.constant] == ["train-0"]
    assert logged["podium/zero_variance"] == 0.5


# --- what goes wrong --------------------------------------------------------------------------


def flaky(down: set[str]) -> Any:
    def reply(heard: Heard) -> str:
        if any(one in heard.messages[0].text for one in down):
            raise OSError("503")
        return "42"

    return reply


def test_an_outage_in_mid_training_is_masked_and_not_learnt_as_wrong() -> None:
    down: set[str] = set()
    reward = made(RewardConfig(max_masked=0.5))
    script("echo", flaky(down))
    questions = [f"train-{n // 2}" for n in range(8)]
    plans = [SOLVE, TWO] * 4
    assert None not in step(reward, plans, 0, question=questions)[0]
    down.add("train-1 ")
    values, extra, logged = step(reward, plans, 1, question=questions)
    assert values == [1.0, 1.0, None, None, 1.0, 1.0, 1.0, 1.0]
    assert extra["podium_status"][2] == Status.WORKER_ERROR.value
    assert logged["podium/masked"] == 0.25
    down.clear()
    assert None not in step(reward, plans, 2, question=questions)[0]


def test_an_outage_that_stays_ends_the_training() -> None:
    reward = made(RewardConfig(max_masked=0.3))
    script("echo", flaky({"train"}))
    assert step(reward, [SOLVE] * 12)[0] == [None] * 12, "too few to say anything"
    with pytest.raises(TooManyMasked, match="gave no reply"):
        step(reward, [SOLVE] * 24, 1)


def test_a_step_in_which_the_money_ends_teaches_nothing_and_says_so(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))

    def system_run(usd: str) -> tuple[TrlReward, PlanAnswerer]:
        plans = PlanSettings(max_usd=Decimal(usd), log_dir=log)
        config, book = RewardConfig(concurrency=1), read_book(spec.prices)
        reward, answerer = training_reward(config, plans, spec, book, train(Toy()))
        return TrlReward(reward, names=spec.names), answerer

    reward, answerer = system_run("0.05")
    assert step(reward, [SOLVE] * 4)[0] == [1.0] * 4
    assert reward.stopped == ""
    assert step(reward, [SOLVE] * 40, 1)[0] == [None] * 40, "and the masked share ends nothing"
    assert "--max-usd 0.05" in reward.stopped
    assert answerer.usd == Decimal("0.05")
    again, answerer = system_run("1")
    assert step(again, [SOLVE] * 40, 1)[0] == [1.0] * 40
    assert answerer.usd == Decimal("0.44"), "the step is made again, and what it paid is kept"
