"""TRL's options from `[grpo]`, dynamic sampling, and what the processes of a training share."""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from importlib import metadata, util
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeVar

from podium.conductor.training.config import TrainingConfig, unknown_key
from podium.conductor.training.training_rows import COLUMNS, PromptBuilder, TrainingRow
from podium.harness.errors import PodiumError, UserError
from podium.harness.rewards.trainers import Prompt

ResultT = TypeVar("ResultT")
TRL_FROM, TRL_BELOW = (1, 16), (2, 0)
VLLM_FROM, VLLM_BELOW = (0, 22), (0, 32)  # what TRL 1.16 supports (trl/import_utils.py)
OURS = ("output_dir", "seed", "save_steps", "logging_steps", "shuffle_dataset", "report_to")
"""Fields of GRPOConfig that other sections decide."""

NUMBERS = (
    "beta", "entropy_coef", "epsilon", "generation_batch_size", "gradient_accumulation_steps",
    "learning_rate", "max_completion_length", "max_grad_norm", "max_steps", "num_generations",
    "num_iterations", "per_device_train_batch_size", "temperature", "top_p", "warmup_steps",
    "weight_decay",
)  # fmt: skip
"""Fields that are numbers, known where TRL is not installed; `_refuse_unknown_fields` knows all."""
CHECKPOINTS = "checkpoints"  # TRL's folder in a training's own
WAITING_S = 7200  # for the first process, which alone validates; workers may take long
Sharding = Literal["", "zero", "zero3", "fsdp"]
"""What is divided over the processes: nothing, states only, all of it by DeepSpeed, by FSDP."""
Group = dict[str, Any]  # the plans of one question: tensors by name, as TRL has them


def process_rank() -> int:
    """Return which of the processes that a launcher started this is, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_main() -> bool:
    """Say whether this process writes: the first one does."""
    return process_rank() == 0


def world_size() -> int:
    """Return how many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def from_first_process(work: Callable[[], ResultT]) -> ResultT:
    """Return what the first process makes of `work`; all call it together, and are told."""
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


def limits_text(config: TrainingConfig, most: Decimal | None, processes: int) -> str:
    """Say what one process of several may spend and ask; all of them together hold the limits."""
    parts = [f"{plans_at_once(config, processes)} plans at once"]
    if config.reward.rpm is not None:
        parts.append(f"{config.reward.rpm / processes:g} calls of a worker a minute")
    if most is not None:
        parts.append(f"${most / processes:,.2f}, divided anew at every step")
    return f"each of {processes} processes: {', '.join(parts)}"


def refuse_unready_machine(config: TrainingConfig) -> None:
    """Raise UserError where a package, a version or a GPU is missing."""
    needed = ["torch", "transformers", "trl", "accelerate", "datasets"]
    needed += ["peft"] * (config.lora is not None) + ["tensorboard"] * config.run.tensorboard
    for name in needed:
        if util.find_spec(name) is None:
            raise UserError(f"Training needs {name}: pip install '.[train]'.")
    for name in config.run.report_to:
        if util.find_spec(name) is None:
            raise UserError(f"run.report_to names {name}: pip install {name}, or leave it out.")
    _refuse_version("trl", TRL_FROM, TRL_BELOW)
    if config.grpo.get("use_vllm"):
        if util.find_spec("vllm") is None:
            raise UserError("use_vllm needs vLLM: pip install '.[vllm]'.")
        _refuse_version("vllm", VLLM_FROM, VLLM_BELOW)
    import torch

    if config.run.device == "gpu" and not torch.cuda.is_available():
        raise UserError(
            f"Config {config.name!r} trains on a GPU and torch sees none: take practice-cpu, or "
            "set run.device=cpu if the model is small enough."
        )


def _refuse_version(name: str, least: tuple[int, int], below: tuple[int, int]) -> None:
    found = metadata.version(name)
    parts = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if not least <= parts < below:
        window = f"{least[0]}.{least[1]} up to, but not, {below[0]}.{below[1]}"
        raise UserError(f"{name} {found} is installed; podium's trainer works with {window}.")


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
    try:
        found = said if isinstance(said, dict) else json.loads(Path(str(said)).read_text())
    except (OSError, ValueError):
        return ""
    return str(found.get("zero_optimization", {}).get("stage", ""))


