"""What differs between two books, and between a book and the package that it was made from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal

from harness.prices import UNDATED, Book
from harness.prices.pricing import Price
from harness.prices.snapshot import PACKAGE, Source, Wanted, price_on

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
    found: list[Change] = []
    for model in sorted({*old.prices, *new.prices}):
        before, after = old.prices.get(model), new.prices.get(model)
        if before is None or after is None:
            said = [ABSENT if price is None else _brief(price) for price in (before, after)]
            found.append(Change(model, "entry", *said))
        else:
            found += changed(model, before, after)
    return tuple(found)


def changed(model: str, old: Price, new: Price) -> list[Change]:
    """Return the fields of an entry that differ: rates, and what evidence they have."""
    before, after = _fields(old), _fields(new)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [
        Change(model, name, before.get(name, ABSENT), after.get(name, ABSENT)) for name in names
    ]


@dataclass(frozen=True, slots=True)
class Compared:
    """A book beside the package."""

    changes: tuple[Change, ...]
    """`old` is the book's, `new` what a snapshot would say."""
    others: tuple[str, ...]
    """Entries with sources of their own, which the package cannot confirm."""


def compared(book: Book, source: Source) -> Compared:
    """Compare what a book has from the package with what a snapshot of its day would say now."""
    if book.date == UNDATED or not book.source.startswith(PACKAGE):
        return Compared((), tuple(sorted(book.prices)))
    launched = {model: price.launched for model, price in book.prices.items() if price.launched}
    wanted = Wanted((), date.fromisoformat(book.date), launched)
    found: list[Change] = []
    others: list[str] = []
    for model, price in sorted(book.prices.items()):
        if price.source and not price.source.startswith(PACKAGE):
            others.append(model)
        else:
            found += changed(model, price, price_on(model, wanted, source)[0])
    return Compared(tuple(found), tuple(others))


def _fields(price: Price) -> Mapping[str, str]:
    """Return an entry field by field, in one notation, so that 10 and 10.00 are the same rate."""
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


def _brief(price: Price) -> str:
    return f"{number(price.input)} in, {number(price.output)} out"


def number(value: Decimal) -> str:
    """Return a number with two decimals at least, and all that it has.

    >>> number(Decimal("10")), number(Decimal("0.1250"))
    ('10.00', '0.125')
    """
    plain = format(value.normalize(), "f")
    whole, _, rest = plain.partition(".")
    return f"{whole}.{rest.ljust(2, '0')}"
