"""Make a price book from the package genai-prices, compare books, and write one for Inspect.

The package returns prices even for days before its records begin. Therefore a model has no price
before its launch day, dated records (history/) take precedence, and a later price that is used for
an earlier day is marked `carried-back`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module, metadata
from pathlib import Path
from textwrap import fill
from typing import Any

from inspect_ai.model import ModelCost, get_model_info

from podium.harness.errors import UserError, no_such
from podium.harness.prices import BOOKS, parse_book, read_book
from podium.harness.prices.book import (
    RATES,
    SMALLEST,
    UNDATED,
    Book,
    book_text,
    launch_day,
    price_on_record,
)
from podium.harness.prices.cost import Evidence, Price, Rates, Service, Tier
from podium.harness.text import columns, records

PACKAGE = "genai-prices"
BY_HAND = "; leave it out, or write its entry by hand, with a source"

UNITS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "output_reasoning_mtok": "reasoning",
}
"""Units of genai-prices -> podium's names of rates. No book has prices of searches or images."""

ODD = "prices are no one factor, so it has none"
"""End of the note on a service tier whose rates are the standard rates times different factors: a
book can state only one factor, so it states none."""
BESIDE = ("output_citation_mtok", "input_text_messages_kcount", "input_mchars")
"""Units of genai-prices, other than tokens, for which a call with only text is billed."""

