"""The shards page: how far each part of a run that is cut into shards has come."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.harness.ledger.totals import QuestionResult, SystemRun
from podium.harness.run.experiment import read_experiment, task_name
from podium.harness.shards.plan import (
    Shard,
    ShardPlan,
    parent_of,
    read_outcome,
    read_plan,
    shard_dir,
)
from podium.harness.text import pluralise
from podium.reports.render import UNKNOWN, count, usd

HEAD = ("shard", "asks", "queries", "answered", "USD", "how it stands")
Attempts = dict[tuple[Path, str, str], list[QuestionResult]]
"""(directory of the run, entry, question) -> what was answered."""


def shards_context(runs: Sequence[SystemRun]) -> dict[str, Any]:
    """Return what shards.html shows of system runs; nothing where none of them is in shards."""
    parents = {parent for run in runs for path in run.paths if (parent := parent_of(path.parent))}
    found: Attempts = defaultdict(list)
    for run in runs:
        entry = task_name(run.facts.suite, run.facts.system)
        for parent in parents & {parent_of(path.parent) for path in run.paths}:
            for one in run.attempts:
                found[parent, entry, one.question].append(one)
    tables = [(parent.name, [HEAD, *_rows(parent, found)]) for parent in sorted(parents)]
    return {"tables": tables} if tables else {}


def _rows(parent: Path, found: Attempts) -> Iterator[Sequence[str]]:
    plan = read_plan(parent) or ShardPlan({}, {})
    stored = read_experiment(parent)
    epochs: Mapping[str, int] = stored.epochs if stored else {}
    for shard in plan.shards:
        queries = sum((one.last - one.first) * epochs.get(one.suite, 1) for one in shard.parts)
        asked = ((part.entry, id) for part in shard.parts for id in plan.ids(part))
        answers = [one for entry, id in asked for one in found.get((parent, entry, id), ())]
        prices = [one.totals.usd for one in answers]
        known = [price for price in prices if price is not None]
        yield (
            shard.name,
            _asks(shard),
            count(queries),
            count(len(answers)),
            usd(sum(known, Decimal(0))) if len(known) == len(prices) else UNKNOWN,
            _state(shard_dir(parent, shard.name), len(answers)),
        )


def _asks(shard: Shard) -> str:
    first, more = shard.parts[0].entry, len(shard.parts) - 1
    return f"{first} and {pluralise(more, 'other')}" if more else first


def _state(folder: Path, answers: int) -> str:
    ended = read_outcome(folder)
    if ended is None:
        return "under way, or broken off" if answers else "not begun"
    if ended.unscored:
        return f"{pluralise(ended.unscored, 'answer')} without a verdict"
    return "finished" if ended.finished else "; ".join(ended.trouble) or "not finished"
