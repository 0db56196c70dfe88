"""Google Cloud's billing export: rows of BigQuery's standard usage table, as JSON lines or CSV.

Fields are those of "Structure of Standard data export" (cloud.google.com/billing/docs): `service`,
`sku`, `project`, `usage` and `cost`; a CSV has them as `sku.description` or `sku_description`. One
row is one SKU, e.g. "Generate content output token count gemini 2.5 flash short input text": the
model and the kind of token are read from that name, "output" before "input", since a name may hold
both. Rows other than `regular` (tax, adjustment, rounding_error) and credits are listed.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, ValidationError

from harness.invoices.lines import (
    HOUR,
    Foreign,
    InvoiceLine,
    Money,
    Name,
    OptionalMoney,
    dollars_only,
    malformed,
    moment,
)
from harness.parsing import decimal_of

TOKEN_UNITS = frozenset({"count", "token", "tokens", ""})
MODEL = re.compile(
    r"gemini[ -](\d+(?:\.\d+)?)[ -](flash|pro|ultra|nano)(?:[ -](lite))?", re.IGNORECASE
)
GROUPS = ("service", "sku", "project", "usage")


def _moment(value: object) -> object:
    return moment(value) if isinstance(value, str) and value else value


class _Described(Foreign):
    description: Name


class _Project(Foreign):
    id: Name


class _Used(Foreign):
    amount: OptionalMoney
    unit: Name


class _Credit(Foreign):
    name: Name
    amount: Money


class _Row(Foreign):
    service: _Described = _Described(description=None)
    sku: _Described
    project: _Project = _Project(id=None)
    usage: _Used = _Used(amount=None, unit=None)
    usage_start_time: Annotated[datetime, BeforeValidator(_moment)]
    usage_end_time: Annotated[datetime | None, BeforeValidator(_moment)] = None
    cost: Money
    currency: Name
    cost_type: Name
    credits: list[_Credit] = Field(default_factory=list[_Credit])


def row_lines(rows: Iterator[tuple[int, Any]], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of billing rows, nested (JSON) or flat (CSV)."""
    for number, raw in rows:
        try:
            row = _Row.model_validate(nested(raw))
            dollars_only(row.currency, path)
            yield from _lines(row)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"line {number}", error) from error


def nested(raw: Any) -> Any:
    """Return a flat row as the export nests it: `sku.description` and `sku_description` alike."""
    if not isinstance(raw, dict):
        return raw
    flat = cast(Mapping[str, Any], raw)
    found: dict[str, Any] = {}
    for name, value in flat.items():
        group, dot, field = name.partition(".")
        if not dot and name not in ("usage_start_time", "usage_end_time"):
            group, dot, field = name.partition("_")
        if dot and group in GROUPS:
            found.setdefault(group, {})[field] = value
        elif name != "credits" or isinstance(value, list):
            found[name] = value
    return found


def _lines(row: _Row) -> Iterator[InvoiceLine]:
    sku = row.sku.description or ""
    end = row.usage_end_time or row.usage_start_time + HOUR
    line = InvoiceLine(
        start=row.usage_start_time,
        end=end,
        model=model_of(sku),
        project=row.project.id,
        usd=row.cost,
        item=sku,
        credit=row.cost < 0 or (row.cost_type or "regular") != "regular",
        **({} if row.cost < 0 else _tokens(row, sku)),
    )
    yield line
    for credit in row.credits:
        yield InvoiceLine(
            start=line.start,
            end=end,
            model=line.model,
            project=line.project,
            usd=credit.amount,
            item=credit.name or "credit",
            credit=True,
        )


def _tokens(row: _Row, sku: str) -> dict[str, Any]:
    amount = row.usage.amount
    kind = kind_of(sku)
    if amount is None or kind is None or (row.usage.unit or "").lower() not in TOKEN_UNITS:
        return {}
    if amount < 0 or amount != amount.to_integral_value():
        raise ValueError(f"{amount} is no count of tokens")
    return {
        "input_uncached": 0,
        "cache_read": 0,
        "output": 0,
        kind: int(decimal_of(str(amount))),
    }


def kind_of(sku: str) -> str | None:
    """Return which tokens a SKU bills, as fields here are named; None when it bills no tokens.

    >>> kind_of("Generate content output token count gemini 2.5 flash short input text")
    'output'
    """
    name = sku.lower()
    if "token" not in name:
        return None
    for word, kind in (("cach", "cache_read"), ("output", "output"), ("input", "input_uncached")):
        if word in name:
            return kind
    return None


def model_of(sku: str) -> str:
    """Return a SKU's model as the API names it; empty when it names none.

    >>> model_of("Generate content input token count gemini 2.5 flash lite long input text")
    'gemini-2.5-flash-lite'
    """
    found = MODEL.search(sku)
    return "-".join(["gemini", *(part.lower() for part in found.groups() if part)]) if found else ""
