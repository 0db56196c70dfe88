"""The formats in which tables are written: Parquet, CSV, JSON lines, Markdown, HTML, OpenTelemetry.

Decimals are written in full and in plain notation. Texts come from models and are data: they are
escaped, and never interpreted.
"""

import csv
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from harness.escape import cell, markdown, visible
from harness.ledger.otel import attributes
from harness.ledger.row import plain

pa: Any = import_module("pyarrow")  # it has no types
parquet: Any = import_module("pyarrow.parquet")

GROUP_ROWS = 65_536
"""Rows of a Parquet row group: what a reader must hold of a column at once."""

Row = Mapping[str, Any]


class Writer(Protocol):
    """One open file."""

    def write(self, table: Any) -> None:
        """Append an Arrow table."""
        ...

    def close(self, metadata: Mapping[str, str]) -> None:
        """Finish the file; `metadata` goes where the format has a place for it."""
        ...


class ParquetWriter:
    """Row groups of `GROUP_ROWS`, each of one or several sittings; zstd."""

    def __init__(self, path: Path, schema: Any) -> None:
        """Open a new file."""
        self._schema = schema
        self._writer = parquet.ParquetWriter(path, schema, compression="zstd")
        self._held: list[Any] = []
        self._rows = 0

    def write(self, table: Any) -> None:
        """Append a table; it is held until a group is full."""
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows >= GROUP_ROWS:
            self._flush()

    def close(self, metadata: Mapping[str, str]) -> None:
        """Write the footer."""
        self._flush()
        self._writer.add_key_value_metadata(dict(metadata))
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            together = pa.concat_tables(self._held).combine_chunks()
            self._writer.write_table(together, row_group_size=GROUP_ROWS)
        self._held, self._rows = [], 0


class LineWriter:
    """A text file to which each row is a line; `line` writes it, `ends` are before and after."""

    def __init__(
        self, path: Path, line: Callable[[Row], str], ends: tuple[str, str] = ("", "")
    ) -> None:
        """Open a new file."""
        self._file = path.open("x", encoding="utf-8", newline="")
        self._line = line
        self._file.write(ends[0])
        self._after = ends[1]

    def write(self, table: Any) -> None:
        """Append a table."""
        self._file.writelines(self._line(row) for row in rows_in(table))

    def close(self, metadata: Mapping[str, str]) -> None:
        """Finish the file."""
        self._file.write(self._after)
        self._file.close()


def rows_in(table: Any) -> Iterator[Row]:
    """Yield the rows of an Arrow table as plain values, decimals without trailing zeros."""
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield {name: shortest(value) for name, value in row.items()}


def shortest(value: Any) -> Any:
    """Return a decimal as text in plain notation without trailing zeros; others as they are."""
    if not isinstance(value, Decimal):
        return value
    text = plain(value)
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


def writer_for(format: str, path: Path, schema: Any) -> Writer:
    """Return an open writer of one of `FORMATS`."""
    if format == "parquet":
        return ParquetWriter(path, schema)
    names = list(schema.names)
    if format == "csv":
        return LineWriter(path, _csv_line, (_csv_line({name: name for name in names}), ""))
    if format == "jsonl":
        return LineWriter(path, _json_line)
    if format == "otel":
        return LineWriter(path, lambda row: _json_line(attributes(row)))
    if format == "md":
        head = _md_line({name: name for name in names}) + "|---" * len(names) + "|\n"
        return LineWriter(path, _md_line, (head, ""))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    return LineWriter(path, _html_line, (HTML.format(head=head), "</table>\n"))


HTML = (
    '<!doctype html>\n<meta charset="utf-8">\n<title>podium: queries</title>\n'
    "<table border=1>\n<tr>{head}</tr>\n"
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
SUFFIX = {"otel": "otel.jsonl"}
"""Of a file's name, where it is not the format's."""
WHOLE = ("parquet", "csv", "jsonl")
"""Formats that have both tables; `md` and `html` are of queries, `otel` of calls."""
FORMATS = (*WHOLE, "otel", "md", "html")


def _json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


class _Line:
    """What csv writes to."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text


def _csv_line(row: Row) -> str:
    line = _Line()
    csv.writer(line, lineterminator="\n").writerow(map(spreadsheet_safe, row.values()))
    return line.text


def spreadsheet_safe(value: Any) -> Any:
    """Return a cell of a CSV file; a text that a spreadsheet would compute gets a quote before it.

    Texts come from models. Numbers stay as they are, decimals as text among them.
    """
    if isinstance(value, str) and value.startswith(FORMULA) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _md_line(row: Row) -> str:
    cells = " | ".join(cell(_cell(value)) for value in row.values())
    return markdown(f"| {cells} |\n")


def _html_line(row: Row) -> str:
    return (
        "<tr>"
        + "".join(f"<td>{html.escape(visible(_cell(one)))}</td>" for one in row.values())
        + "</tr>\n"
    )


def _cell(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())
