"""A `Matrix`: how each worker did on each question. What routers learn from, and are judged on.

It comes from logs of single workers or from verdicts that somebody recorded. Data only: learning
is baselines/routing/, statistics are reports/. Money here is a feature to learn from and a figure
to average, so it is a float; what is billed is Decimal and stands in the ledger.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError
from harness.pool_file import Label
from harness.records import Kind

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a matrix, without its target."""

    id: str
    text: str = field(repr=False)
    """What a router may read; empty where texts may not be had (then nothing can be learnt). No
    message shows it: some texts must not be published."""
    kind: Kind = "text"
    date: str = ""
    """ISO day on which it became public; empty when unknown."""
    group: str = ""
    """What questions share a source in: a contest, a subject. For clustered errors and folds."""
    split: Literal["", "train", "eval"] = ""
    """What its source declares it to be for; empty where it declares nothing."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Scores and costs, one row per question and one column per worker.

    An entry that nobody measured is NaN: it is no zero, neither of points nor of dollars.
    """

    name: str
    source: str
    """Where it is from, with what pins it."""
    label: Label
    workers: tuple[str, ...]
    questions: tuple[Asked, ...]
    scores: Floats
    """(questions, workers), each between 0 and 1: the mean over the draws of that pair."""
    usd: Floats
    """(questions, workers), list price of one draw."""
    tokens_out: Floats
    """(questions, workers), of one draw."""
    draws: int = 1
    """Draws behind each score; the least where they differ. Above 1, scores are means."""
    notes: tuple[str, ...] = ()
    """What limits it, a sentence each: printed below every table made of it."""
    publishable: bool = True
    """False when its texts may appear in no file, message or page."""

    def __post_init__(self) -> None:
        """Refuse what is no matrix: UserError names the shape or the score that is wrong."""
        shape = (len(self.questions), len(self.workers))
        for what, values in (("score", self.scores), ("usd", self.usd), ("tok", self.tokens_out)):
            if values.shape != shape:
                raise UserError(f"{self.name}: {what} is {values.shape}, not {shape}.")
        known = self.scores[~np.isnan(self.scores)]
        if known.size and not (known.min() >= 0 and known.max() <= 1):
            raise UserError(f"{self.name}: scores lie between 0 and 1, not at {known.max():g}.")

    def rows(self, chosen: Sequence[int] | NDArray[np.intp]) -> "Matrix":
        """Return the matrix of some questions, by index, in that order."""
        at = np.asarray(chosen, dtype=np.intp)
        return replace(
            self,
            questions=tuple(self.questions[int(one)] for one in at),
            scores=self.scores[at],
            usd=self.usd[at],
            tokens_out=self.tokens_out[at],
        )

    def where(self, keep: Callable[[Asked], bool]) -> "Matrix":
        """Return the matrix of the questions that `keep` says yes to."""
        return self.rows([at for at, asked in enumerate(self.questions) if keep(asked)])

    def whole(self) -> "Matrix":
        """Return the matrix without questions that some worker was not graded on."""
        return self.rows(np.flatnonzero(~np.isnan(self.scores).any(axis=1)))

    def mean_scores(self) -> Floats:
        """Return each worker's accuracy over the questions it was graded on; NaN without any."""
        return mean_known(self.scores)

    def mean_usd(self) -> Floats:
        """Return each worker's dollars per query; NaN where any of its queries has no price."""
        if not self.questions:
            return np.full(len(self.workers), np.nan)
        return self.usd.mean(axis=0)


def mean_known(values: Floats) -> Floats:
    """Return each column's mean over what is known; NaN for a column of which nothing is."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    nothing = np.full(int(values.shape[1]), np.nan)
    return np.divide(sums, counts, out=nothing, where=counts > 0)
