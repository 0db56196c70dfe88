"""Lines of invoices, as OpenAI, Anthropic, Google Cloud, OpenRouter and a plain CSV write them.

Times are UTC, money is Decimal. `input_uncached`, `cache_read` and `cache_write` never overlap,
whatever convention the export follows. None is "the export does not say".
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.errors import UserError
from harness.files import decimal_of

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceLine:
    """What an export says of one bucket, model and account, or of one request."""

    start: datetime
    end: datetime
    """Exclusive; for a request the end of its hour."""
    model: str
    project: str | None = None
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
    providers: tuple[str, ...]
    """Prefixes of the model ids whose calls it bills; empty for all."""
    lines: Callable[[], Iterator[InvoiceLine]]


class _Foreign(BaseModel):
    """A piece of an export: fields that nobody asked for are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def _count(value: object) -> object:
    """Return a count for pydantic: exports write 3 as 3, "3", "3.0" and "1,234"; empty is None."""
    if isinstance(value, str) and not (value := value.replace(",", "").strip()):
        return None
    try:
        number = decimal_of(value) if isinstance(value, str) else value
        if isinstance(number, Decimal):
            return int(number) if number == number.to_integral_value() else str(number)
    except ArithmeticError as error:
        raise ValueError("not a count") from error
    return number


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


def _dollars_only(currency: str | None, path: Path) -> None:
    if currency and currency.upper() != "USD":
        raise UserError(
            f"{path} bills in {currency.upper()}: only US dollars are compared, no exchange rate "
            "is assumed; export it in USD."
        )


def _malformed(path: Path, where: str, error: Exception) -> UserError:
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


def _time(value: object) -> object:
    return moment(value) if isinstance(value, str) and value else value


Time = Annotated[datetime, BeforeValidator(_time)]
Span = tuple[datetime, datetime]
Reader = Callable[[Any, Path], Iterator[InvoiceLine]]
"""Makes lines of one row, or of one bucket; ValidationError or ValueError where it is malformed."""


# OpenAI's usage and costs APIs and the usage page's CSV, which flattens the same fields
# (platform.openai.com/docs/api-reference/usage, "Completions usage object" and "Costs object";
# OpenAPI document 2.3.0): `input_tokens` includes cached tokens and tokens written to the cache.
class _OpenAIUsage(_Foreign):
    input_tokens: Count
    output_tokens: Count
    input_cached_tokens: OptionalCount
    input_cache_write_tokens: OptionalCount
    num_model_requests: OptionalCount
    project_id: Name
    api_key_id: Name
    model: Name


class _Amount(_Foreign):
    value: Money
    currency: str


class _OpenAICost(_Foreign):
    amount: _Amount
    line_item: Name
    project_id: Name
    api_key_id: Name


class _OpenAIBucket(_Foreign):
    start_time: Count
    end_time: Count
    results: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])

    @property
    def span(self) -> Span:
        return _second(self.start_time), _second(self.end_time)


