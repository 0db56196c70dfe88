"""Exports the ledger (tables of calls and queries) to files, and runs SQL queries over them.

The same logs, journals and podium version give the same bytes. An export replaces only files that
an earlier export listed in export.json. SQL queries run in a DuckDB connection that can read only
the exported tables.
"""

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import chain, islice
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import duckdb

from podium.harness.errors import UserError, no_such
from podium.harness.files import refuse_unwritable
from podium.harness.ledger.call import Call, attributes, shortest
from podium.harness.ledger.join import merged
from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.logs import heed_private
from podium.harness.ledger.manifest import file_digest
from podium.harness.ledger.queries import QueryRow, answers_of, query_rows
from podium.harness.ledger.runs import (
    Gathered,
    RunFiles,
    gather,
    has_system_runs,
    naming_system_run,
    system_runs_below,
)
from podium.harness.parallel import LARGE, map_over_processes, without_collector
from podium.harness.text import csv_line, escape_markdown, markdown_cell

pa: Any = import_module("pyarrow")  # untyped, like its submodules
parquet: Any = import_module("pyarrow.parquet")
dataset: Any = import_module("pyarrow.dataset")

SCHEMA = "podium-ledger-1"
TABLES: Mapping[str, type] = {"calls": Call, "queries": QueryRow}
DIGITS, PLACES = 38, 18
QUOTIENTS = frozenset({"gpu_s", "usd_gpu"})
"""Columns whose values come from a division, rounded half to even to `PLACES` decimals."""
UNIT = Decimal(1).scaleb(-PLACES)


@cache
def schema_of(record: type) -> Any:
    """Return the Arrow schema of a flat dataclass such as `Call`, in the order of its fields."""
    return pa.schema([_field(*item) for item in get_type_hints(record).items()])


def _field(name: str, hint: Any) -> Any:
    kinds = {kind if isinstance(kind, type) else str for kind in get_args(hint) or (hint,)}
    (kind,) = kinds - {type(None)}
    return pa.field(name, ARROW[kind], nullable=type(None) in kinds)


