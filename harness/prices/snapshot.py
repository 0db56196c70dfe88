"""Make a price book from genai-prices: offline, dated, guarded. Nothing else imports that package.

The package answers for any day, also for days before a model existed or before anybody had written
its price down. So a launch day on record is a bound, a price on record from the time itself wins
(harness/prices/on_record.py), and an answer that is only assumed to have held is `carried-back`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.prices import Book, parse_book
from harness.prices.entries import RATES
from harness.prices.on_record import record_of
from harness.prices.pricing import Evidence, Price, Rates, Service, Tier
from harness.prices.writing import book_text

PACKAGE = "genai-prices"

UNITS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "output_reasoning_mtok": "reasoning",
}
"""The package's units, and our names of them. Searches and other media are in no book of ours."""

CONTEXTS: Mapping[Service, Mapping[str, str]] = {
    "batch": {"processing": "batch"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
}

PROVIDERS = {"bedrock": "aws", "grok": "x-ai", "azureai": "azure"}
"""Where Inspect and the package call a provider by different names."""

HEAD = """\
# Made by `podium prices snapshot`. Books are append-only: correct a price in a newer book.
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a snapshot is to hold."""

    models: tuple[str, ...]
    """Keys of price books: `PROVIDER/MODEL`, by Inspect's name of the provider."""
    day: date
    launched: Mapping[str, str]
    """Launch days (ISO) that the caller vouches for, by model."""


@dataclass(frozen=True, slots=True)
class Source:
    """The package as it is installed."""

    providers: Sequence[Any]
    version: str
    known_on: date
    """The newest past day that its data name: on that day it described all of its prices."""


def installed(today: date) -> Source:
    """Return the package's data; UserError names the extra where it is missing."""
    try:
        from genai_prices.data import providers
    except ImportError:
        raise UserError(
            "Making or comparing a price book needs genai-prices: "
            "`pip install '.[prices]'` in the checkout."
        ) from None
    days = (day for one in providers for model in one.models for day in _start_days(model))
    known_on = max((day for day in days if day <= today), default=today)
    return Source(providers, metadata.version(PACKAGE), known_on)


def snapshot(wanted: Wanted, out: Path, today: date) -> tuple[str, tuple[str, ...]]:
    """Return the text of a book for some models on a day, and what its reader should know.

    UserError for a day in the future or before a launch, and for a model without one price.
    """
    if wanted.day > today:
        raise UserError(f"Nobody knows the prices of {wanted.day}: give a --date up to {today}.")
    source = installed(today)
    prices: dict[str, Price] = {}
    notes: list[str] = []
    for ref in sorted(set(wanted.models)):
        prices[ref], said = price_on(ref, wanted, source)
        notes += said
    text = HEAD + book_text(
        Book(
            name=out.stem,
            date=wanted.day.isoformat(),
            source=f"{PACKAGE} {source.version} (pydantic, MIT), asked offline",
            prices=prices,
            sha256="",
            retrieved=today.isoformat(),
        )
    )
    parse_book(text.encode(), out)
    return text, tuple(notes)


def write_new(text: str, out: Path) -> None:
    """Write a book where no file is yet; UserError where one is."""
    if out.suffix != ".toml":
        raise UserError(f"A price book's file ends in .toml; {out} does not.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(
            f"{out} is there already, and a price book is never overwritten: give another --out."
        ) from None


def price_on(ref: str, wanted: Wanted, source: Source) -> tuple[Price, tuple[str, ...]]:
    """Return a model's price on a day, and what its reader should know."""
    model = _found(ref, source)
    if any(hasattr(part.constraint, "start_time") for part in _conditional(model)):
        raise UserError(f"The price of {ref} changes within a day, and a book has one price a day.")
    moment = datetime.combine(wanted.day, datetime.min.time(), UTC)
    answered = _price(ref, model.get_prices(moment))
    start = max((day for day in _price_days(model) if day <= wanted.day), default=None)
    launched = _launch(ref, wanted, start or source.known_on)
    record = record_of(ref)
    row = record.on(wanted.day) if record else None
    asked = ref.partition("/")[2]
    notes = [] if model.id == asked else [f"{ref}: {PACKAGE} takes it for its {model.id!r}"]
    if row and wanted.day < source.known_on and (start is None or start < row.since):
        price = row.price
        if (price.input, price.output) != (answered.input, answered.output):
            notes.append(f"{ref}: {PACKAGE} now answers otherwise for that day; its record wins")
    else:
        dated = wanted.day >= source.known_on or start is not None
        evidence: Evidence = "dated" if dated else "carried-back"
        price = replace(answered, evidence=evidence)
    services = _services(model, moment, answered)
    notes += [
        f"{ref}: its {name} prices are no one factor, so it has none" for name in services.odd
    ]
    return replace(
        price, services=services.factors, full_rate=services.kept, launched=launched
    ), tuple(notes)


def _found(ref: str, source: Source) -> Any:
    """Return the package's entry of a model at that very provider, not at one it falls back on."""
    name, _, model = ref.partition("/")
    wanted = PROVIDERS.get(name, name)
    provider = next((one for one in source.providers if one.id == wanted), None)
    found = provider.find_model(model) if provider and model else None
    if found is None:
        raise UserError(
            f"{PACKAGE} {source.version} has no price of {ref!r}: name it as PROVIDER/MODEL, leave "
            "it out, or write its entry by hand, with a source."
        )
    return found


def _launch(ref: str, wanted: Wanted, described: date) -> str:
    """Return the launch day that is on record; UserError for a day before it, or without one.

    `described` is a day on which the package described the model for sure.
    """
    record = record_of(ref)
    said = record.launched.isoformat() if record else wanted.launched.get(ref, "")
    if said and wanted.day.isoformat() < said:
        raise UserError(f"Nobody could call {ref} on {wanted.day}: it was launched on {said}.")
    if not said and wanted.day < described:
        raise UserError(
            f"No launch day of {ref} is on record, so nobody can say whether it had a price on "
            f"{wanted.day}: give it with --launched {ref}=YEAR-MONTH-DAY."
        )
    return said


def _start_days(model: Any) -> list[date]:
    """Return every day on which a price of a model begins, special services included."""
    parts = [*_conditional(model), *(model.price_variants or ())]
    days = [getattr(part.constraint, "start_date", None) for part in parts]
    return [day for day in days if day is not None]


def _price_days(model: Any) -> list[date]:
    days = [getattr(part.constraint, "start_date", None) for part in _conditional(model)]
    return [day for day in days if day is not None]


def _conditional(model: Any) -> Sequence[Any]:
    one_price = hasattr(model.prices, "input_mtok")
    return () if one_price else model.prices


def _price(ref: str, found: Any) -> Price:
    """Return the package's prices of a model as ours; every tier has all its rates."""
    listed = {ours: getattr(found, theirs) for theirs, ours in UNITS.items()}
    if listed["input"] is None or listed["output"] is None:
        raise UserError(f"{ref} has no price per token of input and of output at {PACKAGE}.")
    starts = {tier.start for value in listed.values() for tier in getattr(value, "tiers", ())}
    tiers = tuple(Tier(start, _rates(listed, start)) for start in sorted(starts))
    per_thousand = found.requests_kcount
    request = Decimal(0) if per_thousand is None else Decimal(per_thousand) / 1000
    return Price(**asdict(_rates(listed, 0)), tiers=tiers, request=request)


def _rates(listed: Mapping[str, Any], start: int) -> Rates:
    """Return the rates of a prompt that is longer than `start` tokens."""
    found: dict[str, Decimal | None] = {}
    for name, value in listed.items():
        reached = [tier.price for tier in getattr(value, "tiers", ()) if tier.start <= start]
        found[name] = reached[-1] if reached else getattr(value, "base", value)
    paid_in, paid_out = found.pop("input"), found.pop("output")
    assert paid_in is not None, "_price refuses a model without it"
    assert paid_out is not None, "_price refuses a model without it"
    return Rates(paid_in, paid_out, **found)


@dataclass(frozen=True, slots=True)
class _Services:
    factors: dict[Service, Decimal]
    kept: dict[Service, tuple[str, ...]]
    odd: tuple[Service, ...]
    """Services whose prices no factor can say."""


def _services(model: Any, moment: datetime, listed: Price) -> _Services:
    """Return the factors of the services that the package prices on a day."""
    factors: dict[Service, Decimal] = {}
    kept: dict[Service, tuple[str, ...]] = {}
    odd: list[Service] = []
    for service, context in CONTEXTS.items():
        served = _price(model.id, model.get_prices(moment, context))
        changes = _factors(listed, served)
        changed = {factor for factor in changes.values() if factor != 1}
        if len(changed) == 1:
            factors[service] = changed.pop()
            full = tuple(name for name, factor in changes.items() if factor == 1)
            kept |= {service: full} if full else {}
        elif changed:
            odd.append(service)
    return _Services(factors, kept, tuple(odd))


def _factors(listed: Price, served: Price) -> dict[str, Decimal]:
    """Return by what each rate changes; NaN where its tiers change by different factors."""
    pairs = list(zip((listed.base, *_of(listed)), (served.base, *_of(served)), strict=False))
    found: dict[str, Decimal] = {}
    for name in RATES:
        rates = [(getattr(one, name), getattr(other, name)) for one, other in pairs]
        factors = {other / one for one, other in rates if one and other is not None}
        if factors:
            found[name] = factors.pop() if len(factors) == 1 else Decimal("NaN")
    return found


def _of(price: Price) -> tuple[Rates, ...]:
    return tuple(tier.rates for tier in price.tiers)
