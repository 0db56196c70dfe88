"""`router-knn`: a question goes to whoever did best on the train questions nearest to it.

After RouterBench (Hu et al. 2024, arXiv 2403.12031), whose kNN router averages each model's score
over the nearest training prompts by cosine distance.
"""

from dataclasses import dataclass

import numpy as np

from baselines.routing.router import Estimates, Examples
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats, mean_known

NEIGHBOURS = 40
"""The largest of the numbers of neighbours in RouterBench's configuration (5, 10, 40)."""


@dataclass(frozen=True, slots=True)
class KnnRouter:
    """Mean score and mean dollars of the `k` nearest train questions, by cosine."""

    k: int | None = None
    """None is 40, or a fifth of the train questions where that is less."""
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
        return Estimates(
            score=_means(fitted["scores"], nearest), usd=_means(fitted["usd"], nearest)
        )


def _means(values: Floats, nearest: np.ndarray[tuple[int, int], np.dtype[np.intp]]) -> Floats:
    """Return (questions, workers): means over (questions, k) rows of `values`."""
    near = values[nearest]
    known = ~np.isnan(near)
    counts = known.sum(axis=1)
    sums = np.where(known, near, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), mean_known(values))
