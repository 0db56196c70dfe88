"""TRL's GRPOTrainer on our rows and reward, and the callback that watches its steps."""

import logging
import random
import shutil
import warnings
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from tqdm import tqdm
from transformers import PrinterCallback, ProgressCallback, TrainerCallback
from transformers.utils import logging as chatter
from trl import GRPOTrainer
from trl.models import unwrap_model_for_generation

from conductor.training.data import COLUMNS, PromptBuilder, TrainingRow
from conductor.training.grpo_options import batch_sizes, from_first_process
from conductor.training.job import TrainingJob
from conductor.training.metrics import (
    RewardRecorder,
    StepResults,
    TrainingRewards,
    TrainingState,
    cut_short,
    max_usd,
    mean,
    note_validation,
    spent_out,
    step_summary,
    ungraded_text,
    validation_due,
    validation_scalars,
    worker_shares,
)
from conductor.training.model import greedy_texts
from conductor.training.model_card import describe_checkpoint
from conductor.training.run_folder import (
    BEST,
    METRICS,
    PLANS,
    CpuClock,
    append_line,
    is_main,
    newest_checkpoint,
    peak_gib,
    rewind_lines,
)
from harness.errors import SpendLimit, TooManyMasked, UserError
from harness.rewards.outcome import RewardItem, Status
from harness.rewards.trainers import Prompt, run_in_loop

# § What a person sees of a training: a bar with the last step's figures, and no library's
# § chatter.
# §
# § What torch's libraries hand out has no types here: they are installed elsewhere.


# pyright: basic, reportMissingImports=false


THEIRS = (ProgressCallback, PrinterCallback)
"""Callbacks that print every figure of every step, as dictionaries."""


class ProgressBar:
    """A progress bar over a training's steps, on a terminal only; lines are said above it."""

    def __init__(self, steps: int, made: int) -> None:
        """Draw the bar where a training stands."""
        self._bar: Any = tqdm(total=steps, initial=made, disable=None, dynamic_ncols=True)

    def step(self, line: Mapping[str, Any]) -> None:
        """Move on by a step and show what it came to."""
        reward, parsed = line.get("reward"), line.get("parsed") or 0.0
        shown = "unknown" if reward is None else f"{reward:.3f}"
        self._bar.set_postfix_str(f"reward {shown}, read {parsed:.0%}")
        self._bar.update(1)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._bar.close()


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers' bars and its warnings about its own next version to itself."""
    chatter.disable_progress_bar()
    before = chatter.get_verbosity()
    chatter.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            yield
        finally:
            chatter.set_verbosity(before)
            chatter.enable_progress_bar()


# § Dynamic sampling: questions whose plans all got one reward make room for others.
# §
# § From DAPO (arXiv 2503.14476, section 3.2), with a bound on rounds: a group of equal
# § rewards has no
# § advantage and teaches nothing. Others come from the rows after the training's own, by step
# § and
# § round, so that a resumed run meets the same ones. Not here: writing and scoring plans
# § (grpo.py).


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


Group = dict[str, Any]
"""The plans of one question, as TRL hands them to the update: tensors by name."""


class PlanWriter(Protocol):
    """What a trainer does for it."""

    def scored(self, inputs: Sequence[Any]) -> Group:
        """Return plans for these rows, written and scored, as TRL hands them on."""
        ...

    @property
    def constant(self) -> Collection[Prompt]:
        """The prompts of the latest of them that teach nothing."""
        ...


