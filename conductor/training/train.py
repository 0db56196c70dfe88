"""A training from start to end: load, warm start, GRPO, validate, save."""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are not installed in this environment.

import shutil
import signal
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from podium.conductor.checkpoint import INFO
from podium.conductor.training import grpo_options, run_folder
from podium.conductor.training.given_plans import PLANS
from podium.conductor.training.job import (
    TrainingJob,
    TrainingRewards,
    check_job,
    make_rewards,
    open_box,
    refuse_gullible_graders,
    tokenizer_rows,
    warm_start_rows,
)
from podium.conductor.training.model import (
    build_model,
    chat_template,
    load_model,
    merge_adapters,
    warm_start,
    with_adapters,
)
from podium.conductor.training.model_card import describe_checkpoint
from podium.conductor.training.rounds import with_later_rounds
from podium.conductor.training.training_rows import ShownRow, TrainingRow, joined
from podium.harness.errors import SpendLimit, TooManyMasked, UserError
from podium.harness.shutdown import stopping_signals

Say = Callable[[str], None]
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # torch's words

SMALLER = (
    "lower per_device_train_batch_size in [grpo] first, then vllm_gpu_memory_utilization or "
    "max_completion_length; or train adapters with a [lora] section, or on more GPUs "
    "(`podium train CONFIG --dry-run` estimates what is needed)"
)


@dataclass(frozen=True, slots=True)
class _Run:
    job: TrainingJob
    rewards: TrainingRewards
    newest: Path | None  # the checkpoint from which a training resumes
    args: Any  # TRL's settings; made first, because DeepSpeed divides a model while it loads
    say: Say


def train(job: TrainingJob, say: Say) -> str:
    """Run a training; return a sentence on how it ended. UserError if it must not begin."""
    check_job(job)
    with quiet(), open_box(job) as box:
        args = grpo_options.grpo_config(job.config, job.out)
        anyio.run(refuse_gullible_graders, job, box and box.box)
        out = run_folder.prepare_folder(job)
        newest = run_folder.newest_checkpoint(out) if job.resume else None
        rewards = make_rewards(job, box and box.box, out)
        with memory_said():
            return _story(_Run(job, rewards, newest, args, say))


def _story(run: _Run) -> str:
    import torch
    from transformers import set_seed

    config = run.job.config
    if config.run.device == "cpu":
        torch.set_num_threads(config.run.threads)
    set_seed(config.run.seed)

    # Load, and warm start, before GRPO.
    model, tokenizer = _first_model(run)
    if run.newest:
        run_folder.refuse_foreign_checkpoint(run.newest, model.config.to_dict(), len(tokenizer))

    # GRPO, after the steps already made; its callback validates and keeps the best model.
    trainer = _trainer(run, model, tokenizer)
    watch, lines = trainer.stepping, _lines_so_far(run)
    watch.state = run_folder.replay_state(lines)
    watch.owed = run_folder.owed_validation(config, lines)
    if lines or run.newest or _validate_start(run, trainer):
        with stopping(watch.state, run.say):
            _make_steps(run, trainer)

    # Keep the newest model, and say how it ended.
    return _keep_last(run, trainer)


def _first_model(run: _Run) -> tuple[Any, Any]:
    config = run.job.config
    if config.model.path and config.warm_start.kind == "none":
        return load_model(config.model.path, config)
    grpo_options.from_first_process(lambda: _make_start(run))
    # It is loaded from the file, as in a resumed run: the model in memory may differ.
    return load_model(str(run.job.out / run_folder.START), config)


def _make_start(run: _Run) -> None:
    job, config, start = run.job, run.job.config, run.job.out / run_folder.START
    if (start / INFO).is_file():
        return
    model, tokenizer, rows = starting_model(job, "" if config.lora else "float32")
    if config.model.path and config.lora and not hasattr(model, "peft_config"):
        model = with_adapters(model, config)
    if config.warm_start.kind != "none":
        run.say(f"Warm start: {config.warm_start.steps} steps on {config.warm_start.kind}.")
        warm_start(config, model, tokenizer, rows, run.job.out)
    scratch = start.with_name(f"{start.name}.part")  # renamed once complete
    shutil.rmtree(scratch, ignore_errors=True)
    model.save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)
    describe_checkpoint(job, scratch, 0, None)
    scratch.rename(start)


def starting_model(job: TrainingJob, dtype: str) -> tuple[Any, Any, list[ShownRow]]:
    """Return the model and tokenizer with which a training begins, and its warm start's rows."""
    config = job.config
    loaded = load_model(config.model.path, config, dtype) if config.model.path else None
    # The same template as in GRPO and validation: another would teach another format.
    prompts = replace(job.prompts, template=chat_template(loaded[1]) if loaded else joined)
    rows = [prompts.shown(row) for row in warm_start_rows(job)]
    model, tokenizer = loaded or build_model(config, tokenizer_rows(job, rows))
    return model, tokenizer, rows


