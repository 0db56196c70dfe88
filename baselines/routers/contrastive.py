"""`router-contrastive`: questions near the workers that answer them, by contrast (RouterDC).

After Chen et al. 2024 (arXiv 2409.19886) and the released scripts: cosine of the encoded question
with a learned vector per worker, a loss that contrasts the best workers with the worst of a
question, and one that contrasts questions of one cluster with those of others. Their encoder is a
fine-tuned language model; here it is a linear map of frozen embeddings.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.routers import Estimates, Examples, unit_rows
from baselines.routers.optimisers import (
    DescentSchedule,
    Params,
    Rows,
    calibrate,
    descend,
    fit_calibration,
    hold_out,
    k_means,
)
from harness.errors import UserError
from harness.learning import Arrays, Floats, mean_known

RIGHT = 0.5  # a worker with more than this is no counter-example (the released code)


@dataclass(frozen=True, slots=True)
class ContrastiveLosses:
    """What contrasts with what."""

    top_k: int
    last_k: int
    cluster_weight: float
    negatives: int


def cosines(params: Arrays, inputs: Floats) -> Floats:
    """Return (questions, workers): the cosine of each encoded question with each worker."""
    encoded, _ = unit_rows(inputs @ params["encoder"])
    vectors, _ = unit_rows(params["workers"])
    return encoded @ vectors.T


def contrastive_gradient(
    params: Params,
    batch: tuple[Floats, Floats, Rows],
    losses: ContrastiveLosses,
    rng: np.random.Generator,
) -> Params:
    """Return the slope of the sample-worker loss plus the weighted cluster loss.

    A batch is some questions' embeddings, scores with NaN for unknown, and clusters.
    """
    inputs, scores, groups = batch
    encoded, lengths = unit_rows(inputs @ params["encoder"])
    vectors, worker_lengths = unit_rows(params["workers"])
    by_cosine = worker_slope(encoded @ vectors.T, scores, losses, rng)
    by_encoded = by_cosine @ vectors
    if losses.cluster_weight:
        pairs = cluster_slope(encoded @ encoded.T, groups, losses.negatives, rng)
        by_encoded = by_encoded + losses.cluster_weight * (pairs + pairs.T) @ encoded
    return {
        "workers": _through_unit(by_cosine.T @ encoded, vectors, worker_lengths),
        "encoder": inputs.T @ _through_unit(by_encoded, encoded, lengths),
    }


def worker_slope(
    near: Floats, scores: Floats, losses: ContrastiveLosses, rng: np.random.Generator
) -> Floats:
    """Return the slope by `near` of: each of the top k before the last k that are wrong.

    Equal scores are put in a new random order each time; a top worker without points is left out.
    """
    questions, workers = near.shape
    shuffled = rng.random(near.shape)
    best_first = np.lexsort((shuffled, -np.nan_to_num(scores, nan=-1.0)), axis=1)
    worst_first = np.lexsort((shuffled, np.nan_to_num(scores, nan=2.0)), axis=1)
    last = worst_first[:, : min(losses.last_k, workers)]
    rows = np.arange(int(questions))[:, None]
    wrong = np.nan_to_num(scores[rows, last], nan=2.0) <= RIGHT
    slope = np.zeros_like(near)
    for rank in range(min(losses.top_k, workers)):
        top = best_first[:, rank : rank + 1]
        counts = np.nan_to_num(scores[rows, top]) > 0
        logits = np.hstack([near[rows, top], np.where(wrong, near[rows, last], -np.inf)])
        part = (_softmax(logits) - np.eye(logits.shape[1])[0]) * counts / questions
        np.add.at(slope, (rows, np.hstack([top, last])), part)
    return slope


def cluster_slope(near: Floats, groups: Rows, negatives: int, rng: np.random.Generator) -> Floats:
    """Return the slope by `near` (questions, questions) of: one of my cluster before some others.

    A question with fewer than `negatives` questions of other clusters beside it is left out.
    """
    same: NDArray[np.bool_] = np.equal(groups[:, None], groups[None, :])
    rows = np.flatnonzero((~same).sum(axis=1) >= negatives)[:, None]
    slope = np.zeros_like(near)
    if not rows.size:
        return slope
    mine = np.where(same, rng.random(same.shape), 2.0).argsort(axis=1)[:, :1]
    others = np.where(same, 2.0, rng.random(same.shape)).argsort(axis=1)[:, :negatives]
    chosen = np.hstack([mine, others])[rows[:, 0]]
    part = _softmax(near[rows, chosen]) - np.eye(negatives + 1)[0]
    np.add.at(slope, (rows, chosen), part / len(rows))
    return slope


def _softmax(logits: Floats) -> Floats:
    parts = np.exp(logits - logits.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)


def _through_unit(slope: Floats, unit: Floats, lengths: Floats) -> Floats:
    """Return the slope by rows before they were scaled to length 1."""
    along = (slope * unit).sum(axis=1, keepdims=True)
    return (slope - along * unit) / lengths


TOP_K, LAST_K, CLUSTER_WEIGHT, NEGATIVES = 3, 3, 1.0, 3
STEPS, BATCH, LOOK_EVERY = 1000, 16, 50
"""The released script's. Its sample loss has weight 0 there, so that only clusters contrast."""
CLUSTERS = 8  # as in their notebook, which makes the clusters
WORKER_SPREAD = 0.78  # standard deviation of a worker's first vector, theirs
DIMENSIONS, RATE = 64, 0.003  # ours: there is no language model to tune


