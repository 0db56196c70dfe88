"""GRPO by TRL (arXiv 2402.03300; TRL 1.16's GRPOTrainer) on the harness's reward.

What is ours is around it: data by id, log lines without texts, seconds of each part, a checkpoint
that says what it is. Not here: the order of a run (start.py), what happens between steps
(stepping.py).
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import logging
from collections.abc import Sequence
from itertools import count
from time import monotonic
from typing import Any

from accelerate.utils import gather_object
from datasets import Dataset
from trl import GRPOTrainer
from trl.models import unwrap_model_for_generation

from conductor.training.about import describe_checkpoint
from conductor.training.folder import is_main, newest_checkpoint
from conductor.training.generating import Validator, part_of
from conductor.training.resampling import resampling
from conductor.training.rows import COLUMNS, Asking, Row
from conductor.training.showing import THEIRS
from conductor.training.stepping import Stepping
from conductor.training.together import from_first
from conductor.training.watch import Seen, scalars, spent_out
from harness.errors import SpendLimit, TooManyMasked, UserError
from harness.rewards.outcome import Status

Trainer: Any = GRPOTrainer
gather: Any = gather_object

UNSCORED = "All reward functions returned None"


class NoTexts(logging.Filter):
    """Drops TRL's warning about a row without a reward: it prints the prompt. It is counted."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is shown."""
        return UNSCORED not in record.getMessage()


def freeze(model: Any, parts: Sequence[str]) -> None:
    """Keep parameters as they are whose names have one of `parts`; UserError where none has."""
    for part in parts:
        found = [values for name, values in model.named_parameters() if part in name]
        if not found:
            raise UserError(f"[model] frozen: no parameter's name has {part!r} in it.")
        for values in found:
            values.requires_grad = False


def data_set(rows: Sequence[Row], asking: Asking) -> Any:
    """Return the rows as TRL reads them: ids only, and a prompt when one is asked for."""
    columns = [row.as_columns() for row in rows]
    plain: Any = Dataset.from_dict({name: [one[name] for one in columns] for name in COLUMNS})
    return plain.with_transform(asking.render)


class Conducting(Trainer):
    """TRL's trainer, told what a run folder is."""

    def __init__(self, stepping: Stepping, **given: Any) -> None:
        """Hand everything else to TRL."""
        logging.getLogger("trl.trainer.grpo_trainer").addFilter(NoTexts())
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
        mine = part_of(validator.rows, rank, size)
        with unwrap_model_for_generation(
            self.model_wrapped, self.accelerator, gather_deepspeed3_params=True
        ) as model:
            texts = validator.texts(model, self.processing_class, mine)
        written: Any = gather(list(zip(count(rank, size), texts, strict=False)))
        in_order = [text for place, text in sorted(written) if place < len(validator.rows)]
        return from_first(lambda: self._judged(validator, in_order))

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
            logs |= scalars(found)
        super().log(logs, start_time)

    def gathered(self, seen: Seen) -> Seen:
        """Return what all processes saw in a step."""
        if self.accelerator.num_processes == 1:
            return seen
        items: Any = gather(seen.items)
        outcomes: Any = gather(seen.outcomes)
        return Seen(items, outcomes, max(gather([seen.seconds])))

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
