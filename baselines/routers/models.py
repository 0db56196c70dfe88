"""What routers learn: neighbours, clusters, logistic regression, a network, matrix factors."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from baselines.routers import Estimates, Examples, Votes
from baselines.routers.optimisers import (
    DescentSchedule,
    Params,
    Rows,
    cross_entropy,
    descend,
    fit_logistic,
    hold_out,
    k_means,
    known_scores,
    sigmoid,
)
from harness.errors import UserError
from harness.learning import Arrays, Floats, mean_known

NEIGHBOURS = 40  # the largest of RouterBench's numbers of neighbours (5, 10, 40)


@dataclass(frozen=True, slots=True)
class KnnRouter:
    """Mean score and mean dollars of the `k` nearest train questions, by cosine.

    After RouterBench (Hu et al. 2024, arXiv 2403.12031).
    """

    k: int | None = None  # None is 40, or a fifth of the train questions where that is less
    name: str = "router-knn"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return the examples themselves; UserError when k is more than there are."""
        rows = len(examples.embeddings)
        if self.k is not None and not 1 <= self.k <= rows:
            raise UserError(f"{self.name}: k is 1 to {rows} (the train questions), not {self.k}.")
        return {
            "k": np.array(self.k or max(1, min(NEIGHBOURS, rows // 5))),
            "embeddings": examples.embeddings,
            "scores": examples.scores,
            "usd": examples.usd,
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return the means over the neighbours; over all train questions where none is known."""
        alike = np.round(embeddings @ fitted["embeddings"].T, 9)  # equals stay equal
        order = np.argsort(-alike, axis=1, kind="stable")
        nearest = order[:, : int(fitted["k"])]
        return Estimates(_means(fitted["scores"], nearest), _means(fitted["usd"], nearest))


def _means(values: Floats, nearest: np.ndarray[tuple[int, int], np.dtype[np.intp]]) -> Floats:
    """Return (questions, workers): means over (questions, k) rows of `values`."""
    near = values[nearest]
    known = ~np.isnan(near)
    counts = known.sum(axis=1)
    sums = np.where(known, near, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), mean_known(values))


CLUSTERS = 32
STARTS = 10  # times that k-means starts anew; the best is kept
LEAST = 20
"""Train questions per cluster, on average, at the least: ours, as theirs had hundreds. An accuracy
over 20 has a standard error of 11 points at most."""


@dataclass(frozen=True, slots=True)
class ClusterRouter:
    """Mean score and mean dollars in the nearest clusters, and their votes.

    After Avengers-Pro (Zhang et al. 2025, arXiv 2508.12631) and its settings in LLMRouterBench:
    k-means on embeddings of length 1, the nearest cluster only. With more, each votes with
    softmax(-beta * distance), a worker of rank r (from 0) getting 1 / (r + 1) of it.
    """

    clusters: int | None = None
    """None is 32, or a twentieth of the train questions where that is less."""
    top_k: int = 1
    beta: float = 9.0
    alpha: float = 1.0
    """Weight of accuracy against cheapness in a cluster's own ranking; 1 looks at accuracy alone.
    A willingness to pay takes its place."""
    name: str = "router-cluster"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return centres, and each cluster's means and ranking."""
        rows = len(examples.embeddings)
        clusters = self.clusters or max(1, min(CLUSTERS, rows // LEAST))
        wrong = ""
        if not 1 <= clusters <= rows:
            wrong = f"1 to {rows} clusters (the train questions), not {clusters}"
        elif not 1 <= self.top_k <= clusters:
            wrong = f"top_k is 1 to {clusters} (the clusters), not {self.top_k}"
        elif not 0 <= self.alpha <= 1:
            wrong = f"alpha is 0 to 1, not {self.alpha}"
        if wrong:
            raise UserError(f"{self.name}: {wrong}.")
        centres, labels = k_means(examples.embeddings, clusters, STARTS, seed)
        score = _by_cluster(examples.scores, labels, clusters)
        usd = _by_cluster(examples.usd, labels, clusters)
        return {
            "centres": centres,
            "score": score,
            "usd": usd,
            "preference": score if self.alpha == 1 else balance(score, usd, self.alpha),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return the nearest clusters' means, weighted as their votes are."""
        centres = fitted["centres"]
        near = (embeddings**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)
        distances = np.sqrt(np.maximum(near - 2 * embeddings @ centres.T, 0.0))
        weights = near_weights(distances, self.top_k, self.beta)
        votes = Votes(weights, fitted["preference"], fitted["score"], fitted["usd"])
        return Estimates(weights @ fitted["score"], weights @ fitted["usd"], votes)


def near_weights(distances: Floats, top_k: int, beta: float) -> Floats:
    """Return (questions, clusters): softmax(-beta * distance) of the nearest, 0 of the others."""
    order = np.argsort(np.round(distances, 9), axis=1, kind="stable")[:, :top_k]
    near = np.take_along_axis(distances, order, axis=1)
    parts = np.exp(-beta * (near - near.min(axis=1, keepdims=True)))
    weights = np.zeros_like(distances)
    np.put_along_axis(weights, order, parts / parts.sum(axis=1, keepdims=True), axis=1)
    return weights


def balance(score: Floats, usd: Floats, alpha: float) -> Floats:
    """Return alpha * accuracy + (1 - alpha) * cheapness, each scaled within its cluster.

    Both are (clusters, workers). Accuracy is (a - least) / (most - least), 1 where all are equal;
    cheapness is 1 - usd / most. UserError when a price is unknown.
    """
    if np.isnan(usd).any():
        raise UserError("router-cluster: alpha below 1 needs every worker's price.")
    least = np.nanmin(score, axis=1, keepdims=True)
    spread = np.nanmax(score, axis=1, keepdims=True) - least
    accuracy = np.where(spread > 0, (score - least) / np.where(spread > 0, spread, 1.0), 1.0)
    dearest = usd.max(axis=1, keepdims=True)
    cheapness = 1.0 - usd / np.where(dearest > 0, dearest, 1.0)
    return np.where(np.isnan(score), np.nan, alpha * accuracy + (1 - alpha) * cheapness)


def _by_cluster(values: Floats, labels: Rows, clusters: int) -> Floats:
    """Return (clusters, workers): means over what is known, else over all train questions."""
    overall = mean_known(values)
    rows = [mean_known(values[labels == cluster]) for cluster in range(clusters)]
    return np.array([np.where(np.isnan(row), overall, row) for row in rows])


@dataclass(frozen=True, slots=True)
class LogisticRouter:
    """One linear head per worker, on scores as soft labels; dollars are the worker's train mean.

    As RouteLLM (Ong et al. 2024, arXiv 2406.18665) puts a head on BERT, for any number of workers.
    """

    c: float = 1.0
    """Weight of the data against the penalty, as scikit-learn's `C`, with its default."""
    name: str = "router-logistic"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return weights and biases; the solution is unique, so that the seed does not matter."""
        if not self.c > 0:
            raise UserError(f"{self.name}: c is more than 0, not {self.c}.")
        inputs, scores = examples.embeddings, examples.scores
        weights, bias = (
            np.zeros((inputs.shape[1], scores.shape[1])),
            np.full(scores.shape[1], np.nan),
        )
        known = ~np.isnan(scores)
        for worker in np.flatnonzero(known.any(axis=0)):
            rows = known[:, worker]
            head = fit_logistic(inputs[rows], scores[rows, worker], C=self.c, tol=1e-8)
            weights[:, worker], bias[worker] = head.coef_[0], head.intercept_[0]
        return {"weights": weights, "bias": bias, "usd": mean_known(examples.usd)}

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return each worker's chance to be right, and its mean dollars."""
        score = sigmoid(embeddings @ fitted["weights"] + fitted["bias"])
        return Estimates(score, np.broadcast_to(fitted["usd"], score.shape))


MLP_BATCH, EPOCHS, MLP_RATE, PENALTY = 200, 200, 0.001, 0.0001
"""Those of scikit-learn's `MLPRegressor`, whose defaults RouterBench keeps."""


@dataclass(frozen=True, slots=True)
class MlpRouter:
    """One network with an output per worker; dollars are the worker's train mean."""

    units: int = 100  # the smallest of RouterBench's networks: one hidden layer
    name: str = "router-mlp"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return the two layers, as they were when they did best on held-out train questions."""
        if self.units < 1:
            raise UserError(f"{self.name}: units is at least 1, not {self.units}.")
        rng = np.random.default_rng(seed)
        scores, known = known_scores(examples)
        inputs = examples.embeddings

        def gradient(params: Params, rows: Rows) -> Params:
            return _network_gradient(params, inputs[rows], scores[rows], known[rows])

        def loss(params: Params, rows: Rows) -> float:
            gaps = (_outputs(params, inputs[rows]) - scores[rows]) * known[rows]
            return float((gaps**2).sum())

        learn, held_out = hold_out(len(inputs), rng)
        means, width = mean_known(examples.scores), inputs.shape[1]
        first, second = np.sqrt(6 / (width + self.units)), np.sqrt(6 / (self.units + len(means)))
        start = {  # Glorot's bounds, and each worker's mean as its first output
            "weights1": rng.uniform(-first, first, (width, self.units)),
            "bias1": np.zeros(self.units),
            "weights2": rng.uniform(-second, second, (self.units, len(means))),
            "bias2": np.nan_to_num(means),
        }
        epoch = -(-len(learn) // MLP_BATCH)
        pace = DescentSchedule(EPOCHS * epoch, MLP_BATCH, MLP_RATE, every=epoch, patience=10)
        found = descend(start, (gradient, loss), (learn, held_out), (pace, rng))
        return {
            **found,
            "bias2": np.where(known.any(axis=0), found["bias2"], np.nan),
            "usd": mean_known(examples.usd),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return the network's outputs, which may leave 0 to 1, and mean dollars."""
        score = _outputs(fitted, embeddings)
        return Estimates(score, np.broadcast_to(fitted["usd"], score.shape))


def _outputs(params: Arrays, inputs: Floats) -> Floats:
    hidden = np.maximum(inputs @ params["weights1"] + params["bias1"], 0.0)
    return cast(Floats, hidden @ params["weights2"] + params["bias2"])


def _network_gradient(params: Params, inputs: Floats, scores: Floats, known: Floats) -> Params:
    """Return the slope of half the mean squared error of a question, and of the penalty."""
    before = inputs @ params["weights1"] + params["bias1"]
    hidden = np.maximum(before, 0.0)
    gaps = (hidden @ params["weights2"] + params["bias2"] - scores) * known / len(inputs)
    back = (gaps @ params["weights2"].T) * (before > 0)
    shrink = PENALTY / len(inputs)
    return {
        "weights1": inputs.T @ back + shrink * params["weights1"],
        "bias1": back.sum(axis=0),
        "weights2": hidden.T @ gaps + shrink * params["weights2"],
        "bias2": gaps.sum(axis=0),
    }


DIMENSIONS, MF_BATCH, DECAY, NOISE = 128, 64, 1e-5, 0.1
"""RouteLLM's, as its training script has them."""
MF_RATE, STEPS = 3e-3, 1500  # ours: theirs (0.0003, 100 epochs) are for tens of thousands of labels


@dataclass(frozen=True, slots=True)
class FactorsRouter:
    """Chance to be right = sigmoid(bias + worker vector . projected question).

    The form is RouteLLM's, with noise on embeddings while learning. The loss is EmbedLLM's (Zhuang
    et al. 2024, arXiv 2410.02223): whether each worker is right, not which of two is better.
    """

    dimensions: int = DIMENSIONS
    noise: float = NOISE
    """Standard deviation of what is added to each number of an embedding while learning."""
    name: str = "router-mf"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return worker vectors, biases and the projection, best on held-out train questions."""
        if self.dimensions < 1 or self.noise < 0:
            raise UserError(f"{self.name}: dimensions is at least 1, noise at least 0.")
        rng = np.random.default_rng(seed)
        scores, known = known_scores(examples)
        inputs = examples.embeddings

        def gradient(params: Params, rows: Rows) -> Params:
            noisy = inputs[rows] + self.noise * rng.standard_normal(inputs[rows].shape)
            return _factors_gradient(params, noisy, scores[rows], known[rows])

        def loss(params: Params, rows: Rows) -> float:
            return cross_entropy(_logits(params, inputs[rows]), scores[rows], known[rows])

        among = hold_out(len(inputs), rng)
        width, size = inputs.shape[1], self.dimensions
        sure = np.clip(np.nan_to_num(mean_known(examples.scores), nan=0.5), 0.01, 0.99)
        start = {  # each worker's mean is its first chance to be right
            "workers": rng.normal(0.0, size**-0.5, (len(sure), size)),
            "projection": rng.normal(0.0, width**-0.5, (width, size)),
            "bias": np.log(sure / (1 - sure)),
        }
        pace = DescentSchedule(STEPS, MF_BATCH, MF_RATE, DECAY)
        found = descend(start, (gradient, loss), among, (pace, rng))
        return {
            **found,
            "bias": np.where(known.any(axis=0), found["bias"], np.nan),
            "usd": mean_known(examples.usd),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return each worker's chance to be right, and its mean dollars."""
        score = sigmoid(_logits(fitted, embeddings))
        return Estimates(score, np.broadcast_to(fitted["usd"], score.shape))


def _logits(params: Arrays, inputs: Floats) -> Floats:
    return inputs @ params["projection"] @ params["workers"].T + params["bias"]


def _factors_gradient(params: Params, inputs: Floats, scores: Floats, known: Floats) -> Params:
    projected = inputs @ params["projection"]
    logits = projected @ params["workers"].T + params["bias"]
    gaps = (sigmoid(logits) - scores) * known / max(known.sum(), 1.0)
    return {
        "workers": gaps.T @ projected,
        "projection": inputs.T @ (gaps @ params["workers"]),
        "bias": gaps.sum(axis=0),
    }
