"""`router-mlp`: each worker's score by a small neural network.

After RouterBench (Hu et al. 2024, arXiv 2403.12031): rectified layers on frozen embeddings, squared
error, Adam at 0.001, minibatches of 200, at most 200 epochs, penalty 0.0001 (scikit-learn's
`MLPRegressor`, whose defaults they keep).
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from baselines.routing.descent import Pace, Params, Rows, descend, known_scores, parts
from baselines.routing.router import Estimates, Examples, everywhere
from harness.errors import UserError
from harness.learning.fit import Arrays
from harness.learning.matrix import Floats, mean_known

UNITS = 100
"""The smallest of RouterBench's networks: one hidden layer of 100."""
BATCH, EPOCHS, RATE, PENALTY = 200, 200, 0.001, 0.0001


@dataclass(frozen=True, slots=True)
class MlpRouter:
    """One network with an output per worker; dollars are the worker's train mean."""

    units: int = UNITS
    name: str = "router-mlp"

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return the two layers, as they were when they did best on held-out train questions."""
        if self.units < 1:
            raise UserError(f"{self.name}: units is at least 1, not {self.units}.")
        rng = np.random.default_rng(seed)
        scores, known = known_scores(examples)
        inputs = examples.embeddings

        def gradient(params: Params, rows: Rows) -> Params:
            return _gradient(params, inputs[rows], scores[rows], known[rows])

        def loss(params: Params, rows: Rows) -> float:
            gaps = (_outputs(params, inputs[rows]) - scores[rows]) * known[rows]
            return float((gaps**2).sum())

        among = parts(len(inputs), rng)
        start = _start(inputs.shape[1], self.units, mean_known(examples.scores), rng)
        epoch = -(-len(among.learn) // BATCH)
        pace = Pace(EPOCHS * epoch, BATCH, RATE, every=epoch, patience=10)
        found = descend(start, (gradient, loss), among, (pace, rng))
        return {
            **found,
            "bias2": np.where(known.any(axis=0), found["bias2"], np.nan),
            "usd": mean_known(examples.usd),
        }

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return the network's outputs, which may leave 0 to 1, and mean dollars."""
        score = _outputs(fitted, embeddings)
        return Estimates(score, everywhere(fitted["usd"], score))


def _start(inputs: int, units: int, means: Floats, rng: np.random.Generator) -> Params:
    """Return random layers (Glorot's bounds), and each worker's mean as its first output."""
    first, second = np.sqrt(6 / (inputs + units)), np.sqrt(6 / (units + len(means)))
    return {
        "weights1": rng.uniform(-first, first, (inputs, units)),
        "bias1": np.zeros(units),
        "weights2": rng.uniform(-second, second, (units, len(means))),
        "bias2": np.nan_to_num(means),
    }


def _outputs(params: Arrays, inputs: Floats) -> Floats:
    hidden = np.maximum(inputs @ params["weights1"] + params["bias1"], 0.0)
    return cast(Floats, hidden @ params["weights2"] + params["bias2"])


def _gradient(params: Params, inputs: Floats, scores: Floats, known: Floats) -> Params:
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
