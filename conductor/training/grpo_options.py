"""TRL's options from `[grpo]`, and what the processes of one training share."""

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar

from conductor.cached_pool import PoolLimits
from conductor.training.config import TrainingConfig, unknown_key
from conductor.training.run_folder import CHECKPOINTS, is_main, world_size
from harness.errors import PodiumError, UserError

# § What the processes of one training share: what the first one does, limits in equal parts.
# §
# § How many there are and which one this is, is said by the launcher's environment
# § (folder.py); which
# § of its ways divides a model's weights, here. Not here: how a model is divided, which is
# § DeepSpeed's
# § and torch's.


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


ResultT = TypeVar("ResultT")

Sharding = Literal["", "zero", "zero3", "fsdp"]
"""What is divided over the processes: nothing, states only, all of it by DeepSpeed, by FSDP."""


def from_first_process(work: Callable[[], ResultT]) -> ResultT:
    """Return what the first process makes of `work`; the others wait for it, and are told.

    All processes call it together. A PodiumError of the first one is raised in all of them: one
    that had ended alone would leave the others waiting.
    """
    if world_size() == 1:
        return work()
    from accelerate.utils import broadcast_object_list

    told: list[Any] = [None, None]
    if is_main():
        try:
            told[0] = work()
        except PodiumError as error:
            told[1] = error
    broadcast_object_list(told)
    if told[1] is not None:
        raise told[1]
    return told[0]


def from_all_processes(value: ResultT) -> list[ResultT]:
    """Return every process's value, in their order; all processes call it together."""
    if world_size() == 1:
        return [value]
    from accelerate.utils import gather_object

    found: Any = gather_object([value])
    return found


