"""From single verdicts to a `Matrix`: draws of one pair are averaged, what is absent stays NaN.

Every importer of recorded verdicts, and the reader of our own logs, ends here. Not here: any file
format (baselines/matrices/, harness/learning/matrix_logs.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError
from harness.learning.matrix import Asked, Floats, Matrix
from harness.pool_file import Label


@dataclass(frozen=True, slots=True)
class Cell:
    """One draw of one worker on one question."""

    question: str
    worker: str
    score: float | None
    """Between 0 and 1; None when there is no verdict: that is no 0."""
    usd: float | None = None
    """List price of this draw; None is unknown."""
    tokens_out: float | None = None


@dataclass(frozen=True, slots=True)
class About:
    """What a matrix says of itself."""

    name: str
    source: str
    label: Label = "recorded"
    notes: tuple[str, ...] = ()
    publishable: bool = True
    drawn: int = 1
    """Draws behind each cell, where the source kept only their mean."""


def assembled(about: About, asked: Sequence[Asked], cells: Iterable[Cell]) -> Matrix:
    """Return the matrix of some cells; workers stand in the order in which they first appear.

    A score is the mean over a pair's graded draws. Dollars and tokens are means over all its draws,
    and unknown as soon as one of them is. UserError when there is no cell, or two questions share
    an id; a cell of a question that is not among `asked` is an error of ours.
    """
    rows = {one.id: at for at, one in enumerate(asked)}
    if len(rows) != len(asked):
        twice = next(one.id for at, one in enumerate(asked) if rows[one.id] != at)
        raise UserError(f"{about.name}: question {twice} is there twice.")
    every = list(cells)
    if not every:
        raise UserError(f"{about.name}: there is no verdict in it.")
    workers = {name: at for at, name in enumerate(dict.fromkeys(cell.worker for cell in every))}
    at = np.array([(rows[cell.question], workers[cell.worker]) for cell in every])
    shape = (len(rows), len(workers))
    scores = _numbers(cell.score for cell in every)
    graded = ~np.isnan(scores)
    draws = _sums(shape, at, graded.astype(float))
    tried = _sums(shape, at, np.ones(len(every)))
    return Matrix(
        name=about.name,
        source=about.source,
        label=about.label,
        workers=tuple(workers),
        questions=tuple(asked),
        scores=_mean(_sums(shape, at, np.where(graded, scores, 0.0)), draws),
        usd=_mean(_sums(shape, at, _numbers(cell.usd for cell in every)), tried),
        tokens_out=_mean(_sums(shape, at, _numbers(cell.tokens_out for cell in every)), tried),
        draws=about.drawn * int(draws[draws > 0].min()) if (draws > 0).any() else 1,
        notes=about.notes,
        publishable=about.publishable,
    )


def _numbers(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _sums(shape: tuple[int, int], at: NDArray[np.intp], values: Floats) -> Floats:
    """Return the sum of each pair's values; NaN where one of them is NaN."""
    found = np.zeros(shape)
    np.add.at(found, (at[:, 0], at[:, 1]), values)
    return found


def _mean(sums: Floats, counts: Floats) -> Floats:
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
