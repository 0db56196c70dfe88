"""A training from top to bottom: load, warm start, GRPO, validate, keep."""

import re
import shutil
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata, util
from pathlib import Path
from typing import Any

import anyio

from conductor.qwen2 import ADAPTERS
from conductor.reward import reward_values
from conductor.training.config import TrainingConfig
from conductor.training.grpo_options import (
    batch_sizes,
    from_first_process,
    grpo_config,
    lora_config,
    refuse_sharding,
)
from conductor.training.job import (
    TrainingJob,
    open_box,
    refuse_gullible_graders,
    tokenizer_rows,
    warm_start_rows,
)
from conductor.training.metrics import (
    TrainingRewards,
    make_rewards,
    owed_validation,
    replay_state,
    reward_config,
)
from conductor.training.model import load_model
from conductor.training.model_card import describe_checkpoint
from conductor.training.rounds import FirstPlanMaker, with_later_rounds
from conductor.training.run_folder import (
    BEST,
    LAST,
    METRICS,
    PLANS,
    START,
    CpuClock,
    append_line,
    is_main,
    newest_checkpoint,
    prepare_folder,
    read_lines,
    refuse_foreign_checkpoint,
    rewind_lines,
)
from harness.errors import SpendLimit, TooManyMasked, UserError

# § What a machine must have before a training begins; each lack is one sentence with the way
# § out.


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


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


# § The order of a training: refuse, load, warm start, GRPO, validate, keep.
# §
# § Everything that can be refused is refused before a model is loaded and before a worker is
# § asked.


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReadyTraining:
    """A training with its folder, its rewards and the checkpoint that it goes on from."""

    training: TrainingJob
    out: Path
    rewards: TrainingRewards
    newest: Path | None
    args: Any
    """TRL's settings; made before a model is loaded, for DeepSpeed divides it while it loads."""
    clock: CpuClock


def train(training: TrainingJob, say: Say) -> str:
    """Train and return one sentence about how it ended; UserError before anything is spent."""
    clock, config = CpuClock(), training.config
    refuse_unready_machine(config)
    refuse_missing_folder(config)
    batch_sizes(config)
    refuse_sharding(config)
    reward_values(reward_config(training))
    from conductor.training.trainer import quiet

    try:
        with quiet(), open_box(training) as box:
            args = grpo_config(config, training.request.out)
            anyio.run(refuse_gullible_graders, training, box and box.box)
            out = clock.folder = prepare_folder(training)
            newest = newest_checkpoint(out) if training.request.resume else None
            made = make_rewards(training, box and box.box, out)
            with memory_said():
                return _run(ReadyTraining(training, out, made, newest, args, clock), say)
    finally:
        clock.note()


def _run(ready: ReadyTraining, say: Say) -> str:
    """Load, warm up and train."""
    import torch
    from transformers import set_seed

    config = ready.training.config
    if config.run.device == "cpu":
        torch.set_num_threads(config.run.threads)
    set_seed(config.run.seed)
    model, tokenizer = _loaded(ready, say)
    ready.clock.note(0)
    if ready.newest:
        refuse_foreign_checkpoint(ready.newest, model.config.to_dict(), len(tokenizer))
    trainer = _trainer(ready, model, tokenizer, say)
    stepping = trainer.stepping
    stepping.clock = ready.clock
    lines = _history(ready)
    stepping.state, stepping.owed = replay_state(lines), owed_validation(config, lines)
    if lines or ready.newest or _first_line(ready, trainer):
        with stopping(stepping.state, say):
            _steps(ready, trainer)
    return _finish(ready, trainer)


def _first_line(ready: ReadyTraining, trainer: Any) -> bool:
    """Validate what training begins with; return whether the money lasted for that."""
    first = {"step": 0, "validation": trainer.stepping.validate(0)}
    ready.clock.note(0)
    if first["validation"] is None:
        return False
    if is_main():
        append_line(ready.out / METRICS, first)
    trainer.say_step(first)
    return True


def _steps(ready: ReadyTraining, trainer: Any) -> None:
    """Make the steps; where the money ends within one, the one before is saved."""
    try:
        trainer.train(resume_from_checkpoint=str(ready.newest) if ready.newest else None)
    except (SpendLimit, TooManyMasked) as error:
        if isinstance(error, TooManyMasked) and not ready.rewards.stopped():
            where = newest_checkpoint(ready.out)
            kept = f"the newest checkpoint is {where.name}" if where else "there is no checkpoint"
            raise TooManyMasked(f"{error} Training stopped; {kept}: --resume goes on.") from None
        trainer.save_before()
        state = trainer.stepping.state
        state.ended = state.ended or "stopped, for the money is spent"


