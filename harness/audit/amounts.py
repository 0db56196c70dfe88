"""Invariants over amounts: tokens of a call (I1), sums (I2, I3), dollars (I5, I6, I8, I9, I12).

A provider's own usage is read by `usage_from_raw`, which shares nothing with Inspect's mapping.
Inspect's totals differ from each other by design: reads from its cache are in none; a sample's has
only its last attempt; a run's has failed attempts too, and forgets or carries over those of earlier
logs as a whole. So a run's total must be what this log asked plus some whole groups of the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import cast

import orjson

from harness.audit.evidence import (
    NO_TOKENS,
    AuditFault,
    Evidence,
    InvariantCheck,
    Tokens,
    minus,
    plus,
    said_tokens,
    spent,
    spent_by_role,
    told,
)
from harness.errors import UserError
from harness.ledger.call import PARTS, ZERO, Call, plain
from harness.ledger.logs import Json
from harness.ledger.runs import LogRecord, SampleRecord
from harness.prices import BUILT_IN, Book, book_from_json, read_book
from harness.records import Usage
from harness.usage import NOTHING, Raw, dialect_of, usage_from_raw

NO_TOTAL = "calls whose provider states no total"
UNBELIEVED = "calls whose token counts cannot be: unknown, between nothing and their bound"
UNREADABLE = "calls whose provider's own usage cannot be compared"
COUNTS = (
    "input",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "output",
    "reasoning",
    "orchestration_in",
    "orchestration_in_cached",
    "orchestration_out",
    "total_reported",
)


def token_partition(evidence: Evidence) -> InvariantCheck:
    """A call's parts are the total that its provider reports, and its provider's own counts."""
    found = InvariantCheck()
    for row in evidence.rows:
        usage = row.usage
        if usage is None:
            if row.raw_usage:
                found.weak[UNBELIEVED] += 1
            continue
        said = [*_wrong(usage)]
        if row.raw_usage:  # parsed only here: most rows of rehearsals have none
            said += _unlike(evidence, row, usage, found)
        found.faults += [AuditFault("I1", evidence.name, f"call {row.call}", one) for one in said]
        if usage.total_reported is None:
            found.weak[NO_TOTAL] += 1
    return found


def _wrong(usage: Usage) -> Iterator[str]:
    reasoning, total = usage.reasoning or 0, usage.total_reported
    counts = (usage.input, usage.cache_read, usage.cache_write, usage.output, reasoning)
    if min(counts) < 0:
        yield "a count of tokens is negative"
    if reasoning > usage.output:
        yield f"{reasoning} reasoning tokens are more than its {usage.output} output tokens"
    if usage.cache_write_1h > usage.cache_write:
        yield "more tokens are cached for an hour than are cached"
    if usage.orchestration_in_cached > usage.orchestration_in:
        yield "more orchestration tokens are cached than there are"
    if total is not None and total != usage.parts_total:
        rest = total - usage.parts_total
        yield f"unexplained tokens: {rest:+,} of the {total:,} that are reported"


def _unlike(evidence: Evidence, row: Call, usage: Usage, found: InvariantCheck) -> list[str]:
    told: object = orjson.loads(row.raw_usage or "{}")
    raw = cast(Raw, told) if isinstance(told, dict) else NOTHING  # a journal may be forged
    dialect = dialect_of(raw)
    theirs = usage_from_raw(dialect, raw) if dialect else None
    several = dialect == "anthropic" and _of_several(evidence, row)
    if dialect is None or theirs is None or several:
        found.weak[UNREADABLE] += 1
        return []
    if dialect == "google":  # Inspect takes its input for none where more was cached than asked
        theirs = replace(theirs, input=max(theirs.input, 0))
    return [
        f"the provider's own usage says {own:,} {name.replace('_', ' ')}, the ledger {ours:,}"
        for name in COUNTS
        if (own := getattr(theirs, name)) is not None and own != (ours := getattr(usage, name) or 0)
    ]


def _of_several(evidence: Evidence, row: Call) -> bool:
    """Whether Inspect added up requests of a call, or their parts; the last one's usage is left."""
    # It does for Anthropic's: a turn that pauses is continued, and one that is compacted has
    # `iterations`, which its own counts leave out.
    seen = evidence.seen.get(row.event or "")
    if seen is None:
        return False
    answered = [one for one in seen.event.request_ids if one.get("status") == 200]
    return len(answered) > 1 or bool((seen.event.raw_usage or {}).get("iterations"))


