"""A short probe before a training: it times each phase, on the real model and batch.

Nothing is trained or saved, and no worker that costs money is called.
"""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are not installed in this environment.

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import torch

from podium.conductor.training import grpo_options, trainer
from podium.conductor.training.generation import sampled_ids
from podium.conductor.training.job import TrainingJob, TrainingRewards, make_rewards, open_box
from podium.conductor.training.model import chat_template, warm_start
from podium.conductor.training.step_seconds import StepSeconds, reward_seconds
from podium.conductor.training.train import make_trainer, memory_said, quiet, starting_model
from podium.conductor.training.training_rows import ShownRow, plan_corpus
from podium.harness.errors import UserError
from podium.harness.rewards.outcome import RewardItem
from podium.harness.rewards.trainers import run_in_loop

FEW = 4  # tokens generated, then again with STEADY more: the difference gives the rate
STEADY = 12
SCORED = 48  # random plans that are run and timed, after START plans that are not timed
START = 16
TAUGHT = 64  # drawn plans, as long as those of a policy after its warm start


@dataclass(slots=True)
class _Probe:
    """The model and the rows that a probe times, and each phase's peak memory."""

    job: TrainingJob
    model: Any
    tokenizer: Any
    shown: Sequence[ShownRow]
    peaks: dict[str, float] = field(default_factory=dict[str, float])  # GB on a GPU, by phase

    @contextmanager
    def phase(self, name: str) -> Iterator[Callable[[], float]]:
        """Time a phase: the yielded function returns the seconds so far."""
        gpu = torch.cuda.is_available()
        if gpu:
            torch.cuda.reset_peak_memory_stats()
        started = _now()
        yield lambda: _now() - started
        if gpu:
            self.peaks[name] = torch.cuda.max_memory_allocated() / 1e9


def probed_seconds(job: TrainingJob) -> StepSeconds | None:
    """Return the seconds of a training's phases, measured here; None if that is impossible."""
    if job.config.grpo.get("use_vllm"):
        return None
    if job.config.run.device == "cpu":
        torch.set_num_threads(job.config.run.threads)
    started = _now()
    with TemporaryDirectory() as folder, quiet(), open_box(job) as box:
        job = replace(job, out=Path(folder))
        try:
            with memory_said():
                probe = _loaded(job)
                rewards = make_rewards(job, box and box.box, None)
                return _measured(probe, rewards, started)
        except UserError:  # no model or memory: the caller uses a formula
            return None


def _loaded(job: TrainingJob) -> _Probe:
    dtype = "float32" if job.config.warm_start.kind != "none" else ""
    return _Probe(job, *starting_model(job, dtype))