@dataclass(frozen=True, slots=True)
class ContrastiveRouter:
    """Learned worker vectors and a linear encoder, compared by cosine at temperature 1."""

    top_k: int = TOP_K
    last_k: int = LAST_K
    cluster_weight: float = CLUSTER_WEIGHT
    dimensions: int = DIMENSIONS
    name: str = "router-contrastive"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return vectors and encoder, as they were when they routed held-out questions best."""
        if min(self.top_k, self.last_k, self.dimensions) < 1 or self.cluster_weight < 0:
            raise UserError(f"{self.name}: top_k, last_k and dimensions are at least 1.")
        rng = np.random.default_rng(seed)
        inputs, scores = examples.embeddings, examples.scores
        clusters = max(1, min(CLUSTERS, len(inputs) // CLUSTERS))
        _, groups = k_means(inputs, clusters, 1, seed)
        losses = ContrastiveLosses(self.top_k, self.last_k, self.cluster_weight, NEGATIVES)

        def slope(params: Params, rows: Rows) -> Params:
            batch = (inputs[rows], scores[rows], groups[rows])
            return contrastive_gradient(params, batch, losses, rng)

        def misses(params: Params, rows: Rows) -> float:
            nearest = np.argmax(cosines(params, inputs[rows]), axis=1)
            picked = scores[rows, nearest]
            known = picked[~np.isnan(picked)]
            return -float(known.mean()) if known.size else 0.0

        among = hold_out(len(inputs), rng)
        workers = scores.shape[1]
        start = {
            "workers": rng.normal(0.0, WORKER_SPREAD, (workers, self.dimensions)),
            "encoder": rng.normal(0.0, inputs.shape[1] ** -0.5, (inputs.shape[1], self.dimensions)),
        }
        pace = DescentSchedule(STEPS, BATCH, RATE, every=LOOK_EVERY, patience=STEPS // LOOK_EVERY)
        found = descend(start, (slope, misses), among, (pace, rng))
        return {
            **found,
            "calibration": fit_calibration(cosines(found, inputs), scores),
            "known": np.array(~np.isnan(scores).all(axis=0)),
            "usd": mean_known(examples.usd),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return cosines as chances to be right, in the same order, and mean dollars."""
        near = calibrate(cosines(fitted, embeddings), fitted["calibration"])
        score = np.where(fitted["known"], near, np.nan)
        return Estimates(score, np.broadcast_to(fitted["usd"], score.shape))
