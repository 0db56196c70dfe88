"""What past runs say of the next one: calls and tokens per question, and per call of a worker.

Read from the rows of ledgers (journals and logs) below directories; nothing is asked. Only calls of
the very models that the pool has now count: another model's tokens say nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil
from pathlib import Path

from harness.experiment import task_name
from harness.ledger.merge import rows_of
from harness.ledger.row import LedgerRow
from harness.ledger.sitting_files import has_sittings, sittings_below
from harness.pool_file import PoolSpec
from harness.prices import Book
from harness.prices.pricing import cost
from harness.selection import SELECTION

Answered = tuple[str, str]
"""Suite and system."""


@dataclass(slots=True)
class Sums:
    """Calls with their tokens and dollars."""

    calls: int = 0
    input: int = 0
    output: int = 0
    usd: Decimal | None = Decimal(0)
    """None when one of them has no price."""
    sized: int = 0
    """Input tokens of the calls whose prompts' bytes are known, and those bytes."""
    bytes: int = 0

    def add(self, row: LedgerRow, usd: Decimal | None) -> None:
        """Add one call."""
        prompt = row.input_total or 0
        self.calls += 1
        self.input += prompt
        self.output += row.output or 0
        self.usd = None if self.usd is None or usd is None else self.usd + usd
        if row.prompt_bytes:
            self.sized += prompt
            self.bytes += row.prompt_bytes


@dataclass(slots=True)
class Past:
    """What was found."""

    answers: dict[Answered, dict[tuple[str, int, str], Sums]] = field(
        default_factory=lambda: defaultdict[Answered, dict[tuple[str, int, str], Sums]](dict)
    )
    """Per suite and system, what each graded answer took."""
    workers: dict[tuple[str, str], Sums] = field(
        default_factory=lambda: defaultdict[tuple[str, str], Sums](Sums)
    )
    """Per suite and worker; the suite `` is all of them."""
    judges: dict[str, Sums] = field(default_factory=lambda: defaultdict[str, Sums](Sums))
    """Per suite, what judging took."""
    strangers: set[Answered] = field(default_factory=set[Answered])
    """Suites and systems that ran on other models: their totals say nothing."""

    def of_system(self, suite: str, system: str) -> list[Sums]:
        """Return what each answer of a system took on a suite; empty when it never sat it so."""
        if (suite, system) in self.strangers or (suite, system) not in self.answers:
            return []
        return list(self.answers[suite, system].values())

    def of_worker(self, suite: str, worker: str) -> Sums | None:
        """Return a worker's calls on a suite, else on all; None when it was never called."""
        for key in ((suite, worker), ("", worker)):
            if key in self.workers and self.workers[key].calls:
                return self.workers[key]
        return None


def p95(counts: Sequence[int]) -> int:
    """Return the 95th percentile by nearest rank.

    >>> p95([1] * 95 + [9] * 5)
    1
    """
    ordered = sorted(counts)
    return ordered[ceil(0.95 * len(ordered)) - 1]


def read_past(dirs: Sequence[Path], spec: PoolSpec, book: Book) -> Past:
    """Return what ledgers below directories say of this pool's workers, at this book's prices.

    A directory without logs and journals says nothing; UserError for one that is damaged.
    """
    past = Past()
    models = {slot.name: slot.model for slot in spec.slots}
    refs = {slot.name: slot.price_ref for slot in spec.slots}
    for row in _rows(dirs):
        if row.billable != "yes" or row.input_total is None or row.output is None:
            continue
        if models.get(row.role) != row.model:
            past.strangers.add((row.suite, row.system))
            continue
        usd = _price(row, book, refs[row.role])
        if row.scope == "scoring":
            past.judges[row.suite].add(row, usd)
        elif row.scope == "inference":
            past.workers[row.suite, row.role].add(row, usd)
            past.workers["", row.role].add(row, usd)
            if row.counted and not _is_try(row):
                pair = (row.question, row.epoch, row.sample)
                found = past.answers[row.suite, row.system].setdefault(pair, Sums())
                found.add(row, usd)
    return past


def _rows(dirs: Sequence[Path]) -> Iterator[LedgerRow]:
    for folder in dirs:
        for files in sittings_below(folder) if has_sittings(folder) else ():
            yield from rows_of(files)


def _is_try(row: LedgerRow) -> bool:
    """Say whether a system only tried something to learn by: its answers are other ones."""
    alone = task_name(row.suite, row.system, SELECTION)
    return row.task.endswith(f"({SELECTION})") and row.task != alone


def _price(row: LedgerRow, book: Book, ref: str) -> Decimal | None:
    usage, price = row.usage, book.price(ref)
    return cost(usage, price) if usage and price else None