def _measured(probe: _Probe, rewards: TrainingRewards, started: float) -> StepSeconds:
    job, config = probe.job, probe.job.config
    sizes, held_out = grpo_options.batch_sizes(config), len(job.validation_rows())
    warm = _warm_seconds(probe) if config.warm_start.kind != "none" else 0.0
    grpo = _trainer(probe, rewards)
    plans = _plans(probe)
    prefill, position, written = _writing_seconds(probe, grpo)
    lengths = [len(plan) for plan in plans or written]
    longest = min(max(lengths), grpo.max_completion_length)
    share = min(1.0, config.validation.batch / sizes["whole"])
    batches = -(-held_out // config.validation.batch)
    update = _update_seconds(probe, grpo, plans or written)
    scored = _reward_seconds(probe, rewards)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    peaks = "".join(f", {gb:.3g} GB {name}" for name, gb in probe.peaks.items())
    return StepSeconds(
        writing=prefill + longest * position,
        rewards=scored * sizes["whole"],
        update=update,
        warm=warm,
        validation=batches * share * (prefill + longest * position) + scored * held_out,
        probed=(
            f"a probe of {_now() - started:.0f} s here ({device}{peaks}; {position * 1000:.3g} ms "
            f"a position of {sizes['whole']} plans, {longest} positions, {fmean(lengths):.0f} "
            "tokens a plan)"
        ),
    )


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return monotonic()


def _warm_seconds(probe: _Probe) -> float:
    config, spent = probe.job.config, list[float]()
    for steps in (1, 2):  # the first includes one-time set-up
        few = config.warm_start.model_copy(update={"steps": steps})
        some = config.model_copy(update={"warm_start": few, "recursion": None})
        with probe.phase("in the warm start") as seconds:
            warm_start(some, probe.model, probe.tokenizer, probe.shown, probe.job.out)
            spent.append(seconds() / steps)
    dtype = getattr(torch, grpo_options.weight_dtype(config))
    probe.model = probe.model.to(dtype)
    return spent[-1]


def _trainer(probe: _Probe, rewards: TrainingRewards) -> Any:
    job, validator = probe.job, trainer.Validator(probe.job, rewards.validation, (), 1)
    callback = trainer.StepCallback(job, rewards, validator, str)
    args = grpo_options.grpo_config(job.config, job.out)
    trainer.freeze_parameters(probe.model, job.config.model.frozen)
    return make_trainer(callback, probe.model, probe.tokenizer, args, job.rows(1))


def _plans(probe: _Probe) -> list[list[int]]:
    """Return the tokens of plans that a warm start would teach; [] without a warm start."""
    if probe.job.config.warm_start.kind == "none":
        return []
    corpus, rng = plan_corpus(probe.job.config, probe.shown), Random(0)
    texts = [corpus.plan(row, rng) for row in rng.choices(probe.shown, k=TAUGHT)]
    end = probe.tokenizer.eos_token_id
    return [[*probe.tokenizer.encode(text, add_special_tokens=False), end] for text in texts]


def _prompts(probe: _Probe) -> list[list[int]]:
    sizes, template = grpo_options.batch_sizes(probe.job.config), chat_template(probe.tokenizer)
    texts = [
        template(probe.job.prompts.messages(row)) for row in probe.job.rows(sizes["questions"])
    ]
    ids = [probe.tokenizer.encode(text, add_special_tokens=False) for text in texts]
    return [prompt for prompt in ids for _ in range(sizes["group"])]


def _writing_seconds(probe: _Probe, grpo: Any) -> tuple[float, float, list[list[int]]]:
    """Return seconds to read all prompts, seconds per decoded position, and generated plans."""
    prompts, spent = _prompts(probe), dict[int, float]()

    def write(config: Any) -> list[list[int]]:
        with grpo.writing() as model:
            return sampled_ids(model, probe.tokenizer, prompts, config, None)

    # A full generation first: it records graphs and sizes caches.
    written = write(grpo.generation_config)
    for count in (FEW, FEW + STEADY):
        some = copy(grpo.generation_config)
        some.max_new_tokens = some.min_new_tokens = count
        with probe.phase("while plans are written") as seconds:
            write(some)
            spent[count] = seconds()
    position = max(0.0, spent[FEW + STEADY] - spent[FEW]) / STEADY
    return max(0.0, spent[FEW] - FEW * position), position, written


def _update_seconds(probe: _Probe, grpo: Any, plans: Sequence[Sequence[int]]) -> float:
    """Return the seconds of all updates that a training makes with one batch of plans."""
    sizes, each = grpo_options.batch_sizes(probe.job.config), grpo.args.per_device_train_batch_size
    grpo.create_optimizer()
    grpo.current_gradient_accumulation_steps = sizes["accumulate"]
    inputs, spent = _batch(probe, plans, each), list[float]()
    grpo.model.train()
    for _ in range(2):  # the first includes one-time set-up
        with probe.phase("in an update") as seconds:
            loss = grpo.compute_loss(
                grpo.model, inputs, num_items_in_batch=inputs["num_items_in_batch"]
            )
            grpo.accelerator.backward(loss)
            passed = seconds()
            grpo.optimizer.step()
            grpo.optimizer.zero_grad()
            spent = [passed, seconds() - passed]
    return sizes["parts"] * spent[0] + max(1, sizes["parts"] // sizes["accumulate"]) * spent[1]


def _batch(probe: _Probe, plans: Sequence[Sequence[int]], rows: int) -> dict[str, Any]:
    """Return a batch for TRL's loss, as wide as the longest prompt and the longest plan."""
    prompts, device = _prompts(probe), probe.model.device
    pick = Random(0)
    batch_prompts = [max(prompts, key=len), *pick.choices(prompts, k=rows)][:rows]
    batch_plans = [max(plans, key=len), *pick.choices(plans, k=rows)][:rows]

    def padded(some: Sequence[Sequence[int]], side: str) -> Any:
        ids = [list(row) for row in some]
        tensors = probe.tokenizer.pad({"input_ids": ids}, padding_side=side, return_tensors="pt")
        return tensors.to(device)

    prompt_batch, plan_batch = padded(batch_prompts, "left"), padded(batch_plans, "right")
    return {
        "prompt_ids": prompt_batch["input_ids"],
        "prompt_mask": prompt_batch["attention_mask"],
        "completion_ids": plan_batch["input_ids"],
        "completion_mask": plan_batch["attention_mask"],
        "advantages": torch.linspace(-1, 1, rows, device=device),
        "num_items_in_batch": plan_batch["attention_mask"].sum(),
    }


def _reward_seconds(probe: _Probe, rewards: TrainingRewards) -> float:
    """Return the seconds of one plan's reward: estimated for live workers, else measured."""
    job = probe.job
    if job.spec.label == "live" and not job.verdicts:
        plans = grpo_options.batch_sizes(job.config)["whole"]
        return reward_seconds(job, plans) / plans
    corpus, rng = plan_corpus(job.config, probe.shown), Random(1)
    group = grpo_options.batch_sizes(job.config)["group"]  # plans of one question share grades
    entries = [entry for entry in rng.choices(probe.shown, k=START + SCORED) for _ in range(group)]
    items = [
        RewardItem(row.suite, row.question, corpus.plan(entry, rng), row.epoch, n, row.workers)
        for n, entry in enumerate(entries[: START + SCORED])
        if (row := entry.row)
    ]
    run_in_loop(rewards.training.score(items[:START]))
    started = monotonic()
    run_in_loop(rewards.training.score(items[START:]))
    return (monotonic() - started) / SCORED