@dataclass(slots=True)
class Resampling:
    """The rounds of a training; `said` is what the latest batch came to, for the log."""

    rows: Sequence[TrainingRow]
    """All that may stand in, in order: `rounds` times a batch for every generation."""
    asking: PromptBuilder
    sizes: Mapping[str, int]
    """As `settings.batches` returns them."""
    rounds: int
    pad: int
    """The token that fills up prompts and completions."""
    said: dict[str, float] = field(default_factory=dict[str, float])
    _step: int = -1
    _nth: int = 0

    def learnt_from(self, writes: PlanWriter, inputs: Sequence[Any], step: int) -> Group:
        """Return a batch of the size of `inputs`, groups that teach something first."""
        generation = self._generation(step)
        good, dull = self._written(writes, inputs)
        wanted, more, started = len(good) + len(dull), 0, monotonic()
        asked = {_key(one) for one in inputs}
        for at in range(self.rounds):
            others = [
                row for row in self._spare(generation, at) if _key(row.as_columns()) not in asked
            ]
            others = others[: wanted - len(good)]
            if not others:
                continue
            asked |= {_key(row.as_columns()) for row in others}
            found, _ = self._written(writes, self._inputs(others))
            good, more = good + found, more + len(others)
        self.said = {
            "informative": len(good) / wanted,
            "resampled": more / (wanted + more),
            "resample_seconds": round(monotonic() - started, 3) if more else 0.0,
        }
        return join_groups([*good, *dull][:wanted], self.pad)

    def _written(
        self, writes: PlanWriter, inputs: Sequence[Any]
    ) -> tuple[list[Group], list[Group]]:
        """Return the groups that teach something, and those that do not."""
        size = self.sizes["group"]
        made, constant = writes.scored(inputs), set(writes.constant)
        groups = split_groups(made, size)
        prompts = [_prompt(one) for one in inputs[::size]]
        pairs = list(zip(groups, prompts, strict=True))
        good = [group for group, prompt in pairs if prompt not in constant]
        return good, [group for group, prompt in pairs if prompt in constant]

    def _generation(self, step: int) -> int:
        """Return which batch of plans this is, from 0; a resumed run goes on counting."""
        self._nth = self._nth + 1 if step == self._step else 0
        self._step = step
        return step * self.sizes["accumulate"] // self.sizes["parts"] + self._nth

    def _spare(self, generation: int, at: int) -> Sequence[TrainingRow]:
        size = self.sizes["questions"]
        begins = (generation * self.rounds + at) * size
        return self.rows[begins : begins + size]

    def _inputs(self, rows: Sequence[TrainingRow]) -> list[Any]:
        """Return rows as the data set would have them, each once per plan."""
        rendered = [{**row.as_columns(), "prompt": self.asking.messages(row)} for row in rows]
        return [one for one in rendered for _ in range(self.sizes["group"])]


def resampling(training: TrainingJob, pad: int) -> Resampling:
    """Return the rounds that a configuration asks for, maybe none."""
    rounds, sizes = training.config.reward.resample, batch_sizes(training.config)
    rows = training.rows(sizes["rows"] * (1 + rounds))[sizes["rows"] :]
    return Resampling(rows, training.asking, sizes, rounds, pad)


def _key(columns: Mapping[str, Any]) -> tuple[str, str]:
    return columns["suite"], columns["question"]


def _prompt(columns: Mapping[str, Any]) -> Prompt:
    names = ("suite", "question", "epoch", "workers", "first")
    suite, question, epoch, workers, first = (columns[name] for name in names)
    return Prompt(suite, question, epoch, tuple(workers), first)


def split_groups(made: Group, size: int) -> list[Group]:
    """Return a batch as groups of `size` rows each; what is no row of it is left out."""
    rows = len(made["advantages"])
    tensors = {name: one for name, one in made.items() if getattr(one, "ndim", 0)}
    return [
        {name: one[at : at + size] for name, one in tensors.items()} for at in range(0, rows, size)
    ]


def join_groups(groups: Sequence[Group], pad: int) -> Group:
    """Return groups as one batch: prompts are filled up on the left, all else on the right."""
    whole: Group = {}
    for name in groups[0]:
        parts = [group[name] for group in groups]
        width = max(part.shape[1] for part in parts) if parts[0].ndim > 1 else 0
        filler = pad if name.endswith("_ids") else 0
        left = name.startswith("prompt_")
        whole[name] = torch.cat([_filled(part, width, filler, left=left) for part in parts])
    whole["num_items_in_batch"] = whole["completion_mask"].sum()
    return whole


def _filled(part: Any, width: int, filler: int, *, left: bool) -> Any:
    if part.ndim < 2 or part.shape[1] == width:
        return part
    short = width - part.shape[1]
    return torch.nn.functional.pad(part, (short, 0) if left else (0, short), value=filler)


