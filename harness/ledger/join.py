"""Joins the lines of journals with the events of logs: one row per HTTP attempt of each call.

A call is joined to its ModelEvents by the event's uuid, else by Inspect's span, which has one event
per HTTP attempt. If journal and log differ, the row has the journal's values. If a call is only in
a journal, the log lost it; if only in a log, it is older than journals or bypassed them.
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
"""Labels of runs that are also the `usage_source` of their calls; for others this is `provider`."""
Sampled = tuple[str, int, str]
"""A question's id, an epoch's number and the sample's uuid."""
Columns = dict[str, Any]
"""Some columns of a `Call` row, by name."""
ENDED: Columns = {
    "from_store": False,
    "cache": "none",
    **dict.fromkeys(("event", "served_model", "request_id", "http_status", "error", "stop")),
    **dict.fromkeys(("latency_s", "output_sha256", "shared_from")),
}
"""Default values of the columns on an attempt's outcome, if neither journal nor log has them."""


def write(base: Columns, price: Price | None, outcome: Columns) -> Call:
    """Return an attempt's row: the call's columns `base`, the outcome, and the cost at `price`."""
    usage, raw = outcome.get("usage"), outcome.get("raw_usage")
    sizes = base["service"], base["prompt_bytes"], base["max_tokens"], outcome.get("stop")
    cache = outcome.get("cache", "none")
    source = base["label"] if base["label"] in REPLAYS else "provider"
    columns: Columns = {
        **base,
        **ENDED,
        **outcome,
        "usage_source": source if usage else "missing",
        "started": outcome.get("started") or base["started"],
        "raw_usage": None if raw is None else canonical(raw).decode(),
        "usd_provider": usd_amount(outcome.get("usd_provider")) or stated_usd(raw),
        **token_columns(usage),
        **money(Attempted(outcome["billable"], cache, usage, *sizes), price),
    }
    columns.pop("usage", None)
    return Call(**columns)


def _after_retry(retry: Json | None, event: CallEvent | None) -> Columns:
    line: Json = retry or NOTHING
    status = line.get("http_status") or _status_of(event)
    error = line.get("error") or (failure_kind(event.error or "") if event else "failed")
    usage, raw = (event.usage, event.raw_usage) if event and not retry else _usages(line)
    billable = billable_reply("none", usage, status, doubtful=True)
    columns: Columns = {"billable": billable, "http_status": status, "error": error}
    names = ("served_model", "stop", "output_sha256", "usd_provider")
    line_columns = {name: line.get(name) for name in names}
    return {**columns, **line_columns, "usage": usage, "raw_usage": raw, **_of_log(event)}


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
"""Value of `error` for an HTTP attempt that the provider's client library retried by itself."""


def _tries_within(event: CallEvent) -> int:
    return max(event.retries, len(event.request_ids) - 1)


def within(event: CallEvent | None) -> Iterator[Columns]:
    """Yield the outcome columns of the HTTP attempts inside one event, except the last attempt."""
    # Inspect counts these attempts, and has the status of those with a response. An attempt with
    # status 200 broke off later; whether it was billed is unknown.
    if event is None:
        return
    answered = [*event.request_ids]
    tries = _tries_within(event)
    if event.error is None or len(answered) > tries:
        answered = answered[:-1]
    for request in islice(chain(answered, repeat(NOTHING)), tries):
        status, id = request.get("status"), request.get("id")
        refused = status if is_refusal(status) else None
        yield {
            "billable": billable_failure(refused),
            "started": event.started,
            "http_status": refused,
            "error": CLIENT_RETRY,
            "request_id": id if isinstance(id, str) else None,
        }


def ended(outcome: Json | None, event: CallEvent | None, default_error: str = IN_FLIGHT) -> Columns:
    """Return a journal call's outcome columns; `default_error`: the error if no end is recorded."""
    uuid = {"event": event.id} if event else {}
    if outcome is None:
        if event is None or event.pending:
            return {"billable": "unknown", "error": default_error, **uuid}
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
"""Fields of a journal's `outcome` line that are copied to the call's row."""


def of_event(event: CallEvent) -> Columns:
    """Return the outcome columns of a call attempt that only a log has."""
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
    request = event.request_ids[-1] if event and event.request_ids and event.error else NOTHING
    return request["status"] if is_refusal(request.get("status")) else None


