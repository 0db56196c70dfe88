"""What shards' logs come to: kept beside each shard's manifest, and joined as one run of a system.

A file of figures is bound to the manifest's bytes, thus to its root, and to the sizes of the files
that it covers; where one differs, and for `--deep`, the logs are read. Nothing is rounded.
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
TOTALS = tuple(one.name for one in fields(QueryTotals))
OWN = tuple(one.name for one in fields(QuestionResult) if one.name not in ("totals", "groups"))
RUN, GROUPS, USD = "run", "groups", "usd"
REPEATED = (
    *("reason", "kind", "topic", "stopped", "fallback", "plan_fault", "question", "vote"),
    "plan_shape",
)
"""Columns of texts that stand again and again, in other shards, too: each is held once."""


@dataclass(frozen=True, slots=True)
class ShardSums:
    """A system run of a shard without its attempts."""

    facts: RunFacts
    logs: tuple[str, ...]
    asked: int
    epochs: int
    spend: tuple[tuple[CallKind, CallSum], ...]
    paid: dict[Scope, Paid] | None


@dataclass(frozen=True, slots=True)
class ShardFigures:
    """What a file of figures says beside its rows."""

    root: str
    manifest: str
    """Digest of its file."""
    sizes: dict[str, int]
    """Of the files that it covers, in bytes."""
    runs: tuple[ShardSums, ...]
    schema: int = 1


_SUMS = TypeAdapter(ShardFigures)


def write_figures(folder: Path, runs: Sequence[SystemRun]) -> None:
    """Write what the logs of a shard come to, bound to its manifest as it stands."""
    manifest = read_manifest(folder / FILE)
    sums = tuple(
        ShardSums(one.facts, one.logs, one.asked, one.epochs, tuple(one.spend.items()), paid)
        for one in runs
        for paid in [None if one.paid is None else dict(one.paid)]
    )
    sizes = {one.path: one.size for one in manifest.files}
    made = ShardFigures(manifest.root, file_digest(folder / FILE), sizes, sums)
    rows = [(number, one) for number, run in enumerate(runs) for one in run.attempts]
    table: Any = import_module("pyarrow").table(_columns(rows))
    table = table.replace_schema_metadata({KEY: _SUMS.dump_json(made, by_alias=True)})
    packed = BytesIO()
    import_module("pyarrow.parquet").write_table(table, packed, compression="zstd")
    replace_file(folder / FIGURES, packed.getvalue())


def _columns(rows: Sequence[tuple[int, QuestionResult]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {RUN: [number for number, _ in rows]}
    found |= {name: [getattr(one, name) for _, one in rows] for name in OWN}
    found[GROUPS] = [json.dumps(dict(one.groups)) for _, one in rows]
    for name in TOTALS:
        found[f"totals.{name}"] = [getattr(one.totals, name) for _, one in rows]
    exact = found[f"totals.{USD}"]
    found[f"totals.{USD}"] = [None if usd is None else str(usd) for usd in exact]
    return found


def read_figures_of(folder: Path, logs: Iterable[Path]) -> tuple[SystemRun, ...] | None:
    """Return the system runs of a shard; None where its figures are not those of these logs."""
    path = folder / FIGURES
    try:
        file: Any = import_module("pyarrow.parquet").ParquetFile(path)
        sums = _SUMS.validate_json(file.schema_arrow.metadata[KEY])
        if not _bound(folder, sums, {one.name for one in logs}):
            return None
        return _runs(folder, sums, file.read())
    except (OSError, KeyError, TypeError, ValueError, ValidationError):
        return None  # none, cut short, or of another version: the logs have all of it


def _bound(folder: Path, sums: ShardFigures, logs: set[str]) -> bool:
    if {name for run in sums.runs for name in run.logs} != logs:
        return False
    if file_digest(folder / FILE) != sums.manifest:
        return False
    return all((folder / path).stat().st_size == size for path, size in sums.sizes.items())


def _runs(folder: Path, sums: ShardFigures, table: Any) -> tuple[SystemRun, ...]:
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in table.column_names}
    for name in REPEATED:
        columns[name] = [sys.intern(one) if one else one for one in columns[name]]
    groups, exact = lru_cache(maxsize=None)(json.loads), lru_cache(maxsize=None)(Decimal)
    columns[GROUPS] = [groups(one) for one in columns[GROUPS]]
    told = columns[f"totals.{USD}"]
    columns[f"totals.{USD}"] = [None if usd is None else exact(usd) for usd in told]
    columns["totals"] = [*map(QueryTotals, *(columns[f"totals.{name}"] for name in TOTALS))]
    rows = map(QuestionResult, *(columns[one.name] for one in fields(QuestionResult)))
    attempts: dict[int, list[QuestionResult]] = defaultdict(list)
    for number, made in zip(columns[RUN], rows, strict=True):
        attempts[number].append(made)
    return tuple(
        SystemRun(
            facts=one.facts,
            paths=tuple(folder / name for name in one.logs),
            asked=one.asked,
            epochs=one.epochs,
            attempts=tuple(got),
            spend=dict(one.spend),
            paid=one.paid,
        )
        for one, got in ((one, attempts[at]) for at, one in enumerate(sums.runs))
    )


def joined(runs: Sequence[SystemRun], plan: ShardPlan | None = None) -> SystemRun:
    """Return one system's runs in shards as one; a whole plan tells how many pairs it asks."""
    first = runs[0]
    spend: dict[CallKind, CallSum] = {}
    for kind, one in (pair for run in runs for pair in run.spend.items()):
        spend[kind] = spend[kind].plus(one) if kind in spend else one
    name = f"{first.facts.suite} {first.facts.system}"
    parts = [part for shard in plan.shards for part in shard.parts] if plan else []
    planned = sum(part.last - part.first for part in parts if part.entry == name)
    attempts = (attempt for run in runs for attempt in run.attempts)
    return replace(
        first,
        paths=tuple(sorted((path for run in runs for path in run.paths), reverse=True, key=_age)),
        asked=max(sum(run.asked for run in runs), planned * first.epochs),
        attempts=tuple(sorted(attempts, key=attrgetter("question", "epoch"))),
        spend=spend,
        paid=_paid([run.paid for run in runs]),
    )


def _age(path: Path) -> tuple[str, Path]:
    return path.name, path


def _paid(parts: Sequence[Mapping[Scope, Paid] | None]) -> dict[Scope, Paid] | None:
    """Add up what was paid; None, which leaves it to the logs, where one shard does not know."""
    found: dict[Scope, Paid] = {}
    for part in parts:
        if part is None:
            return None
        for scope, one in part.items():
            had = found.get(scope, Paid())
            high = None if had.high is None or one.high is None else had.high + one.high
            unknown, unpriced = had.unknown + one.unknown, had.unpriced + one.unpriced
            found[scope] = Paid(had.low + one.low, high, unknown, unpriced)
    return found


def whole_plan(parent: Path, dirs: Iterable[Path]) -> ShardPlan | None:
    """Return the plan of a run where directories name all of it; None for some shards alone."""
    return read_plan(parent) if any(parent.is_relative_to(one) for one in dirs) else None
