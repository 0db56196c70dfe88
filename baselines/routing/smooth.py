"""Minimising a smooth function of a few numbers, by scipy's L-BFGS-B, with types."""

# scipy ships no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from collections.abc import Callable

import numpy as np

from baselines.routing.threads import one_thread
from harness.learning.matrix import Floats

STEPS = 200
"""At the most."""


def lowest(slope: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    """Return where a function is lowest; `slope` returns its value and its gradient there."""
    from scipy.optimize import minimize  # takes a quarter of a second, which few commands need

    with one_thread():
        found = minimize(slope, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x, dtype=np.float64)
