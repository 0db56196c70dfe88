"""Invariants over amounts: tokens of a call (I1), sums (I2, I3), dollars (I5, I6, I8, I9, I12).

Inspect's totals differ from the ledger by design: none includes replies from Inspect's cache, and a
sample's total covers its last attempt only. A run's total includes failed attempts, and either all
or none of the calls that a log repeats from an earlier log. So a run's total must equal its own
calls plus some other groups of calls, each group as a whole.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from functools import cache
from itertools import combinations
from operator import itemgetter
from typing import cast

import orjson

from podium.harness.errors import UserError
from podium.harness.ledger.answered_by import answering_price
from podium.harness.ledger.call import (
    PARTS,
    SCOPES,
    ZERO,
    Call,
    at_price,
    contradictions,
    plain,
    shortest,
)
from podium.harness.ledger.logs import Json
from podium.harness.ledger.runs import LogRecord, SampleRecord
from podium.harness.prices import BUILT_IN, Book, book_from_json, read_book
from podium.harness.records import Usage
from podium.harness.usage import NOTHING, Raw, dialect_of, usage_from_raw
from podium.reports.audit.evidence import (
    NO_TOKENS,
    SERVED,
    Evidence,
    Faults,
    InvariantCheck,
    Sums,
    differences,
    join_tokens,
    minus,
    said_tokens,
    spent,
    spent_by_role,
    told,
)
from podium.reports.audit.invoice_total import last_place

UNBELIEVED = "calls with impossible token counts: unknown, between 0 and their bound"
UNREADABLE = "calls whose provider's own usage cannot be compared"


def token_partition(evidence: Evidence, check: InvariantCheck) -> Faults:
    """A call's tokens, by kind, add up to the provider's total and match the provider's counts."""
    for row in evidence.rows:
        usage = row.usage
        if usage is None:
            check.weak[UNBELIEVED] += bool(row.raw_usage)
            continue
        yield from ((f"call {row.call}", fault) for fault in contradictions(row))
        if row.raw_usage:  # parsed only here: most rows of rehearsals have none
            for fault in _unlike(evidence, row, usage, check):
                yield f"call {row.call}", fault
        check.weak["calls whose provider states no total"] += usage.total_reported is None


def _unlike(evidence: Evidence, row: Call, usage: Usage, check: InvariantCheck) -> Iterator[str]:
    value: object = orjson.loads(row.raw_usage or "{}")
    raw = cast(Raw, value) if isinstance(value, dict) else NOTHING  # a journal may be forged
    dialect = dialect_of(raw)
    theirs = usage_from_raw(dialect, raw) if dialect else None
    if theirs is None or (dialect == "anthropic" and _of_several(evidence, row)):
        check.weak[UNREADABLE] += 1
        return
    if dialect == "google":  # Inspect sets its input to 0 if more was cached than sent
        theirs = replace(theirs, input=max(theirs.input, 0))
    for (name, count), ours in zip(asdict(theirs).items(), asdict(usage).values(), strict=True):
        if count is not None and count != (ours or 0):
            claim = f"the provider's own usage says {count:,} {name.replace('_', ' ')}"
            yield f"{claim}, the ledger {ours or 0:,}"


def _of_several(evidence: Evidence, row: Call) -> bool:
    """Whether Inspect summed the tokens of several requests but kept only the last raw usage."""
    # This happens with Anthropic: Inspect continues a paused turn with further requests, and a
    # compacted turn has `iterations`, whose tokens are not in the turn's own counts.
    entry = evidence.seen.get(row.event or "")
    if entry is None:
        return False
    answered = [request for request in entry.event.request_ids if request.get("status") == 200]
    return len(answered) > 1 or bool((entry.event.raw_usage or {}).get("iterations"))


MOST = 10
"""Maximum number of groups for which `explain` tries every combination. If there are more, it
includes or leaves out all groups of one kind together."""

Adder = Callable[[Iterable[Call]], Sums]


def sample_sums(evidence: Evidence, check: InvariantCheck) -> Faults:
    """The calls of a sample's last attempt add up to Inspect's total, by model and by role."""
    reason = SERVED if evidence.is_served else "no log: nothing finished, or not an eval"
    check.skipped[reason] += not evidence.logs
    for log in evidence.logs:
        for sample in log.samples:
            if not _cut_off(sample):
                place = f"sample {sample.question} epoch {sample.epoch}"
                yield from ((place, f"{log.name}: {fault}") for fault in _unequal(evidence, sample))


