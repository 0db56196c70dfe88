"""TRL's GRPOTrainer (arXiv 2402.03300) with podium's rows and rewards, and its callback."""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are not installed in this environment.

import logging
import random
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from tqdm import tqdm
from transformers import PrinterCallback, ProgressCallback, TrainerCallback
from trl.models import unwrap_model_for_generation

from podium.conductor.training import grpo_options, run_folder
from podium.conductor.training.generation import (
    MergedAdapters,
    Told,
    greedy_texts,
    record_graphs,
    sampled_ids,
)
from podium.conductor.training.given_plans import PLANS
from podium.conductor.training.job import RewardRecorder, StepResults, TrainingJob, TrainingRewards
from podium.conductor.training.model import chat_template
from podium.conductor.training.model_card import describe_checkpoint
from podium.conductor.training.training_rows import COLUMNS, PromptBuilder, TrainingRow
from podium.conductor.training.trl_adapter import TrlAdapter
from podium.harness.errors import SpendLimit, TooManyMasked, UserError
from podium.harness.rewards.outcome import Status

Callback: Any = TrainerCallback
gather: Any = gather_object

LOGGED = {  # TRL's names -> ours, in a line of metrics.jsonl
    "loss": "loss",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "entropy": "entropy",
    "reward_std": "reward_std",
    "frac_reward_zero_std": "constant_groups",
    "completions/mean_length": "tokens",
    "completions/max_length": "most_tokens",
    "completions/clipped_ratio": "cut_off",
    "clip_ratio/region_mean": "clipped",
}


def without_prompts(record: logging.LogRecord) -> bool:
    """Return False (drop a record) for TRL's warning of a missing reward, as it quotes a prompt."""
    return "All reward functions returned None" not in record.getMessage()


def freeze_parameters(model: Any, fragments: Sequence[str]) -> None:
    """Freeze parameters whose names contain a fragment; UserError if a fragment matches none."""
    for fragment in fragments:
        matches = [values for name, values in model.named_parameters() if fragment in name]
        if not matches:
            raise UserError(
                f"[model] frozen: no parameter's name contains {fragment!r}. Leave it out."
            )
        for values in matches:
            values.requires_grad = False


class PromptTransform:
    """Adds prompts to a data set's batch; quick to hash, because `datasets` hashes transforms.

    `datasets` hashes a bound method together with its object, here the whole training: this took
    seconds, and printed in full what could not be pickled.
    """

    def __init__(self, prompts: PromptBuilder) -> None:
        """Store the object that makes the prompts."""
        self._prompts = prompts

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the data set's batch with a column of prompts added."""
        return self._prompts.render(batch)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PromptTransform":
        """Return the object itself, because a data set is copied with its transform."""
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle as a constant string, which `datasets` hashes."""
        return str, ("prompts of a training",)


def make_dataset(rows: Sequence[TrainingRow], prompts: PromptBuilder) -> Any:
    """Return training rows as TRL's data set: it stores ids and renders prompts on access."""
    columns = [row.as_columns() for row in rows]
    plain: Any = Dataset.from_dict({name: [record[name] for record in columns] for name in COLUMNS})
    return plain.with_transform(PromptTransform(prompts))


@dataclass(frozen=True, slots=True)
class Validator:
    """Generates greedy plans for fixed questions and rewards the plans, without random numbers."""

    training: TrainingJob
    watching: RewardRecorder
    rows: Sequence[TrainingRow]
    most_tokens: int

    def texts(self, model: Any, tokenizer: Any, rows: Sequence[TrainingRow]) -> list[str]:
        """Return the model's greedy completion of each row's prompt."""
        size, prompts = self.training.config.validation.batch, self.training.prompts
        template = chat_template(tokenizer)
        prompt_texts = [template(prompts.messages(row)) for row in rows]
        with grpo_options.autocast(self.training.config):
            return greedy_texts(model, tokenizer, prompt_texts, self.most_tokens, size)

    def judged(self, texts: Sequence[str]) -> dict[str, Any]:
        """Reward plans for the validation rows; return figures over all plans and by suite."""
        return run_folder.judged(self.training, self.watching, self.rows, texts)


