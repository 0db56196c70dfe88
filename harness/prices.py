"""Dated prices and what one call costs, in `Decimal` US dollars.

A price book is a TOML file in harness/prices/: append-only, every number with a source. Tokens are
stored, dollars are recomputed, so the same log can be priced with any book.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import cast

from harness.errors import UserError
from harness.records import Usage

BOOKS = Path(__file__).parent / "prices"
MTOK = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; reasoning is part of output, as providers bill it."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    """None: the provider's rate is unknown, so a call with cached tokens has no price."""
    cache_write: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Book:
    """A dated list of prices. `sha256` pins the file it was read from."""

    name: str
    date: str
    source: str
    prices: Mapping[str, Price]
    sha256: str

    def as_json(self) -> dict[str, object]:
        """Return the book as plain JSON values, to be embedded in a log."""
        rows = {
            ref: {
                field: None if rate is None else str(rate)
                for field, rate in (
                    ("input", price.input),
                    ("output", price.output),
                    ("cache_read", price.cache_read),
                    ("cache_write", price.cache_write),
                )
            }
            for ref, price in sorted(self.prices.items())
        }
        return {
            "name": self.name,
            "date": self.date,
            "source": self.source,
            "sha256": self.sha256,
            "usd_per_mtok": rows,
        }


def cost(usage: Usage, price: Price) -> Decimal | None:
    """Return what one call cost, in US dollars, or None when a needed rate is unknown.

    Cached input has its own rate and is not part of `usage.input`: Inspect reports the two apart,
    and adding them here would bill a cached token twice.

    >>> cost(Usage(input=2_000_000), Price(Decimal("1.25"), Decimal("10")))
    Decimal('2.50')
    """
    parts = (
        (usage.input, price.input),
        (usage.output, price.output),
        (usage.cache_read, price.cache_read),
        (usage.cache_write, price.cache_write),
    )
    total = Decimal(0)
    for tokens, rate in parts:
        if not tokens:
            continue
        if rate is None:
            return None
        total += tokens * rate / MTOK
    return total


def read_book(name: str) -> Book:
    """Read a price book by name or path; UserError says what is wrong and where."""
    path = Path(name) if name.endswith(".toml") else BOOKS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(book.stem for book in BOOKS.glob("*.toml")))
        raise UserError(f"There is no price book {name!r}; known books: {known}.")
    content = path.read_bytes()
    try:
        data = tomllib.loads(content.decode())
        rates = {ref: _price(row) for ref, row in data["usd_per_mtok"].items()}
        return Book(
            name=path.stem,
            date=str(data["date"]),
            source=str(data["source"]),
            prices=rates,
            sha256=hashlib.sha256(content).hexdigest(),
        )
    except (KeyError, InvalidOperation, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(
            f"Price book {path} is malformed: {type(error).__name__}: {error}."
        ) from error


def book_from_json(data: Mapping[str, object]) -> Book:
    """Return the book that a log embeds; the inverse of `Book.as_json`."""
    rows = cast(Mapping[str, Mapping[str, str | None]], data["usd_per_mtok"])
    return Book(
        name=str(data["name"]),
        date=str(data["date"]),
        source=str(data["source"]),
        prices={ref: _price(row) for ref, row in rows.items()},
        sha256=str(data["sha256"]),
    )


def _price(row: Mapping[str, str | None]) -> Price:
    def rate(field: str) -> Decimal | None:
        value = row.get(field)
        return None if value is None else Decimal(value)

    return Price(
        input=Decimal(str(row["input"])),
        output=Decimal(str(row["output"])),
        cache_read=rate("cache_read"),
        cache_write=rate("cache_write"),
    )
