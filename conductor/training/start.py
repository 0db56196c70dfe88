"""The order of a training: refuse, load, warm start, GRPO, validate, keep.

Everything that can be refused is refused before a model is loaded and before a worker is asked.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import shutil
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from conductor.checkpoint import FILE, RELEASED
from conductor.embedded.weights import ADAPTERS
from conductor.training.about import describe_checkpoint
from conductor.training.checks import memory_said, refuse_missing_folder, refuse_unready_machine
from conductor.training.first_rounds import Asked, with_later_rounds
from conductor.training.folder import (
    BEST,
    LAST,
    METRICS,
    PLANS,
    START,
    append_line,
    is_main,
    newest_checkpoint,
    prepare,
    read_lines,
    refuse_foreign_checkpoint,
    rewind,
)
from conductor.training.job import Training, open_box, refuse_gullible_graders
from conductor.training.processor import Clock
from conductor.training.progress import owed, state_of
from conductor.training.rewarding import Rewards, reward_config, rewards
from conductor.training.settings import batches, dtype, grpo_config, lora_config
from conductor.training.shown_rows import every_row, tokenized
from conductor.training.together import from_first, refuse_divided
from conductor.training_reward import values_of
from harness.errors import SpendLimit, TooManyMasked, UserError

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ready:
    """A training with its folder, its rewards and the checkpoint that it goes on from."""

    training: Training
    out: Path
    rewards: Rewards
    newest: Path | None
    args: Any
    """TRL's settings; made before a model is loaded, for DeepSpeed divides it while it loads."""
    clock: Clock


def train(training: Training, say: Say) -> str:
    """Train and return one sentence about how it ended; UserError before anything is spent."""
    clock, config = Clock(), training.config
    refuse_unready_machine(config)
    refuse_missing_folder(config)
    batches(config)
    refuse_divided(config)
    values_of(reward_config(training))
    from conductor.training.showing import quiet

    try:
        with quiet(), open_box(training) as box:
            args = grpo_config(config, training.request.out)
            anyio.run(refuse_gullible_graders, training, box and box.box)
            out = clock.folder = prepare(training)
            newest = newest_checkpoint(out) if training.request.resume else None
            made = rewards(training, box and box.box, out)
            with memory_said():
                return _run(Ready(training, out, made, newest, args, clock), say)
    finally:
        clock.note()


def _run(ready: Ready, say: Say) -> str:
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
    stepping.state, stepping.owed = state_of(lines), owed(config, lines)
    if lines or ready.newest or _first_line(ready, trainer):
        with stopping(stepping.state, say):
            _steps(ready, trainer)
    return _finish(ready, trainer)


def _first_line(ready: Ready, trainer: Any) -> bool:
    """Validate what training begins with; return whether the money lasted for that."""
    first = {"step": 0, "validation": trainer.stepping.validate(0)}
    ready.clock.note(0)
    if first["validation"] is None:
        return False
    if is_main():
        append_line(ready.out / METRICS, first)
    trainer.say_step(first)
    return True


def _steps(ready: Ready, trainer: Any) -> None:
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


def _history(ready: Ready) -> list[dict[str, Any]]:
    """Return the lines of the steps that were made, without those that are made again."""
    step = int(ready.newest.name.rpartition("-")[2]) if ready.newest else -1
    if not is_main():  # the first process may not have come to this yet
        return [line for line in read_lines(ready.out / METRICS) if line["step"] <= step]
    rewind(ready.out / PLANS, step)
    return rewind(ready.out / METRICS, step)


def _loaded(ready: Ready, say: Say) -> tuple[Any, Any]:
    """Return the model and tokenizer that GRPO begins with, made once and kept in start/."""
    config, start = ready.training.config, ready.out / START
    if config.model.path and config.warm_start.kind == "none":
        return load(config.model.path, config)
    from_first(lambda: _make_start(ready, say))
    return load(str(start), config)  # as a resumed run does: what is made in memory may differ


def _make_start(ready: Ready, say: Say) -> None:
    """Make the model that GRPO begins with, in one process, and keep it in start/."""
    training, config = ready.training, ready.training.config
    if (ready.out / START / "config.json").is_file():
        return
    shown = [training.asking.shown(row) for row in every_row(training)]
    if config.model.from_scratch:
        from conductor.training.scratch_model import build

        model, tokenizer = build(config, tokenized(training, shown))
    else:
        model, tokenizer = load(config.model.path, config)
    if config.warm_start.kind != "none":
        from conductor.training.warm_start import warm_start

        say(f"Warm start: {config.warm_start.steps} steps on random valid plans.")
        warm_start(config, model, tokenizer, shown, ready.out)
    _save(training, model, tokenizer, ready.out / START)


def load(path: str, config: Any) -> tuple[Any, Any]:
    """Return a model and tokenizer from a folder or the hub; UserError when they cannot be had.

    The name of a released checkpoint stands for its folder.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if (RELEASED / path / FILE).is_file():
        path = str(RELEASED / path)
    auto: Any = AutoModelForCausalLM
    tokens: Any = AutoTokenizer
    given: dict[str, Any] = dict(config.grpo.get("model_init_kwargs") or {})
    given["dtype"] = dtype(config)
    try:
        return auto.from_pretrained(path, **given), tokens.from_pretrained(path)
    except (OSError, ValueError) as error:
        said = str(error).strip().splitlines()[0]
        raise UserError(f"[model] path {path!r} cannot be loaded: {said}") from error


def _save(training: Training, model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model whole or not at all."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    describe_checkpoint(training, part, 0, None)
    part.rename(folder)


def _trainer(ready: Ready, model: Any, tokenizer: Any, say: Say) -> Any:
    """Return TRL's trainer on our rows and reward."""
    from conductor.training.generating import Validator
    from conductor.training.grpo import Conducting, data_set, freeze
    from conductor.training.stepping import Stepping
    from harness.rewards.trainers import TrlReward

    training, config = ready.training, ready.training.config
    freeze(model, config.model.frozen)
    most = ready.args.max_completion_length
    rows, held_out = training.rows(batches(config)["rows"]), training.validation_rows()
    if config.recursion:
        first = Validator(training, ready.rewards.validation, (), most)
        write = partial(first.texts, model.to(ready.args.device), tokenizer)
        asked = Asked(ready.rewards.answerer, training, write, say)
        rows, held_out = with_later_rounds(asked, (rows, held_out))
    validator = Validator(training, ready.rewards.validation, held_out, most)
    return Conducting(
        Stepping(training, ready.rewards, validator, say),
        model=model,
        processing_class=tokenizer,
        args=ready.args,
        reward_funcs=TrlReward(ready.rewards.training, names=training.spec.names),
        train_dataset=data_set(rows, training.asking),
        peft_config=lora_config(config),
    )


def _finish(ready: Ready, trainer: Any) -> str:
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


def merge_adapters(ready: Ready) -> None:
    """Make whole models of best/ and last/ where adapters were trained; these stay in adapter/."""
    if ready.training.config.lora is None or not is_main():
        return
    from conductor.training.adapters import merge

    config, start = ready.training.config, ready.out / START
    base = str(start) if (start / "config.json").is_file() else config.model.path
    for folder in (ready.out / BEST, ready.out / LAST):
        if (folder / ADAPTERS).is_file():
            merge(load(base, config)[0], folder)


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
