"""TRL's options from a `[grpo]` table, resampling of questions, helpers for several processes."""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are installed elsewhere.

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
VLLM_FROM, VLLM_BELOW = (0, 22), (0, 32)  # versions that TRL 1.16 supports (trl/import_utils.py)
OURS = ("output_dir", "seed", "save_steps", "logging_steps", "shuffle_dataset", "report_to")
"""Fields of TRL's GRPOConfig that podium sets itself, some from [run], so `[grpo]` must not have
them."""

NUMBERS = (
    "beta", "entropy_coef", "epsilon", "generation_batch_size", "gradient_accumulation_steps",
    "learning_rate", "max_completion_length", "max_grad_norm", "max_steps", "num_generations",
    "num_iterations", "per_device_train_batch_size", "temperature", "top_p", "warmup_steps",
    "weight_decay",
)  # fmt: skip
"""Numeric fields of `[grpo]` that are checked even without TRL; if TRL is installed,
`_refuse_unknown_fields` checks all fields."""
CHECKPOINTS = "checkpoints"  # TRL's folder inside the training's folder
WAITING_S = 7200  # timeout in seconds of processes that wait while the first one validates
Sharding = Literal["", "zero", "zero3", "fsdp"]
"""What a training shards over processes: nothing; optimiser states (`zero`); or also the weights,
by DeepSpeed (`zero3`) or FSDP (`fsdp`)."""
Group = dict[str, Any]  # TRL's tensors by name, for the plans of one question


def process_rank() -> int:
    """Return this process's index, from 0, among the launcher's processes."""
    return int(os.environ.get("RANK", "0"))


def is_main() -> bool:
    """Return whether this is the first process, the only one that writes files."""
    return process_rank() == 0


def world_size() -> int:
    """Return the number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def from_first_process(work: Callable[[], ResultT]) -> ResultT:
    """Run `work` in the first process; return its result, or raise its error, in all processes."""
    if world_size() == 1:
        return work()
    from accelerate.utils import broadcast_object_list

    shared: list[Any] = [None, None]
    if is_main():
        try:
            shared[0] = work()
        except PodiumError as error:
            shared[1] = error
    broadcast_object_list(shared)
    if shared[1] is not None:
        raise shared[1]
    return shared[0]


def from_all_processes(value: ResultT) -> list[ResultT]:
    """Return every process's value, by process index; all processes must call this together."""
    if world_size() == 1:
        return [value]
    from accelerate.utils import gather_object

    values: Any = gather_object([value])
    return values


def plans_at_once(config: TrainingConfig, processes: int) -> int:
    """Return how many plans one process runs in parallel: its share of the limit, at least 1."""
    return max(1, config.reward.concurrency // processes)


def limits_text(config: TrainingConfig, budget: Decimal | None, processes: int) -> str:
    """Return text on each process's limits (plans, calls, dollars): its share of the training's."""
    limits = [f"{plans_at_once(config, processes)} plans at once"]
    if config.reward.rpm is not None:
        limits.append(f"{config.reward.rpm / processes:g} calls of a worker a minute")
    if budget is not None:
        limits.append(f"${budget / processes:,.2f}, divided again at every step")
    return f"each of {processes} processes: {', '.join(limits)}"


def refuse_unready_machine(config: TrainingConfig) -> None:
    """Raise UserError if the machine lacks a needed package, a supported version or a GPU."""
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
            f"Config {config.name!r} trains on a GPU, but torch finds none. Use practice-cpu, or "
            "set run.device=cpu if the model is small enough."
        )


def _refuse_version(name: str, least: tuple[int, int], below: tuple[int, int]) -> None:
    installed = metadata.version(name)
    version = tuple(int(number) for number in re.findall(r"\d+", installed)[:2])
    if not least <= version < below:
        window = f"{least[0]}.{least[1]} or newer, below {below[0]}.{below[1]},"
        raise UserError(f"{name} {installed} is installed. Install {window} for podium's trainer.")


