"""Stores each shard's results in a file beside its manifest, and joins shards' runs per system.

Such a file is valid only for one manifest (list of a shard's files and their digests), and while
the listed files have the same sizes. Otherwise, or with `--deep`, the logs are read instead.
Nothing is rounded.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from podium.harness.files import replace_file
from podium.harness.ledger.call import Scope
from podium.harness.ledger.manifest import FILE, file_digest, read_manifest
from podium.harness.ledger.runs import RunFacts
from podium.harness.ledger.totals import (
    CallKind,
    CallSum,
    Paid,
    QueryTotals,
    QuestionResult,
    SystemRun,
)
from podium.harness.shards.plan import FIGURES, ShardPlan, read_plan

KEY = b"podium"
TOTALS = tuple(field.name for field in fields(QueryTotals))
OWN = tuple(x.name for x in fields(QuestionResult) if x.name not in ("totals", "groups"))
RUN, GROUPS, USD = "run", "groups", "usd"
REPEATED = (
    *("reason", "kind", "topic", "stopped", "fallback", "plan_fault", "question", "vote"),
    "plan_shape",
)
"""Columns of results whose texts repeat within and across shards: memory holds equal texts once."""


@dataclass(frozen=True, slots=True)
class ShardSums:
    """One system's run in a shard, without its answers: sums of its calls, and paid dollars."""

    facts: RunFacts
    logs: tuple[str, ...]
    asked: int
    epochs: int
    spend: tuple[tuple[CallKind, CallSum], ...]
    paid: dict[Scope, Paid] | None


@dataclass(frozen=True, slots=True)
class ShardFigures:
    """The metadata of the file with a shard's results."""

    root: str
    manifest: str
    """Digest of the shard's manifest file, which lists the digests of the shard's other files."""
    sizes: dict[str, int]
    """Path -> size, in bytes, of each file that the manifest lists."""
    runs: tuple[ShardSums, ...]
    schema: int = 1


_SUMS = TypeAdapter(ShardFigures)


def write_figures(folder: Path, runs: Sequence[SystemRun]) -> None:
    """Write the file with a shard's results, which is valid only with the current manifest."""
    manifest = read_manifest(folder / FILE)
    sums = tuple(
        ShardSums(run.facts, run.logs, run.asked, run.epochs, tuple(run.spend.items()), paid)
        for run in runs
        for paid in [None if run.paid is None else dict(run.paid)]
    )
    sizes = {file.path: file.size for file in manifest.files}
    figures = ShardFigures(manifest.root, file_digest(folder / FILE), sizes, sums)
    rows = [(number, attempt) for number, run in enumerate(runs) for attempt in run.attempts]
    table: Any = import_module("pyarrow").table(_columns(rows))
    table = table.replace_schema_metadata({KEY: _SUMS.dump_json(figures, by_alias=True)})
    packed = BytesIO()
    import_module("pyarrow.parquet").write_table(table, packed, compression="zstd")
    replace_file(folder / FIGURES, packed.getvalue())


