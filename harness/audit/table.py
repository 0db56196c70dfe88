"""The reconciliation table: what each record counts, and each difference with its cause.

Figures of one sitting add up to those of a directory. Dollars of different scopes are never added.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from harness.audit.evidence import NOTHING, Evidence, Tokens, minus, plus, spent, tokens_of, told
from harness.audit.sums import explain, has_totals, parts_of
from harness.ledger.billing import ZERO
from harness.ledger.events import IN_FLIGHT
from harness.ledger.row import LedgerRow

RECORDS = ("ledger", "samples", "runs", "hooks")
"""Who counts tokens: our rows, and three of Inspect's own totals."""
UNLABELLED = "unlabelled"
"""Of calls that podium did not make: nobody wrote down whether they were paid."""


@dataclass(slots=True)
class Dollars:
    """What one scope cost."""

    priced: Decimal = ZERO
    """At the book, of the rows that have a price: no total, but where all have one."""
    low: Decimal = ZERO
    high: Decimal | None = ZERO
    """None when nothing bounds a row."""
    listed: Decimal | None = ZERO
    """At list price, as if nothing had been cached; None when a reply has none."""
    unpriced: int = 0
    """Rows that were billed at a price nobody knows."""
    unknown: int = 0
    """Rows that may have been billed: between low and high."""

    @property
    def total(self) -> Decimal | None:
        """At the book; None when the price of any row is unknown."""
        return None if self.unpriced or self.unknown else self.priced

    def add(self, row: LedgerRow) -> None:
        """Count one row."""
        if row.usd is not None:
            self.priced += row.usd
        if row.billable == "unknown":
            self.unknown += 1
            self.high = _added(self.high, row.usd_high)
            return
        self.listed = _added(self.listed, row.usd_list)
        self.high = _added(self.high, row.usd)
        if row.usd is None:
            self.unpriced += 1
        else:
            self.low += row.usd

    def join(self, other: "Dollars") -> None:
        """Add other dollars of the same scope."""
        self.priced += other.priced
        self.low += other.low
        self.high = _added(self.high, other.high)
        self.listed = _added(self.listed, other.listed)
        self.unpriced += other.unpriced
        self.unknown += other.unknown


