"""The rows of every sitting as Arrow tables, one sitting at a time, in two processes where it pays.

Order and content are those of the files, however many processes read them.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from harness.at_once import cores
from harness.ledger.answered import Answered, book_name
from harness.ledger.columns import table_of
from harness.ledger.gather import Gathered, gather, naming_sitting
from harness.ledger.merge import merged
from harness.ledger.queries import query_rows
from harness.ledger.query_row import QueryRow
from harness.ledger.row import LedgerRow
from harness.ledger.sitting_files import Files
from harness.processes import LARGE, without_collector, worker_pool

AHEAD = 2
"""Sittings per process that may wait to be written: what bounds memory."""


@dataclass(frozen=True, slots=True)
class Tables:
    """One sitting."""

    calls: Any
    """Arrow table of `LedgerRow`."""
    queries: Any
    """Arrow table of `QueryRow`."""
    books: tuple[str, ...]
    """Price books, as `name sha256:...`."""


def tables_of(files: Files) -> Tables:
    """Read one sitting; UserError for a damaged file."""
    with without_collector(), naming_sitting(files):
        return _tables_of(files)


def _tables_of(files: Files) -> Tables:
    found = gather(files, answers=True)
    rows = merged(found).rows
    return Tables(
        table_of(LedgerRow, rows),
        table_of(QueryRow, query_rows(rows, answers_of(found))),
        tuple(sorted(_books(found) - {""})),
    )


def answers_of(found: Gathered) -> list[Answered]:
    """Return what was gathered of each answer, oldest log first: of a pair the last one counts."""
    return [one for log in reversed(found.logs) for one in log.answers]


def _books(found: Gathered) -> set[str]:
    """Return the names of the price books of a sitting."""
    prices = [log.facts.prices for log in found.logs if log.facts]
    heads = [journal.head for journal in found.journals]
    return {book_name(one.get("name"), one.get("sha256")) for one in prices} | {
        book_name(one.get("book"), one.get("book_sha256")) for one in heads
    }


def each_of(sittings: Sequence[Files], processes: int | None = None) -> Iterator[Tables]:
    """Yield the tables of each sitting, in order; `processes` is chosen by size when None."""
    large = sum(one.size for one in sittings) >= LARGE
    some = processes or (min(2, cores()) if large else 1)
    if some < 2 or len(sittings) < 2:
        yield from map(tables_of, sittings)
        return
    with worker_pool(some) as pool:
        waiting: deque[Future[Tables]] = deque()
        for files in sittings:
            waiting.append(pool.submit(tables_of, files))
            if len(waiting) > some * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
