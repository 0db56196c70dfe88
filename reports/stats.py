"""Statistics of a comparison on plain arrays: one entry per question, NaN if unknown.

The question is the unit: callers average epochs first (Miller 2024, arXiv 2411.00640). Randomness
comes from a seed, so that a report can be rebuilt.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# scipy ships no types.

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, floor, log, log1p, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special  # scipy.stats has the same functions but takes a second to load

Floats = NDArray[np.float64]
LEVEL = 0.95  # confidence level of every two-sided interval
SEED = 20260101
"""Default random seed of all resampling, so that the same logs give the same report."""
RESAMPLES = 10_000
TIE = 1e-12
"""Means that differ by less count as equal: a sum's rounding depends on the order of its terms."""
CELLS = 4_000_000  # maximum draws held in memory: 32 MB
MOST_FLIPS = 16  # maximum differing questions for which all sign flips are enumerated
MOST_SUBSETS = 2_000  # maximum subsets of tries to enumerate; of more, this many are drawn
POWER = 0.8


class Bounds(NamedTuple):
    """The two ends of an interval."""

    low: float
    high: float


def normal_quantile(share: float) -> float:
    """Return the standard normal distribution's quantile; infinite at 0 and 1."""
    return float(special.ndtri(share))


def t_quantile(share: float, df: float) -> float:
    """Return the quantile of Student's t distribution with `df` degrees of freedom."""
    return float(special.stdtrit(df, share))


# --- means and shares -----------------------------------------------------------------------------


def standard_error(values: Sequence[float] | Floats) -> float | None:
    """Return the standard error sd / sqrt(n) of the mean of `values`; None for fewer than two."""
    array = _without_gaps(values)
    return float(array.std(ddof=1) / np.sqrt(array.size)) if array.size > 1 else None


def clustered_error(values: Sequence[float] | Floats, clusters: Sequence[Hashable]) -> float | None:
    """Return the cluster-robust standard error of the mean.

    `clusters` names each value's cluster. None for fewer than two clusters. The correction is
    G / (G - 1) for G clusters (CR1), as in Inspect: the error is too small below about 20 clusters.
    """
    array = np.asarray(values, dtype=np.float64)
    there = ~np.isnan(array)
    names: dict[Hashable, int] = {}
    codes = np.array([names.setdefault(name, len(names)) for name in clusters])[there]
    groups = np.unique(codes).size
    if groups < 2:
        return None
    sums = np.bincount(codes, weights=array[there] - array[there].mean())
    return float(np.sqrt(groups / (groups - 1) * (sums**2).sum()) / there.sum())


def t_interval(values: Sequence[float] | Floats) -> Bounds | None:
    """Return Student's 95 % interval of the mean; None for fewer than two, or for equal, values."""
    array, error = _without_gaps(values), standard_error(values)
    if not error:
        return None
    half = t_quantile((1 + LEVEL) / 2, array.size - 1) * error
    return Bounds(float(array.mean()) - half, float(array.mean()) + half)


def wilson(share: float, n: float, critical: float | None = None) -> Bounds:
    """Return Wilson's score interval of a share of n; `critical`: a quantile (normal, for 95 %).

    The normal interval is wrong near 0 and 1, e.g. at 29 of 30. With partial credit Wilson's is
    conservative: at a given mean, values of 0 and 1 have the largest variance in [0, 1].
    """
    z = normal_quantile((1 + LEVEL) / 2) if critical is None else critical
    below = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / below
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / below
    return Bounds(max(middle - half, 0.0), min(middle + half, 1.0))


def effective_wilson(share: float, n: int, error: float, clusters: int) -> Bounds:
    """Return Wilson's interval at the effective sample size of a clustered standard error.

    The effective size is Korn and Graubard's p(1 - p) / error**2, at most n; the quantile is
    Student's with clusters - 1 degrees of freedom (Franco et al. 2019, PMC6690503).
    """
    variance = share * (1 - share)
    size = min(variance / error**2, n) if variance and error else float(n)
    return wilson(share, size, t_quantile((1 + LEVEL) / 2, clusters - 1))


def _without_gaps(values: Sequence[float] | Floats) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[~np.isnan(array)]


