"""Made matrices whose right routing is known: two kinds of question, and a worker for each.

Real `Matrix` objects of made numbers; the label says rehearsal. Not here: any assertion.
"""

from dataclasses import replace

import numpy as np

from podium.harness.learning import Floats, Matrix, MatrixQuestion

ALGEBRA = ("integral", "derivative", "matrix", "eigenvalue", "polynomial", "root", "theorem")
PROGRAMS = ("string", "array", "list", "loop", "sort", "graph", "tree")
COMMON = ("find", "the", "given", "such", "that", "compute", "return", "value", "number", "with")
WORKERS = ("algebraist", "programmer", "idler")
USD = (0.01, 0.02, 0.001)
TOPICS = ("algebra", "programs")


def questions(count: int, seed: int) -> tuple[MatrixQuestion, ...]:
    """Return questions on algebra (right: worker 0) and on programs (right: worker 1)."""
    rng = np.random.default_rng(seed)
    found: list[MatrixQuestion] = []
    for at in range(count):
        topic = int(rng.integers(2))
        words = [*rng.choice((ALGEBRA, PROGRAMS)[topic], 6), *rng.choice(COMMON, 8)]
        rng.shuffle(words)
        found.append(MatrixQuestion(id=f"q{seed}-{at}", text=" ".join(words), group=TOPICS[topic]))
    return tuple(found)


def matrix(asked: tuple[MatrixQuestion, ...], scores: Floats) -> Matrix:
    """Return the matrix of some scores (questions, workers), at constant prices."""
    return Matrix(
        name="topics",
        source="made by tests/baselines/topics.py",
        label="rehearsal",
        workers=WORKERS,
        questions=asked,
        scores=scores,
        usd=np.tile(USD, (len(asked), 1)),
        tokens_out=np.zeros_like(scores),
    )


def two_topics(count: int, seed: int) -> Matrix:
    """Return specialists who are right 90 % on their topic and 30 % off it, and an idler, 20 %."""
    asked = questions(count, seed)
    rng = np.random.default_rng(seed + 1000)
    chances = {"algebra": (0.9, 0.3, 0.2), "programs": (0.3, 0.9, 0.2)}
    rows = [rng.random(3) < np.array(chances[one.group]) for one in asked]
    return matrix(asked, np.array(rows, dtype=np.float64))


def noise(count: int, seed: int) -> Matrix:
    """Return scores that nothing explains: every worker is right half the time."""
    rng = np.random.default_rng(seed + 2000)
    return matrix(questions(count, seed), (rng.random((count, 3)) < 0.5).astype(np.float64))


def one_best(count: int, seed: int) -> Matrix:
    """Return a matrix in which worker 1 is always right and the others never."""
    return matrix(questions(count, seed), np.tile((0.0, 1.0, 0.0), (count, 1)))


def with_gaps(whole: Matrix, share: float, seed: int) -> Matrix:
    """Return the matrix with a share of its scores unknown."""
    holes = np.random.default_rng(seed).random(whole.scores.shape) < share
    return replace(whole, scores=np.where(holes, np.nan, whole.scores))


def share_right(asked: tuple[MatrixQuestion, ...], chosen: np.ndarray) -> float:
    """Return the share of questions that went to the specialist of their topic."""
    return float(
        np.mean([TOPICS.index(one.group) == at for one, at in zip(asked, chosen, strict=True)])
    )
