"""The rows of a block together: one set of resampled questions for all errors, costs and frontiers.

What goes in are arrays, (questions, systems), not-a-number where a system was not graded; what
comes out are columns of rows (reports/row.py). What two systems have to do with each other is
reports/intervals.py, the numerics are reports/stats/.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.sittings import Sitting
from reports.stats.arrays import Floats
from reports.stats.costs import cost, cost_of_pass, cost_ratio
from reports.stats.frontier import pareto_probability
from reports.stats.means import clustered_error, standard_error
from reports.stats.resampling import bca_interval, bootstrap_means


@dataclass(frozen=True, slots=True)
class Arrays:
    """Question means of the systems of one block, (questions, systems) each."""

    scores: Floats
    usd: Floats
    """Not-a-number throughout for a system of which any cost is unknown."""
    tokens: Floats
    """Output tokens; as for `usd`."""
    plain: NDArray[np.bool_]
    """(systems,): False for what looks at targets or was chosen in hindsight; it is on no
    frontier."""
    questions: tuple[str, ...] = ()
    topics: tuple[Hashable, ...] = ()
    """Of each question; empty where there are none."""


def arrays_of(group: Sequence[Sitting]) -> Arrays:
    """Return the question means of some sittings of one exam, epochs averaged first."""
    graded = [[one for one in sitting.attempts if one.graded] for sitting in group]
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
    return Arrays(scores, usd, tokens, np.array(plain), tuple(places), named)


def _fill(column: Floats, asked: NDArray[np.int64], values: Sequence[float | None]) -> None:
    """Put means by question into a column; nothing when a value is unknown."""
    if len(values) and None not in values:
        known = np.array(values, dtype=np.float64)
        times = np.bincount(asked, minlength=column.size)
        with np.errstate(invalid="ignore"):
            column[:] = np.bincount(asked, weights=known, minlength=column.size) / times


def columns_of(block: Arrays, reference: int | None) -> list[dict[str, Any]]:
    """Return the columns of each system; `reference` is the place of the one all are held against.

    A column that cannot be had is left out.
    """
    if not block.scores.size:
        return [{} for _ in range(block.scores.shape[1])]
    systems = range(block.scores.shape[1])
    _, common = placed(block)
    parts = [block.usd, *(_only(common[:, None], one) for one in (block.usd, block.scores))]
    if reference is not None:
        deltas = block.scores - block.scores[:, [reference]]
        paired = ~np.isnan(deltas)
        parts += [deltas, _only(paired, block.usd), _only(paired, block.usd[:, [reference]])]
    means = np.split(bootstrap_means(np.hstack(parts)), len(parts), axis=1)
    found = [{**_errors(block, at), **_costs(block, at, means[0][:, at])} for at in systems]
    if reference is not None:
        for at in systems:
            if at != reference:
                resampled = np.stack([part[:, at] for part in means[3:]], axis=1)
                found[at] |= _against(block, (at, reference), resampled)
    _frontier(block, (means[1], means[2]), found)
    return found


def placed(block: Arrays) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which systems have a place by accuracy and dollars, and the questions to place them.

    These are the ones that all of them were graded on: dominance on different questions would say
    who had the easier ones.
    """
    systems = block.plain & ~np.isnan(block.usd).all(axis=0)
    gaps = np.isnan(block.scores[:, systems]).any(axis=1)
    return systems, np.asarray(~gaps, dtype=np.bool_)


def _only(kept: NDArray[np.bool_], values: Floats) -> Floats:
    return np.where(kept, values, np.nan)


def _errors(block: Arrays, at: int) -> dict[str, Any]:
    scores = block.scores[:, at]
    clustered = clustered_error(scores, block.topics) if len(set(block.topics)) > 1 else None
    return {"se": standard_error(scores), "se_clustered": clustered}


def _costs(block: Arrays, at: int, resampled: Floats) -> dict[str, Any]:
    there = ~np.isnan(block.scores[:, at])
    scores, usd, tokens = (one[there, at] for one in (block.scores, block.usd, block.tokens))
    right, columns = scores.sum(), dict[str, Any]()
    if right > 0 and not np.isnan(tokens).any():
        columns["tokens_per_correct"] = float(tokens.sum() / right)
    if (summary := cost(usd, resampled)) and (passed := cost_of_pass(usd, scores)):
        columns |= {
            "usd_low": summary.interval and summary.interval.low,
            "usd_high": summary.interval and summary.interval.high,
            "usd_median": summary.median,
            "usd_p95": summary.p95,
            "usd_per_correct": passed.ratio_of_means,
            "cost_of_pass": passed.mean,
            "share_infinite": passed.infinite,
        }
    return columns


def _against(block: Arrays, pair: tuple[int, int], resampled: Floats) -> dict[str, Any]:
    """Return columns against the reference; `resampled`: difference, our cost, its cost."""
    at, reference = pair
    deltas = block.scores[:, at] - block.scores[:, reference]
    there = ~np.isnan(deltas)
    columns: dict[str, Any] = {}
    if bounds := bca_interval(deltas, resampled[:, 0]):
        columns |= {"paired_bca_low": bounds.low, "paired_bca_high": bounds.high}
    ours, theirs = block.usd[there, at], block.usd[there, reference]
    if ratio := cost_ratio(ours, theirs, resampled[:, 1:]):
        columns["usd_ratio"] = ratio.value
        if ratio.interval:
            columns |= {"usd_ratio_low": ratio.interval.low, "usd_ratio_high": ratio.interval.high}
    return columns


def _frontier(block: Arrays, means: tuple[Floats, Floats], found: Sequence[dict[str, Any]]) -> None:
    """Say how often each system is on the frontier, where two or more can be placed.

    `means` are dollars and scores of each resample, of the questions that all were graded on.
    """
    systems, common = placed(block)
    at = np.flatnonzero(systems)
    if at.size > 1 and common.any():
        usd, scores = (part[np.isfinite(part[:, at[0]])][:, at] for part in means)
        shares = pareto_probability(usd, scores)
        for place, share in zip(at.tolist(), shares.tolist(), strict=True):
            found[place]["pareto_probability"] = share