def _history(ready: ReadyTraining) -> list[dict[str, Any]]:
    """Return the lines of the steps that were made, without those that are made again."""
    step = int(ready.newest.name.rpartition("-")[2]) if ready.newest else -1
    if not is_main():  # the first process may not have come to this yet
        return [line for line in read_lines(ready.out / METRICS) if line["step"] <= step]
    rewind_lines(ready.out / PLANS, step)
    return rewind_lines(ready.out / METRICS, step)


def _loaded(ready: ReadyTraining, say: Say) -> tuple[Any, Any]:
    """Return the model and tokenizer that GRPO begins with, made once and kept in start/."""
    config, start = ready.training.config, ready.out / START
    if config.model.path and config.warm_start.kind == "none":
        return load_model(config.model.path, config)
    from_first_process(lambda: _make_start(ready, say))
    return load_model(
        str(start), config
    )  # as a resumed run does: what is made in memory may differ


def _make_start(ready: ReadyTraining, say: Say) -> None:
    """Make the model that GRPO begins with, in one process, and keep it in start/."""
    training, config = ready.training, ready.training.config
    if (ready.out / START / "config.json").is_file():
        return
    shown = [training.asking.shown(row) for row in warm_start_rows(training)]
    if config.model.from_scratch:
        from conductor.training.model import build_model

        model, tokenizer = build_model(config, tokenizer_rows(training, shown))
    else:
        model, tokenizer = load_model(config.model.path, config)
    if config.warm_start.kind != "none":
        from conductor.training.model import warm_start

        say(f"Warm start: {config.warm_start.steps} steps on random valid plans.")
        warm_start(config, model, tokenizer, shown, ready.out)
    _save(training, model, tokenizer, ready.out / START)


def _save(training: TrainingJob, model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model whole or not at all."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    describe_checkpoint(training, part, 0, None)
    part.rename(folder)


def _trainer(ready: ReadyTraining, model: Any, tokenizer: Any, say: Say) -> Any:
    """Return TRL's trainer on our rows and reward."""
    from conductor.training.trainer import (
        ConductorTrainer,
        StepCallback,
        Validator,
        freeze_parameters,
        make_dataset,
    )
    from harness.rewards.trainers import TrlReward

    training, config = ready.training, ready.training.config
    freeze_parameters(model, config.model.frozen)
    most = ready.args.max_completion_length
    rows, held_out = training.rows(batch_sizes(config)["rows"]), training.validation_rows()
    if config.recursion:
        first = Validator(training, ready.rewards.validation, (), most)
        write = partial(first.texts, model.to(ready.args.device), tokenizer)
        asked = FirstPlanMaker(ready.rewards.answerer, training, write, say)
        rows, held_out = with_later_rounds(asked, (rows, held_out))
    validator = Validator(training, ready.rewards.validation, held_out, most)
    return ConductorTrainer(
        StepCallback(training, ready.rewards, validator, say),
        model=model,
        processing_class=tokenizer,
        args=ready.args,
        reward_funcs=TrlReward(ready.rewards.training, names=training.spec.names),
        train_dataset=make_dataset(rows, training.asking),
        peft_config=lora_config(config),
    )


def _finish(ready: ReadyTraining, trainer: Any) -> str:
    """Keep the newest model, and return how it ended."""
    state, step = trainer.stepping.state, trainer.state.global_step
    last = ready.out / LAST
    trainer.save_model(str(last))
    if is_main():
        describe_checkpoint(ready.training, last, step, state.validation)
    merge_adapters(ready)
    why = state.ended or "all steps are made"
    best = "No validation has picked a checkpoint"
    if state.best is not None:
        best = f"Best validation {state.best:.3f} at step {state.best_step}, in {ready.out / BEST}"
    again = "; --resume goes on" if state.ended.startswith("stopped") else ""
    return f"Step {step}: {why}. {best}{again}."


def merge_adapters(ready: ReadyTraining) -> None:
    """Make whole models of best/ and last/ where adapters were trained; these stay in adapter/."""
    if ready.training.config.lora is None or not is_main():
        return
    from conductor.training.model import merge_weights

    config, start = ready.training.config, ready.out / START
    base = str(start) if (start / "config.json").is_file() else config.model.path
    for folder in (ready.out / BEST, ready.out / LAST):
        if (folder / ADAPTERS).is_file():
            merge_weights(load_model(base, config)[0], folder)


@contextmanager
def stopping(state: Any, say: Say) -> Generator[None]:
    """End after the running step at the first Ctrl-C or SIGTERM, at once at the second Ctrl-C."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: Any) -> None:
        if state.asked_to_stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        state.asked_to_stop = True
        say("Stopping after this step, with a checkpoint; once more ends at once.")

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
