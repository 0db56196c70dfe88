"""Make a price book from genai-prices, compare books, and write one for Inspect.

The package answers for days before a price was written down too: so a launch day on record bounds,
a price on record from the time wins, and what is assumed to have held is `carried-back`.
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

UNITS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "output_reasoning_mtok": "reasoning",
}
"""The package's units, and our names of them. Searches and other media are in no book of ours."""

ODD = "prices are no one factor, so it has none"
"""Ends the note on a service whose rates a book, which has a factor, cannot state."""
BESIDE = ("output_citation_mtok", "input_text_messages_kcount", "input_mchars")
"""Units that a call with text alone is billed for, beside tokens."""

CONTEXTS: Mapping[Service, Mapping[str, str]] = {
    "batch": {"processing": "batch"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
}

PROVIDERS = {"bedrock": "aws", "grok": "x-ai", "azureai": "azure", "moonshot": "moonshotai"}
"""Where Inspect and the package call a provider by different names."""

HEAD = """\
# Made by `podium prices snapshot`. Books are append-only: correct a price in a newer book.
"""


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """What a snapshot is to hold."""

    models: tuple[str, ...]
    """Keys of price books: `PROVIDER/MODEL`, by Inspect's name of the provider."""
    day: date
    launched: Mapping[str, str]
    """Launch days (ISO) that the caller vouches for, by model."""


@dataclass(frozen=True, slots=True)
class PriceSource:
    """The package as it is installed."""

    providers: Sequence[Any]
    version: str
    known_on: date
    """The newest past day that its data name: on that day it described all of its prices."""


def installed(today: date) -> PriceSource:
    """Return the package's data; UserError names the extra where it is missing."""
    try:
        data: Any = import_module("genai_prices.data")  # its types would take pyright 100 s
    except ImportError:
        raise UserError(
            "Making or comparing a price book needs genai-prices: "
            "`pip install '.[prices]'` in the checkout."
        ) from None
    known_on = newest_day(data.providers, today)
    return PriceSource(data.providers, metadata.version(PACKAGE), known_on)


def newest_day(providers: Sequence[Any], today: date) -> date:
    """Return the newest day up to today that data name."""
    models: list[Any] = [model for provider in providers for model in provider.models]
    parts = (part for one in models for part in (*_conditional(one), *(one.price_variants or ())))
    return max((day for day in _days(parts) if day <= today), default=today)


class Unpriceable(UserError):
    """A model whose price no book can state; `why` says so without its name."""

    def __init__(self, ref: str, why: str, fix: str = "") -> None:
        """Make the sentence from the model, the reason and what to do."""
        super().__init__(f"{ref}: {why}{fix}.")
        self.why = why


def snapshot(wanted: SnapshotRequest, out: Path, today: date) -> tuple[str, tuple[str, ...]]:
    """Return the text of a book for some models on a day, and what its reader should know."""
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


def refuse_taken(out: Path) -> None:
    """Raise UserError for a file that is no new book's: another ending, or there already."""
    if out.suffix != ".toml":
        raise UserError(f"A price book's file ends in .toml; {out} does not.")
    if out.exists():
        raise UserError(
            f"{out} is there already, and a price book is never overwritten: give another --out."
        )


def write_new(text: str, out: Path) -> None:
    """Write a book where no file is yet; UserError where one is."""
    refuse_taken(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:  # since a moment ago
        raise UserError(f"{out} is there already: give another --out.") from None


def our_name(provider: Any) -> str:
    """Return the name by which keys of price books call one of the package's providers."""
    return next((ours for ours, theirs in PROVIDERS.items() if theirs == provider.id), provider.id)


def price_on(
    ref: str, wanted: SnapshotRequest, source: PriceSource
) -> tuple[Price, tuple[str, ...]]:
    """Return a model's price on a day, and what its reader should know."""
    return price_of(ref, _found(ref, source), wanted, source)


def price_of(
    ref: str, model: Any, wanted: SnapshotRequest, source: PriceSource
) -> tuple[Price, tuple[str, ...]]:
    """Return the same, and `model` is the package's entry; Unpriceable if no book can hold it."""
    if any(hasattr(part.constraint, "start_time") for part in _conditional(model)):
        raise Unpriceable(ref, "its price changes within a day, and a book has one price a day")
    moment = datetime.combine(wanted.day, datetime.min.time(), UTC)
    answered = _price(ref, model.get_prices(moment))
    start = max((day for day in _days(_conditional(model)) if day <= wanted.day), default=None)
    launched = _launch(ref, wanted, start or source.known_on)
    record = price_on_record(ref, wanted.day)
    asked = ref.partition("/")[2]
    notes = [] if model.id == asked else [f"{ref}: {PACKAGE} takes it for its {model.id!r}"]
    older = wanted.day < source.known_on
    if record and older and (start is None or start.isoformat() < record[1]):
        price = record[0]
        if (price.input, price.output) != (answered.input, answered.output):
            notes.append(f"{ref}: {PACKAGE} now answers otherwise for that day; its record wins")
    else:
        dated = wanted.day >= source.known_on or start is not None
        evidence: Evidence = "dated" if dated else "carried-back"
        price = replace(answered, evidence=evidence)
    factors, kept, odd = _services(model, moment, answered)
    notes += [f"{ref}: its {name} {ODD}" for name in odd]
    price = replace(price, services=factors, full_rate=kept, launched=launched)
    return price, tuple(notes)


def _found(ref: str, source: PriceSource) -> Any:
    """Return the package's entry of a model at that very provider, not at one it falls back on."""
    name, _, model = ref.partition("/")
    wanted = PROVIDERS.get(name, name)
    provider = next((one for one in source.providers if one.id == wanted), None)
    if provider is None and model:
        ids = sorted(our_name(one) for one in source.providers)
        raise no_such("provider", name, ids, f"so {PACKAGE} has no price of {ref!r}; providers: ")
    found = provider.find_model(model) if provider and model else None
    if found is None:
        raise UserError(
            f"{PACKAGE} {source.version} has no price of {ref!r}: name it as PROVIDER/MODEL, leave "
            "it out, or write its entry by hand, with a source."
        )
    return found


def _launch(ref: str, wanted: SnapshotRequest, described: date) -> str:
    """Return the launch day that is on record; UserError for a day before it, or without one."""
    # `described` is a day on which the package described the model for sure.
    said = launch_day(ref) or wanted.launched.get(ref, "")
    if said and wanted.day.isoformat() < said:
        raise Unpriceable(ref, f"nobody could call it on {wanted.day}: it was launched on {said}")
    if not said and wanted.day < described:
        why = f"no launch day of it is on record, so nobody knows if it had a price on {wanted.day}"
        raise Unpriceable(ref, why, f"; give it with --launched {ref}=YEAR-MONTH-DAY")
    return said


def _days(parts: Iterable[Any]) -> list[date]:
    days = (getattr(part.constraint, "start_date", None) for part in parts)
    return [day for day in days if day is not None]


def _conditional(model: Any) -> Sequence[Any]:
    return () if hasattr(model.prices, "input_mtok") else model.prices


def _price(ref: str, found: Any) -> Price:
    listed = {ours: getattr(found, theirs) for theirs, ours in UNITS.items()}
    if listed["input"] is None or listed["output"] is None:
        raise Unpriceable(ref, "it has no price per token of input and of output")
    if unit := next((name for name in BESIDE if getattr(found, name) is not None), None):
        raise Unpriceable(ref, f"a call is billed for {unit} too, which no book has")
    starts = {tier.start for value in listed.values() for tier in getattr(value, "tiers", ())}
    tiers = tuple(Tier(start, Rates(**_rates(listed, start))) for start in sorted(starts))
    per_thousand = found.requests_kcount
    request = Decimal(0) if per_thousand is None else Decimal(per_thousand) / 1000
    return Price(**_rates(listed, 0), tiers=tiers, request=request)


def _rates(listed: Mapping[str, Any], start: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in listed.items():
        reached = [tier.price for tier in getattr(value, "tiers", ()) if tier.start <= start]
        found[name] = _cut(reached[-1] if reached else getattr(value, "base", value))
    return found


def _cut(rate: Decimal | None) -> Decimal | None:
    """Return a rate as it is, or with six decimals where a book could not hold it: 1/12 dollar."""
    return rate if rate is None or rate % SMALLEST == 0 else rate.quantize(Decimal("1e-6"))


def _services(
    model: Any, moment: datetime, listed: Price
) -> tuple[dict[Service, Decimal], dict[Service, tuple[str, ...]], list[Service]]:
    """Return the services' factors, the rates that each leaves, and services that have no one."""
    factors: dict[Service, Decimal] = {}
    kept: dict[Service, tuple[str, ...]] = {}
    odd: list[Service] = []
    for service, context in CONTEXTS.items():
        changes = _factors(listed, _price(model.id, model.get_prices(moment, context)))
        changed = {factor for factor in changes.values() if factor != 1}
        if len(changed) == 1 and _is_exact(*changed):
            factors[service] = changed.pop()
            full = tuple(name for name, factor in changes.items() if factor == 1)
            kept |= {service: full} if full else {}
        elif changed:
            odd.append(service)
    return factors, kept, odd


def _is_exact(factor: Decimal) -> bool:
    return factor.is_finite() and factor == factor.quantize(SMALLEST)


def _factors(listed: Price, served: Price) -> dict[str, Decimal]:
    """Return by what each rate changes; NaN where its tiers change by different factors."""
    sides = ((price.base, *(tier.rates for tier in price.tiers)) for price in (listed, served))
    pairs = list(zip(*sides, strict=False))
    found: dict[str, Decimal] = {}
    for name in RATES:
        rates = [(getattr(one, name), getattr(other, name)) for one, other in pairs]
        factors = {other / one for one, other in rates if one and other is not None}
        if factors:
            found[name] = factors.pop() if len(factors) == 1 else Decimal("NaN")
    return found


ABSENT = "—"


@dataclass(frozen=True, slots=True)
class Change:
    """One field of one entry that two books state differently."""

    model: str
    field: str
    """A rate, `evidence`, ..., or `entry` where only one of them has the model."""
    old: str
    new: str


def changes(old: Book, new: Book) -> tuple[Change, ...]:
    """Return what `new` states otherwise than `old`, sorted by model."""
    models = sorted({*old.prices, *new.prices})
    pairs = ((model, old.prices.get(model), new.prices.get(model)) for model in models)
    return tuple(one for pair in pairs for one in _changed(*pair))


def _changed(model: str, old: Price | None, new: Price | None) -> list[Change]:
    if old is None or new is None:
        said = (in_and_out(price) if price else ABSENT for price in (old, new))
        return [Change(model, "entry", *said)]
    before, after = _fields(old), _fields(new)
    pairs = ((name, before.get(name, ABSENT), after.get(name, ABSENT)) for name in before | after)
    return [Change(model, *pair) for pair in pairs if pair[1] != pair[2]]


def in_and_out(price: Price) -> str:
    """Return a price's two main rates, in words."""
    return f"{number(price.input)} in, {number(price.output)} out"


@dataclass(frozen=True, slots=True)
class Compared:
    """A book beside the package."""

    changes: tuple[Change, ...]
    """`old` is the book's, `new` what a snapshot would say."""
    others: tuple[str, ...]
    """Entries with sources of their own, which the package cannot confirm."""


def compared(book: Book, source: PriceSource) -> Compared:
    """Compare what a book has from the package with what a snapshot of its day would say now."""
    if book.date == UNDATED or not book.source.startswith(PACKAGE):
        return Compared((), tuple(sorted(book.prices)))
    launched = {model: price.launched for model, price in book.prices.items() if price.launched}
    wanted = SnapshotRequest((), date.fromisoformat(book.date), launched)
    found: list[Change] = []
    others: list[str] = []
    for model, price in sorted(book.prices.items()):
        if price.source and not price.source.startswith(PACKAGE):
            others.append(model)
        else:
            found += _changed(model, price, price_on(model, wanted, source)[0])
    return Compared(tuple(found), tuple(others))


def _fields(price: Price) -> dict[str, str]:
    found = {name: number(rate) for name, rate in asdict(price.base).items() if rate is not None}
    for tier in price.tiers:
        rates = asdict(tier.rates).items()
        found |= {f">{tier.above} {name}": number(rate) for name, rate in rates if rate is not None}
    found |= {name: f"x {number(factor)}" for name, factor in price.services.items()}
    found |= {f"{name} keeps": ", ".join(rates) for name, rates in price.full_rate.items()}
    if price.request:
        found["request"] = number(price.request)
    if price.gpu:
        found["gpu"] = f"{price.gpu.count} {price.gpu.type}, {number(price.gpu.usd_per_hour)}/h"
    return found | {"evidence": price.evidence or "not said"}


def number(value: Decimal) -> str:
    """Return a number with two decimals at least, and all that it has.

    >>> number(Decimal("10")), number(Decimal("0.1250"))
    ('10.00', '0.125')
    """
    plain = format(value.normalize(), "f")
    whole, _, rest = plain.partition(".")
    return f"{whole}.{rest.ljust(2, '0')}"


WIDTH = 98
HEADS = ("model", "in", "out", "cached", "write", "write 1h", "evidence")
NOTE = "US dollars per million tokens. A — is unknown: such tokens have no price, not a price of 0."


def show_books() -> tuple[list[dict[str, Any]], str]:
    """Return the shipped books, one a line, and as records."""
    books = [read_book(path.stem) for path in sorted(BOOKS.glob("*.toml"))]
    rows = [(book.name, book.date, str(len(book.prices)), _evidence(book)) for book in books]
    heads = ("book", "prices of", "models", "evidence")
    return records(heads, rows), columns(heads, rows)


def show_book(book: Book) -> str:
    """Return every price of a book, with tiers and services beneath."""
    rows = [row for ref in sorted(book.prices) for row in _rows(ref, book.prices[ref])]
    asked = f", retrieved {book.retrieved}" if book.retrieved else ""
    title = f"{book.name}: prices of {book.date}\nsource: {book.source}{asked}"
    table = columns(HEADS, rows) if rows else "No model has a price in this book."
    extras = [line for ref in sorted(book.prices) for line in _extras(ref, book.prices[ref])]
    extras += [_rule(*rule) for rule in sorted(book.built_in.items())]
    parts = [title, table, *(["\n".join(extras)] if extras else []), NOTE]
    return "\n\n".join([*parts, f"sha256 {book.sha256}"])


def show_changes(found: Sequence[Change], heads: tuple[str, str]) -> str:
    """Return the differences between two books as a table."""
    rows = [(one.model, one.field, one.old, one.new) for one in found]
    return columns(("model", "field", *heads), rows)


def _rows(ref: str, price: Price) -> list[tuple[str, ...]]:
    rows = [(ref, *_cells(price.base), price.evidence or "not said")]
    for tier in price.tiers:
        rows.append((f"  prompts over {tier.above:,} tokens", *_cells(tier.rates), ""))
    return rows


def _cells(rates: Rates) -> tuple[str, ...]:
    shown = (rates.input, rates.output, rates.cache_read, rates.cache_write, rates.cache_write_1h)
    return tuple(ABSENT if rate is None else number(rate) for rate in shown)


def _extras(ref: str, price: Price) -> list[str]:
    said: list[str] = []
    for service, factor in price.services.items():
        kept = price.full_rate.get(service)
        said.append(f"{service} x {factor}" + (f" (not {', '.join(kept)})" if kept else ""))
    if price.reasoning is not None:
        said.append(f"reasoning {number(price.reasoning)}")
    if price.orchestration_in is not None and price.orchestration_out is not None:
        own = f"{number(price.orchestration_in)} in, {number(price.orchestration_out)} out"
        said.append(f"orchestration {own}")
    if price.request:
        said.append(f"{number(price.request)} a request")
    if gpu := price.gpu:
        said.append(f"own hardware: {gpu.count} {gpu.type} at {number(gpu.usd_per_hour)} an hour")
        said.append(f"{gpu.tokens_per_s} tokens/s ({gpu.source})")
    said += [f"source: {price.source}"] if price.source else []
    text = f"{ref}: {'; '.join(said)}"
    return [fill(text, WIDTH, subsequent_indent="  ", break_long_words=False)] if said else []


def _rule(start: str, price: Price) -> str:
    said = f"{start}*, built in: {in_and_out(price)} ({price.source})"
    return fill(said, WIDTH, subsequent_indent="  ", break_long_words=False)


def _evidence(book: Book) -> str:
    kinds = [price.evidence for price in book.prices.values()]
    found = [(kind, kinds.count(kind)) for kind in ("dated", "carried-back", "")]
    return ", ".join(f"{count} {kind or 'not said'}" for kind, count in found if count) or ABSENT


LOADED = ("hf", "nnterp", "sglang", "transformer_lens", "vllm")
"""Providers that Inspect would load, or start a server for, only to look up a name."""
SUFFIXES = (".json", ".yaml", ".yml")  # by which Inspect tells a file; JSON is YAML, too


@dataclass(frozen=True, slots=True)
class InspectCosts:
    """What Inspect can be told of a book."""

    costs: dict[str, ModelCost]
    notes: tuple[str, ...]
    """A sentence for each price that is flatter than the book's."""
    left_out: dict[str, str]
    """Why, by model."""


def inspect_costs(book: Book) -> InspectCosts:
    """Return a book's prices as Inspect takes them; UserError where none can be told."""
    left_out = {ref: why for ref, price in book.prices.items() if (why := _why_not(ref, price))}
    told = {ref: price for ref, price in sorted(book.prices.items()) if ref not in left_out}
    if not told:
        raise UserError(
            f"Inspect knows none of the {len(book.prices)} models of price book {book.name!r}: "
            "take a book of list prices (`podium prices list`)."
        )
    notes = tuple(f"{ref}: {said}." for ref, price in told.items() for said in _flattened(price))
    return InspectCosts({ref: _cost(price) for ref, price in told.items()}, notes, left_out)


def write_inspect_costs(found: InspectCosts, out: Path) -> None:
    """Write the file; UserError for another suffix, and where one is already."""
    if out.suffix not in SUFFIXES:
        raise UserError(f"Inspect reads {', '.join(SUFFIXES)}: give {out} one of these endings.")
    costs = {ref: cost.model_dump() for ref, cost in found.costs.items()}
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(json.dumps(costs, indent=2) + "\n")
    except FileExistsError:
        raise UserError(f"{out} is there already: give another --inspect, or move it.") from None


def _why_not(ref: str, price: Price) -> str:
    """Return why Inspect cannot be told a price; empty where it can."""
    if price.request:
        return "each request has a fee, and Inspect knows rates alone"
    if price.reasoning not in (None, price.output):
        return "its reasoning has a rate of its own, and Inspect counts it as output"
    known = not ref.startswith(LOADED) and get_model_info(ref) is not None
    return "" if known else "Inspect's model database lacks it, and refuses a price for it"


def _cost(price: Price) -> ModelCost:
    """Return four rates; what is cached at no rate of its own is input like any other."""
    rates = (price.input, price.output, price.cache_write, price.cache_read)
    paid_in, out, write, read = (float(price.input if one is None else one) for one in rates)
    return ModelCost(input=paid_in, output=out, input_cache_write=write, input_cache_read=read)


def _flattened(price: Price) -> Iterator[str]:
    if price.tiers:
        above = price.tiers[0].above
        yield f"requests of more than {above:,} tokens cost more, which Inspect does not know"
    named = {"read": price.cache_read, "written": price.cache_write}
    if lacking := " and ".join(name for name, rate in named.items() if rate is None):
        yield f"no rate is known for cached tokens {lacking}, which cost as input does"
