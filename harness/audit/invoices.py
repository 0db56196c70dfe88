"""An invoice's lines, and the exports of OpenAI, Anthropic and CSV as such lines."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.errors import UserError
from harness.files import decimal_of

# § One line of an invoice, whoever wrote it; times are UTC, tokens are exclusive, money is
# § Decimal.
# §
# § Every reader turns its export into these. `input_uncached`, `cache_read` and `cache_write`
# § never
# § overlap, whatever convention the export follows. None is "the export does not say".


HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceLine:
    """What an export says of one bucket, model and account, or of one request."""

    start: datetime
    end: datetime
    """Exclusive; for a request the end of its hour."""
    model: str
    """As the export names it; empty where it does not."""
    project: str | None = None
    """Project or workspace."""
    key: str | None = None
    """Id or name of the API key; never the key."""
    input_uncached: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Reasoning included."""
    requests: int | None = None
    usd: Decimal | None = None
    request_id: str | None = None
    item: str = ""
    """What is billed, where it is neither tokens nor a known model."""
    credit: bool = False
    """True for a refund, discount or credit: listed, and no traffic."""


@dataclass(frozen=True, slots=True)
class Invoice:
    """An export on disk; `lines` reads it from its beginning each time it is called."""

    path: Path
    format: str
    """E.g. `openai-usage`; printed, since it was sniffed."""
    providers: tuple[str, ...]
    """Prefixes of the model ids whose calls it bills; empty for all."""
    lines: Callable[[], Iterator[InvoiceLine]]


class Foreign(BaseModel):
    """A piece of an export: fields that nobody asked for are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def _whole(value: object) -> object:
    """Return a count for pydantic: exports write 3 as 3, "3", "3.0" and "1,234"; empty is None."""
    if isinstance(value, str):
        value = value.replace(",", "").strip()
        if not value:
            return None
        value = decimal_of(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    return value


def _count(value: object) -> object:
    try:
        return _whole(value)
    except ArithmeticError as error:
        raise ValueError("not a count") from error


def _money(value: object) -> object:
    """Return an amount for pydantic; a float never becomes money."""
    if isinstance(value, float):
        raise ValueError("a binary float is no amount of money")
    if isinstance(value, str):
        bare = value.replace(",", "").replace("$", "").strip()
        return decimal_of(bare) if bare else None
    return value


def _text(value: object) -> object:
    return value.strip() or None if isinstance(value, str) else value


Count = Annotated[int, BeforeValidator(_count), Field(ge=0)]
OptionalCount = Annotated[
    Annotated[int, Field(ge=0)] | None, BeforeValidator(_count), Field(default=None)
]
Money = Annotated[Decimal, BeforeValidator(_money), Field(allow_inf_nan=False)]
OptionalMoney = Annotated[
    Annotated[Decimal, Field(allow_inf_nan=False)] | None,
    BeforeValidator(_money),
    Field(default=None),
]
Name = Annotated[str | None, BeforeValidator(_text), Field(default=None)]


def moment(text: str) -> datetime:
    """Return a time in UTC; one without a zone is UTC, as all exports here are.

    >>> moment("2026-02-01T10:00:00Z").isoformat()
    '2026-02-01T10:00:00+00:00'
    """
    clean = text.strip().removesuffix(" UTC")
    found = datetime.fromisoformat(clean)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def hour_of(time: datetime) -> datetime:
    """Return the beginning of an hour."""
    return time.replace(minute=0, second=0, microsecond=0)


def dollars_only(currency: str | None, path: Path) -> None:
    """Raise UserError for another currency: exchange rates are nobody's guess."""
    if currency and currency.upper() != "USD":
        raise UserError(
            f"{path} bills in {currency.upper()}: only US dollars are compared, no exchange rate "
            "is assumed; export it in USD."
        )


