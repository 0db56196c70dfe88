"""Accuracy and paired differences of systems: intervals, tests, pass@k, majority votes.

The question is the unit: epochs are averaged first, because more epochs reduce only the noise
within questions (Miller 2024, arXiv 2411.00640).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np

from podium.harness.ledger.totals import QuestionResult, SystemRun
from podium.reports import stats
from podium.reports.render import percent
from podium.reports.stats import Bounds, Floats, equivalence_interval, equivalence_p

Verdict = Literal["better", "worse", "equivalent", "inconclusive"]
Values = Mapping[str, Sequence[float]]
"""Question -> its grades, one per graded epoch; every grade lies between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Paired difference of a system from its reference; fields are named as in table.csv."""

    paired_diff: float
    paired_low: float | None
    """Lower end of the 95 % interval; None for fewer than two questions or equal differences."""
    paired_high: float | None
    min_detectable: float | None
    """Smallest difference (at most 1) that the questions show with 80 % power (Miller 2024)."""
    verdict: Verdict
    n_paired: int
    p_value: float
    test: Literal["mcnemar", "sign-flip"]
    """`mcnemar`: exact test, for one 0/1 grade per question; `sign-flip`: for means over epochs."""
    p_holm: float
    """p-value adjusted (Holm) for all comparisons with the reference; of one, it is `p_value`."""
    n_better: int
    n_worse: int
    correlation: float | None
    equivalence_margin: float | None = None
    """Margin of equivalence, a fraction; None, like the next four fields, if it was not tested."""
    equivalence_low: float | None = None
    equivalence_high: float | None = None
    p_equivalence: float | None = None
    p_equivalence_holm: float | None = None


def grades_of(attempts: Iterable[QuestionResult]) -> dict[str, list[float]]:
    """Return question -> grades of its graded epochs."""
    values: dict[str, list[float]] = {}
    for attempt in attempts:
        if attempt.value is not None:
            values.setdefault(attempt.question, []).append(attempt.value)
    return values


def accuracy(values: Values) -> float | None:
    """Return the mean over questions of their mean grade; None if nothing was graded."""
    means = question_means(values)
    return fmean(means.values()) if means else None


def question_means(values: Values) -> dict[str, float]:
    """Return each graded question's mean over its epochs (avg@k)."""
    return {question: fmean(grades) for question, grades in values.items() if grades}


def accuracy_interval(values: Values) -> Bounds | None:
    """Return the 95 % Wilson score interval of the accuracy; None if nothing was graded.

    With several epochs, n is the effective sample size with questions as clusters (Korn and
    Graubard; Franco et al. 2019, PMC6690503). If that size cannot be estimated (all means equal,
    epochs unequal in number), n is the number of questions: wider, never too narrow.
    """
    means = question_means(values)
    if not means:
        return None
    sizes = {len(grades) for grades in values.values() if grades}
    share, n = fmean(means.values()), len(means)
    if sizes == {1} or len(sizes) > 1 or len(set(means.values())) == 1:
        return stats.wilson(share, n)
    error = stats.clustered_error(list(means.values()), range(n)) or 0.0
    return stats.effective_wilson(share, n * sizes.pop(), error, n)


def accuracy_columns(values: Values) -> dict[str, Any]:
    """Return a table row's columns on accuracy: the accuracy and the ends of its 95 % interval."""
    low, high = accuracy_interval(values) or (None, None)
    return {"accuracy": accuracy(values), "ci_low": low, "ci_high": high}


