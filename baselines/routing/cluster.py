"""`router-cluster`: train questions in clusters, and in each cluster a ranking of the workers.

After Avengers-Pro (Zhang et al. 2025, arXiv 2508.12631) and its settings in LLMRouterBench:
k-means on embeddings of length 1, 32 clusters, the nearest cluster only. With more clusters, each
votes with softmax(-beta * distance), a worker of rank r (from 0) getting 1 / (r + 1) of it.
"""

from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from baselines.extras import needed
from baselines.routing.router import Estimates, Examples, Votes
from baselines.routing.threads import one_thread
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats, mean_known

CLUSTERS = 32
BETA = 9.0
STARTS = 10
"""Times that k-means starts anew; the best is kept."""
LEAST = 20
"""Train questions per cluster, on average, at the least: ours, as theirs had hundreds. An accuracy
over 20 has a standard error of 11 points at most."""


@dataclass(frozen=True, slots=True)
class ClusterRouter:
    """Mean score and mean dollars in the nearest clusters, and their votes."""

    clusters: int | None = None
    """None is 32, or a twentieth of the train questions where that is less."""
    top_k: int = 1
    beta: float = BETA
    alpha: float = 1.0
    """Weight of accuracy against cheapness in a cluster's own ranking; 1 looks at accuracy alone.
    A willingness to pay takes its place."""
    name: str = "router-cluster"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return centres, and each cluster's means and ranking."""
        rows = len(examples.embeddings)
        clusters = self.clusters or max(1, min(CLUSTERS, rows // LEAST))
        self._refuse(clusters, rows)
        means: Any = needed("sklearn.cluster", "routers").KMeans(
            n_clusters=clusters, n_init=STARTS, random_state=seed
        )
        with one_thread(), catch_warnings():
            simplefilter("ignore")  # fewer different questions than clusters: some are empty
            labels = means.fit_predict(examples.embeddings)
        score = _by_cluster(examples.scores, labels, clusters)
        usd = _by_cluster(examples.usd, labels, clusters)
        return {
            "centres": np.asarray(means.cluster_centers_, dtype=np.float64),
            "score": score,
            "usd": usd,
            "preference": score if self.alpha == 1 else balance(score, usd, self.alpha),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return the nearest clusters' means, weighted as their votes are."""
        distances = _distances(embeddings, fitted["centres"])
        weights = near_weights(distances, self.top_k, self.beta)
        votes = Votes(weights, fitted["preference"], fitted["score"], fitted["usd"])
        return Estimates(weights @ fitted["score"], weights @ fitted["usd"], votes)

    def _refuse(self, clusters: int, rows: int) -> None:
        if not 1 <= clusters <= rows:
            raise UserError(
                f"{self.name}: 1 to {rows} clusters (the train questions), not {clusters}."
            )
        if not 1 <= self.top_k <= clusters:
            raise UserError(
                f"{self.name}: top_k is 1 to {clusters} (the clusters), not {self.top_k}."
            )
        if not 0 <= self.alpha <= 1:
            raise UserError(f"{self.name}: alpha is 0 to 1, not {self.alpha}.")


def _distances(rows: Floats, centres: Floats) -> Floats:
    """Return (rows, centres): Euclidean distances."""
    squares = (rows**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * rows @ centres.T
    return np.sqrt(np.maximum(squares, 0.0))


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


def _by_cluster(values: Floats, labels: Any, clusters: int) -> Floats:
    """Return (clusters, workers): means over what is known, else over all train questions."""
    overall = mean_known(values)
    rows = [mean_known(values[labels == cluster]) for cluster in range(clusters)]
    return np.array([np.where(np.isnan(row), overall, row) for row in rows])
