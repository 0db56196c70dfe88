"""What answers cost, on plain arrays: means, ratios, cost of pass, and the frontier of accuracy.

Arrays hold one mean cost per question; dollars are floats here, because only figures with an
interval are made of them. Sums that were billed stay Decimal (reports/build.py).
"""

from dataclasses import dataclass

import numpy as np

from reports.stats import TIE, Bounds, Floats, bca_interval, bca_ratio


@dataclass(frozen=True, slots=True)
class CostSummary:
    """Of a question's cost, which is heavy-tailed."""

    mean: float
    interval: Bounds | None
    """BCa; None where all questions cost the same."""
    median: float
    p95: float


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


def cost_summary(values: Floats, resampled: Floats) -> CostSummary | None:
    """Summarise costs (questions,); `resampled` are their means in each resample.

    None where a cost is unknown.
    """
    if not values.size or np.isnan(values).any():
        return None
    median, p95 = np.quantile(values, [0.5, 0.95])
    return CostSummary(
        float(values.mean()), bca_interval(values, resampled), float(median), float(p95)
    )


def cost_ratio(ours: Floats, theirs: Floats, means: Floats) -> tuple[float, Bounds | None] | None:
    """Return mean(ours) / mean(theirs) and its paired BCa interval; None when nothing is divided.

    `means` are both in each resample: (resamples, 2).
    """
    if not ours.size or np.isnan(ours + theirs).any() or theirs.sum() < TIE:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = means[:, 0] / means[:, 1]
    return float(ours.sum() / theirs.sum()), bca_ratio(ours, theirs, resampled)


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


Point = tuple[float, float]
"""Cost and score."""


def non_dominated(costs: Floats, scores: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Say of each system whether none is as good and as cheap, and better in one of the two.

    Arrays are (systems,) or (resamples, systems). An unknown cost or score is on no frontier and
    dominates nobody.
    """
    lost = np.zeros(costs.shape, dtype=np.bool_)
    for at in range(costs.shape[-1]):
        cost, score = costs[..., at, None], scores[..., at, None]
        as_good = (cost <= costs) & (score >= scores)
        lost |= as_good & ((cost < costs) | (score > scores))
    return ~lost & ~np.isnan(costs + scores)


def pareto_probability(costs: Floats, scores: Floats) -> Floats:
    """Return how often each system is on the frontier of a resample; (resamples, systems) each.

    Scores and costs come from the same resamples of questions, so that what goes together stays
    together.
    """
    return non_dominated(costs, scores).mean(axis=0)


def hull(costs: Floats, scores: Floats) -> list[Point]:
    """Return the corners of the concave frontier: what *random mixing* of two systems reaches.

    Between two corners lies no system, but a coin that sends each question to one of the two has
    that expected cost and score. Corners come by rising cost, and rise in score.
    """
    on = non_dominated(costs, scores)
    points = sorted(set(zip(costs[on].tolist(), scores[on].tolist(), strict=True)))
    corners: list[Point] = []
    for point in points:
        while len(corners) > 1 and not _bends_right(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners


def _bends_right(first: Point, middle: Point, last: Point) -> bool:
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise > (last[1] - first[1]) * (middle[0] - first[0])


def aiq(costs: Floats, scores: Floats, low: float, high: float) -> float | None:
    """Return 1 / (high - low) times the area below the hull between two declared costs.

    Average Improvement in Quality (RouterBench, arXiv 2403.12031, section 3.2), from the formula:
    the published code integrates from the cheapest point but divides by `high` alone. Beyond the
    dearest corner the hull stays level; below the cheapest nothing is to be had, which counts 0.
    None where there is no system, or no room between the bounds.
    """
    corners = hull(costs, scores)
    if not corners or not high > low:
        return None
    x, y = np.array(corners).T
    start, end = max(low, float(x[0])), high
    if start >= end:
        return 0.0
    inner = x[(x > start) & (x < end)]
    at = np.concatenate(([start], inner, [end]))
    height = np.asarray(np.interp(at, x, y), dtype=np.float64)
    area = float(((height[1:] + height[:-1]) / 2 * np.diff(at)).sum())
    return area / (high - low)
