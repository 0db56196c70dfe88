"""Price books as plain text for the terminal, in at most 100 columns."""

from collections.abc import Sequence
from textwrap import fill

from harness.listing import columns
from harness.prices import BOOKS, Book, read_book
from harness.prices.changes import ABSENT, Change, number
from harness.prices.pricing import Price, Rates

WIDTH = 98
HEADS = ("model", "in", "out", "cached", "write", "write 1h", "evidence")
NOTE = "US dollars per million tokens. A — is unknown: such tokens have no price, not a price of 0."


def show_books() -> str:
    """Return the shipped books, one a line."""
    books = [read_book(path.stem) for path in sorted(BOOKS.glob("*.toml"))]
    rows = [(book.name, book.date, str(len(book.prices)), _evidence(book)) for book in books]
    return columns(("book", "prices of", "models", "evidence"), rows)


def show_book(book: Book) -> str:
    """Return every price of a book, with tiers and services beneath."""
    rows = [row for ref in sorted(book.prices) for row in _rows(ref, book.prices[ref])]
    asked = f", retrieved {book.retrieved}" if book.retrieved else ""
    title = f"{book.name}: prices of {book.date}\nsource: {book.source}{asked}"
    table = columns(HEADS, rows) if rows else "No model has a price in this book."
    extras = [line for ref in sorted(book.prices) for line in _extras(ref, book.prices[ref])]
    extras += [line for start in sorted(book.built_in) for line in _rule(start, book)]
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
    """Return what has no column: services, other rates, GPU time, and where a price is from."""
    said: list[str] = []
    for service, factor in price.services.items():
        kept = price.full_rate.get(service)
        said.append(f"{service} x {factor}" + (f" (not {', '.join(kept)})" if kept else ""))
    if price.reasoning is not None:
        said.append(f"reasoning {number(price.reasoning)}")
    if price.orchestration_in is not None and price.orchestration_out is not None:
        said.append(
            f"orchestration {number(price.orchestration_in)} in, "
            f"{number(price.orchestration_out)} out"
        )
    if price.request:
        said.append(f"{number(price.request)} a request")
    if gpu := price.gpu:
        said.append(f"own hardware: {gpu.count} {gpu.type} at {number(gpu.usd_per_hour)} an hour")
        said.append(f"{gpu.tokens_per_s} tokens/s ({gpu.source})")
    said += [f"source: {price.source}"] if price.source else []
    text = f"{ref}: {'; '.join(said)}"
    return [fill(text, WIDTH, subsequent_indent="  ", break_long_words=False)] if said else []


def _rule(start: str, book: Book) -> list[str]:
    """Return a built-in price: it holds for every key that begins so and is not listed."""
    price = book.built_in[start]
    rates = f"{number(price.input)} in, {number(price.output)} out"
    said = f"{start}*, built in: {rates} ({price.source})"
    return [fill(said, WIDTH, subsequent_indent="  ", break_long_words=False)]


def _evidence(book: Book) -> str:
    kinds = [price.evidence for price in book.prices.values()]
    found = [(kind, kinds.count(kind)) for kind in ("dated", "carried-back", "")]
    return ", ".join(f"{count} {kind or 'not said'}" for kind, count in found if count) or ABSENT