def _trainer(run: _Run, model: Any, tokenizer: Any) -> Any:
    from podium.conductor.training import trainer

    job, config, rewards = run.job, run.job.config, run.rewards
    trainer.freeze_parameters(model, config.model.frozen)
    limit = run.args.max_completion_length
    rows, held_out = job.rows(grpo_options.batch_sizes(config)["rows"]), job.validation_rows()
    if config.recursion:
        writer = trainer.Validator(job, rewards.validation, (), limit)
        write = partial(writer.texts, model.to(run.args.device), tokenizer)
        both = rows, held_out
        rows, held_out = with_later_rounds(job, rewards.answerer, both, write, run.say)
    validator = trainer.Validator(job, rewards.validation, held_out, limit)
    callback = trainer.StepCallback(job, rewards, validator, run.say)
    return make_trainer(callback, model, tokenizer, run.args, rows)


def make_trainer(
    callback: Any, model: Any, tokenizer: Any, args: Any, rows: Sequence[TrainingRow]
) -> Any:
    """Return TRL's trainer for a model and training rows, with podium's `StepCallback`."""
    # Imported late, because trainer.py imports torch.
    from podium.conductor.training import trainer
    from podium.harness.rewards.trainers import TrlReward

    job, config = callback.training, callback.training.config
    return trainer.ConductorTrainer(
        callback,
        model=model,
        processing_class=tokenizer,
        args=args,
        reward_funcs=TrlReward(callback.rewards.training, names=job.spec.names),
        train_dataset=trainer.make_dataset(rows, job.prompts),
        peft_config=None if hasattr(model, "peft_config") else grpo_options.lora_config(config),
    )


def _lines_so_far(run: _Run) -> list[dict[str, Any]]:
    """Return metrics.jsonl's lines up to the checkpoint; a resumed run repeats later steps."""
    step = int(run.newest.name.rpartition("-")[2]) if run.newest else -1
    lines = run.job.out / run_folder.METRICS
    if not grpo_options.is_main():  # the first process may come later
        return [line for line in run_folder.read_lines(lines) if line["step"] <= step]
    run_folder.rewind_lines(run.job.out / PLANS, step)
    return run_folder.rewind_lines(lines, step)


def _validate_start(run: _Run, trainer: Any) -> bool:
    """Validate the model before its first step; return whether the budget sufficed."""
    line = {"step": 0, "validation": trainer.stepping.validate(0)}
    if line["validation"] is None:
        return False
    if grpo_options.is_main():
        run_folder.append_line(run.job.out / run_folder.METRICS, line)
    trainer.stepping.say_step(line)
    return True


def _make_steps(run: _Run, trainer: Any) -> None:
    """Run a training's steps; if the budget ends in a step, save the state before that step."""
    try:
        trainer.train(resume_from_checkpoint=str(run.newest) if run.newest else None)
    except (SpendLimit, TooManyMasked) as error:
        if isinstance(error, TooManyMasked) and not run.rewards.stopped():
            path = run_folder.newest_checkpoint(run.job.out)
            text = f"the newest checkpoint is {path.name}" if path else "there is no checkpoint"
            raise TooManyMasked(
                f"{error} Training stopped; {text}. Continue with --resume."
            ) from None
        trainer.save_before()
        state = trainer.stepping.state
        state.ended = state.ended or "stopped, because the budget is spent"


def _keep_last(run: _Run, trainer: Any) -> str:
    state, step, last_folder = (
        trainer.stepping.state,
        trainer.state.global_step,
        run.job.out / run_folder.LAST,
    )
    trainer.save_model(str(last_folder))
    if grpo_options.is_main():
        describe_checkpoint(run.job, last_folder, step, state.validation)
        merge_adapters(run.job.config, run.job.out)
    best = "No validation has selected a checkpoint"
    if state.best is not None:
        best_folder = run.job.out / run_folder.BEST
        best = f"Best validation {state.best:.3f} at step {state.best_step}, in {best_folder}"
    again = "; continue with --resume" if state.ended.startswith("stopped") else ""
    return f"Step {step}: {state.ended or 'all steps are made'}. {best}{again}."


@contextmanager
def quiet() -> Generator[None]:
    """Silence transformers' progress bars, and its warnings about its next version."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            logging.enable_progress_bar()


@contextmanager
def memory_said() -> Generator[None]:
    """Turn an out-of-memory error into a UserError that names the settings to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if not isinstance(error, MemoryError) and not any(phrase in text for phrase in NO_MEMORY):
            raise
        device = "this machine" if "cpu" in text or isinstance(error, MemoryError) else "the GPU"
        raise UserError(f"Out of memory on {device}: {SMALLER}.") from error


@contextmanager
def stopping(state: Any, say: Say) -> Generator[None]:
    """On the first stop signal, end after the running step; on a second Ctrl-C, end at once."""
    handlers = {number: signal.getsignal(number) for number in stopping_signals()}

    def stop(number: int, frame: Any) -> None:
        if state.asked_to_stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        state.asked_to_stop = True
        say("Stopping after this step, with a checkpoint. Press Ctrl-C again to stop at once.")

    for number in handlers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
