"""Later rounds for a recursive training: first plans are made before it begins, by its first model.

A row of a later round shows a first plan and what it came to, and asks again; only the second plan
is learnt from. As in arXiv 2512.04388, appendix A.3, half of the rows are such, unless the
configuration says otherwise. First plans are greedy, and their calls are paid once: a resumed
training makes the same ones from the replies in its ledger. Not here: what a later round says
(conductor/recursion.py) and what it is worth (conductor/training_reward.py).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from conductor.plan_reward import First, Planned
from conductor.training.job import Training
from conductor.training.rows import Earlier, Row
from harness.errors import WorkerError
from harness.rewards.items import RewardItem
from harness.rewards.trainer import wait_for

Write = Callable[[Sequence[Row]], Sequence[str]]
"""Rows -> the model's greedy completions."""


def with_later_rounds(
    answerer: Planned | None, training: Training, write: Write, rows: tuple[list[Row], list[Row]]
) -> tuple[list[Row], list[Row]]:
    """Return train and validation rows, some of them later rounds.

    Of the train rows a share becomes later rounds; the validation rows stay, and the later round of
    each stands behind them. A row whose first plan cannot be read or carried out stays as it is.
    """
    teach, held_out = rows
    recursion = training.config.recursion
    assert recursion is not None, "only a recursive training has later rounds"
    assert answerer is not None, "a study has no plans to go on from (config.py)"
    again = chosen(len(teach), recursion.share, training.config.run.seed)
    wanted = dict.fromkeys([*(teach[at] for at in again), *held_out])
    texts = dict(zip(wanted, write([*wanted]), strict=True))
    firsts = wait_for(_carried_out(answerer, training, texts))
    for row, first in firsts.items():
        answerer.firsts[first_id(row)] = first
        training.earlier[first_id(row)] = Earlier(texts[row], first.answer.text)
    later = [_later(row) if at in again and row in firsts else row for at, row in enumerate(teach)]
    return later, [*held_out, *(_later(row) for row in held_out if row in firsts)]


def chosen(count: int, share: float, seed: int) -> frozenset[int]:
    """Return the places of so many rows that become later rounds."""
    return frozenset(
        Random(f"podium later rounds {seed}").sample(range(count), round(share * count))
    )


def first_id(row: Row) -> str:
    """Return what later rounds call a row's first round: who was asked what, and no text."""
    return "/".join((row.suite, row.question, str(row.epoch), *row.workers))


def _later(row: Row) -> Row:
    return replace(row, first=first_id(row))


async def _carried_out(
    answerer: Planned, training: Training, texts: dict[Row, str]
) -> dict[Row, First]:
    """Carry first plans out; those that are none, or that a worker failed, are left out."""

    async def one(row: Row, text: str) -> tuple[Row, First | None]:
        item = RewardItem(row.suite, row.question, text, row.epoch, 0, row.workers)
        async with most:
            try:
                return row, await answerer.first_round(item, training.question(row))
            except WorkerError:
                return row, None

    most = asyncio.Semaphore(training.config.reward.concurrency)
    found = await asyncio.gather(*(one(row, text) for row, text in texts.items()))
    return {row: first for row, first in found if first is not None}