MOST = 10
"""Groups of which every combination is tried; of more, every combination of kinds."""

Sums = dict[str, Tokens]
Adder = Callable[[Iterable[Call]], Sums]


def sample_sums(evidence: Evidence) -> InvariantCheck:
    """The calls of a sample's last attempt add up to Inspect's total, by model and by role."""
    found = InvariantCheck(
        skipped="" if evidence.logs else "no log: nothing finished, or not an eval"
    )
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
                    if late and rest == minus(NO_TOKENS, adder(late).get(name, NO_TOKENS)):
                        continue  # judged again after the run: Inspect keeps the old total
                    said = f"{kind} {name}: Inspect's total less the ledger's: {said_tokens(rest)}"
                    found.faults.append(
                        AuditFault("I2", evidence.name, where, f"{log.name}: {said}")
                    )
    return found


def _own(evidence: Evidence, sample: SampleRecord) -> tuple[list[Call], list[Call]]:
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
        rest = minus(theirs.get(name, NO_TOKENS), ours.get(name, NO_TOKENS))
        if rest != NO_TOKENS:
            yield name, rest


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Calls that a run's total has as a whole or not at all."""

    kind: str
    run: str
    rows: tuple[Call, ...]
    later: bool
    """True for calls of a later run, which no total can have."""

    @property
    def cause(self) -> str:
        """What the group is called."""
        return f"{self.kind} {self.run}"


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run's total is made of."""

    own: tuple[Call, ...]
    groups: tuple[CauseGroup, ...]
    forgetful: bool
    """True when attempts were made of which only Inspect's totals know: no journal had them."""


@dataclass(frozen=True, slots=True)
class Explained:
    """How a run's total comes about."""

    included: tuple[str, ...]
    left_out: tuple[str, ...]
    rest: Sums
    guessed: bool = False
    """True when the rest is taken for attempts that no record has."""


def run_sums(evidence: Evidence) -> InvariantCheck:
    """All attempts add up to Inspect's totals of the run; each group it leaves out has a name."""
    logs = [log for log in evidence.logs if has_totals(log)]
    reason = "no log with totals: the run was stopped" if evidence.logs else "no log"
    found = InvariantCheck(skipped="" if logs else reason)
    for log in logs:
        parts = run_parts(evidence, log)
        for kind, totals, adder in (
            ("model", log.model_usage, spent),
            ("role", log.role_usage, spent_by_role),
        ):
            result = explain(_told(totals), parts, adder)
            if result.guessed:
                found.weak["tokens of failed attempts that no record has"] += 1
            for name, rest in result.rest.items():
                said = f"{kind} {name}: Inspect's total less the ledger's: {said_tokens(rest)}"
                found.faults.append(AuditFault("I3", evidence.name, f"log {log.name}", said))
    return found


def has_totals(log: LogRecord) -> bool:
    """Say whether the run came to an end, so that Inspect wrote its totals."""
    return log.status != "started" or bool(log.model_usage)


def _forgets(evidence: Evidence, log: LogRecord) -> bool:
    again = any(sample.retried for sample in log.samples)
    return not evidence.has_journal and (again or len(evidence.logs) > 1)


def run_parts(evidence: Evidence, log: LogRecord) -> RunParts:
    """Return the rows that a log's totals must have, and the groups that they may have."""
    own: list[Call] = []
    groups: dict[tuple[str, str, bool], list[Call]] = {}
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
    named = (CauseGroup(*name[:2], tuple(rows), name[2]) for name, rows in sorted(groups.items()))
    return RunParts(tuple(own), tuple(named), _forgets(evidence, log))


def _group(
    evidence: Evidence, log: LogRecord, row: Call, here: bool
) -> tuple[str, str, bool] | None:
    run = _run_of(evidence, row)
    if here:
        earlier = run.created < log.created
        return ("carried over from", run.name, False) if earlier else None
    kind = "calls that no log has, of" if row.event is None else "failed attempts of"
    return kind, f"the run that wrote {run.name}", run.created > log.created


def _run_of(evidence: Evidence, row: Call) -> LogRecord:
    """Return the log of the run that made a call: the oldest that has it, or by time."""
    # Time alone would mistake: Inspect dates a retry's log a second after the log before it, which
    # can be later than the calls that it has.
    made = evidence.first_log.get(row.event or "")
    by_time = (one for one in evidence.logs if one.created <= row.started)
    return made or next(by_time, evidence.logs[-1])


