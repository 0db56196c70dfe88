"""Intervals and verdicts of two systems, and of all systems of a block of rows.

The question is the unit: epochs are averaged first. One pass over 30 questions has a standard error
of about 9 points, and more epochs shrink only the noise within questions, so an interval that took
epochs as independent would promise too much (Miller 2024, arXiv 2411.00640).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.ledger.totals import SystemRun
from reports.costs import cost_of_pass, cost_ratio, cost_summary, pareto_probability
from reports.stats import (
    LEVEL,
    Bounds,
    Floats,
    Pairs,
    bca_interval,
    bootstrap_means,
    clustered_error,
    detectable,
    effective_wilson,
    holm,
    pairs_of,
    sign_flips,
    sign_test,
    standard_error,
    t_interval,
    wilson,
)

Verdict = Literal["better", "worse", "inconclusive"]
Values = Mapping[str, Sequence[float]]
"""Question -> its grades, one per graded epoch; every grade lies between 0 and 1."""
Interval = Bounds


@dataclass(frozen=True, slots=True)
class Difference:
    """A system less its reference, question by question."""

    mean: float
    interval: Interval | None
    """None when there are too few questions, or all differ alike, to estimate a spread."""
    detectable: float | None
    """The smallest difference that so many questions show with 80 % power (Miller 2024)."""
    verdict: Verdict
    questions: int
    p_value: float
    test: Literal["mcnemar", "sign-flip"]
    """McNemar's exact one is for single binary draws alone: of means over epochs it would throw
    away how far they differ, so random sign flips take its place."""
    p_holm: float
    """Adjusted for all comparisons with the same reference; `p_value` where there is one."""
    pairs: Pairs


def accuracy(values: Values) -> float | None:
    """Return the mean over questions of their mean grade; None when nothing was graded."""
    means = question_means(values)
    return fmean(means.values()) if means else None


def question_means(values: Values) -> dict[str, float]:
    """Return each graded question's mean over its epochs (avg@k)."""
    return {question: fmean(grades) for question, grades in values.items() if grades}


def accuracy_interval(values: Values) -> Interval | None:
    """Return the 95 % Wilson score interval of the accuracy; None when nothing was graded.

    With one epoch it is the plain Wilson interval, because the usual one is wrong near 0 and 1
    (29 of 30). With several it is Wilson's on the effective sample size of questions as clusters
    (Korn and Graubard; Franco et al. 2019, PMC6690503). Where that size cannot be estimated (all
    grades equal, epochs unequal in number) it falls back to one observation per question: wider,
    never narrower than the data allow.
    """
    graded = {question: grades for question, grades in values.items() if grades}
    if not graded:
        return None
    means = question_means(graded)
    sizes = {len(grades) for grades in graded.values()}
    share, n = fmean(means.values()), len(means)
    spread = len(set(means.values())) > 1
    if sizes == {1} or len(sizes) > 1 or not spread:
        return wilson(share, n)
    error = clustered_error(list(means.values()), range(n)) or 0.0
    return effective_wilson(share, n * sizes.pop(), error, n)


def difference(values: Values, reference: Values) -> Difference | None:
    """Return the paired difference on the questions that both were graded on; None when none.

    The interval is Student's t on per-question differences. "better" and "worse" need all of:
    a difference of at least the minimum detectable effect, an interval without 0, and an exact
    sign test (McNemar's, for one epoch) below 5 %; anything else is "inconclusive". Where a
    reference has several comparisons, `adjusted` asks for Holm's p below 5 % as well.
    """
    ours, theirs = question_means(values), question_means(reference)
    both = [question for question in ours if question in theirs]
    if not both:
        return None
    mine, other = (np.array([means[one] for one in both]) for means in (ours, theirs))
    deltas = mine - other
    mean, found = float(deltas.mean()), t_interval(deltas)
    effect = detectable(float(deltas.var(ddof=1)), len(both)) if found else None
    single = _single(values) and _single(reference)
    p_value = sign_test(deltas) if single else sign_flips(deltas)
    return Difference(
        mean=mean,
        # Two accuracies differ by no more than 1.
        interval=Interval(max(found.low, -1.0), min(found.high, 1.0)) if found else None,
        detectable=effect,
        verdict=_verdict(deltas, found, effect),
        questions=len(both),
        p_value=p_value,
        test="mcnemar" if single else "sign-flip",
        p_holm=p_value,
        pairs=pairs_of(mine, other),
    )


def holm_adjusted(family: Sequence[Difference | None]) -> list[Difference | None]:
    """Return comparisons with one reference, p-values adjusted for their number (Holm 1979).

    A verdict that the adjusted test does not bear out becomes "inconclusive": the more systems
    are compared, the more of them look better by chance. None stays None.
    """
    found = [one for one in family if one]
    ps = iter(holm([one.p_value for one in found]))
    return [one and _with_holm(one, next(ps)) for one in family]


def _with_holm(one: Difference, p: float) -> Difference:
    return replace(one, p_holm=p, verdict=one.verdict if p < 1 - LEVEL else "inconclusive")


