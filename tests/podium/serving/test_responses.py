"""Responses: what is read, refused by name, written, streamed, and what real clients see."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ContentImage,
    model_output_from_openai_responses,
)
from inspect_ai.tool import ToolCall, ToolFunction
from openai.types.responses import Response

from podium.harness.usage import usage_from, usage_of_event
from podium.serving.exchange import Refusal, RefusalKind, RequestBill, StreamEvent
from podium.serving.responses import OpenAIResponses
from tests.podium.serving.canned import (
    BILL,
    BILLS,
    CALLS,
    CLOCK,
    CREATED,
    SAID,
    STEP,
    TEXT,
    TRACE,
    WEATHER,
    canned_reply,
    canned_server,
    failed,
    reading,
    refused,
    streamed,
)
from tests.podium.serving.stream_checks import billed, check_response_stream, check_usage
from tests.providers import CLIENTS_WARN

pytestmark = CLIENTS_WARN
RESPONSES = OpenAIResponses()
PIXEL = "data:image/png;base64,iVBORw0KGgo="
CLOCK_TOOL = {"type": "function", **CLOCK}
AGENTS = {"type": "namespace", "name": "agents", "description": "Others.", "tools": [CLOCK_TOOL]}
SEARCH = {"type": "web_search", "external_web_access": False}


def asking(said: Any = "Hi.", **more: Any) -> dict[str, Any]:
    """Return the body of a request."""
    return {"model": "podium/moa", "input": said, **more}


def saying(*content: Any, role: str = "user") -> dict[str, Any]:
    """Return the body of a request whose user says some parts."""
    return asking([{"type": "message", "role": role, "content": list(content)}])


def schema(found: Any) -> dict[str, Any]:
    """Return the body of a request whose answer is to be some JSON."""
    return asking(text={"format": {"type": "json_schema", "name": "answer", "schema": found}})


def test_a_conversation_is_read_as_it_was_said() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "clock", "arguments": "{}"}
    output = {"type": "output_text", "text": "Noon.", "annotations": []}
    conversation: list[Any] = [
        {"role": "developer", "content": "No jokes."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]},
        {**call, "id": "fc_1", "namespace": "agents", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "noon"},
        {"type": "message", "role": "assistant", "id": "m", "content": [output], "status": "done"},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": "It is."},
        {"role": "user", "content": "Sure?"},
        {"role": "assistant", "content": [output]},
    ]
    read = reading(RESPONSES, asking(conversation, instructions="Be brief."))
    system, developer, user, calling, told, *rest = read.messages
    assert isinstance(system, ChatMessageSystem)
    assert isinstance(calling, ChatMessageAssistant)
    assert calling.tool_calls
    assert calling.tool_calls[0].function == "clock"
    assert isinstance(told, ChatMessageTool)
    assert [one.text for one in (system, developer, user)] == ["Be brief.", "No jokes.", "Hi."]
    assert told.text == "noon"
    assert [one.text for one in rest[-2:]] == ["Sure?", "Noon."]


def test_a_text_is_what_a_user_says() -> None:
    (message,) = reading(RESPONSES, asking("half a \ud83d")).messages
    assert (message.role, message.text) == ("user", "half a \\ud83d")


def test_what_is_asked_of_sampling_is_read_and_nothing_else() -> None:
    asked = {"temperature": 0, "top_p": 1, "max_output_tokens": 9, "parallel_tool_calls": False}
    more = {"reasoning": {"effort": "low"}, "text": {"verbosity": "high"}}
    read = reading(RESPONSES, asking(**asked, **more))
    assert read.params == {
        "temperature": "temperature",
        "top_p": "top_p",
        "max_tokens": "max_output_tokens",
        "parallel_tool_calls": "parallel_tool_calls",
        "reasoning_effort": "reasoning.effort",
        "verbosity": "text.verbosity",
    }
    assert read.config.model_dump(exclude_none=True) == {
        "temperature": 0,
        "top_p": 1,
        "max_tokens": 9,
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "verbosity": "high",
    }


NOTHING: dict[str, Any] = {
    "user": "u",
    "metadata": {"a": "b"},
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "service_tier": "default",
    "store": False,
    "background": False,
    "truncation": "disabled",
    "include": ["reasoning.encrypted_content"],
    "previous_response_id": None,
    "tools": [],
    "tool_choice": "auto",
    "text": {"format": {"type": "text"}},
    "reasoning": {"effort": None, "summary": "auto"},
    "stream_options": {"include_obfuscation": False},
    "client_metadata": {"x": 1},
}


def test_fields_that_ask_nothing_are_taken_and_what_is_the_clients_own_is_echoed() -> None:
    read = reading(RESPONSES, asking(**NOTHING))
    assert (read.params, read.config.model_dump(exclude_none=True)) == ({}, {})
    body = RESPONSES.reply(read, canned_reply())
    for name in ("user", "metadata", "safety_identifier", "prompt_cache_key"):
        assert body[name] == NOTHING[name]


def test_functions_are_read_with_those_in_namespaces_and_echoed() -> None:
    weather = {"type": "function", **WEATHER}
    choice = {"type": "function", "name": "clock"}
    read = reading(RESPONSES, asking(tools=[weather, AGENTS, SEARCH], tool_choice=choice))
    assert [tool.name for tool in read.tools] == ["weather", "clock"]
    assert (read.tool_choice, read.params) == (ToolFunction("clock"), {"tools": "tools"})
    body = RESPONSES.reply(read, canned_reply("", tool_calls=CALLS))
    assert [tool["type"] for tool in body["tools"]] == ["function", "namespace"]  # no search
    assert body["tools"][0]["parameters"] == WEATHER["parameters"]
    assert body["tool_choice"] == choice
    assert [one.get("namespace") for one in body["output"]] == [None, "agents"]
    assert [one["call_id"] for one in body["output"]] == ["call_1", "call_2"]


def test_a_format_of_json_reaches_the_worker_and_is_echoed() -> None:
    wanted = schema({"type": "object", "properties": {"a": {"type": "integer"}}})
    read = reading(RESPONSES, wanted)
    assert read.config.response_schema
    assert read.params == {"response_schema": "text.format"}
    assert RESPONSES.reply(read, canned_reply())["text"]["format"]["name"] == "answer"


def test_an_image_in_the_request_is_read_and_named() -> None:
    read = reading(RESPONSES, saying({"type": "input_image", "image_url": PIXEL}))
    part = read.messages[0].content[0]
    assert isinstance(part, ContentImage)
    assert (part.image, read.params) == (PIXEL, {"images": "input_image"})


WRONG: dict[str, tuple[Any, str]] = {
    "no-model": ({"input": "Hi."}, "model"),
    "no-input": ({"model": "m"}, "input"),
    "empty-input": (asking([]), "input"),
    "no-text": (asking(" "), "input"),
    "number-as-input": (asking(3), "input"),
    "number-as-item": (asking([3]), "input[0]"),
    "no-role": (asking([{"content": "x"}]), "input[0].role"),
    "a-critic": (asking([{"role": "critic", "content": "x"}]), "input[0].role"),
    "no-content": (asking([{"role": "user"}]), "input[0].content"),
    "part-without-text": (saying({"type": "input_text"}), "input"),
    "call-without-name": (asking([{"type": "function_call", "call_id": "c"}]), "input"),
    "result-without-output": (
        asking([{"type": "function_call_output", "call_id": "c"}]),
        "input[0].output",
    ),
    "too-hot": (asking(temperature=3), "temperature"),
    "no-tokens": (asking(max_output_tokens=0), "max_output_tokens"),
    "metadata-of-numbers": (asking(metadata={"a": 1}), "metadata.a"),
    "instructions-of-items": (asking(instructions=[]), "instructions"),
    "text-as-tools": (asking(tools="clock"), "tools"),
    "text-as-tool": (asking(tools=["clock"]), "tools[0]"),
    "tool-without-name": (asking(tools=[{"type": "function"}]), "tools[0].name"),
    "tool-in-a-namespace-without-name": (
        asking(tools=[{**AGENTS, "tools": [{"type": "function"}]}]),
        "tools[0].tools[0].name",
    ),
    "endless-default": (
        asking(tools=[{**CLOCK_TOOL, "parameters": {"properties": {"a": {"default": 1e999}}}}]),
        "tools[0].parameters",
    ),
    "twins": (asking(tools=[CLOCK_TOOL, AGENTS]), "tools"),
    "choice-of-no-tool": (asking(tool_choice={"type": "function", "name": "x"}), "tool_choice"),
    "format-without-schema": (
        asking(text={"format": {"type": "json_schema", "name": "x"}}),
        "text.format.schema",
    ),
}
UNHONOURED: dict[str, tuple[Any, str]] = {
    "unknown": (asking(frobnicate=1), "frobnicate"),
    "store": (asking(store=True), "store"),
    "previous": (asking(previous_response_id="resp_1"), "previous_response_id"),
    "background": (asking(background=True), "background"),
    "conversation": (asking(conversation="c"), "conversation"),
    "prompt": (asking(prompt={"id": "p"}), "prompt"),
    "logprobs": (asking(include=["message.output_text.logprobs"]), "include[0]"),
    "top_logprobs": (asking(top_logprobs=2), "top_logprobs"),
    "truncation": (asking(truncation="auto"), "truncation"),
    "max_tool_calls": (asking(max_tool_calls=1), "max_tool_calls"),
    "summary": (asking(reasoning={"summary": "detailed"}), "reasoning.summary"),
    "context": (asking(context_management=[]), "context_management"),
    "json_object": (asking(text={"format": {"type": "json_object"}}), "text.format.type"),
    "search": (asking(tools=[{**SEARCH, "external_web_access": True}]), "tools[0].external_web_"),
    "search-unlimited": (asking(tools=[{"type": "web_search"}]), "tools[0].external_web_access"),
    "custom": (asking(tools=[{"type": "custom", "name": "x"}]), "tools[0].type"),
    "shell": (asking(tools=[{"type": "local_shell"}]), "tools[0].type"),
    "mcp": (asking(tools=[{"type": "mcp"}]), "tools[0].type"),
    "choice-of-search": (asking(tools=[SEARCH], tool_choice={"type": "web_search"}), "tool_choice"),
    "reference": (asking([{"type": "item_reference", "id": "x"}]), "input[0].type"),
    "compaction": (asking([{"type": "compaction"}]), "input[0].type"),
    "file": (saying({"type": "input_file", "file_data": "x"}), "input[0].content[0].type"),
    "words-of-the-other-side": (
        saying({"type": "output_text", "text": "x"}),
        "input[0].content[0].type",
    ),
    "image-by-address": (
        saying({"type": "input_image", "image_url": "file:///etc/passwd"}),
        "input[0].content[0].image_url",
    ),
    "image-by-id": (
        saying({"type": "input_image", "file_id": "x"}),
        "input[0].content[0].image_url",
    ),
}


@pytest.mark.parametrize(("body", "name"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_by_name(body: Any, name: str) -> None:
    refusal = refused(RESPONSES, body)
    assert (refusal.kind, refusal.param) == ("invalid_request", name)
    assert name in str(refusal)


@pytest.mark.parametrize(("body", "name"), UNHONOURED.values(), ids=UNHONOURED)
def test_what_cannot_be_honoured_is_refused_by_name(body: Any, name: str) -> None:
    refusal = refused(RESPONSES, body)
    assert refusal.kind == "unsupported_parameter"
    assert refusal.param
    assert refusal.param.startswith(name)
    assert name in str(refusal)


def test_a_reply_has_every_null_that_its_schema_wants() -> None:
    body = RESPONSES.reply(reading(RESPONSES, asking()), canned_reply())
    nulls = {name for name, value in body.items() if value is None}
    assert {"error", "incomplete_details", "instructions", "previous_response_id"} <= nulls
    assert {"max_output_tokens", "max_tool_calls", "prompt_cache_key"} <= nulls
    assert (body["status"], body["store"], body["created_at"]) == ("completed", False, CREATED)
    assert isinstance(body["created_at"], int)
    assert Response.model_validate(body).output_text == TEXT


@pytest.mark.parametrize(
    ("stop", "reason"),
    [("max_tokens", "max_output_tokens"), ("content_filter", "content_filter")],
)
def test_a_reply_cut_short_is_incomplete(stop: Any, reason: str) -> None:
    request = reading(RESPONSES, asking(stream=True))
    reply = canned_reply(stop=stop)
    body = RESPONSES.reply(request, reply)
    assert (body["status"], body["output"][0]["status"]) == ("incomplete", "incomplete")
    assert (body["incomplete_details"], body["completed_at"]) == ({"reason": reason}, None)
    assert check_response_stream(streamed(RESPONSES, request, reply)).whole == body


def test_a_cost_that_is_unknown_is_absent_and_a_usage_that_is_unknown_is_null() -> None:
    request = reading(RESPONSES, asking())
    free = canned_reply(bill=replace(BILL, usd=None))
    assert "cost" not in RESPONSES.reply(request, free)["usage"]
    lost = canned_reply(bill=replace(BILL, visible=None))
    assert RESPONSES.reply(request, lost)["usage"] is None


@settings(max_examples=200, deadline=None)
@given(BILLS)
def test_the_usage_is_the_bill_to_the_token_for_us_and_for_inspect(bill: RequestBill) -> None:
    body = RESPONSES.reply(reading(RESPONSES, asking()), canned_reply(bill=bill))
    usage = json.loads(json.dumps(body))["usage"]
    check_usage(usage, bill)
    output = asyncio.run(model_output_from_openai_responses(dict(body)))
    found = usage_of_event(usage_from(output.usage), usage)
    assert (found is None) == (usage is None)
    if found is not None:
        expected = billed(bill)
        assert expected
        assert found == replace(expected, reasoning=expected.reasoning or 0)  # its schema's number


@pytest.mark.parametrize("calls", [(), CALLS], ids=["text", "calls"])
@pytest.mark.parametrize("text", [TEXT, ""], ids=["said", "silent"])
def test_a_stream_amounts_to_the_plain_reply(text: str, calls: tuple[ToolCall, ...]) -> None:
    request = reading(RESPONSES, asking(stream=True, tools=[AGENTS]))
    reply = canned_reply(text, tool_calls=calls)
    found = check_response_stream(streamed(RESPONSES, request, reply))
    plain = RESPONSES.reply(request, reply)
    assert found.steps == [SAID]
    assert {**found.whole, "completed_at": 0} == {**plain, "completed_at": 0}


def test_every_beat_is_an_event_with_data_and_a_number() -> None:
    writer = RESPONSES.stream(reading(RESPONSES, asking(stream=True)), TRACE, CREATED)
    events = [*writer.begin(), *writer.beat(None), *writer.beat(STEP), *writer.beat(None)]
    assert [event.name for event in events[1:]] == ["response.in_progress"] * 4
    assert [json.loads(event.data)["sequence_number"] for event in events] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("worker_failed", "server_error"),
        ("out_of_budget", "rate_limit_exceeded"),
        ("unsupported_parameter", "invalid_prompt"),
    ],
)
def test_a_stream_that_fails_ends_with_a_whole_response(kind: RefusalKind, code: str) -> None:
    request = reading(RESPONSES, asking(stream=True, metadata={"a": "b"}))
    found = check_response_stream(failed(RESPONSES, request, Refusal(502, kind, "No.")))
    assert found.whole["error"] == {"code": code, "message": "No."}
    assert (found.whole["metadata"], found.whole["usage"]) == ({"a": "b"}, None)


Fault = Callable[[list[StreamEvent]], list[StreamEvent]]


def changed(word: str, by: str) -> Fault:
    """Return a server's fault: a word of its last event is another one."""
    return lambda events: [
        *events[:-1],
        StreamEvent(events[-1].data.replace(word, by), events[-1].name),
    ]