CONTEXTS: Mapping[Service, Mapping[str, str]] = {
    "batch": {"processing": "batch"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
}

PROVIDERS = {"bedrock": "aws", "grok": "x-ai", "azureai": "azure", "moonshot": "moonshotai"}
"""Inspect's name of a provider -> the provider's name in genai-prices, if the two differ."""

HEAD = """\
# Made by `podium prices snapshot`. Books are append-only: correct a price in a newer book.
"""


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """The models, and the day, whose prices a new price book (snapshot) shall state."""

    models: tuple[str, ...]
    """Keys of price books: `PROVIDER/MODEL`, by Inspect's name of the provider."""
    day: date
    launched: Mapping[str, str]
    """Launch days (ISO) that the user states, by model."""


@dataclass(frozen=True, slots=True)
class PriceSource:
    """The price data of the package genai-prices, with its version."""

    providers: Sequence[Any]
    version: str
    known_on: date
    """The newest start date of a price, up to today and to the first day on which a shipped book
    was made from this version; on that day all prices were current."""


def installed(today: date) -> PriceSource:
    """Return the price data of the package genai-prices; UserError if it is not installed."""
    try:
        data: Any = import_module("genai_prices.data")  # its types would take pyright 100 s
    except ImportError:
        raise UserError(
            "Making or comparing a price book needs genai-prices: "
            "`pip install '.[prices]'` in the checkout."
        ) from None
    source = PriceSource(data.providers, metadata.version(PACKAGE), today)
    books = (read_book(path.stem) for path in BOOKS.glob("*.toml"))
    in_use = (date.fromisoformat(book.retrieved) for book in books if _made_from(book, source))
    return _known_on(min(in_use, default=today), source)


def _known_on(day: date, source: PriceSource) -> PriceSource:
    """Return price data for which `known_on` is no later than a day on which they were in use.

    Prices in them that begin after that day were only announced.
    """
    return replace(source, known_on=newest_day(source.providers, min(day, source.known_on)))


def _made_from(book: Book, source: PriceSource) -> bool:
    """Return whether a book states the day on which it was made from this version's own data."""
    return bool(book.retrieved) and book.source.startswith(f"{PACKAGE} {source.version} (")


def newest_day(providers: Sequence[Any], today: date) -> date:
    """Return the newest start date of a price in genai-prices, up to today; today if none."""
    models: list[Any] = [model for provider in providers for model in provider.models]
    prices = [price for model in models for price in _conditional(model)]
    variants = [price for model in models for price in model.price_variants or ()]
    return max((day for day in _days([*prices, *variants]) if day <= today), default=today)


class Unpriceable(UserError):
    """Raised if a book cannot state a model's price; `why`: the reason without the model's name."""

    def __init__(self, ref: str, reason: str, fix: str = BY_HAND) -> None:
        """Make the message from the model's key, the reason and the fix."""
        super().__init__(f"{ref}: {reason}{fix}.")
        self.why = reason


def snapshot(request: SnapshotRequest, out: Path, today: date) -> tuple[str, tuple[str, ...]]:
    """Return the TOML text of a price book for some models on a day, and notes for the user."""
    if request.day > today:
        raise UserError(
            f"The prices of {request.day} are not known yet: give a --date up to {today}."
        )
    source = installed(today)
    prices: dict[str, Price] = {}
    notes: list[str] = []
    for ref in sorted(set(request.models)):
        prices[ref], remarks = price_on(ref, request, source)
        notes += remarks
    text = HEAD + book_text(
        Book(
            name=out.stem,
            date=request.day.isoformat(),
            source=f"{PACKAGE} {source.version} (pydantic, MIT), asked offline",
            prices=prices,
            sha256="",
            retrieved=today.isoformat(),
        )
    )
    parse_book(text.encode(), out)
    return text, tuple(notes)


def refuse_taken(out: Path) -> None:
    """Raise UserError if a new price book cannot have this path: it exists, or is no .toml file."""
    if out.suffix != ".toml":
        raise UserError(f"{out} does not end in .toml. Give --out a .toml file.")
    if out.exists():
        raise UserError(
            f"{out} already exists, and a price book is never overwritten: give another --out."
        )


def write_new(text: str, out: Path) -> None:
    """Write a price book's text to a new file; UserError if the file exists."""
    refuse_taken(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:  # created since the check above
        raise UserError(f"{out} already exists: give another --out.") from None


def our_name(provider: Any) -> str:
    """Return the name that price-book keys use for a provider of genai-prices."""
    return next((ours for ours, theirs in PROVIDERS.items() if theirs == provider.id), provider.id)


def price_on(
    ref: str, request: SnapshotRequest, source: PriceSource
) -> tuple[Price, tuple[str, ...]]:
    """Return a model's price on the day of a snapshot request, and notes for the user."""
    return price_of(ref, _found(ref, source), request, source)


def price_of(
    ref: str, model: Any, request: SnapshotRequest, source: PriceSource
) -> tuple[Price, tuple[str, ...]]:
    """Return the price of a genai-prices entry, and notes; Unpriceable if no book can state it."""
    if any(hasattr(entry.constraint, "start_time") for entry in _conditional(model)):
        raise Unpriceable(ref, "its price changes within a day, and a book has one price a day")
    moment = datetime.combine(request.day, datetime.min.time(), UTC)
    answered = _price(ref, model.get_prices(moment))
    start = max((day for day in _days(_conditional(model)) if day <= request.day), default=None)
    launched = _launch(ref, request, start or source.known_on)
    record = price_on_record(ref, request.day)
    name = ref.partition("/")[2]
    notes = [] if model.id == name else [f"{ref}: {PACKAGE} treats it as its model {model.id!r}"]
    older = request.day < source.known_on
    if record and older and (start is None or start.isoformat() < record[1]):
        price = record[0]
        if (price.input, price.output) != (answered.input, answered.output):
            notes.append(
                f"{ref}: {PACKAGE} now returns another price for that day; the price on "
                "record is used"
            )
    else:
        dated = request.day >= source.known_on or start is not None
        evidence: Evidence = "dated" if dated else "carried-back"
        price = replace(answered, evidence=evidence)
    factors, full_rates, odd = _services(model, moment, answered)
    notes += [f"{ref}: its {name} {ODD}" for name in odd]
    price = replace(price, services=factors, full_rate=full_rates, launched=launched)
    return price, tuple(notes)


def _found(ref: str, source: PriceSource) -> Any:
    """Return a model's entry in genai-prices, at its own provider only; UserError if missing."""
    name, _, model = ref.partition("/")
    provider_id = PROVIDERS.get(name, name)
    provider = next((provider for provider in source.providers if provider.id == provider_id), None)
    if provider is None and model:
        ids = sorted(our_name(provider) for provider in source.providers)
        raise no_such("provider", name, ids, f"so {PACKAGE} has no price of {ref!r}; providers: ")
    model_entry = provider.find_model(model) if provider and model else None
    if model_entry is None:
        raise UserError(
            f"{PACKAGE} {source.version} has no price of {ref!r}: name it as PROVIDER/MODEL, leave "
            "it out, or write its entry by hand, with a source."
        )
    return model_entry


def _launch(ref: str, request: SnapshotRequest, described: date) -> str:
    """Return a model's launch day (empty: unknown); Unpriceable if `request.day` may be earlier."""
    # On the day `described`, genai-prices certainly had a price of the model.
    day = launch_day(ref) or request.launched.get(ref, "")
    if day and request.day.isoformat() < day:
        reason = f"it was launched on {day}, after {request.day}"
        raise Unpriceable(ref, reason, "; give a later --date, or leave it out")
    if not day and request.day < described:
        reason = f"its launch day is not on record, so it may have had no price on {request.day}"
        raise Unpriceable(ref, reason, f"; give it with --launched {ref}=YEAR-MONTH-DAY")
    return day


def _days(entries: Iterable[Any]) -> list[date]:
    days = (getattr(entry.constraint, "start_date", None) for entry in entries)
    return [day for day in days if day is not None]


def _conditional(model: Any) -> Sequence[Any]:
    return () if hasattr(model.prices, "input_mtok") else model.prices


def _price(ref: str, entry: Any) -> Price:
    listed = {ours: getattr(entry, theirs) for theirs, ours in UNITS.items()}
    if listed["input"] is None or listed["output"] is None:
        raise Unpriceable(ref, "it has no price per token of input and of output")
    if unit := next((name for name in BESIDE if getattr(entry, name) is not None), None):
        raise Unpriceable(ref, f"a call is billed for {unit} too, which no book has")
    starts = {tier.start for value in listed.values() for tier in getattr(value, "tiers", ())}
    tiers = tuple(Tier(start, Rates(**_rates(listed, start))) for start in sorted(starts))
    per_thousand = entry.requests_kcount
    request = Decimal(0) if per_thousand is None else Decimal(per_thousand) / 1000
    return Price(**_rates(listed, 0), tiers=tiers, request=request)


def _rates(listed: Mapping[str, Any], start: int) -> dict[str, Any]:
    rates: dict[str, Any] = {}
    for name, value in listed.items():
        reached = [tier.price for tier in getattr(value, "tiers", ()) if tier.start <= start]
        rates[name] = _cut(reached[-1] if reached else getattr(value, "base", value))
    return rates


def _cut(rate: Decimal | None) -> Decimal | None:
    """Return a rate, rounded to six decimals if a book cannot hold it exactly, e.g. 1/12 dollar."""
    return rate if rate is None or rate % SMALLEST == 0 else rate.quantize(Decimal("1e-6"))


def _services(
    model: Any, moment: datetime, listed: Price
) -> tuple[dict[Service, Decimal], dict[Service, tuple[str, ...]], list[Service]]:
    """Return each service tier's factor, the rates it leaves out, and the tiers without factor."""
    factors: dict[Service, Decimal] = {}
    full_rates: dict[Service, tuple[str, ...]] = {}
    odd: list[Service] = []
    for service, context in CONTEXTS.items():
        changes = _factors(listed, _price(model.id, model.get_prices(moment, context)))
        changed = {factor for factor in changes.values() if factor != 1}
        if len(changed) == 1 and _is_exact(*changed):
            factors[service] = changed.pop()
            full = tuple(name for name, factor in changes.items() if factor == 1)
            full_rates |= {service: full} if full else {}
        elif changed:
            odd.append(service)
    return factors, full_rates, odd


def _is_exact(factor: Decimal) -> bool:
    return factor.is_finite() and factor == factor.quantize(SMALLEST)


def _factors(listed: Price, served: Price) -> dict[str, Decimal]:
    """Return rate -> its factor from `listed` to `served`; NaN if it differs by price tier."""
    sides = ((price.base, *(tier.rates for tier in price.tiers)) for price in (listed, served))
    pairs = list(zip(*sides, strict=False))
    factors_by_rate: dict[str, Decimal] = {}
    for name in RATES:
        rates = [(getattr(old, name), getattr(new, name)) for old, new in pairs]
        factors = {new / old for old, new in rates if old and new is not None}
        if factors:
            factors_by_rate[name] = factors.pop() if len(factors) == 1 else Decimal("NaN")
    return factors_by_rate


ABSENT = "—"


@dataclass(frozen=True, slots=True)
class Change:
    """One field of one model's entry that two price books state differently."""

    model: str
    field: str
    """Name of a rate, `evidence`, ..., or `entry` if only one of the books has the model."""
    old: str
    new: str


def changes(old: Book, new: Book) -> tuple[Change, ...]:
    """Return the changes from one price book to another, sorted by model."""
    models = sorted({*old.prices, *new.prices})
    pairs = ((model, old.prices.get(model), new.prices.get(model)) for model in models)
    return tuple(change for pair in pairs for change in _changed(*pair))


def _changed(model: str, old: Price | None, new: Price | None) -> list[Change]:
    if old is None or new is None:
        rates = (in_and_out(price) if price else ABSENT for price in (old, new))
        return [Change(model, "entry", *rates)]
    was, now = _fields(old), _fields(new)
    pairs = ((name, was.get(name, ABSENT), now.get(name, ABSENT)) for name in was | now)
    return [Change(model, *pair) for pair in pairs if pair[1] != pair[2]]


def in_and_out(price: Price) -> str:
    """Return a price's rates of input and output tokens, in words."""
    return f"{number(price.input)} in, {number(price.output)} out"


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing a price book with the data of genai-prices."""

    changes: tuple[Change, ...]
    """Differences: `old` is the book's value, `new` the value of a new snapshot."""
    others: tuple[str, ...]
    """Keys of entries whose source is not genai-prices, so that it cannot confirm them."""


def compared(book: Book, source: PriceSource) -> Compared:
    """Compare a book's entries from genai-prices with a new snapshot for the book's day."""
    if book.date == UNDATED or not book.source.startswith(PACKAGE):
        return Compared((), tuple(sorted(book.prices)))
    launched = {model: price.launched for model, price in book.prices.items() if price.launched}
    request = SnapshotRequest((), date.fromisoformat(book.date), launched)
    if _made_from(book, source):
        source = _known_on(date.fromisoformat(book.retrieved), source)
    differences: list[Change] = []
    unconfirmed: list[str] = []
    for model, price in sorted(book.prices.items()):
        if price.source and not price.source.startswith(PACKAGE):
            unconfirmed.append(model)
        else:
            differences += _changed(model, price, price_on(model, request, source)[0])
    return Compared(tuple(differences), tuple(unconfirmed))


def _fields(price: Price) -> dict[str, str]:
    texts = {name: number(rate) for name, rate in asdict(price.base).items() if rate is not None}
    for tier in price.tiers:
        rates = asdict(tier.rates).items()
        texts |= {f">{tier.above} {name}": number(rate) for name, rate in rates if rate is not None}
    texts |= {name: f"x {number(factor)}" for name, factor in price.services.items()}
    texts |= {f"{name} keeps": ", ".join(rates) for name, rates in price.full_rate.items()}
    if price.request:
        texts["request"] = number(price.request)
    if price.gpu:
        texts["gpu"] = f"{price.gpu.count} {price.gpu.type}, {number(price.gpu.usd_per_hour)}/h"
    return texts | {"evidence": price.evidence or "not said"}


def number(value: Decimal) -> str:
    """Return a number as text with all its decimals, but at least two.

    >>> number(Decimal("10")), number(Decimal("0.1250"))
    ('10.00', '0.125')
    """
    plain = format(value.normalize(), "f")
    integer, _, decimals = plain.partition(".")
    return f"{integer}.{decimals.ljust(2, '0')}"


WIDTH = 98
HEADS = ("model", "in", "out", "cached", "write", "write 1h", "evidence")
NOTE = "US dollars per million tokens. A — is unknown: such tokens have no price, not a price of 0."


def show_books() -> tuple[list[dict[str, Any]], str]:
    """Return the shipped books as records, and as a table with one line per book."""
    books = [read_book(path.stem) for path in sorted(BOOKS.glob("*.toml"))]
    rows = [(book.name, book.date, str(len(book.prices)), _evidence(book)) for book in books]
    heads = ("book", "prices of", "models", "evidence")
    return records(heads, rows), columns(heads, rows)


def show_book(book: Book) -> str:
    """Return a table of all prices of a book, with tiers and services below it."""
    rows = [row for ref in sorted(book.prices) for row in _rows(ref, book.prices[ref])]
    retrieved = f", retrieved {book.retrieved}" if book.retrieved else ""
    title = f"{book.name}: prices of {book.date}\nsource: {book.source}{retrieved}"
    table = columns(HEADS, rows) if rows else "No model has a price in this book."
    extras = [line for ref in sorted(book.prices) for line in _extras(ref, book.prices[ref])]
    extras += [_rule(*rule) for rule in sorted(book.built_in.items())]
    blocks = [title, table, *(["\n".join(extras)] if extras else []), NOTE]
    return "\n\n".join([*blocks, f"sha256 {book.sha256}"])


def show_changes(differences: Sequence[Change], heads: tuple[str, str]) -> str:
    """Return the differences between two books as a table."""
    rows = [(change.model, change.field, change.old, change.new) for change in differences]
    return columns(("model", "field", *heads), rows)


def _rows(ref: str, price: Price) -> list[tuple[str, ...]]:
    rows = [(ref, *_cells(price.base), price.evidence or "not said")]
    for tier in price.tiers:
        rows.append((f"  prompts over {tier.above:,} tokens", *_cells(tier.rates), ""))
    return rows


def _cells(rates: Rates) -> tuple[str, ...]:
    values = (rates.input, rates.output, rates.cache_read, rates.cache_write, rates.cache_write_1h)
    return tuple(ABSENT if rate is None else number(rate) for rate in values)


def _extras(ref: str, price: Price) -> list[str]:
    notes: list[str] = []
    for service, factor in price.services.items():
        rates = price.full_rate.get(service)
        notes.append(f"{service} x {factor}" + (f" (not {', '.join(rates)})" if rates else ""))
    if price.reasoning is not None:
        notes.append(f"reasoning {number(price.reasoning)}")
    if price.orchestration_in is not None and price.orchestration_out is not None:
        pair = f"{number(price.orchestration_in)} in, {number(price.orchestration_out)} out"
        notes.append(f"orchestration {pair}")
    if price.request:
        notes.append(f"{number(price.request)} a request")
    if gpu := price.gpu:
        notes.append(f"own hardware: {gpu.count} {gpu.type} at {number(gpu.usd_per_hour)} an hour")
        notes.append(f"{gpu.tokens_per_s} tokens/s ({gpu.source})")
    notes += [f"source: {price.source}"] if price.source else []
    text = f"{ref}: {'; '.join(notes)}"
    return [fill(text, WIDTH, subsequent_indent="  ", break_long_words=False)] if notes else []


def _rule(start: str, price: Price) -> str:
    text = f"{start}*, built in: {in_and_out(price)} ({price.source})"
    return fill(text, WIDTH, subsequent_indent="  ", break_long_words=False)


def _evidence(book: Book) -> str:
    kinds = [price.evidence for price in book.prices.values()]
    counts = [(kind, kinds.count(kind)) for kind in ("dated", "carried-back", "")]
    return ", ".join(f"{count} {kind or 'not said'}" for kind, count in counts if count) or ABSENT


LOADED = ("hf", "nnterp", "sglang", "transformer_lens", "vllm")
"""Providers whose library Inspect would load, or for which it would start a server, to look up a
model's name."""
SUFFIXES = (".json", ".yaml", ".yml")  # by which Inspect recognises a file; JSON is YAML, too


@dataclass(frozen=True, slots=True)
class InspectCosts:
    """A price book's prices in the format of Inspect's cost file."""

    costs: dict[str, ModelCost]
    notes: tuple[str, ...]
    """A sentence for each part of a price that Inspect's format cannot express."""
    left_out: dict[str, str]
    """Omitted model -> the reason why Inspect's format cannot express its price."""


def inspect_costs(book: Book) -> InspectCosts:
    """Return a book's prices in Inspect's format; UserError if it can express none of them."""
    left_out = {ref: cause for ref, price in book.prices.items() if (cause := _why_not(ref, price))}
    prices = {ref: price for ref, price in sorted(book.prices.items()) if ref not in left_out}
    if not prices:
        raise UserError(
            f"Inspect knows none of the {len(book.prices)} models of price book {book.name!r}: "
            "take a book of list prices (`podium prices list`)."
        )
    notes = tuple(f"{ref}: {note}." for ref, price in prices.items() for note in _flattened(price))
    return InspectCosts({ref: _cost(price) for ref, price in prices.items()}, notes, left_out)


def write_inspect_costs(inspect_costs: InspectCosts, out: Path) -> None:
    """Write a book's prices for Inspect to a new file; UserError if `out` cannot be this file."""
    if out.suffix not in SUFFIXES:
        raise UserError(f"Inspect reads {', '.join(SUFFIXES)}: give {out} one of these endings.")
    costs = {ref: cost.model_dump() for ref, cost in inspect_costs.costs.items()}
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(json.dumps(costs, indent=2) + "\n")
    except FileExistsError:
        raise UserError(f"{out} already exists: give another --inspect, or move it.") from None


def _why_not(ref: str, price: Price) -> str:
    """Return why Inspect's format cannot express a price; empty if it can."""
    if price.request:
        return "each request has a fee, and Inspect supports rates only"
    if price.reasoning not in (None, price.output):
        return "its reasoning has a rate of its own, and Inspect counts it as output"
    in_database = not ref.startswith(LOADED) and get_model_info(ref) is not None
    return "" if in_database else "Inspect's model database lacks it, so a price is refused"


def _cost(price: Price) -> ModelCost:
    """Return Inspect's four rates; cached tokens without their own rate cost as much as input."""
    rates = (price.input, price.output, price.cache_write, price.cache_read)
    paid_in, out, write, read = (float(price.input if rate is None else rate) for rate in rates)
    return ModelCost(input=paid_in, output=out, input_cache_write=write, input_cache_read=read)


def _flattened(price: Price) -> Iterator[str]:
    if price.tiers:
        above = price.tiers[0].above
        yield f"requests of more than {above:,} tokens cost more, which Inspect does not support"
    rates = {"read": price.cache_read, "written": price.cache_write}
    if lacking := " and ".join(name for name, rate in rates.items() if rate is None):
        yield f"no rate is known for cached tokens {lacking}, so they are priced as input"
