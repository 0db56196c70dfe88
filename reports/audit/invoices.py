"""Reads billing exports (invoices) of providers: detects the format, yields `InvoiceLine`s.

Times are UTC. `input_uncached`, `cache_read` and `cache_write` never overlap, in any format of
export. None means that the export lacks the value. JSON exports are read whole (they are
aggregates); CSV and JSON lines are streamed.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, ValidationError

from podium.harness.errors import UserError, first_fault
from podium.harness.files import (
    SMALL,
    TooLarge,
    decimal_of,
    lines_of,
    parse_json,
    read_limited,
    rows_of_csv,
)
from podium.reports.audit.invoice_columns import columns_of

HOUR = timedelta(hours=1)
LONGEST_LINE = SMALL
"""Maximum characters of a line, and bytes of a JSON export (the largest known: a few MiB)."""


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """The amounts billed for one time bucket, model and account, or for one request."""

    start: datetime
    end: datetime
    """End of the time bucket, exclusive; for a request, the end of its hour."""
    model: str
    project: str | None = None
    key: str | None = None
    """Id or name of the API key; never the secret itself."""
    input_uncached: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Output tokens, reasoning included."""
    requests: int | None = None
    usd: Decimal | None = None
    request_id: str | None = None
    item: str = ""
    """What the line bills, in the export's words, e.g. a SKU; empty if the export does not say."""
    credit: bool = False
    """True for a refund, discount or credit: listed, but not compared with calls."""


Reader = Callable[[Any], Iterator[InvoiceLine]]
"""Function from one row or time bucket of an export to its `InvoiceLine`s; ValidationError or
ValueError if the row is malformed."""


@dataclass(frozen=True, slots=True)
class Invoice:
    """A provider's billing export on disk, with the functions that read its format."""

    path: Path
    format: str
    providers: tuple[str, ...]
    """Prefixes of the ids of billed models, e.g. `openai`; empty if any model may be billed."""
    read: Reader
    pieces: Callable[[Path], Iterator[tuple[int, Any]]]
    """Function from the export's path to its rows or time buckets, each with its number."""
    place: str = "line"
    """The noun for a row or time bucket in error messages: `line` or `bucket`."""
    columns: set[str] = field(default_factory=set[str])
    """Column names of all rows or time buckets that have been read so far."""

    def lines(self) -> Iterator[InvoiceLine]:
        """Yield all lines of the export; UserError names the place of a malformed row or bucket."""
        for number, raw in self.pieces(self.path):
            place = f"{self.path}, {self.place} {number}"
            self.columns.update(columns_of(raw))
            try:
                yield from self.read(raw)
            except UserError as error:  # the currency is not US dollars
                raise UserError(f"{self.path} {error}") from error
            except ValidationError as error:
                field, message = first_fault(error)
                place += f", field {field or 'the whole entry'}"
                raise UserError(f"{place}: {message}. Export the invoice again.") from error
            except ValueError as error:
                raise UserError(f"{place}: {error}. Export the invoice again.") from error


def _count(value: object) -> object:
    """Parse a count in an export, e.g. 3, "3", "3.0" or "1,234"; None for an empty text."""
    if isinstance(value, str) and not (value := value.replace(",", "").strip()):
        return None
    try:
        number = decimal_of(value) if isinstance(value, str) else value
        if isinstance(number, Decimal):
            return int(number) if number == number.to_integral_value() else str(number)
    except ArithmeticError as error:
        raise ValueError("not a count") from error
    return number


def _count_or_0(value: object) -> object:
    """Parse a count in an export; return 0 for a missing value."""
    return 0 if (count := _count(value)) is None else count


def _money(value: object) -> object:
    """Parse an amount of money in an export; ValueError for a float, which is inexact."""
    if isinstance(value, float):
        raise ValueError("a binary float is not an amount of money")
    if isinstance(value, str):
        bare = value.replace(",", "").replace("$", "").strip()
        return decimal_of(bare) if bare else None
    return value


def _text(value: object) -> object:
    return value.strip() or None if isinstance(value, str) else value