def _unequal(evidence: Evidence, sample: SampleRecord) -> Iterator[str]:
    rows, late = _own(evidence, sample)
    for kind, totals, adder in _both(sample):
        again = adder(late)  # regraded after the run: Inspect keeps the old total
        for name, gap in differences(totals, adder(rows)):
            if not late or gap != minus(NO_TOKENS, again.get(name, NO_TOKENS)):
                yield f"{kind} {name}: Inspect's total less the ledger's: {said_tokens(gap)}"


def _both(record: LogRecord | SampleRecord) -> Iterator[tuple[str, Sums, Adder]]:
    """Yield `model` and `role`, each with Inspect's token totals and a function to sum calls."""
    for kind, totals, adder in (
        ("model", record.model_usage, spent),
        ("role", record.role_usage, spent_by_role),
    ):
        yield kind, {name: told(usage) for name, usage in totals.items()}, adder


def _own(evidence: Evidence, sample: SampleRecord) -> tuple[list[Call], list[Call]]:
    """Return the calls of a sample's last attempt, and those of them that regraded the sample."""
    rows = [evidence.by_event[event.id] for event in sample.events if event.id in evidence.by_event]
    late = [row for row in rows if row.scope == "scoring" and row.started > sample.completed]
    return rows, late if sample.completed else []


def _cut_off(sample: SampleRecord) -> bool:
    """Whether the process died before Inspect wrote a sample's totals; the log has the calls."""
    complete = sample.completed or sample.model_usage or sample.role_usage
    return sample.failed and not complete


Group = tuple[str, str, bool]
"""Key of a group of calls: its kind (e.g. `failed attempts of`; empty for the run's own calls), its
log, and whether a later run made the calls."""
OWN: Group = ("", "", False)


def run_sums(evidence: Evidence, check: InvariantCheck) -> Faults:
    """The run's calls, plus whole groups such as failed attempts, add up to Inspect's totals."""
    logs = [log for log in evidence.logs if has_totals(log)]
    without = SERVED if evidence.is_served else "no log"
    reason = "no log with totals: the run was stopped" if evidence.logs else without
    check.skipped[reason] += not logs
    for log in logs:
        groups = run_groups(evidence, log)
        again = len(evidence.logs) > 1 or any(sample.retried for sample in log.samples)
        for kind, totals, adder in _both(log):
            _, gaps = explain(totals, groups, adder)
            counts = [count for tokens in gaps.values() for count in tokens]
            # Only Inspect's totals count these attempts: no journal recorded them.
            if counts and again and not evidence.journals and min(counts) >= 0:
                check.weak["tokens of failed attempts that no record has"] += 1
                continue
            for name, gap in gaps.items():
                fault = f"{kind} {name}: Inspect's total less the ledger's: {said_tokens(gap)}"
                yield f"log {log.name}", fault


def has_totals(log: LogRecord) -> bool:
    """Whether the run of a log has ended, so that Inspect wrote the run's token totals."""
    return log.status != "started" or bool(log.model_usage)


def run_groups(evidence: Evidence, log: LogRecord) -> dict[Group, list[Call]]:
    """Return the ledger's calls by group; Inspect's total in `log` has all of a group or none."""
    here = {event.id for sample in log.samples for event in sample.events}
    late = {row.call for sample in log.samples for row in _own(evidence, sample)[1]}
    cut = {event.id for sample in log.samples if _cut_off(sample) for event in sample.events}

    def group(row: Call) -> Group:
        if row.call in late:
            return "calls that judged again", log.name, False
        if row.event in cut:
            return "questions that were cut off in", log.name, False
        run = _run_of(evidence, row)
        if row.event in here:
            earlier = run.created < log.created
            return ("carried over from", run.name, False) if earlier else OWN
        kind = "calls that no log has, of" if row.event is None else "failed attempts of"
        return kind, f"the run that wrote {run.name}", run.created > log.created

    groups: dict[Group, list[Call]] = defaultdict(list)
    for row in evidence.counted:
        if row.cache != "read" and row.input_uncached is not None:
            groups[group(row)].append(row)
    return dict(sorted(groups.items(), key=itemgetter(0)))


