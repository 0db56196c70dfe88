"""How long a training would take: measured in its folder or on the released runs, or by a formula.

The formula counts what a GPU computes: 2 operations a weight for a token that is written, and for
one that is learnt from 6, or 8 where layers are computed again; adapters save the 2 of the weights'
own gradients. What share of a card's speed that reaches is assumed, as is how long a worker takes,
and what is assumed is printed. Not here: memory (memory.py), calls and dollars (estimate.py).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from conductor.checkpoint import RELEASED
from conductor.training.config import TrainingConfig
from conductor.training.folder import MANIFEST, METRICS, config_of, read_lines, world_size
from conductor.training.job import Training
from conductor.training.memory import Batch, shape_of
from conductor.training.settings import batches
from conductor.training.together import at_once

HOUR_S = 3600.0

WHOLE = 18
"""Bytes that a trained weight takes on one GPU (memory.py)."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What the formula takes for granted; nothing of it was measured by us."""

    card: str = "H100"
    flops: float = 989e12
    """Operations a second in bf16, without sparsity: its data sheet."""
    memory: float = 80e9
    """Bytes of a card: a model that does not fit on one is told for two and more."""
    updating: float = 0.30
    """Share of that in updates."""
    by_vllm: float = 0.10
    """Share of that while plans are written."""
    by_transformers: float = 0.01
    call_s: float = 10.0
    """Seconds of a worker's reply."""
    steps: int = 3
    """Of a plan (arXiv 2512.04388, section 4.3)."""
    share: float = 0.5
    """Of its token limit that a plan takes."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a training computes and asks in all."""

    written: float
    """Tokens of plans."""
    learnt: float
    """Tokens of prompts and plans in updates."""
    taught: int
    """Plans of training that workers carry out; 0 where they take no time."""
    checked: int
    """Plans of validation that they carry out."""
    per_token: int
    """Operations a weight and token in updates."""


def work_of(training: Training, batch: Batch, assumed: Assumed) -> Work:
    """Return the work of a training on plans and prompts of a batch's lengths."""
    config, sizes = training.config, batches(training.config)
    plans = sizes["rows"] * sizes["group"]
    held_out = sum(len(exam.questions) for exam in training.held_out.values())
    checked = (1 + -(-sizes["steps"] // config.validation.every)) * held_out
    said = batch.completion * assumed.share
    asks = training.study is None and training.spec.label == "live"
    again = 2 if config.grpo.get("gradient_checkpointing", True) else 0
    return Work(
        written=(plans + checked) * said,
        learnt=plans * (batch.prompt + said) * int(config.grpo.get("num_iterations", 1)),
        taught=plans if asks else 0,
        checked=checked if asks else 0,
        per_token=(4 if config.lora else 6) + again,
    )


def gpu_hours(work: Work, weights: float, writing: float, assumed: Assumed) -> float:
    """Return the hours of one card: `writing` is the share of its speed while plans are written."""
    writes = 2 * weights * work.written / writing
    updates = work.per_token * weights * work.learnt / assumed.updating
    return (writes + updates) / assumed.flops / HOUR_S


def worker_hours(
    work: Work, config: TrainingConfig, processes: int, assumed: Assumed = Assumed()
) -> float:
    """Return the hours of waiting for workers; only the first process asks in validations."""
    steps = min(assumed.steps, config.form.max_steps)
    parts = at_once(config, processes)
    rounds = work.taught / (parts * processes) + work.checked / parts
    return rounds * steps * assumed.call_s / HOUR_S


def hours_text(training: Training, batch: Batch | None) -> str:
    """Say how long it takes, and on what that rests: `batch` has the lengths of a GPU's plans."""
    config, steps = training.config, batches(training.config)["steps"]
    here = _seconds(training.request.out / METRICS)
    if here:
        return (
            f"{fmean(here) * steps / HOUR_S:.2f} by the {len(here)} steps measured in this folder"
        )
    if config.run.device == "cpu":
        return _measured(config, steps)
    shape = shape_of(config)
    weights = shape.parameters if shape else (config.model.parameters or 0) * 1e9
    if not weights or batch is None:
        return "unknown before a first step is measured, for the model's size is not known here"
    return _estimated(training, batch, weights)


def _seconds(path: Path) -> list[float]:
    """Return the seconds of each step of a log, without validations."""
    return [line["seconds"] for line in read_lines(path) if line.get("seconds")]


def _measured(config: TrainingConfig, steps: int) -> str:
    """Say what released runs took, of this configuration or of another model as large."""
    runs = [(config_of(said), seconds) for said, seconds in _released()]
    same = [seconds for run, seconds in runs if run.name == config.name]
    if same:
        mean = fmean(one for seconds in same for one in seconds)
        return (
            f"{mean * steps / HOUR_S:.2f}, measured on the released runs of this configuration "
            f"({len(same)} seeds, {mean:.1f} s a step, 2 CPU cores); warm start and validations "
            "not counted"
        )
    wanted = _size(config)
    like = [(run, seconds) for run, seconds in runs if wanted and _size(run) == wanted]
    if not like or config.verdicts:
        return "unknown before a first step is measured: no released run is like it"
    a_plan = fmean(one / batches(run)["whole"] for run, seconds in like for one in seconds)
    a_step = a_plan * batches(config)["whole"]
    return (
        f"{a_step * steps / HOUR_S:.2f}, at the seconds a plan of {len(like)} released runs with a "
        f"model as large ({a_step:.1f} s a step, 2 CPU cores); warm start and validations not "
        "counted"
    )


def _released() -> list[tuple[dict[str, object], list[float]]]:
    """Return manifest and seconds of each released run."""
    folders = sorted(RELEASED.glob("*/log/*"))
    return [
        (json.loads((one / MANIFEST).read_text()), _seconds(one / METRICS))
        for one in folders
        if (one / MANIFEST).is_file()
    ]


def _size(config: TrainingConfig) -> tuple[int, int, int] | None:
    """Return what decides a small model's speed, whatever its vocabulary."""
    shape = shape_of(config)
    return (shape.hidden, shape.intermediate, shape.layers) if shape else None


def _estimated(training: Training, batch: Batch, weights: float) -> str:
    """Say what the formula comes to, with all that it assumes."""
    config, assumed = training.config, Assumed()
    work, vllm = work_of(training, batch, assumed), bool(config.grpo.get("use_vllm"))
    writing = assumed.by_vllm if vllm else assumed.by_transformers
    card = gpu_hours(work, weights, writing, assumed)
    whole = config.lora is not None or WHOLE * weights < assumed.memory
    numbers = (world_size(),) if world_size() > 1 else ((1, 2, 8) if whole else (2, 8))
    hours = [(n, card / n + worker_hours(work, config, n, assumed)) for n in numbers]
    on = ", ".join(f"{total:.3g} on {n} {assumed.card}" for n, total in hours)
    steps = min(assumed.steps, config.form.max_steps)
    workers = (
        f"workers {worker_hours(work, config, numbers[0], assumed):.3g} h at {assumed.call_s:g} s "
        f"a call, {steps} steps a plan, {config.reward.concurrency} plans at once"
        if work.taught
        else "workers that take no time"
    )
    return (
        f"{on}: an estimate, not measured. Assumed: {assumed.flops / 1e12:g} TFLOP/s a card; "
        f"{assumed.updating:.0%} of it in updates, {work.per_token} FLOP a weight and token; "
        f"{writing:.0%} in writing by {'vLLM' if vllm else 'transformers'}, 2; plans of "
        f"{batch.completion * assumed.share:g} tokens, prompts of {batch.prompt}; {workers}"
    )
