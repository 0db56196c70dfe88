"""Fitting: Adam on minibatches, scipy's L-BFGS-B, ridge logistic regression by Newton."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.common import one_thread
from baselines.routers.router import Examples
from harness.learning.matrix import Floats

# § Learning by small steps: Adam on minibatches, and the state that does best on held-out
# § rows.
# §
# § The held-out rows are part of the train split; an exam's questions are never looked at.
# § Not here:
# § what is learnt (mlp.py, factors.py, contrastive.py).


Params = Mapping[str, Floats]
Rows = NDArray[np.intp]
Gradient = Callable[[Params, Rows], Params]
"""(parameters, rows of a minibatch) -> gradient of the mean loss."""
Loss = Callable[[Params, Rows], float]
"""(parameters, held-out rows) -> what is to be small."""

HELD_OUT = 5
"""One train question in so many is held out to choose the state."""
FEW = 10
"""With fewer train questions none is held out: the state is chosen on all of them."""
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Adam's own (arXiv 1412.6980)


@dataclass(frozen=True, slots=True)
class DescentSchedule:
    """How long and how fast to learn."""

    steps: int
    batch: int
    rate: float
    decay: float = 0.0
    """Weight decay, apart from the gradient (AdamW)."""
    every: int = 50
    """Steps between two looks at the held-out rows."""
    patience: int = 4
    """Looks without a better state after which learning stops."""


@dataclass(frozen=True, slots=True)
class HeldOutSplit:
    """Rows to learn from, and rows to choose by."""

    learn: Rows
    held_out: Rows


def hold_out(rows: int, rng: np.random.Generator) -> HeldOutSplit:
    """Return a random division of so many train questions."""
    order = rng.permutation(rows)
    if rows < FEW:
        return HeldOutSplit(order, order)
    return HeldOutSplit(order[rows // HELD_OUT :], order[: rows // HELD_OUT])


@dataclass(slots=True)
class _Adam:
    """Moments of the gradient."""

    pace: DescentSchedule
    first: dict[str, Floats]
    second: dict[str, Floats]
    step: int = 0

    def moved(self, params: Params, gradient: Params) -> dict[str, Floats]:
        """Return the parameters one step on."""
        self.step += 1
        found: dict[str, Floats] = {}
        for name, value in params.items():
            slope = gradient[name]
            self.first[name] = _BETA1 * self.first[name] + (1 - _BETA1) * slope
            self.second[name] = _BETA2 * self.second[name] + (1 - _BETA2) * slope**2
            mean = self.first[name] / (1 - _BETA1**self.step)
            spread = np.sqrt(self.second[name] / (1 - _BETA2**self.step)) + _EPSILON
            found[name] = value - self.pace.rate * (mean / spread + self.pace.decay * value)
        return found


def descend(
    start: Params,
    slopes: tuple[Gradient, Loss],
    among: HeldOutSplit,
    how: tuple[DescentSchedule, np.random.Generator],
) -> Params:
    """Return the state with the least loss on the held-out rows, the earliest if several."""
    gradient, loss = slopes
    pace, rng = how
    params = dict(start)
    zeros = {name: np.zeros_like(value) for name, value in params.items()}
    adam = _Adam(pace, zeros, dict(zeros))
    chosen, least, waited = dict(params), np.inf, 0
    with one_thread():
        for step, rows in enumerate(_batches(among.learn, pace, rng), start=1):
            params = adam.moved(params, gradient(params, rows))
            if step % pace.every:
                continue
            now = loss(params, among.held_out)
            if now < least:
                chosen, least, waited = params, now, 0
            else:
                waited += 1
            if waited >= pace.patience:
                break
    return chosen


def _batches(rows: Rows, pace: DescentSchedule, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield minibatches, in a new random order every time all rows have been seen."""
    done = 0
    while done < pace.steps:
        order = rng.permutation(rows)
        for at in range(0, len(order), pace.batch):
            if done == pace.steps:
                return
            done += 1
            yield order[at : at + pace.batch]


def known_scores(examples: Examples) -> tuple[Floats, Floats]:
    """Return scores with 0 for what is unknown, and 1 for known and 0 for unknown entries.

    The second multiplies every loss and gradient, so that the 0 teaches nothing.
    """
    known = ~np.isnan(examples.scores)
    return np.where(known, examples.scores, 0.0), known.astype(np.float64)


def sigmoid(values: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * values))


def cross_entropy(logits: Floats, scores: Floats, known: Floats) -> float:
    """Return the mean cross-entropy of soft labels over what is known."""
    losses = np.logaddexp(0.0, logits) - scores * logits
    return float((losses * known).sum() / max(known.sum(), 1.0))


# § Minimising a smooth function of a few numbers, by scipy's L-BFGS-B, with types.


# scipy ships no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false


LBFGS_STEPS = 200
"""At the most."""


def minimise(slope: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    """Return where a function is lowest; `slope` returns its value and its gradient there."""
    from scipy.optimize import minimize  # takes a quarter of a second, which few commands need

    with one_thread():
        found = minimize(
            slope, start, jac=True, method="L-BFGS-B", options={"maxiter": LBFGS_STEPS}
        )
    return np.asarray(found.x, dtype=np.float64)


# § Ridge logistic regression by Newton's method, for the few rows that a train budget buys.
# §
# § Who uses it: the scorer of `cascade-frugal` and the templates of `template-router`. Not
# § here:
# § `router-logistic`, which has thousands of embedded features (baselines/routers/models.py).


NEWTON_STEPS = 25
"""At the most; a ridge on all weights makes it converge in fewer."""
STILL = 1e-8
"""A largest step below this ends it."""


def ridge_logistic(rows: Floats, values: Floats, pull: Floats) -> Floats:
    """Return the weights (features,) for rows (n, features) and values (n,) between 0 and 1.

    `pull` (features,) is the ridge on each weight, above 0, so that equal values cannot make it
    diverge.
    """
    weights = np.zeros(rows.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = sigmoid(rows @ weights)
        slope = rows.T @ (values - chance) - pull * weights
        bend = (rows * (chance * (1.0 - chance))[:, None]).T @ rows + np.diag(pull)
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if float(np.abs(step).max()) < STILL:
            break
    return weights
