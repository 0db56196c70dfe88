"""A CSV with one row per request, ours or OpenRouter's.

Ours is for providers without an export of their own kind: columns `request_id`, `model`, `time`
(ISO 8601, UTC), `input_tokens` (cached ones included), `cached_tokens`, `output_tokens`, `usd`, and
where there are several `project` and `api_key`; `currency` may say USD. OpenRouter's activity
export has `generation_id`, `created_at`, `model_permaslug`, `tokens_prompt`, `tokens_completion`,
`tokens_cached`, `cost_total` and `api_key_name` (as read by public tools; the site documents the
generation's own fields, openrouter.ai/docs "Generation data"). Reasoning is part of the completion.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from harness.invoices.lines import (
    HOUR,
    Foreign,
    InvoiceLine,
    Name,
    OptionalCount,
    OptionalMoney,
    dollars_only,
    hour_of,
    malformed,
    moment,
)

OURS = ("model", "time", "input_tokens", "output_tokens")
"""Columns that a CSV of ours has at least."""

OPENROUTER: Mapping[str, str] = {
    "generation_id": "request_id",
    "created_at": "time",
    "model_permaslug": "model",
    "tokens_prompt": "input_tokens",
    "tokens_completion": "output_tokens",
    "tokens_cached": "cached_tokens",
    "cost_total": "usd",
    "api_key_name": "api_key",
}
"""OpenRouter's columns -> ours."""


class _Row(Foreign):
    request_id: Name
    model: str
    time: str
    input_tokens: OptionalCount
    cached_tokens: OptionalCount
    output_tokens: OptionalCount
    usd: OptionalMoney
    currency: Name
    project: Name
    api_key: Name


def own_lines(rows: Iterator[tuple[int, Mapping[str, str]]], path: Path) -> Iterator[InvoiceLine]:
    """Yield one line per request of a CSV of ours."""
    for number, row in rows:
        try:
            found = _Row.model_validate(row)
            dollars_only(found.currency, path)
            yield _line(found)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"line {number}", error) from error


def openrouter_lines(
    rows: Iterator[tuple[int, Mapping[str, str]]], path: Path
) -> Iterator[InvoiceLine]:
    """Yield one line per request of OpenRouter's activity export."""
    renamed = (
        (number, {ours: row.get(theirs, "") for theirs, ours in OPENROUTER.items()})
        for number, row in rows
    )
    return own_lines(renamed, path)


def _line(row: _Row) -> InvoiceLine:
    start = hour_of(moment(row.time))
    cached = row.cached_tokens or 0
    uncached = None if row.input_tokens is None else row.input_tokens - cached
    if uncached is not None and uncached < 0:
        raise ValueError(f"more cached tokens ({cached}) than input_tokens")
    return InvoiceLine(
        start=start,
        end=start + HOUR,
        model=row.model.strip(),
        project=row.project,
        key=row.api_key,
        input_uncached=uncached,
        cache_read=None if uncached is None else cached,
        output=row.output_tokens,
        requests=1,
        usd=row.usd,
        request_id=row.request_id,
        credit=row.usd is not None and row.usd < 0,
    )