def explain(theirs: Sums, parts: RunParts, adder: Adder) -> Explained:
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


Part = tuple[CauseGroup, Sums]


def _choices(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
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
            total[name] = plus(total.get(name, NO_TOKENS), tokens)
    return total


def pricing(evidence: Evidence) -> InvariantCheck:
    """Tokens at the embedded book give the dollars that were written down, digit by digit."""
    found = InvariantCheck()
    found.faults += [AuditFault("I5", evidence.name, *said) for said in _books(evidence)]
    stored, gaps, last = 0, 0, _last_attempts(evidence)
    for row in evidence.rows:
        for said in _parts(row):
            found.faults.append(AuditFault("I5", evidence.name, f"call {row.call}", said))
        record = evidence.merged.gathered.calls.get(row.call)
        outcome = record.outcome if record else None
        if record is None or outcome is None or row.attempt != last.get(row.call):
            continue
        if outcome.get("usd") is None:
            gaps += row.usd is not None and row.billable == "yes"
            continue
        stored += 1
        if outcome["usd"] != plain(row.usd):
            said = f"written down as {outcome['usd']}, and its tokens cost {plain(row.usd)}"
            found.faults.append(AuditFault("I5", evidence.name, f"call {row.call}", said))
    if gaps and stored:
        found.weak["calls whose dollars were not written down"] += gaps
    if not stored and not found.faults:
        found.skipped, found.matters = _why_none(evidence)
    return found


def _last_attempts(evidence: Evidence) -> dict[str, int]:
    """Return the attempt whose end each call's outcome tells: it tells none where none followed."""
    last: dict[str, int] = {}
    calls = evidence.merged.gathered.calls
    for row in evidence.rows:
        if row.call not in calls or not calls[row.call].waited:
            last[row.call] = max(row.attempt, last.get(row.call, 0))
    return last


def _why_none(evidence: Evidence) -> tuple[str, bool]:
    if not evidence.has_journal:
        return "no journal, so no dollars were written down", True
    if any(record.outcome for record in evidence.merged.gathered.calls.values()):
        return "the journal has no dollars", True
    return "no call has ended", False


def _books(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for log in evidence.logs:
        if log.facts is None:
            continue
        book, whole = book_from_json(log.facts.prices), log.facts.journal is not None
        shipped, used = _shipped(book.name), evidence.merged.books[book.sha256]
        if shipped and shipped.sha256 == book.sha256 and _differ(shipped, book, whole):
            yield f"book {book.name}", "its rates are not those of the book that it names"
        if book.built_in and book.built_in != BUILT_IN:
            yield f"book {book.name}", "its built-in prices are not podium's"
        if _differ(used, book, whole):
            said = f"another log embeds other rates of {book.name} under one digest"
            yield f"log {log.name}", said
    known = evidence.merged.books.keys()
    for journal in evidence.merged.gathered.journals:
        digest = str(journal.head.get("book_sha256", ""))
        if known and digest and digest not in known:
            yield f"journal {journal.name}", "it was priced with a book that no log embeds"


def _differ(one: Book, other: Book, whole: bool) -> bool:
    """Say whether two books price anything otherwise; `whole`: the logs embed every rate."""
    if one is other:
        return False
    if not whole:
        rates = ("input", "output", "cache_read", "cache_write")  # what logs of every version embed
        first, second = (
            {ref: [getattr(price, rate) for rate in rates] for ref, price in book.prices.items()}
            for book in (one, other)
        )
        return first != second
    return book_from_json(one.as_json()).prices != book_from_json(other.as_json()).prices


_SHIPPED: dict[str, Book | None] = {}


def _shipped(name: str) -> Book | None:
    if name not in _SHIPPED:
        try:
            _SHIPPED[name] = None if "/" in name or name.endswith(".toml") else read_book(name)
        except UserError:
            _SHIPPED[name] = None
    return _SHIPPED[name]


def _parts(row: Call) -> Iterator[str]:
    if row.usd is None or row.billable != "yes":
        return
    total = ZERO
    for name in PARTS:
        part: Decimal | None = getattr(row, name)
        if part is None:
            yield f"it has a price and no {name}"
            return
        total += part
    if total != row.usd:
        yield f"its parts come to {plain(total)}, not {plain(row.usd)}"


def nothing_unpriced(evidence: Evidence) -> InvariantCheck:
    """A call without a price has no dollars, and no sum passes over it."""
    found, last = InvariantCheck(), _last_attempts(evidence)
    for row in evidence.rows:
        uncounted = row.input_uncached is None
        if row.billable == "yes" and row.usd is None:
            found.weak[_why_unpriced(evidence, row)] += 1
        if row.billable == "yes" and uncounted and row.usd is not None:
            said = "it has a price and no tokens"
            found.faults.append(AuditFault("I6", evidence.name, f"call {row.call}", said))
        record = evidence.merged.gathered.calls.get(row.call)
        outcome = record.outcome if record else None
        if row.attempt != last.get(row.call):
            continue  # what was written down is the price of the last
        if outcome and outcome.get("usd") is not None and row.usd is None:
            said = f"written down as {outcome['usd']}, and no book prices it"
            found.faults.append(AuditFault("I6", evidence.name, f"call {row.call}", said))
    return found


def _why_unpriced(evidence: Evidence, row: Call) -> str:
    worker = evidence.facts.workers.get(row.role) if evidence.facts else None
    if worker and worker.not_auditable:
        return f"calls of {row.role}, not auditable: {worker.not_auditable}"
    uncounted = row.input_uncached is None
    why = "whose provider counted no tokens" if uncounted else f"of {row.price_ref}"
    return f"calls without a price {why}"


def cache_reads(evidence: Evidence) -> InvariantCheck:
    """A reply from the local cache is paid 0 and keeps its would-be price."""
    found = InvariantCheck()
    for row in evidence.rows:
        said = _cache_fault(evidence, row)
        if said:
            found.faults.append(AuditFault("I8", evidence.name, f"call {row.call}", said))
    return found


def _cache_fault(evidence: Evidence, row: Call) -> str:
    seen = evidence.seen.get(row.event) if row.event else None
    if seen is not None and seen.event.cache == "read" and row.cache != "read":
        return "the log read it from a cache, and the journal bills it"
    if row.cache != "read":
        return ""
    if seen is not None and seen.event.cache != "read":
        return "the journal says it was read from a cache, and the log that a provider was asked"
    if row.usd != ZERO or row.billable != "no":
        return "it was read from a cache, and costs more than 0"
    priced = row.input_uncached is not None and row.usd_list is None
    unpriced = row.price_ref not in _priced(evidence)
    return "it was read from a cache and lost its would-be price" if priced and not unpriced else ""


def _priced(evidence: Evidence) -> set[str]:
    books = evidence.merged.books.values()
    asked = {row.price_ref for row in evidence.rows}
    return {ref for ref in asked if any(book.price(ref) is not None for book in books)}


def failed_attempts(evidence: Evidence) -> InvariantCheck:
    """A refused attempt costs 0; one without an answer is a range, never a point."""
    found = InvariantCheck()
    for row in evidence.rows:
        said = _failure_fault(row)
        if said:
            found.faults.append(AuditFault("I9", evidence.name, f"call {row.call}", said))
        if row.billable == "unknown":
            bound = "with an upper bound" if row.usd_high is not None else "without an upper bound"
            found.weak[f"attempts that may have been billed, {bound}"] += 1
    for call, record in evidence.merged.gathered.calls.items():
        events = evidence.merged.events_of[call]
        sent = len(record.retries) + (not record.waited)
        if record.outcome is not None and events and len(events) != sent:
            said = f"the log has {len(events)} attempts, the journal {sent}"
            found.faults.append(AuditFault("I9", evidence.name, f"call {call}", said))
    return found


def _failure_fault(row: Call) -> str:
    refused = row.http_status is not None and row.http_status >= 400
    if refused and row.input_uncached is None and row.usd != ZERO:
        return f"it was refused with status {row.http_status}, and costs {plain(row.usd)}"
    if row.billable == "unknown" and (row.usd is not None or row.usd_low != ZERO):
        return "nobody knows whether it was billed, and it has one price"
    if row.billable == "no" and row.usd != ZERO:
        return "it was not billed, and costs more than 0"
    return ""


def scopes_apart(evidence: Evidence) -> InvariantCheck:
    """What grading, training and serving cost is in no figure of inference."""
    found = InvariantCheck()
    for row in evidence.rows:
        seen = evidence.seen.get(row.event) if row.event else None
        if seen is None:
            continue
        grading = seen.event.phase == "score"
        if row.scope != ("scoring" if grading else "inference"):
            phase = "scorers" if grading else "solvers"
            said = f"it was made by the {phase}, and is counted as {row.scope}"
            found.faults.append(AuditFault("I12", evidence.name, f"call {row.call}", said))
    return found
