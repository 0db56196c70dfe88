"""Dated lists of prices; what one call costs is harness/prices/pricing.py.

A price book is a TOML file in harness/prices/: append-only, every number with a source. Tokens are
stored, dollars are recomputed, so the same log can be priced with any book. One entry of a book is
harness/prices/entries.py; how a book is made is harness/prices/snapshot.py.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import cast

from harness.errors import UserError
from harness.file_limits import SETTINGS, read_limited
from harness.parsing import parse_toml
from harness.prices.entries import BadEntry, price_from, price_json
from harness.prices.on_record import launch_day
from harness.prices.pricing import Evidence, Price

BOOKS = Path(__file__).parent
UNDATED = "undated"
"""The date of a book that claims none, because its prices are nobody's."""

FIELDS = ("date", "source", "retrieved", "usd_per_mtok")
INVENTED = "rehearsal/"
"""Workers of ours whose prices are practice figures: no launch day binds them."""

EMBEDDED = "embedded/"
"""Begins the keys and models of checkpoints that run in this process (conductor/embedded)."""

BUILT_IN: Mapping[str, Price] = {
    EMBEDDED: Price(
        input=Decimal(0),
        output=Decimal(0),
        source="podium: it runs on the user's own processor, so nobody bills it; its seconds are "
        "shown instead",
    )
}
"""By the beginning of a key: prices that no market states and that every book has, unless it says
otherwise. A rule of podium and no line of the file, so no digest of a book depends on it."""


@dataclass(frozen=True, slots=True)
class Book:
    """A dated list of prices. `sha256` pins the file it was read from."""

    name: str
    date: str
    """The day whose prices it states (ISO), or `undated`."""
    source: str
    prices: Mapping[str, Price]
    sha256: str
    retrieved: str = ""
    """The day on which the source was asked (ISO); empty when the book does not say."""
    built_in: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What holds beside the file's own entries, as `BUILT_IN`; empty in logs older than the rule.
    """

    def price(self, ref: str) -> Price | None:
        """Return the price of a key: the book's own entry, else a built-in one; None without."""
        stated = self.prices.get(ref)
        return stated if stated is not None else self._built_in(ref)

    def evidence(self, ref: str) -> str:
        """Return how a key's price is known, in words; `no price` where there is none."""
        if (stated := self.prices.get(ref)) is not None:
            return stated.evidence or "not said"
        return "no price" if self._built_in(ref) is None else "built in"

    def _built_in(self, ref: str) -> Price | None:
        found = (price for start, price in self.built_in.items() if ref.startswith(start))
        return next(found, None)

    def as_json(self) -> dict[str, object]:
        """Return the book as plain JSON values, to be embedded in a log."""
        said = {"retrieved": self.retrieved} if self.retrieved else {}
        return {
            "name": self.name,
            "date": self.date,
            "source": self.source,
            **said,
            "sha256": self.sha256,
            "usd_per_mtok": {ref: price_json(self.prices[ref]) for ref in sorted(self.prices)},
            **self._built_in_json(),
        }

    def _built_in_json(self) -> dict[str, object]:
        rules = {start: price_json(price) for start, price in sorted(self.built_in.items())}
        return {"built_in": rules} if rules else {}


def read_book(name: str) -> Book:
    """Read a price book by name or path; UserError says what is wrong and where."""
    path = book_path(name)
    return parse_book(read_limited(path, SETTINGS), path)


def book_path(name: str) -> Path:
    """Return the file of a price book by name or path; UserError when there is none."""
    path = Path(name) if name.endswith(".toml") else BOOKS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(book.stem for book in BOOKS.glob("*.toml")))
        raise UserError(f"There is no price book {name!r}; known books: {known}.")
    return path


def parse_book(content: bytes, path: Path) -> Book:
    """Return the book that a file's bytes state; UserError names the file and the entry."""
    try:
        data = parse_toml(content)
        if unknown := sorted(set(data) - set(FIELDS)):
            raise BadEntry(f"it has the unknown field {unknown[0]!r}")
        book = Book(
            name=path.stem,
            date=str(data["date"]),
            source=str(data["source"]),
            prices=_prices(data["usd_per_mtok"], "dated"),
            sha256=hashlib.sha256(content).hexdigest(),
            retrieved=str(data.get("retrieved", "")),
            built_in=BUILT_IN,
        )
        _refuse_too_early(book)
    except KeyError as error:
        raise UserError(f"Price book {path} is malformed: it lacks {error}.") from error
    except BadEntry as error:
        raise UserError(f"Price book {path} is malformed: {error}.") from error
    except ValueError as error:
        raise UserError(f"Price book {path} is malformed: not valid TOML: {error}.") from error
    return book


def book_from_json(data: Mapping[str, object]) -> Book:
    """Return the book that a log embeds; the inverse of `Book.as_json`.

    Logs that are older than the question do not say what evidence a price has; neither do we.
    """
    try:
        prices = _prices(data["usd_per_mtok"], "")
        built_in = _prices(data.get("built_in") or {}, "")
    except BadEntry as error:
        raise UserError(f"The price book embedded in a log is malformed: {error}.") from error
    return Book(
        name=str(data["name"]),
        date=str(data["date"]),
        source=str(data["source"]),
        prices=prices,
        sha256=str(data["sha256"]),
        retrieved=str(data.get("retrieved", "")),
        built_in=built_in,
    )


def _prices(rows: object, evidence: Evidence) -> dict[str, Price]:
    if not isinstance(rows, Mapping):
        raise BadEntry("usd_per_mtok must be a table of entries")
    entries = cast(Mapping[str, object], rows)
    for ref in entries:
        if "/" not in ref:
            raise BadEntry(f"entry {ref!r} names no provider; write it as PROVIDER/{ref}")
    return {ref: price_from(ref, row, evidence) for ref, row in entries.items()}


def _refuse_too_early(book: Book) -> None:
    """Raise BadEntry for a price of a day on which nobody could call the model yet."""
    if book.date == UNDATED:
        return
    try:
        day = date.fromisoformat(book.date).isoformat()
    except ValueError:
        raise BadEntry(
            f"date must be a day such as 2025-12-04, or `{UNDATED}`, not {book.date!r}"
        ) from None
    for ref, price in book.prices.items():
        launched = max(price.launched, launch_day(ref))
        if launched > day and not ref.startswith(INVENTED):
            raise BadEntry(
                f"entry {ref!r}: nobody could call it before {launched}, and the book is of {day}"
            )