def _columns(rows: Sequence[tuple[int, QuestionResult]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {RUN: [number for number, _ in rows]}
    columns |= {name: [getattr(result, name) for _, result in rows] for name in OWN}
    columns[GROUPS] = [json.dumps(dict(result.groups)) for _, result in rows]
    for name in TOTALS:
        columns[f"totals.{name}"] = [getattr(result.totals, name) for _, result in rows]
    exact = columns[f"totals.{USD}"]
    columns[f"totals.{USD}"] = [None if usd is None else str(usd) for usd in exact]
    return columns


def read_figures_of(folder: Path, logs: Iterable[Path]) -> tuple[SystemRun, ...] | None:
    """Return a shard's runs, one per system, from its results file; None if missing or invalid."""
    path = folder / FIGURES
    try:
        file: Any = import_module("pyarrow.parquet").ParquetFile(path)
        sums = _SUMS.validate_json(file.schema_arrow.metadata[KEY])
        if not _bound(folder, sums, {log.name for log in logs}):
            return None
        return _runs(folder, sums, file.read())
    except (OSError, KeyError, TypeError, ValueError, ValidationError):
        return None  # missing, truncated, or of another version: read the logs


def _bound(folder: Path, sums: ShardFigures, logs: set[str]) -> bool:
    if {name for run in sums.runs for name in run.logs} != logs:
        return False
    if file_digest(folder / FILE) != sums.manifest:
        return False
    return all((folder / path).stat().st_size == size for path, size in sums.sizes.items())


def _runs(folder: Path, sums: ShardFigures, table: Any) -> tuple[SystemRun, ...]:
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in table.column_names}
    for name in REPEATED:
        columns[name] = [sys.intern(text) if text else text for text in columns[name]]
    groups, exact = lru_cache(maxsize=None)(json.loads), lru_cache(maxsize=None)(Decimal)
    columns[GROUPS] = [groups(text) for text in columns[GROUPS]]
    texts = columns[f"totals.{USD}"]
    columns[f"totals.{USD}"] = [None if usd is None else exact(usd) for usd in texts]
    columns["totals"] = [*map(QueryTotals, *(columns[f"totals.{name}"] for name in TOTALS))]
    rows = map(QuestionResult, *(columns[field.name] for field in fields(QuestionResult)))
    attempts: dict[int, list[QuestionResult]] = defaultdict(list)
    for number, attempt in zip(columns[RUN], rows, strict=True):
        attempts[number].append(attempt)
    return tuple(
        SystemRun(
            facts=run.facts,
            paths=tuple(folder / name for name in run.logs),
            asked=run.asked,
            epochs=run.epochs,
            attempts=tuple(results),
            spend=dict(run.spend),
            paid=run.paid,
        )
        for run, results in ((run, attempts[index]) for index, run in enumerate(sums.runs))
    )


def joined(runs: Sequence[SystemRun], plan: ShardPlan | None = None) -> SystemRun:
    """Return one system's run, joined from shards; `plan` gives the number of its queries."""
    base = runs[0]
    spend: dict[CallKind, CallSum] = {}
    for kind, amount in (pair for run in runs for pair in run.spend.items()):
        spend[kind] = spend[kind].plus(amount) if kind in spend else amount
    name = f"{base.facts.suite} {base.facts.system}"
    spans = [span for shard in plan.shards for span in shard.parts] if plan else []
    planned = sum(span.last - span.first for span in spans if span.entry == name)
    attempts = (attempt for run in runs for attempt in run.attempts)
    return replace(
        base,
        paths=tuple(sorted((path for run in runs for path in run.paths), reverse=True, key=_age)),
        asked=max(sum(run.asked for run in runs), planned * base.epochs),
        attempts=tuple(sorted(attempts, key=attrgetter("question", "epoch"))),
        spend=spend,
        paid=_paid([run.paid for run in runs]),
    )


def _age(path: Path) -> tuple[str, Path]:
    return path.name, path


def _paid(bills: Sequence[Mapping[Scope, Paid] | None]) -> dict[Scope, Paid] | None:
    """Add up shards' paid dollars by scope (purpose of calls); None if a shard's are unknown."""
    totals: dict[Scope, Paid] = {}
    for bill in bills:
        if bill is None:
            return None
        for scope, paid in bill.items():
            had = totals.get(scope, Paid())
            high = None if had.high is None or paid.high is None else had.high + paid.high
            unknown, unpriced = had.unknown + paid.unknown, had.unpriced + paid.unpriced
            totals[scope] = Paid(had.low + paid.low, high, unknown, unpriced)
    return totals


def whole_plan(parent: Path, dirs: Iterable[Path]) -> ShardPlan | None:
    """Return the shard plan of the run in `parent` if `dirs` contain the whole run; else None."""
    return read_plan(parent) if any(parent.is_relative_to(folder) for folder in dirs) else None
