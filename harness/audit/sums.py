"""I2 and I3: calls add up to Inspect's totals of samples and of runs, or the difference has a name.

Inspect's totals differ from each other by design: reads from its cache are in none; a sample's has
only its last attempt; a run's has failed attempts too, and forgets or carries over those of earlier
logs as a whole. So a run's total must be what this log asked plus some whole groups of the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from harness.audit.evidence import (
    NOTHING,
    Evidence,
    Tokens,
    minus,
    plus,
    said_tokens,
    spent,
    spent_by_role,
    told,
)
from harness.audit.result import Checked, Fault
from harness.ledger.logged import LogRecord, SampleRecord
from harness.ledger.raw_log import Json
from harness.ledger.row import LedgerRow

MOST = 10
"""Groups of which every combination is tried."""

Sums = dict[str, Tokens]
Adder = Callable[[Iterable[LedgerRow]], Sums]


def sample_sums(evidence: Evidence) -> Checked:
    """I2: the calls of a sample's last attempt add up to its total, by model and by role."""
    found = Checked(skipped="" if evidence.logs else "no log: nothing finished, or not an eval")
    for log in evidence.logs:
        for sample in log.samples:
            rows, late = _own(evidence, sample)
            where = f"sample {sample.question} epoch {sample.epoch}"
            for kind, totals, adder in (
                ("model", sample.model_usage, spent),
                ("role", sample.role_usage, spent_by_role),
            ):
                for name, rest in _differences(_told(totals), adder(rows)):
                    if late and rest == minus(NOTHING, adder(late).get(name, NOTHING)):
                        continue  # judged again after the run: Inspect keeps the old total
                    said = f"{kind} {name}: Inspect's total less the ledger's: {said_tokens(rest)}"
                    found.faults.append(Fault("I2", evidence.name, where, f"{log.name}: {said}"))
    return found


def _own(evidence: Evidence, sample: SampleRecord) -> tuple[list[LedgerRow], list[LedgerRow]]:
    """Return the rows of a sample's last attempt, and those of them made after it had ended."""
    rows = [evidence.by_event[one.id] for one in sample.events if one.id in evidence.by_event]
    late = [row for row in rows if row.scope == "scoring" and row.started > sample.completed]
    return rows, late if sample.completed else []


def _told(totals: Mapping[str, Json]) -> Sums:
    return {name: told(usage) for name, usage in totals.items()}


def _differences(theirs: Sums, ours: Sums) -> Iterator[tuple[str, Tokens]]:
    for name in sorted({*theirs, *ours}):
        rest = minus(theirs.get(name, NOTHING), ours.get(name, NOTHING))
        if rest != NOTHING:
            yield name, rest


@dataclass(frozen=True, slots=True)
class Group:
    """Calls that a run's total has as a whole or not at all."""

    cause: str
    rows: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """How a run's total comes about."""

    included: tuple[str, ...]
    """Causes of what Inspect counts beside this log's own calls."""
    left_out: tuple[str, ...]
    rest: Sums
    """What nothing explains."""
    guessed: bool = False
    """True when the rest is taken for attempts that no record has."""


def run_sums(evidence: Evidence) -> Checked:
    """I3: all attempts add up to the run's totals; what they leave out or carry over has a name."""
    logs = [log for log in evidence.logs if has_totals(log)]
    reason = "no log with totals: the run was stopped" if evidence.logs else "no log"
    found = Checked(skipped="" if logs else reason)
    for log in logs:
        own, groups = parts_of(evidence, log)
        for kind, totals, adder in (
            ("model", log.model_usage, spent),
            ("role", log.role_usage, spent_by_role),
        ):
            result = explain(_told(totals), own, groups, adder, forgetful=_forgets(evidence, log))
            if result.guessed:
                found.weak["tokens of failed attempts that no record has"] += 1
            for name, rest in result.rest.items():
                said = f"{kind} {name}: Inspect's total less the ledger's: {said_tokens(rest)}"
                found.faults.append(Fault("I3", evidence.name, f"log {log.name}", said))
    return found


def has_totals(log: LogRecord) -> bool:
    """Say whether the run came to an end, so that Inspect wrote its totals."""
    return log.status != "started" or bool(log.model_usage)


def _forgets(evidence: Evidence, log: LogRecord) -> bool:
    """Say whether attempts were made of which only Inspect's totals know: no journal had them."""
    again = any(sample.retried for sample in log.samples)
    return not evidence.has_journal and (again or len(evidence.logs) > 1)


def parts_of(evidence: Evidence, log: LogRecord) -> tuple[list[LedgerRow], list[Group]]:
    """Return the rows that a log's totals must have, and the groups that they may have."""
    own: list[LedgerRow] = []
    groups: dict[str, list[LedgerRow]] = {}
    uuids = {event.id for sample in log.samples for event in sample.events}
    late = {row.call for sample in log.samples for row in _own(evidence, sample)[1]}
    for row in evidence.rows:
        if row.cache == "read" or row.input_uncached is None:
            continue
        cause = _cause(evidence, log, row, row.event in uuids)
        if row.call in late:
            cause = "judged again later"
        if cause:
            groups.setdefault(cause, []).append(row)
        else:
            own.append(row)
    return own, [Group(cause, tuple(rows)) for cause, rows in sorted(groups.items())]


def _cause(evidence: Evidence, log: LogRecord, row: LedgerRow, here: bool) -> str:
    """Return why a log's total may lack a row; empty when it may not."""
    run = next((one for one in evidence.logs if one.created <= row.started), evidence.logs[-1])
    earlier = run.created < log.created
    if here:
        return f"carried over from {run.name}" if earlier else ""
    when = f"of the run that wrote {run.name}"
    if row.event is None:
        return f"calls that no log has, {when}"
    return f"failed attempts {when}"


def explain(
    theirs: Sums, own: list[LedgerRow], groups: list[Group], adder: Adder, *, forgetful: bool
) -> Explained:
    """Find the groups that make a run's total; the fewest, in a fixed order."""
    base = adder(own)
    rest = dict(_differences(theirs, base))
    sums = [(group.cause, adder(group.rows)) for group in groups]
    sums = [(cause, tokens) for cause, tokens in sums if tokens]
    for size in range(len(sums) + 1) if len(sums) <= MOST else (0, len(sums)):
        for chosen in combinations(sums, size):
            if _total(chosen) == rest:
                included = tuple(cause for cause, _ in chosen)
                left = tuple(cause for cause, _ in sums if cause not in included)
                return Explained(included, left, {})
    if forgetful and all(min(tokens) >= 0 for tokens in rest.values()):
        return Explained((), (), {}, guessed=True)
    return Explained((), tuple(cause for cause, _ in sums), rest)


def _total(parts: Iterable[tuple[str, Sums]]) -> Sums:
    total: Sums = {}
    for _, sums in parts:
        for name, tokens in sums.items():
            total[name] = plus(total.get(name, NOTHING), tokens)
    return total
