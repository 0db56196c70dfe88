"""Dated lists of prices; what one call costs is harness/pricing.py.

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
from harness.pricing import Price

BOOKS = Path(__file__).parent / "prices"
RATES = frozenset({"input", "output", "cache_read", "cache_write"})


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


def read_book(name: str) -> Book:
    """Read a price book by name or path; UserError says what is wrong and where."""
    path = Path(name) if name.endswith(".toml") else BOOKS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(book.stem for book in BOOKS.glob("*.toml")))
        raise UserError(f"There is no price book {name!r}; known books: {known}.")
    content = path.read_bytes()
    try:
        data = tomllib.loads(content.decode())
        rates = _prices(data["usd_per_mtok"])
        return Book(
            name=path.stem,
            date=str(data["date"]),
            source=str(data["source"]),
            prices=rates,
            sha256=hashlib.sha256(content).hexdigest(),
        )
    except (KeyError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(
            f"Price book {path} is malformed: {type(error).__name__}: {error}."
        ) from error
    except _BadEntry as error:
        raise UserError(f"Price book {path} is malformed: {error}.") from error


def book_from_json(data: Mapping[str, object]) -> Book:
    """Return the book that a log embeds; the inverse of `Book.as_json`."""
    try:
        prices = _prices(data["usd_per_mtok"])
    except _BadEntry as error:
        raise UserError(f"The price book embedded in a log is malformed: {error}.") from error
    return Book(
        name=str(data["name"]),
        date=str(data["date"]),
        source=str(data["source"]),
        prices=prices,
        sha256=str(data["sha256"]),
    )


class _BadEntry(ValueError):
    """What is wrong with one entry of a book, named."""


def _prices(rows: object) -> dict[str, Price]:
    if not isinstance(rows, Mapping):
        raise _BadEntry("usd_per_mtok must be a table of entries")
    entries = cast(Mapping[str, object], rows)
    return {ref: _price(ref, row) for ref, row in entries.items()}


def _price(ref: str, row: object) -> Price:
    if not isinstance(row, Mapping):
        raise _BadEntry(f"entry {ref!r} must be a table with input and output, not {row!r}")
    fields = cast(Mapping[str, object], row)
    unknown = set(fields) - RATES
    if unknown:
        raise _BadEntry(f"entry {ref!r} has the unknown rate {min(unknown)!r}")
    if missing := [name for name in ("input", "output") if fields.get(name) is None]:
        raise _BadEntry(f"entry {ref!r} has no {missing[0]} rate")
    rates = {name: _rate(ref, name, value) for name, value in fields.items() if value is not None}
    return Price(rates["input"], rates["output"], rates.get("cache_read"), rates.get("cache_write"))


def _rate(ref: str, field: str, value: object) -> Decimal:
    """Return dollars per million tokens; a rate that is no finite number from 0 up is refused."""
    try:
        rate = Decimal(str(value))
    except InvalidOperation:
        rate = Decimal("NaN")
    if not rate.is_finite() or rate < 0:
        raise _BadEntry(f"entry {ref!r}: {field} must be a number from 0 up, not {value}")
    return rate