def _run_of(evidence: Evidence, row: Call) -> LogRecord:
    """Return the log of the run that made a call: the oldest with it, else the newest older log."""
    # Time alone can be wrong: Inspect dates a retry's log a second after the log before it, which
    # can be later than the calls in it.
    origin = evidence.first_log.get(row.event or "")
    by_time = (log for log in evidence.logs if log.created <= row.started)
    return origin or next(by_time, evidence.logs[-1])


def explain(
    theirs: Sums, groups: Mapping[Group, Sequence[Call]], adder: Adder
) -> tuple[set[Group], Sums]:
    """Return the groups of calls that Inspect's total of a run includes, and unexplained tokens.

    The run's own calls (`OWN`) and as few further groups as possible must add up to the total. If
    no groups do, return `OWN` alone and the total less the tokens of the own calls.
    """
    gap = dict(differences(theirs, adder(groups.get(OWN, ()))))
    sums = {group: adder(rows) for group, rows in groups.items() if group != OWN and not group[2]}
    for chosen in _choices([group for group, tokens in sums.items() if tokens]):
        if join_tokens(sums[group] for group in chosen) == gap:
            return {OWN, *chosen}, {}
    return {OWN}, gap


def _choices(groups: Sequence[Group]) -> Iterator[Sequence[Group]]:
    if len(groups) <= MOST:
        for size in range(len(groups) + 1):
            yield from combinations(groups, size)
        return
    kinds = sorted({group[0] for group in groups})
    for size in range(len(kinds) + 1):
        for chosen in combinations(kinds, size):
            yield [group for group in groups if group[0] in chosen]