# --- the bootstrap over questions -----------------------------------------------------------------
# A resample is stored as the number of times that each question is drawn, so its means are a
# product of two matrices. All systems share the same resamples, for paired and joint statements.


def bootstrap_means(values: Floats, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return bootstrap means (resamples, columns) of the array `values` (questions, columns)."""
    rng, questions = np.random.default_rng(seed), values.shape[0]
    step = max(1, CELLS // max(1, questions))  # in batches: 14,000 questions fit into memory
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    return np.concatenate(
        [resampled_means(_counts(rng, size, questions), values) for size in sizes]
    )


def resampled_counts(questions: int, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return an array (resamples, questions): how often each resample draws each question."""
    return _counts(np.random.default_rng(seed), resamples, questions)


def _counts(rng: np.random.Generator, rows: int, questions: int) -> Floats:
    drawn = rng.integers(0, questions, (rows, questions))
    drawn += np.arange(rows)[:, None] * questions
    flat = np.bincount(drawn.ravel(), minlength=rows * questions)
    return flat.reshape(rows, questions).astype(np.float64)


def resampled_means(counts: Floats, values: Floats) -> Floats:
    """Return each resample's mean of each column of `values` (questions, columns), NaN ignored."""
    missing = np.isnan(values)
    sums = counts @ np.where(missing, 0.0, values)
    if not missing.any():
        return sums / counts.shape[1]
    drawn = counts @ (~missing).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums / drawn


def bca_interval(values: Floats, resampled: Floats) -> Bounds | None:
    """Return the bias-corrected and accelerated (BCa) interval of a mean (Efron 1987).

    `values`: one per question; `resampled`: the mean of `values` in each resample. None if all
    values are equal. The jackknife needs no loop: leaving a value out moves the mean in proportion
    to the value's distance from the mean.
    """
    there, means = values[~np.isnan(values)], resampled[np.isfinite(resampled)]
    if there.size < 2 or np.ptp(there) < TIE or not means.size:
        return None
    return _bca(float(there.mean()), means, there - there.mean())


def bca_ratio(top: Floats, below: Floats, resampled: Floats) -> Bounds | None:
    """Return the BCa bootstrap interval of mean(top) / mean(below); None for NaN or no variance."""
    if top.size < 2 or not np.isfinite(resampled).all() or np.ptp(resampled) < TIE:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        jackknife = (top.sum() - top) / (below.sum() - below)
    if not np.isfinite(jackknife).all() or np.ptp(jackknife) < TIE:
        return None
    return _bca(float(top.sum() / below.sum()), resampled, jackknife.mean() - jackknife)


def _bca(estimate: float, resampled: Floats, away: Floats) -> Bounds | None:
    """Return the BCa bootstrap interval of an estimate; `away`: influence of each question."""
    ties = (np.abs(resampled - estimate) <= TIE).mean() / 2
    bias = normal_quantile(float((resampled < estimate - TIE).mean() + ties))
    acceleration = float((away**3).sum() / (6 * (away**2).sum() ** 1.5))
    tail = normal_quantile((1 - LEVEL) / 2)
    z = bias + np.array([tail, -tail])
    quantiles = np.asarray(special.ndtr(bias + z / (1 - acceleration * z)), dtype=np.float64)
    if not np.isfinite(quantiles).all():
        return None
    low, high = np.quantile(resampled, quantiles)
    return Bounds(float(low), float(high))


# --- two systems, and many ------------------------------------------------------------------------


def correlation_of(ours: Floats, theirs: Floats) -> float | None:
    """Return Pearson's correlation of two arrays without NaN; None if an array is constant."""
    flat = min(ours.size, theirs.size) < 2 or np.ptp(ours) == 0 or np.ptp(theirs) == 0
    return None if flat else float(np.corrcoef(ours, theirs)[0, 1])


def sign_test(deltas: Sequence[float] | Floats) -> float:
    """Return the two-sided exact p-value of the sign test on differences; zeros are ignored."""
    array = np.asarray(deltas)
    return mcnemar(int((array > 0).sum()), int((array < 0).sum()))


def mcnemar(b: int, c: int) -> float:
    """Return the exact two-sided p-value of McNemar's test from its two discordant counts."""
    return min(1.0, 2 * float(special.bdtr(min(b, c), b + c, 0.5))) if b + c else 1.0


def sign_flips(deltas: Sequence[float] | Floats, draws: int = RESAMPLES, seed: int = SEED) -> float:
    """Return the two-sided p-value of the paired permutation test on the mean difference.

    Under the null hypothesis each difference is as likely with the other sign. Up to `MOST_FLIPS`
    differing questions all flips are enumerated; else `draws` flips are drawn, and the observed
    signs count as a further draw (Phipson and Smyth 2010), so that p is never 0.
    """
    array = np.asarray(deltas, dtype=np.float64)
    moved = array[array != 0]
    if not moved.size:
        return 1.0
    observed, slack = abs(moved.sum()), 1e-9
    if moved.size <= MOST_FLIPS:
        sums = np.zeros(1)
        for delta in moved:
            sums = np.concatenate((sums + delta, sums - delta))
        return float((np.abs(sums) >= observed - slack).mean())
    rng, bits = np.random.default_rng(seed), 8 * ((moved.size + 7) // 8)
    step, hits = max(1, CELLS // bits), 0
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = np.frombuffer(rng.bytes(rows * bits // 8), dtype=np.uint8)
        ups = np.unpackbits(drawn).reshape(rows, bits)[:, : moved.size]
        sums = 2 * (ups.astype(np.float64) @ moved) - moved.sum()
        hits += int((np.abs(sums) >= observed - slack).sum())
    return (1 + hits) / (draws + 1)


@dataclass(frozen=True, slots=True)
class Cochran:
    """Result of Cochran's Q test (chi-squared, df = k - 1): do k systems differ in accuracy?"""

    q: float
    df: int
    p_value: float
    differing: int  # questions on which systems differ; others do not count


def cochran_q(values: Floats) -> Cochran | None:
    """Return Cochran's Q (1950) of an array (questions, systems); None if not 0/1 or all agree."""
    if values.ndim != 2 or values.shape[1] < 2 or not np.isin(values, (0.0, 1.0)).all():
        return None
    columns, rows, k = values.sum(axis=0), values.sum(axis=1), values.shape[1]
    below = float((rows * (k - rows)).sum())
    if not below:
        return None
    q = k * (k - 1) * float(((columns - columns.mean()) ** 2).sum()) / below
    differing = int(((rows > 0) & (rows < k)).sum())
    return Cochran(q, k - 1, float(special.chdtrc(k - 1, q)), differing)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values, in the order given (Holm 1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, floor = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = floor
    return adjusted


# --- power ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance of the score difference of two systems on a question; scores are in [0, 1]."""

    between: float  # variance between questions: only more questions reduce its effect
    within: float
    """Variance of a question's difference between epochs: more epochs reduce its effect, too."""

    def at(self, epochs: int) -> float:
        """Return the variance of a question's difference, averaged over `epochs` epochs."""
        return self.between + self.within / epochs


def detectable(variance: float, n: int, comparisons: int = 1) -> float:
    """Return the smallest true difference that n questions show with 80 % power (Miller 2024)."""
    return _power_factor(POWER, comparisons) * sqrt(variance / n)


def among(effect: float, comparisons: int) -> float:
    """Return the detectable effect for several comparisons, from the effect for a single one."""
    return min(1.0, effect * _power_factor(POWER, comparisons) / _power_factor(POWER))


def questions_needed(variance: float, effect: float, power: float = POWER) -> int:
    """Return how many questions show a true difference of `effect` with probability `power`."""
    return max(2, ceil(_power_factor(power) ** 2 * variance / effect**2))


def questions_to_tell(value: float, limit: float, variance: float | None) -> int | None:
    """Return how many questions tell a true `value` from a limit with 80 % power; None if equal.

    `variance`: of one question's value; None: `value` is a share of right answers (binomial).
    """
    if abs(value - limit) < TIE:
        return None
    if variance is not None:
        return questions_needed(variance, limit - value)
    spread = normal_quantile((1 + LEVEL) / 2) * sqrt(limit * (1 - limit))
    spread += normal_quantile(POWER) * sqrt(value * (1 - value))
    return ceil((spread / (limit - value)) ** 2)


def _power_factor(power: float, comparisons: int = 1) -> float:
    return normal_quantile(1 - (1 - LEVEL) / 2 / comparisons) + normal_quantile(power)


def variance_of_accuracies(ours: float, theirs: float, correlation: float) -> Variance:
    """Return the variance of the score difference of two systems with these accuracies."""
    v_ours, v_theirs = ours * (1 - ours), theirs * (1 - theirs)
    return Variance(max(v_ours + v_theirs - 2 * correlation * sqrt(v_ours * v_theirs), 0.0), 0.0)


def variance_of_draws(ours: Floats, theirs: Floats) -> Variance:
    """Return the `Variance` of two systems' grades (questions, epochs); one epoch: `within` 0."""
    spread = float((ours.mean(axis=1) - theirs.mean(axis=1)).var(ddof=1))
    noises = [(grades.var(axis=1, ddof=1).mean(), grades.shape[1]) for grades in (ours, theirs)
              if grades.shape[1] > 1]  # fmt: skip
    within = float(sum(noise for noise, _ in noises))
    share = float(sum(noise / epochs for noise, epochs in noises))
    return Variance(max(spread - share, 0.0), within)


# --- several tries at a question ------------------------------------------------------------------
# Expectations over k tries that are drawn without replacement from n tries: unbiased, and every
# try is used. pass@1 and maj@1 are the accuracy.


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return the chance that k of n tries, drawn without replacement, include a right one.

    1 - C(n - right, k) / C(n, k): Chen et al. 2021, arXiv 2107.03374, equation 1.

    >>> pass_at_k(10, 1, 5), pass_at_k(10, 6, 5), pass_at_k(10, 0, 10)
    (0.5, 1.0, 0.0)
    """
    return 1 - comb(n - right, k) / comb(n, k)


def pass_all_k(n: int, right: int, k: int) -> float:
    """Return the chance that k of n tries are all right: pass^k (Yao et al., arXiv 2406.12045)."""
    return comb(right, k) / comb(n, k)


def maj_at_k(answers: Sequence[Hashable | None], values: Sequence[float], k: int) -> float:
    """Return the expected grade of the answer that most of k tries give.

    `answers` with the same meaning must be equal; None does not vote. Answers with equally many
    votes win equally often. If no try has an answer, the grade is 0. ValueError unless 1 <= k <= n.
    """
    n = len(answers)
    if not 1 <= k <= n:
        raise ValueError(f"maj@{k} needs {k} tries, and there are {n}. Give a k from 1 to {n}.")
    names: dict[Hashable, int] = {}
    codes = np.array([-1 if key is None else names.setdefault(key, len(names)) for key in answers])
    if not names:
        return 0.0
    grades = np.array([np.mean([v for v, c in zip(values, codes, strict=True) if c == code])
                       for code in range(len(names))])  # fmt: skip
    if comb(n, k) <= MOST_SUBSETS:
        picks = np.array(list(combinations(range(n), k)))
    else:
        rng = np.random.default_rng(SEED)
        picks = rng.permuted(np.tile(np.arange(n), (MOST_SUBSETS, 1)), axis=1)[:, :k]
    chosen = codes[picks]
    votes = (chosen[:, :, None] == np.arange(len(names))).sum(axis=1)
    largest = votes.max(axis=1, keepdims=True)
    wins = (votes == largest) & (largest > 0)
    shares = wins / np.maximum(wins.sum(axis=1, keepdims=True), 1)
    return float((shares @ grades).mean())


# --- equivalence ----------------------------------------------------------------------------------
# Two one-sided tests (Schuirmann 1987, J. Pharmacokinetics and Biopharmaceutics 15(6); Lakens 2017,
# Social Psychological and Personality Science 8(4)). Student's t alone errs in up to 20 % of
# cases if few questions differ, so the p-value is the largest of three tests' p-values.

ALPHA = 1 - LEVEL  # error rate of each of the two tests: together they use a 90 % interval


def equivalence_interval(deltas: Floats) -> Bounds | None:
    """Return Student's 90 % interval of the mean difference in [-1, 1]; None if nothing varies."""
    mean, error = _mean_and_error(deltas)
    if error < TIE:
        return None
    half = t_quantile(1 - ALPHA, deltas.size - 1) * error
    return Bounds(max(mean - half, -1.0), min(mean + half, 1.0))


def equivalence_p(deltas: Floats, margin: float, *, single: bool) -> float:
    """Return the p-value of "the mean differs from 0 by `margin` or more"; `single`: 0/1 grades."""
    return max(_p_below(side, margin, single=single) for side in (deltas, -deltas))


def non_inferiority_p(deltas: Floats, margin: float, *, single: bool) -> tuple[float, float]:
    """Return the p-values of two tests: for "worse by less than `margin`", for "worse by more"."""
    return _p_below(-deltas, margin, single=single), _p_below(deltas, -margin, single=single)


def tost(deltas: Floats, margin: float) -> float:
    """Return the p-value of two one-sided t tests that the mean difference is within `margin`."""
    return max(_student(side, margin) for side in (deltas, -deltas))


def fewest_questions(margin: float) -> int:
    """Return the minimum number of questions that shows equivalence if systems differ on none."""
    return ceil(log(ALPHA) / log1p(-margin)) if margin < 1 else 1


def equivalence_words(margin: float) -> str:
    """Return a sentence on the meaning of "equivalent" and on the number of questions needed."""
    return (
        f"equivalent: shown to differ by less than {100 * margin:g} points (two one-sided tests at "
        f"5 % each, Holm); it takes {fewest_questions(margin):,} questions or more"
    )


def _p_below(deltas: Floats, margin: float, *, single: bool) -> float:
    """Return the largest of three p-values of the null hypothesis that the mean is >= `margin`."""
    score = tango if single else _supposing_more
    return max(_student(deltas, margin), score(deltas, margin), _all_or_nothing(deltas, margin))


def _student(deltas: Floats, margin: float) -> float:
    mean, error = _mean_and_error(deltas)
    if error < TIE:
        return 0.0 if mean < margin else 1.0
    return float(special.stdtr(deltas.size - 1, (mean - margin) / error))


def tango(deltas: Floats, margin: float) -> float:
    """Return the one-sided p-value of the score test for paired proportions (Tango 1998).

    Statistics in Medicine 17(8): shares of won and lost questions are estimated as if their
    difference were `margin`, so that the spread is not 0 if no question differs.
    """
    n, ours, theirs = deltas.size, int((deltas > 0).sum()), int((deltas < 0).sum())
    b, c = (2 * n - ours + theirs) * margin - ours - theirs, -theirs * margin * (1 - margin)
    lost = (sqrt(b * b - 8 * n * c) - b) / (4 * n)
    spread = n * (2 * lost + margin * (1 - margin))
    return float(special.ndtr((ours - theirs - n * margin) / sqrt(spread))) if spread > 0 else 0.0


def _supposing_more(deltas: Floats, margin: float) -> float:
    """Return Student's p-value with added variance, as if a share of further questions were won.

    That share would bring the mean to the margin. The test is for means over epochs, which have no
    exact test: no simulated error rate was above 5 % (equivalence_size.py at commit bbc2f728).
    """
    gap = min(max(margin - float(deltas.mean()), 0.0), 1.0)
    error = sqrt(_mean_and_error(deltas)[1] ** 2 + gap * (1 - gap) / deltas.size)
    if error < TIE or deltas.size < 2:
        return 1.0
    return float(special.stdtr(deltas.size - 1, -gap / error))


def _all_or_nothing(deltas: Floats, margin: float) -> float:
    """Return the binomial p-value of the null hypothesis that a share `margin` of questions is won.

    A negative `margin` is a share of lost questions.
    """
    if margin < 0:
        lost = ceil(-float(deltas.sum()) - TIE * deltas.size)
        return float(special.bdtrc(lost - 1, deltas.size, -margin)) if lost > 0 else 1.0
    won = floor(float(deltas.sum()) + TIE * deltas.size)
    return float(special.bdtr(won, deltas.size, margin)) if won >= 0 else 0.0


def _mean_and_error(deltas: Floats) -> tuple[float, float]:
    spread = float(np.ptp(deltas)) if deltas.size else 0.0
    error = float(deltas.std(ddof=1)) / sqrt(deltas.size) if spread > TIE else 0.0
    return float(deltas.mean()), error
