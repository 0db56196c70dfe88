"""Later rounds for a recursive training: first plans are made before it begins, by its first model.

A row of a later round shows a first plan and what it came to, and asks again; only the second plan
is learnt from. As in arXiv 2512.04388, appendix A.3, half of the rows are such, unless the
configuration says otherwise. First plans are greedy. The first process alone makes them, and the
others are told: a live worker would tell each something else. Not here: what a later round says
(conductor/recursion.py), what it is worth (conductor/training_reward.py), and the file that a
resumed training reads them back from (kept_rounds.py).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from conductor.plan_reward import First, Planned
from conductor.training.job import Training
from conductor.training.kept_rounds import FirstRounds, Kept, as_text, from_text, kept_text
from conductor.training.rows import Earlier, Row
from conductor.training.together import from_first
from harness.errors import TooManyMasked, WorkerError
from harness.rewards.outcome import RewardItem
from harness.rewards.trainers import run_in_loop

Write = Callable[[Sequence[Row]], Sequence[str]]
"""Rows -> the model's greedy completions."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who makes first plans, who carries them out, and who is told how many there are."""

    answerer: Planned | None
    training: Training
    write: Write
    say: Callable[[str], None]


def with_later_rounds(
    asked: Asked, rows: tuple[list[Row], list[Row]]
) -> tuple[list[Row], list[Row]]:
    """Return train and validation rows, some of them later rounds; all processes call it together.

    Of the train rows a share becomes later rounds; the validation rows stay, and the later round of
    each stands behind them. A row whose first plan cannot be read or carried out stays as it is,
    also when the training is resumed. TooManyMasked where workers failed more of them than
    [reward] max_masked allows.
    """
    teach, held_out = rows
    training, answerer = asked.training, asked.answerer
    recursion = training.config.recursion
    assert recursion is not None, "only a recursive training has later rounds"
    assert answerer is not None, "a study has no plans to go on from (config.py)"
    again = chosen(len(teach), recursion.share, training.config.run.seed)
    wanted = [*dict.fromkeys([*(teach[at] for at in again), *held_out])]
    found = from_text(from_first(lambda: _kept_or_made(asked, wanted)))
    for id, kept in found.kept.items():
        answerer.firsts[id] = kept.first
        training.earlier[id] = Earlier(kept.said, kept.first.answer.text)
    asked.say(found.account)
    later = [_later(row, found) if at in again else row for at, row in enumerate(teach)]
    seconds = [_later(row, found) for row in held_out]
    return later, [*held_out, *(row for row in seconds if row.first)]


def chosen(count: int, share: float, seed: int) -> frozenset[int]:
    """Return the places of so many rows that become later rounds."""
    return frozenset(
        Random(f"podium later rounds {seed}").sample(range(count), round(share * count))
    )


def first_id(row: Row) -> str:
    """Return what later rounds call a row's first round: who was asked what, and no text."""
    return "/".join((row.suite, row.question, str(row.epoch), *row.workers))


def _later(row: Row, found: FirstRounds) -> Row:
    """Return the later round of a row; the row itself where it has no first one."""
    id = first_id(row)
    return replace(row, first=id) if id in found.kept else row


def _kept_or_made(asked: Asked, wanted: list[Row]) -> str:
    """Return first rounds as text, from the run's folder where they were made before."""
    training = asked.training
    known = kept_text(training.request.out)
    if known is not None:
        return known
    assert asked.answerer is not None, "with_later_rounds has looked"
    texts = dict(zip(wanted, asked.write(wanted), strict=True))
    found = run_in_loop(_carried_out(asked.answerer, training, texts))
    _refuse_outage(found, training.config.reward.max_masked)
    return as_text(found, training.request.out if training.publishable else None)


def _refuse_outage(found: FirstRounds, most: float) -> None:
    """Raise TooManyMasked where workers failed too many; nothing was kept, so all may be asked."""
    if len(found.failed) > most * found.asked:
        raise TooManyMasked(
            f"Of {found.asked} first plans {len(found.failed)} met a worker's failure, more than "
            f"[reward] max_masked={most:g} allows ({found.why}). Nothing is trained yet: --resume "
            "asks those that failed again, and pays no reply twice."
        )


async def _carried_out(answerer: Planned, training: Training, texts: dict[Row, str]) -> FirstRounds:
    """Carry first plans out; those that are none, or that a worker failed, are counted."""

    async def one(row: Row, text: str) -> First | WorkerError | None:
        item = RewardItem(row.suite, row.question, text, row.epoch, 0, row.workers)
        async with most:
            try:
                return await answerer.first_round(item, training.question(row))
            except WorkerError as error:
                return error

    most = asyncio.Semaphore(training.config.reward.concurrency)
    came = await asyncio.gather(*(one(row, text) for row, text in texts.items()))
    pairs = list(zip(texts, came, strict=True))
    failed = [(first_id(row), str(one)) for row, one in pairs if isinstance(one, WorkerError)]
    return FirstRounds(
        kept={first_id(r): Kept(texts[r], one) for r, one in pairs if isinstance(one, First)},
        unread=tuple(first_id(row) for row, one in pairs if one is None),
        failed=tuple(id for id, _ in failed),
        why=failed[0][1] if failed else "",
    )
