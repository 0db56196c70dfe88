"""What a training would take, against arithmetic by hand on one small configuration."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conductor.training.config import Lora, TrainingConfig, read_config
from conductor.training.estimate import (
    DeviceBatch,
    DeviceMemory,
    TrainingWork,
    calls_of,
    dollars_of,
    estimate_text,
    gpu_hours,
    hours_text,
    memory_of,
    shape_of,
    work_of,
    worker_hours,
)
from conductor.training.job import TrainingJob, find_job
from harness.cli.catalogue import controls, whole_catalogue

SMALL = """
[model.from_scratch]
hidden = 64
intermediate = 128
layers = 2
heads = 2
kv_heads = 1
vocab = 512
[pool]
name = "{folder}/pool.toml"
[suites]
names = ["practice-integer"]
train = 24
[grpo]
max_steps = 4
num_generations = 4
generation_batch_size = 16
per_device_train_batch_size = 4
max_completion_length = 100
[reward]
concurrency = 8
[validation]
every = 2
questions = 6
"""
POOL = """
label = "live"
prices = "{folder}/prices.toml"
[[workers]]
name = "only"
model = "acme/only"
config = {{ max_tokens = 1000 }}
"""
PRICES = """
date = "2026-01-01"
source = "made up for a test"
[usd_per_mtok."acme/only"]
input = "1"
output = "2"
"""

WEIGHTS = 107_072
"""512 x 64 of words, 64 of the last norm, and twice 37,120: 2 x 64 x 64 + 2 x 64 x 32 + 64 + 2 x 32
of attention, 3 x 64 x 128, and 2 x 64 of norms."""

BATCH = DeviceBatch(plans=4, written=16, prompt=50, completion=100)


@pytest.fixture
def training(tmp_path: Path) -> TrainingJob:
    for name, text in (("small", SMALL), ("pool", POOL), ("prices", PRICES)):
        (tmp_path / f"{name}.toml").write_text(text.format(folder=tmp_path))
    return made(read_config(str(tmp_path / "small.toml")), tmp_path / "run")


def made(config: TrainingConfig, out: Path = Path("none")) -> TrainingJob:
    return find_job(config, out, whole_catalogue(), controls().bare, dry=True)


def in_bytes(memory: DeviceMemory) -> tuple[int, ...]:
    parts = (memory.weights, memory.gradients, memory.optimiser, memory.host)
    return tuple(round(part * 1e9) for part in parts)


def test_memory_is_what_each_way_keeps_of_a_weight(training: TrainingJob) -> None:
    shape = shape_of(training.config)
    assert shape is not None
    assert shape.parameters == WEIGHTS

    def kept(devices: int, way: Any = "whole") -> tuple[int, ...]:
        return in_bytes(memory_of(shape, BATCH, training.config, (devices, way)))

    assert kept(1) == (6 * WEIGHTS, 4 * WEIGHTS, 8 * WEIGHTS, 0)
    assert kept(2) == (6 * WEIGHTS, 8 * WEIGHTS, 8 * WEIGHTS, 0)
    assert kept(4, "zero3") == (2 * WEIGHTS // 4, 2 * WEIGHTS // 4, 12 * WEIGHTS // 4, 0)
    assert kept(2, "offload") == (WEIGHTS, WEIGHTS, 0, 12 * WEIGHTS)
    whole = memory_of(shape, BATCH, training.config)
    layers, logits = 2 * 2 * 600 * 64 + 34 * 600 * 64, 3 * 4 * 4 * 100 * 512
    assert round(whole.activations * 1e9) == layers + logits
    assert round(whole.kv_cache * 1e9) == 2 * 2 * 32 * 2 * 16 * 150


def test_adapters_keep_states_of_their_own_few_weights_only(training: TrainingJob) -> None:
    config = training.config.model_copy(update={"lora": Lora(r=4)})
    shape, few = shape_of(config), 2 * 4 * (2 * 128 + 2 * 96 + 3 * 192)
    assert shape is not None
    assert in_bytes(memory_of(shape, BATCH, config)) == (2 * WEIGHTS + 4 * few, 4 * few, 8 * few, 0)


def test_calls_and_dollars_are_those_of_every_plan(training: TrainingJob) -> None:
    calls, plans = calls_of(training), 4 * 16 + 3 * 6
    assert (calls.plans, calls.least, calls.most) == (plans, plans, 5 * plans)
    texts = [q.text.encode() for q in training.splits["practice-integer"].questions.values()]
    asked = sum(map(len, texts)) // len(texts) // 4
    found = dollars_of(training, calls)
    assert found.least == plans * Decimal(asked + 100 * 2) / 10**6
    assert found.usual == plans * Decimal(3 * asked + 500 * (1 + 2) + 3 * 500 * 2) / 10**6
    assert found.most == plans * Decimal(5 * asked + 1000 * 10 + 5 * 1000 * 2) / 10**6


def test_a_recursive_training_plans_first_rounds_beforehand_and_validates_twice() -> None:
    settings = ("model.path=anywhere", "validation.questions=3", "grpo.max_steps=5")
    calls = calls_of(made(read_config("practice-cpu-recursive", settings)))
    assert calls.plans == 5 * 128 + round(0.5 * 5 * 16) + 12 + 2 * (2 * 12)


def test_hours_on_a_gpu_follow_from_tokens_and_calls(training: TrainingJob) -> None:
    work = work_of(training, BATCH)
    assert work == TrainingWork(
        written=82 * 50, learnt=64 * 100, taught=64, checked=18, per_token=8
    )
    writes, updates = 2 * WEIGHTS * 4100 / 0.01, 8 * WEIGHTS * 6400 / 0.30
    card = gpu_hours(work, WEIGHTS, 0.01)
    assert card == pytest.approx((writes + updates) / 989e12 / 3600)
    config = training.config
    assert worker_hours(work, config, 1) == pytest.approx((64 / 8 + 18 / 8) * 3 * 10 / 3600)
    assert worker_hours(work, config, 2) == pytest.approx((64 / 8 + 18 / 4) * 3 * 10 / 3600)
    said = hours_text(training, BATCH)
    assert said.startswith("0.0854 on 1 H100, 0.104 on 2 H100, ")
    assert "an estimate, not measured. Assumed: 989 TFLOP/s a card; 30% of it in updates" in said
    assert "1% in writing by transformers" in said


def test_a_model_that_one_card_does_not_hold_is_told_for_two_and_more() -> None:
    said = hours_text(made(read_config("paper-7b-random")), BATCH)
    assert said.split(" ", 1)[1].startswith("on 2 H100, ")
    assert "10% in writing by vLLM" in said
    assert said.endswith("workers that take no time")


def test_hours_of_a_practice_training_are_those_of_the_released_runs() -> None:
    said = hours_text(made(read_config("practice-cpu")), None)
    assert "measured on the released runs of this configuration (3 seeds" in said
    assert "2 CPU cores" in said
    half = read_config("practice-cpu-recursive", ["grpo.per_device_train_batch_size=64"])
    whole = hours_text(made(read_config("practice-cpu-recursive")), None)
    assert "at the seconds a plan of 6 released runs with a model as large" in whole
    ratio = float(whole.split("(")[1].split()[0]) / float(
        hours_text(made(half), None).split("(")[1].split()[0]
    )
    assert ratio == pytest.approx(2, rel=0.05)


def test_hours_of_a_training_that_nothing_released_is_like_are_unknown() -> None:
    config = read_config("practice-cpu", ["model.from_scratch.hidden=256"])
    other = config.model_copy(update={"name": "mine"})
    assert hours_text(made(other), None).startswith("unknown before a first step is measured")


def test_steps_that_a_folder_has_measured_count_most(training: TrainingJob) -> None:
    training.out.mkdir()
    (training.out / "metrics.jsonl").write_text('{"step": 1, "seconds": 1800}\n')
    assert hours_text(training, BATCH) == "2.00 by the 1 steps measured in this folder"


def test_a_dry_run_of_several_processes_says_what_each_may_do(
    training: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = training.config
    reward = config.reward.model_copy(update={"max_usd": Decimal(2000), "rpm": 8})
    monkeypatch.setenv("WORLD_SIZE", "4")
    said = estimate_text(made(config.model_copy(update={"reward": reward})))
    assert "limit: stops before $2,000, spent by all processes together" in said
    assert (
        "each of 4 processes: 2 plans at once, 2 calls of a worker a minute, $500.00, divided anew "
        "at every step" in said
    )
    assert "on 4 H100: an estimate, not measured" in said
    assert "hours at least: 0.17, for workers are asked 8 times a minute each" in said