def rank_share(rows: Sequence[TrainingRow], rank: int, processes: int) -> list[TrainingRow]:
    """Return the rows for which one process writes plans; all processes get equally many rows.

    >>> rows = [TrainingRow("s", str(n)) for n in range(5)]
    >>> [len(rank_share(rows, rank, 2)) for rank in (0, 1)]
    [3, 3]
    """
    each = -(-len(rows) // processes)
    mine = list(rows[rank::processes])
    return [*mine, *list(rows[-1:]) * (each - len(mine))]


class ConductorTrainer(TrlAdapter):
    """TRL's trainer with podium's checkpoints, resampling, and rewards during generation."""

    def __init__(self, stepping: "StepCallback", **arguments: Any) -> None:
        """Take the step callback; pass all other arguments to TRL's trainer."""
        logging.getLogger("trl.trainer.grpo_trainer").addFilter(without_prompts)
        super().__init__(callbacks=[stepping], **arguments)
        self.stepping = stepping
        stepping.trainer = self
        training = stepping.training
        rounds, sizes = training.config.reward.resample, grpo_options.batch_sizes(training.config)
        spare_rows = training.rows(sizes["rows"] * (1 + rounds))[sizes["rows"] :]
        pad = self.processing_class.pad_token_id
        self.resampling = grpo_options.Resampling(spare_rows, training.prompts, sizes, rounds, pad)
        for theirs in (ProgressCallback, PrinterCallback):  # they print all figures as dicts
            self.remove_callback(theirs)
        divided = grpo_options.sharding(training.config)
        # With sharded models or vLLM, TRL itself prepares generation and merges adapters.
        self.lends = not (divided or self.use_vllm or self.use_transformers_continuous_batching)
        self.merged = MergedAdapters(self.model if self.lends else None)
        self.told: Told | None = None
        # If TRL parses replies before the reward, that text is not the generated one.
        attributes = ("response_schema", "response_template")
        parsed = any(getattr(self.processing_class, name, None) for name in attributes)
        self.ahead = training.config.reward.ahead and self.lends and not parsed
        if self.lends:
            record_graphs(self.generation_config)

    def write_plans(self, prompts: Any) -> Any:
        """Generate a plan per prompt, and add the seconds to the step's figures."""
        started = monotonic()
        plans = super().write_plans(prompts)
        self.stepping.state.generating += monotonic() - started
        return plans

    @contextmanager
    def writing(self) -> Generator[Any]:
        """Yield the model for generation, with merged adapters and the autocast of an update."""
        checkpointing = self.args.gradient_checkpointing_kwargs
        with (
            unwrap_model_for_generation(
                self.model_wrapped, self.accelerator, gradient_checkpointing_kwargs=checkpointing
            ) as model,
            self.merged(),
            grpo_options.autocast(self.stepping.training.config),
        ):
            yield model

    def write_turn(self, prompt_ids: Any, *arguments: Any, **options: Any) -> Any:
        """Generate plans with podium's sampler, or TRL's if the model is sharded or in vLLM."""
        if not self.lends:
            return super().write_turn(prompt_ids, *arguments, **options)
        with self.writing() as model:
            tokenizer, config = self.processing_class, self.generation_config
            return sampled_ids(model, tokenizer, prompt_ids, config, self.told), None

    def write_and_score(self, inputs: Any) -> Any:
        """Generate and score a batch; `resample` replaces questions whose plans all score alike."""
        if not self.resampling.rounds:
            return self.scored(inputs)
        batch = self.resampling.learnt_from(self, inputs, self.state.global_step)
        self.stepping.state.resampled = self.resampling.said
        return batch

    @property
    def constant(self) -> Any:
        """The prompts in the latest batch whose plans all have the same reward."""
        return self.reward_funcs[0].constant

    def scored(self, inputs: Any) -> Any:
        """Generate and score a batch; SpendLimit, before any update, if the budget ran out."""
        self.told = self._begins(inputs) if self.ahead else None
        batch = super().write_and_score(inputs)
        outcomes = self.stepping.rewards.training.seen.outcomes
        if any(gather([any(outcome.status is Status.BUDGET for outcome in outcomes)])):
            raise SpendLimit("The budget is spent.")
        return batch

    def _begins(self, inputs: Any) -> Told:
        """Return a callback that rewards finished plans while others are still generated."""
        columns = {name: [row[name] for row in inputs] for name in COLUMNS}
        columns["trainer_state"] = self.state
        row_items = self.reward_funcs[0].items([""] * len(inputs), columns)
        rewards = self.stepping.rewards.training

        def begin(rows: Sequence[int], texts: Sequence[str]) -> None:
            pairs = zip(rows, texts, strict=True)
            finished_items = [replace(row_items[row], completion=text) for row, text in pairs]
            rewards.begin(finished_items, self.async_loop)

        return begin

    def save_before(self) -> None:
        """Save a checkpoint of the last complete step, as if the interrupted step had not begun."""
        newest = run_folder.newest_checkpoint(self.stepping.out)
        saved = newest is not None and newest.name == f"checkpoint-{self.state.global_step}"
        if not saved and self.stepping.restore_random():
            self.stepping.state.line = {}
            self.save_step(self.model, None)

    def create_model_card(self, *arguments: Any, **options: Any) -> None:
        """Do nothing, instead of writing TRL's card: podium's card has the provenance."""

    def save_step(self, model: Any, trial: Any) -> None:
        """Save a checkpoint as TRL does, and add podium.json and the model card."""
        super().save_step(model, trial)
        step = self.state.global_step
        folder = self.stepping.out / grpo_options.CHECKPOINTS / f"checkpoint-{step}"
        if grpo_options.is_main() and folder.is_dir():
            validation = self.stepping.state.validation  # of this step, already logged
            describe_checkpoint(self.stepping.training, folder, step, validation)

    def validated(self, validator: Validator) -> dict[str, Any]:
        """Return the current model's validation figures; each process writes its share of plans."""
        rank, size = self.accelerator.process_index, self.accelerator.num_processes
        mine = rank_share(validator.rows, rank, size)
        with self.writing() as model:
            texts = validator.texts(model, self.processing_class, mine)
        written: Any = gather(list(zip(count(rank, size), texts, strict=False)))
        in_order = [text for place, text in sorted(written) if place < len(validator.rows)]
        return grpo_options.from_first_process(lambda: self._judged(validator, in_order))

    def _judged(self, validator: Validator, texts: Sequence[str]) -> dict[str, Any]:
        try:
            return validator.judged(texts)
        except TooManyMasked:
            if self.stepping.rewards.stopped():  # the budget ran out; no grader failed
                return {f"status/{Status.BUDGET}": 1.0}
            raise

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log a step's figures to trackers, including the figures of its validation."""
        validation = self.stepping.state.validation
        if validation and "loss" in logs:
            logs |= run_folder.validation_scalars(validation)
        super().log(logs, start_time)


def gathered(results: StepResults) -> StepResults:
    """Return a step's results (items and outcomes), collected from all processes."""
    if grpo_options.world_size() == 1:
        return results
    items: Any = gather(results.items)
    outcomes: Any = gather(results.outcomes)
    return StepResults(items, outcomes, max(gather([results.seconds])))


def agreed(reason: str) -> str:
    """Return the first process's reason to end, so that all end together; empty if none has one."""
    return next((text for text in gather([reason]) if text), "")


class StepCallback(Callback):
    """Writes each step to metrics.jsonl, validates, keeps the best model and ends the training."""

    def __init__(
        self,
        training: TrainingJob,
        rewards: TrainingRewards,
        validator: Validator,
        say: Callable[[str], None],
    ) -> None:
        """Store the arguments; `trainer` and `state` are set before training begins."""
        self.training, self.rewards, self.validator = training, rewards, validator
        self.say = say
        self.out: Path = training.out
        self.state = run_folder.TrainingState()
        self.trainer: Any = None
        self.owed: dict[str, Any] | None = None  # a step's line without its validation
        self.bar: Any = None  # on a terminal only; lines are printed above it
        self._started = monotonic()
        self._random: Any = None
        self._first: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Show a progress bar, and make the validation that the last logged step lacks, if any."""
        if grpo_options.is_main():
            bar: Any = tqdm
            step = state.global_step
            self.bar = bar(total=state.max_steps, initial=step, disable=None, dynamic_ncols=True)
        if self.owed is not None:
            self._pay(self.owed, state.global_step)
        if self.state.validation and (self.owed is not None or not state.global_step):
            self.trainer.log(run_folder.validation_scalars(self.state.validation))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the progress bar."""
        if self.bar is not None:
            self.bar.close()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Store the states of all random generators, with which the first batch is drawn."""
        self._first = _random_states()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock, and store the states of all random generators at this step's start."""
        # On resume, step 0 restores its states before its batch is drawn, later steps after that.
        self._random = _random_states() if state.global_step else self._first
        self._started = monotonic()
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()  # a warm start may have held more
        self.state.generating, self.state.resampled = 0.0, {}
        self.state.spent = self.rewards.spent()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Compute the step's figures, validate if due, and end the training if it must end."""
        step = state.global_step
        seconds = monotonic() - self._started
        results = gathered(self.rewards.training.take())
        self._random = None
        self.state.line = self._line(step, results, seconds)
        self.state.validation = None
        run_folder.note_step(self.state, self.state.line)
        self.state.dearest = max(self.state.dearest, self.rewards.spent() - self.state.spent)
        if run_folder.validation_due(self.training.config, step):
            validation = self.validate(step)
            self.state.line |= {"validation": validation} if validation else {}
        self._end(step, control)
        if grpo_options.is_main():
            self._write_plans(step, results)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kw: Any) -> None:
        """Write the step's line to metrics.jsonl, with TRL's figures added."""
        if not self.state.line or "loss" not in (logs or {}):
            return
        figures = {ours: logs[theirs] for theirs, ours in LOGGED.items() if theirs in logs}
        line = {**self.state.line, **figures}
        self.state.line = {}
        if grpo_options.is_main():
            run_folder.append_line(self.out / run_folder.METRICS, line)
            self.say_step(line)

    def say_step(self, line: dict[str, Any]) -> None:
        """Print a step's progress: its reward, and its validation if there was one."""
        if self.bar is not None and line["step"]:
            reward = line.get("reward")
            reward_text = "unknown" if reward is None else f"{reward:.3f}"
            self.bar.set_postfix_str(f"reward {reward_text}, read {line.get('parsed') or 0.0:.0%}")
            self.bar.update(1)
        self._say_validation(line)

    def _say_validation(self, line: dict[str, Any]) -> None:
        if text := run_folder.validation_text(line):
            self.say(text)

    def restore_random(self) -> bool:
        """Restore the random states of the running step's start; return False if no step runs."""
        states: Any = self._random
        if states is None:
            return False
        random.setstate(states["python"])
        np.random.set_state(states["numpy"])
        torch.set_rng_state(states["torch"])
        if states["cuda"]:
            torch.cuda.set_rng_state_all(states["cuda"])
        return True

    def _line(self, step: int, results: StepResults, seconds: float) -> dict[str, Any]:
        summary = run_folder.step_summary(results, self.training.read_plan)
        generating = self.state.generating
        updating = seconds - generating - (summary["reward_seconds"] or 0.0)
        memory = {"peak_memory_gib": run_folder.peak_gib()}
        if torch.cuda.is_available():
            memory["peak_gpu_memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 3)
        return {
            "step": step,
            **summary,
            **self.state.resampled,
            "workers": run_folder.worker_shares(results, self.training.read_plan),
            "generation_seconds": round(generating, 3),
            "update_seconds": round(max(0.0, updating), 3),
            "seconds": round(seconds, 3),
            **{name: max(gather([size])) for name, size in memory.items()},
        }

    def validate(self, step: int) -> dict[str, Any] | None:
        """Return validation figures, saving the model if it is the best; None if money is short."""
        self.state.ended = agreed(self._too_dear(self.state.validating, "a validation"))
        if self.state.ended:
            return None
        figures: dict[str, Any] = self.trainer.validated(self.validator)
        if run_folder.cut_short(figures):
            self.state.ended = (
                f"stopped, because the budget ran out in the validation of step {step}"
            )
            return None
        if run_folder.note_validation(self.state, step, figures):
            self.keep(step, figures)
        if figures["masked"]:
            self.say(f"step {step}: {run_folder.ungraded_text(figures)}; they count as not right.")
        return figures

    def _too_dear(self, needed: Any, action: str) -> str:
        """Return why an action that needs `needed` dollars must not begin; empty if it may."""
        limit, gone = self.training.max_usd, self.rewards.spent()
        if limit is None or gone + needed <= limit:
            return ""
        return f"stopped, because ${gone:.4f} is spent and {action} could exceed ${limit}"

    def _pay(self, line: dict[str, Any], step: int) -> None:
        """Make the missing validation of a logged step; SpendLimit if the budget is too small."""
        validation = self.validate(step)
        if validation is None:
            raise SpendLimit(self.state.ended)
        validated_line = {**line, "validation": validation}
        if grpo_options.is_main():
            run_folder.rewind_lines(self.out / run_folder.METRICS, step - 1)
            run_folder.append_line(self.out / run_folder.METRICS, validated_line)
            self._say_validation(validated_line)

    def keep(self, step: int, validation: Mapping[str, Any]) -> None:
        """Write the current model to best/; once complete, it replaces the old best model."""
        partial = self.out / f"{run_folder.BEST}.part"
        self.trainer.save_model(str(partial))
        if not grpo_options.is_main():
            return
        describe_checkpoint(self.training, partial, step, validation)
        final = self.out / run_folder.BEST
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)

    def _end(self, step: int, control: Any) -> None:
        config, state = self.training.config, self.state
        patience = config.validation.patience
        reason = state.ended
        if state.asked_to_stop:
            reason = "stopped on request"
        elif patience is not None and state.since >= patience:
            reason = f"no better validation in the last {patience}, best at step {state.best_step}"
        elif state.unread >= run_folder.UNREAD:
            reason = run_folder.NOTHING_READ
        elif not reason and step < int(config.grpo["max_steps"]):
            due = run_folder.validation_due(config, step + 1)
            needed = state.dearest + (state.validating if due else 0)
            reason = self._too_dear(needed, "another step")
        reason = agreed(reason)
        if reason:
            state.ended = reason
            control.should_training_stop = True
            control.should_save = True

    def _write_plans(self, step: int, results: StepResults) -> None:
        """Log a step's plans to plans.jsonl, with texts only if every suite may be published."""
        for item, outcome in zip(results.items, results.outcomes, strict=True):
            plan = self.training.read_plan(item)
            steps = plan and [(task.worker, [*plan.reads(n)]) for n, task in enumerate(plan.steps)]
            line: dict[str, Any] = {
                "step": step,
                "suite": item.suite,
                "question": item.question,
                "value": outcome.value,
                "status": outcome.status.value,
                "correct": outcome.components.get("correct"),
                "leaked": outcome.work.leaked if outcome.work else None,
                "workers": list(item.workers),
                "plan": steps,
            }
            text = {"completion": item.completion} if self.training.publishable else {}
            run_folder.append_line(self.out / PLANS, line | text)


def _random_states() -> dict[str, Any]:
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
