"""Standard errors and Student intervals of a mean over questions, plain and clustered."""

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from reports.stats.arrays import LEVEL, Bounds, Floats, known
from reports.stats.distributions import t_quantile

Correction = Literal["CR0", "CR1"]
"""`CR0`: none (Miller 2024, equation 4). `CR1`: times G / (G - 1) clusters, as Inspect does."""


def standard_error(values: Sequence[float] | Floats) -> float | None:
    """Return sd / sqrt(n) of the question means; None for fewer than two."""
    array = known(values)
    return float(array.std(ddof=1) / np.sqrt(array.size)) if array.size > 1 else None


def clustered_error(
    values: Sequence[float] | Floats,
    clusters: Sequence[Hashable],
    correction: Correction = "CR1",
) -> float | None:
    """Return the standard error of the mean when questions of one cluster go together.

    Clusters are e.g. contests or subjects, one name for each value. None for fewer than two of
    them. CR1 is too small with few clusters (below about 20): read it as a sensitivity check.
    """
    array = np.asarray(values, dtype=np.float64)
    there = ~np.isnan(array)
    names: dict[Hashable, int] = {}
    codes = np.array([names.setdefault(name, len(names)) for name in clusters])[there]
    groups = np.unique(codes).size
    if groups < 2:
        return None
    sums = np.bincount(codes, weights=array[there] - array[there].mean())
    factor = groups / (groups - 1) if correction == "CR1" else 1.0
    return float(np.sqrt(factor * (sums**2).sum()) / there.sum())


def t_interval(values: Sequence[float] | Floats, level: float = LEVEL) -> Bounds | None:
    """Return Student's interval of the mean with n - 1 degrees of freedom; None without spread."""
    array, error = known(values), standard_error(values)
    if not error:
        return None
    half = t_quantile((1 + level) / 2, array.size - 1) * error
    return Bounds(float(array.mean()) - half, float(array.mean()) + half)
