"""The few distribution functions that statistics here need, from scipy, with types."""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# scipy ships no types.

import numpy as np
from scipy import special

from reports.stats.arrays import Floats


def normal_quantile(share: float) -> float:
    """Return the standard normal's quantile; an infinity at 0 and 1."""
    return float(special.ndtri(share))


def normal_shares(quantiles: Floats) -> Floats:
    """Return the share of the standard normal below each quantile."""
    return np.asarray(special.ndtr(quantiles), dtype=np.float64)


def t_quantile(share: float, df: float) -> float:
    """Return the quantile of Student's t."""
    return float(special.stdtrit(df, share))


def t_share(quantile: float, df: int) -> float:
    """Return the share of Student's t below a quantile."""
    return float(special.stdtr(df, quantile))


def binomial_share(most: int, n: int) -> float:
    """Return the chance of at most so many heads in n throws of a fair coin."""
    return float(special.bdtr(most, n, 0.5))


def chi_squared_above(value: float, df: int) -> float:
    """Return the chance of more than `value`."""
    return float(special.chdtrc(df, value))


def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution."""
    return float(special.betaincinv(a, b, share))
