"""Hooks into Inspect's model calls, the outcomes of these calls, and digests of their texts."""

import hashlib
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from math import isfinite
from typing import Any, Protocol, TypeVar, cast

from inspect_ai.event import Event, ModelEvent, SpanBeginEvent
from inspect_ai.hooks import BeforeModelGenerate, Hooks, ModelRetry, ModelUsageData, hooks
from inspect_ai.log import transcript
from inspect_ai.log._transcript import Transcript, _transcript  # pyright: ignore[reportPrivateUsage]
from inspect_ai.model import ModelOutput
from inspect_ai.util import LimitExceededError

from podium.harness.context import current
from podium.harness.errors import SpendLimit
from podium.harness.ledger.journal import CallOutcome
from podium.harness.ledger.logs import (
    NOTHING,
    SYSTEMS,
    Json,
    answer_in,
    attached,
    responses,
    score_in,
    shape_in,
)
from podium.harness.records import TURN_COUNT
from podium.harness.request import JSON
from podium.harness.text import make_storable, storable
from podium.harness.usage import raw_usage, usage_of_reply


class Unwritten(BaseException):
    """Raised by a hook if a journal or a meter fails; Inspect would ignore an `Exception`."""


class NotAllowed(BaseException):
    """Raised by a hook if the spending limit forbids an attempt; `Exception` would be ignored."""


FIELDS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "input_tokens_cache_read",
    "input_tokens_cache_write",
    "reasoning_tokens",
)
"""Fields of Inspect's `ModelUsage`: token counts, None if a provider does not report one."""


