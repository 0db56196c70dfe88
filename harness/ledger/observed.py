"""How a call has ended, from what Inspect has just recorded of it: never a provider's words.

A call's event is the last one in the call's span. Kinds of errors, digests, counts and ids leave
this file; texts do not.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from typing import Any, cast

from inspect_ai.event import Event, ModelEvent, SpanBeginEvent
from inspect_ai.log import transcript
from inspect_ai.log._transcript import Transcript, _transcript  # pyright: ignore[reportPrivateUsage]
from inspect_ai.model import ModelOutput

from harness.ledger.events import responses
from harness.ledger.journal import Outcome
from harness.ledger.texts import reply_digest, sent_digest, text_digest
from harness.surrogates import made_storable
from harness.usage import raw_usage, usage_of_reply

WRAPPERS = frozenset({"RetryError", "ModelGenerateError", "WorkerError"})
"""Exceptions that only carry another one: the kind of failure is the other's."""

NO_CHOICES = "NoChoices"
"""The kind of failure of a call that was answered without a reply: nobody said anything."""

DEEPEST = 4
"""Levels of a provider's own usage that are kept; theirs have two."""
PROSE = object()
"""What may be words, and is left out."""
_BIGGEST = 2**53
"""Numbers beyond are kept as texts: readers of JSON do not agree on them."""

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@-]{1,100}")
"""What a name in a provider's usage looks like, e.g. `default`; anything longer may be prose."""


def last_event(span: str | None) -> ModelEvent | None:
    """Return the last model event of a span; None when nothing was dispatched in it.

    No further back than to where the span began, however long the history is.
    """

    def is_ours(event: Event) -> bool:
        if isinstance(event, SpanBeginEvent):
            return event.id == span
        return isinstance(event, ModelEvent) and event.span_id == span

    found = transcript().history.find_last(is_ours) if span else None
    return found if isinstance(found, ModelEvent) else None


@contextmanager
def own_transcript() -> Generator[None]:
    """Let calls made within be events of a transcript of their own, which is then forgotten.

    Outside an eval all calls of a process share one, which keeps every request and reply: a long
    training would not fit into memory.
    """
    token = _transcript.set(Transcript())
    try:
        yield
    finally:
        _transcript.reset(token)


def made_readable(output: ModelOutput | None, event: ModelEvent | None) -> None:
    """Rewrite what a provider sent and no file can hold, before anybody reads it.

    In place: the log gets the event from Inspect, and the caller has the output already.
    """
    made_storable(output)
    if event is None:
        return
    if event.output is not output:
        made_storable(event.output)
    if event.call is not None and event.call.response is not None:
        event.call.response = made_storable(event.call.response)


def outcome_of(
    output: ModelOutput | None, event: ModelEvent | None, latency_s: float, *, refused: bool
) -> Outcome:
    """Return the outcome of a call that gave a reply."""
    if output is None:  # who asked has no reply of its own, as with a judge
        output = event.output if event else None
    response = event.call.response if event and event.call else None
    said = output if output and not output.empty else None
    return Outcome(
        event=event.uuid if event else None,
        usage=usage_of_reply(output, response) if output else None,
        cache=(event.cache if event else None) or "none",
        served_model=_plain(output.model) if output else None,
        request_id=_request_id(event, response),
        stop=said.stop_reason if said else None,
        error=NO_CHOICES if output and output.empty else None,
        refused=refused,
        latency_s=round(latency_s, 6),
        output_sha256=text_digest(said.completion) if said else None,
        sent_sha256=sent_digest(event.input) if event else None,
        reply_sha256=reply_digest(event.output if event and event.output.choices else said)
        if said
        else None,
        raw_usage=_numbers(raw_usage(response, output.metadata if output else None)),
    )


def failed(error: BaseException, event: ModelEvent | None, latency_s: float) -> Outcome:
    """Return the outcome of a call without a reply: its kind, and whether it was ever sent.

    A call that was cancelled, or passed a limit of Inspect's, after its reply has come keeps the
    reply's usage. Of a reply that Inspect could not read it keeps no body, so its usage is lost.
    One that has no event was refused by us or cancelled while it waited to be sent.
    """
    kind, status = kind_and_status(error)
    if event and not event.error and not event.pending:
        ended = outcome_of(event.output, event, latency_s, refused=False)
        return replace(ended, error=kind, http_status=status)
    response = event.call.response if event and event.call else None
    return Outcome(
        event=event.uuid if event else None,
        usage=None,
        sent_sha256=sent_digest(event.input) if event else None,
        request_id=_request_id(event, response),
        error=kind,
        http_status=status,
        refused=event is None,
        latency_s=round(latency_s, 6),
    )


def kind_and_status(error: BaseException) -> tuple[str, int | None]:
    """Return the kind of a failure and the HTTP status that came with it, if one did."""
    status = _status(error)
    while type(error).__name__ in WRAPPERS and error.__cause__ is not None:
        error = error.__cause__
        status = _status(error) or status
    return type(error).__name__, status


def _status(error: BaseException) -> int | None:
    """Return an HTTP status, where the SDKs of OpenAI, Anthropic, Google and httpx keep it."""
    response: object = getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (response, "status_code"), (error, "code")):
        found: object = getattr(holder, name, None)
        if isinstance(found, int) and 100 <= found < 600:
            return found
    return None


def _numbers(usage: Mapping[str, Any] | None, depth: int = 1) -> dict[str, Any] | None:
    """Return a provider's own usage, without anything in it that could be prose."""
    if usage is None:
        return None
    kept = {name: _number(value, depth) for name, value in usage.items() if _plain(name)}
    return {name: value for name, value in kept.items() if value is not PROSE}


def _number(value: Any, depth: int) -> Any:
    """Return a value of a provider's usage as every reader of JSON has it, or `PROSE`."""
    if isinstance(value, Mapping):
        below = cast(Mapping[str, Any], value)
        return _numbers(below, depth + 1) if depth < DEEPEST else PROSE
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) <= _BIGGEST else f"{value.bit_length()}-bit integer"
    return _plain(value) or PROSE


def _request_id(event: ModelEvent | None, response: Mapping[str, Any] | None) -> str | None:
    """Return the provider's id of the last request, else the id that its reply carries."""
    if event and event.request_ids:
        *_, last = responses([one.model_dump() for one in event.request_ids], event.model)
        return _plain(last.get("id"))
    said: Mapping[str, Any] = response if isinstance(response, Mapping) else {}
    found: object = said.get("id") or said.get("responseId")  # Google's name for it
    return _plain(found)


def _plain(value: object) -> str | None:
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else None