# § Greedy plans for fixed questions, and what they are worth: validation.
# §
# § Each process writes its share of the plans; the first one has them carried out and graded,
# § by the
# § reward's own code. Greedy decoding draws no random number, so training goes on as if
# § nobody had
# § looked.


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


@dataclass(frozen=True, slots=True)
class Validator:
    """What a validation needs, whatever model it looks at."""

    training: TrainingJob
    watching: RewardRecorder
    rows: Sequence[TrainingRow]
    most_tokens: int

    def texts(self, model: Any, tokenizer: Any, rows: Sequence[TrainingRow]) -> list[str]:
        """Return the greedy completion of each row's prompt."""
        size = self.training.config.validation.batch
        asking = self.training.asking
        found: list[str] = []
        for at in range(0, len(rows), size):
            prompts = [
                tokenizer.apply_chat_template(
                    asking.messages(row), tokenize=False, add_generation_prompt=True
                )
                for row in rows[at : at + size]
            ]
            found.extend(greedy_texts(model, tokenizer, prompts, self.most_tokens))
        return found

    def judged(self, rows: Sequence[TrainingRow], texts: Sequence[str]) -> dict[str, Any]:
        """Return what these plans came to, over all and by suite."""
        started = monotonic()
        items = [
            RewardItem(row.suite, row.question, text, row.epoch, 0, row.workers, row.first)
            for row, text in zip(rows, texts, strict=True)
        ]
        run_in_loop(self.watching.score(items))
        seen = self.watching.take()
        read = self.training.read_plan
        right = [one.components.get("correct") for one in seen.outcomes]
        by_suite = {
            suite: mean(
                [r for i, r in zip(items, right, strict=True) if i.suite == suite and r is not None]
            )
            for suite in self.training.held_out
        }
        return {
            **step_summary(seen, read),
            "suites": by_suite,
            "workers": worker_shares(seen, read),
            "questions": len(items),
            "seconds": round(monotonic() - started, 3),
        }


