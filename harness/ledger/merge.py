"""The ledger's rows: journals and logs of one sitting, joined, one row per attempt.

A journal's call meets its ModelEvents by the event's uuid, else by Inspect's span, which has one
event per HTTP attempt. What only a journal has was lost by the log (killed, or forgotten by a
retry); what only a log has is older than journals, or escaped them, which the audit names.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from harness.errors import UserError
from harness.ledger.events import IN_FLIGHT, UNWRITTEN, CallEvent, seconds_between
from harness.ledger.gather import CallRecord, Gathered, gather, naming_sitting
from harness.ledger.logged import LogRecord, SampleRecord
from harness.ledger.raw_log import Json
from harness.ledger.row import LedgerRow
from harness.ledger.sitting_files import Files
from harness.ledger.writing import (
    Base,
    Told,
    after_retry,
    ended,
    of_event,
    tries_within,
    within,
    write,
)
from harness.prices import Book, book_from_json, read_book


def rows_of(files: Files) -> Iterator[LedgerRow]:
    """Yield the rows of one sitting, sorted by question, epoch and time."""
    with naming_sitting(files):
        rows = merged(gather(files)).rows
    yield from rows


@dataclass(frozen=True, slots=True)
class Seen:
    """An event, and where the logs have it."""

    event: CallEvent
    sample: SampleRecord
    log: LogRecord
    final: bool
    """True for the attempt that its log keeps, False for what is left of one before it."""


@dataclass(slots=True)
class Merged:
    """A sitting's rows, and how each of them came about."""

    gathered: Gathered
    rows: list[LedgerRow]
    seen: dict[str, Seen]
    """Every event once, by uuid, as its newest log has it."""
    events_of: dict[str, list[Seen]]
    """The events of every journal call."""
    escaped: list[str]
    """uuids of events that no journal has."""
    copies: list[str]
    """uuids that one sample lists twice."""
    books: dict[str, Book]
    """By digest, as logs embed them."""
    heads: dict[str, Json]
    """First lines of journals, by file name."""
    whole: frozenset[str]
    """uuids of samples that were graded at the first attempt: all their calls count."""
    closed: frozenset[str]
    """Names of journals whose process lived to close them."""


def merged(gathered: Gathered) -> Merged:
    """Join what the files of a sitting say."""
    heads = {journal.name: journal.head for journal in gathered.journals}
    closed = frozenset(journal.name for journal in gathered.journals if journal.closed)
    known = _books(gathered), heads, _whole(gathered), closed
    found = Merged(gathered, [], {}, {}, [], [], *known)
    _list_events(found)
    claimed = _claims(found)
    found.escaped = [uuid for uuid in found.seen if uuid not in claimed]
    for call, record in gathered.calls.items():
        found.rows.extend(_of_call(found, call, record))
    for uuid in found.escaped:
        found.rows.extend(_of_event(found, found.seen[uuid]))
    found.rows.sort(key=lambda row: (row.question, row.epoch, row.started, row.call, row.attempt))
    return found


def _books(gathered: Gathered) -> dict[str, Book]:
    """Return the books that logs embed; for journals without a log the one that podium ships."""
    found: dict[str, Book] = {}
    for log in gathered.logs:
        if log.facts is not None and _says_more(log.facts.prices, found):
            book = book_from_json(log.facts.prices)
            found[book.sha256] = book
    for journal in gathered.journals:
        wanted = str(journal.head.get("book_sha256", ""))
        if wanted and wanted not in found:
            try:
                book = read_book(str(journal.head.get("book", "")))
            except UserError:
                continue
            if book.sha256 == wanted:
                found[wanted] = book
    return found


def _says_more(prices: Mapping[str, object], found: Mapping[str, Book]) -> bool:
    """Say whether a log embeds a book that is not known yet, or its built-in prices.

    A run that an older version began embeds none in its first logs.
    """
    known = found.get(str(prices.get("sha256")))
    return known is None or (bool(prices.get("built_in")) and not known.built_in)


def _whole(gathered: Gathered) -> frozenset[str]:
    samples = (sample for log in gathered.logs for sample in log.samples)
    return frozenset(one.uuid for one in samples if one.newest and one.graded and not one.retried)


def _list_events(found: Merged) -> None:
    for log in found.gathered.logs:
        for sample in log.samples:
            own: set[str] = set()
            for final, events in ((True, sample.events), (False, sample.lost)):
                for event in events:
                    if event.id in own:
                        found.copies.append(event.id)
                    own.add(event.id)
                    found.seen.setdefault(event.id, Seen(event, sample, log, final))


def _claims(found: Merged) -> set[str]:
    """Give every journal call its events; return the uuids of those that are some call's."""
    by_span: dict[str, list[Seen]] = defaultdict(list)
    for seen in found.seen.values():
        if seen.event.span:
            by_span[seen.event.span].append(seen)
    claimed: set[str] = set()
    for call, record in found.gathered.calls.items():
        outcome: Json = record.outcome or {}
        uuid = outcome.get("event")
        last = found.seen.get(uuid) if uuid else None
        mine = by_span.get(record.intent.get("span") or "", [])
        if last is not None and last not in mine:
            mine = [last]
        events = [one for one in mine if one.event.id not in claimed]
        events.sort(key=lambda one: _tried(one, uuid))
        found.events_of[call] = events
        claimed.update(one.event.id for one in events)
    return claimed


