"""The bootstrap over questions, for many systems at once from one matrix of counts.

A resample is how often each question is drawn; a mean of a resample is then a product of two
matrices, and all systems see the same resamples, as paired and joint statements need.
"""

import numpy as np

from reports.stats.arrays import LEVEL, RESAMPLES, SEED, Bounds, Floats
from reports.stats.distributions import normal_quantile, normal_shares

TIE = 1e-12
"""Means that differ by less are equal: they are sums of the same numbers in another order."""
CELLS = 4_000_000
"""Draws made at once: 32 MB."""


def bootstrap_means(values: Floats, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return the means of all columns of `values` (questions, columns): (resamples, columns).

    The counts are made and used some at a time, so that 14,000 questions fit into memory, too.
    """
    rng, questions = np.random.default_rng(seed), values.shape[0]
    step = max(1, CELLS // max(1, questions))
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    return np.concatenate(
        [resampled_means(_counts(rng, size, questions), values) for size in sizes]
    )


def resampled_counts(questions: int, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return how often each question is drawn in each resample: (resamples, questions).

    `bootstrap_means` with the same seed draws the same.
    """
    return _counts(np.random.default_rng(seed), resamples, questions)


def _counts(rng: np.random.Generator, rows: int, questions: int) -> Floats:
    drawn = rng.integers(0, questions, (rows, questions))
    drawn += np.arange(rows)[:, None] * questions
    flat = np.bincount(drawn.ravel(), minlength=rows * questions)
    return flat.reshape(rows, questions).astype(np.float64)


def resampled_means(counts: Floats, values: Floats) -> Floats:
    """Return the mean of each column of `values` (questions, columns) in each resample.

    Not-a-number is a question without a value: a mean is over those that have one, and is
    not-a-number itself in a resample that drew none of them.
    """
    missing = np.isnan(values)
    sums = counts @ np.where(missing, 0.0, values)
    if not missing.any():
        return sums / counts.shape[1]
    drawn = counts @ (~missing).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums / drawn


def bca_interval(values: Floats, resampled: Floats, level: float = LEVEL) -> Bounds | None:
    """Return the bias-corrected and accelerated interval of a mean (Efron 1987).

    `values`: one per question; `resampled`: their means in each resample. None without spread. The
    jackknife of a mean has a closed form: leaving one out moves it by that one's distance.
    """
    there, means = values[~np.isnan(values)], resampled[np.isfinite(resampled)]
    if there.size < 2 or np.ptp(there) < TIE or not means.size:
        return None
    mean = there.mean()
    below = (means < mean - TIE).mean() + (np.abs(means - mean) <= TIE).mean() / 2
    away = there - mean
    acceleration = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    return _corrected(means, float(below), float(acceleration), level)


def bca_ratio(top: Floats, below: Floats, resampled: Floats) -> Bounds | None:
    """Return the interval of mean(top) / mean(below), both (questions,), by BCa.

    `resampled`: the ratio in each resample. None where some resample has no ratio, or no spread.
    """
    if top.size < 2 or not np.isfinite(resampled).all() or np.ptp(resampled) < TIE:
        return None
    ratio = top.sum() / below.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        left = (top.sum() - top) / (below.sum() - below)
    if not np.isfinite(left).all() or np.ptp(left) < TIE:
        return None
    share = (resampled < ratio - TIE).mean() + (np.abs(resampled - ratio) <= TIE).mean() / 2
    away = left.mean() - left
    acceleration = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    return _corrected(resampled, float(share), float(acceleration), LEVEL)


def _corrected(means: Floats, below: float, acceleration: float, level: float) -> Bounds | None:
    bias, tail = normal_quantile(below), normal_quantile((1 - level) / 2)
    z = bias + np.array([tail, -tail])
    at = normal_shares(bias + z / (1 - acceleration * z))
    if not np.isfinite(at).all():
        return None
    low, high = np.quantile(means, at)
    return Bounds(float(low), float(high))
