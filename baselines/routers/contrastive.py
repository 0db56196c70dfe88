"""`router-contrastive`: questions near workers that answer them (RouterDC, arXiv 2409.19886)."""

from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from baselines.common import import_extra, one_thread
from baselines.routers.optimisers import (
    DescentSchedule,
    Params,
    Rows,
    cross_entropy,
    descend,
    hold_out,
    minimise,
    sigmoid,
)
from baselines.routers.router import Estimates, Examples, for_every_question
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats, mean_known

# § From a similarity to a chance to be right: two numbers, learnt on train rows (Platt 1999).
# §
# § The slope is positive, so that the order stays: only a trade against dollars needs the
# § chance.


PENALTY = 1e-3
"""Keeps the slope finite where similarity tells all, or nothing."""


def fit_calibration(near: Floats, scores: Floats) -> Floats:
    """Return (intercept, log of the slope) that fit known scores best, by cross-entropy."""
    known = (~np.isnan(scores)).astype(np.float64)
    targets = np.where(known > 0, scores, 0.0)
    count = max(float(known.sum()), 1.0)

    def slope(point: Floats) -> tuple[float, Floats]:
        steep = np.exp(point[1])
        logits = point[0] + steep * near
        gaps = (sigmoid(logits) - targets) * known / count
        by_point = np.array([gaps.sum(), (gaps * near).sum() * steep])
        loss = cross_entropy(logits, targets, known) + 0.5 * PENALTY * float(point @ point)
        return loss, by_point + PENALTY * point

    return minimise(slope, np.zeros(2))


def calibrate(near: Floats, point: Floats) -> Floats:
    """Return chances to be right, in the order of the similarities."""
    return sigmoid(point[0] + np.exp(point[1]) * near)


# § The two contrastive losses of RouterDC (arXiv 2409.19886) and their slopes, on plain
# § arrays.


RIGHT = 0.5
"""A worker with more than this is no counter-example (the released code)."""


@dataclass(frozen=True, slots=True)
class ContrastiveLosses:
    """What contrasts with what."""

    top_k: int
    last_k: int
    cluster_weight: float
    negatives: int


@dataclass(frozen=True, slots=True)
class ContrastiveBatch:
    """Some train questions: embeddings, scores with NaN for unknown, clusters."""

    inputs: Floats
    scores: Floats
    groups: NDArray[np.intp]


def cosines(params: Arrays, inputs: Floats) -> Floats:
    """Return (questions, workers): the cosine of each encoded question with each worker."""
    encoded, _ = _unit(inputs @ params["encoder"])
    vectors, _ = _unit(params["workers"])
    return encoded @ vectors.T


def contrastive_gradient(
    params: Params, batch: ContrastiveBatch, losses: ContrastiveLosses, rng: np.random.Generator
) -> Params:
    """Return the slope of the sample-worker loss plus the weighted cluster loss."""
    encoded, lengths = _unit(batch.inputs @ params["encoder"])
    vectors, worker_lengths = _unit(params["workers"])
    by_cosine = worker_slope(encoded @ vectors.T, batch.scores, losses, rng)
    by_encoded = by_cosine @ vectors
    if losses.cluster_weight:
        pairs = cluster_slope(encoded @ encoded.T, batch.groups, losses.negatives, rng)
        by_encoded = by_encoded + losses.cluster_weight * (pairs + pairs.T) @ encoded
    return {
        "workers": _through_unit(by_cosine.T @ encoded, vectors, worker_lengths),
        "encoder": batch.inputs.T @ _through_unit(by_encoded, encoded, lengths),
    }


def worker_slope(
    near: Floats, scores: Floats, losses: ContrastiveLosses, rng: np.random.Generator
) -> Floats:
    """Return the slope by `near` of: each of the top k before the last k that are wrong.

    Equal scores are put in a new random order each time. A top worker without points is left out,
    and so is an unknown score on either side.
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


def cluster_slope(
    near: Floats, groups: NDArray[np.intp], negatives: int, rng: np.random.Generator
) -> Floats:
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


def _unit(rows: Floats) -> tuple[Floats, Floats]:
    """Return rows of length 1, and the lengths they had (1 for a row of zeros)."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    safe = np.where(lengths > 0, lengths, 1.0)
    return rows / safe, safe


def _through_unit(slope: Floats, unit: Floats, lengths: Floats) -> Floats:
    """Return the slope by rows before they were scaled to length 1."""
    along = (slope * unit).sum(axis=1, keepdims=True)
    return (slope - along * unit) / lengths


# § `router-contrastive`: questions near the workers that answer them, by contrast (RouterDC).
# §
# § After Chen et al. 2024 (arXiv 2409.19886) and the released scripts: cosine of the encoded
# § question
# § with a learned vector per worker, a loss that contrasts the best workers with the worst of
# § a
# § question, and one that contrasts questions of one cluster with those of others. Their
# § encoder is a
# § fine-tuned language model; here it is a linear map of frozen embeddings.


TOP_K, LAST_K, CLUSTER_WEIGHT, NEGATIVES = 3, 3, 1.0, 3
STEPS, BATCH, LOOK_EVERY = 1000, 16, 50
"""The released script's. Its sample loss has weight 0 there, so that only clusters contrast."""
CLUSTERS = 8
"""As in their notebook, which makes the clusters."""
WORKER_SPREAD = 0.78
"""Standard deviation of a worker's first vector, theirs."""
DIMENSIONS, RATE = 64, 0.003
"""Ours: there is no language model to tune."""


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
        groups = _clusters(inputs, seed)
        losses = ContrastiveLosses(self.top_k, self.last_k, self.cluster_weight, NEGATIVES)

        def slope(params: Params, rows: Rows) -> Params:
            return contrastive_gradient(
                params, ContrastiveBatch(inputs[rows], scores[rows], groups[rows]), losses, rng
            )

        def misses(params: Params, rows: Rows) -> float:
            return -_routed(cosines(params, inputs[rows]), scores[rows])

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
        return Estimates(score, for_every_question(fitted["usd"], score))


def _routed(near: Floats, scores: Floats) -> float:
    """Return the mean score of the nearest worker, where it is known; 0 where it never is."""
    picked = scores[np.arange(len(near)), np.argmax(near, axis=1)]
    known = picked[~np.isnan(picked)]
    return float(known.mean()) if known.size else 0.0


def _clusters(inputs: Floats, seed: int) -> Rows:
    """Return the cluster of each question."""
    clusters = max(1, min(CLUSTERS, len(inputs) // CLUSTERS))
    means: Any = import_extra("sklearn.cluster", "routers").KMeans(
        n_clusters=clusters, n_init=1, random_state=seed
    )
    with one_thread(), catch_warnings():
        simplefilter("ignore")  # fewer different questions than clusters
        return np.asarray(means.fit_predict(inputs), dtype=np.intp)
