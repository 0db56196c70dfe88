"""What so many questions can show, and how many it takes (Miller 2024, arXiv 2411.00640).

The variance of a paired difference has a part between questions, which only more questions shrink,
and a part within them, which more epochs shrink as well.
"""

from dataclasses import dataclass
from math import ceil, sqrt

from reports.stats.arrays import LEVEL, Floats
from reports.stats.distributions import normal_quantile

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance of a question's paired difference, in squared shares of 1."""

    between: float
    """Of the expected difference of a question, over questions."""
    within: float
    """Of one epoch's difference about its question's expectation, averaged over questions."""

    def at(self, epochs: int) -> float:
        """Return the variance of a question's mean difference over some epochs."""
        return self.between + self.within / epochs


def _factor(power: float, level: float) -> float:
    return normal_quantile((1 + level) / 2) + normal_quantile(power)


def detectable(variance: float, n: int, power: float = POWER, level: float = LEVEL) -> float:
    """Return the smallest true difference that n questions show as often as `power` says."""
    return _factor(power, level) * sqrt(variance / n)


def questions_needed(
    variance: float, effect: float, power: float = POWER, level: float = LEVEL
) -> int:
    """Return how many questions show a true difference of `effect` as often as `power` says."""
    return max(2, ceil(_factor(power, level) ** 2 * variance / effect**2))


def of_discordant(share: float, effect: float = 0.0) -> Variance:
    """Return the variance when two systems differ on a share of the questions, one draw each.

    It is share - effect**2, all of it between: one draw cannot tell the two parts apart.
    """
    return Variance(max(share - effect**2, 0.0), 0.0)


def of_accuracies(ours: float, theirs: float, correlation: float) -> Variance:
    """Return the variance for two accuracies whose grades of one draw go together so much."""
    mine, other = ours * (1 - ours), theirs * (1 - theirs)
    return Variance(max(mine + other - 2 * correlation * sqrt(mine * other), 0.0), 0.0)


def of_draws(ours: Floats, theirs: Floats) -> Variance:
    """Estimate both parts from grades, (questions, epochs) of each system, epochs drawn apart.

    With one epoch the parts cannot be told apart and all counts as between, so more epochs seem to
    gain nothing: the careful side. The estimate of the between part is cut at 0.
    """
    spread = float((ours.mean(axis=1) - theirs.mean(axis=1)).var(ddof=1))
    noises = [(one.var(axis=1, ddof=1).mean(), one.shape[1]) for one in (ours, theirs)
              if one.shape[1] > 1]  # fmt: skip
    within = float(sum(noise for noise, _ in noises))
    share = float(sum(noise / epochs for noise, epochs in noises))
    between = max(spread - share, 0.0)
    return Variance(between, within if noises else 0.0)
