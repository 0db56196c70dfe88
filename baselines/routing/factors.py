"""`router-mf`: matrix factorisation of who is right on what, with embedded questions as one side.

The form is RouteLLM's (Ong et al. 2024, arXiv 2406.18665): a vector per worker times a projection
of the question's embedding, with noise on embeddings while learning. The loss is EmbedLLM's
(Zhuang et al. 2024, arXiv 2410.02223): whether each worker is right, not which of two is better.
"""

from dataclasses import dataclass

import numpy as np

from baselines.routing.descent import (
    Pace,
    Params,
    Rows,
    cross_entropy,
    descend,
    known_scores,
    parts,
    sigmoid,
)
from baselines.routing.router import Estimates, Examples, everywhere
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats, mean_known

DIMENSIONS, BATCH, DECAY, NOISE = 128, 64, 1e-5, 0.1
"""RouteLLM's, as its training script has them."""
RATE, STEPS = 3e-3, 1500
"""Ours: theirs (0.0003, 100 epochs) are for tens of thousands of labels."""


@dataclass(frozen=True, slots=True)
class FactorsRouter:
    """Chance to be right = sigmoid(bias + worker vector . projected question)."""

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
            return _gradient(params, noisy, scores[rows], known[rows])

        def loss(params: Params, rows: Rows) -> float:
            return cross_entropy(_logits(params, inputs[rows]), scores[rows], known[rows])

        among = parts(len(inputs), rng)
        start = _start(inputs.shape[1], self.dimensions, mean_known(examples.scores), rng)
        pace = Pace(STEPS, BATCH, RATE, DECAY)
        found = descend(start, (gradient, loss), among, (pace, rng))
        return {
            **found,
            "bias": np.where(known.any(axis=0), found["bias"], np.nan),
            "usd": mean_known(examples.usd),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return each worker's chance to be right, and its mean dollars."""
        score = sigmoid(_logits(fitted, embeddings))
        return Estimates(score, everywhere(fitted["usd"], score))


def _start(inputs: int, dimensions: int, means: Floats, rng: np.random.Generator) -> Params:
    """Return small random factors, and each worker's mean as its first chance to be right."""
    sure = np.clip(np.nan_to_num(means, nan=0.5), 0.01, 0.99)
    return {
        "workers": rng.normal(0.0, dimensions**-0.5, (len(means), dimensions)),
        "projection": rng.normal(0.0, inputs**-0.5, (inputs, dimensions)),
        "bias": np.log(sure / (1 - sure)),
    }


def _logits(params: Arrays, inputs: Floats) -> Floats:
    return inputs @ params["projection"] @ params["workers"].T + params["bias"]


def _gradient(params: Params, inputs: Floats, scores: Floats, known: Floats) -> Params:
    """Return the slope of the mean cross-entropy."""
    projected = inputs @ params["projection"]
    logits = projected @ params["workers"].T + params["bias"]
    gaps = (sigmoid(logits) - scores) * known / max(known.sum(), 1.0)
    return {
        "workers": gaps.T @ projected,
        "projection": inputs.T @ (gaps @ params["workers"]),
        "bias": gaps.sum(axis=0),
    }
