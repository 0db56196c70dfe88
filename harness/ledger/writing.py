"""Fields of a row: what a call is, and how each attempt at it ended, told by one or both records.

Where a journal and a log say different things, the journal stands in the row and the audit names
the difference. Not here: which lines and events belong together (harness/ledger/merge.py).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from harness.ledger.billing import Attempted, billable_failure, billable_reply, is_refusal, money
from harness.ledger.events import IN_FLIGHT, CallEvent
from harness.ledger.journal import usage_of
from harness.ledger.raw_log import Json
from harness.ledger.row import Billable, Cache, LedgerRow, Scope, UsageSource, canonical
from harness.prices.pricing import Price, Service
from harness.private import kind_of
from harness.records import Usage

SOURCES: Mapping[str, UsageSource] = {
    "live": "provider",
    "recorded": "recorded",
    "rehearsal": "rehearsal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What all attempts of a call have in common; fields as in `LedgerRow`."""

    task: str
    suite: str
    system: str
    label: str
    question: str
    epoch: int
    sample: str
    call: str
    log: str | None
    journal: str | None
    scope: Scope
    role: str
    step: str | None
    counted: bool
    model: str
    price_ref: str
    service: Service
    prompt_bytes: int | None
    max_tokens: int | None
    prompt_sha256: str | None
    begun: str
    """When the call began; an attempt whose event is known began when that says."""
    price: Price | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How one attempt ended; fields as in `LedgerRow`."""

    attempt: int
    event: CallEvent | None
    billable: Billable
    usage: Usage | None = None
    cache: Cache = "none"
    from_store: bool = False
    started: str = ""
    """Empty: when the call began."""
    served_model: str | None = None
    request_id: str | None = None
    http_status: int | None = None
    error: str | None = None
    stop: str | None = None
    latency_s: float | None = None
    output_sha256: str | None = None
    raw_usage: Mapping[str, Any] | None = None


def after_retry(attempt: int, retry: Json | None, event: CallEvent | None) -> Told:
    """Return an HTTP attempt that failed and was followed by another."""
    said: Json = retry or {}
    status = said.get("http_status") or (status_of(event) if event else None)
    error = said.get("error") or (kind_of(event.error or "") if event else "failed")
    return Told(
        attempt=attempt,
        event=event,
        billable=billable_failure(status),
        started=event.started if event else "",
        http_status=status,
        error=error,
        request_id=request_id_of(event) if event else None,
        latency_s=seconds(event) if event else None,
    )


CLIENT_RETRY = "ClientRetry"
"""The kind of failure of a try after which a provider's own client tried again by itself."""


def tries_within(event: CallEvent) -> int:
    """Return how many HTTP tries were made inside one event before its last."""
    return max(event.retries, len(event.request_ids) - 1)


def within(event: CallEvent | None, attempt: int) -> Iterator[Told]:
    """Yield the HTTP tries inside one event before its last, the first as number `attempt`.

    Inspect counts them, and has the status of those that were answered. One that was answered with
    200 broke off later; nobody knows whether it was billed.
    """
    if event is None:
        return
    answered = [*event.request_ids]
    tries = tries_within(event)
    if event.error is None or len(answered) > tries:
        answered = answered[:-1]
    nothing: Json = {}
    for number in range(tries):
        said = answered[number] if number < len(answered) else nothing
        status, id = said.get("status"), said.get("id")
        refused = status if is_refusal(status) else None
        yield Told(
            attempt=attempt + number,
            event=None,
            billable=billable_failure(refused),
            started=event.started,
            http_status=refused,
            error=CLIENT_RETRY,
            request_id=id if isinstance(id, str) else None,
        )


def ended(
    attempt: int, outcome: Json | None, event: CallEvent | None, why: str = IN_FLIGHT
) -> Told:
    """Return the last attempt of a journal's call; `why` no record has its end, if none has."""
    if outcome is None:
        if event is None or event.pending:
            return Told(attempt=attempt, event=event, billable="unknown", error=why)
        return of_event(event, attempt)
    usage = usage_of(outcome)
    cache: Cache = outcome.get("cache") or "none"
    status, error = outcome.get("http_status"), outcome.get("error")
    refused = bool(outcome.get("refused"))
    doubtful = error is not None or outcome.get("raw_usage") is not None
    return Told(
        attempt=attempt,
        event=event,
        billable="no" if refused else billable_reply(cache, usage, status, doubtful=doubtful),
        usage=usage,
        cache=cache,
        from_store=bool(outcome.get("from_store")),
        started=event.started if event else "",
        served_model=outcome.get("served_model"),
        request_id=outcome.get("request_id"),
        http_status=status,
        error=error,
        stop=outcome.get("stop"),
        latency_s=outcome.get("latency_s"),
        output_sha256=outcome.get("output_sha256"),
        raw_usage=_raw(outcome, event),
    )


