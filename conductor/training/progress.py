"""What a training knows of its own course: its best validation, its patience, its dollars.

Made anew from the lines of metrics.jsonl, so that a resumed training decides as one that was not
interrupted. No torch. Not here: who counts and who ends (stepping.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from conductor.training.config import TrainingConfig
from harness.rewards.outcome import VALUED

Validation = Mapping[str, Any]
"""What a validation came to, as a line of metrics.jsonl has it."""


@dataclass
class State:
    """What a training knows of itself beyond TRL's state."""

    best: float | None = None
    best_step: int = 0
    since: int = 0
    """Validations without a better one, of those graded whole."""
    validation: Validation | None = None
    """The latest step's; None where none was made."""
    spent: Decimal = Decimal(0)
    """Dollars when the running step began."""
    dearest: Decimal = Decimal(0)
    """Dollars of the dearest step of this sitting, without its validation."""
    validating: Decimal = Decimal(0)
    """Dollars of the dearest validation so far, replies that were paid before at their price."""
    ended: str = ""
    """Why training ended before its last step; empty while it has not."""
    asked_to_stop: bool = False
    generating: float = 0.0
    """Seconds of generation in the running step."""
    resampled: dict[str, float] = field(default_factory=dict[str, float])
    """What dynamic sampling came to in the running step (resampling.py)."""
    line: dict[str, Any] = field(default_factory=dict[str, Any])


def state_of(lines: Sequence[Mapping[str, Any]]) -> State:
    """Return the state at the end of these lines."""
    state = State()
    for line in lines:
        judge(state, line["step"], line.get("validation"))
    return state


def judge(state: State, step: int, validation: Validation | None) -> bool:
    """Note a validation; return whether it is the best so far. The earliest of equals stays."""
    state.validation = validation
    if validation is None:
        return False
    state.validating = max(state.validating, Decimal(str(validation.get("usd") or 0)))
    worth = sure(validation)
    if worth is not None and (state.best is None or worth > state.best):
        state.best, state.best_step, state.since = worth, step, 0
        return True
    state.since += not validation.get("masked")
    return False


def sure(validation: Validation) -> float | None:
    """Return the share of all held-out questions that is right for sure; None without a grade.

    Over those alone that happened to be graded, a few lucky ones would be the best for good.

    >>> sure({"correct": 1.0, "masked": 0.75}), sure({"correct": 0.5, "masked": 0.0})
    (0.25, 0.5)
    """
    correct = validation.get("correct")
    return None if correct is None else correct * (1 - (validation.get("masked") or 0.0))


def cut_short(validation: Validation) -> bool:
    """Say whether the money ended within a validation."""
    return bool(validation.get("status/budget"))


def due(config: TrainingConfig, step: int) -> bool:
    """Say whether a step is validated: some are, and the last one always."""
    return step % config.validation.every == 0 or step == int(config.grpo["max_steps"])


def owed(config: TrainingConfig, lines: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the last line where it lacks a validation that the money did not last for."""
    if not lines or "validation" in lines[-1] or not due(config, lines[-1]["step"]):
        return None
    return lines[-1]


def ungraded(validation: Validation) -> str:
    """Return how many questions have no grade, and why, for a person."""
    count = round(validation["masked"] * validation["questions"])
    why = [
        name.removeprefix("status/").replace("_", " ")
        for name, share in validation.items()
        if name.startswith("status/") and share and name not in GRADED
    ]
    return (
        f"{count} of {validation['questions']} held-out questions have no grade ({', '.join(why)})"
    )


GRADED = {f"status/{status.value}" for status in VALUED}
"""Of what a line counts; the others have no value."""
