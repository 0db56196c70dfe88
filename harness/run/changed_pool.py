"""A pool that changed since a run's directory was begun: what differs, and if it matters yet."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.logs import newest_logs, open_log
from podium.harness.ledger.runs import RunFacts, WorkerFacts, calls_of, facts_in
from podium.harness.prices import Book, book_from_json

ABSENT = "absent"
AGREED = "agreed.jsonl"
"""What a live run's user has agreed to: the first file of its directory (podium/cli/consent.py)."""


def is_unanswered(log_dir: Path) -> bool:
    """Say whether every call of a run failed: none was answered, none may still be."""
    if any(log_dir.glob("*/experiment.json")):
        return False  # shards and lessons have pools of their own
    journals = [*log_dir.glob(f"**/{FOLDER}/*/*.jsonl")]
    outcomes = [record.outcome for path in journals for record in calls_of(path)]
    if any(outcome is None or outcome.get("output_sha256") for outcome in outcomes):
        return False
    return bool(journals) or not any(log_dir.glob("**/*.eval"))  # older runs have no journals


def set_aside(log_dir: Path, pool_key: str) -> Path:
    """Rename the directory of a run without replies, so that its records stay as they are."""
    names = (log_dir.with_name(f"{log_dir.name}.unanswered-{number}") for number in count(1))
    aside = log_dir.rename(next(path for path in names if not path.exists()))
    agreed = aside / AGREED
    lines = agreed.read_text().splitlines(keepends=True) if agreed.exists() else []
    if now := [line for line in lines if json.dumps(pool_key) in line]:
        log_dir.mkdir()
        (log_dir / AGREED).write_text("".join(now))
        agreed.write_text("".join(line for line in lines if line not in now))
    return aside


def pool_changes(
    log_dir: Path, workers: Mapping[str, Mapping[str, Any]], book: Book
) -> Iterator[str]:
    """Yield each field of a worker that is another one than in a run's newest log."""
    facts = _newest_facts(log_dir)
    if facts is None:
        return
    then = book_from_json(facts.prices)
    old = {name: _flat(worker, then) for name, worker in facts.workers.items()}
    new = {name: _flat(WorkerFacts(**facts), book) for name, facts in workers.items()}
    for name in {**old, **new}:
        before, after = old.get(name, {}), new.get(name, {})
        if not before or not after:
            yield f"worker {name!r} was {'added' if after else 'removed'}"
            continue
        for field in {**before, **after}:
            was, now = (side.get(field, ABSENT) for side in (before, after))
            if was != now:
                yield f"{field} of worker {name!r} was {was}, and is {now}"


def _newest_facts(log_dir: Path) -> RunFacts | None:
    for path in newest_logs([log_dir]) if any(log_dir.glob("**/*.eval")) else ():
        with open_log(path) as log:
            if facts := facts_in(log.header["eval"].get("metadata"), path):
                return facts
    return None


def _flat(worker: WorkerFacts, book: Book) -> dict[str, Any]:
    """Return a worker's fields by the names that a pool file has for them, its price too."""
    fields = worker.model_dump(exclude={"config", "args", "price"})
    for part, values in (("config", worker.config), ("args", worker.args)):
        fields |= {f"{part}.{name}": value for name, value in values.items()}
    price = book.price(worker.price)
    rates = dict(asdict(price.base)) if price else {}
    priced = {f"price.{name}": f"{rate:f}" for name, rate in rates.items() if rate is not None}
    return fields | {"price": worker.price} | priced