def _raw(outcome: Json, event: CallEvent | None) -> Mapping[str, Any] | None:
    """Return a provider's own usage, of the journal if that has it."""
    written = outcome.get("raw_usage")
    return event.raw_usage if written is None and event else written


def of_event(event: CallEvent, attempt: int = 1) -> Told:
    """Return an attempt that only a log knows the end of."""
    if event.pending:
        return Told(attempt=attempt, event=event, billable="unknown", error=IN_FLIGHT)
    usage = event.usage
    status = status_of(event)
    doubtful = bool(event.error) or event.raw_usage is not None
    return Told(
        attempt=attempt,
        event=event,
        billable="no"
        if event.refused
        else billable_reply(event.cache, usage, status, doubtful=doubtful),
        usage=usage,
        cache=event.cache,
        started=event.started,
        served_model=None if event.error else event.served_model,
        request_id=request_id_of(event),
        http_status=status,
        error=kind_of(event.error) if event.error else None,
        stop=None if event.error else event.stop,
        latency_s=seconds(event),
        raw_usage=event.raw_usage,
    )


def status_of(event: CallEvent) -> int | None:
    """Return the HTTP status with which a provider refused; None when it did not."""
    status = event.request_ids[-1].get("status") if event.request_ids and event.error else None
    return status if is_refusal(status) else None


def request_id_of(event: CallEvent) -> str | None:
    """Return the provider's id of the last HTTP request."""
    found = event.request_ids[-1].get("id") if event.request_ids else None
    return found if isinstance(found, str) else None


def seconds(event: CallEvent) -> float | None:
    """Return how long an event took, by its own clock; None when nobody knows."""
    took = event.latency_s if event.completed else event.working_s
    return None if took is None or isnan(took) else took


def write(base: Base, told: Told) -> LedgerRow:
    """Return the row of one attempt."""
    return LedgerRow(
        task=base.task,
        suite=base.suite,
        system=base.system,
        label=base.label,
        question=base.question,
        epoch=base.epoch,
        sample=base.sample,
        call=base.call,
        attempt=told.attempt,
        event=told.event.id if told.event else None,
        log=base.log,
        journal=base.journal,
        scope=base.scope,
        role=base.role,
        step=base.step,
        counted=base.counted,
        model=base.model,
        served_model=told.served_model,
        price_ref=base.price_ref,
        service=base.service,
        request_id=told.request_id,
        http_status=told.http_status,
        error=told.error,
        stop=told.stop,
        cache=told.cache,
        from_store=told.from_store,
        billable=told.billable,
        usage_source=SOURCES.get(base.label, "provider") if told.usage else "missing",
        prompt_bytes=base.prompt_bytes,
        max_tokens=base.max_tokens,
        started=told.started or base.begun,
        latency_s=told.latency_s,
        prompt_sha256=base.prompt_sha256,
        output_sha256=told.output_sha256,
        raw_usage=None if told.raw_usage is None else canonical(told.raw_usage).decode(),
        **_tokens(told.usage),
        **money(_attempted(base, told), base.price),
    )


def _attempted(base: Base, told: Told) -> Attempted:
    sizes = base.prompt_bytes, base.max_tokens
    return Attempted(told.billable, told.cache, told.usage, base.service, *sizes)


def _tokens(usage: Usage | None) -> dict[str, int | None]:
    if usage is None:
        return NO_TOKENS
    return {
        "input_uncached": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "cache_write_1h": usage.cache_write_1h,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "orchestration_in": usage.orchestration_in,
        "orchestration_in_cached": usage.orchestration_in_cached,
        "orchestration_out": usage.orchestration_out,
        "total_reported": usage.total_reported,
    }


NO_TOKENS: dict[str, int | None] = dict.fromkeys(_tokens(Usage()))
