"""Statistics on dollars per question: ratios, cost of a right answer, Pareto frontier, regret."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.harness.ledger.totals import SystemRun
from podium.reports import stats
from podium.reports.stats import Bounds, Floats


@dataclass(frozen=True, slots=True)
class CostOfPass:
    """The cost of a right answer, in US dollars (Erol et al. 2025, arXiv 2504.13359)."""

    mean: float | None
    """Mean of E[cost] / P(right) over the questions that were ever answered right."""
    infinite: float  # share of the questions that were never answered right: infinite cost
    ratio_of_means: float | None  # total cost / number of right answers, in US dollars


def cost_ratio(ours: Floats, theirs: Floats, means: Floats) -> tuple[float, Bounds | None] | None:
    """Return the ratio of two systems' mean dollars, mean(ours) / mean(theirs), with BCa interval.

    `means`: both systems' mean dollars in each bootstrap resample. Returns None if there is no
    question, if a cost is unknown, or if `theirs` sum to 0.
    """
    if not ours.size or np.isnan(ours + theirs).any() or theirs.sum() < stats.TIE:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = means[:, 0] / means[:, 1]
    return float(ours.sum() / theirs.sum()), stats.bca_ratio(ours, theirs, resampled)


def cost_of_pass(costs: Floats, right: Floats) -> CostOfPass | None:
    """Return the cost of a right answer from questions' mean costs and grades; None if unknown."""
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
    """Return the cost of a right answer if each question had its cheapest right system.

    Arrays are (questions, systems). Returns None if a value is unknown.
    """
    if not costs.size or np.isnan(costs + right).any():
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(right > 0, costs / right, np.inf)
    best = each.argmin(axis=1)[:, None]
    picks = [np.take_along_axis(values, best, axis=1)[:, 0] for values in (costs, right)]
    return cost_of_pass(picks[0], picks[1])


Point = tuple[float, float]  # cost and score


