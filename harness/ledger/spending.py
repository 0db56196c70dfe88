"""What a run has spent so far, from all attempts: what `--max-usd` of a resumed run begins with.

Journals have every call, also those that no log kept; what only a log has, because it is older or
its journal is gone, counts as well. Not here: the meter of a run in progress (harness/spend.py).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from harness.errors import UserError
from harness.ledger.billing import Attempted, upper_bound
from harness.ledger.journal import FOLDER, AttemptLines, read_lines
from harness.ledger.raw_log import Json
from harness.ledger.spent import spent_in_logs
from harness.ledger.writing import Told, after_retry, ended
from harness.prices import Book
from harness.prices.pricing import cost

ZERO = Decimal(0)


@dataclass(slots=True)
class CallLines:
    """What a journal says of one call."""

    intent: Json
    tries: AttemptLines = field(default_factory=AttemptLines)
    outcome: Json | None = None

    @property
    def retries(self) -> list[Json]:
        """Its failed HTTP attempts that another was to follow."""
        return self.tries.retries

    def attempts(self) -> Iterator[Told]:
        """Yield how each attempt over HTTP ended, the last one last."""
        for number, retry in enumerate(self.retries, 1):
            yield after_retry(number, retry, None)
        if not self.tries.waited:
            yield ended(len(self.retries) + 1, self.outcome, None)

    def usd(self, told: Told, book: Book) -> Decimal | None:
        """Return what an attempt that was billed costs at a book; None when that is unknown."""
        price = book.price(self.intent["price_ref"])
        service = self.intent.get("service") or "standard"
        return cost(told.usage, price, service) if told.usage and price else None

    def bound(self, book: Book) -> Decimal | None:
        """Return the most that an attempt without an end can cost; None when nothing bounds it."""
        price = book.price(self.intent["price_ref"])
        sizes = self.intent.get("prompt_bytes"), self.intent.get("max_tokens")
        service = self.intent.get("service") or "standard"
        return upper_bound(Attempted("unknown", "none", None, service, *sizes), price)


def calls_of(path: Path) -> Iterator[CallLines]:
    """Yield the calls of one journal, in the order of their intents.

    Lines that are damaged, or belong to no call, are for the audit to name; here they are nothing.
    """
    calls: dict[str, CallLines] = {}
    schema: object = None
    for line in read_lines(path):
        kind, call = line.get("kind"), str(line.get("call", ""))
        schema = line.get("schema") if kind == "head" else schema
        if kind == "intent":
            calls[call] = CallLines(line)
        elif call in calls and kind in ("retry", "again"):
            calls[call].tries.add(line, schema)
        elif call in calls and kind == "outcome":
            calls[call].outcome = line
    yield from calls.values()


@dataclass(frozen=True, slots=True)
class Standing:
    """What a run's directory has spent."""

    usd: Decimal = ZERO
    unbounded: Counter[str] = field(default_factory=Counter[str])
    """By price: attempts that may have been billed, of which nobody can say yet how much: nothing
    bounds them, and no call of their price has ended."""


def spent(log_dir: Path, book: Book) -> Decimal:
    """Return the dollars of `standing`; 0 when nothing was called yet."""
    return standing(log_dir, book).usd


def standing(log_dir: Path, book: Book) -> Standing:
    """Return the would-be dollars of all attempts below a run's directory, at the run's book.

    An attempt of which nobody knows whether it was billed counts as the most it can have cost, or
    where nothing bounds that, as the dearest call of its price.
    UserError names calls whose replies have no price.
    """
    sums = _Sums(book)
    for path in sorted(log_dir.glob(f"{FOLDER}/*/*.jsonl")):
        for call in calls_of(path):
            sums.add(call, path.name)
    logs = sorted(log_dir.glob("**/*.eval")) if log_dir.is_dir() else ()
    return Standing(sums.total() + spent_in_logs(logs, sums.known_calls), sums.unbounded)


@dataclass(slots=True)
class _Sums:
    book: Book
    known: Decimal = ZERO
    known_calls: set[str] = field(default_factory=set[str])
    """Spans and uuids of the events of the journals' calls."""
    dearest: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
    unknown: list[tuple[str, Decimal | None]] = field(
        default_factory=list[tuple[str, Decimal | None]]
    )
    """Price and upper bound of attempts of which nobody knows whether they were billed."""

    def add(self, call: CallLines, journal: str) -> None:
        """Count all attempts of a call."""
        names = call.intent.get("span"), (call.outcome or {}).get("event")
        self.known_calls.update(name for name in names if name)
        for told in call.attempts():
            if told.billable == "yes":
                self._billed(call, told, journal)
            elif told.billable == "unknown":
                self.unknown.append((call.intent["price_ref"], call.bound(self.book)))

    def total(self) -> Decimal:
        """Return the sum; what is unknown counts as its bound, else as the dearest call."""
        assumed = (
            self.dearest.get(ref, ZERO) if bound is None else bound for ref, bound in self.unknown
        )
        return self.known + sum(assumed, ZERO)

    @property
    def unbounded(self) -> Counter[str]:
        """Return how many of each price nothing bounds, of prices that no ended call has."""
        refs = (ref for ref, bound in self.unknown if bound is None and ref not in self.dearest)
        return Counter(refs)

    def _billed(self, call: CallLines, told: Told, journal: str) -> None:
        ref, usd = call.intent["price_ref"], call.usd(told, self.book)
        if usd is None:
            raise UserError(
                f"Calls of {call.intent['role']!r} in {journal} have no price, so --max-usd cannot "
                "hold: leave it out, or start in another --log-dir with a price book that has "
                "the worker."
            )
        self.known += usd
        self.dearest[ref] = max(usd, self.dearest.get(ref, ZERO))
