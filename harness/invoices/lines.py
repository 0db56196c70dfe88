"""One line of an invoice, whoever wrote it; times are UTC, tokens are exclusive, money is Decimal.

Every reader turns its export into these. `input_uncached`, `cache_read` and `cache_write` never
overlap, whatever convention the export follows. None is "the export does not say".
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.errors import UserError
from harness.parsing import decimal_of

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
