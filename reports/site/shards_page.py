"""The shards page: progress of each shard (separately executed part) of a run."""

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

HEAD = ("shard", "asks", "queries", "answered", "USD", "state")
Attempts = dict[tuple[Path, str, str], list[QuestionResult]]
"""(directory of the run, task name of a suite and system, question) -> results of its epochs."""


def shards_context(runs: Sequence[SystemRun]) -> dict[str, Any]:
    """Return the template variables of shards.html; empty if no run has shards."""
    parents = {parent for run in runs for path in run.paths if (parent := parent_of(path.parent))}
    attempts: Attempts = defaultdict(list)
    for run in runs:
        entry = task_name(run.facts.suite, run.facts.system)
        for parent in parents & {parent_of(path.parent) for path in run.paths}:
            for attempt in run.attempts:
                attempts[parent, entry, attempt.question].append(attempt)
    tables = [(parent.name, [HEAD, *_rows(parent, attempts)]) for parent in sorted(parents)]
    return {"tables": tables} if tables else {}


def _rows(parent: Path, results: Attempts) -> Iterator[Sequence[str]]:
    plan = read_plan(parent) or ShardPlan({}, {})
    stored = read_experiment(parent)
    epochs: Mapping[str, int] = stored.epochs if stored else {}
    for shard in plan.shards:
        queries = sum((span.last - span.first) * epochs.get(span.suite, 1) for span in shard.parts)
        pairs = ((span.entry, id) for span in shard.parts for id in plan.ids(span))
        answers = [result for entry, id in pairs for result in results.get((parent, entry, id), ())]
        prices = [result.totals.usd for result in answers]
        known_prices = [price for price in prices if price is not None]
        yield (
            shard.name,
            _asks(shard),
            count(queries),
            count(len(answers)),
            usd(sum(known_prices, Decimal(0))) if len(known_prices) == len(prices) else UNKNOWN,
            _state(shard_dir(parent, shard.name), len(answers)),
        )


def _asks(shard: Shard) -> str:
    entry, n_others = shard.parts[0].entry, len(shard.parts) - 1
    return f"{entry} and {pluralise(n_others, 'other')}" if n_others else entry


def _state(folder: Path, answers: int) -> str:
    outcome = read_outcome(folder)
    if outcome is None:
        return "running or interrupted" if answers else "not begun"
    if outcome.unscored:
        return f"{pluralise(outcome.unscored, 'answer')} without a verdict"
    return "finished" if outcome.finished else "; ".join(outcome.trouble) or "not finished"
