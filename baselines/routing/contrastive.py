"""`router-contrastive`: questions near the workers that answer them, by contrast (RouterDC).

After Chen et al. 2024 (arXiv 2409.19886) and the released scripts: cosine of the encoded question
with a learned vector per worker, a loss that contrasts the best workers with the worst of a
question, and one that contrasts questions of one cluster with those of others. Their encoder is a
fine-tuned language model; here it is a linear map of frozen embeddings.
"""

from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from baselines.extras import needed
from baselines.routing.calibration import calibrated, calibration
from baselines.routing.contrast import Batch, Losses, cosines, gradient
from baselines.routing.descent import Pace, Params, Rows, descend, parts
from baselines.routing.router import Estimates, Examples, everywhere
from baselines.routing.threads import one_thread
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats, mean_known

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
        losses = Losses(self.top_k, self.last_k, self.cluster_weight, NEGATIVES)

        def slope(params: Params, rows: Rows) -> Params:
            return gradient(params, Batch(inputs[rows], scores[rows], groups[rows]), losses, rng)

        def misses(params: Params, rows: Rows) -> float:
            return -_routed(cosines(params, inputs[rows]), scores[rows])

        among = parts(len(inputs), rng)
        workers = scores.shape[1]
        start = {
            "workers": rng.normal(0.0, WORKER_SPREAD, (workers, self.dimensions)),
            "encoder": rng.normal(0.0, inputs.shape[1] ** -0.5, (inputs.shape[1], self.dimensions)),
        }
        pace = Pace(STEPS, BATCH, RATE, every=LOOK_EVERY, patience=STEPS // LOOK_EVERY)
        found = descend(start, (slope, misses), among, (pace, rng))
        return {
            **found,
            "calibration": calibration(cosines(found, inputs), scores),
            "known": np.array(~np.isnan(scores).all(axis=0)),
            "usd": mean_known(examples.usd),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return cosines as chances to be right, in the same order, and mean dollars."""
        near = calibrated(cosines(fitted, embeddings), fitted["calibration"])
        score = np.where(fitted["known"], near, np.nan)
        return Estimates(score, everywhere(fitted["usd"], score))


def _routed(near: Floats, scores: Floats) -> float:
    """Return the mean score of the nearest worker, where it is known; 0 where it never is."""
    picked = scores[np.arange(len(near)), np.argmax(near, axis=1)]
    known = picked[~np.isnan(picked)]
    return float(known.mean()) if known.size else 0.0


def _clusters(inputs: Floats, seed: int) -> Rows:
    """Return the cluster of each question."""
    clusters = max(1, min(CLUSTERS, len(inputs) // CLUSTERS))
    means: Any = needed("sklearn.cluster", "routers").KMeans(
        n_clusters=clusters, n_init=1, random_state=seed
    )
    with one_thread(), catch_warnings():
        simplefilter("ignore")  # fewer different questions than clusters
        return np.asarray(means.fit_predict(inputs), dtype=np.intp)