def sharding(config: TrainingConfig) -> Sharding:
    """Return what a training shards over processes, by `[grpo]` or by accelerate's variables."""
    setting = config.grpo.get("deepspeed")
    if setting or _on("ACCELERATE_USE_DEEPSPEED"):
        stage = _stage(setting or os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE"))
        stage = stage or os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2")
        return "zero3" if str(stage) == "3" else "zero"
    return "fsdp" if config.grpo.get("fsdp") or _on("ACCELERATE_USE_FSDP") else ""


def _on(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes")


def _stage(setting: Any) -> str:
    try:
        table = setting if isinstance(setting, dict) else json.loads(Path(str(setting)).read_text())
    except (OSError, ValueError):
        return ""
    return str(table.get("zero_optimization", {}).get("stage", ""))


def refuse_sharding(config: TrainingConfig) -> None:
    """Raise UserError if the model is sharded, but an option needs it whole in one process."""
    divided = sharding(config)
    method = {"zero3": "DeepSpeed ZeRO-3", "fsdp": "FSDP"}.get(divided)
    refused = {
        f"[warm_start] is not possible if {method} divides the model. Run it in one process first, "
        "which writes the model to OUT/start, then continue with "
        "--set model.path=OUT/start --set warm_start.kind=none.": config.warm_start.kind != "none",
        "[recursion] writes its first plans before training begins, which is not possible "
        f"if {method} divides the model. Run the warm start in one process first, then set "
        "model.path=OUT/start and warm_start.kind=none and launch it with ddp.yaml, which keeps a "
        "whole model on every GPU.": config.recursion,
        "[lora] adapters are merged by one process when training ends, and it cannot load a "
        "model that DeepSpeed ZeRO-3 divides. Launch it with ddp.yaml; `podium train CONFIG "
        "--dry-run` estimates the memory needed on each GPU.": config.lora and divided == "zero3",
    }
    if reason := next((reason for reason, there in refused.items() if method and there), None):
        raise UserError(reason)


def _refuse_non_numbers(grpo: Mapping[str, Any], numbers: Collection[str]) -> None:
    """Raise UserError if a field of `[grpo]` that `numbers` lists is not a number.

    >>> _refuse_non_numbers({"max_steps": "two"}, NUMBERS)
    Traceback (most recent call last):
    podium.harness.errors.UserError: [grpo] max_steps must be a number, not 'two'.
    """
    for key, value in grpo.items():
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if key in numbers and not plain:
            raise UserError(f"[grpo] {key} must be a number, not {value!r}.")


def batch_sizes(config: TrainingConfig, processes: int | None = None) -> dict[str, int]:
    """Return a training's batch sizes and step counts; UserError if they contradict each other."""
    grpo, size = config.grpo, world_size() if processes is None else processes
    _refuse_non_numbers(grpo, NUMBERS)
    each = int(grpo.get("per_device_train_batch_size", 8)) * size
    group = int(grpo.get("num_generations", 8))
    batch = int(grpo.get("generation_batch_size", 0))
    batch = batch or each * int(grpo.get("gradient_accumulation_steps", 1))
    if "steps_per_generation" in grpo:
        raise UserError(
            "[grpo] steps_per_generation is not supported: set generation_batch_size instead."
        )
    if batch % each:
        raise UserError(
            f"[grpo] generation_batch_size {batch} is not a multiple of {each}, the plans that "
            f"{size} processes take at once: change per_device_train_batch_size."
        )
    if group < 2 or batch % group:
        raise UserError(
            f"[grpo] generation_batch_size {batch} is not a multiple of num_generations {group} "
            "(at least 2): every question needs its whole group of plans."
        )
    accumulate = int(grpo.get("gradient_accumulation_steps", batch // each))
    per_generation = batch // each * int(grpo.get("num_iterations", 1))
    steps = int(grpo.get("max_steps", 0))
    if steps < 1:
        raise UserError("[grpo] max_steps, the number of training steps, must be at least 1.")
    if per_generation % accumulate and accumulate % per_generation:
        raise UserError(
            f"[grpo] gradient_accumulation_steps {accumulate} is neither a multiple nor a divisor "
            f"of the {per_generation} parts of a generation: leave it out."
        )
    between = max(1, per_generation // accumulate)
    if config.run.save_every % between:
        raise UserError(
            f"[run] save_every {config.run.save_every} falls inside a generation batch, which "
            f"serves {between} steps. Use a multiple of it, or a resumed run would differ."
        )
    if config.reward.resample and size > 1:
        raise UserError(
            f"[reward] resample works in one process, not in {size}: set it to 0, or use one."
        )
    generations = -(-steps * accumulate // per_generation)
    return {
        "accumulate": accumulate,
        "parts": per_generation,
        "whole": batch,
        "group": group,
        "questions": batch // group,
        "steps": steps,
        "generations": generations,
        "rows": generations * (batch // group),
        "validations": 1 + -(-steps // config.validation.every),
    }


def _refuse_unknown_fields(grpo: Mapping[str, Any]) -> None:
    from trl import GRPOConfig

    names = [field.name for field in fields(GRPOConfig)]
    for key in grpo:
        if key in OURS:
            raise UserError(f"[grpo] {key} cannot be set here, as podium sets it. Leave it out.")
        if key not in names:
            raise UserError(f"{unknown_key(key, names, 'grpo')}.")
    usual = {field.name: field.default for field in fields(GRPOConfig)}
    _refuse_non_numbers(grpo, [key for key, x in usual.items() if type(x) in (int, float)])


def weight_dtype(config: TrainingConfig) -> str:
    """Return the dtype of loaded weights; UserError if small updates would be lost by rounding.

    At a learning rate of 1e-6 bfloat16 loses updates, so trained weights are float32, except with
    adapters, whose base is not trained, and with DeepSpeed, which keeps float32 copies.
    """
    name = dict(config.grpo.get("model_init_kwargs") or {}).get("dtype")
    precise = config.lora is not None or sharding(config) in ("zero", "zero3")
    if name not in (None, "float32") and not precise:
        raise UserError(
            f"[grpo.model_init_kwargs] dtype={name!r} would store the trained weights with too "
            "little precision: small updates would be rounded away. Leave it out, train adapters "
            "([lora]), or use DeepSpeed."
        )
    usual = "bfloat16" if precise and config.run.device == "gpu" else "float32"
    return str(name or usual)


def autocast(config: TrainingConfig) -> Any:
    """Return the autocast context of TRL's updates (bf16 or disabled), also for warm starts."""
    import torch

    device = "cuda" if config.run.device == "gpu" else "cpu"
    usual = device == "cuda" and not config.grpo.get("fp16")  # TRL's default
    half = bool(config.grpo.get("bf16", usual))
    return torch.autocast(device, torch.bfloat16, enabled=half)


def grpo_config(config: TrainingConfig, out: Path, processes: int | None = None) -> Any:
    """Return TRL's GRPOConfig for a training; UserError if TRL refuses a field of `[grpo]`."""
    from trl import GRPOConfig

    _refuse_unknown_fields(config.grpo)
    weight_dtype(config)
    sizes = batch_sizes(config, processes)
    options = dict(config.grpo)
    options.pop("generation_batch_size", None)
    options.pop("model_init_kwargs", None)  # already used to load the model (model.py)
    run = config.run
    settings: dict[str, Any] = {
        "per_device_train_batch_size": 8,
        "ddp_find_unused_parameters": False,  # all are used, and a check takes time
        "ddp_timeout": WAITING_S,
        "run_name": out.name,  # its name in trackers
        "project": "podium",
        **options,
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
        reason = str(error).strip().splitlines()[0]
        reason = reason.rstrip(".")
        raise UserError(f"TRL refuses [grpo]: {reason}. Correct that option.") from error


def lora_config(config: TrainingConfig) -> Any | None:
    """Return peft's LoraConfig for a training; None if all weights are trained."""
    if config.lora is None:
        return None
    from peft import LoraConfig

    lora = config.lora
    modules = lora.target_modules
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=modules if isinstance(modules, str) else list(modules),
        task_type="CAUSAL_LM",
    )


@dataclass(slots=True)
class Resampling:
    """Dynamic sampling: replaces, in rounds, questions whose plans all got the same reward."""

    rows: Sequence[TrainingRow]  # replacement questions in order, `rounds` batches per generation
    asking: PromptBuilder
    sizes: Mapping[str, int]  # as `batch_sizes` returns them
    rounds: int
    pad: int  # the padding token of prompts and completions
    said: dict[str, float] = field(default_factory=dict[str, float])
    _step: int = -1
    _nth: int = 0

    def learnt_from(self, writes: Any, inputs: Sequence[Any], step: int) -> Group:
        """Return a batch as large as `inputs`; questions whose plans' rewards differ come first."""
        self._nth = self._nth + 1 if step == self._step else 0
        self._step = step  # determines replacements, so that a resumed run repeats them
        generation = step * self.sizes["accumulate"] // self.sizes["parts"] + self._nth
        good, dull = self._written(writes, inputs)
        size, resampled, started = len(good) + len(dull), 0, monotonic()
        seen_keys = {_key(columns) for columns in inputs}
        for number in range(self.rounds):
            spare = [row for row in self._spare(generation, number) if _key(row) not in seen_keys]
            spare = spare[: size - len(good)]
            if not spare:
                continue
            seen_keys |= {_key(row) for row in spare}
            each = [row for row in spare for _ in range(self.sizes["group"])]
            fresh, _ = self._written(writes, each)
            good, resampled = good + fresh, resampled + len(spare)
        self.said = {
            "informative": len(good) / size,
            "resampled": resampled / (size + resampled),
            "resample_seconds": round(monotonic() - started, 3) if resampled else 0.0,
        }
        return join_groups([*good, *dull][:size], self.pad)

    def _written(self, writes: Any, inputs: Sequence[Any]) -> list[list[Group]]:
        size = self.sizes["group"]
        groups, constant = split_groups(writes.scored(inputs), size), set(writes.constant)
        good, dull = list[Group](), list[Group]()
        for group, columns in zip(groups, inputs[::size], strict=True):
            suite, question, epoch, workers, earlier = (columns[name] for name in COLUMNS)
            prompt = Prompt(suite, question, epoch, tuple(workers), earlier)
            (dull if prompt in constant else good).append(group)
        return [good, dull]

    def _spare(self, generation: int, number: int) -> list[dict[str, Any]]:
        size = self.sizes["questions"]
        begins = (generation * self.rounds + number) * size
        rows = self.rows[begins : begins + size]
        return [{**row.as_columns(), "prompt": self.asking.messages(row)} for row in rows]


def _key(columns: Mapping[str, Any]) -> tuple[str, str]:
    return columns["suite"], columns["question"]


def split_groups(batch: Group, size: int) -> list[Group]:
    """Split TRL's batch into groups of `size` plans, one per question; scalars are left out."""
    rows = len(batch["advantages"])
    tensors = {name: tensor for name, tensor in batch.items() if getattr(tensor, "ndim", 0)}
    return [
        {key: x[start : start + size] for key, x in tensors.items()}
        for start in range(0, rows, size)
    ]


def join_groups(groups: Sequence[Group], pad: int) -> Group:
    """Join groups of plans into a batch; prompts are padded on the left, completions right."""
    import torch

    batch: Group = {}
    for name in groups[0]:
        tensors = [group[name] for group in groups]
        if tensors[0].ndim > 1:
            width = max(tensor.shape[1] for tensor in tensors)
            filler = pad if name.endswith("_ids") else 0
            short = [width - tensor.shape[1] for tensor in tensors]
            sides = [(n, 0) if name.startswith("prompt_") else (0, n) for n in short]
            filled = torch.nn.functional.pad
            tensors = [filled(*pair, value=filler) for pair in zip(tensors, sides, strict=True)]
        batch[name] = torch.cat(tensors)
    batch["num_items_in_batch"] = batch["completion_mask"].sum()
    return batch
