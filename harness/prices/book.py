"""A price book: a TOML file of dated entries, append-only, every number with a source.

Logs store tokens, and dollars are recomputed, so a log can be priced with any book. Current price
lists lack launch days and earlier prices; history/records.toml has them.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args

from podium.harness.errors import UserError, shipped_file
from podium.harness.files import SETTINGS, decimal_of, parse_toml, read_limited
from podium.harness.prices.cost import Evidence, Gpu, Price, Rates, Service, Tier

Row = Mapping[str, object]

RATES = tuple(Rates.__dataclass_fields__)
OTHERS = ("request", "tiers", "services", "full_rate", "gpu", "evidence", "launched", "source")
SERVICES: Mapping[str, Service] = {"batch": "batch", "flex": "flex", "priority": "priority"}
"""Service tiers that may have a price factor in a book; for the tier `standard` the book's prices
apply as they are."""
LARGEST = Decimal(1_000_000)
SMALLEST = Decimal("1e-12")
"""Rates from `SMALLEST` to `LARGEST`: the cost of a billion tokens fits Decimal's 28 digits."""

GPU = tuple(Gpu.__dataclass_fields__)


class BadEntry(ValueError):
    """Raised for a mistake in one entry of a price book; the message names the entry."""


def price_from(ref: str, row: object, evidence: Evidence) -> Price:
    """Return the price in a book's entry; `evidence`: the default if the entry states none."""
    name = f"entry {ref!r}"
    fields = _fields(name, row, OTHERS)
    services, stated = _services(name, fields), fields.get("evidence", evidence)
    if stated not in get_args(Evidence):
        raise BadEntry(f"{name}: evidence must be `dated` or `carried-back`, not {stated!r}")
    return Price(
        **asdict(_rates(name, fields)),
        tiers=_tiers(name, fields.get("tiers")),
        request=_amount(name, "request", fields.get("request")) or Decimal(0),
        services=services,
        full_rate=_full_rate(name, fields.get("full_rate"), services),
        gpu=_gpu(name, fields["gpu"]) if fields.get("gpu") is not None else None,
        evidence=cast(Evidence, stated),
        launched=_day(f"{name}: launched", fields.get("launched")),
        source=str(fields.get("source") or ""),
    )


def price_json(price: Price) -> dict[str, object]:
    """Return a price as plain JSON values; `price_from` reads it back. Unknown values are absent.

    >>> price_json(Price(Decimal("1.25"), Decimal("10")))
    {'input': '1.25', 'output': '10', 'evidence': 'dated'}
    """
    data: dict[str, object] = _known(price.base)
    if price.tiers:
        data["tiers"] = [{"above": tier.above, **_known(tier.rates)} for tier in price.tiers]
    if price.request:
        data["request"] = format(price.request, "f")
    if price.services:
        data["services"] = {name: format(factor, "f") for name, factor in price.services.items()}
    if price.full_rate:
        data["full_rate"] = {name: list(rates) for name, rates in price.full_rate.items()}
    if price.gpu:
        exact = {name: format(getattr(price.gpu, name), "f") for name in GPU[2:4]}
        data["gpu"] = asdict(price.gpu) | exact
    data["evidence"] = price.evidence
    texts = {"launched": price.launched, "source": price.source}
    return data | {name: value for name, value in texts.items() if value}


def _known(rates: Rates) -> dict[str, object]:
    return {name: format(rate, "f") for name, rate in asdict(rates).items() if rate is not None}


def _fields(name: str, row: object, extra: tuple[str, ...]) -> Row:
    fields = _table(name, row)
    if unknown := sorted(set(fields) - {*RATES, *extra}):
        known = ", ".join((*RATES, *extra))
        raise BadEntry(f"{name} has the unknown rate {unknown[0]!r}; known: {known}")
    return fields


def _table(name: str, row: object) -> Row:
    if not isinstance(row, Mapping):
        raise BadEntry(f"{name} must be a table with input and output, not {row!r}")
    return cast(Row, row)


def _rates(name: str, fields: Row) -> Rates:
    rates = {rate: _amount(name, rate, fields.get(rate)) for rate in RATES}
    paid_in, paid_out = rates.pop("input"), rates.pop("output")
    if paid_in is None or paid_out is None:
        missing = "input" if paid_in is None else "output"
        raise BadEntry(f"{name} has no {missing} rate; add it, in dollars per million tokens")
    return Rates(paid_in, paid_out, **rates)


