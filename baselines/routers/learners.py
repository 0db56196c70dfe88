"""Trained routers: k-NN, clusters, logistic regression, MLP, matrix factors, contrastive loss."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from podium.baselines.routers import Estimates, Examples, unit_rows
from podium.baselines.routers.optimisers import (
    Batch,
    DescentSchedule,
    Params,
    Rows,
    cross_entropy,
    descend,
    fit_calibration,
    fit_logistic,
    k_means,
    known_scores,
    sigmoid,
)
from podium.harness.errors import UserError
from podium.harness.learning import Arrays, Floats, mean_known

NEIGHBOURS = 40  # the largest of RouterBench's numbers of neighbours (5, 10, 40)


@dataclass(frozen=True, slots=True)
class KnnRouter:
    """Predicts mean score and mean dollars of the `k` nearest train questions, by cosine.

    After RouterBench (Hu et al. 2024, arXiv 2403.12031).
    """

    k: int | None = None  # None: 40, or a fifth of the train questions if that is less
    name: str = "router-knn"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return the training data itself; UserError if `k` exceeds the number of questions."""
        rows = len(examples.embeddings)
        if self.k is not None and not 1 <= self.k <= rows:
            raise UserError(f"{self.name}: k must be 1 to {rows} (train questions), not {self.k}.")
        return {
            "k": np.array(self.k or max(1, min(NEIGHBOURS, rows // 5))),
            "embeddings": examples.embeddings,
            "scores": examples.scores,
            "usd": examples.usd,
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return mean scores and dollars of nearest train questions; of all if these have none."""
        alike = np.round(embeddings @ fitted["embeddings"].T, 9)  # rounded, so that ties stay ties
        order = np.argsort(-alike, axis=1, kind="stable")
        nearest = order[:, : int(fitted["k"])]
        return Estimates(_means(fitted["scores"], nearest), _means(fitted["usd"], nearest))


def _means(values: Floats, nearest: np.ndarray[tuple[int, int], np.dtype[np.intp]]) -> Floats:
    """Return means (questions, workers) of the known values in rows `nearest` (questions, k)."""
    near = values[nearest]
    valid = ~np.isnan(near)
    counts = valid.sum(axis=1)
    sums = np.where(valid, near, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), mean_known(values))


CLUSTERS = 32
STARTS = 10  # random restarts of k-means; the best is kept
LEAST = 20
"""Minimum train questions per cluster, on average: our choice (the paper's clusters had hundreds).
An accuracy over 20 questions has a standard error of at most 11 points."""


@dataclass(frozen=True, slots=True)
class ClusterRouter:
    """Predicts mean score and mean dollars in the nearest cluster of train questions.

    After Avengers-Pro (Zhang et al. 2025, arXiv 2508.12631) and its settings in LLMRouterBench:
    k-means on embeddings of length 1, the nearest cluster only.
    """

    clusters: int | None = None
    """Number of clusters; None: 32, or a twentieth of the train questions if that is less."""
    name: str = "router-cluster"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return cluster centres, and each worker's mean score and dollars per cluster."""
        rows = len(examples.embeddings)
        clusters = self.clusters or max(1, min(CLUSTERS, rows // LEAST))
        if not 1 <= clusters <= rows:
            raise UserError(
                f"{self.name}: clusters must be 1 to {rows} (train questions), not {clusters}."
            )
        centres, labels = k_means(examples.embeddings, clusters, STARTS, seed)
        score = _by_cluster(examples.scores, labels, clusters)
        usd = _by_cluster(examples.usd, labels, clusters)
        return {"centres": centres, "score": score, "usd": usd}

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return each worker's mean score and dollars in the cluster nearest to a question."""
        centres = fitted["centres"]
        near = (embeddings**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)
        distances: Floats = np.sqrt(np.maximum(near - 2 * embeddings @ centres.T, 0.0))
        nearest = np.argmin(np.round(distances, 9), axis=1)  # rounded: ties stay ties
        return Estimates(fitted["score"][nearest], fitted["usd"][nearest])


def _by_cluster(values: Floats, labels: Rows, clusters: int) -> Floats:
    """Return means (clusters, workers) of known values; the overall mean if a cluster has none."""
    overall = mean_known(values)
    rows = [mean_known(values[labels == cluster]) for cluster in range(clusters)]
    return np.array([np.where(np.isnan(row), overall, row) for row in rows])


class MeanDollars(ABC):
    """A router that predicts each worker's mean train dollars, the same for every question."""

    __slots__ = ()

    @abstractmethod
    def expect(self, params: Arrays, inputs: Floats) -> Floats:
        """Return the expected scores, an array (questions, workers)."""

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return each worker's expected score, and its mean dollars on the train split."""
        score = self.expect(fitted, embeddings)
        return Estimates(score, np.broadcast_to(fitted["usd"], score.shape))


def _kept(params: Params, bias: str, examples: Examples) -> Arrays:
    """Return the arrays to store; a worker without grades gets bias NaN, so is never chosen."""
    graded = ~np.isnan(examples.scores).all(axis=0)
    usd = mean_known(examples.usd)
    return {**params, bias: np.where(graded, params[bias], np.nan), "usd": usd}


@dataclass(frozen=True, slots=True)
class LogisticRouter(MeanDollars):
    """Predicts P(right) by a logistic regression per worker, fitted to scores as soft labels.

    After RouteLLM's head on BERT (Ong et al. 2024, arXiv 2406.18665), for any number of workers.
    """

    c: float = 1.0
    """Inverse of the regularisation strength: scikit-learn's `C` and its default."""
    name: str = "router-logistic"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return weights and biases; the solution is unique, so the seed does not matter."""
        if not self.c > 0:
            raise UserError(f"{self.name}: c must be above 0, not {self.c}.")
        inputs, scores = examples.embeddings, examples.scores
        weights, bias = np.zeros((inputs.shape[1], scores.shape[1])), np.zeros(scores.shape[1])
        graded = ~np.isnan(scores)
        for worker in np.flatnonzero(graded.any(axis=0)):
            rows = graded[:, worker]
            head = fit_logistic(inputs[rows], scores[rows, worker], C=self.c, tol=1e-8)
            weights[:, worker], bias[worker] = head.coef_[0], head.intercept_[0]
        return _kept({"weights": weights, "bias": bias}, "bias", examples)

    def expect(self, params: Arrays, inputs: Floats) -> Floats:
        """Return each worker's probability to be right, as an array (questions, workers)."""
        return sigmoid(inputs @ params["weights"] + params["bias"])


MLP_SCHEDULE = DescentSchedule(batch=200, rate=0.001, looks=200, every=None, patience=10)
PENALTY = 0.0001
"""Schedule and L2 penalty: defaults of scikit-learn's `MLPRegressor`, as in RouterBench."""


@dataclass(frozen=True, slots=True)
class MlpRouter(MeanDollars):
    """Predicts scores by a neural network with an output per worker."""

    units: int = 100  # the smallest of RouterBench's networks: one hidden layer
    name: str = "router-mlp"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return both layers' weights at the step with the least loss on held-out questions."""
        if self.units < 1:
            raise UserError(f"{self.name}: units must be at least 1, not {self.units}.")
        means, width = mean_known(examples.scores), examples.embeddings.shape[1]
        bound1, bound2 = np.sqrt(6 / (width + self.units)), np.sqrt(6 / (self.units + len(means)))

        def start(rng: np.random.Generator) -> Params:
            return {  # Glorot initialisation; the last bias is each worker's mean score
                "weights1": rng.uniform(-bound1, bound1, (width, self.units)),
                "bias1": np.zeros(self.units),
                "weights2": rng.uniform(-bound2, bound2, (self.units, len(means))),
                "bias2": np.nan_to_num(means),
            }

        batch = (examples.embeddings, *known_scores(examples.scores))
        params = descend(batch, start, (self.gradient, self.loss), MLP_SCHEDULE, seed)
        return _kept(params, "bias2", examples)

    def expect(self, params: Arrays, inputs: Floats) -> Floats:
        """Return the network's expected scores, which may be below 0 or above 1."""
        hidden = np.maximum(inputs @ params["weights1"] + params["bias1"], 0.0)
        return cast(Floats, hidden @ params["weights2"] + params["bias2"])

    def loss(self, params: Params, batch: Batch) -> float:
        """Return the sum of squared errors over known scores."""
        inputs, scores, mask = batch
        return float((((self.expect(params, inputs) - scores) * mask) ** 2).sum())

    def gradient(self, params: Params, batch: Batch, _rng: np.random.Generator) -> Params:
        """Return the gradient of half the squared error per question, plus the L2 penalty."""
        inputs, scores, mask = batch
        raw = inputs @ params["weights1"] + params["bias1"]
        hidden = np.maximum(raw, 0.0)
        gaps = (hidden @ params["weights2"] + params["bias2"] - scores) * mask / len(inputs)
        back = (gaps @ params["weights2"].T) * (raw > 0)
        shrink = PENALTY / len(inputs)
        return {
            "weights1": inputs.T @ back + shrink * params["weights1"],
            "bias1": back.sum(axis=0),
            "weights2": hidden.T @ gaps + shrink * params["weights2"],
            "bias2": gaps.sum(axis=0),
        }


MF_DIMENSIONS, NOISE = 128, 0.1
MF_SCHEDULE = DescentSchedule(batch=64, rate=3e-3, looks=30, decay=1e-5)
"""As in RouteLLM's training script, except rate and steps (here 0.003 and at most 1500): RouteLLM's
rate of 0.0003 for 100 epochs suits tens of thousands of labels."""


@dataclass(frozen=True, slots=True)
class FactorsRouter(MeanDollars):
    """Predicts P(right) = sigmoid(bias + worker vector . projected question).

    The model is RouteLLM's, with noise on embeddings in training. The loss is EmbedLLM's (Zhuang
    et al. 2024, arXiv 2410.02223): whether each worker is right, not which of two is better.
    """

    dimensions: int = MF_DIMENSIONS
    noise: float = NOISE
    """Standard deviation of the noise added to each embedding dimension in training."""
    name: str = "router-mf"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return worker vectors, biases and projection at the step of least held-out loss."""
        if self.dimensions < 1 or self.noise < 0:
            raise UserError(f"{self.name}: dimensions must be at least 1, noise at least 0.")
        width, size = examples.embeddings.shape[1], self.dimensions
        sure = np.clip(np.nan_to_num(mean_known(examples.scores), nan=0.5), 0.01, 0.99)

        def start(rng: np.random.Generator) -> Params:
            return {  # the initial bias is the log odds of each worker's mean score
                "workers": rng.normal(0.0, size**-0.5, (len(sure), size)),
                "projection": rng.normal(0.0, width**-0.5, (width, size)),
                "bias": np.log(sure / (1 - sure)),
            }

        batch = (examples.embeddings, *known_scores(examples.scores))
        params = descend(batch, start, (self.gradient, self.loss), MF_SCHEDULE, seed)
        return _kept(params, "bias", examples)

    def expect(self, params: Arrays, inputs: Floats) -> Floats:
        """Return each worker's probability to be right, as an array (questions, workers)."""
        return sigmoid(self.logits(params, inputs))

    def logits(self, params: Arrays, inputs: Floats) -> Floats:
        """Return the log odds that each worker is right, as an array (questions, workers)."""
        return inputs @ params["projection"] @ params["workers"].T + params["bias"]

    def loss(self, params: Params, batch: Batch) -> float:
        """Return the cross-entropy of scores as soft labels."""
        return cross_entropy(self.logits(params, batch[0]), *batch[1:])

    def gradient(self, params: Params, batch: Batch, rng: np.random.Generator) -> Params:
        """Return the gradient of the cross-entropy, with random noise added to the embeddings."""
        noisy = batch[0] + self.noise * rng.standard_normal(batch[0].shape)
        projected = noisy @ params["projection"]
        logits = projected @ params["workers"].T + params["bias"]
        gaps = (sigmoid(logits) - batch[1]) * batch[2] / max(batch[2].sum(), 1.0)
        return {
            "workers": gaps.T @ projected,
            "projection": noisy.T @ (gaps @ params["workers"]),
            "bias": gaps.sum(axis=0),
        }


RIGHT = 0.5  # a worker whose score is higher is no negative example (as in RouterDC's code)
TOP_K, LAST_K, CLUSTER_WEIGHT, NEGATIVES = 3, 3, 1.0, 3
DIMENSIONS = 64
CONTRASTIVE_SCHEDULE = DescentSchedule(batch=16, rate=0.003, looks=20, patience=20)
"""As in RouterDC's released script, except rate and dimensions, as we tune no language model. The
script gives its third loss, between samples, weight 0, so that loss is left out."""
GROUPS = 8  # number of clusters, as in RouterDC's notebook
WORKER_SPREAD = 0.78  # standard deviation of initial worker vectors, RouterDC's


@dataclass(frozen=True, slots=True)
class ContrastiveRouter(MeanDollars):
    """Ranks workers by the cosine of the encoded question with a learned vector per worker.

    After RouterDC (Chen et al. 2024, arXiv 2409.19886) and its released scripts. One loss contrasts
    a question's best workers with its worst, another contrasts questions of the same cluster with
    others. RouterDC's encoder is a fine-tuned language model, ours a linear map of embeddings.
    """

    top_k: int = TOP_K
    last_k: int = LAST_K
    cluster_weight: float = CLUSTER_WEIGHT
    dimensions: int = DIMENSIONS
    name: str = "router-contrastive"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return worker vectors and encoder at the step of least held-out loss."""
        if min(self.top_k, self.last_k, self.dimensions) < 1 or self.cluster_weight < 0:
            raise UserError(
                f"{self.name}: top_k, last_k and dimensions must be at least 1, cluster_weight at "
                "least 0."
            )
        inputs, scores = examples.embeddings, examples.scores
        _, groups = k_means(inputs, max(1, min(GROUPS, len(inputs) // GROUPS)), 1, seed)
        width, size = inputs.shape[1], self.dimensions

        def start(rng: np.random.Generator) -> Params:
            return {
                "workers": rng.normal(0.0, WORKER_SPREAD, (scores.shape[1], size)),
                "encoder": rng.normal(0.0, width**-0.5, (width, size)),
            }

        slopes = (self.gradient, self.loss)
        params = descend((inputs, scores, groups), start, slopes, CONTRASTIVE_SCHEDULE, seed)
        return {
            **params,
            "calibration": fit_calibration(cosines(params, inputs), scores),
            "known": np.array(~np.isnan(scores).all(axis=0)),
            "usd": mean_known(examples.usd),
        }

    def expect(self, params: Arrays, inputs: Floats) -> Floats:
        """Return each worker's probability to be right, from cosines: (questions, workers)."""
        start, slope = params["calibration"]
        chance = sigmoid(start + np.exp(slope) * cosines(params, inputs))
        return np.where(params["known"], chance, np.nan)

    def loss(self, params: Params, batch: Batch) -> float:
        """Return minus the mean known score of the worker nearest to each question."""
        nearest = np.argmax(cosines(params, batch[0]), axis=1)
        picked = batch[1][np.arange(len(nearest)), nearest]
        graded = picked[~np.isnan(picked)]
        return -float(graded.mean()) if graded.size else 0.0

    def gradient(self, params: Params, batch: Batch, rng: np.random.Generator) -> Params:
        """Return the gradient of the question-worker loss plus the weighted cluster loss."""
        inputs, scores, groups = batch
        encoded, lengths = unit_rows(inputs @ params["encoder"])
        vectors, worker_lengths = unit_rows(params["workers"])
        by_cosine = worker_slope(encoded @ vectors.T, scores, (self.top_k, self.last_k), rng)
        by_encoded = by_cosine @ vectors
        if self.cluster_weight:
            pairs = cluster_slope(encoded @ encoded.T, groups, NEGATIVES, rng)
            by_encoded = by_encoded + self.cluster_weight * (pairs + pairs.T) @ encoded
        return {
            "workers": _through_unit(by_cosine.T @ encoded, vectors, worker_lengths),
            "encoder": inputs.T @ _through_unit(by_encoded, encoded, lengths),
        }


def cosines(params: Arrays, inputs: Floats) -> Floats:
    """Return (questions, workers): cosine of each encoded question with each worker's vector."""
    return unit_rows(inputs @ params["encoder"])[0] @ unit_rows(params["workers"])[0].T


def worker_slope(
    near: Floats, scores: Floats, contrasted: tuple[int, int], rng: np.random.Generator
) -> Floats:
    """Return d loss / d cosines, of a loss that ranks top-k workers above wrong last-k workers."""
    questions, workers = near.shape
    top_k, last_k = contrasted
    shuffled = rng.random(near.shape)
    best_first = np.lexsort((shuffled, -np.nan_to_num(scores, nan=-1.0)), axis=1)
    worst_first = np.lexsort((shuffled, np.nan_to_num(scores, nan=2.0)), axis=1)
    worst = worst_first[:, : min(last_k, workers)]
    rows = np.arange(int(questions))[:, None]
    wrong = np.nan_to_num(scores[rows, worst], nan=2.0) <= RIGHT
    slope = np.zeros_like(near)
    for rank in range(min(top_k, workers)):
        top = best_first[:, rank : rank + 1]
        counts = np.nan_to_num(scores[rows, top]) > 0
        logits = np.hstack([near[rows, top], np.where(wrong, near[rows, worst], -np.inf)])
        step = (_softmax(logits) - np.eye(logits.shape[1])[0]) * counts / questions
        np.add.at(slope, (rows, np.hstack([top, worst])), step)
    return slope


def cluster_slope(near: Floats, groups: Rows, negatives: int, rng: np.random.Generator) -> Floats:
    """Return d loss / d cosines, of a loss that ranks questions of one cluster above others."""
    same: NDArray[np.bool_] = np.equal(groups[:, None], groups[None, :])
    rows = np.flatnonzero((~same).sum(axis=1) >= negatives)[:, None]
    slope = np.zeros_like(near)
    if not rows.size:
        return slope
    mine = np.where(same, rng.random(same.shape), 2.0).argsort(axis=1)[:, :1]
    rivals = np.where(same, 2.0, rng.random(same.shape)).argsort(axis=1)[:, :negatives]
    chosen = np.hstack([mine, rivals])[rows[:, 0]]
    step = _softmax(near[rows, chosen]) - np.eye(negatives + 1)[0]
    np.add.at(slope, (rows, chosen), step / len(rows))
    return slope


def _softmax(logits: Floats) -> Floats:
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1, keepdims=True)


def _through_unit(slope: Floats, unit: Floats, lengths: Floats) -> Floats:
    """Return d loss / d rows before scaling; `slope` is d loss / d rows of norm 1 (`unit`)."""
    return (slope - (slope * unit).sum(axis=1, keepdims=True) * unit) / lengths
