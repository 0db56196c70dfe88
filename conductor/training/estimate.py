"""What a training would take, before it begins: memory, worker calls, dollars, hours.

Calls are counted, memory and dollars computed from what the configuration says, and each figure
says on what it rests. What nobody can know beforehand is called unknown. Not here: the arithmetic
of memory (memory.py) and of hours (hours.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from conductor.training.checks import refuse_missing_folder
from conductor.training.config import Lora
from conductor.training.folder import world_size
from conductor.training.hours import hours_text
from conductor.training.job import Training
from conductor.training.memory import Batch, Memory, Shape, Spread, memory_of, shape_of
from conductor.training.rewarding import max_usd
from conductor.training.settings import batches, dtype
from conductor.training.together import limits_text
from harness.errors import UserError
from harness.prices.cost import cost
from harness.records import Usage

BYTES_PER_TOKEN = 4
"""Of English text, roughly; a tokenizer trained on the spot has more."""

SHORT = 100
"""Tokens of a short reply."""

USUAL_STEPS = 3
"""Steps of a plan on average (arXiv 2512.04388, section 4.3)."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Worker calls of a training."""

    plans: int
    """In training and validation."""
    least: int
    """One call a plan."""
    most: int
    others: int = 0
    """Plans that dynamic sampling may add at most."""


@dataclass(frozen=True, slots=True)
class Dollars:
    """Would-be dollars; None is unknown."""

    least: Decimal | None
    """One step a plan, the cheapest worker, short replies."""
    usual: Decimal | None
    """Three steps a plan, all workers alike, replies of half their limit."""
    most: Decimal | None
    """All steps a plan, the dearest worker, replies as long as allowed, all of them read again."""


