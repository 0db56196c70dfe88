"""What is exported: columns and their types, and the formats of files; schema.md says the rest.

A test holds schema.md to the types here. Money is decimal128(38, 18): sums are exact, and what does
not fit is refused, never rounded. Texts come from models: they are escaped, and never interpreted.
`otel` has the names of OpenTelemetry's conventions for generative AI, which have no word for money:
ours stand under `podium.`.
"""

import csv
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from importlib import import_module
from io import StringIO
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args, get_type_hints

from harness.errors import UserError
from harness.ledger.answers import Verdict
from harness.ledger.call import Call, Usd, plain
from harness.text import escape_controls, escape_markdown, markdown_cell


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One question put to one system; schema.md says what each column means."""

    task: str
    suite: str
    system: str
    purpose: str
    label: str
    question: str
    epoch: int
    sample: str | None
    verdict: Verdict
    score: float | None
    reason: str
    parsed: bool
    answer: str | None
    target: str | None
    calls: int
    attempts: int
    retries: int
    failed: int
    cached_calls: int
    discarded_calls: int
    steps: int | None
    depth: int | None
    stopped: str | None
    conductor_in: int | None
    conductor_out: int | None
    worker_in: int | None
    worker_out: int | None
    reasoning: int | None
    cache_read: int | None
    cache_write: int | None
    orchestration: int | None
    grader_calls: int
    grader_in: int | None
    grader_out: int | None
    usd: Usd
    usd_list: Usd
    usd_low: Usd
    usd_high: Usd
    usd_scoring: Usd
    usd_discarded: Usd
    n_unpriced: int
    n_unknown: int
    gpu_s: Decimal | None
    usd_gpu: Usd
    latency_s: float | None
    critical_path_s: float | None
    started: str | None
    plan: str | None
    plan_sha256: str | None
    logs: str
    journals: str


SAME = {
    "gen_ai.request.max_tokens": "max_tokens",
    "gen_ai.response.model": "served_model",
    "gen_ai.usage.cache_read.input_tokens": "cache_read",
    "gen_ai.usage.cache_creation.input_tokens": "cache_write",
    "gen_ai.usage.output_tokens": "output",
    "gen_ai.usage.reasoning.output_tokens": "reasoning",
    "gen_ai.workflow.name": "system",
    "gen_ai.agent.name": "role",
    "http.response.status_code": "http_status",
    "error.type": "error",
}
"""Attributes of the conventions that are a column of ours."""
TAKEN = frozenset({"stop", "input_uncached", *SAME.values()}) - {"system", "role"}
"""Columns that an attribute of the conventions says in full."""


def attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row as attributes; what is unknown has none, as the conventions ask."""
    provider, _, model = str(row["model"]).partition("/")
    parts = (row["input_uncached"], row["cache_read"], row["cache_write"])
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model or provider,
        "gen_ai.response.finish_reasons": [row["stop"]] if row["stop"] else None,
        "gen_ai.usage.input_tokens": None if None in parts else sum(parts),
        **{name: row[column] for name, column in SAME.items()},
    }
    ours = {f"podium.{name}": value for name, value in row.items() if name not in TAKEN}
    return {name: value for name, value in {**found, **ours}.items() if value is not None}


pa: Any = import_module("pyarrow")  # it has no types

SCHEMA = "podium-ledger-1"
TABLES: Mapping[str, type] = {"calls": Call, "queries": QueryRow}
DIGITS, PLACES = 38, 18
QUOTIENTS = frozenset({"gpu_s", "usd_gpu"})
"""Shares of time, made by a division that need not end: rounded half to even at `PLACES`."""
UNIT = Decimal(1).scaleb(-PLACES)


@cache
def schema_of(record: type) -> Any:
    """Return the Arrow schema of a flat dataclass, in its order."""
    return pa.schema([_field(*one) for one in get_type_hints(record).items()])


def _field(name: str, hint: Any) -> Any:
    kinds = {one if isinstance(one, type) else str for one in get_args(hint) or (hint,)}
    (kind,) = kinds - {type(None)}
    return pa.field(name, ARROW[kind], nullable=type(None) in kinds)


def table_of(record: type, rows: Sequence[Any]) -> Any:
    """Return rows as an Arrow table; UserError for dollars that do not fit."""
    schema = schema_of(record)
    values = list(zip(*map(attrgetter(*schema.names), rows), strict=True)) or [()] * len(schema)
    arrays = [_array(one, of_one) for one, of_one in zip(schema, values, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(column: Any, values: Sequence[Any]) -> Any:
    if column.name in QUOTIENTS:
        values = [None if one is None else one.quantize(UNIT, ROUND_HALF_EVEN) for one in values]
    try:
        return pa.array(values, type=column.type)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"Column {column.name} has a value that {column.type} cannot hold exactly ({error}); "
            "nothing was rounded: check the rates of the price book."
        ) from error


ARROW: dict[type, Any] = {
    str: pa.string(),
    int: pa.int64(),
    bool: pa.bool_(),
    float: pa.float64(),
    Decimal: pa.decimal128(DIGITS, PLACES),
}


parquet: Any = import_module("pyarrow.parquet")

GROUP_ROWS = 65_536
"""Rows of a Parquet row group: what a reader must hold of a column at once."""

Row = Mapping[str, Any]


class ParquetWriter:
    """Row groups of `GROUP_ROWS`, each of one or several system runs; zstd."""

    def __init__(self, path: Path, schema: Any) -> None:
        """Open a new file."""
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


class _LineWriter:
    """A text file to which each row is a line; `head` and `end` are before and after."""

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
    if format in ("jsonl", "otel"):
        made = attributes if format == "otel" else dict[str, Any]
        return _LineWriter(path, lambda row: json.dumps(made(row), ensure_ascii=False) + "\n")
    names: Sequence[str] = schema.names
    if format == "csv":
        head = csv_line(names) + "\n"
        return _LineWriter(path, lambda row: csv_line(row.values()) + "\n", head)
    if format == "md":
        head = _md_line(names) + "|---" * len(names) + "|\n"
        return _LineWriter(path, lambda row: _md_line(row.values()), head)
    head = HTML.format(head="".join(f"<th>{html.escape(name)}</th>" for name in names))
    return _LineWriter(path, _html_line, head, "</table>\n")


HTML = (
    '<!doctype html>\n<meta charset="utf-8">\n<title>podium: queries</title>\n'
    "<table border=1>\n<tr>{head}</tr>\n"
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
SUFFIX = {"otel": "otel.jsonl"}
WHOLE = ("parquet", "csv", "jsonl")
"""Formats that have both tables; `md` and `html` are of queries, `otel` of calls."""
FORMATS = (*WHOLE, "otel", "md", "html")


def csv_line(values: Iterable[Any]) -> str:
    """Return a line of a CSV file, without its end; no text in it is a spreadsheet's formula."""
    line = StringIO(newline="")
    csv.writer(line, lineterminator="").writerow(map(spreadsheet_safe, values))
    return line.getvalue()


def spreadsheet_safe(value: Any) -> Any:
    """Return a cell of a CSV file; what a spreadsheet would compute gets a quote before it."""
    # Texts come from models. Numbers stay as they are, decimals as text among them.
    if isinstance(value, str) and value.startswith(FORMULA) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _md_line(values: Iterable[Any]) -> str:
    cells = " | ".join(markdown_cell(_one_line(value)) for value in values)
    return escape_markdown(f"| {cells} |\n")


def _html_line(row: Row) -> str:
    cells = (html.escape(escape_controls(_one_line(value))) for value in row.values())
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"


def _one_line(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())
