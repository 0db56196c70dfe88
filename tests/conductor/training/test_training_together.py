"""Several processes of one training: equal parts of its limits, and what is refused in them."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings
from podium.conductor.training.config import read_config
from podium.conductor.training.grpo_options import (
    plans_at_once,
    refuse_sharding,
    sharding,
    weight_dtype,
    world_size,
)
from podium.conductor.training.job import find_job, plan_settings
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.rewards.outcome import RewardItem
from tests.conductor.plans import rewarded
from tests.harness.rewards.service import train
from tests.harness.toy_run import Toy, calls, toy_pool

SOLVE = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'


def told(*settings: str) -> tuple[int, PlanSettings]:
    config = read_config("practice-cpu", settings)
    training = find_job(config, Path("none"), whole_catalogue(), controls().bare, dry=True)
    return plans_at_once(config, world_size()), plan_settings(training)


def test_each_process_has_an_equal_part_of_rates_and_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = ("reward.concurrency=64", "reward.rpm=8", "reward.max_usd=2000")
    assert told(*settings)[1].per_minute == 8
    monkeypatch.setenv("WORLD_SIZE", "16")
    at_once, each = told(*settings)
    assert (at_once, each.per_minute, each.processes) == (4, 0.5, 16)
    assert each.max_usd == 2000  # of all; PlanAnswerer takes its part
    assert told("reward.concurrency=3")[0] == 1


def test_processes_together_spend_no_more_than_the_limit(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    settings = PlanSettings(max_usd=Decimal("0.06"), processes=3, log_dir=tmp_path / "ledger")
    items = [RewardItem("toy", f"train-{n}", SOLVE) for n in range(4)]
    made: list[int] = []
    for rank in range(3):
        answer = PlanAnswerer(spec, read_book(spec.prices), replace(settings, rank=rank))
        outcomes = rewarded(answer, train(Toy()), items)
        made.append([one.status.value for one in outcomes].count("scored"))
        assert answer.usd <= Decimal("0.06")
    assert made == [2, 1, 1]  # a cent a call; one that begins late has its part of what is left
    assert len(calls(log)) == 4


def test_what_is_left_is_divided_anew(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    answer = PlanAnswerer(
        spec, read_book(spec.prices), PlanSettings(max_usd=Decimal("0.04"), processes=2)
    )
    items = [RewardItem("toy", f"train-{n}", SOLVE) for n in range(2)]
    rewarded(answer, train(Toy()), items[:1])
    answer.allow(Decimal("0.03"))
    outcomes = rewarded(answer, train(Toy()), items)
    assert [one.status.value for one in outcomes] == ["scored", "scored"]
    assert answer.usd == Decimal("0.03")


def sharded(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", stage)


def test_what_a_launcher_divides_is_read_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_config("paper-7b")
    assert sharding(config) == ""
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    assert sharding(config) == "fsdp"
    sharded(monkeypatch, "2")
    assert sharding(config) == "zero"
    sharded(monkeypatch, "3")
    assert sharding(config) == "zero3"


def test_a_warm_start_is_refused_where_the_model_is_divided(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    warm = read_config("paper-7b", ["warm_start.kind=random-plans"])
    refuse_sharding(warm)
    sharded(monkeypatch, "3")
    refuse_sharding(read_config("paper-7b"))
    with pytest.raises(UserError, match=r"in one process first.* --set model.path=OUT/start"):
        refuse_sharding(warm)
    monkeypatch.delenv("ACCELERATE_USE_DEEPSPEED")
    refuse_sharding(warm)
    file = tmp_path / "ds.json"
    file.write_text('{"zero_optimization": {"stage": 3}}')
    with pytest.raises(UserError, match="is not possible if DeepSpeed ZeRO-3 divides the model"):
        refuse_sharding(
            read_config("paper-7b", ["warm_start.kind=random-plans", f"grpo.deepspeed={file}"])
        )


def test_later_rounds_are_refused_where_the_model_is_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = ["recursion.share=0.5", "grpo.scale_rewards=batch"]
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(UserError, match=r"FSDP divides the model\. .* launch it with ddp.yaml"):
        refuse_sharding(read_config("paper-7b", settings))


def test_adapters_are_refused_where_nobody_could_merge_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_sharding(read_config("small-gpu"))
    sharded(monkeypatch, "3")
    with pytest.raises(UserError, match=r"adapters are merged .* Launch it with ddp.yaml"):
        refuse_sharding(read_config("small-gpu"))


def test_weights_that_are_trained_are_float32_unless_somebody_keeps_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert weight_dtype(read_config("paper-7b")) == "float32"
    assert weight_dtype(read_config("practice-cpu")) == "float32"
    assert weight_dtype(read_config("small-gpu")) == "bfloat16"  # adapters
    with pytest.raises(UserError, match=r"small updates would be rounded away\. Leave it out"):
        weight_dtype(read_config("paper-7b", ["grpo.model_init_kwargs.dtype=bfloat16"]))
    sharded(monkeypatch, "3")
    assert weight_dtype(read_config("paper-7b")) == "bfloat16"
