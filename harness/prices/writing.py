"""A price book as TOML. Reading one is harness/prices/books.py."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from harness.prices.books import Book
from harness.prices.entries import price_json


def book_text(book: Book) -> str:
    """Return a book as TOML: one table per model, decimals as strings."""
    said = {"date": book.date, "source": book.source, "retrieved": book.retrieved}
    lines = [f"{name} = {toml(value)}" for name, value in said.items() if value]
    lines += [] if book.prices else ["", "[usd_per_mtok]"]
    for ref, price in sorted(book.prices.items()):
        lines += ["", f"[usd_per_mtok.{toml(ref)}]"]
        lines += [f"{name} = {toml(value)}" for name, value in price_json(price).items()]
    return "\n".join(lines) + "\n"


def toml(value: Any) -> str:
    """Return a plain JSON value as TOML, on one line; fields that are None are left out.

    >>> toml({"temperature": 0.6, "stop": ["x"], "seed": None})
    '{ "temperature" = 0.6, "stop" = ["x"] }'
    """
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value)
        parts = [f"{toml(key)} = {toml(item)}" for key, item in items.items() if item is not None]
        return "{ " + ", ".join(parts) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in cast(Sequence[Any], value)) + "]"
    # A JSON string is a TOML string, except that TOML forbids a raw DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
