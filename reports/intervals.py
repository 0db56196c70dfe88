"""How accurate a system is, and whether two differ: intervals, tests, tries, and second verdicts.

The question is the unit: epochs are averaged first, for more of them shrink only the noise within
questions (Miller 2024, arXiv 2411.00640).
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
    """A system less its reference, question by question; the names are those of columns."""

    paired_diff: float
    paired_low: float | None
    """None when there are too few questions, or all differ alike, to estimate a spread."""
    paired_high: float | None
    min_detectable: float | None
    """The smallest difference that so many questions show with 80 % power (Miller 2024), among all
    comparisons with the same reference; at most 1."""
    verdict: Verdict
    n_paired: int
    p_value: float
    test: Literal["mcnemar", "sign-flip"]
    """McNemar's exact one for single binary draws; of means over epochs random sign flips."""
    p_holm: float
    """Adjusted for all comparisons with the same reference; `p_value` where there is one."""
    n_better: int
    n_worse: int
    correlation: float | None
    equivalence_margin: float | None = None
    """None, as the rest, where nobody asked whether the two are equivalent."""
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
    """Return the mean over questions of their mean grade; None when nothing was graded."""
    means = question_means(values)
    return fmean(means.values()) if means else None


def question_means(values: Values) -> dict[str, float]:
    """Return each graded question's mean over its epochs (avg@k)."""
    return {question: fmean(grades) for question, grades in values.items() if grades}


def accuracy_interval(values: Values) -> Bounds | None:
    """Return the 95 % Wilson score interval of the accuracy; None when nothing was graded.

    With several epochs it is Wilson's on the effective sample size of questions as clusters (Korn
    and Graubard; Franco et al. 2019, PMC6690503); where that cannot be estimated (all grades equal,
    epochs unequal in number) on one observation per question: wider, never too narrow.
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
    """Return a row's columns on its accuracy."""
    low, high = accuracy_interval(values) or (None, None)
    return {"accuracy": accuracy(values), "ci_low": low, "ci_high": high}


def difference(values: Values, reference: Values, margin: float | None = None) -> Difference | None:
    """Return the paired difference on the questions that both were graded on; None when none.

    The interval is Student's t on per-question differences. "better" and "worse" need at least the
    minimum detectable effect, an interval without 0 and an exact sign test below 5 %, and of
    several comparisons Holm's p below 5 % (`holm_adjusted`, which alone says "equivalent": of what
    differs by less than `margin`); anything else is "inconclusive".
    """
    ours, theirs = question_means(values), question_means(reference)
    both = [question for question in ours if question in theirs]
    if not both:
        return None
    mine, other = (np.array([means[one] for one in both]) for means in (ours, theirs))
    deltas = mine - other
    found = stats.t_interval(deltas)
    effect = stats.detectable(float(deltas.var(ddof=1)), len(both)) if found else None
    single = _single(values) and _single(reference)
    p_value = stats.sign_test(deltas) if single else stats.sign_flips(deltas)
    return Difference(
        paired_diff=float(deltas.mean()),
        # Two accuracies differ by no more than 1.
        paired_low=max(found.low, -1.0) if found else None,
        paired_high=min(found.high, 1.0) if found else None,
        min_detectable=effect and stats.among(effect, 1),
        verdict=_verdict(deltas, found, effect),
        n_paired=len(both),
        p_value=p_value,
        test="mcnemar" if single else "sign-flip",
        p_holm=p_value,
        n_better=int((deltas > 0).sum()),
        n_worse=int((deltas < 0).sum()),
        correlation=stats.correlation_of(mine, other),
        **({} if margin is None else _equivalence(deltas, margin, single=single)),
    )


def _equivalence(deltas: Floats, margin: float, *, single: bool) -> dict[str, Any]:
    low, high = equivalence_interval(deltas) or (None, None)
    p_value = equivalence_p(deltas, margin, single=single)
    names = ("margin", "low", "high")
    columns = dict(zip((f"equivalence_{one}" for one in names), (margin, low, high), strict=True))
    return {**columns, "p_equivalence": p_value, "p_equivalence_holm": p_value}


def holm_adjusted(family: Sequence[Difference | None]) -> list[Difference | None]:
    """Return comparisons with one reference, with the verdicts that Holm's p-values bear out."""
    found = [one for one in family if one]
    ps = iter(stats.holm([one.p_value for one in found]))
    asked = [one.p_equivalence for one in found if one.p_equivalence is not None]
    equal = iter(stats.holm(asked))
    adjusted = [
        one
        and replace(
            one,
            p_holm=next(ps),
            min_detectable=one.min_detectable and stats.among(one.min_detectable, len(found)),
            p_equivalence_holm=None if one.p_equivalence is None else next(equal),
        )
        for one in family
    ]
    return [one and replace(one, verdict=_borne_out(one)) for one in adjusted]


