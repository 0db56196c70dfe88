"""A server of one dialect that gives a canned answer, and replies to give."""

import asyncio
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import strategies as st
from inspect_ai.tool import ToolCall
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.responses import Response as HttpResponse
from starlette.routing import Route

from podium.harness.listener import bound_socket, listen
from podium.harness.records import Usage
from podium.serving.exchange import (
    Dialect,
    Refusal,
    RequestBill,
    ServedReply,
    ServedRequest,
    StepBegun,
    StreamEvent,
)
from tests.harness.in_thread import served

TRACE = "req-20261123-0123456789abcdef"
CREATED = 1_795_000_000
TEXT = "Vier – 四. " * 60 + "\n\nEnd."
BILL = RequestBill(
    visible=Usage(input=90, output=40, cache_read=7, cache_write=3, reasoning=11),
    orchestration=Usage(input=900, output=300, cache_read=50),
    calls=4,
    usd=Decimal("0.01234"),
)
CALLS = (
    ToolCall(id="call_1", function="weather", arguments={"city": "Köln"}),
    ToolCall(id="call_2", function="clock", arguments={}),
)
WEATHER: Mapping[str, Any] = {
    "name": "weather",
    "description": "Say it.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
CLOCK: Mapping[str, Any] = {"name": "clock"}
STEP = StepBegun(2, 3, "atlas")
SAID = "step 2 of 3: atlas"


def canned_reply(text: str = TEXT, **more: Any) -> ServedReply:
    """Return a reply with a bill."""
    known = {"trace": TRACE, "model": "podium/moa", "created": CREATED, "bill": BILL}
    return ServedReply(text=text, **{**known, **more})


def reading(dialect: Dialect, body: object) -> ServedRequest:
    """Return a body as a dialect reads it."""

    async def read() -> ServedRequest:
        return await dialect.read(json.loads(json.dumps(body)))

    return asyncio.run(read())


def refused(dialect: Dialect, body: object) -> Refusal:
    """Return why a dialect does not read a body."""
    with pytest.raises(Refusal) as caught:
        reading(dialect, body)
    assert caught.value.status == 400
    return caught.value


def streamed(dialect: Dialect, request: ServedRequest, reply: ServedReply) -> list[StreamEvent]:
    """Return all events of a reply that is waited for."""
    writer = dialect.stream(request, TRACE, CREATED)
    waiting = [*writer.begin(), *writer.beat(None), *writer.beat(STEP)]
    return [*waiting, *writer.finish(reply)]


def failed(dialect: Dialect, request: ServedRequest, refusal: Refusal) -> list[StreamEvent]:
    """Return all events of a stream that fails."""
    writer = dialect.stream(request, TRACE, CREATED)
    return [*writer.begin(), *writer.beat(STEP), *writer.fail(refusal)]


COUNTS = st.integers(0, 1_000_000)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Return counts that one call can have."""
    asked, write = draw(COUNTS), draw(COUNTS)
    return Usage(
        input=draw(COUNTS),
        output=draw(COUNTS),
        cache_read=draw(COUNTS),
        cache_write=write,
        reasoning=draw(st.none() | COUNTS),
        cache_write_1h=draw(st.integers(0, write)),
        orchestration_in=asked,
        orchestration_in_cached=draw(st.integers(0, asked)),
        orchestration_out=draw(COUNTS),
        total_reported=draw(st.none() | COUNTS),
    )


BILLS = st.builds(
    RequestBill,
    visible=st.none() | usages(),
    orchestration=st.none() | usages(),
    calls=COUNTS,
    usd=st.none() | st.decimals(0, 1000, places=9),
)


@contextmanager
def canned_server(dialect: Dialect, path: str, reply: ServedReply) -> Generator[str]:
    """Yield the base URL of a server whose model `broken` fails, streamed or not."""

    async def answer(request: Request) -> HttpResponse:
        try:
            asked = await dialect.read(await request.json())
        except Refusal as refusal:
            return JSONResponse(dialect.error(refusal, TRACE), refusal.status)
        broken = Refusal(502, "worker_failed", "atlas failed.") if asked.model == "broken" else None
        if asked.stream:
            events = failed(dialect, asked, broken) if broken else streamed(dialect, asked, reply)
            return StreamingResponse(sent(events), media_type="text/event-stream")
        if broken:
            return JSONResponse(dialect.error(broken, TRACE), broken.status)
        return JSONResponse(dialect.reply(asked, reply))

    async def sent(events: list[StreamEvent]) -> AsyncGenerator[str]:
        for event in events:
            name = f"event: {event.name}\n" if event.name else ""
            yield f"{name}data: {event.data}\n\n"

    app = Starlette(routes=[Route(f"/v1/{path}", answer, methods=["POST"])])
    with bound_socket("127.0.0.1", 0) as taken:
        url = listen(taken)
        with served(app, taken):
            yield f"{url}/v1"