def refuse_sharding(config: TrainingConfig) -> None:
    """Raise UserError for what needs a whole model in one process."""
    divided = sharding(config)
    how = {"zero3": "DeepSpeed ZeRO-3", "fsdp": "FSDP"}.get(divided)
    refused = {
        f"[warm_start] cannot be made where {how} divides the model: make it in one process "
        "first, which leaves it in OUT/start, then go on from there with "
        "--set model.path=OUT/start --set warm_start.kind=none.": config.warm_start.kind != "none",
        "[recursion] writes its first plans before training begins, which cannot be done "
        f"where {how} divides the model: warm it up in one process first, then set model.path "
        "to what it left in OUT/start and warm_start.kind=none, and launch it with ddp.yaml, "
        "where every GPU has a whole model.": config.recursion,
        "[lora] adapters are merged when training ends, by one process, which cannot load a "
        "model that DeepSpeed ZeRO-3 divides: launch it with ddp.yaml; `podium train CONFIG "
        "--dry-run` says what adapters need on each GPU.": config.lora and divided == "zero3",
    }
    if why := next((why for why, there in refused.items() if how and there), None):
        raise UserError(why)


def _refuse_non_numbers(grpo: Mapping[str, Any], numbers: Collection[str]) -> None:
    """Raise UserError for a field of `numbers` that holds something else.

    >>> _refuse_non_numbers({"max_steps": "two"}, NUMBERS)
    Traceback (most recent call last):
    podium.harness.errors.UserError: [grpo] max_steps is a number, not 'two'.
    """
    for key, value in grpo.items():
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if key in numbers and not plain:
            raise UserError(f"[grpo] {key} is a number, not {value!r}.")