def non_dominated(costs: Floats, scores: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return whether each system (last axis) is on the Pareto frontier; False if unknown."""
    unknown: NDArray[np.bool_] = np.isnan(costs + scores)
    cost: Floats = np.where(unknown, math.inf, costs)
    score: Floats = np.where(unknown, -math.inf, scores)
    order = np.lexsort((np.negative(score), cost))  # by rising cost, then by falling score
    cost, score = (np.take_along_axis(array, order, axis=-1) for array in (cost, score))
    starts = np.ones(cost.shape, dtype=np.bool_)
    starts[..., 1:] = cost[..., 1:] > cost[..., :-1]
    begins = np.maximum.accumulate(starts * np.arange(cost.shape[-1], dtype=np.int64), axis=-1)
    best = np.maximum.accumulate(score, axis=-1)
    cheaper = np.take_along_axis(best, np.maximum(begins - 1, 0), axis=-1)
    lost = (begins > 0) & (cheaper >= score)
    lost |= np.take_along_axis(score, begins, axis=-1) > score
    dominated = np.empty_like(lost)
    np.put_along_axis(dominated, order, lost, axis=-1)
    return ~dominated & ~unknown


def hull(costs: Floats, scores: Floats) -> list[Point]:
    """Return the corners (cost, score) of the systems' concave hull, by rising cost.

    Random mixes of the systems at two neighbouring corners lie between the corners.
    """
    on = non_dominated(costs, scores)
    points = sorted(set(zip(costs[on].tolist(), scores[on].tolist(), strict=True)))
    corners: list[Point] = []
    for point in points:
        while len(corners) > 1 and not _bends_right(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners


def _bends_right(start: Point, middle: Point, end: Point) -> bool:
    rise = (middle[1] - start[1]) * (end[0] - start[0])
    return rise > (end[1] - start[1]) * (middle[0] - start[0])


def aiq(costs: Floats, scores: Floats, low: float, high: float) -> float | None:
    """Return 1 / (high - low) times the area below the hull between the costs `low` and `high`.

    Average Improvement in Quality (RouterBench, arXiv 2403.12031, section 3.2), by the formula; the
    published code divides by `high` alone. Above the cost of the dearest corner the hull is flat;
    below the cheapest corner it is 0. None if no cost is known, or if `high` is not above `low`.
    """
    corners = hull(costs, scores)
    if not corners or not high > low:
        return None
    x, y = np.array(corners).T
    start, end = max(low, float(x[0])), high
    if start >= end:
        return 0.0
    inner = x[(x > start) & (x < end)]
    grid = np.concatenate(([start], inner, [end]))
    height = np.asarray(np.interp(grid, x, y), dtype=np.float64)
    area = float(((height[1:] + height[:-1]) / 2 * np.diff(grid)).sum())
    return area / (high - low)


@dataclass(frozen=True, slots=True)
class BlockArrays:
    """Arrays (questions, systems) of each question's mean score, dollars and tokens over epochs."""

    scores: Floats
    usd: Floats  # like `tokens`, all NaN for a system with any unknown value
    tokens: Floats
    plain: NDArray[np.bool_]
    """Mask (systems,): False for systems that see the right answers or were chosen in hindsight."""
    questions: tuple[str, ...] = ()
    topics: tuple[Hashable, ...] = ()


def block_arrays(group: Sequence[SystemRun]) -> BlockArrays:
    """Return each question's mean score, dollars and tokens over epochs, for runs on one suite."""
    graded = [[attempt for attempt in run.attempts if attempt.graded] for run in group]
    topics = {attempt.question: attempt.topic for attempts in graded for attempt in attempts}
    places = {question: index for index, question in enumerate(sorted(topics))}
    scores, usd, tokens = (np.full((len(places), len(group)), np.nan) for _ in range(3))
    for j, attempts in enumerate(graded):
        rows = np.array([places[attempt.question] for attempt in attempts], dtype=np.int64)
        costs = [attempt.totals for attempt in attempts]
        _fill(scores[:, j], rows, [attempt.value for attempt in attempts])
        _fill(usd[:, j], rows, [None if cost.usd is None else float(cost.usd) for cost in costs])
        _fill(tokens[:, j], rows, [cost.tokens_out for cost in costs])
    plain = [run.facts.reference_allowed and not run.facts.uses_targets for run in group]
    row_topics = tuple(topics[question] for question in places)
    return BlockArrays(scores, usd, tokens, np.array(plain), tuple(places), row_topics)


def _fill(column: Floats, rows: NDArray[np.int64], values: Sequence[float | None]) -> None:
    if len(values) and None not in values:
        numbers = np.array(values, dtype=np.float64)
        times = np.bincount(rows, minlength=column.size)
        with np.errstate(invalid="ignore"):
            column[:] = np.bincount(rows, weights=numbers, minlength=column.size) / times


def block_columns(block: BlockArrays, reference: int | None) -> list[dict[str, Any]]:
    """Return columns on standard errors and dollars per system; `reference`: a system's index."""
    systems = range(block.scores.shape[1])
    if not block.scores.size:
        return [{} for _ in systems]
    there, common = placeable(block)
    arrays = [block.usd, *(_only(common[:, None], values) for values in (block.usd, block.scores))]
    if reference is not None:
        deltas = block.scores - block.scores[:, [reference]]
        paired = ~np.isnan(deltas)
        arrays += [deltas, _only(paired, block.usd), _only(paired, block.usd[:, [reference]])]
    means = np.split(stats.bootstrap_means(np.hstack(arrays)), len(arrays), axis=1)
    columns = [_own(block, column, means[0][:, column]) for column in systems]
    for column in systems:
        if reference is not None and column != reference:
            resampled = np.stack([mean[:, column] for mean in means[3:]], axis=1)
            columns[column] |= _against(block, (column, reference), resampled)
    placed = np.flatnonzero(there)
    if placed.size > 1 and common.any():
        usd, scores = (mean[np.isfinite(mean[:, placed[0]])][:, placed] for mean in means[1:3])
        shares = non_dominated(usd, scores).mean(axis=0)  # share of resamples on the frontier
        for column, share in zip(placed.tolist(), shares.tolist(), strict=True):
            columns[column]["pareto_probability"] = share
    return columns


def placeable(block: BlockArrays) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two masks: systems that are priced and `plain`; questions graded for all of these."""
    systems = block.plain & ~np.isnan(block.usd).all(axis=0)
    gaps = np.isnan(block.scores[:, systems]).any(axis=1)
    return systems, np.asarray(~gaps, dtype=np.bool_)


def _only(mask: NDArray[np.bool_], values: Floats) -> Floats:
    return np.where(mask, values, np.nan)


def _own(block: BlockArrays, column: int, resampled: Floats) -> dict[str, Any]:
    grades, several = block.scores[:, column], len(set(block.topics)) > 1
    columns: dict[str, Any] = {
        "se": stats.standard_error(grades),
        "se_clustered": stats.clustered_error(grades, block.topics) if several else None,
    }
    there = ~np.isnan(grades)
    scores, usd, tokens = (mean[there, column] for mean in (block.scores, block.usd, block.tokens))
    right = scores.sum()
    if right > 0 and not np.isnan(tokens).any():
        columns["tokens_per_correct"] = float(tokens.sum() / right)
    if passed := cost_of_pass(usd, scores):
        low, high = stats.bca_interval(usd, resampled) or (None, None)
        median, p95 = np.quantile(usd, [0.5, 0.95])  # costs are heavy-tailed
        columns |= {
            "usd_low": low,
            "usd_high": high,
            "usd_median": float(median),
            "usd_p95": float(p95),
            "usd_per_correct": passed.ratio_of_means,
            "cost_of_pass": passed.mean,
            "share_infinite": passed.infinite,
        }
    return columns


def _against(block: BlockArrays, pair: tuple[int, int], resampled: Floats) -> dict[str, Any]:
    """Return a system's columns on its score difference from the reference, and their cost ratio.

    `pair`: indices of the system and of the reference. `resampled`: in each resample, the mean
    difference and the mean dollars of both.
    """
    column, reference = pair
    deltas = block.scores[:, column] - block.scores[:, reference]
    there = ~np.isnan(deltas)
    low, high = stats.bca_interval(deltas, resampled[:, 0]) or (None, None)
    columns: dict[str, Any] = {"paired_bca_low": low, "paired_bca_high": high}
    ours, theirs = block.usd[there, column], block.usd[there, reference]
    if ratio := cost_ratio(ours, theirs, resampled[:, 1:]):
        low, high = ratio[1] or (None, None)
        columns |= {"usd_ratio": ratio[0], "usd_ratio_low": low, "usd_ratio_high": high}
    return columns


def regrets(block: BlockArrays) -> list[dict[str, Any]]:
    """Return each system's regret to an oracle, which picks the best system for each question.

    In accuracy: the oracle's minus the system's, over the questions graded for all systems. In
    dollars: the system's minus those of the cheapest system that is as good on the question, over
    the questions that the system got at least partly right. Systems that see the right answers or
    were chosen in hindsight get no regret; if fewer than two systems remain, no system gets one.
    """
    graded = block.plain & ~np.isnan(block.scores).all(axis=0)
    places = np.flatnonzero(graded)
    scores, usd = block.scores[:, places], block.usd[:, places]
    complete = ~np.isnan(scores).any(axis=1)
    columns: list[dict[str, Any]] = [{} for _ in block.plain]
    if places.size < 2 or not complete.any():
        return columns
    scores, usd = scores[complete], usd[complete]
    best = scores.max(axis=1)
    for column, place in enumerate(places.tolist()):
        grades, right = scores[:, column], scores[:, column] > 0
        columns[place]["regret_accuracy"] = float((best - grades).mean())
        if right.any() and not np.isnan(usd[:, column]).any():
            as_good = np.where(scores >= grades[:, None] - stats.TIE, usd, np.inf)
            cheapest = np.nanmin(as_good, axis=1)
            columns[place]["regret_usd"] = float((usd[:, column] - cheapest)[right].mean())
    return columns
