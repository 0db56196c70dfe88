"""Whatever a client sends to OpenAI's dialects, it is answered or refused by name."""

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.serving.chat import ChatCompletions
from podium.serving.exchange import Dialect, Refusal, ServedRequest
from podium.serving.responses import OpenAIResponses
from tests.podium.serving.canned import CALLS, CLOCK, TRACE, WEATHER, canned_reply, streamed
from tests.podium.serving.stream_checks import check_chat_stream, check_response_stream

SCHEMA = {"name": "a", "schema": {"anyOf": [{"type": "array", "items": {"type": "string"}}]}}
ASKED = {"model": "m", "stream": True, "temperature": 1, "metadata": {"a": "b"}, "user": "u"}
CALLED = {"name": "clock", "arguments": "{}"}
IN_CHAT: dict[str, Any] = {
    **ASKED,
    "messages": [
        {"role": "system", "content": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/"}}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": CALLED}],
        },
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "noon"}]},
    ],
    "tools": [{"type": "function", "function": WEATHER}, {"type": "function", "function": CLOCK}],
    "tool_choice": {"type": "function", "function": {"name": "clock"}},
    "response_format": {"type": "json_schema", "json_schema": SCHEMA},
    "stream_options": {"include_usage": True},
    "stop": ["x"],
    "logit_bias": {"1": 1},
}
IN_RESPONSES: dict[str, Any] = {
    **ASKED,
    "input": [
        {"role": "developer", "content": "x"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "call_id": "c", "namespace": "agents", **CALLED},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_image", "image_url": "data:image/"}],
        },
    ],
    "tools": [
        {"type": "function", **WEATHER},
        {"type": "namespace", "name": "agents", "tools": [{"type": "function", **CLOCK}]},
        {"type": "web_search", "external_web_access": False},
    ],
    "tool_choice": {"type": "function", "name": "clock"},
    "text": {"format": {"type": "json_schema", **SCHEMA}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "instructions": "x",
}
WORDS = ("", "user", "function", "message", "text", "auto", "required", "json_schema", "\ud83d")
LEAVES = st.sampled_from([None, True, False, 0, -1, 2**70, 10**400, 0.5, float("nan"), *WORDS])
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "name", "role", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in some JSON."""
    yield path
    if isinstance(found, dict | list):
        for key in range(len(found)) if isinstance(found, list) else found:
            yield from places(found[key], (*path, key))


@st.composite
def spoiled(draw: st.DrawFn, body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with anything in one or two of its places, or nothing."""
    made = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from([place for place in places(made) if place]))
        holder = made
        for key in path:
            holder = holder[key]
        if draw(st.booleans()):
            holder[last] = draw(ANYTHING)
        else:
            holder.pop(last)
    return made


def read_or_refused(dialect: Dialect, body: dict[str, Any]) -> ServedRequest | Refusal:
    """Return what a dialect makes of a body; whatever else it raises is a fault."""
    try:
        return asyncio.run(dialect.read(body))
    except Refusal as refusal:
        return refusal


def hold(dialect: Dialect, body: dict[str, Any]) -> None:
    """Check that a body is read, and then answered in full, or refused."""
    before, found = repr(body), read_or_refused(dialect, body)
    assert repr(body) == before
    if isinstance(found, Refusal):
        assert (found.status, bool(found.param)) == (400, True)
    else:
        json.dumps(dialect.reply(found, canned_reply()), allow_nan=False)  # as a server sends it
        events = streamed(dialect, found, canned_reply(tool_calls=CALLS))
        if dialect.name == "chat":
            check_chat_stream(events, usage=found.include_usage)
        else:
            check_response_stream(events)


@settings(max_examples=300, deadline=None)
@given(spoiled(IN_CHAT))
def test_any_chat_is_answered_or_refused_by_name(body: dict[str, Any]) -> None:
    hold(ChatCompletions(), body)


@settings(max_examples=300, deadline=None)
@given(spoiled(IN_RESPONSES))
def test_any_response_is_answered_or_refused_by_name(body: dict[str, Any]) -> None:
    hold(OpenAIResponses(), body)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [(ChatCompletions(), IN_CHAT), (OpenAIResponses(), IN_RESPONSES)],
    ids=["chat", "responses"],
)
def test_the_bodies_that_are_spoiled_are_good_ones(dialect: Dialect, body: dict[str, Any]) -> None:
    request = asyncio.run(dialect.read(body))
    assert request.stream
    assert len(request.tools) == 2
    assert dialect.reply(request, canned_reply())["id"].endswith(TRACE)
