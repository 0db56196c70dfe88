"""What answers cost, on arrays of question means: ratios, cost of pass, the frontier, columns."""

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
    """What a right answer costs (Erol et al. 2025, arXiv 2504.13359)."""

    mean: float | None
    """Mean over questions of E[cost] / P(right), of those that were ever answered right."""
    infinite: float  # share of the questions that were never answered right: there it is infinite
    ratio_of_means: float | None  # all cost over all right answers: US dollars per right answer


def cost_ratio(ours: Floats, theirs: Floats, means: Floats) -> tuple[float, Bounds | None] | None:
    """Return mean(ours) / mean(theirs) and its paired BCa interval; `means` are their resamples."""
    if not ours.size or np.isnan(ours + theirs).any() or theirs.sum() < stats.TIE:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = means[:, 0] / means[:, 1]
    return float(ours.sum() / theirs.sum()), stats.bca_ratio(ours, theirs, resampled)


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
    """Return the same with each question (row) given to the cheapest right system: a bound."""
    if not costs.size or np.isnan(costs + right).any():
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(right > 0, costs / right, np.inf)
    best = each.argmin(axis=1)[:, None]
    taken = [np.take_along_axis(values, best, axis=1)[:, 0] for values in (costs, right)]
    return cost_of_pass(taken[0], taken[1])


Point = tuple[float, float]  # cost and score