def difference(values: Values, reference: Values, margin: float | None = None) -> Difference | None:
    """Return a system's paired difference from a reference; None if no question is graded in both.

    The interval is Student's t on per-question differences. "better" and "worse" need at least the
    minimum detectable effect, an interval without 0, an exact sign test below 5 % and, for several
    comparisons, Holm's p below 5 % (`holm_adjusted`; only that function returns "equivalent", for
    differences below `margin`); anything else is "inconclusive".
    """
    ours, theirs = question_means(values), question_means(reference)
    both = [question for question in ours if question in theirs]
    if not both:
        return None
    mine, base = (np.array([means[question] for question in both]) for means in (ours, theirs))
    deltas = mine - base
    interval = stats.t_interval(deltas)
    effect = stats.detectable(float(deltas.var(ddof=1)), len(both)) if interval else None
    single = _single(values) and _single(reference)
    p_value = stats.sign_test(deltas) if single else stats.sign_flips(deltas)
    return Difference(
        paired_diff=float(deltas.mean()),
        # Two accuracies differ by no more than 1.
        paired_low=max(interval.low, -1.0) if interval else None,
        paired_high=min(interval.high, 1.0) if interval else None,
        min_detectable=effect and stats.among(effect, 1),
        verdict=_verdict(deltas, interval, effect),
        n_paired=len(both),
        p_value=p_value,
        test="mcnemar" if single else "sign-flip",
        p_holm=p_value,
        n_better=int((deltas > 0).sum()),
        n_worse=int((deltas < 0).sum()),
        correlation=stats.correlation_of(mine, base),
        **({} if margin is None else _equivalence(deltas, margin, single=single)),
    )


def _equivalence(deltas: Floats, margin: float, *, single: bool) -> dict[str, Any]:
    low, high = equivalence_interval(deltas) or (None, None)
    p_value = equivalence_p(deltas, margin, single=single)
    names = ("margin", "low", "high")
    columns = dict(zip((f"equivalence_{name}" for name in names), (margin, low, high), strict=True))
    return {**columns, "p_equivalence": p_value, "p_equivalence_holm": p_value}


def holm_adjusted(family: Sequence[Difference | None]) -> list[Difference | None]:
    """Return several differences from a reference, with Holm's p-values and adjusted verdicts."""
    deltas = [delta for delta in family if delta]
    ps = iter(stats.holm([delta.p_value for delta in deltas]))
    p_values = [delta.p_equivalence for delta in deltas if delta.p_equivalence is not None]
    equal = iter(stats.holm(p_values))
    adjusted = [
        delta
        and replace(
            delta,
            p_holm=next(ps),
            min_detectable=delta.min_detectable and stats.among(delta.min_detectable, len(deltas)),
            p_equivalence_holm=None if delta.p_equivalence is None else next(equal),
        )
        for delta in family
    ]
    return [delta and replace(delta, verdict=_borne_out(delta)) for delta in adjusted]


def _borne_out(delta: Difference) -> Verdict:
    if delta.verdict in ("better", "worse") and delta.p_holm < 1 - stats.LEVEL:
        return delta.verdict
    equal = delta.p_equivalence_holm
    return "equivalent" if equal is not None and equal < 1 - stats.LEVEL else "inconclusive"


def _verdict(deltas: Floats, interval: Bounds | None, effect: float | None) -> Verdict:
    mean = float(deltas.mean())
    clear = interval is None or interval.low > 0 or interval.high < 0
    sure = abs(mean) >= (effect or 0) and clear and stats.sign_test(deltas) < 1 - stats.LEVEL
    return "inconclusive" if not sure else "better" if mean > 0 else "worse"


def _single(values: Values) -> bool:
    """Return whether every question was graded at most once, with 0 or 1."""
    return all(len(grades) <= 1 and set(grades) <= {0.0, 1.0} for grades in values.values())


KS = (1, 5, 10)
FEWEST = 3  # minimum tries in a majority vote: two tries that differ have no majority


def pass_at_ks(values: Values) -> dict[int, Values]:
    """Return k -> question -> pass@k; empty for fewer than 5 tries or grades other than 0 and 1."""
    if not values or not {grade for grades in values.values() for grade in grades} <= {0.0, 1.0}:
        return {}
    largest = max(map(len, values.values()))
    if largest < KS[1]:
        return {}
    return {
        k: {
            question: [stats.pass_at_k(len(grades), sum(grade == 1.0 for grade in grades), k)]
            for question, grades in values.items()
            if len(grades) >= k
        }
        for k in KS
        if k <= largest
    }


