"""Estimates of a training before it begins: memory, worker calls, dollars, hours."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Literal

from podium.conductor.checkpoint import RELEASED
from podium.conductor.profile_policy import WEIGHTS
from podium.conductor.training.config import Lora, TrainingConfig
from podium.conductor.training.grpo_options import (
    batch_sizes,
    limits_text,
    refuse_unready_machine,
    weight_dtype,
    world_size,
)
from podium.conductor.training.job import TrainingJob, refuse_missing_folder
from podium.conductor.training.run_folder import (
    MANIFEST,
    METRICS,
    config_of,
    read_lines,
    read_manifest,
)
from podium.conductor.training.step_seconds import (
    CALL_S,
    HOUR_S,
    REHEARSED_S,
    USUAL_STEPS,
    StepSeconds,
    reward_seconds,
)
from podium.harness.errors import UserError
from podium.harness.run.forecast import (
    NO_CALLS,
    UNKNOWN_CALL,
    CallTotals,
    Estimator,
    PastRuns,
    by_cost,
    chained_calls,
    mean_of,
)

GB = 1e9

# --- memory -------------------------------------------------------------------------------------
#
# Bytes per trained weight, with Adam: on a CPU 16 (float32 weights, gradients, two moments). On one
# GPU 18, because bf16 uses copies of the float32 weights; on several 22, because DDP's buckets hold
# the gradients a second time. With DeepSpeed ZeRO-3, 2 + 2 + 12, divided by the number of devices
# (arXiv 1910.02054, section 3.1). Activations: 34 bytes per token, layer and hidden unit in 16
# bits, or 2 with gradient checkpointing (arXiv 2205.05198, section 4, without its attention term,
# because attention is fused).


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a decoder-only transformer (language model)."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    tied: bool = True

    @property
    def kv(self) -> int:
        """Width of a layer's keys, and of its values."""
        return self.hidden // self.heads * self.kv_heads

    @property
    def parameters(self) -> int:
        """Number of weights of a Qwen2 model, with biases (query, key, value) and norms."""
        h, kv = self.hidden, self.kv
        layer = 2 * h * h + 2 * h * kv + h + 2 * kv + 3 * h * self.intermediate + 2 * h
        return self.vocab * h * (1 if self.tied else 2) + self.layers * layer + h

    def lora(self, rank: int) -> int:
        """Number of weights of LoRA adapters on every linear layer."""
        h, kv, i = self.hidden, self.kv, self.intermediate
        ends = 2 * (h + h) + 2 * (h + kv) + 3 * (h + i)
        return self.layers * rank * ends


SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
PUBLISHED = {
    "SmolLM2-135M": ModelShape(576, 1536, 30, 9, 3, 49152),
    "Qwen2.5-0.5B": ModelShape(896, 4864, 24, 14, 2, 151936),
    "Qwen2.5-1.5B": ModelShape(1536, 8960, 28, 12, 2, 151936),
    "Qwen2.5-3B": ModelShape(2048, 11008, 36, 16, 2, 151936),
    "Qwen2.5-7B": ModelShape(3584, 18944, 28, 28, 4, 152064, tied=False),
}


def shape_of(config: TrainingConfig) -> ModelShape | None:
    """Return the sizes of the model to train; None if they are unknown before it is loaded."""
    size = config.model.from_scratch
    if size:
        rows = max(size.vocab, size.embeddings or 0)
        sizes = (size.hidden, size.intermediate, size.layers, size.heads, size.kv_heads)
        return ModelShape(*sizes, rows, size.tied)
    for folder in (RELEASED / config.model.path, Path(config.model.path)):
        if (folder / "config.json").is_file():
            data = json.loads((folder / "config.json").read_text())
            if not data.keys() >= {*SIZES, "vocab_size"}:
                return None
            kv_heads = data.get("num_key_value_heads") or data["num_attention_heads"]
            vocab, tied = data["vocab_size"], bool(data.get("tie_word_embeddings"))
            hidden, inner, layers, heads = (data[name] for name in SIZES)
            return ModelShape(hidden, inner, layers, heads, kv_heads, vocab, tied)
    return PUBLISHED.get(config.model.path.rpartition("/")[2].removesuffix("-Instruct"))


