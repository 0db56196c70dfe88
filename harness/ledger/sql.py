"""SQL over the exported ledger: DuckDB in memory, with two views and nothing else to reach.

A query reads `calls` and `queries`. It cannot name a file, load an extension, reach a network or
write anything: DuckDB is told so before it sees a query, and then its settings are locked.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb

from harness.errors import UserError
from harness.ledger.formats import shortest, spreadsheet_safe
from harness.ledger.on_the_fly import exported_tables

dataset: Any = import_module("pyarrow.dataset")  # it has no types

SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GiB",
    "temp_directory": "",
    "threads": "2",
}
LOCKS = (
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""In this order. The views are Arrow data sets, so that DuckDB itself needs no file."""
AT_ONCE = 10_000
MOST = 1_000
"""Rows that a table on a terminal shows."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a query returns, read as it is needed."""

    names: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    """Decimals as text in plain notation."""


def ask(source: Path, query: str) -> Result:
    """Run one SELECT over a run's directory, an export's directory or a Parquet file.

    UserError, in one sentence, for SQL that is wrong and for anything but one SELECT.
    """
    views = exported_tables(source)
    connection = opened(views)
    try:
        statements = connection.extract_statements(query)
        if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
            raise UserError("Only one SELECT at a time is run here; the ledger cannot be changed.")
        answer = connection.execute(statements[0])
        names = tuple(str(column[0]) for column in answer.description or ())
        return Result(names, _rows(answer, views))
    except duckdb.Error as error:
        raise _said(error, views) from error


def opened(views: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
    """Return a connection that sees these Parquet files as views, and no other file."""
    connection = duckdb.connect(":memory:", config=dict(SETTINGS))
    for name, path in views.items():
        connection.register(name, dataset.dataset(str(path), format="parquet"))
    for lock in LOCKS:
        connection.execute(lock)
    return connection


def _rows(answer: Any, views: Mapping[str, Path]) -> Iterator[tuple[Any, ...]]:
    try:
        while batch := answer.fetchmany(AT_ONCE):
            for row in batch:
                yield tuple(shortest(value) for value in row)
    except duckdb.Error as error:
        raise _said(error, views) from error


def _said(error: duckdb.Error, views: Mapping[str, Path]) -> UserError:
    first = " ".join(str(error).split("\n\n")[0].split())
    known = " and ".join(views)
    return UserError(f"{first.rstrip('.!?')}. Views: {known}; `DESCRIBE calls` lists columns.")


def as_text(result: Result, most: int = MOST) -> Iterator[str]:
    """Yield the lines of an aligned table; numbers to the right, NULL as such."""
    rows: list[tuple[str, ...]] = []
    numeric = [True] * len(result.names)
    more = 0
    for row in result.rows:
        if len(rows) == most:
            more += 1
            continue
        rows.append(tuple(map(cell, row)))
        numeric = [so and _is_number(one) for so, one in zip(numeric, row, strict=True)]
    widths = [
        max(len(line[index]) for line in (result.names, *rows))
        for index in range(len(result.names))
    ]
    for line in (result.names, tuple("-" * width for width in widths), *rows):
        cells = zip(line, widths, numeric, strict=True)
        padded = (one.rjust(width) if so else one.ljust(width) for one, width, so in cells)
        yield "  ".join(padded).rstrip()
    if more:
        yield f"({more} more rows; --format csv or json has all)"


def as_csv(result: Result) -> Iterator[str]:
    """Yield the lines of a CSV file; NULL is empty, and no text is a spreadsheet's formula."""
    line: list[str] = []
    writer = csv.writer(_To(line.append), lineterminator="")
    for row in chain([result.names], result.rows):
        writer.writerow(map(spreadsheet_safe, row))
        yield line.pop()


def as_json(result: Result) -> Iterator[str]:
    """Yield one JSON object per row; decimals are strings."""
    for row in result.rows:
        found = dict(zip(result.names, map(_json, row), strict=True))
        yield json.dumps(found, ensure_ascii=False, default=str)


STYLES: Mapping[str, Callable[[Result], Iterator[str]]] = {
    "table": as_text,
    "csv": as_csv,
    "json": as_json,
}


def cell(value: object) -> str:
    """Return a value for a terminal: on one line, and no control character of a model's."""
    if value is None:
        return "NULL"
    return "".join(one if one.isprintable() else " " for one in str(value))


def _is_number(value: object) -> bool:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return True
    return isinstance(value, str) and value.replace(".", "", 1).removeprefix("-").isdecimal()


def _json(value: object) -> object:
    return str(value) if isinstance(value, float) and not isfinite(value) else value


@dataclass(frozen=True, slots=True)
class _To:
    """What csv writes to."""

    write: Callable[[str], None]
