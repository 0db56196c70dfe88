"""OpenAI's organization exports: the usage and costs APIs (JSON), and the usage page's CSV.

Fields are those of the API reference (platform.openai.com/docs/api-reference/usage, "Completions
usage object" and "Costs object"; OpenAPI document 2.3.0): `input_tokens` includes cached tokens and
tokens written to the cache, times are Unix seconds. The CSV (`completions_usage_*.csv`) flattens
the same fields, one row per bucket and group, with `start_time_iso` beside `start_time`.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from harness.invoices.lines import (
    Count,
    Foreign,
    InvoiceLine,
    Money,
    Name,
    OptionalCount,
    dollars_only,
    malformed,
)

USAGE = "organization.usage.completions.result"
COSTS = "organization.costs.result"


class _Usage(Foreign):
    input_tokens: Count
    output_tokens: Count
    input_cached_tokens: OptionalCount
    input_cache_write_tokens: OptionalCount
    num_model_requests: OptionalCount
    project_id: Name
    api_key_id: Name
    model: Name


class _UsageRow(_Usage):
    """A row of the CSV: a bucket without traffic has no tokens."""

    start_time: Count
    end_time: Count


class _Amount(Foreign):
    value: Money
    currency: str


class _Cost(Foreign):
    amount: _Amount
    line_item: Name
    project_id: Name
    api_key_id: Name


class _Bucket(Foreign):
    start_time: Count
    end_time: Count
    results: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


def usage_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the completions usage API."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _Bucket.model_validate(raw)
            for result in bucket.results:
                yield _usage_line(_Usage.model_validate(result), bucket.start_time, bucket.end_time)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"bucket {number}", error) from error


def csv_lines(rows: Iterator[tuple[int, Mapping[str, str]]], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the usage page's CSV; a row without traffic has empty token fields."""
    for number, row in rows:
        if not (row.get("input_tokens") or row.get("output_tokens")):
            continue
        try:
            found = _UsageRow.model_validate(row)
            yield _usage_line(found, found.start_time, found.end_time)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"line {number}", error) from error


def _usage_line(found: _Usage, start: int, end: int) -> InvoiceLine:
    cached, written = found.input_cached_tokens or 0, found.input_cache_write_tokens or 0
    uncached = found.input_tokens - cached - written
    if uncached < 0:
        raise ValueError(f"more cached tokens ({cached + written}) than input_tokens")
    return InvoiceLine(
        start=_second(start),
        end=_second(end),
        model=found.model or "",
        project=found.project_id,
        key=found.api_key_id,
        input_uncached=uncached,
        cache_read=cached,
        cache_write=found.input_cache_write_tokens,
        output=found.output_tokens,
        requests=found.num_model_requests,
    )


def cost_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the costs API; its `line_item` begins with the model, then a comma."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _Bucket.model_validate(raw)
            for result in bucket.results:
                cost = _Cost.model_validate(result)
                dollars_only(cost.amount.currency, path)
                item = cost.line_item or ""
                yield InvoiceLine(
                    start=_second(bucket.start_time),
                    end=_second(bucket.end_time),
                    model=item.partition(",")[0].strip(),
                    project=cost.project_id,
                    key=cost.api_key_id,
                    usd=cost.amount.value,
                    item=item,
                    credit=cost.amount.value < 0,
                )
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"bucket {number}", error) from error


def _second(unix: int) -> datetime:
    try:
        return datetime.fromtimestamp(unix, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{unix} is no time in Unix seconds") from error