@dataclass(frozen=True, slots=True)
class DeviceBatch:
    """How many plans and tokens one device (a GPU, or the machine) processes at once."""

    plans: int  # plans in one pass of an update
    written: int  # plans generated together
    prompt: int  # tokens of a prompt, estimated
    completion: int  # maximum tokens of a plan


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Gigabytes (1e9 bytes) that a training needs on each device; `host`: in main memory."""

    weights: float
    gradients: float
    optimiser: float
    activations: float
    kv_cache: float
    host: float = 0.0

    @property
    def update(self) -> float:
        """Maximum gigabytes of a device while weights are updated."""
        return self.weights + self.gradients + self.optimiser + self.activations


Spread = tuple[int, Literal["whole", "zero3", "offload"]]
"""Number of devices, and layout of the model on them. `whole`: a full copy on each device; `zero3`:
divided by DeepSpeed ZeRO-3; `offload`: divided, with the optimiser's states in main memory."""


def memory_of(
    shape: ModelShape, batch: DeviceBatch, config: TrainingConfig, spread: Spread = (1, "whole")
) -> DeviceMemory:
    """Estimate each device's memory in a training of all weights, or of LoRA adapters if set."""
    (devices, way), size, gpu = spread, shape.parameters, config.run.device == "gpu"
    wide, buckets = (2 if gpu else 4), 2 if gpu and way == "whole" and devices > 1 else 1
    if config.lora:
        few = shape.lora(config.lora.r)
        # Twice: plans are generated by copies of the weights, with merged adapters.
        states = 2 * (2 if gpu else 4) * size + 4 * few, 4 * buckets * few, 8 * few
    elif way == "whole":
        states = (6 if gpu else 4) * size, 4 * buckets * size, 8 * size
    else:
        states = 2 * size, 2 * size, 12 * size
    divisor = GB if way == "whole" else GB * devices
    tokens = batch.plans * (batch.prompt + batch.completion)
    stream = 2 if config.lora and gpu else 4  # activations between layers have the weights' type
    full, inputs = 34 * wide / 2 * tokens * shape.hidden, stream * tokens * shape.hidden
    again = gpu and config.grpo.get("gradient_checkpointing", True)
    activations = shape.layers * inputs + full if again else shape.layers * full
    logits = 3 * 4 * batch.plans * batch.completion * shape.vocab  # float32, kept about three times
    written = batch.written * (batch.prompt + batch.completion)
    return DeviceMemory(
        weights=states[0] / divisor,
        gradients=states[1] / divisor,
        optimiser=0.0 if way == "offload" else states[2] / divisor,
        activations=(activations + logits) / GB,
        kv_cache=2 * wide * shape.kv * shape.layers * written / GB,
        host=states[2] / GB if way == "offload" else 0.0,
    )


def warm_memory(shape: ModelShape, batch: DeviceBatch, config: TrainingConfig) -> DeviceMemory:
    """Estimate the memory of a warm start of all weights, without gradient checkpointing."""
    plain = {**config.grpo, "gradient_checkpointing": False}
    full_config = config.model_copy(update={"lora": None, "grpo": plain})
    width = batch.prompt + round(batch.completion * SHARE)  # prompts have logits, too
    return memory_of(shape, DeviceBatch(config.warm_start.batch, 0, 0, width), full_config)


# --- hours --------------------------------------------------------------------------------------
#
# From steps measured in the training's folder; else by a probe (probe.py), if its device and
# PyTorch are available; else from the released runs or by a formula. In the formula, each decoding
# position and each pass of an update launches kernels in every layer, even for few rows: small
# models take this minimum. For larger ones operations count: per weight 2 for a generated token, 6
# for a token in an update, or 8 with gradient checkpointing; adapters need 2 fewer.

WHOLE = 18  # bytes that a trained weight takes on one GPU

# Measured on one H100 with a model of 30 layers (reference runs of 2026-11-22; docs/experiments):
LAUNCH_S = 0.046 / 30  # seconds of launches per layer, in a decoding position or an update pass
ADAPTED = 3  # factor on the launches of an update if the model has adapters
PASSES = 3  # passes of an update, forward and backward

# Assumed, not measured by us:
CARD = "H100"
FLOPS = 989e12  # operations per second in bf16, without sparsity, from its data sheet
CARD_BYTES = 80e9  # memory of a GPU; a model that needs more is estimated on two or more
UPDATING = 0.30  # share of FLOPS reached in updates
WRITING = 0.10  # share of FLOPS reached while many plans are written
VLLM_LAUNCH_S = 0.3e-3  # seconds per position and layer with vLLM's CUDA graphs
SHARE = 0.5  # mean length of a plan, as a share of its token limit


