"""Dated price books, one TOML file each, and the cost of a model call at such a price book."""

from podium.harness.prices.book import (
    BOOKS,
    BUILT_IN,
    EMBEDDED,
    Book,
    book_from_json,
    newest_list,
    parse_book,
    read_book,
)

__all__ = [
    "BOOKS",
    "BUILT_IN",
    "EMBEDDED",
    "Book",
    "book_from_json",
    "newest_list",
    "parse_book",
    "read_book",
]
