"""Two systems on the same questions: which test fits, its p-value, and how they go together.

McNemar's exact test is for single binary draws alone. Where cells are averages of several epochs it
would throw away how far they differ, so random sign flips take its place; Student's t stands beside
them as a check (tests/test_stats.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reports.stats.arrays import RESAMPLES, SEED, Floats
from reports.stats.distributions import binomial_share, t_share
from reports.stats.means import standard_error
from reports.stats.resampling import CELLS

Test = Literal["mcnemar", "sign-flip"]
EXACT = 16
"""Up to so many differing questions all sign flips are counted instead of drawn."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """How two systems go together on the questions that both were graded on."""

    b: int
    """Questions on which the first is better."""
    c: int
    """Questions on which the second is better."""
    correlation: float | None
    """Pearson's, of question means; None where one of them has no spread."""


def pairs_of(ours: Floats, theirs: Floats) -> Pairs:
    """Return discordant counts and correlation of two arrays without gaps."""
    flat = min(ours.size, theirs.size) < 2 or np.ptp(ours) == 0 or np.ptp(theirs) == 0
    correlation = None if flat else float(np.corrcoef(ours, theirs)[0, 1])
    return Pairs(int((ours > theirs).sum()), int((ours < theirs).sum()), correlation)


def sign_test(deltas: Sequence[float] | Floats) -> float:
    """Return the two-sided exact p-value of the sign test; equal pairs say nothing.

    >>> sign_test([1, 1, 1, 1, 1, 0])
    0.0625
    """
    array = np.asarray(deltas)
    return mcnemar(int((array > 0).sum()), int((array < 0).sum()))


def mcnemar(b: int, c: int) -> float:
    """Return the exact two-sided p-value of McNemar's test from its two discordant counts."""
    if not b + c:
        return 1.0
    return min(1.0, 2 * binomial_share(min(b, c), b + c))


def t_test(deltas: Sequence[float] | Floats) -> float | None:
    """Return the two-sided p-value of Student's paired test; None without spread."""
    array, error = np.asarray(deltas, dtype=np.float64), standard_error(deltas)
    if not error:
        return None
    return 2 * t_share(-abs(float(array.mean())) / error, array.size - 1)


def sign_flips(deltas: Sequence[float] | Floats, draws: int = RESAMPLES, seed: int = SEED) -> float:
    """Return the two-sided p-value of the paired permutation test on the mean difference.

    Under the null each question's difference is as likely with the other sign. All flips are
    counted for up to `EXACT` differing questions; else `draws` are drawn and the observed one
    counts as one more (Phipson and Smyth 2010), so that p is never 0.
    """
    array = np.asarray(deltas, dtype=np.float64)
    moved = array[array != 0]
    if not moved.size:
        return 1.0
    observed, slack = abs(moved.sum()), 1e-9
    if moved.size <= EXACT:
        sums = np.zeros(1)
        for one in moved:
            sums = np.concatenate((sums + one, sums - one))
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


def paired_test(deltas: Floats, *, single: bool) -> tuple[float, Test]:
    """Return the p-value of the test that fits; `single`: each cell is one binary draw."""
    return (sign_test(deltas), "mcnemar") if single else (sign_flips(deltas), "sign-flip")