def _tried(one: Seen, last: str | None) -> tuple[bool, bool, str, str]:
    """Return where an event stands among the tries of its call.

    Times alone do not say: Inspect dates the try that succeeded back to the call's beginning.
    """
    event = one.event
    return event.id == last, event.error is None, event.started, event.id


def _of_call(found: Merged, call: str, record: CallRecord) -> Iterator[LedgerRow]:
    """Yield one row per HTTP attempt of a call that a journal has."""
    seen = found.events_of[call]
    base = _base_of_call(found, call, record, seen)
    last = seen[-1].event if seen else None
    if not record.retries and len(seen) < 2 and not (last and tries_within(last)):
        yield write(base, ended(1, record.outcome, last, _why(found, record)))  # nearly all calls
        return
    earlier = [one.event for one in (seen if record.tries.waited else seen[:-1])]
    number = 0
    for at in range(max(len(record.retries), len(earlier))):
        retry = record.retries[at] if at < len(record.retries) else None
        event = earlier[at] if at < len(earlier) else None
        for told in (*within(event, 0), after_retry(0, retry, event)):
            number += 1
            yield write(base, replace(told, attempt=number))
    if record.tries.waited:  # what was to follow never went out
        return
    for told in (*within(last, 0), ended(0, record.outcome, last, _why(found, record))):
        number += 1
        yield write(base, replace(_since_retry(told, record), attempt=number))


def _why(found: Merged, record: CallRecord) -> str:
    """Return why the end of a call is unknown: a process that closed its journal was not ended."""
    return UNWRITTEN if record.journal in found.closed else IN_FLIGHT


def _since_retry(told: Told, record: CallRecord) -> Told:
    """Return an attempt from when it went out: journals time whole calls."""
    if not record.retries:
        return told
    after = record.tries.last.get("after_s")
    if told.latency_s is not None and isinstance(after, float):
        took = max(told.latency_s - after, 0.0)
        return replace(told, started=str(record.tries.last["at"]), latency_s=round(took, 6))
    begun, ended = (
        str((line or {}).get("at", "")) for line in (record.retries[-1], record.outcome)
    )
    if told.latency_s is None or record.outcome is None:
        return replace(told, started=begun)
    try:
        return replace(told, started=begun, latency_s=seconds_between(begun, ended))
    except ValueError:  # no times; the audit names lines that were changed
        return replace(told, started=begun, latency_s=None)


def _base_of_call(found: Merged, call: str, record: CallRecord, seen: list[Seen]) -> Base:
    intent, head = record.intent, found.heads[record.journal]
    asked: Json = intent.get("sample") or {}
    book = found.books.get(str(head.get("book_sha256", "")))
    return Base(
        task=str(head.get("task", "")),
        suite=str(head.get("suite", "")),
        system=str(head.get("system", "")),
        label=str(head.get("label", "live")),
        question=str(asked.get("question", "")),
        epoch=int(asked.get("epoch") or 0),
        sample=str(asked.get("uuid", "")),
        call=call,
        log=seen[-1].log.name if seen else None,
        journal=record.journal,
        scope=intent["scope"],
        role=intent["role"],
        step=intent.get("step"),
        counted=_counts(seen[-1]) if seen else str(asked.get("uuid", "")) in found.whole,
        model=intent["model"],
        price_ref=intent["price_ref"],
        service=intent.get("service") or "standard",
        prompt_bytes=intent.get("prompt_bytes"),
        max_tokens=intent.get("max_tokens"),
        prompt_sha256=intent.get("prompt_sha256"),
        begun=str(intent.get("at", "")),
        price=book.price(intent["price_ref"]) if book else None,
    )


def _of_event(found: Merged, seen: Seen) -> Iterator[LedgerRow]:
    """Yield the rows of an event that no journal has."""
    event, sample, facts = seen.event, seen.sample, seen.log.facts
    worker = facts.workers.get(event.role) if facts else None
    price_ref = worker.price if worker else event.model
    book = found.books.get(str(facts.prices.get("sha256", ""))) if facts else None
    base = Base(
        task=seen.log.task,
        suite=facts.suite if facts else "",
        system=facts.system if facts else "",
        label=facts.label if facts else "live",
        question=sample.question,
        epoch=sample.epoch,
        sample=sample.uuid,
        call=event.id,
        log=seen.log.name,
        journal=None,
        scope="scoring" if event.phase == "score" else "inference",
        role=event.role,
        step=event.step,
        counted=_counts(seen),
        model=event.model,
        price_ref=price_ref,
        service=worker.service if worker else "standard",
        prompt_bytes=None,
        max_tokens=event.max_tokens,
        prompt_sha256=None,
        begun=event.started,
        price=book.price(price_ref) if book else None,
    )
    tries = [*within(event, 1)]
    yield from (write(base, told) for told in (*tries, of_event(event, len(tries) + 1)))


def _counts(seen: Seen) -> bool:
    return seen.final and seen.sample.newest and seen.sample.graded
