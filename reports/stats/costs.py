"""What answers cost: heavy-tailed, so a mean with a bootstrap interval, a median and a 95th of 100.

Arrays hold one mean cost per question; dollars are floats here, because only figures with an
interval are made of them. Sums that were billed stay Decimal (reports/money.py).
"""

from dataclasses import dataclass

import numpy as np

from reports.stats.arrays import Bounds, Floats
from reports.stats.resampling import TIE, bca_interval, bca_ratio


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a question's cost; None where some question's cost is unknown."""

    mean: float
    interval: Bounds | None
    """BCa; None where all questions cost the same."""
    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """Mean cost of one system over that of another on the same questions."""

    value: float
    interval: Bounds | None


@dataclass(frozen=True, slots=True)
class CostOfPass:
    """What a right answer costs (Erol et al. 2025, arXiv 2504.13359)."""

    mean: float | None
    """Mean over questions of E[cost] / P(right), of the questions that were ever answered right;
    None where none was. With `infinite` above 0 the mean over all questions is infinite."""
    infinite: float
    """Share of the questions that were never answered right: no money buys a right answer."""
    ratio_of_means: float | None
    """All cost over all right answers: the robust companion, US dollars per right answer."""


def cost(values: Floats, resampled: Floats) -> Cost | None:
    """Summarise costs (questions,); `resampled` are their means in each resample.

    None where a cost is unknown.
    """
    if not values.size or np.isnan(values).any():
        return None
    median, p95 = np.quantile(values, [0.5, 0.95])
    return Cost(float(values.mean()), bca_interval(values, resampled), float(median), float(p95))


def cost_ratio(ours: Floats, theirs: Floats, means: Floats) -> Ratio | None:
    """Return mean(ours) / mean(theirs) with a paired BCa interval; None when nothing is divided.

    `means` are both in each resample: (resamples, 2).
    """
    if not ours.size or np.isnan(ours + theirs).any() or theirs.sum() < TIE:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = means[:, 0] / means[:, 1]
    return Ratio(float(ours.sum() / theirs.sum()), bca_ratio(ours, theirs, resampled))


def cost_of_pass(costs: Floats, right: Floats) -> CostOfPass | None:
    """Return what a right answer costs; `right`: each question's mean grade. None for unknowns."""
    if not costs.size or np.isnan(costs + right).any():
        return None
    able = right > 0
    each = costs[able] / right[able]
    return CostOfPass(
        mean=float(each.mean()) if each.size else None,
        infinite=float((~able).mean()),
        ratio_of_means=float(costs.sum() / right.sum()) if right.sum() > 0 else None,
    )


def frontier_cost_of_pass(costs: Floats, right: Floats) -> CostOfPass | None:
    """Return the same with each question given to the system that answers it most cheaply.

    Both arrays are (questions, systems). A choice in hindsight: a bound, and no method.
    """
    if not costs.size or np.isnan(costs + right).any():
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(right > 0, costs / right, np.inf)
    best = each.argmin(axis=1)[:, None]
    taken = [np.take_along_axis(values, best, axis=1)[:, 0] for values in (costs, right)]
    return cost_of_pass(taken[0], taken[1])
