"""Learn a cascade: try every worker with its scorer, then take the best order and thresholds.

A try is one question with one worker: the worker is the epoch. Lists of at most three workers and
all thresholds are enumerated, as FrugalGPT does; a train split of a few questions overfits, which
the table's other rows show.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from baselines.calling.accepting import FEATURES, Scoring
from baselines.calling.teaching import about, refuse_too_few
from baselines.ridge_logistic import fitted
from baselines.routing.descent import sigmoid
from harness.errors import UserError
from harness.learning.fit import Artifact, Round, TrainingBudget, TrialResult
from harness.learning.matrix import Floats

ORDER, THRESHOLDS, WEIGHTS = "order", "thresholds", "weights"
STAGES = 3
"""FrugalGPT's longest list."""
PULL = np.ones(FEATURES)
"""Ridge on each weight of a fitted scorer."""
FOLDS = 5
"""Of the questions on which a fitted scorer's thresholds are chosen."""


@dataclass(frozen=True, slots=True)
class Tries:
    """What was tried, (questions, workers) each."""

    values: Floats
    confidences: Floats
    costs: Floats
    """Of a stage that is scored: dollars, or calls where a price is unknown."""
    last_share: float
    """Share of that cost which a last stage has."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Workers by place in the pool, with what they do on the tries."""

    order: tuple[int, ...]
    thresholds: tuple[float, ...]
    value: float
    cost: float


def measured(tries: Tries, order: Sequence[int], thresholds: Sequence[float]) -> Chain:
    """Return a cascade's mean grade and cost on the tries."""
    value = np.zeros(len(tries.values))
    cost = np.zeros(len(tries.values))
    open_ = np.ones(len(tries.values), dtype=bool)
    for at, threshold in zip(order, thresholds, strict=False):
        cost += np.where(open_, tries.costs[:, at], 0)
        accept = open_ & (tries.confidences[:, at] >= threshold)
        value += np.where(accept, tries.values[:, at], 0)
        open_ &= ~accept
    value += np.where(open_, tries.values[:, order[-1]], 0)
    cost += np.where(open_, tries.costs[:, order[-1]] * tries.last_share, 0)
    return Chain(tuple(order), tuple(thresholds), float(value.mean()), float(cost.mean()))


def chains(tries: Tries, levels: Sequence[float]) -> Iterator[Chain]:
    """Yield every cascade of at most `STAGES` workers."""
    workers = range(tries.values.shape[1])
    for length in range(1, min(STAGES, len(workers)) + 1):
        for order in permutations(workers, length):
            for thresholds in product(levels, repeat=length - 1):
                yield measured(tries, order, thresholds)


def best(found: Iterator[Chain]) -> Chain:
    """Return the most accurate cascade; ties go to the cheapest, then to the first."""
    return min(found, key=lambda one: (-round(one.value, 9), round(one.cost, 12)))


@dataclass(frozen=True, slots=True)
class CascadeExplorer:
    """Tries every worker with its scorer on as many questions as the budget pays for."""

    name: str
    scoring: Scoring

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return the one round there is."""
        each = self.scoring.calls * len(given.workers)
        refuse_too_few(self.name, given, each)
        if done:
            return None
        args = {"scorer": self.scoring.scorer, "samples": self.scoring.samples}
        most = min(len(given.questions), given.calls // each)
        workers = len(given.workers)
        return Round("baselines/try_cascade", args, most, workers, most_calls=self.scoring.calls)

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the best list of workers with its thresholds, and the scorer's weights."""
        rows = _complete([one for tried in done for one in tried], len(given.workers))
        weights = self._weights(rows, len(given.workers))
        tries = self._tables(rows)
        chosen = best(chains(tries, self.scoring.confidences))
        settings = {
            "scorer": self.scoring.scorer,
            "samples": self.scoring.samples,
            "questions": len(rows),
            "train_accuracy": chosen.value,
        }
        arrays = {
            ORDER: np.array(chosen.order, dtype=np.int64),
            THRESHOLDS: np.array(chosen.thresholds, dtype=np.float64),
            WEIGHTS: weights,
        }
        return Artifact(about(self.name, given, done, settings), arrays)

    def _weights(self, rows: Sequence[Sequence[TrialResult]], workers: int) -> Floats:
        """Return (workers, FEATURES) logistic weights; no rows for the other scorers."""
        if self.scoring.scorer != "logistic":
            return np.zeros((0, FEATURES))
        seen = np.array([[one.noted["features"] for one in row] for row in rows], dtype=np.float64)
        seen = seen.reshape(len(rows), workers, FEATURES)
        right = np.array([[one.value for one in row] for row in rows], dtype=np.float64)
        right = right.reshape(len(rows), workers)
        return np.array([fitted(seen[:, at], right[:, at], PULL) for at in range(workers)])

    def _out_of_fold(self, rows: Sequence[Sequence[TrialResult]]) -> list[list[float]]:
        """Return (questions, workers) confidences by scorers that have not seen the question.

        On what it was fitted to, a scorer with more features than questions is nearly always sure
        and right, and every threshold looks good.
        """
        sure = [[0.0] * len(row) for row in rows]
        for fold in range(min(FOLDS, len(rows))):
            taught = [row for at, row in enumerate(rows) if at % FOLDS != fold]
            weights = self._weights(taught, len(rows[0]))
            for at in range(fold, len(rows), FOLDS):
                for worker, one in enumerate(rows[at]):
                    seen = np.array(one.noted["features"], dtype=np.float64)
                    sure[at][worker] = float(sigmoid(seen @ weights[worker]))
        return sure

    def _tables(self, rows: Sequence[Sequence[TrialResult]]) -> Tries:
        priced = all(one.usd is not None for row in rows for one in row)
        sure = [[float(one.noted["confidence"]) for one in row] for row in rows]
        if self.scoring.scorer == "logistic":
            sure = self._out_of_fold(rows)
        costs = [[one.usd if priced else one.calls for one in row] for row in rows]
        return Tries(
            values=np.array([[one.value for one in row] for row in rows], dtype=np.float64),
            confidences=np.array(sure, dtype=np.float64),
            costs=np.array(costs, dtype=np.float64),
            last_share=self.scoring.last_calls / self.scoring.calls,
        )


def _complete(tries: Sequence[TrialResult], workers: int) -> list[list[TrialResult]]:
    """Return the tries by question, in epoch order, of questions that every worker was graded on.

    UserError when there is none.
    """
    by_question: dict[str, dict[int, TrialResult]] = {}
    for one in tries:
        if one.value is not None:
            by_question.setdefault(one.question, {})[one.epoch] = one
    rows = [[row[at] for at in sorted(row)] for row in by_question.values() if len(row) == workers]
    if not rows:
        raise UserError(
            "A cascade learnt nothing: no train question was answered by all workers; run it again."
        )
    return rows