def _borne_out(one: Difference) -> Verdict:
    if one.verdict in ("better", "worse") and one.p_holm < 1 - stats.LEVEL:
        return one.verdict
    equal = one.p_equivalence_holm
    return "equivalent" if equal is not None and equal < 1 - stats.LEVEL else "inconclusive"


def _verdict(deltas: Floats, interval: Bounds | None, effect: float | None) -> Verdict:
    mean = float(deltas.mean())
    clear = interval is None or interval.low > 0 or interval.high < 0
    sure = abs(mean) >= (effect or 0) and clear and stats.sign_test(deltas) < 1 - stats.LEVEL
    return "inconclusive" if not sure else "better" if mean > 0 else "worse"


def _single(values: Values) -> bool:
    """Say whether every question was graded once, right or wrong."""
    return all(len(grades) <= 1 and set(grades) <= {0.0, 1.0} for grades in values.values())


KS = (1, 5, 10)
FEWEST = 3  # tries in a majority: of one or two the majority is one of them


def pass_at_ks(values: Values) -> dict[int, Values]:
    """Return question -> pass@k for each k of `KS` that tries allow; none unless a k is above 1."""
    if not values or not {grade for one in values.values() for grade in one} <= {0.0, 1.0}:
        return {}
    most = max(map(len, values.values()))
    if most < KS[1]:
        return {}
    return {
        k: {
            question: [stats.pass_at_k(len(one), sum(grade == 1.0 for grade in one), k)]
            for question, one in values.items()
            if len(one) >= k
        }
        for k in KS
        if k <= most
    }


def tries_columns(values: Values, epochs: int, k: int | None = None) -> dict[str, Any]:
    """Return a row's avg@k, pass@k and pass^k with their intervals by question, k being all epochs.

    They are of questions with k graded tries. There are none for a single epoch, nor for grades
    beside 0 and 1: of those nobody can say which tries pass.
    """
    k = epochs if k is None else k
    whole = {question: grades for question, grades in values.items() if len(grades) >= k}
    if not 2 <= k <= epochs or not {x for one in values.values() for x in one} <= {0.0, 1.0}:
        return {}
    columns: dict[str, Any] = {"tries_k": k} if whole else {}
    chances = {"avg_at_k": None, "pass_at_k": stats.pass_at_k, "pass_all_k": stats.pass_all_k}
    for name, chance in chances.items() if whole else ():
        found = {q: [chance(len(x), x.count(1.0), k)] if chance else x for q, x in whole.items()}
        low, high = accuracy_interval(found) or (None, None)
        columns |= {name: accuracy(found), f"{name}_low": low, f"{name}_high": high}
    return columns


def majority(system_run: SystemRun, k: int | None = None) -> tuple[int, Values] | None:
    """Return k and question -> expected grade of the majority of k tries; all epochs for no k."""
    k = system_run.epochs if k is None else k
    if not FEWEST <= k <= system_run.epochs:
        return None
    tries: dict[str, list[tuple[str | None, float]]] = {}
    for one in system_run.attempts:
        if one.value is not None:
            tries.setdefault(one.question, []).append((one.vote, one.value))
    whole = {question: made for question, made in tries.items() if len(made) >= k}
    if not any(vote for made in whole.values() for vote, _ in made):
        return None
    return k, {
        question: [stats.maj_at_k([vote for vote, _ in made], [value for _, value in made], k)]
        for question, made in whole.items()
    }


def official_columns(attempts: Sequence[QuestionResult]) -> tuple[dict[str, Any], list[str]]:
    """Return a row's columns by the published evaluator's rule, and a footnote where it differs.

    LiveCodeBench's evaluator fails some correct programs: by our rule alone a table cannot be set
    beside published figures, and by the published rule alone it understates some systems. Nothing
    when the suite gives no second verdict; no accuracy when some graded reply has none.
    """
    graded = [attempt for attempt in attempts if attempt.graded]
    if not any(attempt.official is not None for attempt in graded):
        return {}, []
    # A reply without a program is wrong by either rule.
    official = [one.official if one.official is not None or one.parsed else one.value
                for one in graded]  # fmt: skip
    pairs = list(zip(graded, official, strict=True))
    values = grades_of(replace(attempt, value=verdict) for attempt, verdict in pairs)
    other = [attempt for attempt, verdict in pairs if verdict not in (None, attempt.value)]
    rate = None if None in official else accuracy(values)
    ours, errata = (sum(one.value == 1.0 for one in other), sum(one.erratum for one in other))
    shown = "accuracy unknown" if rate is None else f"accuracy {percent(rate)} %"
    differ = "1 verdict differs" if len(other) == 1 else f"{len(other)} verdicts differ"
    faulty = f", {errata} with an erratum" if errata else ""
    note = f"published evaluator: {shown}, {differ} ({ours} right only here{faulty})"
    columns: dict[str, Any] = {"official_accuracy": rate, "n_official_differ": len(other)}
    columns["n_official_errata"] = errata
    return columns, [note] if other else []