def plans_at_once(config: TrainingConfig, processes: int) -> int:
    """Return how many plans one process carries out at once: its part, and at least one."""
    return max(1, config.reward.concurrency // processes)


def worker_limits(config: TrainingConfig, processes: int) -> PoolLimits:
    """Return how often one process may ask a worker: its part of `rpm`, also below one a minute."""
    rpm = config.reward.rpm
    return PoolLimits(per_minute=None if rpm is None else rpm / processes)


def limits_text(config: TrainingConfig, most: Decimal | None, processes: int) -> str:
    """Say what one process of several may spend and ask; all of them together hold the limits."""
    parts = [f"{plans_at_once(config, processes)} plans at once"]
    if config.reward.rpm is not None:
        parts.append(f"{config.reward.rpm / processes:g} calls of a worker a minute")
    if most is not None:
        parts.append(f"${most / processes:,.2f}, divided anew at every step")
    return f"each of {processes} processes: {', '.join(parts)}"


def sharding(config: TrainingConfig) -> Sharding:
    """Return what the launcher divides over processes: `[grpo]` or accelerate's environment."""
    said = config.grpo.get("deepspeed")
    if said or _on("ACCELERATE_USE_DEEPSPEED"):
        stage = _stage(said or os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE"))
        stage = stage or os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2")
        return "zero3" if str(stage) == "3" else "zero"
    return "fsdp" if config.grpo.get("fsdp") or _on("ACCELERATE_USE_FSDP") else ""


def _on(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes")


def _stage(said: Any) -> str:
    """Return the stage that a DeepSpeed configuration names, empty where it names none."""
    try:
        found = said if isinstance(said, dict) else json.loads(Path(str(said)).read_text())
    except (OSError, ValueError):
        return ""
    return str(found.get("zero_optimization", {}).get("stage", ""))


def refuse_sharding(config: TrainingConfig) -> None:
    """Raise UserError for what needs a whole model in one process."""
    how = {"zero3": "DeepSpeed ZeRO-3", "fsdp": "FSDP"}.get(sharding(config))
    if how and config.warm_start.kind != "none":
        raise UserError(
            f"[warm_start] cannot be made where {how} divides the model: make it in one process "
            "first, which leaves it in OUT/start, then go on from there with "
            "--set model.path=OUT/start --set warm_start.kind=none."
        )
    if how and config.recursion:
        raise UserError(
            f"[recursion] writes its first plans before training begins, which cannot be done "
            f"where {how} divides the model: warm it up in one process first, then set model.path "
            "to what it left in OUT/start and warm_start.kind=none, and launch it with ddp.yaml, "
            "where every GPU has a whole model."
        )
    if sharding(config) == "zero3" and config.lora:
        raise UserError(
            "[lora] adapters are merged when training ends, by one process, which cannot load a "
            "model that DeepSpeed ZeRO-3 divides: launch it with ddp.yaml; `podium train CONFIG "
            "--dry-run` says what adapters need on each GPU."
        )


# § TRL's GRPOConfig from `[grpo]`: its own names, plus what a run folder and a seed decide.
# §
# § Torch is imported by TRL, inside the functions.


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


OURS = ("output_dir", "seed", "save_steps", "logging_steps", "shuffle_dataset", "report_to")
"""Fields of GRPOConfig that other sections decide."""


NUMBERS = (
    "beta", "entropy_coef", "epsilon", "generation_batch_size", "gradient_accumulation_steps",
    "learning_rate", "max_completion_length", "max_grad_norm", "max_steps", "num_generations",
    "num_iterations", "per_device_train_batch_size", "temperature", "top_p", "warmup_steps",
    "weight_decay",
)  # fmt: skip
"""Fields that are numbers, known where TRL is not installed; `refuse_unknown_fields` knows all."""


def refuse_non_numbers(grpo: Mapping[str, Any], numbers: Collection[str]) -> None:
    """Raise UserError for a field of `numbers` that holds something else.

    >>> refuse_non_numbers({"max_steps": "two"}, NUMBERS)
    Traceback (most recent call last):
    harness.errors.UserError: [grpo] max_steps is a number, not 'two'.
    """
    for key, value in grpo.items():
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if key in numbers and not plain:
            raise UserError(f"[grpo] {key} is a number, not {value!r}.")


def batch_sizes(config: TrainingConfig, processes: int | None = None) -> dict[str, int]:
    """Return how plans are divided: UserError where the numbers do not go into one another.

    Where `gradient_accumulation_steps` is left out, it follows from the generation batch and the
    number of processes, so that one optimiser step uses the batch once, on any number of GPUs.
    """
    grpo, size = config.grpo, world_size() if processes is None else processes
    refuse_non_numbers(grpo, NUMBERS)
    each = int(grpo.get("per_device_train_batch_size", 8)) * size
    group = int(grpo.get("num_generations", 8))
    whole = int(grpo.get("generation_batch_size", 0))
    whole = whole or each * int(grpo.get("gradient_accumulation_steps", 1))
    if "steps_per_generation" in grpo:
        raise UserError("[grpo] takes generation_batch_size, not steps_per_generation: leave it.")
    if whole % each:
        raise UserError(
            f"[grpo] generation_batch_size {whole} is not a multiple of {each}, the plans that "
            f"{size} processes take at once: change per_device_train_batch_size."
        )
    if group < 2 or whole % group:
        raise UserError(
            f"[grpo] generation_batch_size {whole} is not a multiple of num_generations {group} "
            "(at least 2): every question needs its whole group of plans."
        )
    accumulate = int(grpo.get("gradient_accumulation_steps", whole // each))
    per_generation = whole // each * int(grpo.get("num_iterations", 1))
    steps = int(grpo.get("max_steps", 0))
    if steps < 1:
        raise UserError("[grpo] max_steps says how many steps to train: at least 1.")
    if per_generation % accumulate and accumulate % per_generation:
        raise UserError(
            f"[grpo] {per_generation} parts of a generation do not go into "
            f"gradient_accumulation_steps {accumulate}: leave the latter out."
        )
    between = max(1, per_generation // accumulate)
    if config.run.save_every % between:
        raise UserError(
            f"[run] save_every {config.run.save_every} falls inside a generation batch, which "
            f"serves {between} steps: make it a multiple, or a resumed run would differ."
        )
    if config.reward.resample and size > 1:
        raise UserError(
            f"[reward] resample works in one process, not in {size}: set it to 0, or train on one."
        )
    generations = -(-steps * accumulate // per_generation)
    return {
        "accumulate": accumulate,
        "parts": per_generation,
        "whole": whole,
        "group": group,
        "questions": whole // group,
        "steps": steps,
        "rows": generations * (whole // group),
    }


def refuse_unknown_fields(grpo: Mapping[str, Any]) -> None:
    """Raise UserError for a key that TRL's GRPOConfig does not have, or that is not [grpo]'s."""
    from trl import GRPOConfig

    known = [field.name for field in fields(GRPOConfig)]
    for key in grpo:
        if key in OURS:
            raise UserError(f"[grpo] {key} is decided elsewhere: by [run], or by --out.")
        if key not in known:
            raise UserError(f"{unknown_key(key, known, 'grpo')}.")
    usual = {field.name: field.default for field in fields(GRPOConfig)}
    refuse_non_numbers(grpo, [key for key, one in usual.items() if type(one) in (int, float)])


WAITING_S = 7200
"""How long processes wait for the first one, which alone has validations and first plans carried
out; torch's own limit is less than workers may take."""


def weight_dtype(config: TrainingConfig) -> str:
    """Return the type in which weights are loaded; UserError for one in which nothing is learnt.

    At a learning rate of 1e-6 a step is lost in a bfloat16 weight, so trained weights are float32,
    and bf16 computes with copies of them. Weights that adapters stand on are not trained, and
    DeepSpeed keeps float32 weights of its own.
    """
    said = dict(config.grpo.get("model_init_kwargs") or {}).get("dtype")
    kept = config.lora is not None or sharding(config) in ("zero", "zero3")
    if said not in (None, "float32") and not kept:
        raise UserError(
            f"[grpo.model_init_kwargs] dtype={said!r} would be the type of the trained weights, in "
            "which small steps are lost: leave it out, train adapters ([lora]), or use DeepSpeed."
        )
    usual = "bfloat16" if kept and config.run.device == "gpu" else "float32"
    return str(said or usual)


def grpo_config(config: TrainingConfig, out: Path, processes: int | None = None) -> Any:
    """Return TRL's GRPOConfig; UserError for a key or value that it does not take."""
    from trl import GRPOConfig

    refuse_unknown_fields(config.grpo)
    weight_dtype(config)
    sizes = batch_sizes(config, processes)
    given = dict(config.grpo)
    given.pop("generation_batch_size", None)
    given.pop("model_init_kwargs", None)  # the model is loaded with them before (start.py)
    run = config.run
    settings: dict[str, Any] = {
        "per_device_train_batch_size": 8,
        "ddp_find_unused_parameters": False,  # all are used; looking costs a pass over the graph
        "ddp_timeout": WAITING_S,
        **given,
        "generation_batch_size": sizes["whole"],
        "gradient_accumulation_steps": sizes["accumulate"],
        "num_generations": sizes["group"],
        "output_dir": str(out / CHECKPOINTS),
        "seed": run.seed,
        "data_seed": run.seed,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": run.save_every,
        "save_total_limit": run.keep,
        "shuffle_dataset": False,  # rows.py has drawn the order already
        "remove_unused_columns": False,
        "report_to": ["tensorboard"] if run.tensorboard else [],
        "use_cpu": run.device == "cpu",
    }
    if run.device == "cpu":
        settings.setdefault("bf16", False)
        settings.setdefault("gradient_checkpointing", False)
        settings.setdefault("dataloader_pin_memory", False)
    try:
        return GRPOConfig(**settings)
    except (TypeError, ValueError, ImportError) as error:
        said = str(error).strip().splitlines()[0]
        raise UserError(f"[grpo] is refused by TRL: {said}") from error


def lora_config(config: TrainingConfig) -> Any | None:
    """Return peft's LoraConfig, None where all weights are trained."""
    if config.lora is None:
        return None
    from peft import LoraConfig

    wanted = config.lora
    modules = wanted.target_modules
    return LoraConfig(
        r=wanted.r,
        lora_alpha=wanted.alpha,
        lora_dropout=wanted.dropout,
        target_modules=modules if isinstance(modules, str) else list(modules),
        task_type="CAUSAL_LM",
    )
