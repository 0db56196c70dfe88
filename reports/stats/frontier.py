"""Accuracy against cost: who is on the Pareto frontier, how surely, and the area below its hull."""

import numpy as np

from reports.stats.arrays import Floats

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
