"""Rows that no learning makes: one worker always, one at random, the best in hindsight.

What a router is held against. The best single worker is chosen on the questions that teach; chosen
on those that are judged, the best of n looks better than it is, and is flagged.
"""

from dataclasses import dataclass

import numpy as np

from baselines.routing.router import Choices, best
from harness.learning.matrix import Floats, Matrix


@dataclass(frozen=True, slots=True)
class Figures:
    """One system on some questions, (questions,) each; NaN is unknown."""

    scores: Floats
    usd: Floats
    tokens_out: Floats


def taken(matrix: Matrix, chosen: Choices) -> Figures:
    """Return the entries of the chosen workers."""
    rows = np.arange(len(chosen))
    return Figures(*(part[rows, chosen] for part in (matrix.scores, matrix.usd, matrix.tokens_out)))


def at_random(matrix: Matrix) -> Figures:
    """Return what asking a random worker comes to, exactly: each row's mean, no draw."""
    scores, usd, tokens = (
        part.mean(axis=1) for part in (matrix.scores, matrix.usd, matrix.tokens_out)
    )
    return Figures(scores, usd, tokens)


def best_single(train: Matrix) -> int:
    """Return the worker with the highest accuracy; a tie goes to the first."""
    return int(np.argmax(train.mean_scores()))


ORACLE_RULE = (
    "oracle-router knows every verdict: it asks the cheapest among the best scorers of a question, "
    "and the cheapest worker where nobody scores"
)


def oracle(matrix: Matrix) -> Choices:
    """Return the cheapest among the best scorers of each question; the first where prices tie.

    Where nobody scores all are best, so the cheapest is asked. An unknown price counts as the
    dearest: the scores are the same, and the dollars of its row are unknown.
    """
    return best(matrix.scores, matrix.usd)


def unanswered(matrix: Matrix) -> int:
    """Return how many questions nobody scores on."""
    return int((matrix.scores.max(axis=1) <= 0).sum())
