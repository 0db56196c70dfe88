"""The texts of every query, in files of `SHARD` queries that a page loads on demand.

harness/ledger/details.py builds the contents. It never reads the texts of suites that may not be
published: they are null.
"""

import json
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import inf, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from podium.harness.ledger.details import (
    Pair,
    QueryDetail,
    RunQueries,
    as_json,
    in_full,
    run_queries,
)
from podium.harness.ledger.runs import RunFiles, system_runs_below
from podium.harness.parallel import LARGE, map_over_processes, without_collector
from podium.reports import render
from podium.reports.audit import Audit, InvariantVerdict
from podium.reports.audit.audit_report import system_run_name
from podium.reports.site.index import SHARD, SiteBlock
from podium.reports.site.pages import data_script

LONGEST = 32_000
"""Maximum characters of a text in a file; `podium view` reads the logs and shows whole texts."""
MOST = 20_000
"""Default maximum of queries whose texts are written: some 100 MB of files."""


@dataclass(frozen=True, slots=True)
class RowTexts:
    """One row of a report, with the logs from which the texts of its queries are read."""

    row: int
    """The row's number among the rows of the report."""
    folder: Path
    """The directory, given by the user, that contains the row's logs."""
    files: RunFiles
    places: Mapping[Pair, int]
    """Index of each (question, epoch) pair, from `SiteBlock.places`."""
    shown: bool
    """False if no text of the suite may be published."""
    verdicts: tuple[InvariantVerdict, ...]
    """The verdicts of the directory's audit, with the faults of this system run only."""

    @property
    def numbers(self) -> range:
        """The numbers of the row's text files, from 0."""
        return range(-(-len(self.places) // SHARD))


def row_texts(
    dirs: Sequence[Path], shown: Iterable[SiteBlock], audits: Mapping[Path, Audit]
) -> tuple[RowTexts, ...]:
    """Return, for each row of the site's blocks, the logs with its texts and its audit's faults."""
    pairs = [(folder, files) for folder in dirs for files in system_runs_below(folder)]
    by_log = {log.resolve(): pair for pair in reversed(pairs) for log in pair[1].logs}
    texts: list[RowTexts] = []
    for block in shown:
        places = block.places()
        for number, (_, system_run) in enumerate(block.pairs, block.first):
            folder, files = by_log[system_run.paths[0].resolve()]
            verdicts = own_faults(audits[folder], files) if folder in audits else ()
            files = replace(files, logs=system_run.paths)
            texts.append(RowTexts(number, folder, files, places, block.shown, verdicts))
    return tuple(texts)


def own_faults(audit: Audit, files: RunFiles) -> tuple[InvariantVerdict, ...]:
    """Return an audit's verdict on each invariant, with the faults of one system run only."""
    name = system_run_name(files)
    return tuple(
        replace(verdict, faults=tuple(fault for fault in verdict.faults if fault.task == name))
        for verdict in audit.verdicts
    )


@contextmanager
def text_files(
    rows: Sequence[RowTexts], include: bool | None = None
) -> Generator[Mapping[str, render.Content]]:
    """Yield name -> content of the files with queries' texts; empty if texts are not wanted.

    `include`: whether texts are wanted; None: for at most `MOST` queries. Worker processes write
    the files to a temporary folder; each content moves its file to the site.
    """
    if not _are_wanted(rows, include):
        yield {}
        return
    with TemporaryDirectory(prefix="podium-texts-") as scratch:
        many = sum(row.files.size for row in rows) >= LARGE
        names_by_row = map_over_processes(partial(_write, Path(scratch)), rows, many=many)
        names = [name for some in names_by_row for name in some]
        yield {name: partial(shutil.move, Path(scratch, name)) for name in names}


def left_out(rows: Sequence[RowTexts], include: bool | None) -> tuple[str, ...]:
    """Return the notice of a site without queries' texts; empty if the texts are included."""
    notice = f"The texts of {_queries(rows):,} queries are not included; `podium view` shows them."
    return () if _are_wanted(rows, include) else (notice,)


def _are_wanted(rows: Sequence[RowTexts], include: bool | None) -> bool:
    return _queries(rows) <= MOST if include is None else include


def _queries(rows: Sequence[RowTexts]) -> int:
    return sum(len(row.places) for row in rows)


def _write(scratch: Path, row: RowTexts) -> list[str]:
    """Write the text files of one row, and return their names; also called in worker processes."""
    names = [f"{_name(row, number)}.js" for number in row.numbers]
    for number, name in zip(row.numbers, names, strict=True):
        path = scratch / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_shard(row, number, LONGEST), encoding="ascii")
    read_queries.cache_clear()
    return [f"data/{name}" for name in names]


def _name(row: RowTexts, number: int) -> str:
    return f"text/{row.row}/{number}"


def text_shard(row: RowTexts, number: int, limit: float = inf) -> str:
    """Return the script of one file, `data/text/<row>/<number>.js`: `podium.put(name, base64)`.

    Texts longer than `limit` characters are truncated; `podium view` sets no limit. IndexError for
    a number without a file.
    """
    if number not in row.numbers:
        raise IndexError(number)
    start = number * SHARD
    queries = ["null"] * min(SHARD, len(row.places) - start)
    read = read_queries(row.files, row.files.size)
    run = replace(read, shown=read.shown and row.shown)
    here = [pair for pair in run.rows if row.places.get(pair, -1) // SHARD == number]
    for pair, detail in zip(here, in_full(run, here), strict=True):
        queries[row.places[pair] - start] = json.dumps(_cut(_detail(row, detail), limit))
    # All but ASCII is escaped, so that lone surrogates survive, too.
    return data_script(_name(row, number), f'{{"queries":[{",".join(queries)}]}}'.encode("ascii"))


@lru_cache(maxsize=2)  # a page shows two systems side by side
def read_queries(files: RunFiles, size: int) -> RunQueries:
    """Return the queries of a system run; `size` invalidates the cache if its files have grown."""
    with without_collector():
        return run_queries(files)


def _detail(of: RowTexts, detail: QueryDetail) -> dict[str, Any]:
    row = detail.row
    keys = {f"sample {row.question} epoch {row.epoch}"}
    keys |= {name for call in detail.calls for name in (f"call {call.call}", f"event {call.event}")}
    checks = [
        {
            "invariant": verdict.invariant,
            "title": verdict.title,
            "status": verdict.status,
            "said": [fault.said for fault in verdict.faults if fault.where in keys],
        }
        for verdict in of.verdicts
    ]
    return {"row": of.row, **as_json(detail, of.folder), "checks": checks}


def _cut(value: Any, limit: float) -> Any:
    """Return JSON values with every text longer than `limit` characters truncated."""
    if isinstance(value, str):
        return value if len(value) <= limit else {"cut": value[: int(limit)], "length": len(value)}
    if isinstance(value, dict):
        return {name: _cut(item, limit) for name, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_cut(item, limit) for item in cast(list[Any], value)]
    # An edited log may contain NaN or infinity, which scripts cannot parse.
    return None if isinstance(value, float) and not isfinite(value) else value