def non_dominated(costs: Floats, scores: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Say of each system whether none is as good and as cheap, and better in one of the two."""
    unknown: NDArray[np.bool_] = np.isnan(costs + scores)
    cost: Floats = np.where(unknown, math.inf, costs)
    score: Floats = np.where(unknown, -math.inf, scores)
    order = np.lexsort((np.negative(score), cost))  # by cost; of equal cost the best first
    cost, score = (np.take_along_axis(one, order, axis=-1) for one in (cost, score))
    first = np.ones(cost.shape, dtype=np.bool_)
    first[..., 1:] = cost[..., 1:] > cost[..., :-1]
    begins = np.maximum.accumulate(first * np.arange(cost.shape[-1], dtype=np.int64), axis=-1)
    best = np.maximum.accumulate(score, axis=-1)
    cheaper = np.take_along_axis(best, np.maximum(begins - 1, 0), axis=-1)
    lost = (begins > 0) & (cheaper >= score)
    lost |= np.take_along_axis(score, begins, axis=-1) > score
    found = np.empty_like(lost)
    np.put_along_axis(found, order, lost, axis=-1)
    return ~found & ~unknown


def hull(costs: Floats, scores: Floats) -> list[Point]:
    """Return the concave frontier's corners by rising cost: what *random mixing* of two reaches."""
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
    the published code divides by `high` alone. Beyond the dearest corner the hull stays level;
    below the cheapest it counts 0. None where there is no system, or no room between the bounds.
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


@dataclass(frozen=True, slots=True)
class BlockArrays:
    """Question means of the systems of one block, (questions, systems) each."""

    scores: Floats
    usd: Floats  # as `tokens`, not-a-number throughout for a system of which any is unknown
    tokens: Floats
    plain: NDArray[np.bool_]
    """(systems,): False for what looks at targets or was chosen in hindsight."""
    questions: tuple[str, ...] = ()
    topics: tuple[Hashable, ...] = ()


def block_arrays(group: Sequence[SystemRun]) -> BlockArrays:
    """Return the question means of some system runs of one suite, epochs averaged first."""
    graded = [[one for one in system_run.attempts if one.graded] for system_run in group]
    topics = {one.question: one.topic for attempts in graded for one in attempts}
    places = {question: at for at, question in enumerate(sorted(topics))}
    scores, usd, tokens = (np.full((len(places), len(group)), np.nan) for _ in range(3))
    for at, attempts in enumerate(graded):
        asked = np.array([places[one.question] for one in attempts], dtype=np.int64)
        totals = [one.totals for one in attempts]
        _fill(scores[:, at], asked, [one.value for one in attempts])
        _fill(usd[:, at], asked, [None if one.usd is None else float(one.usd) for one in totals])
        _fill(tokens[:, at], asked, [one.tokens_out for one in totals])
    plain = [one.facts.reference_allowed and not one.facts.uses_targets for one in group]
    named = tuple(topics[question] for question in places)
    return BlockArrays(scores, usd, tokens, np.array(plain), tuple(places), named)


def _fill(column: Floats, asked: NDArray[np.int64], values: Sequence[float | None]) -> None:
    if len(values) and None not in values:
        known = np.array(values, dtype=np.float64)
        times = np.bincount(asked, minlength=column.size)
        with np.errstate(invalid="ignore"):
            column[:] = np.bincount(asked, weights=known, minlength=column.size) / times


def block_columns(block: BlockArrays, reference: int | None) -> list[dict[str, Any]]:
    """Return the columns of each system that can be had; `reference` is the place of one."""
    systems = range(block.scores.shape[1])
    if not block.scores.size:
        return [{} for _ in systems]
    there, common = placeable(block)
    parts = [block.usd, *(_only(common[:, None], one) for one in (block.usd, block.scores))]
    if reference is not None:
        deltas = block.scores - block.scores[:, [reference]]
        paired = ~np.isnan(deltas)
        parts += [deltas, _only(paired, block.usd), _only(paired, block.usd[:, [reference]])]
    means = np.split(stats.bootstrap_means(np.hstack(parts)), len(parts), axis=1)
    found = [_own(block, at, means[0][:, at]) for at in systems]
    for at in systems:
        if reference is not None and at != reference:
            resampled = np.stack([part[:, at] for part in means[3:]], axis=1)
            found[at] |= _against(block, (at, reference), resampled)
    placed = np.flatnonzero(there)
    if placed.size > 1 and common.any():
        usd, scores = (one[np.isfinite(one[:, placed[0]])][:, placed] for one in means[1:3])
        shares = non_dominated(usd, scores).mean(axis=0)  # of resamples, on the frontier
        for at, share in zip(placed.tolist(), shares.tolist(), strict=True):
            found[at]["pareto_probability"] = share
    return found


def placeable(block: BlockArrays) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which systems have a place by accuracy and dollars, and by which questions."""
    systems = block.plain & ~np.isnan(block.usd).all(axis=0)
    gaps = np.isnan(block.scores[:, systems]).any(axis=1)
    return systems, np.asarray(~gaps, dtype=np.bool_)


def _only(kept: NDArray[np.bool_], values: Floats) -> Floats:
    return np.where(kept, values, np.nan)


def _own(block: BlockArrays, at: int, resampled: Floats) -> dict[str, Any]:
    whole, several = block.scores[:, at], len(set(block.topics)) > 1
    columns: dict[str, Any] = {
        "se": stats.standard_error(whole),
        "se_clustered": stats.clustered_error(whole, block.topics) if several else None,
    }
    there = ~np.isnan(whole)
    scores, usd, tokens = (one[there, at] for one in (block.scores, block.usd, block.tokens))
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
    """Return columns against the reference; `resampled`: difference, our cost, its cost."""
    at, reference = pair
    deltas = block.scores[:, at] - block.scores[:, reference]
    there = ~np.isnan(deltas)
    low, high = stats.bca_interval(deltas, resampled[:, 0]) or (None, None)
    columns: dict[str, Any] = {"paired_bca_low": low, "paired_bca_high": high}
    ours, theirs = block.usd[there, at], block.usd[there, reference]
    if ratio := cost_ratio(ours, theirs, resampled[:, 1:]):
        low, high = ratio[1] or (None, None)
        columns |= {"usd_ratio": ratio[0], "usd_ratio_low": low, "usd_ratio_high": high}
    return columns


def regrets(block: BlockArrays) -> list[dict[str, Any]]:
    """Return what each plain system of a block lacks to the oracle: the best of them per question.

    Accuracy: the oracle's less its own, over the questions that all plain systems were graded on.
    Dollars: its own less the cheapest's that is as good on the question, over those of them that it
    got right, wholly or in part. Nothing for who looks at targets or was chosen in hindsight, and
    none where fewer than two plain systems were graded: one alone is its own oracle.
    """
    graded = block.plain & ~np.isnan(block.scores).all(axis=0)
    places = np.flatnonzero(graded)
    scores, usd = block.scores[:, places], block.usd[:, places]
    whole = ~np.isnan(scores).any(axis=1)
    columns: list[dict[str, Any]] = [{} for _ in block.plain]
    if places.size < 2 or not whole.any():
        return columns
    scores, usd = scores[whole], usd[whole]
    best = scores.max(axis=1)
    for at, place in enumerate(places.tolist()):
        own, right = scores[:, at], scores[:, at] > 0
        columns[place]["regret_accuracy"] = float((best - own).mean())
        if right.any() and not np.isnan(usd[:, at]).any():
            as_good = np.where(scores >= own[:, None] - stats.TIE, usd, np.inf)
            cheapest = np.nanmin(as_good, axis=1)
            columns[place]["regret_usd"] = float((usd[:, at] - cheapest)[right].mean())
    return columns
