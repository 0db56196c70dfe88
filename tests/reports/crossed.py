"""A mean over seeds and questions, and how sure it is: for trainings whose seeds differ.

Both are draws, as where every reader reads every case: an interval over questions alone would
speak of these seeds only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.reports.stats import (
    LEVEL,
    RESAMPLES,
    SEED,
    Bounds,
    Floats,
    resampled_counts,
    t_quantile,
)


@dataclass(frozen=True, slots=True)
class CrossedMean:
    """A mean over strata of equal weight, and how sure it is."""

    mean: float
    interval: Bounds | None
    """Seeds and questions both vary; with one seed, questions alone. None without spread."""
    seeds: int
    seed_error: float | None  # share of the standard error that comes from seeds; None for one seed
    question_error: float


def crossed_mean(strata: Sequence[Floats]) -> CrossedMean:
    """Return the mean of (seeds, questions) arrays, one per stratum, with Student's interval.

    Variances of seed means and question means are added, less their interaction, which is in both;
    degrees of freedom as in Satterthwaite (1946, Biometrics Bulletin 2(6)), for two crossed random
    factors as in Obuchowski and Rockette (1995) with Hillis's (2007) denominator: of three seeds a
    bootstrap's intervals are too short. ValueError for no stratum, a gap or no questions.
    """
    _refuse_gaps(strata)
    seeds, weight = strata[0].shape[0], 1 / len(strata)
    mean = float(np.mean([one.mean() for one in strata]))
    parts = [weight**2 * _variance(one.mean(axis=0)) / one.shape[1] for one in strata]
    of_questions, of_seeds, shared = sum(parts), 0.0, 0.0
    if seeds > 1:
        of_seeds = _variance(np.mean([one.mean(axis=1) for one in strata], axis=0)) / seeds
        shared = sum(weight**2 * _interaction(one) for one in strata)
    variance = max(of_seeds + of_questions - shared, of_seeds, of_questions)
    sizes = [max(1, one.shape[1] - 1) for one in strata]
    loose = sum(part**2 / size for part, size in zip(parts, sizes, strict=True))
    loose += of_seeds**2 / max(1, seeds - 1)
    found = None
    if variance > 0:
        half = t_quantile((1 + LEVEL) / 2, variance**2 / loose) * variance**0.5
        found = Bounds(mean - half, mean + half)
    error = None if seeds == 1 else of_seeds**0.5
    return CrossedMean(mean, found, seeds, error, of_questions**0.5)


def crossed_resamples(
    strata: Sequence[Floats], resamples: int = RESAMPLES, seed: int = SEED
) -> Floats:
    """Return the mean in each resample of seeds and, within strata, of questions: (resamples,).

    Both are drawn independently: the pigeonhole bootstrap (Owen 2007, Annals of Applied Statistics
    1(2)). Strata of the same sizes see the same draws: two systems may be subtracted or divided.
    """
    _refuse_gaps(strata)
    drawn = resampled_counts(strata[0].shape[0], resamples, seed) / strata[0].shape[0]
    total = np.zeros(resamples)
    for at, one in enumerate(strata):
        questions = resampled_counts(one.shape[1], resamples, seed + 1 + at) / one.shape[1]
        total += ((drawn @ one) * questions).sum(axis=1)
    return total / len(strata)


def percentile(values: Floats) -> Bounds | None:
    """Return the interval that holds the middle of the resamples; None where one is no number."""
    if not values.size or not np.isfinite(values).all():
        return None
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Bounds(float(low), float(high))


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def _interaction(values: Floats) -> float:
    seeds, questions = values.shape
    if questions < 2:
        return 0.0
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float((rest**2).sum()) / ((seeds - 1) * (questions - 1)) / (seeds * questions)


def _refuse_gaps(strata: Sequence[Floats]) -> None:
    if not strata or any(not one.size or np.isnan(one).any() for one in strata):
        raise ValueError("each stratum needs a value of every seed on every question")