@dataclass(slots=True)
class _HookTotals:
    """Call and token counts by task and model, of the tasks that have an open journal."""

    tasks: dict[str, dict[str, Counter[str]]] = field(
        default_factory=dict[str, dict[str, Counter[str]]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, task: str) -> None:
        with self._lock:
            listen()
            self.tasks[task] = defaultdict(Counter)

    def add(self, data: ModelUsageData) -> None:
        """Count one finished model call, unless its task has no open journal."""
        counts = {name: getattr(data.usage, name) or 0 for name in FIELDS}
        with self._lock:
            if (models := self.tasks.get(data.task_name or "")) is not None:
                models[data.model_name].update({"calls": 1, **counts})

    def end(self, task: str) -> Iterator[dict[str, Any]]:
        """Stop counting a task; yield its counts, one record per model, sorted by name."""
        with self._lock:
            models = self.tasks.pop(task, {})
        for model, sums in sorted(models.items()):
            yield {"model": model, **{name: sums[name] for name in ("calls", *FIELDS)}}


class _Attempts(Protocol):
    """The methods of `CallInFlight` (recorder.py) that the hooks call at each HTTP attempt."""

    async def goes_out(self) -> None: ...

    def retried(self, attempt: int, error: str | None, status: int | None) -> None: ...


def _in_flight() -> _Attempts | None:
    return cast("_Attempts | None", current().in_flight)


class _LedgerHooks(Hooks):
    """Hooks in Inspect: reserve money for attempts, and count tokens, while podium calls models."""

    def enabled(self) -> bool:
        return bool(COUNTED.tasks or PLAYED) or current().in_flight is not None

    async def on_model_usage(self, data: ModelUsageData) -> None:
        COUNTED.add(data)

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        if call := _in_flight():
            try:
                await call.goes_out()
            except SpendLimit as stop:
                raise NotAllowed from stop
            except Exception as error:  # no call goes out whose money cannot be counted
                raise Unwritten from error
        elif data.task_name in PLAYED and not data.model_name.startswith(UNPAID):
            # The only exception by which a hook can stop a call.
            message = FOREIGN.format(data.model_name)
            raise LimitExceededError("custom", value=1, limit=0, message=message)

    async def on_model_retry(self, data: ModelRetry) -> None:
        if call := _in_flight():
            call.retried(data.attempt, data.exception_type, data.status_code)


PLAYED: set[str] = set()
"""Names of other authors' Inspect tasks that podium solves; their unrecorded calls are refused."""
UNPAID = (SYSTEMS, "mockllm/", "none/")
"""Prefixes of models that cost nothing themselves: systems (their workers' calls do) and mocks."""
FOREIGN = (
    "This task calls {} itself, so the ledger would not hold those calls. Add the model to the "
    "pool file, in a table of its role, e.g. [roles.grader]"
)

COUNTED = _HookTotals()
"""Call and token counts of this process (Inspect has one instance of a hooks class per process)."""


def refuse_calls_past_ledger(task: str) -> None:
    """Refuse, from now on, a task's model calls that the ledger would not record."""
    listen()
    PLAYED.add(task)


@cache
def listen() -> None:
    """Register podium's hooks with Inspect, once, when the first call needs them."""
    # Not through an entry point: Inspect would then print a count of hooks at every command.
    register = hooks("podium_ledger", "Reserves money for model calls and counts their tokens.")
    register(_LedgerHooks)


Told = Callable[[str], str]
SHAPE = ("depth", "steps", "stopped", "plan")
"""Fields about an answer's workflow that every log has."""
MERGED = "combined_from"
"""Key that Inspect sets in a message's metadata if it merged several turns into this message."""


def sent_digest(messages: Iterable[object]) -> str:
    """Return the digest of sent messages; equals `request_digest` if messages have only texts."""
    return _of_turns(_turn(message, str) for message in messages)


def reply_digest(output: object, resolve: Told = str) -> str:
    """Return the digest of a whole reply: its text, its reasoning and its tool calls."""
    text = storable(resolve(str(_part(output, "completion") or "")))
    choices = cast(Sequence[object], _part(output, "choices") or ())
    messages = [message_parts(_part(choice, "message"), resolve) for choice in choices]
    return hashlib.sha256(JSON([text, messages]).encode()).hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a text, lone surrogates included."""
    return hashlib.sha256(storable(text).encode()).hexdigest()


def facts_digest(*facts: object) -> str:
    """Return one digest over several plain values, each of them text, number or None."""
    scalars = [_scalar(fact) for fact in facts]
    return hashlib.sha256(JSON(scalars).encode()).hexdigest()


def _scalar(fact: object) -> object:
    if isinstance(fact, str):
        return storable(fact)
    return fact if fact is None or isinstance(fact, int | float) else type(fact).__name__


@dataclass(slots=True)
class CallTexts:
    """The digests of a call's request and reply, computed from a log."""

    sent: str
    merged: bool
    """Whether Inspect merged several messages into one after podium computed its own digest."""
    said: str | None
    """Digest of the completion alone (older journals have no other); None if no reply came."""
    reply: str | None


def _call_texts(event: Json, turns: Sequence[tuple[str, bool]], resolve: Told) -> CallTexts:
    output: Json = event.get("output") or NOTHING
    has_choices = bool(output.get("choices"))
    return CallTexts(
        _of_turns(turn for turn, _ in turns),
        any(merged for _, merged in turns),
        text_digest(resolve(output.get("completion") or "")) if has_choices else None,
        reply_digest(output, resolve) if has_choices else None,
    )


Turn = TypeVar("Turn")


def calls_in(sample: Json, make: Callable[[Json], Turn]) -> Iterator[tuple[Json, list[Turn]]]:
    """Yield each model event of a sample, and the messages that it sent, converted by `make`."""
    pool: list[Json] = (sample.get("events_data") or NOTHING).get("messages") or []
    shared = [*map(make, pool)]
    size = len(shared)  # a damaged log may refer to messages beyond the pool
    failed = (attempt.get("events") or () for attempt in sample.get("error_retries") or ())
    events: Iterable[Json] = chain(sample.get("events") or (), *failed)
    for event in events:
        if event["event"] == "model":
            turns = [make(message) for message in event.get("input") or ()]
            for start, end in event.get("input_refs") or ():
                turns += shared[max(start, 0) : max(min(end, size), 0)]
            yield event, turns


@dataclass(slots=True, init=False)
class SampleDigests:
    """The digests of all texts of a sample in a log."""

    calls: dict[str, CallTexts]
    answer: str
    shape: str
    graded: str
    """Digest of question, target and extracted answer."""
    elsewhere: tuple[str, ...]
    """The places (output, last message) in which the sample shows a text other than its answer."""

    def __init__(self, sample: Json) -> None:
        """Compute the digests of one sample of a raw log."""
        resolve = partial(attached, sample=sample)
        self.calls = {
            event.get("uuid") or "": _call_texts(event, turns, resolve)
            for event, turns in calls_in(sample, lambda one: (_turn(one, resolve), _is_merged(one)))
        }
        completion = resolve((sample.get("output") or NOTHING).get("completion") or "")
        answer = resolve(answer_in(sample))
        self.answer = text_digest(answer)
        replies = {call.said for call in self.calls.values()}
        # If Inspect set the completion to some call's reply, compare with that reply.
        reply = completion if text_digest(completion) in replies else answer
        # In a task with several turns, the last message need not be the answer.
        ours = TURN_COUNT not in shape_in(sample)
        self.elsewhere = tuple(_elsewhere(sample, reply, resolve)) if ours else ()
        self.shape = facts_digest(*map(shape_in(sample).get, SHAPE))
        self.graded = _graded(sample)


def _elsewhere(sample: Json, answer: str, resolve: Told) -> Iterator[str]:
    choices: Sequence[Json] = (sample.get("output") or NOTHING).get("choices") or ()
    turns: Sequence[Json] = sample.get("messages") or ()
    places = [("its output", choice.get("message")) for choice in choices[:1]]
    places += [("its last message", turn) for turn in turns[-1:] if turn.get("role") == "assistant"]
    return (place for place, turn in places if message_parts(turn, resolve)[0] != storable(answer))


def _graded(sample: Json) -> str:
    target, question = sample.get("target"), sample.get("input")
    targets = cast(Sequence[object], target if isinstance(target, list) else (target or "",))
    text = question if isinstance(question, str) else ""
    return facts_digest(text, "".join(map(str, targets)), score_in(sample).get("answer"))


def _of_turns(turns: Iterable[str]) -> str:
    return hashlib.sha256(f"[{', '.join(turns)}]".encode()).hexdigest()


def _turn(message: object, resolve: Told) -> str:
    text, other_blocks = message_parts(message, resolve)
    role = _part(message, "role")
    return JSON([role, text, other_blocks]) if other_blocks else f"[{JSON(role)}, {JSON(text)}]"


def message_parts(message: object, resolve: Told) -> tuple[str, list[list[Any]]]:
    """Return a message's text, equal to `ChatMessage.text`, and its non-text blocks."""
    content, tool_calls = _part(message, "content"), _part(message, "tool_calls")
    if isinstance(content, str) and not tool_calls:  # nearly all messages
        return storable(resolve(content)), []
    blocks = cast(Sequence[object], content if isinstance(content, list) else ())
    texts = [str(_part(block, "text") or "") for block in blocks if _part(block, "type") == "text"]
    text = content if isinstance(content, str) else "\n".join(map(resolve, texts))
    other_blocks = [_other(block, resolve) for block in blocks if _part(block, "type") != "text"]
    calls = cast(Sequence[object], tool_calls or ())
    other_blocks += [
        ["call", _part(call, "function"), _sorted_arguments(_part(call, "arguments"), resolve)]
        for call in calls
    ]
    return storable(resolve(text)), other_blocks


READ = {"reasoning": ("reasoning", "summary"), "tool_use": ("name", "arguments", "result")}
"""Kind of a message's non-text block -> fields that are read; of other kinds (images) none."""


def _other(block: object, resolve: Told) -> list[Any]:
    kind = str(_part(block, "type"))
    read = (str(_part(block, name) or "") for name in READ.get(kind, ()))
    return [kind, *(storable(resolve(text)) for text in read)]


DEEPEST_ARGUMENTS = 100
"""Maximum nesting of a tool call's arguments that is read: only a forged log nests deeper."""


def _sorted_arguments(value: object, resolve: Told, level: int = 0) -> Any:
    if level > DEEPEST_ARGUMENTS:
        return None
    if isinstance(value, Mapping):
        table = cast(Mapping[object, object], value)
        items = {storable(str(key)): child for key, child in table.items() if child is not None}
        return {key: _sorted_arguments(items[key], resolve, level + 1) for key in sorted(items)}
    if isinstance(value, list | tuple):
        sequence = cast(Sequence[object], value)
        return [_sorted_arguments(item, resolve, level + 1) for item in sequence]
    if isinstance(value, str):
        return storable(resolve(value))
    return value if isinstance(value, int | float | bool) or value is None else str(value)


def _is_merged(message: Json) -> bool:
    return MERGED in (message.get("metadata") or NOTHING)


def _part(holder: object, name: str) -> object:
    if isinstance(holder, Mapping):
        return cast(Mapping[str, object], holder).get(name)
    return getattr(holder, name, None)


WRAPPERS = frozenset({"RetryError", "ModelGenerateError", "WorkerError"})
"""Exceptions that wrap another one: the wrapped exception gives the kind of failure."""

NO_CHOICES = "NoChoices"

DEEPEST_USAGE = 4
"""Maximum nesting of a provider's raw usage that is kept; providers use two levels."""
PROSE = object()
"""Marks a value of raw usage that may be prose, and is therefore omitted."""
_BIGGEST = 2**53
"""Largest integer kept in raw usage. A larger one is replaced by its bit length, since JSON parsers
do not agree on its value."""

_SHORT_NAME = re.compile(r"[A-Za-z0-9_.:/@-]{1,100}")
"""Pattern of a name in a provider's usage, e.g. `default`; anything longer may be prose."""


def last_event(span: str | None) -> ModelEvent | None:
    """Return the last model event of a span; None if no call was dispatched in it."""
    # The search stops at the span's begin, however long the history is.

    def is_ours(event: Event) -> bool:
        if isinstance(event, SpanBeginEvent):
            return event.id == span
        return isinstance(event, ModelEvent) and event.span_id == span

    event = transcript().history.find_last(is_ours) if span else None
    return event if isinstance(event, ModelEvent) else None


@contextmanager
def own_transcript() -> Generator[None]:
    """Record calls made inside this context in a separate Inspect transcript, then discard it."""
    # Outside an eval all calls share one transcript with all texts: too large for training.
    token = _transcript.set(Transcript())
    try:
        yield
    finally:
        _transcript.reset(token)


def made_readable(output: ModelOutput | None, event: ModelEvent | None) -> None:
    """Replace an event's characters that UTF-8 cannot encode; `output` was cleaned before."""
    # In place, because Inspect writes this event object to the log.
    if event is None:
        return
    if event.output is not output:
        make_storable(event.output)
    if event.call is not None and event.call.response is not None:
        event.call.response = make_storable(event.call.response)


def outcome_of(
    output: ModelOutput | None, event: ModelEvent | None, latency_s: float, *, refused: bool
) -> CallOutcome:
    """Return the outcome of a call that got a reply; `refused`: the request was too long."""
    if output is None:  # some callers, e.g. the judge, set no output
        output = event.output if event else None
    response = event.call.response if event and event.call else None
    reply = output if output and not output.empty else None
    return CallOutcome(
        event=event.uuid if event else None,
        usage=usage_of_reply(output, response) if output else None,
        cache=(event.cache if event else None) or "none",
        served_model=short_name(output.model) if output else None,
        request_id=_request_id(event, response),
        stop=reply.stop_reason if reply else None,
        error=NO_CHOICES if output and output.empty else None,
        refused=refused,
        latency_s=round(latency_s, 6),
        output_sha256=text_digest(reply.completion) if reply else None,
        sent_sha256=sent_digest(event.input) if event else None,
        reply_sha256=reply_digest(event.output if event and event.output.choices else reply)
        if reply
        else None,
        raw_usage=_numbers(raw_usage(response, output.metadata if output else None)),
    )


def failed(
    error: BaseException,
    event: ModelEvent | None,
    latency_s: float,
    broken: ModelOutput | None = None,
) -> CallOutcome:
    """Return a failed call's outcome: the kind of failure; `refused` if the call was not sent."""
    # A call that was cancelled, or passed one of Inspect's limits, after its reply came keeps the
    # reply's usage, and so does a partial reply (`broken`). If Inspect cannot parse a reply, its
    # usage is lost. A call without an event was refused by podium or cancelled in the queue.
    kind, status = kind_and_status(error)
    if event and (broken or not (event.error or event.pending)):
        outcome = outcome_of(broken or event.output, event, latency_s, refused=False)
        return replace(outcome, error=kind, http_status=status)
    response = event.call.response if event and event.call else None
    return CallOutcome(
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
    """Return the kind of a failure, and the HTTP status that came with it (None: no status)."""
    status = _status(error)
    while type(error).__name__ in WRAPPERS and error.__cause__ is not None:
        error = error.__cause__
        status = _status(error) or status
    return type(error).__name__, status


def _status(error: BaseException) -> int | None:
    response: object = getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (response, "status_code"), (error, "code")):
        status: object = getattr(holder, name, None)
        if isinstance(status, int) and 100 <= status < 600:
            return status
    return None


def _numbers(usage: Mapping[str, Any] | None, depth: int = 1) -> dict[str, Any] | None:
    """Return a provider's raw usage without anything that could be prose."""
    if usage is None:
        return None
    numbers = {name: _number(value, depth) for name, value in usage.items() if short_name(name)}
    return {name: value for name, value in numbers.items() if value is not PROSE}


def _number(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        below = cast(Mapping[str, Any], value)
        return _numbers(below, depth + 1) if depth < DEEPEST_USAGE else PROSE
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, int):
        return value if abs(value) <= _BIGGEST else f"{value.bit_length()}-bit integer"
    return short_name(value) or PROSE


def _request_id(event: ModelEvent | None, response: Mapping[str, Any] | None) -> str | None:
    if event and event.request_ids:
        *_, final = responses([request.model_dump() for request in event.request_ids], event.model)
        return short_name(final.get("id"))
    body: Mapping[str, Any] = response if isinstance(response, Mapping) else {}
    identifier: object = body.get("id") or body.get("responseId")  # Google's name for it
    return short_name(identifier)


def short_name(value: object) -> str | None:
    """Return a provider's name or id; None if the value may be prose."""
    return value if isinstance(value, str) and _SHORT_NAME.fullmatch(value) else None
