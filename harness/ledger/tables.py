"""The rows of every sitting as Arrow tables, one sitting at a time, in two processes where it pays.

Order and content are those of the files, however many processes read them.
"""

import gc
import multiprocessing
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from harness.at_once import cores
from harness.ledger.answered import Answered, answered_in, book_name, exam_of
from harness.ledger.columns import table_of
from harness.ledger.journal import read_lines
from harness.ledger.merge import rows_of
from harness.ledger.queries import query_rows
from harness.ledger.query_row import QueryRow
from harness.ledger.raw_log import open_log
from harness.ledger.row import LedgerRow
from harness.ledger.sitting_files import Files

WORTH_IT = 32 << 20
"""Bytes of files from which on a second process pays for its start."""
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
    with _no_collector():
        return _tables_of(files)


def _tables_of(files: Files) -> Tables:
    answers, books = read_answers(files.logs)
    for path in files.journals:
        for head in islice(read_lines(path), 1):
            books.add(book_name(head.get("book"), head.get("book_sha256")))
    rows = list(rows_of(files))
    return Tables(
        table_of(LedgerRow, rows),
        table_of(QueryRow, query_rows(rows, answers)),
        tuple(sorted(books - {""})),
    )


def read_answers(logs: Sequence[Path]) -> tuple[list[Answered], set[str]]:
    """Return what logs (newest first) say of each question, and the names of their price books."""
    answers: list[Answered] = []
    books: set[str] = set()
    for path in reversed(logs):
        with open_log(path) as log:
            books.add(exam_of(log.header).book)
            answers.extend(answered_in(log))
    return answers, books


@contextmanager
def _no_collector() -> Generator[None]:
    """Hold Python's collector of cycles: rows have none, and it walks them all, again and again."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def each_of(sittings: Sequence[Files], processes: int | None = None) -> Iterator[Tables]:
    """Yield the tables of each sitting, in order; `processes` is chosen by size when None."""
    some = processes or (min(2, cores()) if _size(sittings) > WORTH_IT else 1)
    if some < 2 or len(sittings) < 2:
        yield from map(tables_of, sittings)
        return
    # A fresh process: Arrow's threads do not survive a fork.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(some, mp_context=fresh) as pool:
        waiting: deque[Future[Tables]] = deque()
        for files in sittings:
            waiting.append(pool.submit(tables_of, files))
            if len(waiting) > some * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _size(sittings: Sequence[Files]) -> int:
    return sum(path.stat().st_size for one in sittings for path in (*one.logs, *one.journals))