def table_of(record: type, rows: Sequence[Any]) -> Any:
    """Return rows as an Arrow table; UserError if a column's type cannot hold a value exactly."""
    schema = schema_of(record)
    values = list(zip(*map(attrgetter(*schema.names), rows), strict=True)) or [()] * len(schema)
    arrays = [_array(column, cells) for column, cells in zip(schema, values, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(column: Any, values: Sequence[Any]) -> Any:
    if column.name in QUOTIENTS:
        values = [None if usd is None else usd.quantize(UNIT, ROUND_HALF_EVEN) for usd in values]
    try:
        return pa.array(values, type=column.type)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"Column {column.name} has a value that {column.type} cannot hold exactly ({error}). "
            "Nothing was rounded or exported. Check the rates in the price book."
        ) from error


ARROW: dict[type, Any] = {
    str: pa.string(),
    int: pa.int64(),
    bool: pa.bool_(),
    float: pa.float64(),
    Decimal: pa.decimal128(DIGITS, PLACES),
}


GROUP_ROWS = 65_536
"""Rows of a Parquet row group, the part of a file that a reader holds in memory."""

Row = Mapping[str, Any]


class ParquetWriter:
    """Writes Arrow tables to a zstd-compressed Parquet file, in groups of `GROUP_ROWS` rows."""

    def __init__(self, path: Path, schema: Any) -> None:
        """Create the Parquet file, for tables with this Arrow schema."""
        self._writer = parquet.ParquetWriter(path, schema, compression="zstd")
        self._held: list[Any] = []
        self._rows = 0

    def write(self, table: Any) -> None:
        """Append an Arrow table; its rows are buffered until a row group is full."""
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows >= GROUP_ROWS:
            self._flush()

    def close(self, metadata: Mapping[str, str]) -> None:
        """Write the buffered rows and the footer with `metadata`, and close the file."""
        self._flush()
        self._writer.add_key_value_metadata(dict(metadata))
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            together = pa.concat_tables(self._held).combine_chunks()
            self._writer.write_table(together, row_group_size=GROUP_ROWS)
        self._held, self._rows = [], 0


class _LineWriter:
    """Writes tables to a text file: `head` first, then one line per row, then `end`."""

    def __init__(
        self, path: Path, line: Callable[[Row], str], head: str = "", end: str = ""
    ) -> None:
        self._file = path.open("x", encoding="utf-8", newline="")
        self._line, self._end = line, end
        self._file.write(head)

    def write(self, table: Any) -> None:
        self._file.writelines(self._line(row) for row in rows_in(table))

    def close(self, metadata: Mapping[str, str]) -> None:
        self._file.write(self._end)
        self._file.close()


Writer = ParquetWriter | _LineWriter


def rows_in(table: Any) -> Iterator[Row]:
    """Yield the rows of an Arrow table; decimals are texts without trailing zeros."""
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield {name: shortest(value) for name, value in row.items()}


def writer_for(format: str, path: Path, schema: Any) -> Writer:
    """Return an open writer of table rows to a new file in one of the `FORMATS`, e.g. `csv`."""
    if format == "parquet":
        return ParquetWriter(path, schema)
    if format in ("jsonl", "otel"):
        convert = attributes if format == "otel" else dict[str, Any]
        return _LineWriter(path, lambda row: json.dumps(convert(row), ensure_ascii=False) + "\n")
    names: Sequence[str] = schema.names
    if format == "csv":
        head = csv_line(names) + "\n"
        return _LineWriter(path, lambda row: csv_line(row.values()) + "\n", head)
    head = _md_line(names) + "|---" * len(names) + "|\n"
    return _LineWriter(path, lambda row: _md_line(row.values()), head)


SUFFIX = {"otel": "otel.jsonl"}
WHOLE = ("parquet", "csv", "jsonl")
"""Formats for both tables; `md` exports only the table `queries`, `otel` only `calls`."""
FORMATS = (*WHOLE, "otel", "md")


def _md_line(values: Iterable[Any]) -> str:
    cells = " | ".join(
        markdown_cell("" if value is None else " ".join(str(value).split())) for value in values
    )
    return escape_markdown(f"| {cells} |\n")


RunTables = tuple[Mapping[str, Any], set[str]]
"""The Arrow tables (`calls`, `queries`) of one system run by name, and the run's price books as
`NAME sha256:DIGEST`."""


def tables_of(files: RunFiles) -> RunTables:
    """Return the ledger tables of one system run; UserError if a log or journal is damaged."""
    with without_collector(), naming_system_run(files):
        ledger = gather(files, answers=True)
        rows = merged(ledger).rows
        queries = query_rows(rows, answers_of(ledger))
        tables = {"calls": table_of(Call, rows), "queries": table_of(QueryRow, queries)}
        return tables, _books(ledger)


def _books(ledger: Gathered) -> set[str]:
    prices = [log.facts.prices for log in ledger.logs if log.facts]
    books = [(book.get("name"), book.get("sha256")) for book in prices]
    heads = [journal.head for journal in ledger.journals]
    books += [(head.get("book"), head.get("book_sha256")) for head in heads]
    return {f"{name} sha256:{sha256}" for name, sha256 in books if name and sha256}


def each_of(system_runs: Sequence[RunFiles], large: int = LARGE) -> Iterator[RunTables]:
    """Yield each run's tables in order; from `large` bytes in total, two processes read them."""
    many = sum(files.size for files in system_runs) >= large
    yield from map_over_processes(tables_of, system_runs, many=many, cap=2)  # each holds a run


LISTED = "export.json"
DICTIONARY = "dictionary.json"


def export(folder: Path, out: Path, format: str = "parquet") -> str:
    """Write the ledger of a directory's runs to `out`; return a sentence on what was written."""
    system_runs = system_runs_below(folder)
    names = _names(format)
    _refuse(folder, out, [*names.values(), PAGE, DICTIONARY, LISTED])
    heed_private(path for files in system_runs for path in files.logs)
    with _beside(out) as fresh:
        writers = {
            table: writer_for(format, fresh / name, described(schema_of(TABLES[table]), table))
            for table, name in names.items()
        }
        counts, books = dict.fromkeys(TABLES, 0), set[str]()
        try:
            for tables, run_books in each_of(system_runs):
                for table, rows in tables.items():
                    counts[table] += rows.num_rows
                    if table in writers:
                        writers[table].write(rows)
                books.update(run_books)
        finally:
            about = {"podium.schema": SCHEMA, "podium.version": version("podium")}
            about["podium.price_books"] = "; ".join(sorted(books))
            for table, writer in writers.items():
                columns_json = json.dumps(dictionary_of(table), ensure_ascii=False)
                writer.close({**about, "podium.dictionary": columns_json})
        columns = [column for table in TABLES for column in dictionary_of(table)]
        (fresh / DICTIONARY).write_text(json.dumps(columns, indent=1, ensure_ascii=False) + "\n")
        shutil.copyfile(SOURCE, fresh / PAGE)
        new = {path.name: file_digest(path) for path in sorted(fresh.iterdir())}
        listed = {"schema": SCHEMA, "files": dict(sorted({**_listed(out), **new}.items()))}
        (fresh / LISTED).write_text(json.dumps(listed, indent=1) + "\n")
        size = sum((fresh / name).replace(out / name).stat().st_size for name in (*new, LISTED))
    return (
        f"{counts['calls']} attempts in {counts['queries']} queries, {size} bytes: "
        f"{', '.join((*new, LISTED))} in {out}; {PAGE} describes each column, and "
        f"{DICTIONARY} does so for programs."
    )


def _names(format: str) -> dict[str, str]:
    if format not in FORMATS:
        raise no_such("format", format, FORMATS, "there are: ")
    tables = TABLES if format in WHOLE else ("calls" if format == "otel" else "queries",)
    return {table: f"{table}.{SUFFIX.get(format, format)}" for table in tables}


def _refuse(folder: Path, out: Path, names: list[str]) -> None:
    refuse_unwritable(out, "--out")
    place, run = out.resolve(), folder.resolve()
    if place.is_relative_to(run) and FOLDER in place.relative_to(run).parts:
        raise UserError(f"{out} holds journals of the run. Name another --out.")
    ours = _listed(out)
    for name in names:
        path = out / name
        if path.exists() and name != LISTED and ours.get(name) != file_digest(path):
            raise UserError(
                f"{path} was not written by an export, or has changed since. Name another --out."
            )
    if (out / LISTED).exists() and not ours:
        raise UserError(f"{out / LISTED} was not written by an export. Name another --out.")


def _listed(out: Path) -> dict[str, str]:
    try:
        value: object = json.loads((out / LISTED).read_text())
    except (OSError, ValueError):
        return {}
    stored = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    files: object = stored.get("files")
    ours = stored.get("schema") == SCHEMA and isinstance(files, dict)
    return cast(dict[str, str], files) if ours else {}


@contextmanager
def _beside(out: Path) -> Generator[Path]:
    out.mkdir(parents=True, exist_ok=True)
    fresh = out / ".podium-export"
    try:
        fresh.mkdir(mode=0o700)
    except FileExistsError:
        raise UserError(
            f"{fresh} exists. Wait until the other export ends, or remove the "
            "folder if that export was killed."
        ) from None
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def exported_tables(source: Path) -> Mapping[str, Path]:
    """Return table name -> Parquet file; a run is exported first. UserError if there is none."""
    if not source.exists():
        raise UserError(f"There is no {source}. Name the directory of a run or an export.")
    if source.suffix == ".parquet":
        return _checked({source.stem if source.stem in TABLES else "calls": source})
    if has_system_runs(source):  # a run's own directory may hold an export as well
        folder = _made(source)
        return {name: folder / f"{name}.parquet" for name in TABLES}
    there = (source / f"{name}.parquet" for name in TABLES)
    paths = {path.stem: path for path in there if path.is_file()}
    if not paths:
        raise UserError(f"{source} has neither logs nor calls.parquet. Name a run or an export.")
    return _checked(paths)


def _checked(paths: Mapping[str, Path]) -> Mapping[str, Path]:
    for path in paths.values():
        try:
            stored: Mapping[bytes, bytes] = parquet.read_metadata(path).metadata or {}
        except (OSError, ValueError) as error:
            raise UserError(f"{path} is damaged or no Parquet file. Export again.") from error
        schema = stored.get(b"podium.schema", b"").decode()
        if schema != SCHEMA:
            raise UserError(
                f"{path} was not exported by this version of podium (schema: {schema or 'none'}). "
                "Export the run again: `podium ledger export`."
            )
    return paths


def _made(source: Path) -> Path:
    """Export a run to a temporary folder, deleted when this process ends; return the folder."""
    folder = Path(tempfile.mkdtemp(prefix="podium-sql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    export(source, folder)
    return folder


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
"""SQL that locks a DuckDB connection, run in this order. The tables are Arrow data sets, so DuckDB
needs no access to files."""
AT_ONCE = 10_000
MOST = 1_000


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an SQL query on the ledger: column names, and rows that are read lazily."""

    names: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    """Tuples of values; decimals are texts without an exponent."""


def ask(source: Path, query: str) -> Result:
    """Run one SELECT on a run, an export or a Parquet file; UserError for any other statement."""
    views = exported_tables(source)
    connection = opened(views)
    try:
        statements = connection.extract_statements(query)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise UserError("Write one SELECT statement at a time. The ledger cannot be changed.")
        answer = connection.execute(statements[0])
        names = tuple(str(column[0]) for column in answer.description or ())
        return Result(names, _rows(answer, views))
    except duckdb.Error as error:
        raise _said(error, views) from error


def opened(views: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection that sees only these Parquet files, as views (by view name)."""
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
    message = " ".join(str(error).split("\n\n")[0].split())
    names = " and ".join(views)
    return UserError(f"{message.rstrip('.!?')}. Views: {names}; `DESCRIBE calls` lists columns.")


def as_text(result: Result, limit: int = MOST) -> Iterator[str]:
    """Yield a result as an aligned table of at most `limit` rows, and the number of other rows."""
    values = list(islice(result.rows, limit))
    numeric = [all(map(_is_number, column)) for column in zip(*values, strict=True)]
    rows = [tuple(map(cell, row)) for row in values]
    widths = [max(map(len, column)) for column in zip(result.names, *rows, strict=True)]
    numeric = numeric or [True] * len(widths)
    for line in (result.names, tuple("-" * width for width in widths), *rows):
        cells = zip(line, widths, numeric, strict=True)
        padded = (text.rjust(width) if so else text.ljust(width) for text, width, so in cells)
        yield "  ".join(padded).rstrip()
    if remaining := sum(1 for _ in result.rows):
        yield f"({remaining} more rows; --format csv or json shows all)"


def as_csv(result: Result) -> Iterator[str]:
    """Yield a query result as CSV lines: nulls are empty; a `'` precedes spreadsheet formulas."""
    yield from map(csv_line, chain([result.names], result.rows))


def as_json(result: Result) -> Iterator[str]:
    """Yield a query result as one JSON object per row; decimals are strings."""
    for row in result.rows:
        plain = (str(one) if isinstance(one, float) and not isfinite(one) else one for one in row)
        record = dict(zip(result.names, plain, strict=True))
        yield json.dumps(record, ensure_ascii=False, default=str)


STYLES: Mapping[str, Callable[[Result], Iterator[str]]] = {
    "table": as_text,
    "csv": as_csv,
    "json": as_json,
}


def cell(value: object) -> str:
    """Return a table cell as text for a terminal: on one line, without control characters."""
    if value is None:
        return "NULL"
    return "".join(character if character.isprintable() else " " for character in str(value))


def _is_number(value: object) -> bool:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return True
    return isinstance(value, str) and value.replace(".", "", 1).removeprefix("-").isdecimal()


PAGE = "schema.md"
SOURCE = Path(__file__).with_name(PAGE)
COLUMN = re.compile(
    r"\| `(?P<column>\w+)` \| (?P<type>[^|]+) \| (?P<unit>[^|]*)\| (?P<null>[^|]*)\| "
)
UNKNOWN, NEVER = "unknown; it is not 0", "never"


@cache
def dictionary_of(table: str) -> tuple[Mapping[str, str], ...]:
    """Return the columns of the table `calls` or `queries`, with units and meanings (schema.md)."""
    _, _, text = SOURCE.read_text(encoding="utf-8").partition(f"\n## {table}\n")
    lines = text.partition("\n## ")[0].splitlines()
    return tuple(
        {
            "table": table,
            **{name: value.strip() for name, value in match.groupdict().items()},
            "null": UNKNOWN if match["null"].strip() else NEVER,
            "meaning": line[match.end() :].removesuffix(" |"),
        }
        for line in lines
        if (match := COLUMN.match(line))
    )


def described(schema: Any, table: str) -> Any:
    """Return a table's Arrow schema with each column's unit, meaning and null rule as metadata."""
    for index, row in enumerate(dictionary_of(table)):
        metadata = {"description": row["meaning"], "unit": row["unit"], "null": row["null"]}
        schema = schema.set(index, schema.field(index).with_metadata(metadata))
    return schema
