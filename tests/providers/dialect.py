"""What every dialect needs to know of a request, and to put into a reply."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.harness.records import Usage

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server understood it."""

    model: str
    prompt: str
    """All of the request's texts."""
    streamed: bool
    service: str | None
    body: Json


@dataclass(frozen=True, slots=True)
class Said:
    """A reply that is to be written."""

    id: str
    model: str
    text: str
    usage: Usage | None
    """What the reply says about tokens."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one API speaks."""

    name: str
    request_id_header: str
    asked: Callable[[Json, Mapping[str, str]], Asked]
    """From a request's body and the parameters of its path."""
    body: Callable[[Said], Json]
    events: Callable[[Said], Sequence[tuple[str, Json]]]
    """A streamed reply, as (event name, data)."""
    error: Callable[[int], Json]
    ends_with_done: bool = False


def server_sent(events: Sequence[tuple[str, Json]], done: bool) -> bytes:
    """Return events as a stream of server-sent events."""
    lines = [
        (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"
        for name, data in events
    ]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def texts(found: object) -> str:
    """Return every text below some JSON, one after the other."""
    if isinstance(found, str):
        return found
    if isinstance(found, Mapping):
        return " ".join(texts(value) for key, value in found.items() if key != "role")
    return " ".join(texts(one) for one in found) if isinstance(found, list) else ""


def total(usage: Usage) -> int:
    """Return what a reply calls the total: the sum of the parts, unless it was told otherwise."""
    return usage.parts_total if usage.total_reported is None else usage.total_reported


def orchestration(usage: Usage) -> tuple[Json, Json]:
    """Return what Sakana adds to the details of input and output; nothing where there is none."""
    if not (usage.orchestration_in or usage.orchestration_out):
        return {}, {}
    inside = {
        "orchestration_input_tokens": usage.orchestration_in,
        "orchestration_input_cached_tokens": usage.orchestration_in_cached,
    }
    return inside, {"orchestration_output_tokens": usage.orchestration_out}
