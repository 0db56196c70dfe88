"""Which line of a journal and which event of a log are one call, and the rows they make.

A call meets its ModelEvents by the event's uuid, else by Inspect's span, which has one event per
HTTP attempt. Where the two say different things, the journal stands in the row. What only a journal
has was lost by the log; what only a log has is older than journals, or escaped them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.ledger.call import (
    SCOPES,
    Attempted,
    Cache,
    Call,
    billable_failure,
    billable_reply,
    canonical,
    is_refusal,
    money,
    token_columns,
)
from podium.harness.ledger.journal import usage_of
from podium.harness.ledger.logs import (
    IN_FLIGHT,
    NOTHING,
    UNWRITTEN,
    CallEvent,
    Json,
    seconds_between,
)
from podium.harness.ledger.runs import (
    CallRecord,
    Gathered,
    LogRecord,
    RunFiles,
    SampleRecord,
    calls_of,
    gather,
    naming_system_run,
)
from podium.harness.prices import Book, book_from_json, read_book
from podium.harness.prices.cost import Price
from podium.harness.records import Usage
from podium.harness.suite import failure_kind
from podium.harness.usage import Raw, stated_usd, usd_amount

REPLAYS = ("recorded", "rehearsal")
"""Labels that are also the source of what their calls used."""
Sampled = tuple[str, int, str]
"""A question, an epoch and the uuid of the sample."""
Columns = dict[str, Any]
"""Some columns of `Call`."""
ENDED: Columns = {
    "from_store": False,
    "cache": "none",
    **dict.fromkeys(("event", "served_model", "request_id", "http_status", "error", "stop")),
    **dict.fromkeys(("latency_s", "output_sha256", "shared_from")),
}
"""How an attempt ended of which nothing is known."""


def write(base: Columns, price: Price | None, ended: Columns) -> Call:
    """Return the row of an attempt: what all attempts of its call share, and how this one ended."""
    usage, raw = ended.get("usage"), ended.get("raw_usage")
    sizes = base["service"], base["prompt_bytes"], base["max_tokens"], ended.get("stop")
    cache = ended.get("cache", "none")
    source = base["label"] if base["label"] in REPLAYS else "provider"
    parts: Columns = {
        **base,
        **ENDED,
        **ended,
        "usage_source": source if usage else "missing",
        "started": ended.get("started") or base["started"],
        "raw_usage": None if raw is None else canonical(raw).decode(),
        "usd_provider": usd_amount(ended.get("usd_provider")) or stated_usd(raw),
        **token_columns(usage),
        **money(Attempted(ended["billable"], cache, usage, *sizes), price),
    }
    parts.pop("usage", None)
    return Call(**parts)


def _after_retry(retry: Json | None, event: CallEvent | None) -> Columns:
    said: Json = retry or NOTHING
    status = said.get("http_status") or _status_of(event)
    error = said.get("error") or (failure_kind(event.error or "") if event else "failed")
    usage, raw = (event.usage, event.raw_usage) if event and not retry else _usages(said)
    billable = billable_reply("none", usage, status, doubtful=True)
    found: Columns = {"billable": billable, "http_status": status, "error": error}
    names = ("served_model", "stop", "output_sha256", "usd_provider")
    part = {name: said.get(name) for name in names}
    return {**found, **part, "usage": usage, "raw_usage": raw, **_of_log(event)}


def _usages(line: Json) -> tuple[Usage | None, Raw | None]:
    return usage_of(line), line.get("raw_usage")


def _of_log(event: CallEvent | None) -> Columns:
    if event is None:
        return {}
    request = event.request_ids[-1].get("id") if event.request_ids else None
    return {
        "event": event.id,
        "started": event.started,
        "request_id": request if isinstance(request, str) else None,
        "latency_s": event.latency_s,
    }


CLIENT_RETRY = "ClientRetry"
"""The kind of failure of a try after which a provider's own client tried again by itself."""


def _tries_within(event: CallEvent) -> int:
    return max(event.retries, len(event.request_ids) - 1)