def calls_of(training: Training) -> Calls:
    """Return how many plans are carried out, and the least and the most calls that they make."""
    config, sizes = training.config, batches(training.config)
    generations = sizes["rows"] // sizes["questions"]
    held_out = sum(len(exam.questions) for exam in training.held_out.values())
    validations = 1 + -(-sizes["steps"] // config.validation.every)
    plans = generations * sizes["whole"] + validations * held_out
    if config.recursion:  # first plans, and a later round of each question that is held out
        plans += round(config.recursion.share * sizes["rows"]) + (1 + validations) * held_out
    others = generations * sizes["whole"] * config.reward.resample
    if training.study:
        return Calls(plans, 0, 0, others)
    return Calls(plans, plans, (plans + others) * config.form.max_steps, others)


def dollars_of(training: Training, calls: Calls) -> Dollars:
    """Return what those plans would cost at the pool's price book."""
    asked = _question_tokens(training)
    steps = training.config.form.max_steps
    usual = min(USUAL_STEPS, steps)
    cheap = _least([_call(training, name, asked, SHORT) for name in training.spec.names])
    half = [_plan(training, name, asked, (usual, 0.5)) for name in training.spec.names]
    whole = [_plan(training, name, asked, (steps, 1.0)) for name in training.spec.names]
    return Dollars(
        least=None if cheap is None else cheap * calls.plans,
        usual=_times(_mean(half), calls.plans),
        most=_times(_greatest(whole), calls.plans + calls.others),
    )


def _question_tokens(training: Training) -> int:
    texts = [q.text for exam in training.exams.values() for q in exam.questions.values()]
    return sum(len(text.encode()) for text in texts) // max(1, len(texts)) // BYTES_PER_TOKEN


def _plan(training: Training, name: str, asked: int, plan: tuple[int, float]) -> Decimal | None:
    """Return the dollars of a chain of steps by one worker, each reading all before it."""
    steps, share = plan
    limit = training.spec.worker(name).config.max_tokens
    if limit is None:
        return None
    said = int(limit * share)
    costs = [_call(training, name, asked + step * said, said) for step in range(steps)]
    known = [one for one in costs if one is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _call(training: Training, name: str, asked: int, said: int) -> Decimal | None:
    price = training.book.price(training.spec.worker(name).price_ref)
    return None if price is None else cost(Usage(input=asked, output=said, reasoning=0), price)


def _least(values: Sequence[Decimal | None]) -> Decimal | None:
    return min((one for one in values if one is not None), default=None)


def _greatest(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [one for one in values if one is not None]
    return max(known) if known and len(known) == len(values) else None


def _mean(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [one for one in values if one is not None]
    return sum(known, Decimal(0)) / len(known) if known and len(known) == len(values) else None


def _times(value: Decimal | None, n: int) -> Decimal | None:
    return None if value is None else value * n


def estimate_text(training: Training) -> str:
    """Return the estimate as lines of text."""
    config, sizes, calls = training.config, batches(training.config), calls_of(training)
    dtype(config)  # refuses what a training would, and so does the next one
    refuse_missing_folder(config)
    said = [
        f"{config.name}: {sizes['steps']} steps of {sizes['questions']} questions x "
        f"{sizes['group']} plans on {training.spec.label} pool {training.spec.name}",
        f"data: {_data(training)}",
        f"plans: {calls.plans:,} (training and validation){_others(calls)}",
        *_bill(training, calls),
        *_memory(training),
        *_hours(training),
    ]
    return "\n".join(said)


def _others(calls: Calls) -> str:
    return f", and up to {calls.others:,} for questions that are replaced" if calls.others else ""


def _bill(training: Training, calls: Calls) -> Iterator[str]:
    """Yield what workers are asked and cost; recorded verdicts ask nobody."""
    if training.study:
        yield "worker calls: none, verdicts are recorded; nothing is spent"
        return
    most, dollars = training.config.form.max_steps, dollars_of(training, calls)
    yield f"worker calls: {calls.least:,} to {calls.most:,}, one to {most} a plan"
    yield (
        f"dollars at {training.book.name}: {_usd(dollars.least)} (one step, cheapest worker, "
        f"{SHORT} tokens) to {_usd(dollars.most)} (dearest worker, full replies, all steps); "
        f"{_usd(dollars.usual)} if all workers are asked alike, "
        f"{min(USUAL_STEPS, most)} steps, half their token limit"
    )
    yield f"limit: {_limit(training)}"
    yield from _parts(training)


def _data(training: Training) -> str:
    return ", ".join(
        f"{name} {len(exam.questions)} + {len(training.held_out[name].questions)} held out"
        for name, exam in training.exams.items()
    )


def _usd(value: Decimal | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def _limit(training: Training) -> str:
    most = max_usd(training)
    if most is None:
        return "none (--max-usd sets one)"
    return f"stops before ${most:,}, spent by all processes together"


def _parts(training: Training) -> Iterator[str]:
    """Yield what each process of several may do."""
    if world_size() > 1:
        yield limits_text(training.config, max_usd(training), world_size())


def _hours(training: Training) -> Iterator[str]:
    """Yield how long it takes; workers that are asked slowly bound it from below."""
    fits = batch_of(training, world_size()) if training.config.run.device == "gpu" else None
    yield f"hours: {hours_text(training, fits)}"
    rpm = training.config.reward.rpm
    if rpm is not None and not training.study:
        least = calls_of(training).least / (rpm * len(training.spec.names)) / 60
        yield f"hours at least: {least:.2f}, for workers are asked {rpm} times a minute each"


def batch_of(training: Training, devices: int) -> Batch:
    """Return what one device holds at once; prompts are as long as the longest of 50 of them."""
    config, sizes = training.config, batches(training.config, devices)
    asking = training.asking
    prompts = (asking.shown(row).prompt for row in training.rows(50))
    longest = max(len(prompt.encode()) for prompt in prompts)
    return Batch(
        plans=int(config.grpo.get("per_device_train_batch_size", 8)),
        written=sizes["whole"] // devices,
        prompt=longest // BYTES_PER_TOKEN,
        completion=int(config.grpo.get("max_completion_length", 512)),
    )


def _memory(training: Training) -> Iterator[str]:
    """Yield memory as configured, and for other ways where the device is a GPU."""
    config, shape = training.config, shape_of(training.config)
    if shape is None:
        yield f"memory: unknown, for the shape of {config.model.path!r} is not known here"
        return
    size, processes = shape.parameters, world_size()
    yield f"model: {size:,} weights" + (
        f", {shape.lora(config.lora.r):,} trained" if config.lora else ""
    )
    if config.run.device == "cpu":
        memory = memory_of(shape, batch_of(training, processes), config)
        yield _said("memory, whole on this machine", memory)
        return
    full = config.model_copy(update={"lora": None})
    for spread, name in SPREADS:
        batch = _fitting(training, spread.devices)
        if batch is not None:
            yield _said(f"all weights, {name}", memory_of(shape, batch, full, spread))
    yield from _adapters(training, shape)
    share = config.grpo.get("vllm_gpu_memory_utilization", 0.3)
    if config.grpo.get("use_vllm"):
        yield f"vLLM: takes {share:.0%} of each GPU for weights and cache while plans are written"


SPREADS = (
    (Spread(1), "whole on one GPU"),
    (Spread(2), "whole on each of 2 (ddp.yaml)"),
    (Spread(2, "offload"), "ZeRO-3 over 2, states on the host"),
    (Spread(4, "zero3"), "ZeRO-3 over 4"),
    (Spread(8, "zero3"), "ZeRO-3 over 8"),
)
"""The ways of the launch files, as an estimate lists them."""


def _adapters(training: Training, shape: Shape) -> Iterator[str]:
    config = training.config
    batch = _fitting(training, 1)
    if batch is None:
        return
    lora = config.lora or Lora()
    thin = config.model_copy(update={"lora": lora})
    yield _said(f"adapters of rank {lora.r}, one GPU", memory_of(shape, batch, thin))


def _fitting(training: Training, devices: int) -> Batch | None:
    """Return a batch on so many devices, None where it does not divide."""
    try:
        return batch_of(training, devices)
    except UserError:
        return None


def _said(name: str, memory: Memory) -> str:
    host = f", {memory.host:.1f} GB on the host" if memory.host else ""
    return (
        f"{name}: {memory.update:.3g} GB in an update ({memory.weights:.3g} weights, "
        f"{memory.gradients:.3g} gradients, {memory.optimiser:.3g} optimiser, "
        f"{memory.activations:.3g} activations), {memory.kv_cache:.3g} GB of cache for writing"
        f"{host}"
    )
