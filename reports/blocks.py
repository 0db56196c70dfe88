"""Blocks: the rows that may be compared with one another, and how a block is told from others."""

from collections.abc import Sequence
from itertools import groupby

from harness.suite import OFFICIAL, Prompt
from reports.tables import Row, block_of

NONE = "none"
DIGITS = 8
"""So many of a digest's digits are shown."""


def blocks_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Return sorted rows block by block."""
    return [list(group) for _, group in groupby(rows, key=block_of)]


def short(name: str, digest: str) -> str:
    """Return a name that pins its content, e.g. `rehearsal (49f947b9)`."""
    return f"{name} ({digest[:DIGITS]})"


def pool_name(row: Row, rows: Sequence[Row]) -> str:
    """Return a row's pool, with its seed and digest only where `rows` have another one as well."""
    digests = {other.pool_sha256 for other in rows if other.pool == row.pool}
    name = row.pool if len(digests) == 1 else short(row.pool, row.pool_sha256)
    return name if len({other.seed for other in rows}) == 1 else f"{name}, seed {row.seed}"


def book_name(row: Row, rows: Sequence[Row]) -> str:
    """Return a row's price book, with its digest only where `rows` have two of that name."""
    digests = {other.price_book_sha256 for other in rows if other.price_book == row.price_book}
    name = row.price_book
    return name if len(digests) == 1 else short(name, row.price_book_sha256)


def exam_name(row: Row) -> str:
    """Return what a block is about, e.g. `aime25 1-A (eval), paper prompt, rehearsal`."""
    return f"{row.suite} {row.suite_version} ({row.split}){put(row.prompt)}, {row.label}"


def put(prompt: Prompt) -> str:
    """Return the words on how questions were put; none where it was the official way."""
    return "" if prompt == OFFICIAL else f", {prompt} prompt"


def avg_at(rows: Sequence[Row]) -> str:
    """Return how often a block's questions were asked, e.g. `avg@4`; empty where only once."""
    asked = sorted({row.epochs for row in rows})
    return "" if asked == [1] else "avg@" + " and avg@".join(map(str, asked))


def reference_of_block(rows: Sequence[Row]) -> str:
    """Return the system that a block is compared with, or `none`."""
    return next((row.reference for row in rows if row.reference), NONE)
