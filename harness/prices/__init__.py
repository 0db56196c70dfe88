"""Dated price books, one TOML file each, and what a call costs at one."""

from harness.prices.book import (
    BOOKS,
    BUILT_IN,
    EMBEDDED,
    UNDATED,
    Book,
    book_from_json,
    parse_book,
    read_book,
)

# § Dated price books, one TOML file each, and what a call costs at one.
# §
# § Read `pricing.py` first (rates, tiers, what a call costs), then `books.py` (a book and its
# § file) and
# § `entries.py` (what an entry may say). Books are made by `snapshot.py`, written by
# § `writing.py` and
# § compared by `changes.py`; `on_record.py` knows launch days and prices from the time
# § itself.


__all__ = [
    "BOOKS",
    "BUILT_IN",
    "EMBEDDED",
    "UNDATED",
    "Book",
    "book_from_json",
    "parse_book",
    "read_book",
]