def _verdict(deltas: Floats, interval: Interval | None, effect: float | None) -> Verdict:
    mean = float(deltas.mean())
    clear = interval is None or interval.low > 0 or interval.high < 0
    sure = abs(mean) >= (effect or 0) and clear and sign_test(deltas) < 1 - LEVEL
    return "inconclusive" if not sure else "better" if mean > 0 else "worse"


def _single(values: Values) -> bool:
    """Say whether every question was graded once, right or wrong."""
    return all(len(grades) <= 1 and set(grades) <= {0.0, 1.0} for grades in values.values())


@dataclass(frozen=True, slots=True)
class BlockArrays:
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


def block_arrays(group: Sequence[SystemRun]) -> BlockArrays:
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
    return BlockArrays(scores, usd, tokens, np.array(plain), tuple(places), named)


def _fill(column: Floats, asked: NDArray[np.int64], values: Sequence[float | None]) -> None:
    """Put means by question into a column; nothing when a value is unknown."""
    if len(values) and None not in values:
        known = np.array(values, dtype=np.float64)
        times = np.bincount(asked, minlength=column.size)
        with np.errstate(invalid="ignore"):
            column[:] = np.bincount(asked, weights=known, minlength=column.size) / times


def block_columns(block: BlockArrays, reference: int | None) -> list[dict[str, Any]]:
    """Return the columns of each system; `reference` is the place of the one all are held against.

    A column that cannot be had is left out.
    """
    if not block.scores.size:
        return [{} for _ in range(block.scores.shape[1])]
    systems = range(block.scores.shape[1])
    _, common = placeable(block)
    parts = [block.usd, *(_only(common[:, None], one) for one in (block.usd, block.scores))]
    if reference is not None:
        deltas = block.scores - block.scores[:, [reference]]
        paired = ~np.isnan(deltas)
        parts += [deltas, _only(paired, block.usd), _only(paired, block.usd[:, [reference]])]
    means = np.split(bootstrap_means(np.hstack(parts)), len(parts), axis=1)
    found = [_own(block, at, means[0][:, at]) for at in systems]
    if reference is not None:
        for at in systems:
            if at != reference:
                resampled = np.stack([part[:, at] for part in means[3:]], axis=1)
                found[at] |= _against(block, (at, reference), resampled)
    _frontier(block, (means[1], means[2]), found)
    return found


def placeable(block: BlockArrays) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which systems have a place by accuracy and dollars, and the questions to place them.

    These are the ones that all of them were graded on: dominance on different questions would say
    who had the easier ones.
    """
    systems = block.plain & ~np.isnan(block.usd).all(axis=0)
    gaps = np.isnan(block.scores[:, systems]).any(axis=1)
    return systems, np.asarray(~gaps, dtype=np.bool_)


def _only(kept: NDArray[np.bool_], values: Floats) -> Floats:
    return np.where(kept, values, np.nan)


def _own(block: BlockArrays, at: int, resampled: Floats) -> dict[str, Any]:
    """Return columns on errors and costs; `resampled` are the mean dollars of each resample."""
    whole, several = block.scores[:, at], len(set(block.topics)) > 1
    columns: dict[str, Any] = {
        "se": standard_error(whole),
        "se_clustered": clustered_error(whole, block.topics) if several else None,
    }
    there = ~np.isnan(whole)
    scores, usd, tokens = (one[there, at] for one in (block.scores, block.usd, block.tokens))
    right = scores.sum()
    if right > 0 and not np.isnan(tokens).any():
        columns["tokens_per_correct"] = float(tokens.sum() / right)
    if (summary := cost_summary(usd, resampled)) and (passed := cost_of_pass(usd, scores)):
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


def _against(block: BlockArrays, pair: tuple[int, int], resampled: Floats) -> dict[str, Any]:
    """Return columns against the reference; `resampled`: difference, our cost, its cost."""
    at, reference = pair
    deltas = block.scores[:, at] - block.scores[:, reference]
    there = ~np.isnan(deltas)
    columns: dict[str, Any] = {}
    if bounds := bca_interval(deltas, resampled[:, 0]):
        columns |= {"paired_bca_low": bounds.low, "paired_bca_high": bounds.high}
    ours, theirs = block.usd[there, at], block.usd[there, reference]
    if ratio := cost_ratio(ours, theirs, resampled[:, 1:]):
        columns["usd_ratio"], bounds = ratio
        if bounds:
            columns |= {"usd_ratio_low": bounds.low, "usd_ratio_high": bounds.high}
    return columns


def _frontier(
    block: BlockArrays, means: tuple[Floats, Floats], found: Sequence[dict[str, Any]]
) -> None:
    """Say how often each system is on the frontier, where two or more can be placed.

    `means` are dollars and scores of each resample, of the questions that all were graded on.
    """
    systems, common = placeable(block)
    at = np.flatnonzero(systems)
    if at.size > 1 and common.any():
        usd, scores = (part[np.isfinite(part[:, at[0]])][:, at] for part in means)
        shares = pareto_probability(usd, scores)
        for place, share in zip(at.tolist(), shares.tolist(), strict=True):
            found[place]["pareto_probability"] = share
