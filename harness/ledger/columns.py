"""What is exported: columns, their types and meanings, and the formats of files.

A column's meaning stands beside its field's type, so that schema.md cannot differ from the code.
Money is decimal128(38, 18): sums are exact, and what does not fit is refused, never rounded. Texts
come from models: they are escaped, and never interpreted. `otel` has the names of OpenTelemetry's
conventions for generative AI, which have no word for money: ours stand under `podium.`.
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
from typing import Annotated, Any, get_args, get_type_hints

from harness.errors import UserError
from harness.ledger.answers import Verdict
from harness.ledger.call import (
    Call,
    EpochColumn,
    GpuColumn,
    LabelColumn,
    SuiteColumn,
    SystemColumn,
    Usd,
    plain,
)
from harness.text import escape_controls, escape_markdown, markdown_cell


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One question put to one system. Tokens are counts, `usd_*` US dollars, `*_s` seconds."""

    task: Annotated[str, "Inspect's task, e.g. `aime25 moa-lite`."]
    suite: SuiteColumn
    system: SystemColumn
    purpose: Annotated[
        str,
        "`eval`; or `selection` for questions by which a system was chosen: no part of a result.",
    ]
    label: LabelColumn
    question: Annotated[str, "Id of the question in its suite."]
    epoch: EpochColumn
    sample: Annotated[str | None, "uuid of the newest sample; None when no log has one."]
    verdict: Annotated[Verdict, "`right`, `wrong`, `partly` (by the suite's card) or `unscored`."]
    score: Annotated[float | None, "From 0 to 1; NULL when unscored."]
    reason: Annotated[
        str, "What the grade says of itself, or why there is none; a kind only for withheld suites."
    ]
    parsed: Annotated[
        bool, "False when no answer could be found in the reply (wrong, and counted apart)."
    ]
    answer: Annotated[
        str | None,
        "The answer found in the reply; `withheld` where the suite may not be published.",
    ]
    target: Annotated[
        str | None, "The gold answer; `withheld` where the suite may not be published."
    ]
    calls: Annotated[int, "Calls of the graded attempt; graders' are apart."]
    attempts: Annotated[
        int, "Attempts of these calls: a call that HTTP tried three times is three."
    ]
    retries: Annotated[int, "`attempts` less `calls`."]
    failed: Annotated[int, "Attempts that ended in an error."]
    cached_calls: Annotated[int, "Calls answered by the local cache: priced in `usd_list`, paid 0."]
    discarded_calls: Annotated[
        int,
        "Calls of attempts at the question that were not graded; only `usd_discarded` has them.",
    ]
    steps: Annotated[int | None, "Steps of the workflow that were run."]
    depth: Annotated[int | None, "Steps on the longest chain of reads."]
    stopped: Annotated[str | None, "The budget that ended the work early."]
    conductor_in: Annotated[
        int | None, "Prompt tokens of the model that plans, cached ones included."
    ]
    conductor_out: Annotated[int | None, "Output tokens of the model that plans."]
    worker_in: Annotated[int | None, "Prompt tokens of workers, cached ones included."]
    worker_out: Annotated[
        int | None,
        "Output tokens of workers, reasoning included: the token count of the Conductor paper.",
    ]
    reasoning: Annotated[int | None, "Part of the output; NULL when a provider does not say."]
    cache_read: Annotated[int | None, "Part of the prompt that a provider had cached."]
    cache_write: Annotated[int | None, "Part of the prompt that a provider cached."]
    orchestration: Annotated[
        int | None,
        "Tokens that products spent on models of their own, in and out; in no other count.",
    ]
    grader_calls: Annotated[int, "Calls of models that grade."]
    grader_in: Annotated[int | None, "Prompt tokens of graders, cached ones included."]
    grader_out: Annotated[int | None, "Output tokens of graders."]
    usd: Annotated[Usd, "Inference as providers bill it at the book: caches used, local reads 0."]
    usd_list: Annotated[
        Usd, "The headline: inference at list price, each call once, as if nothing had been cached."
    ]
    usd_low: Annotated[
        Usd, "Bounds of `usd`: calls of which nobody knows whether they were billed count 0 here."
    ]
    usd_high: Annotated[
        Usd, "The same, at the most they can have cost; NULL when nothing bounds it."
    ]
    usd_scoring: Annotated[Usd, "What graders that are models cost; in no other figure."]
    usd_discarded: Annotated[
        Usd, "What attempts at the question that were not graded cost; in no other figure."
    ]
    n_unpriced: Annotated[
        int, "Calls without a price: when it is not 0, `usd_list` is NULL and no sum may skip it."
    ]
    n_unknown: Annotated[int, "Attempts of which nobody knows whether they were billed."]
    gpu_s: Annotated[
        Decimal | None, "GPU seconds of calls to own hardware; NULL when no call has any."
    ]
    usd_gpu: GpuColumn
    latency_s: Annotated[
        float | None, "Wall time of the solver; NULL for replayed replies, which come at once."
    ]
    critical_path_s: Annotated[
        float | None, "Time of the longest chain of calls that waited for each other."
    ]
    started: Annotated[str | None, "When the first call of the graded attempt went out (ISO 8601)."]
    plan: Annotated[
        str | None,
        "The workflow as JSON, or why it was malformed; without texts where they are withheld.",
    ]
    plan_sha256: Annotated[str | None, "Of the plan's text, also where that is withheld."]
    logs: Annotated[str, "File names of the logs that have the calls, as a JSON list."]
    journals: Annotated[str, "The same of journals."]


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
ATTRIBUTES = {
    "gen_ai.operation.name": "`chat`",
    "gen_ai.provider.name": "`model` up to its first `/`",
    "gen_ai.request.model": "`model` after its first `/`",
    "gen_ai.response.finish_reasons": "`[stop]`",
    "gen_ai.usage.input_tokens": "`input_uncached + cache_read + cache_write`: includes cached",
    **{name: f"`{column}`" for name, column in SAME.items()},
    "gen_ai.usage.output_tokens": "`output`: includes reasoning",
}
"""Attribute and the columns that it is made from; every other column is `podium.` and its name."""
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


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: Any
    unit: str
    nullable: bool
    meaning: str


