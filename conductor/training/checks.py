"""What a machine must have before a training begins; each lack is one sentence with the way out."""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path

from conductor.training.config import TrainingConfig
from harness.errors import UserError

NEEDED = ("torch", "transformers", "trl", "accelerate", "datasets")

INSTALL = "pip install '.[train]'"

TRL_FROM, TRL_BELOW = (1, 16), (2, 0)
VLLM_FROM, VLLM_BELOW = (0, 22), (0, 32)
"""What TRL 1.16 supports (trl/import_utils.py warns outside 0.22.0-0.31.0)."""

SHORT = ("out of memory", "can't allocate memory", "not enough memory")
"""What torch says, on a GPU and on a CPU, when there is none left."""

SMALLER = (
    "lower per_device_train_batch_size in [grpo] first, then vllm_gpu_memory_utilization or "
    "max_completion_length; or train adapters with a [lora] section, or on more GPUs "
    "(`podium train CONFIG --dry-run` estimates what is needed)"
)


def refuse_missing_folder(config: TrainingConfig) -> None:
    """Raise UserError where [model] path can only be a folder, and there is none.

    A name of the hub has at most one slash; whether that one is there is known when it is loaded.
    """
    path = config.model.path
    folder = path.startswith((".", "/", "~")) or path.count("/") > 1
    if folder and not Path(path).is_dir():
        raise UserError(
            f"[model] path: there is no folder {path}; train what it begins with first."
        )


def refuse_unready_machine(config: TrainingConfig) -> None:
    """Raise UserError where a package, a version or a GPU is missing."""
    missing = [name for name in NEEDED if util.find_spec(name) is None]
    if config.lora is not None and util.find_spec("peft") is None:
        missing.append("peft")
    if config.run.tensorboard and util.find_spec("tensorboard") is None:
        missing.append("tensorboard")
    if missing:
        raise UserError(f"Training needs {missing[0]}: {INSTALL}.")
    _refuse_version("trl", TRL_FROM, TRL_BELOW)
    if config.grpo.get("use_vllm"):
        if util.find_spec("vllm") is None:
            raise UserError("use_vllm needs vLLM: pip install '.[vllm]'.")
        _refuse_version("vllm", VLLM_FROM, VLLM_BELOW)
    if config.run.device == "gpu":
        _refuse_no_gpu(config)


def _refuse_no_gpu(config: TrainingConfig) -> None:
    import torch

    if not torch.cuda.is_available():
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


@contextmanager
def memory_said() -> Generator[None]:
    """Turn an out-of-memory error into one sentence that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        said = str(error).lower()
        if not isinstance(error, MemoryError) and not any(one in said for one in SHORT):
            raise
        where = "this machine" if "cpu" in said or isinstance(error, MemoryError) else "the GPU"
        raise UserError(f"Out of memory on {where}: {SMALLER}.") from error
