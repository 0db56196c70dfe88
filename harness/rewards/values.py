"""What an outcome is worth: the grade itself, the paper's three values, or anything that fits.

A reward asks its `Valuing` with how an item ended and what it took. Not here: values that look at
dollars (conductor/cost_term.py) and who grades (grading.py). Standard library only.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from harness.rewards.items import Status


@dataclass(frozen=True, slots=True)
class Effort:
    """What an item took, for values that look at more than its grade."""

    usd: Decimal | None = Decimal(0)
    """Would-be dollars; None when a call had no price."""
    calls: int = 0
    again: bool = False
    """True in a later round, where the policy saw what its first plan came to."""


NONE = Effort()


class Valuing(Protocol):
    """Anything that says what an outcome is worth."""

    def of(self, status: Status, grade: float, effort: Effort = NONE) -> float | None:
        """Return the reward; None where it is not known, as for a status that is not the policy's.

        `grade` is from 0 to 1, and means something only where the status is `SCORED`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Values:
    """What is worth how much, whatever it cost; a right answer is worth 1."""

    wrong: float = 0.0
    """A reply that was graded and is wrong, or has no answer in it."""
    invalid_action: float = 0.0
    policy_fault: float = 0.0

    def of(self, status: Status, grade: float, effort: Effort = NONE) -> float | None:
        """Return the reward, None for a status that says nothing about the policy.

        >>> PAPER.of(Status.SCORED, 0.0), PAPER.of(Status.INVALID_ACTION, 0.0)
        (0.5, 0.0)
        """
        if status is Status.SCORED:
            return self.wrong + (1 - self.wrong) * grade
        if status is Status.INVALID_ACTION:
            return self.invalid_action
        return self.policy_fault if status is Status.POLICY_FAULT else None


PLAIN = Values()
"""The grade itself: what an evaluation's mean is made of."""

PAPER = Values(wrong=0.5)
"""1 right, 0.5 well-formed but wrong, 0 unreadable (Conductor, arXiv 2512.04388, section 3.1)."""
