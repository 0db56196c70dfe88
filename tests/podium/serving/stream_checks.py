"""What must hold for whatever a server streams in OpenAI's two dialects, and for its usage.

Each check takes what a client received and returns what it amounts to, by openai's own types.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from podium.harness.records import Usage
from podium.harness.usage import dialect_of, usage_from_raw
from podium.serving.exchange import RequestBill, StreamEvent

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def events_of(stream: str) -> list[StreamEvent]:
    """Return the events of a stream as it was received; comments are none."""
    events: list[StreamEvent] = []
    for block in stream.replace("\r\n", "\n").split("\n\n"):
        fields = dict(one.split(": ", 1) for one in block.split("\n") if one and one[0] != ":")
        if "data" in fields:
            events.append(StreamEvent(fields["data"], fields.get("event")))
    return events


@dataclass(frozen=True, slots=True)
class ChatStreamed:
    """What a stream of chat completions amounts to."""

    whole: ChatCompletion
    usage: dict[str, Any] | None
    steps: list[str]


def check_chat_stream(events: Sequence[StreamEvent], *, usage: bool) -> ChatStreamed:
    """Return a chat completion put together; AssertionError where its chunks are not in order."""
    assert events[-1].data == "[DONE]", "a stream ends with [DONE]"
    bodies = [json.loads(event.data) for event in events[:-1]]
    assert not any("error" in body for body in bodies), "the stream failed"
    chunks = [ChatCompletionChunk.model_validate(body) for body in bodies]
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant", "the first chunk says who speaks"
    ends = [at for at, one in enumerate(chunks) if one.choices and one.choices[0].finish_reason]
    assert ends == [len(chunks) - 1 - usage], "one chunk says why it ended, after all text"
    if usage:
        assert chunks[-1].choices == [], "usage stands in a chunk without choices"
        assert bodies[-1].get("usage"), "usage was asked for"
        assert all(body["usage"] is None for body in bodies[:-1]), "usage stands in the last chunk"
    else:
        assert not any("usage" in body for body in bodies), "usage was not asked for"
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(chunk)
    steps = [body["podium"]["step"] for body in bodies if "podium" in body]
    return ChatStreamed(state.get_final_completion(), bodies[-1].get("usage"), steps)


@dataclass(frozen=True, slots=True)
class ResponseStreamed:
    """What a stream of a response amounts to."""

    whole: dict[str, Any]
    """The response of the last event."""
    steps: list[str]


def check_response_stream(events: Sequence[StreamEvent]) -> ResponseStreamed:
    """Return the response of a stream; AssertionError where its events are not in order."""
    bodies = [json.loads(event.data) for event in events]
    for body in bodies:
        EVENT.validate_python(body)
    assert [body["sequence_number"] for body in bodies] == list(range(len(bodies)))
    assert [event.name for event in events] == [body["type"] for body in bodies]
    kinds = [body["type"].removeprefix("response.") for body in bodies]
    assert kinds[:2] == ["created", "in_progress"]
    assert [kind in ("completed", "incomplete", "failed") for kind in kinds].index(True) == (
        len(kinds) - 1
    ), "one event ends a stream, the last one"
    whole = bodies[-1]["response"]
    Response.model_validate(whole)
    assert whole["status"] == kinds[-1]
    assert {body["response"]["id"] for body in bodies if "response" in body} == {whole["id"]}
    if whole["status"] != "failed":
        assert whole.get("usage"), "a response that ended has usage"
        assert [_item(bodies, at) for at in range(len(whole["output"]))] == whole["output"]
    return ResponseStreamed(whole, [one["podium"]["step"] for one in bodies if "podium" in one])


def _item(bodies: Sequence[dict[str, Any]], index: int) -> dict[str, Any]:
    """Return one item as its events tell it."""
    told = [body for body in bodies if body.get("output_index") == index]
    kinds = [body["type"].removeprefix("response.") for body in told]
    assert (kinds[0], kinds[-1]) == ("output_item.added", "output_item.done")
    done = told[-1]["item"]
    assert all(body["item_id"] == done["id"] for body in told if "item_id" in body)
    said = "".join(body["delta"] for body in told if "delta" in body)
    if done["type"] == "function_call":
        assert kinds[1:-1] == ["function_call_arguments.delta", "function_call_arguments.done"]
        assert said == told[-2]["arguments"] == done["arguments"]
        return {**told[0]["item"], "status": done["status"], "arguments": said}
    assert kinds[1] == "content_part.added"
    assert kinds[-3:-1] == ["output_text.done", "content_part.done"]
    assert set(kinds[2:-3]) <= {"output_text.delta"}
    assert all(body["logprobs"] == [] for body in told if "logprobs" in body)
    assert said == told[-3]["text"] == told[-2]["part"]["text"]
    part = {**told[1]["part"], "text": said}
    return {**told[0]["item"], "status": done["status"], "content": [part]}


def check_usage(usage: dict[str, Any] | None, bill: RequestBill) -> None:
    """Hold a reply's usage against the bill, to the token and to the dollar."""
    expected = billed(bill)
    if expected is None:
        assert usage is None
        return
    assert usage is not None, "the usage is known"
    assert ("cost" in usage) == (bill.usd is not None)
    assert bill.usd is None or usage["cost"] == float(bill.usd)
    dialect = dialect_of(usage)
    assert dialect is not None
    found = usage_from_raw(dialect, usage)
    if found is not None and dialect == "openai-responses" and expected.reasoning is None:
        found = replace(found, reasoning=None)  # its schema wants a number
    assert found == expected


def billed(bill: RequestBill) -> Usage | None:
    """Return a bill as the usage of one call that orchestrated."""
    seen, rest = bill.visible, bill.orchestration
    if seen is None or rest is None:
        return None
    return replace(
        seen,
        cache_write_1h=0,  # OpenAI has no word for it
        orchestration_in=seen.orchestration_in + rest.orchestration_in + rest.input_total,
        orchestration_in_cached=seen.orchestration_in_cached
        + rest.orchestration_in_cached
        + rest.cache_read,
        orchestration_out=seen.orchestration_out + rest.orchestration_out + rest.output,
        total_reported=seen.parts_total + rest.parts_total,
    )