def pricing(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Tokens at the prices stored with the run give the recorded dollars, digit by digit."""
    faults, stored, gaps = [*_books(evidence), *_journals_books(evidence)], 0, 0
    for row, outcome in _with_outcomes(evidence):
        faults += ((f"call {row.call}", fault) for fault in _parts(row))
        if outcome is None:
            continue
        if outcome.get("usd") is None:
            gaps += row.usd is not None and row.billable == "yes"
            continue
        stored += 1
        if outcome["usd"] != plain(row.usd):
            fault = f"recorded as {outcome['usd']}, and its tokens cost {plain(row.usd)}"
            faults.append((f"call {row.call}", fault))
    check.weak["calls whose dollars were not recorded"] += gaps if stored else 0
    compare_dollars(evidence, check)
    if not stored and not faults:
        _no_dollars(evidence, check)
    yield from faults


def _with_outcomes(evidence: Evidence) -> Iterator[tuple[Call, Json | None]]:
    """Yield each attempt of a call, and its outcome in the journal; None if there is none."""
    # A call's outcome belongs to its last attempt, or to no attempt if a retry was still due.
    last_attempts: dict[str, int] = {}
    calls = evidence.calls
    for row in evidence.rows:
        if row.call not in calls or not calls[row.call].waited:
            last_attempts[row.call] = max(row.attempt, last_attempts.get(row.call, 0))
    for row in evidence.rows:
        record = calls.get(row.call)
        yield row, record.outcome if record and row.attempt == last_attempts.get(row.call) else None


def _no_dollars(evidence: Evidence, check: InvariantCheck) -> None:
    if not evidence.journals:
        check.gaps["no journal, so no dollars were recorded"] += 1
    elif any(record.outcome for record in evidence.calls.values()):
        check.gaps["the journal has no dollars"] += 1
    else:
        check.skipped["no call has ended"] += 1


def _books(evidence: Evidence) -> Faults:
    for log in evidence.logs:
        if log.facts is None:
            continue
        book, complete = book_from_json(log.facts.prices), log.facts.journal is not None
        shipped, used = _shipped(book.name), evidence.books[book.sha256]
        if shipped and shipped.sha256 == book.sha256 and _differ(shipped, book, complete):
            yield f"book {book.name}", "its rates differ from those of the price book that it names"
        if book.built_in and book.built_in != BUILT_IN:
            yield f"book {book.name}", "its built-in prices are not podium's"
        if _differ(used, book, complete):
            fault = f"another log embeds different rates of {book.name} under the same digest"
            yield f"log {log.name}", fault
    digests = evidence.books.keys()
    for journal in evidence.journals:
        digest = str(journal.head.get("book_sha256", ""))
        if digests and digest and digest not in digests:
            yield f"journal {journal.name}", "it was priced with a book that no log embeds"


def _journals_books(evidence: Evidence) -> Faults:
    for journal in evidence.journals:
        book = book_from_json(journal.book) if journal.book else None
        shipped = _shipped(book.name) if book else None
        if book and shipped and shipped.sha256 == book.sha256 and _differ(shipped, book, True):
            yield f"journal {journal.name}", f"its rates are not those of the book {book.name}"


def _differ(reference: Book, book: Book, every_rate: bool) -> bool:
    """Whether two price books differ; `every_rate`: compare all rates, not only the usual four."""
    if reference is book:
        return False
    if book.entries:
        reference = reference.only(book.prices)
    if not every_rate:
        rates = ("input", "output", "cache_read", "cache_write")  # what logs of every version embed
        reference_rates, book_rates = (
            {ref: [getattr(price, rate) for rate in rates] for ref, price in each.prices.items()}
            for each in (reference, book)
        )
        return reference_rates != book_rates
    return book_from_json(reference.as_json()).prices != book_from_json(book.as_json()).prices


@cache
def _shipped(name: str) -> Book | None:
    try:
        return None if "/" in name or name.endswith(".toml") else read_book(name)
    except UserError:
        return None


def _parts(row: Call) -> Iterator[str]:
    if row.usd is None or row.billable != "yes":
        return
    amounts: dict[str, Decimal | None] = {name: getattr(row, name) for name in PARTS}
    if lost := next((name for name, amount in amounts.items() if amount is None), None):
        yield f"it has a price but no {lost}"
    elif (total := sum((amount or ZERO for amount in amounts.values()), ZERO)) != row.usd:
        yield f"its parts add up to {plain(total)}, not {plain(row.usd)}"


def nothing_unpriced(evidence: Evidence, check: InvariantCheck) -> Faults:
    """A call without a price has no dollars, and no sum counts it as 0."""
    for row, outcome in _with_outcomes(evidence):
        if row.billable == "yes" and row.usd is None:
            check.weak[_why_unpriced(evidence, row)] += 1
        if row.billable == "yes" and row.input_uncached is None and row.usd is not None:
            yield f"call {row.call}", "it has a price but no tokens"
        if outcome and outcome.get("usd") is not None and row.usd is None:
            fault = f"recorded as {outcome['usd']}, and no price book has its price"
            yield f"call {row.call}", fault


def _why_unpriced(evidence: Evidence, row: Call) -> str:
    worker = evidence.facts.workers.get(row.role) if evidence.facts else None
    if worker and worker.not_auditable:
        return f"calls of {row.role}, not auditable: {worker.not_auditable}"
    uncounted = row.input_uncached is None
    reason = "whose provider counted no tokens" if uncounted else f"of {row.price_ref}"
    return f"calls without a price {reason}"


def cache_reads(evidence: Evidence, check: InvariantCheck) -> Faults:
    """A reply from the local cache costs 0; the price that it would have had is recorded."""
    for row in evidence.rows:
        if fault := _cache_fault(evidence, row):
            yield f"call {row.call}", fault


def _cache_fault(evidence: Evidence, row: Call) -> str:
    entry = evidence.seen.get(row.event or "")
    logged = row.cache if entry is None else entry.event.cache
    if row.cache != "read":
        billed = "the log states that it was read from a cache, and the journal bills it"
        return billed if logged == "read" else ""
    if logged != "read":
        return "the journal states that it was read from a cache, the log that a provider was asked"
    if row.usd != ZERO or row.billable != "no":
        return "it was read from a cache, but costs more than 0"
    lost = row.input_uncached is not None and row.usd_list is None
    priced = any(book.price(row.price_ref) for book in evidence.books.values())
    return "it was read from a cache and has no would-be price" if lost and priced else ""


def failed_attempts(evidence: Evidence, check: InvariantCheck) -> Faults:
    """A refused attempt costs 0; one without an answer costs a range, never one amount."""
    for row in evidence.rows:
        if fault := _failure_fault(row):
            yield f"call {row.call}", fault
        if row.billable == "unknown":
            bound = "with an upper bound" if row.usd_high is not None else "without an upper bound"
            check.weak[f"attempts that may have been billed, {bound}"] += 1
    for call, record in evidence.calls.items():
        events = evidence.events_of[call]
        sent = len(record.retries) + (not record.waited)
        if record.outcome is not None and events and len(events) != sent:
            yield f"call {call}", f"the log has {len(events)} attempts, the journal {sent}"


def _failure_fault(row: Call) -> str:
    refused = row.http_status is not None and row.http_status >= 400
    if refused and row.input_uncached is None and row.usd != ZERO:
        return f"it was refused with status {row.http_status}, but costs {plain(row.usd)}"
    if row.billable == "unknown" and (row.usd is not None or row.usd_low != ZERO):
        return "it is unknown whether it was billed, and it has a single price instead of a range"
    if row.billable == "no" and row.usd != ZERO:
        return "it was not billed, but costs more than 0"
    return ""


def scopes_apart(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Figures of inference exclude the costs of grading, training and serving."""
    for row in evidence.rows:
        entry = evidence.seen.get(row.event or "")
        if entry is not None and row.scope != SCOPES[entry.event.phase]:
            made_by = MADE_BY[entry.event.phase]
            yield f"call {row.call}", f"it was made by the {made_by}, but is counted as {row.scope}"


MADE_BY = {"solve": "solvers", "score": "scorers", "environment": "task's own models"}


ROUNDING = Decimal("0.0000005")
"""Largest rounding difference per call, in dollars: half a millionth, or half a unit of the last
decimal place that the provider states, if that is smaller."""
OWN_KEY = '"is_byok":true'
"""Text in OpenRouter's usage if the provider behind it charged the user's own key."""
WITH_KEY = " with a key of your own, its fee and the provider behind it"
FEE = "calls of {} with a key of your own: the provider states its fee alone, which is not compared"

UNCHECKED = "calls of {} whose provider states dollars that cannot be compared: {}"


def compare_dollars(evidence: Evidence, check: InvariantCheck) -> None:
    """Note workers whose provider's dollars differ from the price book's: weak, not a fault.

    A gateway (an API that chooses the model) without a price is compared at the price of the model
    that its reply names.
    """
    by_worker: dict[tuple[str, str, bool, str], list[Call]] = defaultdict(list)
    for row in evidence.rows:
        own_key, unpriced = OWN_KEY in (row.raw_usage or ""), row.usd is None
        if row.billable != "yes" or row.usage is None:
            continue
        if row.usd_provider is not None:
            model = (row.served_model or "") if unpriced else ""
            by_worker[row.role, WITH_KEY if own_key else "", unpriced, model].append(row)
        elif own_key and not unpriced:
            check.weak[FEE.format(row.role)] += 1
    for (role, key, unpriced, model), stated in sorted(by_worker.items()):
        label = f"{role}{key}" + (f" answered by {model}" if model else "")
        if unpriced and evidence.facts:
            book = book_from_json(evidence.facts.prices)
            reason, price = answering_price(stated[0], evidence.facts.workers, book)
            check.weak[UNCHECKED.format(label, reason)] += 0 if price else len(stated)
            stated = [priced for row in stated if (priced := at_price(row, price)).usd is not None]
        if difference := _difference(stated):
            check.weak[f"calls of {label}: {difference}"] += len(stated)


def _difference(rows: list[Call]) -> str:
    """Return how the provider's dollars differ from the price book's; empty if only by rounding."""
    theirs, ours = _sum(row.usd_provider for row in rows), _sum(row.usd for row in rows)
    rounding = sum((_rounding(row.usd_provider) for row in rows), ZERO)
    if abs(theirs - ours) <= rounding:
        return ""
    share = f", {(theirs - ours) / ours:+.1%}" if ours else ""
    sign = "+" if theirs > ours else "-"
    difference = f"{sign}${shortest(abs(theirs - ours))}{share}"
    return (
        f"the provider states ${shortest(theirs)}, the price book ${shortest(ours)} ({difference})"
    )


def _rounding(usd: Decimal | None) -> Decimal:
    return min(ROUNDING, last_place(usd.normalize())) if usd else ROUNDING


def _sum(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount or ZERO for amount in amounts), ZERO)
