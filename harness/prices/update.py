"""Makes a price book of all models in genai-prices (a package), and compares it with a book."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.files import first_line
from podium.harness.prices.book import RATES, Book, compact_text, ended_day, parse_book
from podium.harness.prices.cost import Price
from podium.harness.prices.snapshot import (
    ODD,
    PACKAGE,
    PriceSource,
    SnapshotRequest,
    Unpriceable,
    in_and_out,
    newest_day,
    our_name,
    price_of,
)

ENDED = "its provider has ended it"
SHOWN = 20
"""Maximum number of names shown per kind of change; `podium prices diff` shows all."""


@dataclass(frozen=True, slots=True)
class WholeBook:
    """A price book with all prices that the package genai-prices has for a day, and its gaps."""

    book: Book
    models: int
    """Number of entries of genai-prices in the book; an entry may have several keys."""
    left_out: Mapping[str, Sequence[str]]
    """Reason -> entries of genai-prices that are not in the book for this reason."""
    without: Mapping[str, Sequence[str]]
    """Reason -> models in the book that lack the price factor of a service tier, e.g. `batch`."""


def fetched(source: PriceSource, url: str, today: date) -> PriceSource:
    """Download current price data from `url`; if that is empty, from genai-prices' own address."""
    updates: Any = import_module("genai_prices.update_prices")
    address = url or updates.DEFAULT_UPDATE_URL
    try:
        update = updates.UpdatePrices(url=address).fetch()
    except Exception as error:  # the package's errors of HTTP, JSON or a schema
        raise UserError(
            f"{address} gave no prices ({first_line(error)}): try again, or leave --fetch out to "
            f"use those of the installed {PACKAGE} {source.version}."
        ) from error
    return PriceSource(
        update.providers, f"{source.version}, data fetched", newest_day(update.providers, today)
    )


def whole_book(name: str, day: date, source: PriceSource, older: Book, today: date) -> WholeBook:
    """Return a book of all models in `source` that exist on `day` and whose price a book can state.

    Keys are the models' ids. Keys of an `older` book are kept if `source` still has their model, or
    if their entry states a source other than genai-prices.
    """
    prices: dict[str, Price] = {}
    left_out: dict[str, list[str]] = {}
    without: dict[str, list[str]] = {}
    count, request = 0, SnapshotRequest((), day, {})
    for provider in source.providers:
        start = our_name(provider)
        earlier: dict[int, list[str]] = {}
        for key in (key for ref in older.prices if (key := _model_at(start, ref))):
            earlier.setdefault(id(provider.find_model(key)), []).append(key)
        for model in provider.models:
            entry = f"{start}/{model.id}"
            ids = {model.id, *_other_ids(model.match)}
            ids = {name for name in ids if provider.find_model(name) is model}
            refs = {f"{start}/{name}" for name in (*ids, *earlier.get(id(model), ()))}
            served = sorted(ref for ref in refs if not _has_ended(ref, day))
            try:
                priced = {ref: price_of(ref, model, request, source) for ref in served}
            except Unpriceable as error:
                left_out.setdefault(error.why, []).append(entry)
                continue
            if not priced:
                reason = ENDED if refs else "its id is a pattern, which no request can name"
                left_out.setdefault(reason, []).append(entry)
                continue
            count += 1
            prices |= {ref: price for ref, (price, _) in priced.items()}
            for note in priced[served[0]][1]:
                if ODD in note:
                    without.setdefault(note.partition(": ")[2], []).append(entry)
    by_hand = {
        ref: price
        for ref, price in older.prices.items()
        if price.source and not price.source.startswith(PACKAGE) and not _has_ended(ref, day)
    }
    about = f"{PACKAGE} {source.version} (pydantic, MIT), last seen on {source.known_on}"
    book = Book(name, day.isoformat(), about, by_hand | prices, "", today.isoformat())
    return WholeBook(book, count, left_out, without)


