"""Intervals of a share: Wilson's, also on an effective sample size, and Clopper and Pearson's.

The usual interval (mean and 1.96 standard errors) is wrong near 0 and 1, e.g. at 29 of 30.
"""

from math import sqrt

from reports.stats.arrays import LEVEL, Bounds
from reports.stats.distributions import beta_quantile, normal_quantile, t_quantile


def wilson(share: float, n: float, critical: float | None = None) -> Bounds:
    """Return Wilson's score interval of a share of n; `critical` is a normal quantile if not given.

    Shares of questions answered in part are allowed: the interval is then too wide, never too
    narrow, because no value within [0, 1] varies more than right and wrong do.
    """
    z = normal_quantile((1 + LEVEL) / 2) if critical is None else critical
    below = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / below
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / below
    return Bounds(max(middle - half, 0.0), min(middle + half, 1.0))


def effective_wilson(share: float, n: int, error: float, clusters: int) -> Bounds:
    """Return Wilson's interval on the sample size that a clustered standard error amounts to.

    Korn and Graubard's size p(1 - p) / error**2, at most n, with Student's quantile of clusters - 1
    degrees of freedom (Franco et al. 2019, PMC6690503).
    """
    variance = share * (1 - share)
    size = min(variance / error**2, n) if variance and error else float(n)
    return wilson(share, size, t_quantile((1 + LEVEL) / 2, clusters - 1))


def clopper_pearson(right: int, n: int, level: float = LEVEL) -> Bounds:
    """Return the exact interval of `right` of n; it covers at least as often as it says."""
    tail = (1 - level) / 2
    low = beta_quantile(tail, right, n - right + 1) if right else 0.0
    high = beta_quantile(1 - tail, right + 1, n - right) if right < n else 1.0
    return Bounds(low, high)
