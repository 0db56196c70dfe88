"""Intervals and verdicts for a comparison. The question is the unit: epochs are averaged first.

One pass over 30 questions has a standard error of about 9 points, and more epochs shrink only the
noise within questions, so an interval that took epochs as independent would promise too much
(Miller 2024, arXiv 2411.00640). The numerics are reports/stats/.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

import numpy as np

from reports.stats.arrays import LEVEL, Bounds, Floats
from reports.stats.many import holm
from reports.stats.means import clustered_error, t_interval
from reports.stats.paired import Pairs, Test, paired_test, pairs_of, sign_test
from reports.stats.power import detectable
from reports.stats.proportions import effective_wilson, wilson

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
    test: Test
    """McNemar's for single binary draws, else random sign flips of mean differences."""
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
    p_value, test = paired_test(deltas, single=_single(values) and _single(reference))
    return Difference(
        mean=mean,
        # Two accuracies differ by no more than 1.
        interval=Interval(max(found.low, -1.0), min(found.high, 1.0)) if found else None,
        detectable=effect,
        verdict=_verdict(deltas, found, effect),
        questions=len(both),
        p_value=p_value,
        test=test,
        p_holm=p_value,
        pairs=pairs_of(mine, other),
    )


def adjusted(family: Sequence[Difference | None]) -> list[Difference | None]:
    """Return comparisons with one reference, p-values adjusted for their number (Holm 1979).

    A verdict that the adjusted test does not bear out becomes "inconclusive": the more systems
    are compared, the more of them look better by chance. None stays None.
    """
    found = [one for one in family if one]
    adjusted_ps = iter(holm([one.p_value for one in found]))
    return [one and _at(one, next(adjusted_ps)) for one in family]


def _at(one: Difference, p_holm: float) -> Difference:
    kept = one.verdict if p_holm < 1 - LEVEL else "inconclusive"
    return replace(one, p_holm=p_holm, verdict=kept)


def _verdict(deltas: Floats, interval: Interval | None, effect: float | None) -> Verdict:
    mean = float(deltas.mean())
    clear = interval is None or interval.low > 0 or interval.high < 0
    sure = abs(mean) >= (effect or 0) and clear and sign_test(deltas) < 1 - LEVEL
    return "inconclusive" if not sure else "better" if mean > 0 else "worse"


def _single(values: Values) -> bool:
    """Say whether every question was graded once, right or wrong."""
    return all(len(grades) <= 1 and set(grades) <= {0.0, 1.0} for grades in values.values())
