"""Types of this package, and one array made from what a caller has."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Of every interval, two-sided."""
SEED = 20260101
"""Resampling starts from here unless a caller says otherwise: the same logs, the same report."""
RESAMPLES = 10_000


class Bounds(NamedTuple):
    """A two-sided interval."""

    low: float
    high: float


def known(values: Sequence[float] | Floats) -> Floats:
    """Return the values that are numbers, as an array."""
    array = np.asarray(values, dtype=np.float64)
    return array[~np.isnan(array)]
