"""Means over draws that cross: seeds of a training, and questions in strata (suites).

A trained system's score varies with its seed and with the questions, and both are draws. The same
design is known from studies in which every reader reads every case: readers and cases are random
there. An interval over questions alone would speak of these seeds only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.stats.arrays import LEVEL, RESAMPLES, SEED, Bounds, Floats
from reports.stats.distributions import t_quantile
from reports.stats.resampling import resampled_counts


@dataclass(frozen=True, slots=True)
class Crossed:
    """A mean over strata of equal weight, and how sure it is."""

    mean: float
    interval: Bounds | None
    """Seeds and questions both vary; with one seed, questions alone. None without spread."""
    seeds: int
    seed_error: float | None
    """Share of the standard error that comes from seeds; None for one seed."""
    question_error: float


def crossed(strata: Sequence[Floats], level: float = LEVEL) -> Crossed:
    """Return the mean of (seeds, questions) arrays, one per stratum, with Student's interval.

    Variances of seed means and of question means are added, less their interaction, which is in
    both; degrees of freedom as in Satterthwaite (1946, Biometrics Bulletin 2(6)), for two crossed
    random factors as in Obuchowski and Rockette (1995) with Hillis's (2007) denominator. Of three
    seeds a bootstrap knows too little: its intervals are too short (tests/test_crossed.py).
    ValueError for no stratum, or one with a gap or without questions.
    """
    _refuse_gaps(strata)
    seeds, weight = strata[0].shape[0], 1 / len(strata)
    mean = float(np.mean([one.mean() for one in strata]))
    parts = [weight**2 * _variance(one.mean(axis=0)) / one.shape[1] for one in strata]
    of_questions = sum(parts)
    if seeds == 1:
        of_seeds, shared = 0.0, 0.0
    else:
        of_seeds = _variance(np.mean([one.mean(axis=1) for one in strata], axis=0)) / seeds
        shared = sum(weight**2 * _interaction(one) for one in strata)
    variance = max(of_seeds + of_questions - shared, of_seeds, of_questions)
    sizes = [one.shape[1] - 1 for one in strata]
    loose = sum(part**2 / max(1, size) for part, size in zip(parts, sizes, strict=True))
    loose += of_seeds**2 / max(1, seeds - 1)
    found = None
    if variance > 0:
        half = t_quantile((1 + level) / 2, variance**2 / loose) * variance**0.5
        found = Bounds(mean - half, mean + half)
    error = None if seeds == 1 else of_seeds**0.5
    return Crossed(mean, found, seeds, error, of_questions**0.5)


def crossed_means(strata: Sequence[Floats], resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return the mean in each resample of seeds and, within strata, of questions: (resamples,).

    Both are drawn anew and independently: the pigeonhole bootstrap (Owen 2007, Annals of Applied
    Statistics 1(2)). Strata with the same sizes see the same draws, so that two systems' resamples
    may be subtracted or divided.
    """
    _refuse_gaps(strata)
    drawn = resampled_counts(strata[0].shape[0], resamples, seed) / strata[0].shape[0]
    total = np.zeros(resamples)
    for at, one in enumerate(strata):
        questions = resampled_counts(one.shape[1], resamples, seed + 1 + at) / one.shape[1]
        total += ((drawn @ one) * questions).sum(axis=1)
    return total / len(strata)


def percentile(values: Floats, level: float = LEVEL) -> Bounds | None:
    """Return the interval that holds the middle of the resamples; None where one is no number."""
    if not values.size or not np.isfinite(values).all():
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Bounds(float(low), float(high))


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def _interaction(values: Floats) -> float:
    """Return the variance of a stratum's mean that is neither the seeds' nor the questions'."""
    seeds, questions = values.shape
    if questions < 2:
        return 0.0
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float((rest**2).sum()) / ((seeds - 1) * (questions - 1)) / (seeds * questions)


def _refuse_gaps(strata: Sequence[Floats]) -> None:
    if not strata or any(not one.size or np.isnan(one).any() for one in strata):
        raise ValueError("each stratum needs a value of every seed on every question")