def _amount(name: str, field: str, value: object) -> Decimal | None:
    if value is None:
        return None
    if isinstance(value, float):
        raise BadEntry(f'{name}: {field} is a bare number; quote it, {field} = "{value}"')
    try:
        amount = decimal_of(str(value)) if isinstance(value, str | int) else Decimal("NaN")
    except ValueError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0 or isinstance(value, bool):
        raise BadEntry(f"{name}: {field} must be a number from 0 up, not {value}")
    if amount >= LARGEST or amount != amount.quantize(SMALLEST):
        raise BadEntry(f"{name}: {field} must be below {LARGEST} and have at most 12 decimals")
    return amount


def _tiers(name: str, value: object) -> tuple[Tier, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise BadEntry(f"{name}: tiers must be a list of tables, not {value!r}")
    tiers = tuple(_tier(f"{name}, tiers", row) for row in cast(Sequence[object], value))
    for lower, upper in pairwise(tiers):
        if upper.above <= lower.above:
            raise BadEntry(f"{name}: tiers must grow, and {upper.above} comes after {lower.above}")
    return tiers


def _tier(name: str, row: object) -> Tier:
    fields = _fields(name, row, ("above",))
    above = fields.get("above")
    if not isinstance(above, int) or isinstance(above, bool) or above <= 0:
        raise BadEntry(f"{name}: above must be a whole number of tokens, not {above!r}")
    return Tier(above, _rates(name, fields))


def _services(name: str, fields: Row) -> dict[Service, Decimal]:
    services: dict[Service, Decimal] = {}
    for service, value in _table(f"{name}: services", fields.get("services") or {}).items():
        if service not in SERVICES:
            names = ", ".join(SERVICES)
            raise BadEntry(f"{name} has the unknown service {service!r}; known: {names}")
        factor = _amount(name, f"services.{service}", value)
        if factor is not None:
            services[SERVICES[service]] = factor
    return services


def _full_rate(
    name: str, value: object, services: Mapping[Service, Decimal]
) -> dict[Service, tuple[str, ...]]:
    full_rates: dict[Service, tuple[str, ...]] = {}
    for service, rates in _table(f"{name}: full_rate", value or {}).items():
        if service not in services:
            raise BadEntry(f"{name}: full_rate.{service} has no factor in services; add one")
        listed = list(cast(Sequence[object], rates)) if isinstance(rates, list | tuple) else [rates]
        if unknown := [rate for rate in listed if rate not in RATES]:
            raise BadEntry(f"{name} has the unknown rate {unknown[0]!r} in full_rate")
        full_rates[SERVICES[service]] = tuple(str(rate) for rate in listed)
    return full_rates


def _gpu(name: str, value: object) -> Gpu:
    fields = _table(f"{name}: gpu", value)
    if unknown := sorted(set(fields) - set(GPU)):
        known = ", ".join(GPU)
        raise BadEntry(f"{name} has the unknown field {unknown[0]!r} in gpu; known: {known}")
    if missing := [field for field in GPU if fields.get(field) in (None, "")]:
        raise BadEntry(f"{name}: gpu has no {missing[0]}; add this field")
    count = fields["count"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BadEntry(f"{name}: gpu.count must be a whole number from 1 up, not {count!r}")
    hour = _amount(name, "gpu.usd_per_hour", fields["usd_per_hour"])
    speed = _amount(name, "gpu.tokens_per_s", fields["tokens_per_s"])
    if hour is None or not speed:
        raise BadEntry(f"{name}: gpu.tokens_per_s must be a measured number above 0")
    return Gpu(str(fields["type"]), count, hour, speed, str(fields["source"]))


def _day(name: str, value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat() if value else ""
    except ValueError:
        raise BadEntry(f"{name} must be a day such as 2025-08-07, not {value!r}") from None


RECORDS = Path(__file__).parent / "history" / "records.toml"


@cache
def _records() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(RECORDS.read_text())


def launch_day(ref: str) -> str:
    """Return the first day on which a model could be called (ISO); empty if not on record."""
    return str(_records().get(ref, {}).get("launched", ""))


def ended_day(ref: str) -> str:
    """Return the first day on which a model was no longer served (ISO); empty if not on record."""
    return str(_records().get(ref, {}).get("ended", ""))


def price_on_record(ref: str, day: date) -> tuple[Price, str] | None:
    """Return the price on record for a day, and the day (ISO) from which it held; None if none."""
    # A price was valid until the first day on which the source stated another price.
    for row in _records().get(ref, {}).get("prices", ()):
        if row["since"] <= day.isoformat() < (row.get("until") or date.max.isoformat()):
            rates = {name: value for name, value in row.items() if name not in ("since", "until")}
            price = price_from(ref, {**rates, "launched": launch_day(ref)}, "dated")
            return price, row["since"]
    return None


BOOKS = Path(__file__).parent
EMBEDDED_WHOLE = 100
"""Maximum number of entries of a book that a log embeds whole. A current list has thousands of
entries, and a run has hundreds of logs."""
UNDATED = "undated"
"""The `date` of a book whose prices no provider charges, e.g. of practice workers."""

FIELDS = ("date", "source", "retrieved", "usd_per_mtok")
INVENTED = "rehearsal/"
"""Prefix of the keys of practice workers, whose prices are invented: they have no launch day."""

EMBEDDED = "embedded/"
"""Prefix of the keys and models of checkpoints that run in podium's process
(conductor/embedded)."""

BUILT_IN: Mapping[str, Price] = {
    EMBEDDED: Price(
        input=Decimal(0),
        output=Decimal(0),
        source="podium: it runs on the user's own processor, so nobody bills it; its seconds are "
        "shown instead",
    )
}
"""Prefix of keys -> the price of such keys in every book that has no entry for the key. This is a
rule of podium, not part of a book's file, so no book's digest depends on it."""


@dataclass(frozen=True, slots=True)
class Book:
    """A dated list of prices of models; `sha256` is the digest of the book's file."""

    name: str
    date: str
    """The day (ISO) for which the book's prices are valid, or `undated`."""
    source: str
    prices: Mapping[str, Price]
    sha256: str
    retrieved: str = ""
    """The day on which the book's source was read (ISO); empty if the book does not state it."""
    built_in: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """Prices that are not in the book's file (see `BUILT_IN`); empty in older logs."""
    entries: int = 0
    """Number of entries of the whole book, if `prices` has only some of them; 0: it has all."""

    def price(self, ref: str) -> Price | None:
        """Return the price of a key: the book's entry, else a built-in price, else None."""
        stated = self.prices.get(ref)
        return stated if stated is not None else self._built_in(ref)

    def evidence(self, ref: str) -> str:
        """Return how the price of a key is known: `dated`, `built in`, `no price`, ..."""
        if (stated := self.prices.get(ref)) is not None:
            return stated.evidence or "not said"
        return "no price" if self._built_in(ref) is None else "built in"

    def for_log(self, refs: Iterable[str]) -> "Book":
        """Return the book to embed in a log; of a large book only the prices that `refs` name."""
        if len(self.prices) <= EMBEDDED_WHOLE:
            return self
        return replace(self.only(refs), entries=len(self.prices))

    def only(self, refs: Iterable[str]) -> "Book":
        """Return the book with only the prices that `refs` name."""
        prices = {ref: self.prices[ref] for ref in sorted({*refs}) if ref in self.prices}
        return replace(self, prices=prices)

    def _built_in(self, ref: str) -> Price | None:
        matches = (price for start, price in self.built_in.items() if ref.startswith(start))
        return next(matches, None)

    def as_json(self) -> dict[str, object]:
        """Return the book as plain JSON values, to be embedded in a log."""
        retrieved = {"retrieved": self.retrieved} if self.retrieved else {}
        rules = {start: price_json(price) for start, price in sorted(self.built_in.items())}
        return {
            "name": self.name,
            "date": self.date,
            "source": self.source,
            **retrieved,
            "sha256": self.sha256,
            **({"entries": self.entries} if self.entries else {}),
            "usd_per_mtok": {ref: price_json(self.prices[ref]) for ref in sorted(self.prices)},
            **({"built_in": rules} if rules else {}),
        }


def read_book(name: str) -> Book:
    """Read a price book by name or path; UserError if it is missing or malformed."""
    path = shipped_file("price book", name, BOOKS)
    return parse_book(read_limited(path, SETTINGS), path)


def newest_list() -> Book:
    """Return the newest book of list prices that podium ships."""
    return read_book(max(path.stem for path in BOOKS.glob("list-*.toml")))


def with_own_prices(book: Book, pool: str, prices: Mapping[str, Price]) -> Book:
    """Return a book plus a pool file's `prices`, which override its own; unchanged without any."""
    if not prices:
        return book
    rows = json.dumps({ref: price_json(price) for ref, price in prices.items()}, sort_keys=True)
    digest = hashlib.sha256(f"{book.sha256} {rows}".encode()).hexdigest()
    prices = {**book.prices, **prices}
    return replace(book, name=f"{book.name}+{pool}", prices=prices, sha256=digest)


@lru_cache(maxsize=16)
def parse_book(content: bytes, path: Path) -> Book:
    """Return the book in a TOML file's bytes; UserError states the file and the wrong entry."""
    # Cached: a command reads its pool's book several times, and a current list takes 0.3 s.
    try:
        data = parse_toml(content)
        if unknown := sorted(set(data) - set(FIELDS)):
            raise BadEntry(f"it has the unknown field {unknown[0]!r}; known: {', '.join(FIELDS)}")
        book = Book(
            name=path.stem,
            date=str(data["date"]),
            source=str(data["source"]),
            prices=_prices(data["usd_per_mtok"], "dated"),
            sha256=hashlib.sha256(content).hexdigest(),
            retrieved=_day("retrieved", data.get("retrieved")),
            built_in=BUILT_IN,
        )
        _refuse_too_early(book)
    except KeyError as error:
        raise UserError(f"Price book {path} is malformed: it lacks {error}. Add it.") from error
    except BadEntry as error:
        raise UserError(f"Price book {path} is malformed: {error}.") from error
    except ValueError as error:
        raise UserError(f"Price book {path} is malformed: not valid TOML: {error}.") from error
    return book


def book_from_json(data: Mapping[str, object]) -> Book:
    """Return the book that a log embeds, from `Book.as_json`; UserError if it is malformed."""
    # Older logs do not record the evidence of a price, so it stays unknown.
    try:
        prices = _prices(data["usd_per_mtok"], "")
        built_in = _prices(data.get("built_in") or {}, "")
    except BadEntry as error:
        raise UserError(
            f"The price book embedded in a log is malformed: {error}. Restore the original log."
        ) from error
    entries = data.get("entries")
    return Book(
        name=str(data["name"]),
        date=str(data["date"]),
        source=str(data["source"]),
        prices=prices,
        sha256=str(data["sha256"]),
        retrieved=str(data.get("retrieved", "")),
        built_in=built_in,
        entries=entries if isinstance(entries, int) else 0,
    )


def _prices(rows: object, evidence: Evidence) -> dict[str, Price]:
    if not isinstance(rows, Mapping):
        raise BadEntry("usd_per_mtok must be a table of entries")
    entries = cast(Mapping[str, object], rows)
    for ref in entries:
        if "/" not in ref:
            raise BadEntry(f"entry {ref!r} names no provider; write it as PROVIDER/{ref}")
    prices: dict[str, Price] = {}
    for ref, row in entries.items():
        entry = {**_table(f"entry {ref!r}", row)}
        aliases = entry.pop("also", [])
        names = cast(list[object], aliases if isinstance(aliases, list) else [None])
        if any(not isinstance(name, str) for name in names):
            raise BadEntry(f"entry {ref!r}: also must be a list of names, not {aliases!r}")
        start, price = ref.partition("/")[0], price_from(ref, entry, evidence)
        for key in (ref, *(f"{start}/{name}" for name in cast(list[str], names))):
            if prices.setdefault(key, price) is not price:
                raise BadEntry(f"{key!r} has two prices: leave it out of `also`, or of the table")
    return prices


def _refuse_too_early(book: Book) -> None:
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
                f"entry {ref!r}: it was launched on {launched}, after the date of the book, {day}"
            )


def book_text(book: Book) -> str:
    """Return a book as TOML: one table per model, decimals as strings."""
    header = {"date": book.date, "source": book.source, "retrieved": book.retrieved}
    lines = [f"{name} = {toml(value)}" for name, value in header.items() if value]
    lines += [] if book.prices else ["", "[usd_per_mtok]"]
    for ref, price in sorted(book.prices.items()):
        lines += ["", f"[usd_per_mtok.{toml(ref)}]"]
        lines += [f"{name} = {toml(value)}" for name, value in price_json(price).items()]
    return "\n".join(lines) + "\n"


def compact_text(book: Book) -> str:
    """Return a book as TOML, in which all keys of a provider with the same price share a line."""
    header = {"date": book.date, "source": book.source, "retrieved": book.retrieved}
    lines = [*(f"{name} = {toml(value)}" for name, value in header.items()), "", "[usd_per_mtok]"]
    sharing: dict[tuple[str, str], list[str]] = {}
    for ref, price in sorted(book.prices.items()):
        provider, _, model = ref.partition("/")
        fields = {name: value for name, value in price_json(price).items() if value != "dated"}
        sharing.setdefault((provider, toml(fields)), []).append(model)
    for (provider, fields), (model, *aliases) in sharing.items():
        also = f', "also" = {toml(aliases)}' if aliases else ""
        line = f"{toml(f'{provider}/{model}')} = {fields.removesuffix(' }')}{also} }}"
        lines.append(re.sub(r'"(\w+)"(?= = )', r"\1", line))
    return "\n".join(lines) + "\n"


def toml(value: Any) -> str:
    """Return a plain JSON value as TOML, on one line; fields that are None are left out.

    >>> toml({"temperature": 0.6, "stop": ["x"], "seed": None})
    '{ "temperature" = 0.6, "stop" = ["x"] }'
    """
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value)
        pairs = [f"{toml(key)} = {toml(item)}" for key, item in items.items() if item is not None]
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in cast(Sequence[Any], value)) + "]"
    # A JSON string is a TOML string, except that TOML forbids a raw DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