def rows_of(files: RunFiles) -> Iterator[Call]:
    """Yield the call rows of one system run, sorted by question, epoch and time."""
    with naming_system_run(files):
        rows = merged(gather(files)).rows
    yield from rows


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One model event of a log, with the sample and the log that contain it."""

    event: CallEvent
    sample: SampleRecord
    log: LogRecord
    final: bool
    """True if the event is from the sample's last attempt, False if from a failed one before."""


@dataclass
class Merged(Gathered):
    """A system run's files, the call rows made from them, and the events of its logs."""

    rows: list[Call] = field(default_factory=list[Call])
    """One row per HTTP attempt, sorted by question, epoch, start, call and attempt."""
    seen: dict[str, LoggedEvent] = field(default_factory=dict[str, LoggedEvent])
    """The model events in the logs, by uuid."""
    events_of: dict[str, list[LoggedEvent]] = field(default_factory=dict[str, list[LoggedEvent]])
    escaped: list[str] = field(default_factory=list[str])
    copies: list[str] = field(default_factory=list[str])
    """UUIDs of events that occur twice in one sample of a log."""
    books: dict[str, Book] = field(default_factory=dict[str, Book])


def merged(gathered: Gathered, books: Mapping[str, Book] | None = None) -> Merged:
    """Join a run's logs and journals into rows; `books`: price books by digest (None: its own)."""
    samples = [sample for log in gathered.logs for sample in log.samples if sample.newest]
    # If a sample was graded at its first attempt, all its calls count in the totals.
    complete = {sample.uuid for sample in samples if sample.graded and not sample.retried}
    ledger = Merged(**vars(gathered), books=dict(books or _books(gathered)))
    _list_events(ledger)
    claimed = _claims(ledger)
    ledger.escaped = [uuid for uuid in ledger.seen if uuid not in claimed]
    for call, record in gathered.calls.items():
        ledger.rows.extend(_of_call(ledger, call, record, complete))
    for uuid in ledger.escaped:
        ledger.rows.extend(_of_event(ledger, ledger.seen[uuid]))
    ledger.rows.sort(key=lambda row: (row.question, row.epoch, row.started, row.call, row.attempt))
    return ledger


def _books(gathered: Gathered) -> dict[str, Book]:
    books: dict[str, Book] = {}
    for log in gathered.logs:
        if log.facts is not None:
            _add_book(books, log.facts.prices)
    for journal in gathered.journals:
        digest = str(journal.head.get("book_sha256", ""))
        if journal.book is not None:
            _add_book(books, journal.book)
        if digest and digest not in books:
            with suppress(UserError):
                book = read_book(str(journal.head.get("book", "")))
                if book.sha256 == digest:
                    books[digest] = book
    return books


def _add_book(books: dict[str, Book], prices: Mapping[str, Any]) -> None:
    """Store an embedded price book, or add its entries to a stored book with the same digest."""
    current = books.get(str(prices.get("sha256")))
    # A run that an older version began embeds no built-in prices in its first logs.
    if current is None or (prices.get("built_in") and not current.built_in):
        book = book_from_json(prices)
        books[book.sha256] = book
    elif current.entries:  # each log embeds only its pool's entries of a large book
        additions = book_from_json(prices).prices
        books[current.sha256] = replace(current, prices={**additions, **current.prices})


def _list_events(ledger: Merged) -> None:
    for log in ledger.logs:
        for sample in log.samples:
            event_ids: set[str] = set()
            for final, events in ((True, sample.events), (False, sample.lost)):
                for event in events:
                    if event.id in event_ids:
                        ledger.copies.append(event.id)
                    event_ids.add(event.id)
                    ledger.seen.setdefault(event.id, LoggedEvent(event, sample, log, final))


def _claims(ledger: Merged) -> set[str]:
    by_span: dict[str, list[LoggedEvent]] = defaultdict(list)
    for entry in ledger.seen.values():
        if entry.event.span:
            by_span[entry.event.span].append(entry)
    claimed: set[str] = set()
    for call, record in ledger.calls.items():
        outcome: Json = record.outcome or NOTHING
        uuid = outcome.get("event")
        final = ledger.seen.get(uuid) if uuid else None
        mine = by_span.get(record.intent.get("span") or "", [])
        if final is not None and final not in mine:
            mine = [final]
        events = [entry for entry in mine if entry.event.id not in claimed]
        events.sort(key=lambda entry: _tried(entry, uuid))
        ledger.events_of[call] = events
        claimed.update(entry.event.id for entry in events)
    return claimed


