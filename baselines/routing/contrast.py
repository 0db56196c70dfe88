"""The two contrastive losses of RouterDC (arXiv 2409.19886) and their slopes, on plain arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.routing.descent import Params
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats

RIGHT = 0.5
"""A worker with more than this is no counter-example (the released code)."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What contrasts with what."""

    top_k: int
    last_k: int
    cluster_weight: float
    negatives: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Some train questions: embeddings, scores with NaN for unknown, clusters."""

    inputs: Floats
    scores: Floats
    groups: NDArray[np.intp]


def cosines(params: Arrays, inputs: Floats) -> Floats:
    """Return (questions, workers): the cosine of each encoded question with each worker."""
    encoded, _ = _unit(inputs @ params["encoder"])
    vectors, _ = _unit(params["workers"])
    return encoded @ vectors.T


def gradient(params: Params, batch: Batch, losses: Losses, rng: np.random.Generator) -> Params:
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


def worker_slope(near: Floats, scores: Floats, losses: Losses, rng: np.random.Generator) -> Floats:
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