def malformed(path: Path, where: str, error: Exception) -> UserError:
    """Return the one sentence on a file that cannot be read: where, which field, why."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole entry"
        return UserError(f"{path}, {where}, field {field}: {first['msg']}; export it again.")
    return UserError(f"{path}, {where}: {error}; export it again.")


def span_text(start: datetime, end: datetime) -> str:
    """Return a bucket's name, shortest for whole days.

    >>> span_text(moment("2026-02-01"), moment("2026-02-02"))
    '2026-02-01'
    """
    if end - start == timedelta(days=1) and not (start.hour or start.minute):
        return f"{start:%Y-%m-%d}"
    if end - start == HOUR and not start.minute:
        return f"{start:%Y-%m-%dT%H}h"
    return f"{start:%Y-%m-%dT%H:%M}/{end:%Y-%m-%dT%H:%M}"


# § OpenAI's organization exports: the usage and costs APIs (JSON), and the usage page's CSV.
# §
# § Fields are those of the API reference (platform.openai.com/docs/api-reference/usage,
# § "Completions
# § usage object" and "Costs object"; OpenAPI document 2.3.0): `input_tokens` includes cached
# § tokens and
# § tokens written to the cache, times are Unix seconds. The CSV (`completions_usage_*.csv`)
# § flattens
# § the same fields, one row per bucket and group, with `start_time_iso` beside `start_time`.


USAGE = "organization.usage.completions.result"
COSTS = "organization.costs.result"


class _OpenAIUsage(Foreign):
    input_tokens: Count
    output_tokens: Count
    input_cached_tokens: OptionalCount
    input_cache_write_tokens: OptionalCount
    num_model_requests: OptionalCount
    project_id: Name
    api_key_id: Name
    model: Name


class _UsageRow(_OpenAIUsage):
    """A row of the CSV: a bucket without traffic has no tokens."""

    start_time: Count
    end_time: Count


class _Amount(Foreign):
    value: Money
    currency: str


class _OpenAICost(Foreign):
    amount: _Amount
    line_item: Name
    project_id: Name
    api_key_id: Name


class _OpenAIBucket(Foreign):
    start_time: Count
    end_time: Count
    results: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


def openai_usage_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the completions usage API."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _OpenAIBucket.model_validate(raw)
            for result in bucket.results:
                yield _openai_usage_line(
                    _OpenAIUsage.model_validate(result), bucket.start_time, bucket.end_time
                )
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"bucket {number}", error) from error


def csv_lines(rows: Iterator[tuple[int, Mapping[str, str]]], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the usage page's CSV; a row without traffic has empty token fields."""
    for number, row in rows:
        if not (row.get("input_tokens") or row.get("output_tokens")):
            continue
        try:
            found = _UsageRow.model_validate(row)
            yield _openai_usage_line(found, found.start_time, found.end_time)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"line {number}", error) from error


def _openai_usage_line(found: _OpenAIUsage, start: int, end: int) -> InvoiceLine:
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


def openai_cost_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the costs API; its `line_item` begins with the model, then a comma."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _OpenAIBucket.model_validate(raw)
            for result in bucket.results:
                cost = _OpenAICost.model_validate(result)
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


# § Anthropic's Admin API exports: the messages usage report and the cost report (JSON).
# §
# § Fields are those of the reference (platform.claude.com/docs, "Get Messages Usage Report"
# § and "Get
# § Cost Report"): input tokens come uncached, read from and written to the cache apart,
# § writes by how
# § long they are kept; a cost's `amount` is a decimal string in cents. The usage report
# § counts no
# § requests and has no dollars. A null `workspace_id` is the default workspace.


CENTS = Decimal(100)


def _moment(value: object) -> object:
    return moment(value) if isinstance(value, str) else value


class _Writes(Foreign):
    ephemeral_5m_input_tokens: OptionalCount
    ephemeral_1h_input_tokens: OptionalCount


class _AnthropicUsage(Foreign):
    uncached_input_tokens: OptionalCount
    cache_read_input_tokens: OptionalCount
    cache_creation: _Writes = _Writes(ephemeral_5m_input_tokens=0, ephemeral_1h_input_tokens=0)
    output_tokens: OptionalCount
    model: Name
    api_key_id: Name
    workspace_id: Name


class _AnthropicCost(Foreign):
    amount: Money
    currency: str = "USD"
    description: Name
    model: Name
    workspace_id: Name


class _AnthropicBucket(Foreign):
    starting_at: Annotated[datetime, BeforeValidator(_moment)]
    ending_at: Annotated[datetime, BeforeValidator(_moment)]
    results: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


def anthropic_usage_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the messages usage report."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _AnthropicBucket.model_validate(raw)
            for result in bucket.results:
                yield _anthropic_usage_line(_AnthropicUsage.model_validate(result), bucket)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"bucket {number}", error) from error


def _anthropic_usage_line(found: _AnthropicUsage, bucket: _AnthropicBucket) -> InvoiceLine:
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


def anthropic_cost_lines(buckets: Iterator[Any], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of the cost report; dollars are its cents divided by 100."""
    for number, raw in enumerate(buckets, 1):
        try:
            bucket = _AnthropicBucket.model_validate(raw)
            for result in bucket.results:
                cost = _AnthropicCost.model_validate(result)
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


# § A CSV with one row per request, ours or OpenRouter's.
# §
# § Ours is for providers without an export of their own kind: columns `request_id`, `model`,
# § `time`
# § (ISO 8601, UTC), `input_tokens` (cached ones included), `cached_tokens`, `output_tokens`,
# § `usd`, and
# § where there are several `project` and `api_key`; `currency` may say USD. OpenRouter's
# § activity
# § export has `generation_id`, `created_at`, `model_permaslug`, `tokens_prompt`,
# § `tokens_completion`,
# § `tokens_cached`, `cost_total` and `api_key_name` (as read by public tools; the site
# § documents the
# § generation's own fields, openrouter.ai/docs "Generation data"). Reasoning is part of the
# § completion.


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
