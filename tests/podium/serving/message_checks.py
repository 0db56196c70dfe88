"""What must hold of whatever answers in Anthropic's dialect; AssertionError says what does not.

And a tiny server of the dialect, which answers as a test says.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, get_args

from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.shared.error_type import ErrorType
from inspect_ai.model import GenerateConfig
from inspect_ai.tool import ToolCall
from pydantic import TypeAdapter
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from podium.harness.listener import bound_socket, listen
from podium.harness.records import Usage
from podium.harness.usage import dialect_of, usage_from_raw
from podium.serving.anthropic_messages import AnthropicMessages
from podium.serving.exchange import (
    Refusal,
    RequestBill,
    ServedReply,
    ServedRequest,
    StepBegun,
    StreamEvent,
)
from tests.harness.in_thread import served

TRACE = "req-20261123-0123456789abcdef"
BILL = RequestBill(
    visible=Usage(20, 9, cache_read=4, cache_write=3, cache_write_1h=1, reasoning=2),
    orchestration=Usage(700, 80, cache_read=30, reasoning=60),
    calls=4,
    usd=Decimal("0.0125"),
)
STEPS = (StepBegun(0, None, ""), None, StepBegun(2, 3, "atlas"))
EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
ERROR_TYPES = {*get_args(ErrorType), "request_too_large"}  # which anthropic's types leave out

Json = dict[str, Any]
HELLO: Json = {
    "model": "podium/toy",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello."}],
}
WEATHER: Json = {
    "name": "weather",
    "description": "Say the weather.",
    "input_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "A city."},
            "days": {"type": "array", "items": {"const": 1}, "minItems": 1},
        },
        "required": ["place"],
    },
}
CALLS = (
    ToolCall(id="call_1", function="weather", arguments={"place": "Kyōto", "days": [1]}),
    ToolCall(id="call_2", function="weather", arguments={}),
)


def read_as(bill: RequestBill) -> Usage | None:
    """Return what a bill's usage must be read as: all of its tokens, or unknown."""
    seen, rest = bill.visible, bill.orchestration
    if seen is None or rest is None:
        return None
    return Usage(
        input=seen.input,
        output=seen.output,
        cache_read=seen.cache_read,
        cache_write=seen.cache_write,
        cache_write_1h=seen.cache_write_1h,
        reasoning=seen.reasoning,
        orchestration_in=rest.input_total + rest.orchestration_in + seen.orchestration_in,
        orchestration_in_cached=(
            rest.cache_read + rest.orchestration_in_cached + seen.orchestration_in_cached
        ),
        orchestration_out=rest.output + rest.orchestration_out + seen.orchestration_out,
        total_reported=bill.total_tokens,
    )


def check_usage(usage: Json, bill: RequestBill) -> None:
    """A usage is the bill, to the token and to the cent, or says that it is not the whole."""
    assert dialect_of(usage) == "anthropic"
    read = usage_from_raw("anthropic", usage)
    assert read == read_as(bill)
    assert read is None or read.parts_total == usage["total_tokens"]
    assert usage.get("cost") == (None if bill.usd is None else float(bill.usd))
    if read is None:
        assert usage["incomplete"] is True
        assert "total_tokens" not in usage


def check_message(body: Json, reply: ServedReply) -> None:
    """A body is a message of Anthropic's, and says what was answered."""
    found = Message.model_validate(body, strict=True)
    assert found.id
    assert found.model == reply.model
    assert found.stop_reason is not None
    assert (found.stop_reason == "tool_use") == bool(reply.tool_calls)
    assert {"stop_sequence", "stop_details", "container"} <= set(body)
    check_content(body["content"], reply)
    check_usage(body["usage"], reply.bill)


def check_content(content: Sequence[Json], reply: ServedReply) -> None:
    """The blocks of a message are its text, once, and its calls."""
    texts = [one["text"] for one in content if one["type"] == "text"]
    assert texts == ([reply.text] if reply.text or not reply.tool_calls else [])
    calls = [one for one in content if one["type"] == "tool_use"]
    assert [(one["id"], one["name"], one["input"]) for one in calls] == [
        (one.id, one.function, one.arguments) for one in reply.tool_calls
    ]
    assert len(texts) + len(calls) == len(content)


def check_error(body: Json, refusal: Refusal, trace: str = TRACE) -> None:
    """A body is an error object of Anthropic's, and says why."""
    assert body["type"] == "error"
    assert body["error"]["type"] in ERROR_TYPES
    assert body["error"]["message"] == str(refusal)
    assert body["error"]["details"] == {"error_code": refusal.kind, "param": refusal.param}
    assert body["request_id"] == trace


