"""What the processes of one training share: what the first one does, limits in equal parts.

How many there are and which one this is, is said by the launcher's environment (folder.py); which
of its ways divides a model's weights, here. Not here: how a model is divided, which is DeepSpeed's
and torch's.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar

from conductor.pacing import Rates
from conductor.training.config import TrainingConfig
from conductor.training.folder import is_main, world_size
from harness.errors import PodiumError, UserError

ResultT = TypeVar("ResultT")

Divided = Literal["", "zero", "zero3", "fsdp"]
"""What is divided over the processes: nothing, states only, all of it by DeepSpeed, by FSDP."""


def from_first(work: Callable[[], ResultT]) -> ResultT:
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


def of_all(value: ResultT) -> list[ResultT]:
    """Return every process's value, in their order; all processes call it together."""
    if world_size() == 1:
        return [value]
    from accelerate.utils import gather_object

    found: Any = gather_object([value])
    return found


def at_once(config: TrainingConfig, processes: int) -> int:
    """Return how many plans one process carries out at once: its part, and at least one."""
    return max(1, config.reward.concurrency // processes)


def rates(config: TrainingConfig, processes: int) -> Rates:
    """Return how often one process may ask a worker: its part of `rpm`, also below one a minute."""
    rpm = config.reward.rpm
    return Rates(per_minute=None if rpm is None else rpm / processes)


def limits_text(config: TrainingConfig, most: Decimal | None, processes: int) -> str:
    """Say what one process of several may spend and ask; all of them together hold the limits."""
    parts = [f"{at_once(config, processes)} plans at once"]
    if config.reward.rpm is not None:
        parts.append(f"{config.reward.rpm / processes:g} calls of a worker a minute")
    if most is not None:
        parts.append(f"${most / processes:,.2f}, divided anew at every step")
    return f"each of {processes} processes: {', '.join(parts)}"


def divided(config: TrainingConfig) -> Divided:
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


def refuse_divided(config: TrainingConfig) -> None:
    """Raise UserError for what needs a whole model in one process."""
    how = {"zero3": "DeepSpeed ZeRO-3", "fsdp": "FSDP"}.get(divided(config))
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
    if divided(config) == "zero3" and config.lora:
        raise UserError(
            "[lora] adapters are merged when training ends, by one process, which cannot load a "
            "model that DeepSpeed ZeRO-3 divides: launch it with ddp.yaml; `podium train CONFIG "
            "--dry-run` says what adapters need on each GPU."
        )