Count = Annotated[int, BeforeValidator(_count), Field(ge=0)]
OptionalCount = Annotated[Count | None, BeforeValidator(_count), Field(default=None)]
Money = Annotated[Decimal, BeforeValidator(_money), Field(allow_inf_nan=False)]
NoCount = Annotated[Count, BeforeValidator(_count_or_0), Field(default=0)]
OptionalMoney = Annotated[Money | None, BeforeValidator(_money), Field(default=None)]
Name = Annotated[str | None, BeforeValidator(_text), Field(default=None)]


def moment(text: str) -> datetime:
    """Parse a time in an export and return it in UTC; a time without a zone is taken as UTC.

    >>> moment("2026-02-01T10:00:00Z").isoformat()
    '2026-02-01T10:00:00+00:00'
    """
    clean = text.strip().removesuffix(" UTC")
    time = datetime.fromisoformat(clean)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _dollars_only(currency: str | None) -> None:
    if currency and currency.upper() != "USD":
        raise UserError(
            f"bills in {currency.upper()}, and only US dollars are compared. Export it in USD."
        )


def span_text(start: datetime, end: datetime) -> str:
    """Return a time bucket as text, e.g. `2026-02-01`, `2026-02-01T10h` or `START/END`.

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


PROJECT = AliasChoices("project_id", "workspace_id", "project.id", "project")
KEY = AliasChoices("api_key_id", "api_key")


class _Result(BaseModel):
    """A row or result of an export: fields of `InvoiceLine`, read from the provider's names."""

    currency: Name
    model: Name
    project: Annotated[Name, Field(validation_alias=PROJECT)]
    key: Annotated[Name, Field(validation_alias=KEY)]

    def line(self, span: Span) -> InvoiceLine:
        _dollars_only(self.currency)
        values: dict[str, Any] = {"model": ""}
        values |= {name: value for name, value in self if name in LINE and value is not None}
        return InvoiceLine(*span, **values | self._worked_out())

    def _worked_out(self) -> dict[str, Any]:
        return {}


LINE = frozenset(column.name for column in fields(InvoiceLine))


# OpenAI's usage and costs APIs and the usage page's CSV, which flattens the same fields
# (platform.openai.com/docs/api-reference/usage, "Completions usage object" and "Costs object";
# OpenAPI document 2.3.0): `input_tokens` includes cached tokens and tokens written to the cache.
class _OpenAIUsage(_Result):
    input_tokens: Count
    output: Annotated[Count, Field(alias="output_tokens")]
    cache_read: Annotated[NoCount, Field(alias="input_cached_tokens")]
    cache_write: Annotated[OptionalCount, Field(alias="input_cache_write_tokens")]
    requests: Annotated[OptionalCount, Field(alias="num_model_requests")]

    def _worked_out(self) -> dict[str, Any]:
        cached = self.cache_read + (self.cache_write or 0)
        return {"input_uncached": _uncached(self.input_tokens, cached)}


def _uncached(total: int, cached: int) -> int:
    if cached > total:
        raise ValueError(f"more cached tokens ({cached}) than input_tokens")
    return total - cached


class _Amount(BaseModel):
    value: Money
    currency: str


class _OpenAICost(_Result):
    amount: _Amount
    item: Annotated[Name, Field(alias="line_item")]

    def _worked_out(self) -> dict[str, Any]:
        _dollars_only(self.amount.currency)
        usd, model = self.amount.value, (self.item or "").partition(",")[0].strip()
        return {"model": model, "usd": usd, "credit": usd < 0}  # line_item begins with the model


class _Bucket(BaseModel):
    results: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


class _OpenAIBucket(_Bucket):
    start_time: Count
    end_time: Count

    @property
    def span(self) -> Span:
        return _second(self.start_time), _second(self.end_time)


