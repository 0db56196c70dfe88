"""The model calls in one sample of a raw log, each with the step around it.

    with open_log(path) as log:
        for sample in log.samples():
            calls, lost = [*events_of(sample)], [*lost_in(sample)]

The same call may stand in several logs of a resumed run: tell them apart by `CallEvent.id`.
Nothing is priced or judged here, and nothing is validated beyond what is read. What each question
got is harness/ledger/attempts.py.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import nan
from typing import Literal, cast

from harness.ledger.raw_log import Json
from harness.ledger.row import Cache
from harness.records import PODIUM, SECONDS, Usage
from harness.usage import Raw, raw_usage, usage_from_json, usage_of_event

Phase = Literal["solve", "score"]

IN_FLIGHT = "in flight when the run was stopped"
"""The error of a call that a killed run left behind: what was billed for it is unknown."""
UNWRITTEN = "ended, and its outcome could not be written down"
"""The error of a call that neither record has the end of, though its process went on."""
ATTACHMENT = "attachment://"
ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid", "mistral-correlation-id")
"""Headers with the id of a request, in the order in which Inspect looks for them."""
OWN_HEADERS = {"anthropic": "request-id", "bedrock": ID_HEADERS[2], "mistral": ID_HEADERS[3]}
"""The one that a provider sends, by the first part of a model's name; the first one elsewhere."""
NOTHING: Json = {}
Span = tuple[str | None, str | None, str]
"""Parent, type and name."""
Place = tuple[Phase, str | None]
"""Phase, and name of the innermost workflow step."""


@dataclass(slots=True)
class CallEvent:
    """One ModelEvent. Not frozen: a million are made, and a frozen one takes three times as long.

    Words of a provider (`error`) are as the log has them: `harness.private.said` before showing.
    """

    id: str
    """uuid of the event."""
    span: str | None
    """Inspect's span around the call; the journal's intent names it too."""
    phase: Phase
    step: str | None
    """Name of the innermost workflow step, e.g. `step 2: sage`."""
    role: str
    """Worker name, `conductor` or `grader`; the model's name where the call had no role."""
    model: str
    served_model: str | None
    usage: Usage | None
    """None when the provider reported none, or one that cannot be."""
    counted: Usage | None
    """As Inspect counted it: what is in Inspect's totals."""
    cache: Cache
    pending: bool
    """Begun and never ended: the run was stopped."""
    error: str | None
    stop: str | None
    started: str
    completed: str | None
    working_s: float | None
    retries: int
    """HTTP attempts before the one that is logged."""
    request_ids: tuple[Json, ...]
    """`{id, header, status}` of each HTTP response of this call that had an id, one for each."""
    max_tokens: int | None
    raw_usage: Json | None
    """The provider's own usage, where the log kept its response."""
    longest_s: float | None
    """How long its whole sample took by a steady clock, where the log says."""

    @property
    def refused(self) -> bool:
        """Say whether the provider refused the request for its length: nothing was generated."""
        return self.stop == "model_length" and not (self.usage and self.usage.output)

    @property
    def latency_s(self) -> float:
        """Seconds from begin to end, waiting included; not-a-number when nobody knows."""
        if self.completed:
            took = _steady(seconds_between(self.started, self.completed), self.longest_s)
            return nan if took is None else took
        return nan if self.working_s is None else self.working_s


def events_of(sample: Json) -> Iterator[CallEvent]:
    """Yield the calls of a sample's newest attempt, in the order in which they began.

    A pending call of a sample without an error is left out: the sample may still be running.
    """
    return _calls(sample, cast(list[Json], sample.get("events") or []))


def lost_in(sample: Json) -> Iterator[CallEvent]:
    """Yield what is left of attempts that failed and were made again within the run.

    Inspect keeps only the events from such an attempt's last model call on.
    """
    for failure in sample.get("error_retries") or ():
        yield from _calls(sample, failure.get("events") or [])


def _calls(sample: Json, events: list[Json]) -> Iterator[CallEvent]:
    stopped = sample.get("error") is not None
    places = Places(events)
    for event in events:
        if event["event"] == "model" and (stopped or not event.get("pending")):
            yield _call(event, places.of(event.get("span_id")), sample)


