"""I5, I6, I8, I9, I12: every dollar follows from tokens and the book; none is made up or lost."""

from collections.abc import Iterator
from decimal import Decimal

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.errors import UserError
from harness.ledger.billing import PARTS, ZERO
from harness.ledger.row import LedgerRow, plain
from harness.prices import BUILT_IN, Book, book_from_json, read_book


def pricing(evidence: Evidence) -> Checked:
    """I5: tokens at the embedded book give the dollars that were written down, digit by digit."""
    found = Checked()
    found.faults += [Fault("I5", evidence.name, *said) for said in _books(evidence)]
    stored, gaps, last = 0, 0, _last_attempts(evidence)
    for row in evidence.rows:
        for said in _parts(row):
            found.faults.append(Fault("I5", evidence.name, f"call {row.call}", said))
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
            found.faults.append(Fault("I5", evidence.name, f"call {row.call}", said))
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
        if row.call not in calls or not calls[row.call].tries.waited:
            last[row.call] = max(row.attempt, last.get(row.call, 0))
    return last


def _why_none(evidence: Evidence) -> tuple[str, bool]:
    if not evidence.has_journal:
        return "no journal, so no dollars were written down", True
    if any(record.outcome for record in evidence.merged.gathered.calls.values()):
        return "the journal has no dollars", True
    return "no call has ended", False


def _books(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yield books whose rates are not those of the book they name, and journals of another book."""
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
        return _rates(one) != _rates(other)
    return book_from_json(one.as_json()).prices != book_from_json(other.as_json()).prices


def _rates(book: Book) -> dict[str, tuple[Decimal | None, ...]]:
    """Return what logs of every version embed."""
    return {
        ref: (price.input, price.output, price.cache_read, price.cache_write)
        for ref, price in book.prices.items()
    }


_SHIPPED: dict[str, Book | None] = {}


def _shipped(name: str) -> Book | None:
    """Return the book of that name that comes with podium; None when there is none."""
    if name not in _SHIPPED:
        try:
            _SHIPPED[name] = None if "/" in name or name.endswith(".toml") else read_book(name)
        except UserError:
            _SHIPPED[name] = None
    return _SHIPPED[name]


def _parts(row: LedgerRow) -> Iterator[str]:
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


def nothing_unpriced(evidence: Evidence) -> Checked:
    """I6: what has no price is NULL up to the table, never 0 and never left out of a sum."""
    found, last = Checked(), _last_attempts(evidence)
    for row in evidence.rows:
        uncounted = row.input_uncached is None
        if row.billable == "yes" and row.usd is None:
            found.weak[_why_unpriced(evidence, row)] += 1
        if row.billable == "yes" and uncounted and row.usd is not None:
            said = "it has a price and no tokens"
            found.faults.append(Fault("I6", evidence.name, f"call {row.call}", said))
        record = evidence.merged.gathered.calls.get(row.call)
        outcome = record.outcome if record else None
        if row.attempt != last.get(row.call):
            continue  # what was written down is the price of the last
        if outcome and outcome.get("usd") is not None and row.usd is None:
            said = f"written down as {outcome['usd']}, and no book prices it"
            found.faults.append(Fault("I6", evidence.name, f"call {row.call}", said))
    return found


def _why_unpriced(evidence: Evidence, row: LedgerRow) -> str:
    worker = evidence.facts.workers.get(row.role) if evidence.facts else None
    if worker and worker.not_auditable:
        return f"calls of {row.role}, not auditable: {worker.not_auditable}"
    uncounted = row.input_uncached is None
    why = "whose provider counted no tokens" if uncounted else f"of {row.price_ref}"
    return f"calls without a price {why}"


def cache_reads(evidence: Evidence) -> Checked:
    """I8: a reply from the local cache is paid 0 and keeps its price as would-be."""
    found = Checked()
    for row in evidence.rows:
        said = _cache_fault(evidence, row)
        if said:
            found.faults.append(Fault("I8", evidence.name, f"call {row.call}", said))
    return found


def _cache_fault(evidence: Evidence, row: LedgerRow) -> str:
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


def failed_attempts(evidence: Evidence) -> Checked:
    """I9: a refused attempt costs 0; one that got no answer is a range, never a point."""
    found = Checked()
    for row in evidence.rows:
        said = _failure_fault(row)
        if said:
            found.faults.append(Fault("I9", evidence.name, f"call {row.call}", said))
        if row.billable == "unknown":
            bound = "with an upper bound" if row.usd_high is not None else "without an upper bound"
            found.weak[f"attempts that may have been billed, {bound}"] += 1
    for call, record in evidence.merged.gathered.calls.items():
        events = evidence.merged.events_of[call]
        sent = len(record.retries) + (not record.tries.waited)
        if record.outcome is not None and events and len(events) != sent:
            said = f"the log has {len(events)} attempts, the journal {sent}"
            found.faults.append(Fault("I9", evidence.name, f"call {call}", said))
    return found


def _failure_fault(row: LedgerRow) -> str:
    refused = row.http_status is not None and row.http_status >= 400
    if refused and row.input_uncached is None and row.usd != ZERO:
        return f"it was refused with status {row.http_status}, and costs {plain(row.usd)}"
    if row.billable == "unknown" and (row.usd is not None or row.usd_low != ZERO):
        return "nobody knows whether it was billed, and it has one price"
    if row.billable == "no" and row.usd != ZERO:
        return "it was not billed, and costs more than 0"
    return ""


def scopes_apart(evidence: Evidence) -> Checked:
    """I12: what grading, training and serving cost is in no figure of inference."""
    found = Checked()
    for row in evidence.rows:
        seen = evidence.seen.get(row.event) if row.event else None
        if seen is None:
            continue
        grading = seen.event.phase == "score"
        if row.scope != ("scoring" if grading else "inference"):
            phase = "scorers" if grading else "solvers"
            said = f"it was made by the {phase}, and is counted as {row.scope}"
            found.faults.append(Fault("I12", evidence.name, f"call {row.call}", said))
    return found