def _second(unix: int) -> datetime:
    try:
        return datetime.fromtimestamp(unix, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{unix} is no time in Unix seconds") from error


def _openai_usage(raw: Any, span: Span, path: Path) -> InvoiceLine:
    found = _OpenAIUsage.model_validate(raw)
    cached, written = found.input_cached_tokens or 0, found.input_cache_write_tokens or 0
    uncached = found.input_tokens - cached - written
    if uncached < 0:
        raise ValueError(f"more cached tokens ({cached + written}) than input_tokens")
    return InvoiceLine(
        start=span[0],
        end=span[1],
        model=found.model or "",
        project=found.project_id,
        key=found.api_key_id,
        input_uncached=uncached,
        cache_read=cached,
        cache_write=found.input_cache_write_tokens,
        output=found.output_tokens,
        requests=found.num_model_requests,
    )


def _openai_row(raw: Any, path: Path) -> Iterator[InvoiceLine]:
    if raw.get("input_tokens") or raw.get("output_tokens"):  # else a bucket without traffic
        yield _openai_usage(raw, _OpenAIBucket.model_validate(raw).span, path)


def _openai_cost(raw: Any, span: Span, path: Path) -> InvoiceLine:
    cost = _OpenAICost.model_validate(raw)
    _dollars_only(cost.amount.currency, path)
    item = cost.line_item or ""
    return InvoiceLine(
        start=span[0],
        end=span[1],
        model=item.partition(",")[0].strip(),  # an item begins with the model, then a comma
        project=cost.project_id,
        key=cost.api_key_id,
        usd=cost.amount.value,
        item=item,
        credit=cost.amount.value < 0,
    )


# Anthropic's Admin API (platform.claude.com/docs, "Get Messages Usage Report" and "Get Cost
# Report"): input comes uncached, cache reads and writes apart; a cost's `amount` is a decimal
# string in cents. The usage report counts no requests. A null `workspace_id` is the default one.
class _Writes(_Foreign):
    ephemeral_5m_input_tokens: OptionalCount
    ephemeral_1h_input_tokens: OptionalCount


class _AnthropicUsage(_Foreign):
    uncached_input_tokens: OptionalCount
    cache_read_input_tokens: OptionalCount
    cache_creation: _Writes = _Writes(ephemeral_5m_input_tokens=0, ephemeral_1h_input_tokens=0)
    output_tokens: OptionalCount
    model: Name
    api_key_id: Name
    workspace_id: Name


class _AnthropicCost(_Foreign):
    amount: Money
    currency: str = "USD"
    description: Name
    model: Name
    workspace_id: Name


class _AnthropicBucket(_Foreign):
    starting_at: Time
    ending_at: Time
    results: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])

    @property
    def span(self) -> Span:
        return self.starting_at, self.ending_at


def _anthropic_usage(raw: Any, span: Span, path: Path) -> InvoiceLine:
    found = _AnthropicUsage.model_validate(raw)
    writes = found.cache_creation
    written = (writes.ephemeral_5m_input_tokens or 0) + (writes.ephemeral_1h_input_tokens or 0)
    return InvoiceLine(
        start=span[0],
        end=span[1],
        model=found.model or "",
        project=found.workspace_id,
        key=found.api_key_id,
        input_uncached=found.uncached_input_tokens or 0,
        cache_read=found.cache_read_input_tokens or 0,
        cache_write=written,
        output=found.output_tokens or 0,
    )


def _anthropic_cost(raw: Any, span: Span, path: Path) -> InvoiceLine:
    cost = _AnthropicCost.model_validate(raw)
    _dollars_only(cost.currency, path)
    return InvoiceLine(
        start=span[0],
        end=span[1],
        model=cost.model or "",
        project=cost.workspace_id,
        usd=cost.amount / 100,
        item=cost.description or "",
        credit=cost.amount < 0,
    )


# A CSV with one row per request: ours, for providers without an export of their own kind (input
# tokens include cached ones), and OpenRouter's activity export (as public tools read it; the
# generation's own fields are in openrouter.ai/docs, "Generation data").
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


class _OwnRow(_Foreign):
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


