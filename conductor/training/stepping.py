"""What happens between a training's steps: the log's line, validation, the best model, the end.

One callback of transformers' Trainer. What it decides is decided by the first process and told to
all. Not here: the trainer itself (grpo.py).
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback

from conductor.training.about import describe_checkpoint
from conductor.training.folder import BEST, METRICS, PLANS, append_line, is_main
from conductor.training.generating import Validator
from conductor.training.job import Training
from conductor.training.rewarding import Rewards, max_usd
from conductor.training.showing import Bar
from conductor.training.watch import Seen, summary, worker_shares

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


@dataclass
class State:
    """What a training knows of itself beyond TRL's state; made anew from metrics.jsonl."""

    best: float | None = None
    best_step: int = 0
    since: int = 0
    """Validations without a better one."""
    spent: Decimal = Decimal(0)
    """Dollars when the running step began."""
    dearest: Decimal = Decimal(0)
    """Dollars of the dearest step of this sitting, its validation included."""
    ended: str = ""
    """Why training ended before its last step; empty while it has not."""
    asked_to_stop: bool = False
    generating: float = 0.0
    """Seconds of generation in the running step."""
    resampled: dict[str, float] = field(default_factory=dict[str, float])
    """What dynamic sampling came to in the running step (resampling.py)."""
    line: dict[str, Any] = field(default_factory=dict[str, Any])


def state_of(lines: list[dict[str, Any]]) -> State:
    """Return the state at the end of these lines."""
    state = State()
    for line in lines:
        judge(state, line["step"], line.get("validation"))
    return state


def judge(state: State, step: int, validation: Mapping[str, Any] | None) -> bool:
    """Note a validation; return whether it is the best so far. The earliest of equals stays."""
    if not validation or validation.get("correct") is None:
        return False
    worth = validation["correct"]
    if state.best is None or worth > state.best:
        state.best, state.best_step, state.since = worth, step, 0
        return True
    state.since += 1
    return False


class Stepping(Callback):
    """Writes a line per step, validates, keeps the best model and ends the training."""

    def __init__(
        self,
        training: Training,
        rewards: Rewards,
        validator: Validator,
        say: Callable[[str], None],
    ) -> None:
        """Keep what it needs; `trainer` and `state` are set before training begins."""
        self.training, self.rewards, self.validator = training, rewards, validator
        self.say = say
        self.out: Path = training.request.out
        self.state = State()
        self.trainer: Any = None
        self.bar: Bar | None = None
        self._started = monotonic()
        self._random: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Show where training stands."""
        if is_main():
            self.bar = Bar(state.max_steps, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Leave the bar."""
        if self.bar:
            self.bar.close()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock, and remember the random states that this step begins with."""
        self._random = random_states()
        self._started = monotonic()
        self.state.generating, self.state.resampled = 0.0, {}
        self.state.spent = self.rewards.spent()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the step, validate when it is time, and say whether it was the last."""
        step = state.global_step
        seconds = monotonic() - self._started
        seen = self.trainer.gathered(self.rewards.training.take())
        self.state.line = self._line(step, seen, seconds)
        if step % self.training.config.validation.every == 0 or step == state.max_steps:
            self.state.line["validation"] = self.validate(step)
        self._end(control)
        self._write_plans(step, seen)

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

    def restore_random(self) -> None:
        """Put the random states back to where the running step began."""
        put_random_states(self._random)

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
        }

    def validate(self, step: int) -> dict[str, Any]:
        """Return what the fixed held-out questions come to; keep the model where it is the best."""
        found: dict[str, Any] = self.trainer.validated(self.validator)
        if judge(self.state, step, found):
            self.keep(step, found)
        return found

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

    def _end(self, control: Any) -> None:
        """Decide whether training ends here, with a checkpoint."""
        config, state = self.training.config, self.state
        patience = config.validation.patience
        most, gone = max_usd(self.training), self.rewards.spent()
        state.dearest = max(state.dearest, gone - state.spent)
        why = ""
        if state.asked_to_stop:
            why = "stopped as asked"
        elif patience is not None and state.since >= patience:
            why = f"no better validation in {patience}, best at step {state.best_step}"
        elif most is not None and gone + state.dearest > most:
            why = f"stopped, for ${gone:.4f} are spent and another step could pass ${most}"
        why = self.trainer.agreed(why)
        if why:
            state.ended = why
            control.should_training_stop = True
            control.should_save = True

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