def formula_seconds(
    training: TrainingJob, batch: DeviceBatch, shape: ModelShape, cards: int
) -> StepSeconds:
    """Estimate the seconds of each phase of a training on `cards` GPUs, by a formula."""
    config, sizes = training.config, batch_sizes(training.config)
    weights, layers, plan_tokens = shape.parameters, shape.layers, batch.completion * SHARE
    launch = VLLM_LAUNCH_S if config.grpo.get("use_vllm") else LAUNCH_S

    def written(rows: float) -> float:  # the longest of many plans reaches the limit
        computes = 2 * weights * rows / (WRITING * FLOPS)
        return batch.completion * max(layers * launch, computes)

    def learnt(rows: float, each: int, flops: int, adapted: int) -> float:
        passes, tokens = PASSES * -(-rows // each), rows * (batch.prompt + plan_tokens)
        return passes * layers * LAUNCH_S * adapted + flops * weights * tokens / UPDATING / FLOPS

    plans = sizes["whole"] * int(config.grpo.get("num_iterations", 1))
    again = 2 if config.grpo.get("gradient_checkpointing", True) else 0
    held_out, warm = len(training.validation_rows()), config.warm_start.batch
    return StepSeconds(
        writing=written(sizes["whole"] / cards),
        rewards=reward_seconds(training, sizes["whole"]),
        update=learnt(
            plans / cards,
            batch.plans,
            (4 if config.lora else 6) + again,
            ADAPTED if config.lora else 1,
        ),
        warm=learnt(warm, warm, 6, 1),
        validation=-(-held_out // (config.validation.batch * cards))
        * written(min(held_out, config.validation.batch))
        + reward_seconds(training, held_out),
    )


def hours_text(training: TrainingJob, batch: DeviceBatch | None) -> str:
    """Return a training's hours as text, with their source (measured, probed or estimated)."""
    config, steps = training.config, batch_sizes(training.config)["steps"]
    if here := _step_seconds(training.out):
        hours = fmean(here) * steps / HOUR_S
        return f"{hours:.2f}, from the {len(here)} steps measured in this folder"
    if config.model.profiled:
        return _released(config, steps)
    if seconds := _probed(training):
        return f"{seconds.hours(config):.3g} by {seconds.probed}: {seconds.text(config)}"
    if config.run.device == "cpu":
        return _released(config, steps)
    shape = shape_of(config)
    if not shape or batch is None:
        return "unknown until a first step is measured, because the model's size is not known here"
    return _estimated(training, batch, shape)


def _probed(training: TrainingJob) -> StepSeconds | None:
    if world_size() > 1 or training.resume:
        return None
    try:
        refuse_unready_machine(training.config)
    except UserError:
        return None
    from podium.conductor.training.probe import probed_seconds

    return probed_seconds(training)


def _step_seconds(run: Path) -> list[float]:
    return [line["seconds"] for line in read_lines(run / METRICS) if line.get("seconds")]


def _released(config: TrainingConfig, steps: int) -> str:
    runs = [
        (config_of(read_manifest(path.parent)), _step_seconds(path.parent))
        for path in sorted(RELEASED.glob(f"*/log/*/{MANIFEST}"))
    ]
    same = [seconds for run, seconds in runs if run.name == config.name]
    if not same:
        return "unknown until it is measured: install '.[train]', and a dry run will measure it"
    mean = fmean(chain.from_iterable(same))
    return (
        f"{mean * steps / HOUR_S:.2f}, measured on the released runs of this configuration "
        f"({len(same)} seeds, {mean:.1f} s a step, 2 CPU cores); warm start and validations "
        "not counted"
    )


def _estimated(training: TrainingJob, batch: DeviceBatch, shape: ModelShape) -> str:
    config, writer = training.config, "vLLM" if training.config.grpo.get("use_vllm") else "eager"
    fits_one = config.lora is not None or WHOLE * shape.parameters < CARD_BYTES
    numbers = (world_size(),) if world_size() > 1 else ((1, 2, 8) if fits_one else (2, 8))
    times = {n: formula_seconds(training, batch, shape, n) for n in numbers}
    on = ", ".join(f"{step.hours(config):.3g} on {n} {CARD}" for n, step in times.items())
    workers = (
        f"workers {CALL_S:g} s a call, {min(USUAL_STEPS, config.form.max_steps)} steps a plan, "
        f"{config.reward.concurrency} plans at once"
        if training.spec.label == "live" and not training.verdicts
        else f"practice programs {REHEARSED_S * 1000:.3g} ms a plan"
    )
    return (
        f"{on} ({times[numbers[0]].text(config)}): an estimate, not measured here. "
        f"{LAUNCH_S * 1000:.2g} ms of launches a layer and pass ({writer} decoding), as observed "
        f"once on an H100; assumed: {FLOPS / 1e12:g} TFLOP/s a card, {UPDATING:.0%} of it in "
        f"updates, plans of up to {batch.completion} tokens, prompts of {batch.prompt}; {workers}"
    )


BYTES_PER_TOKEN = 4  # of English text, roughly; more with a tokenizer trained on these texts
SHORT = 100  # tokens of a short reply


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """The number of plans in a training, and the totals of the worker calls that run the plans."""

    plans: int  # in training and validation
    others: int = 0  # maximum plans that resampling may add
    least: CallTotals = NO_CALLS  # one step a plan, the cheapest worker, short replies
    usual: CallTotals = NO_CALLS  # three steps, all workers alike, replies of half their limit
    most: CallTotals = NO_CALLS  # all steps, the dearest worker, full replies, read by later steps


def plan_totals(training: TrainingJob) -> PlanTotals:
    """Return how many plans a training runs, and their calls at the prices of its price book."""
    config, sizes = training.config, batch_sizes(training.config)
    held_out, steps = len(training.validation_rows()), config.form.max_steps
    plans = sizes["generations"] * sizes["whole"] + sizes["validations"] * held_out
    if config.recursion:  # first plans, and a later round of each held-out question
        rounds = 1 + sizes["validations"]
        plans += round(config.recursion.share * sizes["rows"]) + rounds * held_out
    if profiled := config.model.profiled:
        tried = len(training.spec.names) * len(training.splits) * profiled.questions
        plans += tried + profiled.searched * sizes["group"]
    extra = sizes["generations"] * sizes["whole"] * config.reward.resample
    if training.verdicts:
        return PlanTotals(plans, extra)
    texts = [q.text for split in training.splits.values() for q in split.questions.values()]
    tokens = sum(len(text.encode()) for text in texts) // max(1, len(texts)) // BYTES_PER_TOKEN
    names = training.spec.names
    limits = [training.spec.worker(name).config.max_tokens for name in names]

    def taken(steps: int, lengths: Sequence[int | None]) -> list[CallTotals]:
        """Return each worker's totals of a plan that it does alone; `lengths`: tokens per reply."""
        totals = {
            ("", name): CallTotals(Decimal(1), output=Decimal(tokens))
            for name, tokens in zip(names, lengths, strict=True)
            if tokens is not None
        }
        estimator = Estimator(
            training.spec, training.book, PastRuns(workers=totals), "", reasoning=0
        )
        return [estimator.expected(chained_calls(name, tokens, steps)) for name in names]

    short = [call for call in taken(1, [SHORT] * len(names)) if call.usd is not None]
    half = taken(min(USUAL_STEPS, steps), [limit and limit // 2 for limit in limits])
    return PlanTotals(
        plans,
        extra,
        least=min(short, key=by_cost, default=UNKNOWN_CALL).times(plans),
        usual=mean_of(half).times(plans),
        most=max(taken(steps, limits), key=by_cost).times(plans + extra),
    )


def estimate_text(training: TrainingJob) -> str:
    """Return a training's estimates (plans, dollars, memory, hours) as lines of text to print."""
    config, sizes, totals = training.config, batch_sizes(training.config), plan_totals(training)
    weight_dtype(config)  # like the next call, raises errors that the training would raise
    refuse_missing_folder(config)
    data = ", ".join(
        f"{name} {len(split.questions)} + {len(training.held_out[name].questions)} held out"
        for name, split in training.splits.items()
    )
    fits = batch_of(training, world_size()) if config.run.device == "gpu" else None
    extra = f", and up to {totals.others:,} for questions that are replaced"
    rows = [
        f"{config.name}: {sizes['steps']} steps of {sizes['questions']} questions x "
        f"{sizes['group']} plans on {training.spec.label} pool {training.spec.name}",
        f"data: {data}",
        f"plans: {totals.plans:,} (training and validation){extra if totals.others else ''}",
        *_bill(training, totals),
        *_memory(training),
        f"hours: {hours_text(training, fits)}",
    ]
    rpm = config.reward.rpm
    if rpm is not None and not training.verdicts:
        least = int(totals.least.calls) / (rpm * len(training.spec.names)) / 60
        rows.append(
            f"hours at least: {least:.2f}, because each worker is called at most {rpm} times a "
            "minute"
        )
    return "\n".join(rows)


def _bill(training: TrainingJob, totals: PlanTotals) -> Iterator[str]:
    if training.verdicts:
        yield "worker calls: none, verdicts are recorded; nothing is spent"
        return
    steps, least, maximum = training.config.form.max_steps, totals.least, totals.most
    yield f"worker calls: {least.calls:,} to {maximum.calls:,}, one to {steps} a plan"
    yield (
        f"dollars at {training.book.name}: {_usd(least.usd)} (one step, cheapest worker, "
        f"{SHORT} tokens) to {_usd(maximum.usd)} (dearest worker, full replies, all steps); "
        f"{_usd(totals.usual.usd)} if all workers are called equally often, "
        f"{min(USUAL_STEPS, steps)} steps, half their token limit"
    )
    limit = training.max_usd
    if limit is None:
        yield "limit: none (--max-usd sets one)"
    else:
        yield f"limit: stops before ${limit:,}, spent by all processes together"
    if world_size() > 1:
        yield limits_text(training.config, limit, world_size())


def _usd(value: Decimal | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def batch_of(training: TrainingJob, devices: int) -> DeviceBatch:
    """Return each device's batch; prompts are assumed as long as the longest of 50 rows."""
    config, sizes = training.config, batch_sizes(training.config, devices)
    prompts = (training.prompts.shown(row).prompt for row in training.rows(50))
    longest = max(len(prompt.encode()) for prompt in prompts)
    return DeviceBatch(
        plans=int(config.grpo.get("per_device_train_batch_size", 8)),
        written=sizes["whole"] // devices,
        prompt=longest // BYTES_PER_TOKEN,
        completion=int(config.grpo.get("max_completion_length", 512)),
    )


def _memory(training: TrainingJob) -> Iterator[str]:
    config, shape = training.config, shape_of(training.config)
    if config.model.profiled:
        yield f"model: {WEIGHTS:,} weights; a training holds less than 1 GB"
        return
    if shape is None:
        yield f"memory: unknown, because the shape of {config.model.path!r} is not known here"
        return
    size, processes = shape.parameters, world_size()
    yield f"model: {size:,} weights" + (
        f", {shape.lora(config.lora.r):,} trained" if config.lora else ""
    )
    if config.run.device == "cpu":
        memory = memory_of(shape, batch_of(training, processes), config)
        yield _memory_line("memory, whole on this machine", memory)
        yield from _warm_line(training, shape)
        return
    lora = config.lora or Lora()
    adapters: tuple[Spread, str, Lora] = (1, "whole"), f"adapters of rank {lora.r}, one GPU", lora
    spreads = [(spread, f"all weights, {label}", None) for label, spread in SPREADS.items()]
    for spread, name, trained in (*spreads, adapters):
        with suppress(UserError):  # its batch is not divisible by that many devices
            batch = batch_of(training, spread[0])
            memory = memory_of(shape, batch, config.model_copy(update={"lora": trained}), spread)
            yield _memory_line(name, memory)
    yield from _warm_line(training, shape)
    share = config.grpo.get("vllm_gpu_memory_utilization", 0.3)
    if config.grpo.get("use_vllm"):
        yield f"vLLM: takes {share:.0%} of each GPU for weights and cache while plans are written"


def _warm_line(training: TrainingJob, shape: ModelShape) -> Iterator[str]:
    if training.config.warm_start.kind != "none":
        memory = warm_memory(shape, batch_of(training, world_size()), training.config)
        yield f"warm start, whole in one process: {memory.update:.3g} GB"


SPREADS: Mapping[str, Spread] = {
    "whole on one GPU": (1, "whole"),
    "whole on each of 2 (ddp.yaml)": (2, "whole"),
    "ZeRO-3 over 2, states on the host": (2, "offload"),
    "ZeRO-3 over 4": (4, "zero3"),
    "ZeRO-3 over 8": (8, "zero3"),
}


def _memory_line(name: str, memory: DeviceMemory) -> str:
    host = f", {memory.host:.1f} GB on the host" if memory.host else ""
    return (
        f"{name}: {memory.update:.3g} GB in an update ({memory.weights:.3g} weights, "
        f"{memory.gradients:.3g} gradients, {memory.optimiser:.3g} optimiser, "
        f"{memory.activations:.3g} activations), {memory.kv_cache:.3g} GB of cache for writing"
        f"{host}"
    )