def rank_share(rows: Sequence[TrainingRow], rank: int, processes: int) -> list[TrainingRow]:
    """Return the rows that one process writes, as many in each: the last row is written twice.

    Where weights are divided, a batch is written by all processes together: one that had a batch
    less would leave the others waiting.

    >>> rows = [TrainingRow("s", str(n)) for n in range(5)]
    >>> [len(rank_share(rows, rank, 2)) for rank in (0, 1)]
    [3, 3]
    """
    each = -(-len(rows) // processes)
    mine = list(rows[rank::processes])
    return [*mine, *list(rows[-1:]) * (each - len(mine))]


# § What happens between a training's steps: the log's line, validation, the best model, the
# § end.
# §
# § One callback of transformers' Trainer. What it decides is decided by the first process and
# § told to
# § all. Not here: the trainer itself (grpo.py).


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


Callback: Any = TrainerCallback

LOGGED = {
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
"""TRL's names -> ours, in a line of metrics.jsonl."""


class StepCallback(Callback):
    """Writes a line per step, validates, keeps the best model and ends the training."""

    def __init__(
        self,
        training: TrainingJob,
        rewards: TrainingRewards,
        validator: Validator,
        say: Callable[[str], None],
    ) -> None:
        """Keep what it needs; `trainer`, `state` and `clock` are set before training begins."""
        self.training, self.rewards, self.validator = training, rewards, validator
        self.say = say
        self.out: Path = training.request.out
        self.state = TrainingState()
        self.trainer: Any = None
        self.clock = CpuClock()
        self.owed: dict[str, Any] | None = None
        """The line of a step whose validation the money did not last for; training begins with it.
        """
        self.bar: ProgressBar | None = None
        self._started = monotonic()
        self._random: Any = None
        self._first: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Show where training stands, and make a validation that is owed."""
        if is_main():
            self.bar = ProgressBar(state.max_steps, state.global_step)
        if self.owed is not None:
            self._pay(self.owed, state.global_step)
        if self.state.validation and (self.owed is not None or not state.global_step):
            self.trainer.log(validation_scalars(self.state.validation))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Leave the bar."""
        if self.bar:
            self.bar.close()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Remember the random states that the first batch is drawn with."""
        self._first = random_states()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock, and remember the random states that this step begins with."""
        # A checkpoint of step 0 is read before its batch is drawn, others after theirs is.
        self._random = random_states() if state.global_step else self._first
        self._started = monotonic()
        self.state.generating, self.state.resampled = 0.0, {}
        self.state.spent = self.rewards.spent()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the step, validate when it is time, and say whether it was the last."""
        step = state.global_step
        seconds = monotonic() - self._started
        seen = self.trainer.gathered(self.rewards.training.take())
        self._random = None
        self.state.line = self._line(step, seen, seconds)
        self.state.validation = None
        self.state.dearest = max(self.state.dearest, self.rewards.spent() - self.state.spent)
        if validation_due(self.training.config, step):
            found = self.validate(step)
            self.state.line |= {"validation": found} if found else {}
        self._end(step, control)
        self._write_plans(step, seen)
        self.clock.note(step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kw: Any) -> None:
        """Write the step's line, with what TRL counted of it."""
        if not self.state.line or "loss" not in (logs or {}):
            return
        said = {ours: logs[theirs] for theirs, ours in LOGGED.items() if theirs in logs}
        line = {**self.state.line, **said}
        self.state.line = {}
        if is_main():
            append_line(self.out / METRICS, line)
            self.trainer.say_step(line)

    def restore_random(self) -> bool:
        """Put the random states back to where the running step began; say whether one runs."""
        if self._random is None:
            return False
        put_random_states(self._random)
        return True

    def _line(self, step: int, seen: StepResults, seconds: float) -> dict[str, Any]:
        read = self.training.read_plan
        found = step_summary(seen, read)
        spent = found["reward_seconds"] or 0.0
        made = self.state.generating
        return {
            "step": step,
            **found,
            **self.state.resampled,
            "workers": worker_shares(seen, read),
            "generation_seconds": round(made, 3),
            "update_seconds": round(max(0.0, seconds - made - spent), 3),
            "seconds": round(seconds, 3),
            **{name: self.trainer.most(size) for name, size in peaks().items()},
        }

    def validate(self, step: int) -> dict[str, Any] | None:
        """Return what the fixed held-out questions come to; keep the model where it is the best.

        None where the money does not last for it: `state.ended` says so, and nothing is judged.
        """
        if self._cannot_pay():
            return None
        found: dict[str, Any] = self.trainer.validated(self.validator)
        if cut_short(found):
            self.state.ended = f"stopped, for the money ended within the validation of step {step}"
            return None
        if note_validation(self.state, step, found):
            self.keep(step, found)
        if found["masked"]:
            self.say(f"step {step}: {ungraded_text(found)}; they count as not right.")
        return found

    def _cannot_pay(self) -> bool:
        """Say whether a validation as dear as one before could pass the limit."""
        most, gone, needed = max_usd(self.training), self.rewards.spent(), self.state.validating
        why = ""
        if most is not None and gone + needed > most:
            why = f"stopped, for ${gone:.4f} are spent and a validation could pass ${most}"
        self.state.ended = self.trainer.agreed(why)
        return bool(self.state.ended)

    def _pay(self, line: dict[str, Any], step: int) -> None:
        """Make the validation that a step's line lacks; SpendLimit where there is no money yet."""
        found = self.validate(step)
        if found is None:
            raise SpendLimit(self.state.ended)
        whole = {**line, "validation": found}
        if is_main():
            rewind_lines(self.out / METRICS, step - 1)
            append_line(self.out / METRICS, whole)
            self.trainer.say_validation(whole)

    def keep(self, step: int, validation: Mapping[str, Any]) -> None:
        """Write the best model; a reader finds the old one or the new one, never a part."""
        part = self.out / f"{BEST}.part"
        self.trainer.save_model(str(part))
        if not is_main():
            return
        describe_checkpoint(self.training, part, step, validation)
        final = self.out / BEST
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)

    def _end(self, step: int, control: Any) -> None:
        """Decide whether training ends here, with a checkpoint."""
        config, state = self.training.config, self.state
        patience = config.validation.patience
        why = state.ended
        if state.asked_to_stop:
            why = "stopped as asked"
        elif patience is not None and state.since >= patience:
            why = f"no better validation in {patience}, best at step {state.best_step}"
        elif not why and step < int(config.grpo["max_steps"]):
            why = self._too_dear(step + 1)
        why = self.trainer.agreed(why)
        if why:
            state.ended = why
            control.should_training_stop = True
            control.should_save = True

    def _too_dear(self, step: int) -> str:
        """Return why the next step is not begun, with its validation where one is due; or none."""
        state, most, gone = self.state, max_usd(self.training), self.rewards.spent()
        needed = state.dearest + (
            state.validating if validation_due(self.training.config, step) else 0
        )
        if most is None or gone + needed <= most:
            return ""
        return f"stopped, for ${gone:.4f} are spent and another step could pass ${most}"

    def _write_plans(self, step: int, seen: StepResults) -> None:
        """Write what was planned; words of a plan only where every suite's may be published."""
        if not is_main():
            return
        texts = self.training.publishable
        for item, outcome in zip(seen.items, seen.outcomes, strict=True):
            plan = self.training.read_plan(item)
            steps = (
                [(one.worker, list(plan.reads(at))) for at, one in enumerate(plan.steps)]
                if plan
                else None
            )
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
            if texts:
                line["completion"] = item.completion
            append_line(self.out / PLANS, line)


def peaks() -> dict[str, float]:
    """Return the most memory held so far, in GiB: of the process, and of torch on its GPU."""
    found = {"peak_memory_gib": peak_gib()}
    if torch.cuda.is_available():
        found["peak_gpu_memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 3)
    return found


def random_states() -> dict[str, Any]:
    """Return what all random draws of a training depend on."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": cuda,
    }


def put_random_states(states: Mapping[str, Any]) -> None:
    """Undo all draws since these states were taken."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if states["cuda"]:
        torch.cuda.set_rng_state_all(states["cuda"])


# § GRPO by TRL (arXiv 2402.03300; TRL 1.16's GRPOTrainer) on the harness's reward.
# §
# § What is ours is around it: data by id, log lines without texts, seconds of each part, a
# § checkpoint
# § that says what it is. Not here: the order of a run (start.py), what happens between steps
# § (stepping.py).


# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.


Trainer: Any = GRPOTrainer
gather: Any = gather_object

UNSCORED = "All reward functions returned None"


class NoTextFilter(logging.Filter):
    """Drops TRL's warning about a row without a reward: it prints the prompt. It is counted."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is shown."""
        return UNSCORED not in record.getMessage()


def freeze_parameters(model: Any, parts: Sequence[str]) -> None:
    """Keep parameters as they are whose names have one of `parts`; UserError where none has."""
    for part in parts:
        found = [values for name, values in model.named_parameters() if part in name]
        if not found:
            raise UserError(f"[model] frozen: no parameter's name has {part!r} in it.")
        for values in found:
            values.requires_grad = False


def make_dataset(rows: Sequence[TrainingRow], asking: PromptBuilder) -> Any:
    """Return the rows as TRL reads them: ids only, and a prompt when one is asked for."""
    columns = [row.as_columns() for row in rows]
    plain: Any = Dataset.from_dict({name: [one[name] for one in columns] for name in COLUMNS})
    return plain.with_transform(asking.render)


class ConductorTrainer(Trainer):
    """TRL's trainer, told what a run folder is."""

    def __init__(self, stepping: StepCallback, **given: Any) -> None:
        """Hand everything else to TRL."""
        logging.getLogger("trl.trainer.grpo_trainer").addFilter(NoTextFilter())
        super().__init__(callbacks=[stepping], **given)
        self.stepping = stepping
        stepping.trainer = self
        self.resampling = resampling(stepping.training, self.processing_class.pad_token_id)
        for theirs in THEIRS:
            self.remove_callback(theirs)

    def _generate(self, prompts: Any) -> Any:
        """Write completions, on the clock."""
        started = monotonic()
        made = super()._generate(prompts)
        self.stepping.state.generating += monotonic() - started
        return made

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        """Write and score a batch; groups that teach nothing make room, where that is asked for."""
        if not self.resampling.rounds:
            return self.scored(inputs)
        made = self.resampling.learnt_from(self, inputs, self.state.global_step)
        self.stepping.state.resampled = self.resampling.said
        return made

    @property
    def constant(self) -> Any:
        """The prompts of the latest plans that teach nothing."""
        return self.reward_funcs[0].constant

    def scored(self, inputs: Any) -> Any:
        """Let TRL do it; SpendLimit where the money ended within, before anything is learnt."""
        made = super()._generate_and_score_completions(inputs)
        over = spent_out(self.stepping.rewards.training.seen)
        if any(gather([over])):
            raise SpendLimit("The money is spent.")
        return made

    def save_before(self) -> None:
        """Save the last whole step, as if the one that broke off had not begun."""
        newest = newest_checkpoint(self.stepping.out)
        saved = newest is not None and newest.name == f"checkpoint-{self.state.global_step}"
        if not saved and self.stepping.restore_random():
            self.stepping.state.line = {}
            self._save_checkpoint(self.model, None)

    def create_model_card(self, *given: Any, **named: Any) -> None:
        """Write none of TRL's: ours has the provenance."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save, and say in the checkpoint what it is."""
        super()._save_checkpoint(model, trial)
        step = self.state.global_step
        folder = self.stepping.out / "checkpoints" / f"checkpoint-{step}"
        if is_main() and folder.is_dir():
            found = self.stepping.state.validation  # its line is written and gone by now
            describe_checkpoint(self.stepping.training, folder, step, found)

    def validated(self, validator: Validator) -> dict[str, Any]:
        """Return a validation of the model as it is: each process writes its share of plans."""
        rank, size = self.accelerator.process_index, self.accelerator.num_processes
        mine = rank_share(validator.rows, rank, size)
        with unwrap_model_for_generation(
            self.model_wrapped, self.accelerator, gather_deepspeed3_params=True
        ) as model:
            texts = validator.texts(model, self.processing_class, mine)
        written: Any = gather(list(zip(count(rank, size), texts, strict=False)))
        in_order = [text for place, text in sorted(written) if place < len(validator.rows)]
        return from_first_process(lambda: self._judged(validator, in_order))

    def _judged(self, validator: Validator, texts: Sequence[str]) -> dict[str, Any]:
        """Return what plans came to; that the money ended is no failure of whoever grades."""
        try:
            return validator.judged(validator.rows, texts)
        except TooManyMasked:
            if self.stepping.rewards.stopped():
                return {f"status/{Status.BUDGET}": 1.0}
            raise

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log a step's figures, those of its validation among them."""
        found = self.stepping.state.validation
        if found and "loss" in logs:
            logs |= validation_scalars(found)
        super().log(logs, start_time)

    def gathered(self, seen: StepResults) -> StepResults:
        """Return what all processes saw in a step."""
        if self.accelerator.num_processes == 1:
            return seen
        items: Any = gather(seen.items)
        outcomes: Any = gather(seen.outcomes)
        return StepResults(items, outcomes, max(gather([seen.seconds])))

    def most(self, value: float) -> float:
        """Return the largest of what the processes have."""
        return max(gather([value]))

    def agreed(self, why: str) -> str:
        """Return a reason to end that any process has: all of them end, or none."""
        return next((said for said in gather([why]) if said), "")

    def say_step(self, line: dict[str, Any]) -> None:
        """Tell the person who waits where it stands."""
        if self.stepping.bar and line["step"]:
            self.stepping.bar.step(line)
        self.say_validation(line)

    def say_validation(self, line: dict[str, Any]) -> None:
        """Say what a line's validation came to, where one was made."""
        said = line.get("validation")
        if said and said.get("correct") is not None:
            text = f"step {line['step']}: validation {said['correct']:.3f}"
            self.stepping.say(f"{text}, {said['calls']:.2f} calls a question")
