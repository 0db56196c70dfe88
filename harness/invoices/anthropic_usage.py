"""Anthropic's Admin API exports: the messages usage report and the cost report (JSON).

Fields are those of the reference (platform.claude.com/docs, "Get Messages Usage Report" and "Get
Cost Report"): input tokens come uncached, read from and written to the cache apart, writes by how
long they are kept; a cost's `amount` is a decimal string in cents. The usage report counts no
requests and has no dollars. A null `workspace_id` is the default workspace.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from harness.invoices.lines import (
    Foreign,
    InvoiceLine,
    Money,
    Name,
    OptionalCount,
    dollars_only,
    malformed,
    moment,
)

CENTS = Decimal(100)


def _moment(value: object) -> object:
    return moment(value) if isinstance(value, str) else value


class _Writes(Foreign):
    ephemeral_5m_input_tokens: OptionalCount
    ephemeral_1h_input_tokens: OptionalCount


class _Usage(Foreign):
    uncached_input_tokens: OptionalCount
    cache_read_input_tokens: OptionalCount
    cache_creation: _Writes = _Writes(ephemeral_5m_input_tokens=0, ephemeral_1h_input_tokens=0)
    output_tokens: OptionalCount
    model: Name
    api_key_id: Name
    workspace_id: Name


class _Cost(Foreign):
    amount: Money
    currency: str = "USD"
    description: Name
    model: Name
    workspace_id: Name


class _Bucket(Foreign):
    starting_at: Annotated[datetime, BeforeValidator(_moment)]
    ending_at: Annotated[datetime, BeforeValidator(_moment)]
    results: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


def usage_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the messages usage report."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _Bucket.model_validate(raw)
            for result in bucket.results:
                yield _usage_line(_Usage.model_validate(result), bucket)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"bucket {number}", error) from error


def _usage_line(found: _Usage, bucket: _Bucket) -> InvoiceLine:
    writes = found.cache_creation
    return InvoiceLine(
        start=bucket.starting_at,
        end=bucket.ending_at,
        model=found.model or "",
        project=found.workspace_id,
        key=found.api_key_id,
        input_uncached=found.uncached_input_tokens or 0,
        cache_read=found.cache_read_input_tokens or 0,
        cache_write=(writes.ephemeral_5m_input_tokens or 0)
        + (writes.ephemeral_1h_input_tokens or 0),
        output=found.output_tokens or 0,
    )


def cost_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the cost report; dollars are its cents divided by 100."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _Bucket.model_validate(raw)
            for result in bucket.results:
                cost = _Cost.model_validate(result)
                dollars_only(cost.currency, path)
                yield InvoiceLine(
                    start=bucket.starting_at,
                    end=bucket.ending_at,
                    model=cost.model or "",
                    project=cost.workspace_id,
                    usd=cost.amount / CENTS,
                    item=cost.description or "",
                    credit=cost.amount < 0,
                )
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"bucket {number}", error) from error