@cache
def columns_of(record: type) -> tuple[Column, ...]:
    """Return the columns of a flat dataclass, in its order."""
    found: list[Column] = []
    for name, hint in get_type_hints(record, include_extras=True).items():
        said, meaning = get_args(hint)
        kinds = {one if isinstance(one, type) else str for one in get_args(said) or (said,)}
        (kind,) = kinds - {type(None)}
        nullable = type(None) in kinds
        found.append(Column(name, ARROW[kind], _unit(name, kind), nullable, meaning))
    return tuple(found)


def schema_of(record: type) -> Any:
    """Return the Arrow schema of a flat dataclass."""
    return pa.schema(
        [pa.field(one.name, one.type, nullable=one.nullable) for one in columns_of(record)]
    )


def table_of(record: type, rows: Sequence[Any]) -> Any:
    """Return rows as an Arrow table; UserError for dollars that do not fit."""
    columns = columns_of(record)
    flat = map(attrgetter(*(one.name for one in columns)), rows)
    values = list(zip(*flat, strict=True)) or [()] * len(columns)
    arrays = [_array(one, of_one) for one, of_one in zip(columns, values, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema_of(record))


def _array(column: Column, values: Sequence[Any]) -> Any:
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


def _unit(name: str, kind: type) -> str:
    if kind in (Decimal, float):
        return "s" if name.endswith("_s") else "USD" if kind is Decimal else "0 to 1"
    if name.endswith("_bytes"):
        return "bytes"
    tokens = ("_in", "_out", "_uncached", "_cached", "_write", "_read", "_1h")
    more = {"output", "reasoning", "total_reported", "max_tokens", "orchestration"}
    return "tokens" if kind is int and (name.endswith(tokens) or name in more) else ""


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


HEAD = f"""# The exported ledger ({SCHEMA})

`calls` has one row per attempt to call a model, `queries` one per (system, question, epoch).

## Money

Dollars are `decimal({DIGITS},{PLACES})`: {PLACES} places, {DIGITS - PLACES} digits before them.
A value that does not fit is refused, never rounded, so `sum()` is exact in DuckDB, and in pandas
too while a sum has at most 28 digits (Python's default context). `avg()` and division give binary
floats: divide sums last. {" and ".join(f"`{one}`" for one in sorted(QUOTIENTS))} are shares made
by a division: these alone are rounded, half to even, at the last place.

## Unknown is NULL

What nobody knows is NULL and never 0. SQL's `sum()` skips NULL in silence, so ask first:

    SELECT system, sum(n_unpriced) AS unpriced,
           CASE WHEN count(*) = count(usd_list) THEN sum(usd_list) END AS usd_list
    FROM queries WHERE purpose = 'eval' GROUP BY system

In `queries`, `usd_list` is NULL as soon as one call of the query has no price; `n_unpriced` says
how many have none. In `calls`, `usd_list IS NULL` is an attempt without a price. `usd` is a range
from `usd_low` to `usd_high` where `n_unknown` is not 0.

Tokens and `usd_list` of a query count each call once, by its last attempt; `usd` and its bounds
count every attempt, so what failed on the way is there.

## CSV

A text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return, and is no number, has a
`'` before it, so that no spreadsheet computes what a model wrote. Other formats have it as it was.

## Scopes

`inference`, `scoring`, `training` and `serving` are never added up: filter `calls` by `scope`.
Spend of attempts that were not graded has `counted = false`. Questions that were asked to choose a
system have `purpose = 'selection'` in `queries` and a `task` that ends in `(selection)`.
"""


def schema_page() -> str:
    """Return schema.md."""
    parts = [HEAD]
    for name, record in TABLES.items():
        lines = [f"| `{one.name}` | {one.type} | {one.unit} | {'yes' if one.nullable else ''} "
                 f"| {markdown_cell(one.meaning)} |" for one in columns_of(record)]  # fmt: skip
        head = "| column | type | unit | NULL | meaning |\n|---|---|---|---|---|"
        parts.append("\n".join([f"## {name}\n", head, *lines]) + "\n")
    lines = [f"| `{name}` | {markdown_cell(made)} |" for name, made in ATTRIBUTES.items()]
    head = "| attribute | column |\n|---|---|"
    said = (
        "`--format otel` writes calls in the words of OpenTelemetry's GenAI conventions. Their "
        "input count\nincludes cached tokens. All other columns are `podium.` and their name."
    )
    parts.append("\n".join(["## OpenTelemetry\n", said, "", head, *lines]) + "\n")
    return "\n".join(parts)