FAULTS: dict[str, Fault] = {
    "event-lost": lambda events: events[:4] + events[5:],
    "number-lost": lambda events: [
        StreamEvent(one.data.replace('"sequence_number": 3', '"sequence_number": 2'), one.name)
        for one in events
    ],
    "usage-lost": changed('"usage": {', '"usage_": {'),
    "count-lost": changed('"cache_write_tokens"', '"cache_wrote_tokens"'),
    "text-lost": changed("Vier", "Drei"),
    "end-lost": lambda events: events[:-1],
    "name-lost": lambda events: [StreamEvent(one.data) for one in events],
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_server_with_a_fault_is_found_out(fault: Fault) -> None:
    request = reading(RESPONSES, asking(stream=True))
    events = streamed(RESPONSES, request, canned_reply())
    check_response_stream(events)
    with pytest.raises((AssertionError, ValueError)):
        check_response_stream(fault(events))


def test_openais_client_reads_replies_streams_and_errors() -> None:
    with (
        canned_server(RESPONSES, "responses", canned_reply(tool_calls=CALLS)) as url,
        openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client,
    ):
        plain = client.responses.create(model="podium/moa", input="Hi.")
        assert plain.output_text == TEXT
        assert plain.usage
        check_usage(plain.usage.model_dump(exclude_unset=True), BILL)
        with client.responses.stream(model="podium/moa", input="Hi.") as stream:
            kinds = [event.type for event in stream]
            whole = stream.get_final_response()
        assert kinds.count("response.in_progress") == 3
        assert whole.output_text == TEXT
        assert whole.output[1].type == "function_call"
        assert whole.output[1].arguments == '{"city": "K\\u00f6ln"}'
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model="podium/moa", input="Hi.", background=True)
        assert (caught.value.param, caught.value.code) == ("background", "unsupported_parameter")
        events = list(client.responses.create(model="broken", input="Hi.", stream=True))
        assert events[-1].type == "response.failed"
        assert events[-1].response.error
        assert events[-1].response.error.message == "atlas failed."
