"""What Inspect tells of a call while it is made: its hooks, how it ended, digests of its texts."""

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
    """A call's journal cannot be written. No `Exception`: Inspect would go on with the call."""


class NotAllowed(BaseException):
    """An attempt may not be paid for, as its cause says; no `Exception` for the same reason."""


FIELDS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "input_tokens_cache_read",
    "input_tokens_cache_write",
    "reasoning_tokens",
)
"""Of Inspect's `ModelUsage`, which says None for what a provider does not report."""


@dataclass(slots=True)
class _HookTotals:
    """Sums by model of the tasks that have an open journal."""

    tasks: dict[str, dict[str, Counter[str]]] = field(
        default_factory=dict[str, dict[str, Counter[str]]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, task: str) -> None:
        with self._lock:
            listen()
            self.tasks[task] = defaultdict(Counter)

    def add(self, data: ModelUsageData) -> None:
        """Count one finished call; one of a task without a journal is nobody's."""
        counts = {name: getattr(data.usage, name) or 0 for name in FIELDS}
        with self._lock:
            if (models := self.tasks.get(data.task_name or "")) is not None:
                models[data.model_name].update({"calls": 1, **counts})

    def end(self, task: str) -> Iterator[dict[str, Any]]:
        """Stop counting a task; yield one record per model, by name."""
        with self._lock:
            models = self.tasks.pop(task, {})
        for model, sums in sorted(models.items()):
            yield {"model": model, **{name: sums[name] for name in ("calls", *FIELDS)}}


class _Attempts(Protocol):
    """What `CallInFlight` (recorder.py) is told of its attempts."""

    async def goes_out(self) -> None: ...

    def retried(self, attempt: int, error: str | None, status: int | None) -> None: ...


def _in_flight() -> _Attempts | None:
    return cast("_Attempts | None", current().in_flight)


class _LedgerHooks(Hooks):
    """Pays and counts; on while a journal is open, and for a call that is to be in one or paid."""

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
            except OSError as error:
                raise Unwritten from error
        elif data.task_name in PLAYED and not data.model_name.startswith(UNPAID):
            # The only exception that Inspect lets a hook stop a call by.
            said = FOREIGN.format(data.model_name)
            raise LimitExceededError("custom", value=1, limit=0, message=said)

    async def on_model_retry(self, data: ModelRetry) -> None:
        if call := _in_flight():
            call.retried(data.attempt, data.exception_type, data.status_code)


PLAYED: set[str] = set()
"""Tasks of others that systems play: none of their calls may go past the ledger."""
UNPAID = (SYSTEMS, "mockllm/", "none/")
"""Begin the names of models that cost nothing themselves."""
FOREIGN = (
    "This task asks {} by itself, which no ledger would have: add the model to the pool file, in a "
    "table of its role, e.g. [roles.grader]"
)

COUNTED = _HookTotals()
"""Of this process, as Inspect has one instance of each hooks class per process."""


def refuse_calls_past_ledger(task: str) -> None:
    """Let no model be asked in a task, by its name, but those whose calls are written down."""
    listen()
    PLAYED.add(task)


@cache
def listen() -> None:
    """Make the hooks known to Inspect, once, when the first call needs them."""
    # Not through an entry point: Inspect would then greet every command of a user with a count of
    # hooks, podium's own included, where nothing is counted.
    register = hooks("podium_ledger", "Pays for calls and counts them while podium asks.")
    register(_LedgerHooks)


Told = Callable[[str], str]
SHAPE = ("depth", "steps", "stopped", "plan")
"""What every log says of how an answer was made."""
MERGED = "combined_from"
"""Key under which Inspect says that it made one turn of several, as some providers want it."""


def sent_digest(messages: Iterable[object]) -> str:
    """Return the digest of a request; `request_digest` where it is nothing but roles and texts."""
    return _of_turns(_turn(message, str) for message in messages)


def reply_digest(output: object, told: Told = str) -> str:
    """Return the digest of a whole reply: its text, its reasoning and its calls of tools."""
    said = storable(told(str(_part(output, "completion") or "")))
    choices = cast(Sequence[object], _part(output, "choices") or ())
    parts = [message_parts(_part(choice, "message"), told) for choice in choices]
    return hashlib.sha256(JSON([said, parts]).encode()).hexdigest()


def text_digest(text: str) -> str:
    """Return the digest of a text, whatever a model has put into it."""
    return hashlib.sha256(storable(text).encode()).hexdigest()


def facts_digest(*facts: object) -> str:
    """Return one digest over several plain values, each of them text, number or None."""
    known = [_scalar(fact) for fact in facts]
    return hashlib.sha256(JSON(known).encode()).hexdigest()


def _scalar(fact: object) -> object:
    if isinstance(fact, str):
        return storable(fact)
    return fact if fact is None or isinstance(fact, int | float) else type(fact).__name__


@dataclass(slots=True)
class CallTexts:
    """What a log says was sent and came back, as digests."""

    sent: str
    merged: bool
    """Whether Inspect made one turn of several, so that no digest from before it can be equal."""
    said: str | None
    """Of the completion alone, as older journals have it; None where nothing came back."""
    reply: str | None


def _call_texts(event: Json, turns: Sequence[tuple[str, bool]], told: Told) -> CallTexts:
    output: Json = event.get("output") or NOTHING
    came = bool(output.get("choices"))
    return CallTexts(
        _of_turns(turn for turn, _ in turns),
        any(merged for _, merged in turns),
        text_digest(told(output.get("completion") or "")) if came else None,
        reply_digest(output, told) if came else None,
    )


Turn = TypeVar("Turn")


def calls_in(sample: Json, make: Callable[[Json], Turn]) -> Iterator[tuple[Json, list[Turn]]]:
    """Yield each model event of a sample, with what is made of the messages that were sent."""
    pool: list[Json] = (sample.get("events_data") or NOTHING).get("messages") or []
    shared = [*map(make, pool)]
    most = len(shared)  # whatever a log refers to, no more than it has is read
    failed = (one.get("events") or () for one in sample.get("error_retries") or ())
    events: Iterable[Json] = chain(sample.get("events") or (), *failed)
    for event in events:
        if event["event"] == "model":
            turns = [make(message) for message in event.get("input") or ()]
            for first, end in event.get("input_refs") or ():
                turns += shared[max(first, 0) : max(min(end, most), 0)]
            yield event, turns


@dataclass(slots=True, init=False)
class SampleDigests:
    """All that a log says of one sample in words, as digests."""

    calls: dict[str, CallTexts]
    answer: str
    shape: str
    graded: str
    """Of what was graded: question, target and the answer that was found."""
    elsewhere: tuple[str, ...]
    """Where the sample shows another answer than its own."""

    def __init__(self, sample: Json) -> None:
        """Read one sample of a raw log."""
        told = partial(attached, sample=sample)
        self.calls = {
            event.get("uuid") or "": _call_texts(event, turns, told)
            for event, turns in calls_in(sample, lambda one: (_turn(one, told), _is_merged(one)))
        }
        said = told((sample.get("output") or NOTHING).get("completion") or "")
        answer = told(answer_in(sample))
        self.answer = text_digest(answer)
        replies = {one.said for one in self.calls.values()}
        shown = said if text_digest(said) in replies else answer  # a reply, where Inspect chose one
        # The messages of a task with turns are its own: a user may have spoken last.
        ours = TURN_COUNT not in shape_in(sample)
        self.elsewhere = tuple(_elsewhere(sample, shown, told)) if ours else ()
        self.shape = facts_digest(*map(shape_in(sample).get, SHAPE))
        self.graded = _graded(sample)


def _elsewhere(sample: Json, answer: str, told: Told) -> Iterator[str]:
    choices: Sequence[Json] = (sample.get("output") or NOTHING).get("choices") or ()
    turns: Sequence[Json] = sample.get("messages") or ()
    shown = [("its output", one.get("message")) for one in choices[:1]]
    shown += [("its last message", one) for one in turns[-1:] if one.get("role") == "assistant"]
    return (where for where, one in shown if message_parts(one, told)[0] != storable(answer))


def _graded(sample: Json) -> str:
    target, asked = sample.get("target"), sample.get("input")
    parts = cast(Sequence[object], target if isinstance(target, list) else (target or "",))
    text = asked if isinstance(asked, str) else ""
    return facts_digest(text, "".join(map(str, parts)), score_in(sample).get("answer"))


def _of_turns(turns: Iterable[str]) -> str:
    return hashlib.sha256(f"[{', '.join(turns)}]".encode()).hexdigest()


def _turn(message: object, told: Told) -> str:
    text, others = message_parts(message, told)
    role = _part(message, "role")
    return JSON([role, text, others]) if others else f"[{JSON(role)}, {JSON(text)}]"


def message_parts(message: object, told: Told) -> tuple[str, list[list[Any]]]:
    """Return a message's text as `ChatMessage.text` has it, and its parts that are no text."""
    content, called = _part(message, "content"), _part(message, "tool_calls")
    if isinstance(content, str) and not called:  # nearly all messages
        return storable(told(content)), []
    parts = cast(Sequence[object], content if isinstance(content, list) else ())
    texts = [str(_part(one, "text") or "") for one in parts if _part(one, "type") == "text"]
    text = content if isinstance(content, str) else "\n".join(map(told, texts))
    others = [_other(one, told) for one in parts if _part(one, "type") != "text"]
    calls = cast(Sequence[object], called or ())
    others += [
        ["call", _part(one, "function"), _sorted_arguments(_part(one, "arguments"), told)]
        for one in calls
    ]
    return storable(told(text)), others


READ = {"reasoning": ("reasoning", "summary"), "tool_use": ("name", "arguments", "result")}
"""What is read of parts that are no text; of pictures and sounds nothing but that they are there:
a log may be kept without them."""


def _other(part: object, told: Told) -> list[Any]:
    kind = str(_part(part, "type"))
    read = (str(_part(part, name) or "") for name in READ.get(kind, ()))
    return [kind, *(storable(told(text)) for text in read)]


DEEPEST_ARGUMENTS = 100
"""Levels of a tool's arguments that are read: no model nests so far, and a forger may."""


def _sorted_arguments(value: object, told: Told, level: int = 0) -> Any:
    if level > DEEPEST_ARGUMENTS:
        return None
    if isinstance(value, Mapping):
        table = cast(Mapping[object, object], value)
        kept = {storable(str(key)): one for key, one in table.items() if one is not None}
        return {key: _sorted_arguments(kept[key], told, level + 1) for key in sorted(kept)}
    if isinstance(value, list | tuple):
        return [_sorted_arguments(one, told, level + 1) for one in cast(Sequence[object], value)]
    if isinstance(value, str):
        return storable(told(value))
    return value if isinstance(value, int | float | bool) or value is None else str(value)


def _is_merged(message: Json) -> bool:
    return MERGED in (message.get("metadata") or NOTHING)


def _part(thing: object, name: str) -> object:
    if isinstance(thing, Mapping):
        return cast(Mapping[str, object], thing).get(name)
    return getattr(thing, name, None)


WRAPPERS = frozenset({"RetryError", "ModelGenerateError", "WorkerError"})
"""Exceptions that only carry another one: the kind of failure is the other's."""

NO_CHOICES = "NoChoices"

DEEPEST_USAGE = 4
"""Levels of a provider's own usage that are kept; theirs have two."""
PROSE = object()
"""What may be words, and is left out."""
_BIGGEST = 2**53
"""Numbers beyond are kept as texts: readers of JSON do not agree on them."""

_SHORT_NAME = re.compile(r"[A-Za-z0-9_.:/@-]{1,100}")
"""What a name in a provider's usage looks like, e.g. `default`; anything longer may be prose."""


def last_event(span: str | None) -> ModelEvent | None:
    """Return the last model event of a span; None when nothing was dispatched in it."""
    # No further back than to where the span began, however long the history is.

    def is_ours(event: Event) -> bool:
        if isinstance(event, SpanBeginEvent):
            return event.id == span
        return isinstance(event, ModelEvent) and event.span_id == span

    found = transcript().history.find_last(is_ours) if span else None
    return found if isinstance(found, ModelEvent) else None


@contextmanager
def own_transcript() -> Generator[None]:
    """Let calls made within be events of a transcript of their own, which is then forgotten."""
    # Outside an eval all calls of a process share one, which keeps every request and reply: a long
    # training would not fit into memory.
    token = _transcript.set(Transcript())
    try:
        yield
    finally:
        _transcript.reset(token)


def made_readable(output: ModelOutput | None, event: ModelEvent | None) -> None:
    """Rewrite what a provider sent and no file can hold; who asked has rewritten the output."""
    # In place: the log gets the event from Inspect.
    if event is None:
        return
    if event.output is not output:
        make_storable(event.output)
    if event.call is not None and event.call.response is not None:
        event.call.response = make_storable(event.call.response)


def outcome_of(
    output: ModelOutput | None, event: ModelEvent | None, latency_s: float, *, refused: bool
) -> CallOutcome:
    """Return the outcome of a call that gave a reply."""
    if output is None:  # who asked has no reply of its own, as with a judge
        output = event.output if event else None
    response = event.call.response if event and event.call else None
    said = output if output and not output.empty else None
    return CallOutcome(
        event=event.uuid if event else None,
        usage=usage_of_reply(output, response) if output else None,
        cache=(event.cache if event else None) or "none",
        served_model=short_name(output.model) if output else None,
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


def failed(
    error: BaseException,
    event: ModelEvent | None,
    latency_s: float,
    broken: ModelOutput | None = None,
) -> CallOutcome:
    """Return the outcome of a call without a reply: its kind, and whether it was ever sent."""
    # A call that was cancelled, or passed a limit of Inspect's, after its reply has come keeps the
    # reply's usage, and so does a `broken` one. Of a reply that Inspect could not read it keeps no
    # body, so its usage is lost. One that has no event was refused by us or cancelled while it
    # waited to be sent.
    kind, status = kind_and_status(error)
    if event and (broken or not (event.error or event.pending)):
        ended = outcome_of(broken or event.output, event, latency_s, refused=False)
        return replace(ended, error=kind, http_status=status)
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
    """Return the kind of a failure and the HTTP status that came with it, if one did."""
    status = _status(error)
    while type(error).__name__ in WRAPPERS and error.__cause__ is not None:
        error = error.__cause__
        status = _status(error) or status
    return type(error).__name__, status


def _status(error: BaseException) -> int | None:
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
    kept = {name: _number(value, depth) for name, value in usage.items() if short_name(name)}
    return {name: value for name, value in kept.items() if value is not PROSE}


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
        *_, last = responses([one.model_dump() for one in event.request_ids], event.model)
        return short_name(last.get("id"))
    said: Mapping[str, Any] = response if isinstance(response, Mapping) else {}
    found: object = said.get("id") or said.get("responseId")  # Google's name for it
    return short_name(found)


def short_name(value: object) -> str | None:
    """Return a name or id that a provider gave; None for what may be prose."""
    return value if isinstance(value, str) and _SHORT_NAME.fullmatch(value) else None