def within(event: CallEvent | None) -> Iterator[Columns]:
    """Yield how the HTTP tries inside one event before its last ended."""
    # Inspect counts them, and has the status of those that were answered. One that was answered
    # with 200 broke off later; nobody knows whether it was billed.
    if event is None:
        return
    answered = [*event.request_ids]
    tries = _tries_within(event)
    if event.error is None or len(answered) > tries:
        answered = answered[:-1]
    for said in islice(chain(answered, repeat(NOTHING)), tries):
        status, id = said.get("status"), said.get("id")
        refused = status if is_refusal(status) else None
        yield {
            "billable": billable_failure(refused),
            "started": event.started,
            "http_status": refused,
            "error": CLIENT_RETRY,
            "request_id": id if isinstance(id, str) else None,
        }


def ended(outcome: Json | None, event: CallEvent | None, why: str = IN_FLIGHT) -> Columns:
    """Return how a journal's call ended; `why` no record has its end, if none has."""
    uuid = {"event": event.id} if event else {}
    if outcome is None:
        if event is None or event.pending:
            return {"billable": "unknown", "error": why, **uuid}
        return of_event(event)
    usage, raw = _usages(outcome)
    cache: Cache = outcome.get("cache") or "none"
    status, error = outcome.get("http_status"), outcome.get("error")
    doubtful = error is not None or raw is not None
    billable = billable_reply(cache, usage, status, doubtful=doubtful)
    return {
        "billable": "no" if outcome.get("refused") else billable,
        "usage": usage,
        "cache": cache,
        "from_store": bool(outcome.get("from_store")),
        "started": event.started if event else "",
        "http_status": status,
        "error": error,
        "raw_usage": event.raw_usage if raw is None and event else raw,
        **{name: outcome.get(name) for name in COPIED},
        **uuid,
    }


COPIED = (
    *("served_model", "request_id", "stop", "latency_s", "output_sha256", "usd_provider"),
    "shared_from",
)
"""Fields of an outcome line that a row has as they are."""


def of_event(event: CallEvent) -> Columns:
    """Return how an attempt ended of which only a log knows the end."""
    if event.pending:
        return {"billable": "unknown", "error": IN_FLIGHT, "event": event.id}
    status = _status_of(event)
    doubtful = bool(event.error) or event.raw_usage is not None
    billable = billable_reply(event.cache, event.usage, status, doubtful=doubtful)
    return {
        **_of_log(event),
        "billable": "no" if event.refused else billable,
        "usage": event.usage,
        "cache": event.cache,
        "served_model": None if event.error else event.served_model,
        "http_status": status,
        "error": failure_kind(event.error) if event.error else None,
        "stop": None if event.error else event.stop,
        "raw_usage": event.raw_usage,
    }


def _status_of(event: CallEvent | None) -> int | None:
    said = event.request_ids[-1] if event and event.request_ids and event.error else NOTHING
    return said["status"] if is_refusal(said.get("status")) else None


def rows_of(files: RunFiles) -> Iterator[Call]:
    """Yield the rows of one system run, sorted by question, epoch and time."""
    with naming_system_run(files):
        rows = merged(gather(files)).rows
    yield from rows


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event, and where the logs have it."""

    event: CallEvent
    sample: SampleRecord
    log: LogRecord
    final: bool
    """True for the attempt that its log keeps, False for what is left of one before it."""


@dataclass
class Merged(Gathered):
    """A system run's rows too, and how each of them came about."""

    rows: list[Call] = field(default_factory=list[Call])
    """In the ledger's order."""
    seen: dict[str, LoggedEvent] = field(default_factory=dict[str, LoggedEvent])
    """Events by uuid."""
    events_of: dict[str, list[LoggedEvent]] = field(default_factory=dict[str, list[LoggedEvent]])
    escaped: list[str] = field(default_factory=list[str])
    copies: list[str] = field(default_factory=list[str])
    """uuids that one sample lists twice."""
    books: dict[str, Book] = field(default_factory=dict[str, Book])