def check_stream(events: Sequence[StreamEvent], reply: ServedReply) -> None:
    """Events are a message from its start to its stop, in order, with data in every one."""
    bodies = [json.loads(one.data) for one in events]
    assert [one.name for one in events] == [one["type"] for one in bodies]
    told = [one for one in bodies if one["type"] != "ping"]
    for one in told:
        EVENTS.validate_python(one, strict=True)
    assert [one["type"] for one in (told[0], *told[-2:])] == [
        *("message_start", "message_delta", "message_stop")
    ]
    start, end = told[0]["message"], told[-2]
    assert (start["content"], start["stop_reason"]) == ([], None)
    check_usage(end["usage"], reply.bill)
    whole = {**start, "content": _blocks(told[1:-2]), **end["delta"]}
    check_message(whole, reply)


def _blocks(events: Sequence[Json]) -> list[Json]:
    """Put blocks together from their pieces, each begun, filled and ended in its turn."""
    blocks: list[Json] = []
    pieces: list[str] | None = None
    for one in events:
        if one["type"] == "content_block_start":
            assert pieces is None
            blocks.append(one["content_block"])
            pieces = []
        assert pieces is not None, "outside of a block"
        assert one["index"] == len(blocks) - 1
        if one["type"] == "content_block_delta":
            kind = {"text_delta": "text", "input_json_delta": "partial_json"}[one["delta"]["type"]]
            pieces.append(one["delta"][kind])
        if one["type"] == "content_block_stop":
            blocks[-1] |= _filled(blocks[-1], "".join(pieces))
            pieces = None
    assert pieces is None, "a block without an end"
    return blocks


def _filled(block: Json, said: str) -> Json:
    if block["type"] == "text":
        assert block["text"] == ""
        return {"text": said}
    assert block["input"] == {}
    return {"input": json.loads(said)}


def reply_of(request: ServedRequest | None = None, **changes: Any) -> ServedReply:
    """Return an answer to a request, changed."""
    said: Json = {
        "trace": TRACE,
        "model": request.model if request else "podium/toy",
        "created": 1_700_000_000,
        "text": "The answer is 12.",
        "bill": BILL,
    }
    return ServedReply(**{**said, **changes})


def stream_of(reply: ServedReply) -> list[StreamEvent]:
    """Return a reply as the dialect streams it, with steps on the way."""
    config = GenerateConfig()
    request = ServedRequest(dialect="messages", model=reply.model, messages=(), config=config)
    stream = AnthropicMessages().stream(request, reply.trace, reply.created)
    beats = [event for step in STEPS for event in stream.beat(step)]
    return [*stream.begin(), *beats, *stream.finish(reply)]


Answering = Callable[[ServedRequest], ServedReply]
"""What a request is answered; a Refusal that it raises is one."""


@contextmanager
def serving(answer: Answering = reply_of) -> Generator[str]:
    """Yield the URL of a server that speaks Anthropic's dialect until the block ends."""
    dialect = AnthropicMessages()

    async def messages(request: Request) -> Response:
        headers = {"request-id": TRACE}
        try:
            asked = await dialect.read(json.loads(await request.body()))
            if asked.stream:
                return EventSourceResponse(_events(dialect, asked, answer), headers=headers)
            return JSONResponse(dialect.reply(asked, answer(asked)), headers=headers)
        except Refusal as refusal:
            return JSONResponse(dialect.error(refusal, TRACE), refusal.status, headers)

    with bound_socket("127.0.0.1", 0) as taken:
        url = listen(taken)
        with served(Starlette(routes=[Route("/v1/messages", messages, methods=["POST"])]), taken):
            yield url


async def _events(
    dialect: AnthropicMessages, asked: ServedRequest, answer: Answering
) -> AsyncIterator[Mapping[str, Any]]:
    stream = dialect.stream(asked, TRACE, 1_700_000_000)
    events = [*stream.begin(), *(one for step in STEPS for one in stream.beat(step))]
    try:
        events += stream.finish(answer(asked))
    except Refusal as refusal:
        events += stream.fail(refusal)
    for event in events:
        yield {"event": event.name, "data": event.data}


def read(**changes: Any) -> ServedRequest:
    """Return a greeting, changed, as the dialect reads it."""
    return asyncio.run(AnthropicMessages().read({**HELLO, **changes}))


def asked(content: Any) -> list[Json]:
    """Return a conversation in which a user says something."""
    return [{"role": "user", "content": content}]