def _call(event: Json, place: Place, sample: Json) -> CallEvent:
    output: Json = event.get("output") or {}
    choices = output.get("choices")
    model: str = event["model"]
    error = event.get("error")
    raw = _raw(event, output)
    counted = usage_from_json(output.get("usage"))
    return CallEvent(
        event.get("uuid") or "",
        event.get("span_id"),
        place[0],
        place[1],
        event.get("role") or model,
        model,
        output.get("model") or None,
        usage_of_event(counted, raw),
        counted,
        event.get("cache") or "none",
        bool(event.get("pending")),
        attached(error, sample) if error else None,
        choices[0].get("stop_reason") if choices else None,
        event["timestamp"],
        event.get("completed"),
        event.get("working_time"),
        event.get("retries") or 0,
        tuple(responses(event.get("request_ids") or (), model)),
        (event.get("config") or NOTHING).get("max_tokens"),
        None if raw is None else dict(raw),
        sample.get("total_time"),
    )


def _raw(event: Json, output: Json) -> Raw | None:
    """Return the provider's own usage; what an error was answered with has none."""
    call: Json = event.get("call") or NOTHING
    return None if call.get("error") else raw_usage(call.get("response"), output.get("metadata"))


def responses(ids: Iterable[Json], model: str) -> Iterator[Json]:
    """Yield one id for each HTTP response: its provider's own, where a gateway has added others.

    Inspect lists the ids of a response in the order of `ID_HEADERS`, response after response: what
    does not come later in it than the id before, or has another status, is of the next response.
    """
    own = OWN_HEADERS.get(model.partition("/")[0], ID_HEADERS[0])
    one: Json | None = None
    place = -1
    for id in ids:
        header = id.get("header")
        here = ID_HEADERS.index(header) if header in ID_HEADERS else -1
        if one is not None and (here <= place or id.get("status") != one.get("status")):
            yield one
            one = None
        if one is None or header == own:
            one = id
        place = here
    if one is not None:
        yield one


def attached(text: str, sample: Json) -> str:
    """Return a text that Inspect may have put among the sample's attachments."""
    if not text.startswith(ATTACHMENT):
        return text
    return (sample.get("attachments") or NOTHING).get(text.removeprefix(ATTACHMENT), text)


class Places:
    """Where the spans of a sample lie: Inspect's `event_tree`, without building it.

    A span whose beginning an interrupted sample has lost is nowhere: what it held lies at the root.
    """

    def __init__(self, events: Iterable[Json]) -> None:
        """Note the spans that begin in some events."""
        self._spans: dict[str, Span] = {
            event["id"]: (event.get("parent_id"), event.get("type"), event["name"])
            for event in events
            if event["event"] == "span_begin"
        }
        self._known: dict[str, Place] = {}

    def of(self, span: str | None) -> Place:
        """Return the phase and the innermost workflow step of what lies in a span."""
        if span is None or span not in self._spans:
            return "solve", None
        found = self._known.get(span)
        if found is None:
            found = self._known[span] = self._found(span)
        return found

    def is_root(self, event: Json) -> bool:
        """Say whether a span lies in no other."""
        return event.get("parent_id") not in self._spans

    def _found(self, span: str) -> Place:
        phase: Phase = "solve"
        step: str | None = None
        here: str | None = span
        seen: set[str] = set()
        while here in self._spans and here not in seen:
            seen.add(here)
            here, kind, name = self._spans[here]
            if step is None and kind == "workflow_step":
                step = name
            if name == "scorers":
                phase = "score"
        return phase, step


def solver_seconds(sample: Json) -> float | None:
    """Return how long the solvers took; None for a sample that did not get through them.

    Podium's own measure comes first, by a clock that nobody sets; it is unknown where replies were
    read from the store. Older logs have only times of day: what is longer than the whole sample, by
    Inspect's steady clock, is a clock that was set.
    """
    shape = (sample.get("metadata") or NOTHING).get(PODIUM) or NOTHING
    if SECONDS in shape:
        return shape[SECONDS]
    return _steady(_solver_span(sample), sample.get("total_time"))


SLACK_S = 1.0
"""By how much two clocks may differ over a sample."""


def _steady(seconds: float | None, longest: float | None) -> float | None:
    """Return a difference of two times of day; None where the clock was set in between."""
    if seconds is None or seconds < 0 or (longest is not None and seconds > longest + SLACK_S):
        return None
    return seconds


def _solver_span(sample: Json) -> float | None:
    events: list[Json] = sample.get("events") or []
    places = Places(events)
    begun: dict[str, str] = {}
    for event in events:
        kind = event["event"]
        if kind == "span_begin" and event["name"] == "solvers" and places.is_root(event):
            begun[event["id"]] = event["timestamp"]
        elif kind == "span_end" and event["id"] in begun:
            return seconds_between(begun[event["id"]], event["timestamp"])
    return None


def seconds_between(begin: str, end: str) -> float:
    """Return the seconds between two ISO times."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
