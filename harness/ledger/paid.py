"""What left a purse for a sitting, as a range, from its journals: they alone have every call.

A call that was dispatched and never answered may have been billed: it costs between nothing and
what its request allowed. Only live workers cost anything. Not here: what a run may still spend
(spending.py), and figures per query (harness/totals.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from harness.ledger.attempts import about_log
from harness.ledger.raw_log import naming, open_log
from harness.ledger.row import Scope
from harness.ledger.sitting_files import journals_of
from harness.ledger.spending import CallLines, calls_of
from harness.ledger.writing import Told
from harness.prices import Book
from harness.records import PODIUM

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Paid:
    """US dollars that were billed, as far as anybody knows."""

    low: Decimal = ZERO
    """What is known to be billed."""
    high: Decimal | None = ZERO
    """None: nothing bounds a call whose end is unknown, or a billed call has no price."""
    unknown: int = 0
    """Attempts of which nobody knows whether they were billed."""
    unpriced: int = 0
    """Attempts that were billed and have no price."""

    @property
    def exact(self) -> Decimal | None:
        """The one number that it is; None for a range."""
        return self.low if self.low == self.high else None

    def plus(self, other: "Paid") -> "Paid":
        """Return both together."""
        high = None if self.high is None or other.high is None else self.high + other.high
        unknown, unpriced = self.unknown + other.unknown, self.unpriced + other.unpriced
        return Paid(self.low + other.low, high, unknown, unpriced)


ByScope = Mapping[Scope, Paid]


def read_paid(logs: Sequence[Path]) -> ByScope | None:
    """Return what a sitting paid by scope, by the journals of the task that its logs are of.

    None for what cost nothing, because its workers are not live, and for logs older than journals.
    UserError for a damaged log, and for one that `podium run` did not write.
    """
    with open_log(logs[0]) as log:
        about, task = about_log(log.header, logs[0]), str(log.header["eval"].get("task", ""))
    if about.facts.label != "live" or not all(map(_is_in_journals, logs)):
        return None
    folders = sorted({path.parent for path in logs})
    journals = [path for folder in folders for path in journals_of(folder, task)]
    return paid_in(journals, about.book) if journals else None


def _is_in_journals(path: Path) -> bool:
    """Return whether a log says that all its calls are in journals too; older ones do not."""
    with open_log(path) as log, naming(path):
        return bool(log.header["eval"]["metadata"][PODIUM].get("journal"))


def paid_in(journals: Iterable[Path], book: Book) -> ByScope:
    """Return what the calls of some journals cost at a book, by scope."""
    found: dict[Scope, Paid] = {}
    for path in journals:
        for call in calls_of(path):
            scope: Scope = call.intent["scope"]
            for told in call.attempts():
                found[scope] = found.get(scope, Paid()).plus(_paid(call, told, book))
    return found


def _paid(call: CallLines, told: Told, book: Book) -> Paid:
    if told.billable == "no":
        return Paid()
    if told.billable == "unknown":
        return Paid(high=call.bound(book), unknown=1)
    usd = call.usd(told, book)
    return Paid(high=None, unpriced=1) if usd is None else Paid(usd, usd)