def _second(unix: int) -> datetime:
    try:
        return datetime.fromtimestamp(unix, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{unix} is not a time in Unix seconds") from error


def _openai_row(raw: Any) -> Iterator[InvoiceLine]:
    if raw.get("input_tokens") or raw.get("output_tokens"):  # skip buckets without traffic
        span = _OpenAIBucket.model_validate(raw).span
        yield _OpenAIUsage.model_validate(raw).line(span)


# Anthropic's Admin API (platform.claude.com/docs, "Get Messages Usage Report" and "Get Cost
# Report"): uncached input, cache reads and cache writes are separate fields; `amount` is a decimal
# string in cents. The usage report counts no requests. Null `workspace_id`: default workspace.
class _Writes(BaseModel):
    ephemeral_5m_input_tokens: NoCount
    ephemeral_1h_input_tokens: NoCount


class _AnthropicUsage(_Result):
    input_uncached: Annotated[NoCount, Field(alias="uncached_input_tokens")]
    cache_read: Annotated[NoCount, Field(alias="cache_read_input_tokens")]
    cache_creation: _Writes = _Writes.model_validate({})
    output: Annotated[NoCount, Field(alias="output_tokens")]

    def _worked_out(self) -> dict[str, Any]:
        return {"cache_write": sum(written for _, written in self.cache_creation)}


class _AnthropicCost(_Result):
    amount: Money
    currency: str = "USD"  # pyright: ignore[reportIncompatibleVariableOverride] - never null here
    item: Annotated[Name, Field(alias="description")]

    def _worked_out(self) -> dict[str, Any]:
        return {"usd": self.amount / 100, "credit": self.amount < 0}


class _AnthropicBucket(_Bucket):
    starting_at: Time
    ending_at: Time

    @property
    def span(self) -> Span:
        return self.starting_at, self.ending_at


# A CSV with one row per request: podium's own, for providers without an export (input tokens
# include cached ones), or OpenRouter's activity export (openrouter.ai/docs, "Generation data").
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


class _OwnRow(_Result):
    request_id: Name
    model: str  # pyright: ignore[reportIncompatibleVariableOverride] - never null here
    time: str
    input_tokens: OptionalCount
    cached_tokens: NoCount
    output: Annotated[OptionalCount, Field(alias="output_tokens")]
    usd: OptionalMoney

    def _worked_out(self) -> dict[str, Any]:
        values: dict[str, Any] = {"model": self.model.strip(), "requests": 1}
        if self.input_tokens is not None:
            values["input_uncached"] = _uncached(self.input_tokens, self.cached_tokens)
            values["cache_read"] = self.cached_tokens
        return {**values, "credit": self.usd is not None and self.usd < 0}


def _own_row(raw: Any) -> Iterator[InvoiceLine]:
    row = _OwnRow.model_validate(raw)
    start = moment(row.time).replace(minute=0, second=0, microsecond=0)
    yield row.line((start, start + HOUR))


def _openrouter_row(raw: Any) -> Iterator[InvoiceLine]:
    return _own_row({ours: raw.get(theirs, "") for theirs, ours in OPENROUTER.items()})


# Google Cloud billing export: rows of BigQuery's standard usage table ("Structure of Standard data
# export", cloud.google.com/billing/docs). One row is one SKU, e.g. "Generate content output token
# count gemini 2.5 flash short input text": model and kind of token are read from that name,
# "output" before "input", because a name may have both. Cost types except `regular` are credits.
TOKEN_UNITS = frozenset({"count", "token", "tokens", ""})
MODEL = re.compile(
    r"gemini[ -](\d+(?:\.\d+)?)[ -](flash|pro|ultra|nano)(?:[ -](lite))?", re.IGNORECASE
)
GROUPED = re.compile(r"(sku|project|usage)(?:\.|_(?!(?:start|end)_time$))(.*)")


class _Credit(BaseModel):
    name: Name
    amount: Money


class _GoogleRow(_Result):
    item: Annotated[str | None, BeforeValidator(_text), Field(alias="sku.description")]
    amount: Annotated[OptionalMoney, Field(alias="usage.amount")]
    unit: Annotated[Name, Field(alias="usage.unit")]
    usage_start_time: Time
    usage_end_time: Annotated[datetime | None, BeforeValidator(_time)] = None
    usd: Annotated[Money, Field(alias="cost")]
    cost_type: Name
    credits: list[_Credit] = Field(default_factory=list[_Credit])

    def _worked_out(self) -> dict[str, Any]:
        credit = self.usd < 0 or (self.cost_type or "regular") != "regular"
        values = {"model": model_of(self.item or ""), "credit": credit}
        kind, amount = kind_of(self.item or ""), self.amount
        if self.usd < 0 or amount is None or kind is None:
            return values
        if (self.unit or "").lower() not in TOKEN_UNITS:
            return values
        if amount < 0 or amount != amount.to_integral_value():
            raise ValueError(f"{amount} is not a count of tokens")
        return {**values, "input_uncached": 0, "cache_read": 0, "output": 0, kind: int(amount)}


def _google_row(raw: Any) -> Iterator[InvoiceLine]:
    row = _GoogleRow.model_validate(_flat(raw))
    span = row.usage_start_time, row.usage_end_time or row.usage_start_time + HOUR
    line = row.line(span)
    yield line
    for credit in row.credits:
        item = credit.name or "credit"
        yield InvoiceLine(
            *span, line.model, line.project, usd=credit.amount, item=item, credit=True
        )


def _flat(raw: Any) -> Any:
    """Return a row of Google's export with dotted keys (`sku.description`) for nested columns."""
    columns: dict[str, Any] = {}
    for name, value in cast(Mapping[str, Any], raw).items() if isinstance(raw, dict) else ():
        if isinstance(value, dict):
            group = cast(Mapping[str, Any], value)
            columns |= {f"{name}.{key}": item for key, item in group.items()}
        elif match := GROUPED.fullmatch(name):
            columns[f"{match[1]}.{match[2]}"] = value
        elif name != "credits" or isinstance(value, list):
            columns[name] = value
    return columns if isinstance(raw, dict) else raw


def kind_of(sku: str) -> str | None:
    """Return the `InvoiceLine` field for the tokens of a SKU (billed item); None if it has none.

    >>> kind_of("Generate content output token count gemini 2.5 flash short input text")
    'output'
    """
    name = sku.lower()
    kinds = (("cach", "cache_read"), ("output", "output"), ("input", "input_uncached"))
    matches = (kind for word, kind in kinds if word in name and "token" in name)
    return next(matches, None)


def model_of(sku: str) -> str:
    """Return the API's name of the model in a SKU (billed item); empty if the SKU has no model.

    >>> model_of("Generate content input token count gemini 2.5 flash lite long input text")
    'gemini-2.5-flash-lite'
    """
    match = MODEL.search(sku)
    return "-".join(["gemini", *(word.lower() for word in match.groups() if word)]) if match else ""


OPENAI = ("openai", "openai-api")
ANTHROPIC = ("anthropic",)
GOOGLE = ("google", "vertex")

Format = tuple[str, tuple[str, ...], Reader]
"""Format of an export: its name, prefixes of billed model ids, reader of rows or buckets."""
CSV: tuple[tuple[str, Format], ...] = (
    (
        "generation_id model_permaslug cost_total",
        ("openrouter-csv", ("openrouter",), _openrouter_row),
    ),
    ("start_time end_time", ("openai-usage-csv", OPENAI, _openai_row)),
    ("usage_start_time cost", ("google-billing", GOOGLE, _google_row)),
    ("model time input_tokens output_tokens", ("csv", (), _own_row)),
)
"""Required columns of a CSV export, and its format; the first entry that matches counts."""


def _buckets(
    bucket: type[_OpenAIBucket | _AnthropicBucket],
    result: type[_OpenAIUsage | _OpenAICost | _AnthropicUsage | _AnthropicCost],
) -> Reader:
    def read(raw: Any) -> Iterator[InvoiceLine]:
        content = bucket.model_validate(raw)
        return (result.model_validate(entry).line(content.span) for entry in content.results)

    return read


def _bucketed(result: Mapping[str, Any]) -> Format | None:
    """Return the format of a JSON export, known from the first result in it; None if unknown."""
    match result:
        case {"object": "organization.costs.result"} | {"amount": {}}:
            return "openai-costs", OPENAI, _buckets(_OpenAIBucket, _OpenAICost)
        case {"object": "organization.usage.completions.result"} | {"input_tokens": _}:
            return "openai-usage", OPENAI, _buckets(_OpenAIBucket, _OpenAIUsage)
        case {"uncached_input_tokens": _}:
            return "anthropic-usage", ANTHROPIC, _buckets(_AnthropicBucket, _AnthropicUsage)
        case {"amount": _}:
            return "anthropic-costs", ANTHROPIC, _buckets(_AnthropicBucket, _AnthropicCost)
        case _:
            return None


FORMATS = (
    "OpenAI usage (JSON, CSV) or costs, Anthropic usage or cost report, Google Cloud billing rows "
    "(JSON lines, CSV), OpenRouter activity CSV, or a CSV with model, time, input_tokens, "
    "output_tokens"
)


def read_invoice(path: Path) -> Invoice:
    """Detect the format of a billing export; UserError if unsupported or if pages are missing."""
    # Malformed lines raise later, in `Invoice.lines`.
    try:
        line = _first_line(path)
        names = next((row for _, row in rows_of_csv(iter([line]))), list[str]())
    except TooLarge as error:
        raise UserError(f"{path} is not a supported export: {error}. Use {FORMATS}.") from error
    except ValueError as error:
        raise _unknown(path) from error
    if line.startswith(("{", "[")):
        return _json_invoice(path)
    columns = {name.strip() for name in names}
    for needed, format in CSV:
        if columns.issuperset(needed.split()):
            return Invoice(path, *format, _csv)
    raise _unknown(path)


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig") as file:
        lines = lines_of(file, LONGEST_LINE)
        return next((line.strip() for line in lines if line.strip()), "")


def _unknown(path: Path) -> UserError:
    return UserError(f"{path} is not a supported export. Use {FORMATS}.")


def _csv(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = lines_of(file, LONGEST_LINE)
            rows = ((number, row) for number, row in rows_of_csv(lines) if row)
            names = [name.strip() for name in next(rows, (0, list[str]()))[1]]
            for number, row in rows:
                if len(row) != len(names):
                    raise UserError(
                        f"{path}, line {number}: {len(row)} fields, but the header has "
                        f"{len(names)}. Export the invoice again."
                    )
                yield number, dict(zip(names, row, strict=True))
    except ValueError as error:
        raise UserError(f"{path} cannot be read as CSV: {error}. Export it again.") from error


def _json_invoice(path: Path) -> Invoice:
    if "usage_start_time" in _object(next(_values(path), (1, None))[1]):
        return Invoice(path, "google-billing", GOOGLE, _google_row, _values)
    buckets: list[Any] = []
    page: Mapping[str, Any] = {}
    for number, value in _values(path):
        page = _object(value)
        data: Any = page.get("data")
        if data is not None and not isinstance(data, list):
            raise UserError(f"{path}, page {number}: its data is not a list. Export it again.")
        buckets += [value] if data is None else cast(list[Any], data)
    if page.get("has_more"):
        raise UserError(
            f"{path} is not the whole export (its last page has has_more). Follow next_page, and "
            "write all pages to one file, one per line."
        )
    format = _bucketed(_first_result(buckets, path))
    if format is None:
        raise _unknown(path)
    return Invoice(path, *format, lambda _: enumerate(buckets, 1), "bucket")


def _object(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _first_result(buckets: list[Any], path: Path) -> Mapping[str, Any]:
    for bucket in buckets:
        results: Any = _object(bucket).get("results")
        if not isinstance(results, list):
            raise _unknown(path)
        for result in cast(list[Any], results):
            if isinstance(result, dict):
                return cast(Mapping[str, Any], result)
    raise UserError(f"{path} bills nothing: its buckets are empty. Export the days of the run.")


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the JSON values in a file, numbered: a list's items, one value, or one per line."""
    try:
        head = _first_line(path)
        if head.startswith("[") or not _is_json(head):
            text = read_limited(path, LONGEST_LINE).decode("utf-8-sig")
            data = _parsed(text, path, 1)
            yield from enumerate(cast(list[Any], data) if isinstance(data, list) else [data], 1)
            return
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(lines_of(file, LONGEST_LINE), 1):
                if line.strip():
                    yield number, _parsed(line, path, number)
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text. Export the invoice again.") from error
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}. Export the invoice again.") from error


def _is_json(line: str) -> bool:
    try:
        parse_json(line, decimal_of)
    except ValueError:
        return False
    return True


def _parsed(text: str, path: Path, number: int) -> Any:
    try:
        return parse_json(text, decimal_of)
    except ValueError as error:
        raise UserError(
            f"{path}, line {number}: not valid JSON ({error}). Export the invoice again."
        ) from error
