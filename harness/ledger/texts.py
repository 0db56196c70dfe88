"""The texts of a call as digests: what was sent and what came back, in the form that a log keeps.

A journal holds digests and a log the texts, so a change of either shows (harness/audit/texts.py).
The same functions read Inspect's objects while a call is made and the JSON of a log afterwards.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from harness.ledger.events import attached
from harness.ledger.raw_log import Json
from harness.records import PODIUM
from harness.surrogates import storable

JSON = json.JSONEncoder(ensure_ascii=False).encode
"""As `request_digest` writes it; one encoder for all of a million calls."""
Told = Callable[[str], str]
"""How a log's reference to a text is resolved."""
NOTHING: Json = {}
SHAPE = ("depth", "steps", "stopped", "plan")
"""What every log says of how an answer was made."""
MERGED = "combined_from"
"""Key under which Inspect says that it made one turn of several, as some providers want it."""


def sent_digest(messages: Iterable[object]) -> str:
    """Return the digest of a request; `request_digest` where it is nothing but roles and texts."""
    return _of_turns(_turn(message, _same) for message in messages)


def reply_digest(output: object) -> str:
    """Return the digest of a whole reply: its text, its reasoning and its calls of tools."""
    return _of_reply(output, _same)


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


class SampleTexts:
    """The texts of one sample of a raw log; messages that many calls share are read once."""

    def __init__(self, sample: Json) -> None:
        """Note where a sample keeps what its events refer to."""
        self._sample = sample
        self._pool: list[Json] = (sample.get("events_data") or NOTHING).get("messages") or []
        self._turns: dict[int, str] = {}
        self._merged = {at for at, one in enumerate(self._pool) if _is_merged(one)}

    def of(self, event: Json) -> CallTexts:
        """Return the texts of one ModelEvent."""
        inline: Sequence[Json] = event.get("input") or ()
        most = len(self._pool)  # whatever a log refers to, no more than it has is read
        refs = [
            at
            for first, end in event.get("input_refs") or ()
            for at in range(max(first, 0), min(end, most))
        ]
        turns = [*(_turn(message, self.told) for message in inline), *map(self._pooled, refs)]
        output: Json = event.get("output") or NOTHING
        came = bool(output.get("choices"))
        return CallTexts(
            _of_turns(turns),
            any(map(_is_merged, inline)) or not self._merged.isdisjoint(refs),
            text_digest(self.told(output.get("completion") or "")) if came else None,
            _of_reply(output, self.told) if came else None,
        )

    def _pooled(self, at: int) -> str:
        found = self._turns.get(at)
        if found is None:
            found = self._turns[at] = _turn(self._pool[at], self.told)
        return found

    def told(self, text: str) -> str:
        """Return what a text refers to."""
        return attached(text, self._sample)


@dataclass(slots=True, init=False)
class SampleDigests:
    """All that a log says of one sample in words, as digests."""

    calls: dict[str, CallTexts]
    """By the event's uuid."""
    answer: str
    shape: str
    """Of how the answer was made."""
    graded: str
    """Of what was graded: question, target and the answer that was found."""
    elsewhere: tuple[str, ...]
    """Where the sample shows another answer than its own."""

    def __init__(self, sample: Json) -> None:
        """Read one sample of a raw log."""
        texts = SampleTexts(sample)
        failed = (one.get("events") or () for one in sample.get("error_retries") or ())
        events = chain(sample.get("events") or (), *failed)
        self.calls = {
            event.get("uuid") or "": texts.of(event)
            for event in events
            if event["event"] == "model"
        }
        answer = texts.told((sample.get("output") or NOTHING).get("completion") or "")
        self.answer = text_digest(answer)
        self.elsewhere = tuple(_elsewhere(sample, answer, texts.told))
        shape: Json = (sample.get("metadata") or NOTHING).get(PODIUM) or NOTHING
        self.shape = facts_digest(*(shape.get(name) for name in SHAPE))
        self.graded = _graded(sample)


def _elsewhere(sample: Json, answer: str, told: Told) -> Iterator[str]:
    choices: Sequence[Json] = (sample.get("output") or NOTHING).get("choices") or ()
    if choices and _content(choices[0].get("message"), told)[0] != storable(answer):
        yield "its output"
    turns: Sequence[Json] = sample.get("messages") or ()
    last = turns[-1] if turns else NOTHING
    if last.get("role") == "assistant" and _content(last, told)[0] != storable(answer):
        yield "its last message"


def _graded(sample: Json) -> str:
    score: Json = (sample.get("scores") or NOTHING).get(PODIUM) or NOTHING
    target, asked = sample.get("target"), sample.get("input")
    parts = cast(Sequence[object], target if isinstance(target, list) else (target or "",))
    text = asked if isinstance(asked, str) else ""
    return facts_digest(text, "".join(map(str, parts)), score.get("answer"))


def _same(text: str) -> str:
    return text


def _of_turns(turns: Iterable[str]) -> str:
    return hashlib.sha256(f"[{', '.join(turns)}]".encode()).hexdigest()


def _turn(message: object, told: Told) -> str:
    """Return one turn as JSON: its role and its text, and what else there is in it."""
    text, others = _content(message, told)
    turn: list[Any] = [_part(message, "role"), text]
    return JSON([*turn, others] if others else turn)


def _of_reply(output: object, told: Told) -> str:
    said = storable(told(str(_part(output, "completion") or "")))
    choices = cast(Sequence[object], _part(output, "choices") or ())
    parts = [_content(_part(choice, "message"), told) for choice in choices]
    return hashlib.sha256(JSON([said, parts]).encode()).hexdigest()


def _content(message: object, told: Told) -> tuple[str, list[list[Any]]]:
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
        ["call", _part(one, "function"), _plain(_part(one, "arguments"), told)] for one in calls
    ]
    return storable(told(text)), others


READ = {"reasoning": ("reasoning", "summary"), "tool_use": ("name", "arguments", "result")}
"""What is read of parts that are no text; of pictures and sounds nothing but that they are there:
a log may be kept without them."""


def _other(part: object, told: Told) -> list[Any]:
    kind = str(_part(part, "type"))
    read = (str(_part(part, name) or "") for name in READ.get(kind, ()))
    return [kind, *(storable(told(text)) for text in read)]


DEEPEST = 100
"""Levels of a tool's arguments that are read: no model nests so far, and a forger may."""


def _plain(value: object, told: Told, level: int = 0) -> Any:
    """Return arguments in one form: sorted, and without what a log leaves out."""
    if level > DEEPEST:
        return None
    if isinstance(value, Mapping):
        table = cast(Mapping[object, object], value)
        kept = {storable(str(key)): one for key, one in table.items() if one is not None}
        return {key: _plain(kept[key], told, level + 1) for key in sorted(kept)}
    if isinstance(value, list | tuple):
        return [_plain(one, told, level + 1) for one in cast(Sequence[object], value)]
    if isinstance(value, str):
        return storable(told(value))
    return value if isinstance(value, int | float | bool) or value is None else str(value)


def _is_merged(message: Json) -> bool:
    return MERGED in (message.get("metadata") or NOTHING)


def _part(thing: object, name: str) -> object:
    """Return a field of one of Inspect's objects, or of its JSON."""
    if isinstance(thing, Mapping):
        return cast(Mapping[str, object], thing).get(name)
    return getattr(thing, name, None)