def _own_row(raw: Any, path: Path) -> Iterator[InvoiceLine]:
    row = _OwnRow.model_validate(raw)
    _dollars_only(row.currency, path)
    start = moment(row.time).replace(minute=0, second=0, microsecond=0)
    cached = row.cached_tokens or 0
    uncached = None if row.input_tokens is None else row.input_tokens - cached
    if uncached is not None and uncached < 0:
        raise ValueError(f"more cached tokens ({cached}) than input_tokens")
    yield InvoiceLine(
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


def _openrouter_row(raw: Any, path: Path) -> Iterator[InvoiceLine]:
    return _own_row({ours: raw.get(theirs, "") for theirs, ours in OPENROUTER.items()}, path)


# Google Cloud billing export: rows of BigQuery's standard usage table ("Structure of Standard data
# export", cloud.google.com/billing/docs). One row is one SKU, e.g. "Generate content output token
# count gemini 2.5 flash short input text": model and kind of token are read from that name,
# "output" before "input", since a name may hold both. Rows other than `regular` are listed.
TOKEN_UNITS = frozenset({"count", "token", "tokens", ""})
MODEL = re.compile(
    r"gemini[ -](\d+(?:\.\d+)?)[ -](flash|pro|ultra|nano)(?:[ -](lite))?", re.IGNORECASE
)
GROUPS = ("service", "sku", "project", "usage")


class _Described(_Foreign):
    description: Name


class _Project(_Foreign):
    id: Name


class _Used(_Foreign):
    amount: OptionalMoney
    unit: Name


class _Credit(_Foreign):
    name: Name
    amount: Money


class _GoogleRow(_Foreign):
    service: _Described = _Described(description=None)
    sku: _Described
    project: _Project = _Project(id=None)
    usage: _Used = _Used(amount=None, unit=None)
    usage_start_time: Time
    usage_end_time: Annotated[datetime | None, BeforeValidator(_time)] = None
    cost: Money
    currency: Name
    cost_type: Name
    credits: list[_Credit] = Field(default_factory=list[_Credit])


def _nested(raw: Any) -> Any:
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


def google_row(raw: Any, path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of a billing row, nested (JSON) or flat (CSV)."""
    row = _GoogleRow.model_validate(_nested(raw))
    _dollars_only(row.currency, path)
    sku = row.sku.description or ""
    line = InvoiceLine(
        start=row.usage_start_time,
        end=row.usage_end_time or row.usage_start_time + HOUR,
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
            end=line.end,
            model=line.model,
            project=line.project,
            usd=credit.amount,
            item=credit.name or "credit",
            credit=True,
        )


def _tokens(row: _GoogleRow, sku: str) -> dict[str, Any]:
    amount = row.usage.amount
    kind = kind_of(sku)
    if amount is None or kind is None or (row.usage.unit or "").lower() not in TOKEN_UNITS:
        return {}
    if amount < 0 or amount != amount.to_integral_value():
        raise ValueError(f"{amount} is no count of tokens")
    return {"input_uncached": 0, "cache_read": 0, "output": 0, kind: int(amount)}


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


def read_lines(
    pieces: Iterator[tuple[int, Any]], path: Path, place: str, read: Reader
) -> Iterator[InvoiceLine]:
    """Yield the lines that a reader makes; UserError names the piece that is malformed."""
    for number, raw in pieces:
        try:
            yield from read(raw, path)
        except (ValidationError, ValueError) as error:
            raise _malformed(path, f"{place} {number}", error) from error


OPENAI = ("openai", "openai-api")
ANTHROPIC = ("anthropic",)
GOOGLE = ("google", "vertex")


CSV: tuple[tuple[set[str], str, tuple[str, ...], Reader], ...] = (
    (
        {"generation_id", "model_permaslug", "cost_total"},
        "openrouter-csv",
        ("openrouter",),
        _openrouter_row,
    ),
    ({"start_time", "end_time"}, "openai-usage-csv", OPENAI, _openai_row),
    ({"usage_start_time", "cost"}, "google-billing", GOOGLE, google_row),
    ({"model", "time", "input_tokens", "output_tokens"}, "csv", (), _own_row),
)
"""Columns that an export has at least, its name, whose calls it bills, and its reader."""


Bucketed = Callable[[Any, Span, Path], InvoiceLine]
BUCKETED: tuple[
    tuple[str, tuple[str, ...], Callable[[Mapping[str, Any]], bool], type[Any], Bucketed], ...
] = (
    (
        "openai-costs",
        OPENAI,
        lambda result: (
            result.get("object") == "organization.costs.result"
            or isinstance(result.get("amount"), dict)
        ),
        _OpenAIBucket,
        _openai_cost,
    ),
    (
        "openai-usage",
        OPENAI,
        lambda result: (
            result.get("object") == "organization.usage.completions.result"
            or "input_tokens" in result
        ),
        _OpenAIBucket,
        _openai_usage,
    ),
    (
        "anthropic-usage",
        ANTHROPIC,
        lambda result: "uncached_input_tokens" in result,
        _AnthropicBucket,
        _anthropic_usage,
    ),
    (
        "anthropic-costs",
        ANTHROPIC,
        lambda result: "amount" in result,
        _AnthropicBucket,
        _anthropic_cost,
    ),
)
"""Of exports with buckets: name, whose calls they bill, what tells a result, bucket and line."""
