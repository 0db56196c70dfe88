"""The rows that a warm start and a tokenizer are made from, before any question is drawn.

Not here: the rows that training asks (rows.py), and what a warm start plans for them (corpus.py).
"""

from dataclasses import replace

from conductor.training.job import Training
from conductor.training.rows import Row, Shown
from conductor.training.studied import vocabulary
from harness.records import Question


def every_row(training: Training) -> list[Row]:
    """Return each train question a few times, with other workers where those are drawn."""
    count = sum(len(exam.questions) for exam in training.exams.values())
    pool = training.config.pool
    times = 1 if pool.order == "pool" and pool.shown is None else 8
    even = training.config.model_copy(
        update={"suites": training.config.suites.model_copy(update={"weights": {}})}
    )
    return replace(training, config=even).rows(count * times)


def tokenized(training: Training, shown: list[Shown]) -> list[Shown]:
    """Return what a tokenizer is trained on: a vocabulary holds words of what it has read."""
    if training.study and not training.publishable:
        return vocabulary(training.study, training.asking)
    return [one if _public(training, one.row) else _unsaid(training, one.row) for one in shown]


def _public(training: Training, row: Row) -> bool:
    return training.exams[row.suite].suite.publishable


def _unsaid(training: Training, row: Row) -> Shown:
    """Return a row that asks nothing: a tokenizer reads its cards, and no word of its question."""
    return replace(training.asking, question=_unasked).shown(row)


def _unasked(row: Row) -> Question:
    return Question(row.question, "", "text")
