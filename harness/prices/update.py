"""A new dated book of every model that genai-prices has, and what it changes."""

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
"""Names of a kind of change that a terminal shows; `podium prices diff` has all."""


@dataclass(frozen=True, slots=True)
class WholeBook:
    """A book of all that a price source can tell of a day."""

    book: Book
    models: int
    """Entries of the source that it holds; an entry may have several keys."""
    left_out: Mapping[str, Sequence[str]]
    """The source's entries that no book can express, by reason."""
    without: Mapping[str, Sequence[str]]
    """Models in the book without the factor of a service, by reason."""


def fetched(source: PriceSource, url: str, today: date) -> PriceSource:
    """Return newer data than the installed ones, asked of genai-prices' address or of `url`."""
    updates: Any = import_module("genai_prices.update_prices")
    asked = url or updates.DEFAULT_UPDATE_URL
    try:
        found = updates.UpdatePrices(url=asked).fetch()
    except Exception as error:  # of HTTP, of JSON or of a schema, all of its own
        raise UserError(
            f"{asked} gave no prices ({first_line(error)}): try again, or leave --fetch out for "
            f"those of {PACKAGE} {source.version} as installed."
        ) from error
    return PriceSource(
        found.providers, f"{source.version}, data fetched", newest_day(found.providers, today)
    )


def whole_book(name: str, day: date, source: PriceSource, older: Book, today: date) -> WholeBook:
    """Return a book of every model that can be expressed, without those that ended.

    Keys are a model's ids; those of `older` that the source still knows stay, and so do entries
    that have a source of their own.
    """
    prices: dict[str, Price] = {}
    left_out: dict[str, list[str]] = {}
    without: dict[str, list[str]] = {}
    kept, wanted = 0, SnapshotRequest((), day, {})
    for provider in source.providers:
        start = our_name(provider)
        earlier: dict[int, list[str]] = {}
        for key in (key for ref in older.prices if (key := _model_at(start, ref))):
            earlier.setdefault(id(provider.find_model(key)), []).append(key)
        for model in provider.models:
            entry = f"{start}/{model.id}"
            ids = {model.id, *_other_ids(model.match)}
            ids = {one for one in ids if provider.find_model(one) is model}
            refs = {f"{start}/{one}" for one in (*ids, *earlier.get(id(model), ()))}
            served = sorted(ref for ref in refs if not _has_ended(ref, day))
            try:
                made = {ref: price_of(ref, model, wanted, source) for ref in served}
            except Unpriceable as error:
                left_out.setdefault(error.why, []).append(entry)
                continue
            if not made:
                why = ENDED if refs else "its id is a pattern, which no request can name"
                left_out.setdefault(why, []).append(entry)
                continue
            kept += 1
            prices |= {ref: price for ref, (price, _) in made.items()}
            for note in made[served[0]][1]:
                if ODD in note:
                    without.setdefault(note.partition(": ")[2], []).append(entry)
    by_hand = {
        ref: price
        for ref, price in older.prices.items()
        if price.source and not price.source.startswith(PACKAGE) and not _has_ended(ref, day)
    }
    about = f"{PACKAGE} {source.version} (pydantic, MIT), last seen on {source.known_on}"
    book = Book(name, day.isoformat(), about, by_hand | prices, "", today.isoformat())
    return WholeBook(book, kept, left_out, without)


def whole_text(found: WholeBook, out: Path) -> str:
    """Return the file of a whole book; its comments name what it cannot express."""
    named = [("Left out", *pair) for pair in found.left_out.items()]
    named += [("Kept", *pair) for pair in found.without.items()]
    lines = [
        "# Made by `podium prices update`. Books are append-only: correct a price in a newer book.",
        f"# {found.models:,} models of {PACKAGE}, and entries with a source of their own.",
        *(f"# {what}, {len(refs)}: {why}: {', '.join(refs)}" for what, why, refs in named),
    ]
    text = "\n".join(lines) + "\n" + compact_text(found.book)
    parse_book(text.encode(), out)
    return text


def update_text(old: Book, found: WholeBook) -> str:
    """Return what a new book changes, and what it leaves out, in lines."""
    lines = [f"{found.book.name} beside {old.name}:"]
    for kind, said in _by_kind(old.prices, found.book.prices).items():
        lines.append(f"  {kind} {len(said):,}{_listed(kind, said)}")
    for what, named in (("left out", found.left_out), ("kept", found.without)):
        for why, refs in named.items():
            lines.append(f"- {what}, {len(refs):,}: {why} ({_by_provider(refs)})")
    return "\n".join(lines)


def _by_kind(old: Mapping[str, Price], new: Mapping[str, Price]) -> dict[str, dict[str, str]]:
    """Return added, ended, dearer, cheaper and otherwise changed keys, each with its prices."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in (ADDED, *KINDS)}
    for ref in sorted({*old, *new}):
        before, after = old.get(ref), new.get(ref)
        if before is None and after is not None:
            found[ADDED][ref] = ""
        elif after is None and before is not None:
            ended = ended_day(ref)
            found["ended"][ref] = f"on {ended}" if ended else "the source has it no more"
        elif before and after and (kind := _direction(before, after)):
            found[kind][ref] = f"{in_and_out(before)} -> {in_and_out(after)}"
    return found


ADDED = "added"
KINDS = ("ended", "dearer", "cheaper", "otherwise changed")


def _direction(old: Price, new: Price) -> str:
    """Return how a price has moved, by its rates below every tier; empty if nothing has."""
    if replace(old, source="", launched="") == replace(new, source="", launched=""):
        return ""
    pairs = [(getattr(old, name), getattr(new, name)) for name in RATES]
    known = [(before, after) for before, after in pairs if None not in (before, after)]
    rises = {after > before for before, after in known if before != after}
    return KINDS[3] if len(rises) != 1 else KINDS[1] if rises.pop() else KINDS[2]


def _listed(kind: str, said: Mapping[str, str]) -> str:
    if kind == ADDED:
        return f" ({_by_provider(said)})" if said else ""
    lines = [f"\n    {ref}: {what}" for ref, what in [*said.items()][:SHOWN]]
    more = f"\n    and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    return "".join(lines) + more


def _by_provider(refs: Iterable[str]) -> str:
    counts = Counter(ref.partition("/")[0] for ref in refs)
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


def _model_at(provider: str, ref: str) -> str:
    start, _, model = ref.partition("/")
    return model if start == provider else ""


def _has_ended(ref: str, day: date) -> bool:
    return bool(ended := ended_day(ref)) and ended <= day.isoformat()


def _other_ids(clause: Any) -> Iterator[str]:
    """Yield the ids that an entry lists one by one."""
    if hasattr(clause, "equals"):
        yield clause.equals
    for part in getattr(clause, "or_", ()):
        yield from _other_ids(part)
