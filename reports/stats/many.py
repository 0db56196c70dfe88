"""Many systems on the same questions: is there any difference, and how many looks were taken."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.stats.arrays import Floats
from reports.stats.distributions import chi_squared_above


@dataclass(frozen=True, slots=True)
class Cochran:
    """Cochran's Q: do k systems have one accuracy? Chi-squared with k - 1 degrees of freedom."""

    q: float
    df: int
    p_value: float
    differing: int
    """Questions on which not all agree; the others say nothing."""


def cochran_q(values: Floats) -> Cochran | None:
    """Return Cochran's Q of single binary draws, (questions, systems); None where it has no say.

    It has none for fewer than two systems, for values besides 0 and 1, for gaps, and where all
    systems agree on every question. Cochran 1950; McNemar's test without correction for two.
    """
    if values.ndim != 2 or values.shape[1] < 2 or not np.isin(values, (0.0, 1.0)).all():
        return None
    columns, rows, k = values.sum(axis=0), values.sum(axis=1), values.shape[1]
    below = float((rows * (k - rows)).sum())
    if not below:
        return None
    q = k * (k - 1) * float(((columns - columns.mean()) ** 2).sum()) / below
    differing = int(((rows > 0) & (rows < k)).sum())
    return Cochran(q, k - 1, chi_squared_above(q, k - 1), differing)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values, in the order given (Holm 1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, floor = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = floor
    return adjusted
