"""A reward with a cost term, clearly ours: the paper's has none ("with no regularization").

Gated by success as in xRouter (arXiv 2510.08439): a right answer loses up to `weight` of its value
the more it cost, a wrong one loses nothing, so that saving never pays more than being right. In
logs, model cards and manifests it is called `cost-aware (ours)`. Not here: the recursion discount's
reason (conductor/training_reward.py) and plain values (harness/rewards/outcome.py).
"""

from dataclasses import dataclass
from typing import Literal

from harness.errors import UserError
from harness.rewards.outcome import NO_EFFORT, PAPER, Effort, OutcomeValues, RewardRule, Status

NAME = "cost-aware (ours)"

By = Literal["usd", "calls"]

DISCOUNT = 0.25
"""Of the first round's reward where the policy is asked again (arXiv 2512.04388, appendix A.3)."""


@dataclass(frozen=True, slots=True)
class CostAware:
    """`wrong + grade * (1 - wrong - weight * min(1, cost / scale))`; all else is the base's.

    A right answer is worth at least `wrong + margin`, however dear it was. UserError for a weight
    that would break that.
    """

    weight: float
    """What the dearest right answer loses."""
    scale: float
    """The cost, in dollars or calls, from which on a right answer loses all of `weight`."""
    by: By = "usd"
    """Would-be dollars, which cached replies have too, or worker calls."""
    margin: float = 0.05
    base: OutcomeValues = PAPER

    def __post_init__(self) -> None:
        most = 1 - self.base.wrong - self.margin
        if not (self.margin >= 0 and 0 < self.weight <= most):
            raise UserError(
                f"A cost weight of {self.weight:g} is not above 0 and at most {most:g}: a right "
                f"answer must stay {self.margin:g} above a wrong one's {self.base.wrong:g}."
            )
        if not self.scale > 0:
            raise UserError(f"A cost scale is more than 0, not {self.scale:g}.")

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return the reward; None for a graded answer whose cost is unknown, right or wrong.

        >>> from decimal import Decimal
        >>> cost = CostAware(weight=0.4, scale=0.01)
        >>> cost.of(Status.SCORED, 1.0, Effort(Decimal("0.005"))), cost.of(Status.SCORED, 0.0)
        (0.8, 0.5)
        """
        if status is not Status.SCORED:
            return self.base.of(status, grade, effort)
        cost = effort.usd if self.by == "usd" else effort.calls
        if cost is None:  # masking right ones alone would teach that they are wrong
            return None
        wrong = self.base.wrong
        return wrong + grade * (1 - wrong - self.weight * min(1.0, float(cost) / self.scale))


@dataclass(frozen=True, slots=True)
class Discounted:
    """A first round's reward times `discount`, a later round's as it is: for recursive runs.

    Inside a group that is divided by its own deviation a common factor cancels: it says something
    only with `scale_rewards` of `batch` or `none`.
    """

    base: RewardRule
    discount: float = DISCOUNT

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise UserError(
                f"A recursion discount is above 0 and at most 1, not {self.discount:g}."
            )

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return the base's reward, discounted in a first round."""
        value = self.base.of(status, grade, effort)
        return value if value is None or effort.again else self.discount * value
