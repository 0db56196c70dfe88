"""Who is asked what, by id: the rows of a training, in a fixed and seeded order.

A row names a suite, a question, an epoch and the workers that are shown; its text is made when it
is asked for. So no text stands in the data set, and a resumed run meets the same rows. Not here:
what a prompt says (conductor/prompt.py).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from conductor.adaptive import Shown as ShownWorkers
from conductor.adaptive import shown_workers
from conductor.form import Form
from conductor.prompt import request
from conductor.recursion import again
from harness.pool_config import PoolSpec
from harness.records import Question


@dataclass(frozen=True, slots=True)
class Row:
    """One question put to the policy once; `workers` is empty where the pool's order is kept."""

    suite: str
    question: str
    epoch: int = 1
    workers: tuple[str, ...] = ()
    first: str = ""

    def as_columns(self) -> dict[str, Any]:
        """Return the row as TRL's data set has it."""
        return {
            "suite": self.suite,
            "question": self.question,
            "epoch": self.epoch,
            "workers": list(self.workers),
            "first": self.first,
        }


COLUMNS = ("suite", "question", "epoch", "workers", "first")


@dataclass(frozen=True, slots=True)
class Shown:
    """A row with its texts: what a warm start and a tokenizer learn from. Never written down."""

    row: Row
    question: str
    """The question's text, as a worker is asked."""
    cards: tuple[str, ...]
    """One per worker shown, empty where cards are hidden."""
    known: tuple[str, ...]
    """The same cards, whether or not the form hides them: a warm start may know them."""
    workers: tuple[str, ...]
    """Names in the order of their numbers; the policy never sees them."""
    prompt: str
    """The whole request, turns joined."""


class Asks(Protocol):
    """An exam as rows need it."""

    @property
    def questions(self) -> Mapping[str, Question]:
        """Questions by id."""
        ...


@dataclass(frozen=True, slots=True)
class Draw:
    """How rows are drawn: exams, their weights, and which workers a row shows."""

    exams: Mapping[str, Sequence[str]]
    """Suite -> ids of its questions."""
    weights: Mapping[str, float]
    """Suite -> its share of the draws; a suite that is absent weighs what it has questions."""
    workers: tuple[str, ...]
    shown: ShownWorkers
    """Drawn anew for every row, with the row's number; its own seed does not count."""
    seed: int


def draw_rows(draw: Draw, count: int) -> list[Row]:
    """Return `count` rows: each suite's questions are all used before one of them comes again."""
    rng = Random(f"podium rows {draw.seed}")
    names = list(draw.exams)
    weights = [draw.weights.get(name, float(len(draw.exams[name]))) for name in names]
    ids = {name: _shuffled(draw.exams[name], Random(rng.random())) for name in names}
    which = rng.choices(names, weights, k=count)
    rows = (Row(name, next(ids[name])) for name in which)
    return [replace(row, workers=_shown(draw, row, at)) for at, row in enumerate(rows)]


def _shown(draw: Draw, row: Row, at: int) -> tuple[str, ...]:
    """Return the workers that a row shows, empty for the pool as it is."""
    if draw.shown.whole:
        return ()
    drawn = replace(draw.shown, seed=draw.seed * SEEDS + at)
    return shown_workers(draw.workers, row.question, drawn)


SEEDS = 1 << 24
"""Rows of one seed before another's subsets come again."""


def _shuffled(ids: Sequence[str], rng: Random) -> Iterator[str]:
    while True:
        order = list(ids)
        rng.shuffle(order)
        yield from order


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a later round shows of the first one. Never written down."""

    said: str
    """The policy's whole text."""
    reply: str
    """The last reply of what that came to."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Turns rows into texts: the exams' questions, the pool's cards, the form."""

    form: Form
    spec: PoolSpec
    question: Callable[[Row], Question]
    earlier: Mapping[str, Earlier] = field(default_factory=dict[str, Earlier])
    """By the id that rows of later rounds name."""

    def workers(self, row: Row) -> tuple[str, ...]:
        """Return the workers that a row shows, in the order of their numbers."""
        return row.workers or self.spec.names

    def messages(self, row: Row) -> list[dict[str, str]]:
        """Return what the policy is sent, as chat messages."""
        cards = self.cards(row)
        turns = request(self.form, self.question(row).text, cards)
        if row.first:
            before = self.earlier[row.first]
            turns = again(self.form, turns, before.said, before.reply)
        return [{"role": turn.role, "content": turn.text} for turn in turns]

    def cards(self, row: Row) -> tuple[str, ...]:
        """Return a card per worker shown, empty strings where the form hides them."""
        named = self.workers(row)
        return tuple(self.spec.worker(name).card if self.form.cards else "" for name in named)

    def shown(self, row: Row) -> Shown:
        """Return a row with its texts."""
        prompt = "".join(turn["content"] for turn in self.messages(row))
        text = self.question(row).text
        workers = self.workers(row)
        known = tuple(self.spec.worker(name).card for name in workers)
        return Shown(row, text, self.cards(row), known, workers, prompt)

    def render(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return a batch of columns with a `prompt` beside them (for `Dataset.with_transform`)."""
        rows = (
            Row(suite, question, epoch, tuple(workers), first)
            for suite, question, epoch, workers, first in zip(
                *(batch[name] for name in COLUMNS), strict=True
            )
        )
        return {**batch, "prompt": [self.messages(row) for row in rows]}
