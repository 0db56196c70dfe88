"""What a training would take, against arithmetic by hand on one small configuration."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.training.config import Lora, TrainingConfig, read_config
from podium.conductor.training.grpo_options import refuse_unready_machine
from podium.conductor.training.job import TrainingJob, find_job
from podium.conductor.training.training_estimate import (
    LAUNCH_S,
    DeviceBatch,
    DeviceMemory,
    ModelShape,
    estimate_text,
    formula_seconds,
    hours_text,
    memory_of,
    plan_totals,
    shape_of,
    warm_memory,
)
from podium.harness.errors import UserError
from tests.conductor.training.tiny_training import tiny_config

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
    layers, logits = 2 * 4 * 600 * 64 + 34 * 600 * 64, 3 * 4 * 4 * 100 * 512
    assert round(whole.activations * 1e9) == layers + logits
    assert round(whole.kv_cache * 1e9) == 2 * 2 * 32 * 2 * 16 * 150


def test_adapters_keep_states_of_their_own_few_weights_only(training: TrainingJob) -> None:
    config = training.config.model_copy(update={"lora": Lora(r=4)})
    shape, few = shape_of(config), 2 * 4 * (2 * 128 + 2 * 96 + 3 * 192)
    assert shape is not None
    assert in_bytes(memory_of(shape, BATCH, config)) == (4 * WEIGHTS + 4 * few, 4 * few, 8 * few, 0)


def test_calls_and_dollars_are_those_of_every_plan(training: TrainingJob) -> None:
    found, plans = plan_totals(training), 4 * 16 + 3 * 6
    assert (found.plans, found.least.calls, found.most.calls) == (plans, plans, 5 * plans)
    texts = [q.text.encode() for q in training.splits["practice-integer"].questions.values()]
    asked = sum(map(len, texts)) // len(texts) // 4
    assert found.least.usd == plans * Decimal(asked + 100 * 2) / 10**6
    assert found.usual.usd == plans * Decimal(3 * asked + 500 * (1 + 2) + 3 * 500 * 2) / 10**6
    assert found.most.usd == plans * Decimal(5 * asked + 1000 * 10 + 5 * 1000 * 2) / 10**6


def test_a_recursive_training_plans_first_rounds_beforehand_and_validates_twice() -> None:
    settings = ("model.path=anywhere", "validation.questions=3", "grpo.max_steps=5")
    totals = plan_totals(made(read_config("practice-cpu-recursive", settings)))
    assert totals.plans == 5 * 128 + round(0.5 * 5 * 16) + 12 + 2 * (2 * 12)


def shape(training: TrainingJob) -> ModelShape:
    found = shape_of(training.config)
    assert found is not None
    return found


def test_seconds_on_a_gpu_are_launches_calls_and_operations(training: TrainingJob) -> None:
    found = formula_seconds(training, BATCH, shape(training), 1)
    assert found.writing == pytest.approx(100 * 2 * LAUNCH_S)  # positions, layers
    assert found.rewards == pytest.approx(16 / 8 * 3 * 10)
    computed = 8 * WEIGHTS * 16 * 100 / 0.30 / 989e12
    assert found.update == pytest.approx(3 * 4 * 2 * LAUNCH_S + computed)
    assert found.validation == pytest.approx(100 * 2 * LAUNCH_S + 3 * 10)
    step = found.writing + found.rewards + found.update
    hours = (4 * step + 3 * found.validation) / 3600
    assert found.hours(training.config) == pytest.approx(hours)
    said = hours_text(training, BATCH)
    assert said.startswith(f"{hours:.3g} on 1 H100, ")
    assert "60.3 s a step: writing 0.307, rewards 60, updates 0.0368; a validation 30.3 s" in said
    assert "an estimate, not measured here. 1.5 ms of launches a layer and pass" in said


@pytest.mark.parametrize(
    ("settings", "plans", "seconds"),
    [
        pytest.param(
            ("grpo.max_completion_length=128", "grpo.generation_batch_size=256"), 32, 10.2, id="all"
        ),
        pytest.param(
            ("grpo.max_completion_length=512", "grpo.generation_batch_size=128", "lora.r=32"),
            4,
            14.7 + 71.2 / 3,  # adapters are merged by now, which was a third of a position
            id="adapters",
        ),
    ],
)
def test_steps_that_were_timed_on_an_h100_are_estimated_within_a_factor_of_one_and_a_half(
    training: TrainingJob, settings: tuple[str, ...], plans: int, seconds: float
) -> None:
    """SmolLM2-135M on rehearsal workers (docs/experiments/speed.md)."""
    more = (*settings, f"grpo.per_device_train_batch_size={plans}", "pool.name=rehearsal")
    job = made(read_config("practice-cpu", ("run.device=gpu", "grpo.num_generations=8", *more)))
    smollm = ModelShape(576, 1536, 30, 9, 3, 49152)
    most = int(job.config.grpo["max_completion_length"])
    found = formula_seconds(job, DeviceBatch(plans, 0, 400, most), smollm, 1)
    said = found.writing + found.rewards + found.update
    assert seconds / 1.5 < said < seconds * 1.5


def test_a_warm_start_learns_all_weights_and_scores_whole_prompts(training: TrainingJob) -> None:
    warm = training.config.warm_start.model_copy(update={"batch": 10})
    config = training.config.model_copy(update={"warm_start": warm, "lora": Lora(r=4)})
    found = warm_memory(shape(training), BATCH, config)
    assert in_bytes(found) == (6 * WEIGHTS, 4 * WEIGHTS, 8 * WEIGHTS, 0)
    tokens = 10 * (50 + 50)
    assert round(found.activations * 1e9) == 2 * 34 * tokens * 64 + 3 * 4 * tokens * 512


def test_a_model_that_one_card_does_not_hold_is_told_for_two_and_more() -> None:
    said = hours_text(made(read_config("paper-7b-random")), BATCH)
    assert said.split(" ", 1)[1].startswith("on 2 H100, ")
    assert "(vLLM decoding)" in said
    assert said.endswith("practice programs 14.5 ms a plan")


def test_hours_of_a_practice_training_are_those_of_the_released_runs() -> None:
    config = read_config("practice-cpu")
    said = hours_text(unprobed(config), None)
    assert "measured on the released runs of this configuration (3 seeds" in said
    assert "2 CPU cores" in said
    other = unprobed(config.model_copy(update={"name": "mine"}))
    assert hours_text(other, None).startswith("unknown until it is measured: install '.[train]'")


def unprobed(config: TrainingConfig) -> TrainingJob:
    """Return a training that no probe is made for, where there is torch too: it goes on."""
    return replace(made(config), resume=True)


def there_is_torch(config: TrainingConfig) -> bool:
    try:
        refuse_unready_machine(config)
    except UserError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs
def test_a_training_that_nobody_timed_is_probed_and_its_steps_take_about_as_long(
    tmp_path: Path,
) -> None:
    """Not by the clock, which others share: by what the probe says of lengths, and its parts."""
    config = read_config(str(tiny_config(tmp_path)))
    if not there_is_torch(config):
        pytest.skip("needs torch: pip install '.[train]'")
    said = hours_text(made(config, tmp_path / "none"), None)
    assert "by a probe of" in said
    assert "a position of 16 plans" in said
    assert re.search(r"s a step: writing [\d.e-]+, rewards [\d.e-]+, updates [\d.e-]+; warm", said)
    assert not (tmp_path / "none").exists()


def test_steps_that_a_folder_has_measured_count_most(training: TrainingJob) -> None:
    training.out.mkdir()
    (training.out / "metrics.jsonl").write_text('{"step": 1, "seconds": 1800}\n')
    assert hours_text(training, BATCH) == "2.00, from the 1 steps measured in this folder"


def test_a_dry_run_of_several_processes_says_what_each_may_do(
    training: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = training.config
    reward = config.reward.model_copy(update={"max_usd": Decimal(2000), "rpm": 8})
    monkeypatch.setenv("WORLD_SIZE", "4")
    said = estimate_text(made(config.model_copy(update={"reward": reward})))
    assert "limit: stops before $2,000, spent by all processes together" in said
    assert (
        "each of 4 processes: 2 plans at once, 2 calls of a worker a minute, $500.00, divided "
        "again at every step" in said
    )
    assert "on 4 H100 (" in said
    assert "hours at least: 0.17, because each worker is called at most 8 times a minute" in said