def whole_text(new_book: WholeBook, out: Path) -> str:
    """Return a whole book as TOML; its comments list the genai-prices entries that it lacks."""
    groups = [("Left out", *pair) for pair in new_book.left_out.items()]
    groups += [("Kept", *pair) for pair in new_book.without.items()]
    lines = [
        "# Made by `podium prices update`. Books are append-only: correct a price in a newer book.",
        f"# {new_book.models:,} models of {PACKAGE}, and entries with a source of their own.",
        *(f"# {title}, {len(refs)}: {reason}: {', '.join(refs)}" for title, reason, refs in groups),
    ]
    text = "\n".join(lines) + "\n" + compact_text(new_book.book)
    parse_book(text.encode(), out)
    return text


def update_text(old: Book, new_book: WholeBook) -> str:
    """Return lines on a new book's changes since `old`, and on genai-prices entries left out."""
    lines = [f"{new_book.book.name} beside {old.name}:"]
    for kind, notes in _by_kind(old.prices, new_book.book.prices).items():
        lines.append(f"  {kind} {len(notes):,}{_listed(kind, notes)}")
    for title, groups in (("left out", new_book.left_out), ("kept", new_book.without)):
        for reason, refs in groups.items():
            lines.append(f"- {title}, {len(refs):,}: {reason} ({_by_provider(refs)})")
    return "\n".join(lines)


def _by_kind(old: Mapping[str, Price], new: Mapping[str, Price]) -> dict[str, dict[str, str]]:
    """Return kind of change (added, ended, ...) -> price keys, each with a note on its price."""
    changes: dict[str, dict[str, str]] = {kind: {} for kind in (ADDED, *KINDS)}
    for ref in sorted({*old, *new}):
        was, now = old.get(ref), new.get(ref)
        if was is None and now is not None:
            changes[ADDED][ref] = ""
        elif now is None and was is not None:
            day = ended_day(ref)
            changes["ended"][ref] = f"on {day}" if day else "the source no longer has it"
        elif was and now and (kind := _direction(was, now)):
            changes[kind][ref] = f"{in_and_out(was)} -> {in_and_out(now)}"
    return changes


ADDED = "added"
KINDS = ("ended", "dearer", "cheaper", "otherwise changed")


def _direction(old: Price, new: Price) -> str:
    """Return the kind of change (see `KINDS`) of a price, by its base rates; empty: no change."""
    if replace(old, source="", launched="") == replace(new, source="", launched=""):
        return ""
    pairs = [(getattr(old, name), getattr(new, name)) for name in RATES]
    both = [(was, now) for was, now in pairs if None not in (was, now)]
    rises = {now > was for was, now in both if was != now}
    return KINDS[3] if len(rises) != 1 else KINDS[1] if rises.pop() else KINDS[2]


def _listed(kind: str, notes: Mapping[str, str]) -> str:
    if kind == ADDED:
        return f" ({_by_provider(notes)})" if notes else ""
    lines = [f"\n    {ref}: {note}" for ref, note in [*notes.items()][:SHOWN]]
    suffix = f"\n    and {len(notes) - SHOWN} more" if len(notes) > SHOWN else ""
    return "".join(lines) + suffix


def _by_provider(refs: Iterable[str]) -> str:
    counts = Counter(ref.partition("/")[0] for ref in refs)
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


def _model_at(provider: str, ref: str) -> str:
    start, _, model = ref.partition("/")
    return model if start == provider else ""


def _has_ended(ref: str, day: date) -> bool:
    return bool(last_day := ended_day(ref)) and last_day <= day.isoformat()


def _other_ids(clause: Any) -> Iterator[str]:
    """Yield the model ids that a matching clause of genai-prices states literally."""
    if hasattr(clause, "equals"):
        yield clause.equals
    for alternative in getattr(clause, "or_", ()):
        yield from _other_ids(alternative)
