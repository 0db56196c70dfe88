"""What happens between a training's steps: the log's line, validation, the best model, the end.

One callback of transformers' Trainer. What it decides is decided by the first process and told to
all. Not here: the trainer itself (grpo.py).
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback

from conductor.training.about import describe_checkpoint
from conductor.training.folder import BEST, METRICS, PLANS, append_line, is_main, rewind
from conductor.training.generating import Validator
from conductor.training.job import Training
from conductor.training.processor import Clock, peak_gib
from conductor.training.progress import State, cut_short, due, judge, ungraded
from conductor.training.rewarding import Rewards, max_usd
from conductor.training.showing import Bar
from conductor.training.watch import Seen, scalars, summary, worker_shares
from harness.errors import SpendLimit

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


class Stepping(Callback):
    """Writes a line per step, validates, keeps the best model and ends the training."""

    def __init__(
        self,
        training: Training,
        rewards: Rewards,
        validator: Validator,
        say: Callable[[str], None],
    ) -> None:
        """Keep what it needs; `trainer`, `state` and `clock` are set before training begins."""
        self.training, self.rewards, self.validator = training, rewards, validator
        self.say = say
        self.out: Path = training.request.out
        self.state = State()
        self.trainer: Any = None
        self.clock = Clock()
        self.owed: dict[str, Any] | None = None
        """The line of a step whose validation the money did not last for; training begins with it.
        """
        self.bar: Bar | None = None
        self._started = monotonic()
        self._random: Any = None
        self._first: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Show where training stands, and make a validation that is owed."""
        if is_main():
            self.bar = Bar(state.max_steps, state.global_step)
        if self.owed is not None:
            self._pay(self.owed, state.global_step)
        if self.state.validation and (self.owed is not None or not state.global_step):
            self.trainer.log(scalars(self.state.validation))

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
        if due(self.training.config, step):
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

    def _line(self, step: int, seen: Seen, seconds: float) -> dict[str, Any]:
        read = self.training.read_plan
        found = summary(seen, read)
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
        if judge(self.state, step, found):
            self.keep(step, found)
        if found["masked"]:
            self.say(f"step {step}: {ungraded(found)}; they count as not right.")
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
            rewind(self.out / METRICS, step - 1)
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
        needed = state.dearest + (state.validating if due(self.training.config, step) else 0)
        if most is None or gone + needed <= most:
            return ""
        return f"stopped, for ${gone:.4f} are spent and another step could pass ${most}"

    def _write_plans(self, step: int, seen: Seen) -> None:
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