def merged(gathered: Gathered, books: Mapping[str, Book] | None = None) -> Merged:
    """Join what the files of a system run say; `books`: theirs, by digest, where they are known."""
    samples = [sample for log in gathered.logs for sample in log.samples]
    # Of samples that were graded at the first attempt all calls count.
    whole = {one.uuid for one in samples if one.newest and one.graded and not one.retried}
    found = Merged(**vars(gathered), books=dict(books or _books(gathered)))
    _list_events(found)
    claimed = _claims(found)
    found.escaped = [uuid for uuid in found.seen if uuid not in claimed]
    for call, record in gathered.calls.items():
        found.rows.extend(_of_call(found, call, record, whole))
    for uuid in found.escaped:
        found.rows.extend(_of_event(found, found.seen[uuid]))
    found.rows.sort(key=lambda row: (row.question, row.epoch, row.started, row.call, row.attempt))
    return found


def _books(gathered: Gathered) -> dict[str, Book]:
    found: dict[str, Book] = {}
    for log in gathered.logs:
        if log.facts is not None:
            _add_book(found, log.facts.prices)
    for journal in gathered.journals:
        wanted = str(journal.head.get("book_sha256", ""))
        if journal.book is not None:
            _add_book(found, journal.book)
        if wanted and wanted not in found:
            with suppress(UserError):
                book = read_book(str(journal.head.get("book", "")))
                if book.sha256 == wanted:
                    found[wanted] = book
    return found


def _add_book(books: dict[str, Book], prices: Mapping[str, Any]) -> None:
    """Keep an embedded book, or the entries that it adds to one that is kept."""
    known = books.get(str(prices.get("sha256")))
    # A run that an older version began embeds no built-in prices in its first logs.
    if known is None or (prices.get("built_in") and not known.built_in):
        book = book_from_json(prices)
        books[book.sha256] = book
    elif known.entries:  # of a large book each log embeds the entries of its own pool
        more = book_from_json(prices).prices
        books[known.sha256] = replace(known, prices={**more, **known.prices})


def _list_events(found: Merged) -> None:
    for log in found.logs:
        for sample in log.samples:
            own: set[str] = set()
            for final, events in ((True, sample.events), (False, sample.lost)):
                for event in events:
                    if event.id in own:
                        found.copies.append(event.id)
                    own.add(event.id)
                    found.seen.setdefault(event.id, LoggedEvent(event, sample, log, final))


def _claims(found: Merged) -> set[str]:
    by_span: dict[str, list[LoggedEvent]] = defaultdict(list)
    for seen in found.seen.values():
        if seen.event.span:
            by_span[seen.event.span].append(seen)
    claimed: set[str] = set()
    for call, record in found.calls.items():
        outcome: Json = record.outcome or NOTHING
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


def _tried(one: LoggedEvent, last: str | None) -> tuple[bool, bool, str, str]:
    """Return where an event stands among the tries of its call."""
    # Times alone do not say: Inspect dates the try that succeeded back to the call's beginning.
    event = one.event
    return event.id == last, event.error is None, event.started, event.id


def _of_call(found: Merged, call: str, record: CallRecord, whole: Set[str]) -> Iterator[Call]:
    seen = found.events_of[call]
    base = _base(record)
    base["log"] = seen[-1].log.name if seen else None
    known = base["sample"] in whole or base["scope"] == "serving"  # of which there are no logs
    base["counted"] = _counts(seen[-1]) if seen else known
    book = found.books.get(str(record.journal.head.get("book_sha256", "")))
    price = book.price(base["price_ref"]) if book else None
    # A process that closed its journal was not ended: the end of its call was not written.
    why = UNWRITTEN if record.journal.closed else IN_FLIGHT
    events = [one.event for one in seen]
    yield from _numbered(base, price, _attempts(record, events, why))


def _numbered(base: Columns, price: Price | None, tries: Iterable[Columns]) -> Iterator[Call]:
    for number, told in enumerate(tries, 1):
        yield write({**base, "attempt": number}, price, told)


