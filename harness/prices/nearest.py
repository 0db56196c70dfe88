"""Suggests keys (PROVIDER/MODEL) of a price book that are similar to a key that it lacks."""

import re
from difflib import get_close_matches

from podium.harness.prices.book import Book, newest_list
from podium.harness.prices.snapshot import in_and_out

MOST = 3
CUTOFF = 0.6  # difflib's default
DATE = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)$")


def nearest_prices(ref: str, book: Book) -> str:
    """Return a sentence with the price of `ref` in the newest list, or with similar keys of `book`.

    Similar keys have a similar model name, at any provider; keys of the same provider come first.
    The sentence is empty if the newest list has no price and no key is similar.
    """
    newest = newest_list()
    if newest.name != book.name and (price := newest.price(ref)):
        return f"{newest.name!r} has it ({in_and_out(price)}): set `prices` to that book. "
    near = _near_keys(ref, [key for key in book.prices if key.startswith(ref.partition("/")[0])])
    near += [key for key in _near_keys(ref, [*book.prices]) if key not in near]
    listed = ", ".join(f"{key} ({in_and_out(book.prices[key])})" for key in near[:MOST])
    return f'Nearest entries in the book, to use as price = "KEY": {listed}. ' if near else ""


def _near_keys(ref: str, keys: list[str]) -> list[str]:
    """Return the keys whose model names are most similar to that of `ref`, best first."""
    names = {key: _model(key) for key in keys}
    near = get_close_matches(_model(ref), {*names.values()}, MOST, CUTOFF)
    return sorted(
        (key for key in keys if names[key] in near), key=lambda key: near.index(names[key])
    )


def _model(ref: str) -> str:
    return DATE.sub("", ref.rpartition("/")[2])