def _added(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other


@dataclass(slots=True)
class Table:
    """Counts, tokens and dollars of some sittings."""

    counts: Counter[str] = field(default_factory=Counter[str])
    tokens: dict[str, Tokens] = field(default_factory=dict[str, Tokens])
    """Of each record that has any."""
    causes: dict[str, dict[str, Tokens]] = field(default_factory=dict[str, dict[str, Tokens]])
    """By record: what the ledger counts and that record does not (negative: the other way)."""
    dollars: dict[str, Dollars] = field(default_factory=dict[str, Dollars])
    """By label and scope, e.g. `live inference`."""

    def join(self, other: "Table") -> None:
        """Add the figures of other sittings."""
        self.counts += other.counts
        for name, tokens in other.tokens.items():
            self.tokens[name] = plus(self.tokens.get(name, NOTHING), tokens)
        for name, causes in other.causes.items():
            mine = self.causes.setdefault(name, {})
            for cause, tokens in causes.items():
                mine[cause] = plus(mine.get(cause, NOTHING), tokens)
        for name, dollars in other.dollars.items():
            self.dollars.setdefault(name, Dollars()).join(dollars)


def table_of(evidence: Evidence) -> Table:
    """Return the figures of one sitting."""
    found = Table(counts=_counts(evidence))
    for row in evidence.rows:
        found.dollars.setdefault(f"{_label(evidence, row)} {row.scope}", Dollars()).add(row)
    found.tokens["ledger"] = _sum(spent(evidence.rows).values())
    unbelieved = minus(found.tokens["ledger"], _sum(spent(evidence.counted).values()))
    for name, tokens, causes in (_samples(evidence), _runs(evidence), _hooks(evidence)):
        found.tokens[name] = tokens
        named = {**causes, "counts that cannot be": unbelieved}
        rest = minus(found.tokens["ledger"], tokens)
        for known in named.values():
            rest = minus(rest, known)
        every = {**named, "UNEXPLAINED": rest}
        found.causes[name] = {cause: one for cause, one in every.items() if one != NOTHING}
    return found


def _label(evidence: Evidence, row: LedgerRow) -> str:
    """Return a row's label; logs that podium did not write have none."""
    seen = evidence.seen.get(row.event or "")
    foreign = row.journal is None and seen is not None and seen.log.facts is None
    return UNLABELLED if foreign else row.label


def _counts(evidence: Evidence) -> Counter[str]:
    calls = evidence.merged.gathered.calls.values()
    untold = {
        call for call, record in evidence.merged.gathered.calls.items() if record.outcome is None
    }
    rows = evidence.rows
    return Counter(
        {
            "sittings": 1,
            "logs": len(evidence.logs),
            "journals": len(evidence.merged.gathered.journals),
            "intents": len(calls),
            "outcomes": sum(record.outcome is not None for record in calls),
            "attempts": len(rows),
            "retries": sum(row.attempt > 1 for row in rows),
            "events": len(evidence.seen),
            "without event": sum(row.event is None for row in rows),
            "without journal": sum(row.journal is None for row in rows),
            "cached": sum(row.cache == "read" for row in rows),
            "failed": sum(row.error is not None for row in rows),
            "refused": sum(row.billable == "no" and row.error is not None for row in rows),
            "unknown": sum(row.billable == "unknown" for row in rows),
            "in flight": sum(row.error == IN_FLIGHT for row in rows),
            "untold": len(untold - {row.call for row in rows if row.error == IN_FLIGHT}),
        }
    )


Told = tuple[str, Tokens, Mapping[str, Tokens]]


def _samples(evidence: Evidence) -> Told:
    """The totals of the newest samples have only their last attempts."""
    theirs = _sum(
        told(usage) for one in evidence.newest.values() for usage in one.model_usage.values()
    )
    own = {event.id for one in evidence.newest.values() for event in one.events}
    causes: dict[str, Tokens] = defaultdict(lambda: NOTHING)
    for row in evidence.counted:
        if row.cache != "read" and row.event not in own:
            cause = "attempts that were made again" if row.event else "calls that no log has"
            causes[cause] = plus(causes[cause], tokens_of(row))
    return "samples", theirs, causes


def _runs(evidence: Evidence) -> Told:
    """The totals of the newest log that has any."""
    log = next((log for log in evidence.logs if has_totals(log)), None)
    if log is None:
        return "runs", NOTHING, {"runs that were stopped have no total": _ledger(evidence)}
    parts = parts_of(evidence, log)
    theirs = {name: told(usage) for name, usage in log.model_usage.items()}
    result = explain(theirs, parts, spent)
    causes = {
        group.cause: _sum(map(tokens_of, group.rows))
        for group in parts.groups
        if group.cause not in result.included
    }
    return "runs", _sum(theirs.values()), causes


def _hooks(evidence: Evidence) -> Told:
    """What Inspect's hooks counted in processes that ended; others have left no such line."""
    totals = [(journal.name, journal.totals) for journal in evidence.merged.gathered.journals]
    theirs = _sum(told(line) for _, lines in totals for line in lines)
    ended = {name for name, lines in totals if lines}
    causes: dict[str, Tokens] = defaultdict(lambda: NOTHING)
    for row in evidence.counted:
        if row.cache != "read" and row.journal not in ended:
            cause = "processes that were killed" if row.journal else "calls without a journal"
            causes[cause] = plus(causes[cause], tokens_of(row))
    return "hooks", theirs, causes


def _ledger(evidence: Evidence) -> Tokens:
    return _sum(spent(evidence.counted).values())


def _sum(parts: Iterable[Tokens]) -> Tokens:
    total = NOTHING
    for part in parts:
        total = plus(total, part)
    return total
