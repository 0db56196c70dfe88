"""Later rounds of a recursive training: prompts that show a first plan and its answer.

The first plans are written and run before training.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from pydantic import TypeAdapter, ValidationError

from podium.conductor.grpo_reward import FirstRound, PlanAnswerer
from podium.conductor.training.grpo_options import from_first_process
from podium.conductor.training.job import TrainingJob
from podium.conductor.training.run_folder import newest_checkpoint, write_json
from podium.conductor.training.training_rows import TrainingRow
from podium.harness.errors import TooManyMasked, UserError, WorkerError
from podium.harness.rewards.outcome import RewardItem
from podium.harness.rewards.trainers import run_in_loop

KEPT = "first_rounds.json"
Write = Callable[[Sequence[TrainingRow]], Sequence[str]]  # rows -> the model's greedy completions


@dataclass(frozen=True, slots=True)
class _KeptRound:
    said: str  # the policy's whole text
    first: FirstRound


@dataclass(frozen=True, slots=True)
class _FirstRounds:
    kept: Mapping[str, _KeptRound] = field(default_factory=dict[str, _KeptRound])  # by `first_id`
    unread: tuple[str, ...] = ()  # rows for which the model wrote no plan
    failed: tuple[str, ...] = ()  # rows whose plan a worker failed
    why: str = ""  # error message of the first failure

    @property
    def asked(self) -> int:
        return len(self.kept) + len(self.unread) + len(self.failed)


_ROUNDS = TypeAdapter(_FirstRounds)


def with_later_rounds(
    training: TrainingJob,
    answerer: PlanAnswerer | None,
    rows: tuple[list[TrainingRow], list[TrainingRow]],
    write: Write,
    say: Callable[[str], None],
) -> tuple[list[TrainingRow], list[TrainingRow]]:
    """Turn some train rows into later rounds, and add later rounds to the validation rows.

    The first plans, which later rounds continue, are written and run here. All processes must call
    this function.
    """
    teach, held_out = rows
    recursion = training.config.recursion
    assert recursion is not None, "only a recursive training has later rounds"
    assert answerer is not None, "recorded verdicts have no plans to go on from (config.py)"
    again = later_places(len(teach), recursion.share, training.config.run.seed)
    first_rows = [*dict.fromkeys([*(teach[place] for place in again), *held_out])]
    plans = from_first_process(lambda: _kept_or_made(training, answerer, write, first_rows))
    for id, entry in plans.kept.items():
        answerer.firsts[id] = entry.first
        training.earlier[id] = entry.said, entry.first.answer.text
    unread = f"; {len(plans.unread)} could not be read" if plans.unread else ""
    failed = f"; {len(plans.failed)} failed because of a worker and stay first rounds"
    failed = failed if plans.failed else ""
    kept = f"{len(plans.kept)} of {plans.asked} first plans were executed"
    say(f"{kept}, so that later rounds can train on them{unread}{failed}.")
    later = [_later(row, plans) if place in again else row for place, row in enumerate(teach)]
    seconds = [_later(row, plans) for row in held_out]
    return later, [*held_out, *(row for row in seconds if row.first)]


def later_places(count: int, share: float, seed: int) -> frozenset[int]:
    """Return the indices of the rows that become later rounds: a random `share` of `count` rows."""
    return frozenset(
        Random(f"podium later rounds {seed}").sample(range(count), round(share * count))
    )


def first_id(row: TrainingRow) -> str:
    """Return the id of the first round of a training row: suite, question id, epoch and workers."""
    return "/".join((row.suite, row.question, str(row.epoch), *row.workers))


def _later(row: TrainingRow, plans: _FirstRounds) -> TrainingRow:
    id = first_id(row)
    return replace(row, first=id) if id in plans.kept else row


def _kept_or_made(
    training: TrainingJob, answerer: PlanAnswerer, write: Write, rows: list[TrainingRow]
) -> _FirstRounds:
    folder = training.out
    if (folder / KEPT).is_file():
        try:
            return _ROUNDS.validate_json((folder / KEPT).read_text())
        except ValidationError as error:
            raise UserError(
                f"{folder / KEPT} is damaged, so the later rounds would differ. Restore it, or "
                "begin anew with --out."
            ) from error
    if newest_checkpoint(folder):
        raise UserError(
            f"{folder} has checkpoints but no {KEPT} (it is not written for a suite that must not "
            "be published), so the later rounds would differ. Begin anew with --out."
        )
    texts = dict(zip(rows, write(rows), strict=True))
    plans = run_in_loop(_carried_out(answerer, training, texts))
    limit = training.config.reward.max_masked
    if len(plans.failed) > limit * plans.asked:  # nothing was saved, so a resume repeats them
        raise TooManyMasked(
            f"Of {plans.asked} first plans {len(plans.failed)} failed because of a worker, more "
            f"than [reward] max_masked={limit:g} allows ({plans.why}). Nothing is trained yet: "
            "--resume runs the failed plans again, and pays no reply twice."
        )
    if training.publishable:
        write_json(folder / KEPT, _ROUNDS.dump_python(plans, mode="json"))
    return plans


async def _carried_out(
    answerer: PlanAnswerer, training: TrainingJob, texts: dict[TrainingRow, str]
) -> _FirstRounds:

    async def one(row: TrainingRow, text: str) -> FirstRound | WorkerError | None:
        item = RewardItem(row.suite, row.question, text, row.epoch, 0, row.workers)
        async with limiter:
            try:
                result = await answerer.first_round(item, training.question(row))
            except WorkerError as error:
                return error
        if result is None:
            return None
        # Its notes become a plain dict, to be sent to other processes and saved.
        return replace(result, answer=replace(result.answer, noted=dict(result.answer.noted)))

    limiter = asyncio.Semaphore(training.config.reward.concurrency)
    results = await asyncio.gather(*(one(row, text) for row, text in texts.items()))
    pairs = list(zip(texts, results, strict=True))
    failed = [
        (first_id(row), str(result)) for row, result in pairs if isinstance(result, WorkerError)
    ]
    firsts = {row: result for row, result in pairs if isinstance(result, FirstRound)}
    return _FirstRounds(
        kept={first_id(row): _KeptRound(texts[row], result) for row, result in firsts.items()},
        unread=tuple(first_id(row) for row, result in pairs if result is None),
        failed=tuple(id for id, _ in failed),
        why=failed[0][1] if failed else "",
    )