def tries_columns(values: Values, epochs: int, k: int | None = None) -> dict[str, Any]:
    """Return a row's avg@k, pass@k and pass^k with intervals by question; default k: all epochs.

    The columns cover the questions with at least k graded tries. They are empty for a single epoch,
    and for grades other than 0 and 1, which do not show whether a try passes.
    """
    k = epochs if k is None else k
    full = {question: grades for question, grades in values.items() if len(grades) >= k}
    if not 2 <= k <= epochs or not {x for grades in values.values() for x in grades} <= {0.0, 1.0}:
        return {}
    columns: dict[str, Any] = {"tries_k": k} if full else {}
    chances = {"avg_at_k": None, "pass_at_k": stats.pass_at_k, "pass_all_k": stats.pass_all_k}
    for name, chance in chances.items() if full else ():
        rates = {q: [chance(len(x), x.count(1.0), k)] if chance else x for q, x in full.items()}
        low, high = accuracy_interval(rates) or (None, None)
        columns |= {name: accuracy(rates), f"{name}_low": low, f"{name}_high": high}
    return columns


def majority(system_run: SystemRun, k: int | None = None) -> tuple[int, Values] | None:
    """Return k (default: all epochs) and question -> expected grade of a majority vote of k tries.

    None if k is below `FEWEST` (3) or above the epochs, or if no answer can be voted on.
    """
    k = system_run.epochs if k is None else k
    if not FEWEST <= k <= system_run.epochs:
        return None
    tries: dict[str, list[tuple[str | None, float]]] = {}
    for attempt in system_run.attempts:
        if attempt.value is not None:
            tries.setdefault(attempt.question, []).append((attempt.vote, attempt.value))
    complete = {question: votes for question, votes in tries.items() if len(votes) >= k}
    if not any(vote for votes in complete.values() for vote, _ in votes):
        return None
    return k, {
        question: [stats.maj_at_k([vote for vote, _ in votes], [value for _, value in votes], k)]
        for question, votes in complete.items()
    }


def official_columns(attempts: Sequence[QuestionResult]) -> tuple[dict[str, Any], list[str]]:
    """Return a row's columns by the published evaluator's rule, and a footnote if verdicts differ.

    LiveCodeBench's evaluator fails some correct programs: by our rule alone a table cannot be
    compared with published figures, and by the published rule alone it understates some systems.
    The columns are empty if no graded reply has a verdict by that evaluator; the accuracy is None
    if only some have one.
    """
    graded = [attempt for attempt in attempts if attempt.graded]
    if not any(attempt.official is not None for attempt in graded):
        return {}, []
    # A reply without a program is wrong by either rule.
    official = [result.official if result.official is not None or result.parsed else result.value
                for result in graded]  # fmt: skip
    pairs = list(zip(graded, official, strict=True))
    values = grades_of(replace(attempt, value=verdict) for attempt, verdict in pairs)
    differing = [attempt for attempt, verdict in pairs if verdict not in (None, attempt.value)]
    rate = None if None in official else accuracy(values)
    ours = sum(attempt.value == 1.0 for attempt in differing)
    errata = sum(attempt.erratum for attempt in differing)
    figure = "accuracy unknown" if rate is None else f"accuracy {percent(rate)} %"
    differ = "1 verdict differs" if len(differing) == 1 else f"{len(differing)} verdicts differ"
    faulty = f", {errata} with an erratum" if errata else ""
    note = f"published evaluator: {figure}, {differ} ({ours} right only here{faulty})"
    columns: dict[str, Any] = {"official_accuracy": rate, "n_official_differ": len(differing)}
    columns["n_official_errata"] = errata
    return columns, [note] if differing else []