def _attempts(record: CallRecord, events: Sequence[CallEvent], why: str) -> Iterator[Columns]:
    """Yield how each HTTP attempt of a call ended: its lines beside its event, where it has one."""
    last = events[-1] if events else None
    if not record.retries and len(events) < 2 and not (last and _tries_within(last)):
        yield ended(record.outcome, last, why)  # nearly all calls
        return
    earlier = events if record.waited else events[:-1]
    for retry, event in zip_longest(record.retries, earlier):
        yield from within(event)
        yield _after_retry(retry, event)
    if not record.waited:  # else what was to follow never went out
        for told in (*within(last), ended(record.outcome, last, why)):
            yield {**told, **_since_retry(told, record)}


def _since_retry(told: Columns, record: CallRecord) -> Columns:
    """Return when an attempt went out, and how long it took: journals time whole calls."""
    if not record.retries:
        return {}
    after, took = record.last.get("after_s"), told.get("latency_s")
    if took is not None and isinstance(after, float):
        since = round(max(took - after, 0.0), 6)
        return {"started": str(record.last["at"]), "latency_s": since}
    begun = str(record.retries[-1].get("at", ""))
    if took is not None and record.outcome is not None:
        try:
            took = seconds_between(begun, str(record.outcome.get("at", "")))
        except ValueError:  # no times; the audit names lines that were changed
            took = None
    return {"started": begun, "latency_s": took}


def _base(record: CallRecord) -> Columns:
    intent, head = record.intent, record.journal.head
    asked: Json = intent.get("sample") or NOTHING
    return {
        **{name: str(head.get(name, "")) for name in ("task", "suite", "system")},
        "label": str(head.get("label", "live")),
        "question": str(asked.get("question", "")),
        "epoch": int(asked.get("epoch") or 0),
        "sample": str(asked.get("uuid", "")),
        "call": str(intent.get("call", "")),
        "log": None,
        "journal": record.journal.name,
        "counted": True,
        **{name: intent[name] for name in ("scope", "role", "model", "price_ref")},
        **{name: intent.get(name) for name in ("step", "prompt_bytes", "max_tokens")},
        "prompt_sha256": intent.get("prompt_sha256"),
        "service": intent.get("service") or "standard",
        "started": str(intent.get("at", "")),
    }


def journal_calls(path: Path, book: Book) -> Iterator[tuple[CallRecord, list[Call]]]:
    """Yield the calls of one journal, each with its attempts at a book, without any log."""
    for record in calls_of(path):
        base = _base(record)
        price = book.price(base["price_ref"])
        yield record, [*_numbered(base, price, _attempts(record, (), IN_FLIGHT))]


def logged_call(
    log: LogRecord, book: Book | None, event: CallEvent, sample: Sampled, *, counted: bool
) -> tuple[Columns, Price | None]:
    """Return what a log alone says of a call, and its price at a book."""
    facts = log.facts
    worker = facts.workers.get(event.role) if facts else None
    price_ref = worker.price if worker else event.model
    base: Columns = {
        "task": log.task,
        "suite": facts.suite if facts else "",
        "system": facts.system if facts else "",
        "label": facts.label if facts else "live",
        **dict(zip(("question", "epoch", "sample"), sample, strict=True)),
        "call": event.id,
        "log": log.name,
        "journal": None,
        "scope": SCOPES[event.phase],
        "role": event.role,
        "step": event.step,
        "counted": counted,
        "model": event.model,
        "price_ref": price_ref,
        "service": worker.service if worker else "standard",
        "prompt_bytes": None,
        "max_tokens": event.max_tokens,
        "prompt_sha256": None,
        "started": event.started,
    }
    return base, book.price(price_ref) if book else None


def _of_event(found: Merged, seen: LoggedEvent) -> Iterator[Call]:
    event, sample, facts = seen.event, seen.sample, seen.log.facts
    book = found.books.get(str(facts.prices.get("sha256", ""))) if facts else None
    named = sample.question, sample.epoch, sample.uuid
    base = logged_call(seen.log, book, event, named, counted=_counts(seen))
    yield from _numbered(*base, (*within(event), of_event(event)))


def _counts(seen: LoggedEvent) -> bool:
    return seen.final and seen.sample.newest and seen.sample.graded
