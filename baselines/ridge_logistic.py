"""Ridge logistic regression by Newton's method, for the few rows that a train budget buys.

Who uses it: the scorer of `cascade-frugal` and the templates of `template-router`. Not here:
`router-logistic`, which has thousands of embedded features (baselines/routing/logistic.py).
"""

import numpy as np

from baselines.routing.descent import sigmoid
from harness.learning.matrix import Floats

ITERATIONS = 25
"""At the most; a ridge on all weights makes it converge in fewer."""
STILL = 1e-8
"""A largest step below this ends it."""


def fitted(rows: Floats, values: Floats, pull: Floats) -> Floats:
    """Return the weights (features,) for rows (n, features) and values (n,) between 0 and 1.

    `pull` (features,) is the ridge on each weight, above 0, so that equal values cannot make it
    diverge.
    """
    weights = np.zeros(rows.shape[1])
    for _ in range(ITERATIONS):
        chance = sigmoid(rows @ weights)
        slope = rows.T @ (values - chance) - pull * weights
        bend = (rows * (chance * (1.0 - chance))[:, None]).T @ rows + np.diag(pull)
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if float(np.abs(step).max()) < STILL:
            break
    return weights
