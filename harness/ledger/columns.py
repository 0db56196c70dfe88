"""The columns of the exported tables: name, Parquet type, unit and meaning, from the dataclasses.

A column's meaning is the sentence under its field, so that schema.md cannot differ from the code.
Money is decimal128(38, 18): sums are exact, and what does not fit is refused, never rounded.
"""

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from importlib import import_module
from operator import attrgetter
from textwrap import dedent
from typing import Any, get_args, get_type_hints

from harness.errors import UserError

pa: Any = import_module("pyarrow")  # it has no types

SCHEMA = "podium-ledger-1"
DIGITS, PLACES = 38, 18
QUOTIENTS = frozenset({"gpu_s", "usd_gpu"})
"""Shares of time, made by a division that need not end: rounded half to even at `PLACES`."""
UNIT = Decimal(1).scaleb(-PLACES)

ALSO = {
    "suite": "The exam.",
    "system": "What sat it: a worker, a baseline or a conductor.",
    "question": "Id of the question; empty outside an eval.",
    "epoch": "1 for the first time that the question was asked.",
    "scope": "`inference`, `scoring`, `training` or `serving`; never added up across them.",
    "service": "How the provider was asked to serve it: `standard`, `batch`, `flex`, `priority`.",
    "request_id": "The provider's id of the request, for its support and its invoice.",
    "http_status": "Status of the HTTP reply.",
    "stop": "Why the output ended, e.g. `stop` or `max_tokens`.",
    "cache": "The local cache: `none`, `read` (paid 0) or `write`.",
    "billable": "`yes`, `no` or `unknown` (no reply came back, or one whose token counts "
    "cannot be).",
    "usage_source": "Who counted the tokens; `missing`: nobody did.",
    "input_uncached": "Prompt tokens that were in no cache of the provider.",
    "cache_read": "Prompt tokens that the provider had cached.",
    "cache_write": "Prompt tokens that the provider cached, however long.",
    "cache_write_1h": "Part of `cache_write`: kept for an hour.",
    "reasoning": "Part of `output`; NULL when the provider does not say.",
    "orchestration_in": "Prompt tokens that a product sent to its own models; in no other count.",
    "orchestration_in_cached": "Part of `orchestration_in` that was cached.",
    "orchestration_out": "Output tokens of a product's own models; in no other count.",
    "total_reported": "What the provider says that all of it comes to.",
    "started": "When it was dispatched (ISO 8601, UTC).",
    "latency_s": "From dispatch to the end of the reply.",
    "usd_input": "Uncached prompt tokens, in `usd`.",
    "usd_cache_read": "Prompt tokens that were read from a cache, in `usd`.",
    "usd_cache_write": "Prompt tokens that were written to a cache, in `usd`.",
    "usd_output": "Output with reasoning, in `usd`.",
    "usd_orchestration": "Orchestration, in `usd`.",
    "usd_request": "The fee per request, in `usd`.",
    "tier": "The tier of the price that the length of the prompt chose.",
    "evidence": "`dated`: a price of the book's day; `carried-back`: a later one.",
    "gpu_s": "GPU seconds of own hardware, by the share of output tokens.",
    "usd_gpu": "The same in dollars; beside `usd`, never added to it.",
    "prompt_sha256": "Digest of the request.",
    "output_sha256": "Digest of the reply.",
    "grader_calls": "Calls of models that grade.",
    "conductor_out": "Output tokens of the model that plans.",
    "grader_out": "Output tokens of graders.",
    "usd_high": "Upper bound of `usd`; NULL when nothing bounds it.",
}
"""Meanings of fields that say nothing themselves."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: Any
    """Arrow's."""
    unit: str
    nullable: bool
    meaning: str


@cache
def columns_of(record: type) -> tuple[Column, ...]:
    """Return the columns of a flat dataclass, in its order."""
    hints, said = get_type_hints(record), _sentences(record)
    found: list[Column] = []
    for field in fields(record):
        kinds = {_plain(one) for one in get_args(hints[field.name]) or (hints[field.name],)}
        (kind,) = kinds - {type(None)}
        meaning = said.get(field.name) or ALSO.get(field.name, "")
        found.append(
            Column(
                field.name,
                ARROW[kind],
                _unit(field.name, kind),
                type(None) in kinds,
                " ".join(meaning.split()),
            )
        )
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


def _plain(hint: Any) -> type:
    """Return the Python type of a hint; a Literal, or a word of one, is a string."""
    return hint if isinstance(hint, type) else str


def _unit(name: str, kind: type) -> str:
    if kind is Decimal:
        return "s" if name.endswith("_s") else "USD"
    if kind is float:
        return "s" if name.endswith("_s") else "0 to 1"
    if name.endswith("_bytes"):
        return "bytes"
    tokens = ("_in", "_out", "_uncached", "_cached", "_write", "_read", "_1h")
    more = {"output", "reasoning", "total_reported", "max_tokens", "orchestration"}
    return "tokens" if kind is int and (name.endswith(tokens) or name in more) else ""


def _sentences(record: type) -> dict[str, str]:
    """Return the sentence under each field of a dataclass."""
    tree = ast.parse(dedent(inspect.getsource(record))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for here, after in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(here, ast.AnnAssign)
            and isinstance(here.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[here.target.id] = str(after.value.value)
    return found