def batch_sizes(config: TrainingConfig, processes: int | None = None) -> dict[str, int]:
    """Return how plans are divided: UserError where the numbers do not go into one another."""
    grpo, size = config.grpo, world_size() if processes is None else processes
    _refuse_non_numbers(grpo, NUMBERS)
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
        "generations": generations,
        "rows": generations * (whole // group),
        "validations": 1 + -(-steps // config.validation.every),
    }


def _refuse_unknown_fields(grpo: Mapping[str, Any]) -> None:
    from trl import GRPOConfig

    known = [field.name for field in fields(GRPOConfig)]
    for key in grpo:
        if key in OURS:
            raise UserError(f"[grpo] {key} is decided elsewhere: by [run], or by --out.")
        if key not in known:
            raise UserError(f"{unknown_key(key, known, 'grpo')}.")
    usual = {field.name: field.default for field in fields(GRPOConfig)}
    _refuse_non_numbers(grpo, [key for key, one in usual.items() if type(one) in (int, float)])


def weight_dtype(config: TrainingConfig) -> str:
    """Return the type in which weights are loaded; UserError for one in which nothing is learnt.

    At a learning rate of 1e-6 a step is lost in a bfloat16 weight, so trained weights are float32.
    Those that adapters stand on are not trained, and DeepSpeed keeps float32 ones of its own.
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


def autocast(config: TrainingConfig) -> Any:
    """Return the arithmetic of an update, for what is computed outside of one: bf16 or plain."""
    import torch

    device = "cuda" if config.run.device == "gpu" else "cpu"
    usual = device == "cuda" and not config.grpo.get("fp16")  # TRL's own
    half = bool(config.grpo.get("bf16", usual))
    return torch.autocast(device, torch.bfloat16, enabled=half)


def grpo_config(config: TrainingConfig, out: Path, processes: int | None = None) -> Any:
    """Return TRL's GRPOConfig; UserError for a key or value that it does not take."""
    from trl import GRPOConfig

    _refuse_unknown_fields(config.grpo)
    weight_dtype(config)
    sizes = batch_sizes(config, processes)
    given = dict(config.grpo)
    given.pop("generation_batch_size", None)
    given.pop("model_init_kwargs", None)  # the model is loaded with them before (train.py)
    run = config.run
    settings: dict[str, Any] = {
        "per_device_train_batch_size": 8,
        "ddp_find_unused_parameters": False,  # all are used; looking costs a pass over the graph
        "ddp_timeout": WAITING_S,
        "run_name": out.name,  # as trackers show it
        "project": "podium",
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
        "shuffle_dataset": False,  # training_rows.py has drawn the order already
        "remove_unused_columns": False,
        "report_to": [*["tensorboard"] * run.tensorboard, *run.report_to],
        "use_cpu": run.device == "cpu",
    }
    if run.device == "cpu":
        settings.setdefault("bf16", False)
        settings.setdefault("gradient_checkpointing", False)
        settings.setdefault("dataloader_pin_memory", False)
    try:
        return GRPOConfig(trust_remote_code=False, **settings)
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


@dataclass(slots=True)
class Resampling:
    """Questions whose plans all got one reward make room for others, in rounds."""

    rows: Sequence[TrainingRow]  # all that may stand in, in order: `rounds` batches each
    asking: PromptBuilder
    sizes: Mapping[str, int]  # as `batch_sizes` returns them
    rounds: int
    pad: int  # the token that fills up prompts and completions
    said: dict[str, float] = field(default_factory=dict[str, float])
    _step: int = -1
    _nth: int = 0

    def learnt_from(self, writes: Any, inputs: Sequence[Any], step: int) -> Group:
        """Return a batch of the size of `inputs`, groups that teach something first."""
        self._nth = self._nth + 1 if step == self._step else 0
        self._step = step  # which batch of plans this is follows from it: a resumed run counts on
        generation = step * self.sizes["accumulate"] // self.sizes["parts"] + self._nth
        good, dull = self._written(writes, inputs)
        wanted, more, started = len(good) + len(dull), 0, monotonic()
        asked = {_key(one) for one in inputs}
        for at in range(self.rounds):
            others = [row for row in self._spare(generation, at) if _key(row) not in asked]
            others = others[: wanted - len(good)]
            if not others:
                continue
            asked |= {_key(row) for row in others}
            each = [row for row in others for _ in range(self.sizes["group"])]
            found, _ = self._written(writes, each)
            good, more = good + found, more + len(others)
        self.said = {
            "informative": len(good) / wanted,
            "resampled": more / (wanted + more),
            "resample_seconds": round(monotonic() - started, 3) if more else 0.0,
        }
        return join_groups([*good, *dull][:wanted], self.pad)

    def _written(self, writes: Any, inputs: Sequence[Any]) -> list[list[Group]]:
        size = self.sizes["group"]
        groups, constant = split_groups(writes.scored(inputs), size), set(writes.constant)
        good, dull = list[Group](), list[Group]()
        for group, columns in zip(groups, inputs[::size], strict=True):
            suite, question, epoch, workers, first = (columns[name] for name in COLUMNS)
            prompt = Prompt(suite, question, epoch, tuple(workers), first)
            (dull if prompt in constant else good).append(group)
        return [good, dull]

    def _spare(self, generation: int, at: int) -> list[dict[str, Any]]:
        size = self.sizes["questions"]
        begins = (generation * self.rounds + at) * size
        rows = self.rows[begins : begins + size]
        return [{**row.as_columns(), "prompt": self.asking.messages(row)} for row in rows]


def _key(columns: Mapping[str, Any]) -> tuple[str, str]:
    return columns["suite"], columns["question"]


def split_groups(made: Group, size: int) -> list[Group]:
    """Return a batch as groups of `size` rows each; what is no row of it is left out."""
    rows = len(made["advantages"])
    tensors = {name: one for name, one in made.items() if getattr(one, "ndim", 0)}
    return [
        {name: one[at : at + size] for name, one in tensors.items()} for at in range(0, rows, size)
    ]


def join_groups(groups: Sequence[Group], pad: int) -> Group:
    """Return groups as one batch: prompts are filled up on the left, all else on the right."""
    import torch

    whole: Group = {}
    for name in groups[0]:
        parts = [group[name] for group in groups]
        if parts[0].ndim > 1:
            width, filler = (
                max(part.shape[1] for part in parts),
                pad if name.endswith("_ids") else 0,
            )
            short = [width - part.shape[1] for part in parts]
            sides = [(n, 0) if name.startswith("prompt_") else (0, n) for n in short]
            filled = torch.nn.functional.pad
            parts = [filled(*one, value=filler) for one in zip(parts, sides, strict=True)]
        whole[name] = torch.cat(parts)
    whole["num_items_in_batch"] = whole["completion_mask"].sum()
    return whole
