"""Intervals and verdicts for a comparison. The question is the unit: epochs are averaged first.

One pass over 30 questions has a standard error of about 9 points, and more epochs shrink only the
noise within questions, so an interval that took epochs as independent would promise too much
(Miller 2024, arXiv 2411.00640). The numerics are Inspect's own metrics, which need no scipy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any, Literal, cast

from inspect_ai.scorer import SampleScore, Score, ci, ci_wilson

LEVEL = 0.95
POWER = 0.8
Verdict = Literal["better", "worse", "inconclusive"]
Values = Mapping[str, Sequence[float]]
"""Question -> its grades, one per graded epoch; every grade lies between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided 95 % interval."""

    low: float
    high: float


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
    spread = len(set(means.values())) > 1
    if sizes == {1} or len(sizes) > 1 or not spread:
        return _bounds(ci_wilson(LEVEL), [(name, mean) for name, mean in means.items()])
    pairs = [(name, grade) for name, grades in graded.items() for grade in grades]
    return _bounds(ci_wilson(LEVEL, cluster="question"), pairs)


def difference(values: Values, reference: Values) -> Difference | None:
    """Return the paired difference on the questions that both were graded on; None when none.

    The interval is Student's t on per-question differences. "better" and "worse" need all of:
    a difference of at least the minimum detectable effect, an interval without 0, and an exact sign
    test (McNemar's, for one epoch) below 5 %; anything else is "inconclusive".
    """
    ours, theirs = question_means(values), question_means(reference)
    deltas = [ours[question] - theirs[question] for question in ours if question in theirs]
    if not deltas:
        return None
    mean = fmean(deltas)
    spread = stdev(deltas) if len(deltas) > 1 else 0.0
    detectable = _detectable(spread, len(deltas)) if spread else None
    interval = _t_interval(deltas) if spread else None
    clear = interval is None or interval.low > 0 or interval.high < 0
    sure = abs(mean) >= (detectable or 0) and clear and sign_test(deltas) < 1 - LEVEL
    verdict: Verdict = "inconclusive" if not sure else "better" if mean > 0 else "worse"
    return Difference(mean, interval, detectable, verdict, len(deltas))


def sign_test(deltas: Sequence[float]) -> float:
    """Return the two-sided exact p-value of the sign test; equal pairs say nothing.

    >>> sign_test([1, 1, 1, 1, 1, 0])
    0.0625
    """
    ups = sum(delta > 0 for delta in deltas)
    downs = sum(delta < 0 for delta in deltas)
    n, fewer = ups + downs, min(ups, downs)
    tail = sum(comb(n, k) for k in range(fewer + 1)) / 2**n
    return min(1.0, 2 * tail)


def _t_interval(deltas: Sequence[float]) -> Interval:
    """Return Student's interval, cut to the differences that two accuracies can have."""
    found = _bounds(ci(LEVEL, method="t"), [(str(n), delta) for n, delta in enumerate(deltas)])
    return Interval(max(found.low, -1.0), min(found.high, 1.0))


def _detectable(spread: float, n: int) -> float:
    normal = NormalDist()
    return (normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER)) * spread / sqrt(n)


def _bounds(metric: object, pairs: Sequence[tuple[str, float]]) -> Interval:
    """Apply one of Inspect's interval metrics to (question, value) pairs."""
    scores = [
        SampleScore(score=Score(value=value), sample_id=name, sample_metadata={"question": name})
        for name, value in pairs
    ]
    found = cast(Any, metric)(scores)
    return Interval(float(found["lower"]), float(found["upper"]))
