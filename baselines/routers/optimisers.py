"""Fits: Adam on minibatches, Platt scaling, scikit-learn's logistic regression and k-means."""

# scipy and scikit-learn ship no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from podium.harness.learning import Floats, one_thread

Params = Mapping[str, Floats]
Rows = NDArray[np.intp]
Batch = tuple[Floats, Floats, NDArray[Any]]
"""Embeddings, scores, another input of the loss (mask or cluster labels); a row per question."""
Gradient = Callable[[Params, Batch, np.random.Generator], Params]
"""(parameters, minibatch, random numbers) -> gradient of the mean loss."""
Loss = Callable[[Params, Batch], float]  # (parameters, held-out rows) -> value to minimise

HELD_OUT = 5  # one train question in this many is held out for early stopping
FEW = 10  # with fewer train questions, parameters are chosen on all of them
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Adam's defaults (arXiv 1412.6980)


@dataclass(frozen=True, slots=True)
class DescentSchedule:
    """Settings of a gradient descent: minibatch size, learning rate, early stopping."""

    batch: int
    rate: float
    looks: int  # maximum evaluations on held-out rows
    every: int | None = 50  # steps between two evaluations; None: one epoch
    patience: int = 4  # evaluations without improvement after which training stops
    decay: float = 0.0  # weight decay, apart from the gradient (AdamW)


def hold_out(rows: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Split `rows` train questions at random: indices to train on, and indices held out."""
    order = rng.permutation(rows)
    if rows < FEW:
        return order, order
    return order[rows // HELD_OUT :], order[: rows // HELD_OUT]


def descend(
    data: Batch,
    start: Callable[[np.random.Generator], Params],
    slopes: tuple[Gradient, Loss],
    schedule: DescentSchedule,
    seed: int,
) -> Params:
    """Run Adam from `start`; return the first parameters with the least loss on held-out rows."""
    (gradient, loss), rng = slopes, np.random.default_rng(seed)
    learn, held_out = hold_out(len(data[0]), rng)
    chosen = params = dict(start(rng))
    moment1 = {name: np.zeros_like(value) for name, value in params.items()}
    moment2 = dict(moment1)
    every = schedule.every or -(-len(learn) // schedule.batch)
    least, waited, judged = np.inf, 0, _rows(data, held_out)
    steps = islice(_minibatches(learn, schedule.batch, rng), schedule.looks * every)
    with one_thread():
        for step, rows in enumerate(steps, start=1):
            slope_of, params = gradient(params, _rows(data, rows), rng), dict(params)
            for name, slope in slope_of.items():  # Adam's step
                moment1[name] = _BETA1 * moment1[name] + (1 - _BETA1) * slope
                moment2[name] = _BETA2 * moment2[name] + (1 - _BETA2) * slope**2
                mean = moment1[name] / (1 - _BETA1**step)
                spread = np.sqrt(moment2[name] / (1 - _BETA2**step)) + _EPSILON
                moved = mean / spread + schedule.decay * params[name]
                params[name] = params[name] - schedule.rate * moved
            if step % every:
                continue
            waited, now = waited + 1, loss(params, judged)
            if now < least:
                chosen, least, waited = params, now, 0
            elif waited >= schedule.patience:
                break
    return chosen


def _rows(data: Batch, rows: Rows) -> Batch:
    return data[0][rows], data[1][rows], data[2][rows]


def _minibatches(rows: Rows, size: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield minibatches forever; each epoch has a new random order."""
    while True:
        order = rng.permutation(rows)
        yield from (order[start : start + size] for start in range(0, len(order), size))


def known_scores(scores: Floats) -> tuple[Floats, Floats]:
    """Return scores with 0 for unknown entries, and a mask: 1 for known, 0 for unknown entries."""
    mask = ~np.isnan(scores)
    return np.where(mask, scores, 0.0), mask.astype(np.float64)


def sigmoid(values: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * values))


def cross_entropy(logits: Floats, scores: Floats, mask: Floats) -> float:
    """Return the mean cross-entropy of known scores as soft labels; `mask` is 1 if known."""
    losses = np.logaddexp(0.0, logits) - scores * logits
    return float((losses * mask).sum() / max(mask.sum(), 1.0))


def fit_calibration(near: Floats, scores: Floats) -> Floats:
    """Fit log odds of being right, linear in `near` (Platt 1999); return (intercept, log slope)."""
    from scipy.optimize import minimize  # not at the top: the import takes 0.25 s

    penalty = 1e-3  # keeps the slope finite if similarity explains all, or nothing
    targets, mask = known_scores(scores)
    count = max(float(mask.sum()), 1.0)

    def slope(point: Floats) -> tuple[float, Floats]:
        steep = np.exp(point[1])
        logits = point[0] + steep * near
        gaps = (sigmoid(logits) - targets) * mask / count
        by_point = np.array([gaps.sum(), (gaps * near).sum() * steep])
        loss = cross_entropy(logits, targets, mask) + 0.5 * penalty * float(point @ point)
        return loss, by_point + penalty * point

    with one_thread():
        result = minimize(slope, np.zeros(2), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(result.x, dtype=np.float64)


def k_means(rows: Floats, clusters: int, starts: int, seed: int) -> tuple[Floats, Rows]:
    """Cluster rows by k-means; return centres (clusters, features) and each row's cluster."""
    from sklearn.cluster import KMeans  # not at the top: the import takes most of a second

    means = KMeans(n_clusters=clusters, n_init=cast(Any, starts), random_state=seed)
    with one_thread(), catch_warnings():
        simplefilter("ignore")  # KMeans warns if there are fewer different rows than clusters
        labels = means.fit_predict(rows)
    return np.asarray(means.cluster_centers_, dtype=np.float64), np.asarray(labels, dtype=np.intp)


def fit_logistic(rows: Floats, values: Floats, **settings: Any) -> Any:
    """Fit scikit-learn's logistic regression to soft labels `values`, from 0 to 1."""
    from sklearn.linear_model import LogisticRegression

    labels, shares = np.repeat([1, 0], len(rows)), np.concatenate([values, 1 - values])
    with one_thread():
        model = LogisticRegression(max_iter=1000, **settings)
        return model.fit(np.vstack([rows, rows]), labels, sample_weight=shares)


def ridge_logistic(rows: Floats, values: Floats, pull: Floats) -> Floats:
    """Fit logistic weights (features,) to rows (n, features) and soft labels (n,) from 0 to 1.

    `pull` (features,) is the ridge penalty of each weight; above 0, so that the fit converges even
    on few rows or equal labels.
    """
    if not len(rows):
        return np.zeros(rows.shape[1])
    scale = np.sqrt(pull)
    args = {"fit_intercept": False, "solver": "newton-cholesky", "tol": 1e-10}
    return np.asarray(fit_logistic(rows / scale, values, **args).coef_[0] / scale, dtype=np.float64)
