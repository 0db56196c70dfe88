"""I2 and I3: calls add up to Inspect's totals of samples and of runs, or the difference has a name.

Inspect's totals differ from each other by design: reads from its cache are in none; a sample's has
only its last attempt; a run's has failed attempts too, and forgets or carries over those of earlier
logs as a whole. So a run's total must be what this log asked plus some whole groups of the others.
A sample that was recovered from a killed process has no total, and its calls are in no run's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""Groups of which every combination is tried; of more, every combination of kinds."""

Sums = dict[str, Tokens]
Adder = Callable[[Iterable[LedgerRow]], Sums]


def sample_sums(evidence: Evidence) -> Checked:
    """I2: the calls of a sample's last attempt add up to its total, by model and by role."""
    found = Checked(skipped="" if evidence.logs else "no log: nothing finished, or not an eval")
    for log in evidence.logs:
        for sample in log.samples:
            if _cut_off(sample):
                continue
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


def _cut_off(sample: SampleRecord) -> bool:
    """Say whether a process died before Inspect wrote a sample's totals; it recovered the calls."""
    ended = sample.completed or sample.model_usage or sample.role_usage
    return sample.failed and not ended


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

    kind: str
    """E.g. `failed attempts of`."""
    run: str
    """The run that they are of, as a part of a sentence."""
    rows: tuple[LedgerRow, ...]
    later: bool
    """True for calls of a later run, which no total can have."""

    @property
    def cause(self) -> str:
        """What the group is called."""
        return f"{self.kind} {self.run}"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run's total is made of."""

    own: tuple[LedgerRow, ...]
    """Calls that it must have."""
    groups: tuple[Group, ...]
    """Calls that it may have."""
    forgetful: bool
    """True when attempts were made of which only Inspect's totals know: no journal had them."""


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
        parts = parts_of(evidence, log)
        for kind, totals, adder in (
            ("model", log.model_usage, spent),
            ("role", log.role_usage, spent_by_role),
        ):
            result = explain(_told(totals), parts, adder)
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
    again = any(sample.retried for sample in log.samples)
    return not evidence.has_journal and (again or len(evidence.logs) > 1)


def parts_of(evidence: Evidence, log: LogRecord) -> Parts:
    """Return the rows that a log's totals must have, and the groups that they may have."""
    own: list[LedgerRow] = []
    groups: dict[tuple[str, str, bool], list[LedgerRow]] = {}
    uuids = {event.id for sample in log.samples for event in sample.events}
    late = {row.call for sample in log.samples for row in _own(evidence, sample)[1]}
    cut = {event.id for one in log.samples if _cut_off(one) for event in one.events}
    for row in evidence.counted:
        if row.cache == "read" or row.input_uncached is None:
            continue
        if row.call in late:
            groups.setdefault(("calls that judged again", log.name, False), []).append(row)
        elif row.event in cut:
            groups.setdefault(("questions that were cut off in", log.name, False), []).append(row)
        elif name := _group(evidence, log, row, row.event in uuids):
            groups.setdefault(name, []).append(row)
        else:
            own.append(row)
    named = (Group(*name[:2], tuple(rows), name[2]) for name, rows in sorted(groups.items()))
    return Parts(tuple(own), tuple(named), _forgets(evidence, log))


def _group(
    evidence: Evidence, log: LogRecord, row: LedgerRow, here: bool
) -> tuple[str, str, bool] | None:
    """Return the kind and the run of a row that a log's total may lack, and whether it must."""
    run = _run_of(evidence, row)
    if here:
        earlier = run.created < log.created
        return ("carried over from", run.name, False) if earlier else None
    kind = "calls that no log has, of" if row.event is None else "failed attempts of"
    return kind, f"the run that wrote {run.name}", run.created > log.created


def _run_of(evidence: Evidence, row: LedgerRow) -> LogRecord:
    """Return the log of the run that made a call: the oldest that has it, or by time.

    Time alone would mistake: Inspect dates a retry's log a second after the log before it, which
    can be later than the calls that it has.
    """
    made = evidence.first_log.get(row.event or "")
    by_time = (one for one in evidence.logs if one.created <= row.started)
    return made or next(by_time, evidence.logs[-1])


def explain(theirs: Sums, parts: Parts, adder: Adder) -> Explained:
    """Find the groups that make a run's total; the fewest, in a fixed order."""
    rest = dict(_differences(theirs, adder(parts.own)))
    sums = [(group, adder(group.rows)) for group in parts.groups]
    sums = [(group, tokens) for group, tokens in sums if tokens]
    for chosen in _choices([one for one in sums if not one[0].later]):
        if _total(tokens for _, tokens in chosen) == rest:
            included = tuple(group.cause for group, _ in chosen)
            left = tuple(group.cause for group, _ in sums if group.cause not in included)
            return Explained(included, left, {})
    if parts.forgetful and all(min(tokens) >= 0 for tokens in rest.values()):
        return Explained((), (), {}, guessed=True)
    return Explained((), tuple(group.cause for group, _ in sums), rest)


Part = tuple[Group, Sums]


def _choices(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    """Yield combinations of groups, the fewest first; of many groups those of whole kinds."""
    if len(parts) <= MOST:
        for size in range(len(parts) + 1):
            yield from combinations(parts, size)
        return
    kinds = sorted({group.kind for group, _ in parts})
    for size in range(len(kinds) + 1):
        for chosen in combinations(kinds, size):
            yield [part for part in parts if part[0].kind in chosen]


def _total(parts: Iterable[Sums]) -> Sums:
    total: Sums = {}
    for sums in parts:
        for name, tokens in sums.items():
            total[name] = plus(total.get(name, NOTHING), tokens)
    return total