def _tried(entry: LoggedEvent, uuid: str | None) -> tuple[bool, bool, str, str]:
    """Return the key that sorts the events of a call by HTTP attempt."""
    # Times alone do not suffice: Inspect gives the successful attempt the call's start time.
    event = entry.event
    return event.id == uuid, event.error is None, event.started, event.id


def _of_call(ledger: Merged, call: str, record: CallRecord, complete: Set[str]) -> Iterator[Call]:
    entries = ledger.events_of[call]
    base = _base(record)
    base["log"] = entries[-1].log.name if entries else None
    counts = base["sample"] in complete or base["scope"] == "serving"  # serving writes no logs
    base["counted"] = _counts(entries[-1]) if entries else counts
    book = ledger.books.get(str(record.journal.head.get("book_sha256", "")))
    price = book.price(base["price_ref"]) if book else None
    # A process that closed its journal was not killed: it failed to write the call's outcome.
    default_error = UNWRITTEN if record.journal.closed else IN_FLIGHT
    events = [entry.event for entry in entries]
    yield from _numbered(base, price, _attempts(record, events, default_error))


def _numbered(base: Columns, price: Price | None, tries: Iterable[Columns]) -> Iterator[Call]:
    for number, outcome in enumerate(tries, 1):
        yield write({**base, "attempt": number}, price, outcome)


def _attempts(record: CallRecord, events: Sequence[CallEvent], error: str) -> Iterator[Columns]:
    """Yield the outcome of each HTTP attempt of a call, from its lines and its event, if any."""
    last_event = events[-1] if events else None
    if not record.retries and len(events) < 2 and not (last_event and _tries_within(last_event)):
        yield ended(record.outcome, last_event, error)  # nearly all calls
        return
    earlier = events if record.waited else events[:-1]
    for retry, event in zip_longest(record.retries, earlier):
        yield from within(event)
        yield _after_retry(retry, event)
    if not record.waited:  # if it ended during a wait, no further attempt was sent
        for outcome in (*within(last_event), ended(record.outcome, last_event, error)):
            yield {**outcome, **_since_retry(outcome, record)}


def _since_retry(outcome: Columns, record: CallRecord) -> Columns:
    """Return start and latency of a call's last attempt: journals time only the whole call."""
    if not record.retries:
        return {}
    after_s, took = record.last.get("after_s"), outcome.get("latency_s")
    if took is not None and isinstance(after_s, float):
        since = round(max(took - after_s, 0.0), 6)
        return {"started": str(record.last["at"]), "latency_s": since}
    start = str(record.retries[-1].get("at", ""))
    if took is not None and record.outcome is not None:
        try:
            took = seconds_between(start, str(record.outcome.get("at", "")))
        except ValueError:  # an edited line; the audit lists it
            took = None
    return {"started": start, "latency_s": took}


def _base(record: CallRecord) -> Columns:
    intent, head = record.intent, record.journal.head
    sample: Json = intent.get("sample") or NOTHING
    return {
        **{name: str(head.get(name, "")) for name in ("task", "suite", "system")},
        "label": str(head.get("label", "live")),
        "question": str(sample.get("question", "")),
        "epoch": int(sample.get("epoch") or 0),
        "sample": str(sample.get("uuid", "")),
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
    """Yield the calls of one journal with their attempts, priced at `book`, without any log."""
    for record in calls_of(path):
        base = _base(record)
        price = book.price(base["price_ref"])
        yield record, [*_numbered(base, price, _attempts(record, (), IN_FLIGHT))]


def logged_call(
    log: LogRecord, book: Book | None, event: CallEvent, sample: Sampled, *, counted: bool
) -> tuple[Columns, Price | None]:
    """Return the columns of a call that its log alone provides, and its price in `book`."""
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


def _of_event(ledger: Merged, entry: LoggedEvent) -> Iterator[Call]:
    event, sample, facts = entry.event, entry.sample, entry.log.facts
    book = ledger.books.get(str(facts.prices.get("sha256", ""))) if facts else None
    sample_key = sample.question, sample.epoch, sample.uuid
    base = logged_call(entry.log, book, event, sample_key, counted=_counts(entry))
    yield from _numbered(*base, (*within(event), of_event(event)))


def _counts(entry: LoggedEvent) -> bool:
    return entry.final and entry.sample.newest and entry.sample.graded
