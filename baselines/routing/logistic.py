"""`router-logistic`: for each worker, the chance that it is right, by logistic regression.

The plainest learned router: a linear head per worker on frozen embeddings, as RouteLLM (Ong et al.
2024, arXiv 2406.18665) puts a head on BERT, for any number of workers.
"""

from dataclasses import dataclass

import numpy as np

from baselines.routing.descent import cross_entropy, known_scores, sigmoid
from baselines.routing.router import Estimates, Examples, everywhere
from baselines.routing.smooth import lowest
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats, mean_known


@dataclass(frozen=True, slots=True)
class LogisticRouter:
    """One head per worker, on scores as soft labels; dollars are the worker's train mean."""

    c: float = 1.0
    """Weight of the data against the penalty, as scikit-learn's `C`, with its default."""
    name: str = "router-logistic"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return weights and biases; the solution is unique, so that the seed does not matter."""
        if not self.c > 0:
            raise UserError(f"{self.name}: c is more than 0, not {self.c}.")
        scores, known = known_scores(examples)
        inputs = np.hstack([examples.embeddings, np.ones((len(scores), 1))])
        penalty = np.ones((inputs.shape[1], 1))
        penalty[-1] = 0.0  # the bias is free

        def slope(flat: Floats) -> tuple[float, Floats]:
            weights = flat.reshape(inputs.shape[1], -1)
            logits = inputs @ weights
            data = cross_entropy(logits, scores, known) * known.sum()
            gradient = inputs.T @ ((sigmoid(logits) - scores) * known)
            loss = self.c * data + 0.5 * (penalty * weights**2).sum()
            return float(loss), (self.c * gradient + penalty * weights).ravel()

        start = np.zeros(inputs.shape[1] * scores.shape[1])
        weights = lowest(slope, start).reshape(inputs.shape[1], -1)
        return {
            "weights": weights[:-1],
            "bias": np.where(known.any(axis=0), weights[-1], np.nan),
            "usd": mean_known(examples.usd),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return each worker's chance to be right, and its mean dollars."""
        score = sigmoid(embeddings @ fitted["weights"] + fitted["bias"])
        return Estimates(score, everywhere(fitted["usd"], score))
