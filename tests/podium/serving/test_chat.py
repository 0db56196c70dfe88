"""Chat Completions: what is read, refused by name, written, streamed, and what real clients see."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import openai
import pytest
from hypothesis import given, settings
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    model_output_from_openai,
)
from inspect_ai.tool import ToolFunction

from podium.harness.usage import usage_from, usage_of_event
from podium.serving.chat import ChatCompletions
from podium.serving.exchange import Refusal, RefusalKind, RequestBill, StreamEvent
from tests.podium.serving.canned import (
    BILL,
    BILLS,
    CALLS,
    CLOCK,
    CREATED,
    SAID,
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
from tests.podium.serving.stream_checks import (
    billed,
    check_chat_stream,
    check_usage,
    events_of,
)
from tests.providers import CLIENTS_WARN

pytestmark = CLIENTS_WARN
CHAT = ChatCompletions()
HI = {"role": "user", "content": "Hi."}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def asking(**more: Any) -> dict[str, Any]:
    """Return the body of a request."""
    return {"model": "podium/moa", "messages": [HI], **more}


def saying(*content: Any, **more: Any) -> dict[str, Any]:
    """Return the body of a request whose user says some parts."""
    return asking(messages=[{"role": "user", "content": list(content), **more}])


def offering(*functions: Any, **more: Any) -> dict[str, Any]:
    """Return the body of a request that offers functions."""
    return asking(tools=[{"type": "function", "function": one} for one in functions], **more)


def schema(found: Any) -> dict[str, Any]:
    """Return the body of a request whose answer is to be some JSON."""
    made = {"name": "answer", "schema": found}
    return asking(response_format={"type": "json_schema", "json_schema": made})


def test_a_conversation_is_read_as_it_was_said() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    conversation = [
        {"role": "developer", "content": "Be brief."},
        HI,
        {"role": "assistant", "content": None, "tool_calls": [call], "audio": None},
        {"role": "tool", "tool_call_id": "c1", "content": "noon"},
        {"role": "assistant", "content": "Noon.", "tool_calls": None, "annotations": []},
        {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
    ]
    read = reading(CHAT, asking(messages=conversation))
    system, user, calling, told = read.messages[:4]
    assert isinstance(system, ChatMessageSystem)
    assert isinstance(user, ChatMessageUser)
    assert isinstance(calling, ChatMessageAssistant)
    assert calling.tool_calls
    assert calling.tool_calls[0].function == "clock"
    assert isinstance(told, ChatMessageTool)
    assert [one.text for one in (system, user, told)] == ["Be brief.", "Hi.", "noon"]
    assert read.messages[-1].text == "Sure?"


def test_half_a_character_is_read_as_its_escape() -> None:
    read = reading(CHAT, asking(messages=[{"role": "user", "content": "half a \ud83d"}]))
    assert read.messages[0].text == "half a \\ud83d"


def test_what_is_asked_of_sampling_is_read_and_nothing_else() -> None:
    asked: dict[str, Any] = {
        "temperature": 1,
        "top_p": 0.5,
        "seed": 7,
        "frequency_penalty": 0.1,
        "presence_penalty": -2,
        "logit_bias": {"42": -100},
        "reasoning_effort": "high",
        "verbosity": "low",
    }
    read = reading(CHAT, asking(**asked, stop="END", max_tokens=9, parallel_tool_calls=False))
    ours = {"stop_seqs": "stop", "max_tokens": "max_tokens"}
    ours |= {"parallel_tool_calls": "parallel_tool_calls"}
    assert read.params == {**{name: name for name in asked}, **ours}
    found = read.config.model_dump(exclude_none=True)
    assert found == {
        **asked,
        "logit_bias": {42: -100.0},
        "stop_seqs": ["END"],
        "max_tokens": 9,
        "parallel_tool_calls": False,
    }


def test_fields_that_ask_nothing_are_taken() -> None:
    nothing: dict[str, Any] = {
        "n": 1,
        "user": "u",
        "metadata": {"a": "b"},
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "service_tier": "auto",
        "store": False,
        "logprobs": False,
        "modalities": ["text"],
        "audio": None,
        "tools": [],
        "tool_choice": "none",
        "parallel_tool_calls": True,
        "response_format": {"type": "text"},
        "stream_options": {"include_usage": True},
    }
    read = reading(CHAT, asking(**nothing))
    assert (read.params, read.config.model_dump(exclude_none=True)) == ({}, {})
    assert (read.tools, read.tool_choice, read.stream) == ([], "none", False)
    assert read.include_usage


def test_the_newer_name_of_the_limit_is_the_one_that_is_named() -> None:
    read = reading(CHAT, asking(max_completion_tokens=9, max_tokens=9))
    assert (read.config.max_tokens, read.params) == (9, {"max_tokens": "max_completion_tokens"})


def test_functions_are_read_with_the_choice_of_one() -> None:
    named = {"type": "function", "function": {"name": "clock"}}
    read = reading(CHAT, offering({**WEATHER, "strict": True}, CLOCK, tool_choice=named))
    assert [tool.name for tool in read.tools] == ["weather", "clock"]
    assert read.tools[0].parameters.model_dump(exclude_none=True) == {
        **WEATHER["parameters"],
        "additionalProperties": True,
    }
    assert read.tool_choice == ToolFunction("clock")
    assert read.params == {"tools": "tools"}
    assert reading(CHAT, offering(CLOCK, tool_choice="required")).tool_choice == "any"


def test_a_format_of_json_reaches_the_worker() -> None:
    read = reading(CHAT, schema({"type": "object", "properties": {"a": {"type": "integer"}}}))
    assert read.config.response_schema
    assert read.config.response_schema.name == "answer"
    assert read.params == {"response_schema": "response_format"}


def test_an_image_in_the_request_is_read_and_named() -> None:
    read = reading(CHAT, saying({"type": "image_url", "image_url": {"url": PIXEL}}))
    part = read.messages[0].content[0]
    assert isinstance(part, ContentImage)
    assert part.image == PIXEL
    assert read.params == {"images": "image_url"}


AUDIO = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
WRONG: dict[str, tuple[Any, str]] = {
    "no-model": ({"messages": [HI]}, "model"),
    "empty-model": (asking(model=""), "model"),
    "number-as-model": (asking(model=3), "model"),
    "no-messages": ({"model": "m"}, "messages"),
    "null-messages": (asking(messages=None), "messages"),
    "empty-messages": (asking(messages=[]), "messages"),
    "text-as-messages": (asking(messages="Hi."), "messages"),
    "number-as-message": (asking(messages=[3]), "messages[0]"),
    "no-role": (asking(messages=[HI, {"content": ""}]), "messages[1].role"),
    "no-content": (asking(messages=[{"role": "user"}]), "messages[0].content"),
    "no-parts": (saying(), "messages[0].content"),
    "part-without-type": (saying("Hi."), "messages[0].content[0]"),
    "part-without-text": (saying({"type": "text"}), "messages"),
    "nothing-said": (asking(messages=[{"role": "user", "content": " "}]), "messages"),
    "answer-to-no-call": (
        asking(messages=[{"role": "tool", "content": "x"}]),
        "messages[0].tool_call_id",
    ),
    "temperature-as-text": (asking(temperature="1"), "temperature"),
    "temperature-as-bool": (asking(temperature=True), "temperature"),
    "too-hot": (asking(temperature=2.5), "temperature"),
    "not-a-number": (asking(top_p=float("nan")), "top_p"),
    "no-tokens": (asking(max_tokens=0), "max_tokens"),
    "half-tokens": (asking(max_completion_tokens=1.5), "max_completion_tokens"),
    "two-limits": (asking(max_completion_tokens=1, max_tokens=2), "max_tokens"),
    "seed-too-long": (asking(seed=2**63), "seed"),
    "stop-of-numbers": (asking(stop=[1]), "stop[0]"),
    "metadata-of-numbers": (asking(metadata={"a": 1}), "metadata.a"),
    "stream-as-text": (asking(stream="yes"), "stream"),
    "tool-without-name": (offering({}), "tools[0].function.name"),
    "tool-of-no-object": (
        offering({**CLOCK, "parameters": {"type": "string"}}),
        "tools[0].function.parameters",
    ),
    "twins": (offering(CLOCK, CLOCK), "tools"),
    "choice-of-nothing": (asking(tool_choice="required"), "tool_choice"),
    "choice-of-no-tool": (
        offering(CLOCK, tool_choice={"type": "function", "function": {"name": "x"}}),
        "tool_choice",
    ),
    "format-without-schema": (
        asking(response_format={"type": "json_schema"}),
        "response_format.json_schema",
    ),
    "schema-of-nothing": (schema({"type": "nothing"}), "response_format.json_schema.schema"),
}
UNHONOURED: dict[str, tuple[Any, str]] = {
    "unknown": (asking(frobnicate=1), "frobnicate"),
    "n": (asking(n=3), "n"),
    "logprobs": (asking(logprobs=True), "logprobs"),
    "top_logprobs": (asking(top_logprobs=2), "top_logprobs"),
    "store": (asking(store=True), "store"),
    "tier": (asking(service_tier="flex"), "service_tier"),
    "audio": (asking(audio={"voice": "ash", "format": "wav"}), "audio"),
    "modalities": (asking(modalities=["text", "audio"]), "modalities"),
    "prediction": (asking(prediction={"type": "content", "content": "x"}), "prediction"),
    "web_search": (asking(web_search_options={}), "web_search_options"),
    "functions": (asking(functions=[]), "functions"),
    "effort": (asking(reasoning_effort="huge"), "reasoning_effort"),
    "json_object": (asking(response_format={"type": "json_object"}), "response_format.type"),
    "custom-tool": (asking(tools=[{"type": "custom", "custom": {}}]), "tools[0].type"),
    "allowed-tools": (offering(CLOCK, tool_choice={"type": "allowed_tools"}), "tool_choice"),
    "schema-word": (
        schema({"type": "object", "properties": {"a": {"oneOf": []}}}),
        "response_format.json_schema.schema.properties.a.oneOf",
    ),
    "obfuscation": (
        asking(stream_options={"include_obfuscation": True}),
        "stream_options.include_obfuscation",
    ),
    "role": (asking(messages=[{"role": "function", "content": "x"}]), "messages[0].role"),
    "name": (saying({"type": "text", "text": "Hi."}, name="Eve"), "messages[0].name"),
    "audio-part": (saying(AUDIO), "messages[0].content[0].type"),
    "file-part": (saying({"type": "file", "file": {}}), "messages[0].content[0].type"),
    "image-by-address": (
        saying({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
        "messages[0].content[0].image_url.url",
    ),
    "image-of-ours": (
        saying({"type": "image_url", "image_url": {"url": "/etc/passwd"}}),
        "messages[0].content[0].image_url.url",
    ),
}


@pytest.mark.parametrize(("body", "name"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_by_name(body: Any, name: str) -> None:
    refusal = refused(CHAT, body)
    assert (refusal.kind, refusal.param) == ("invalid_request", name)
    assert name in str(refusal)


@pytest.mark.parametrize(("body", "name"), UNHONOURED.values(), ids=UNHONOURED)
def test_what_cannot_be_honoured_is_refused_by_name(body: Any, name: str) -> None:
    refusal = refused(CHAT, body)
    if name == "modalities":
        assert refusal.kind == "invalid_request"  # one too many
        return
    assert (refusal.kind, refusal.param) == ("unsupported_parameter", name)
    assert name in str(refusal)


def test_a_schema_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {"type": "array"}
    for _ in range(400):
        deep = {"type": "array", "items": deep}
    assert refused(CHAT, schema(deep)).kind == "invalid_request"


def test_no_refusal_repeats_what_was_said() -> None:
    secret = "the launch code is 0000"
    for body in (asking(messages=[{"role": "user", "content": {"x": secret}}]), asking(n=secret)):
        assert secret not in str(refused(CHAT, body))


@pytest.mark.parametrize("kind", get_args(RefusalKind))
def test_every_refusal_is_openais_error_object(kind: RefusalKind) -> None:
    error = CHAT.error(Refusal(400, kind, "No.", param="n"), TRACE)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["message"], error["param"]) == ("No.", "n")
    assert error["type"].endswith(("_error", "_quota"))


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("stop", "stop"),
        ("unknown", "stop"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
    ],
)
def test_a_reply_says_why_it_ended(stop: Any, reason: str) -> None:
    request = reading(CHAT, asking())
    choice = CHAT.reply(request, canned_reply(stop=stop))["choices"][0]
    assert choice["finish_reason"] == reason
    assert choice["message"]["content"] == TEXT
    assert (choice["message"]["refusal"], choice["logprobs"]) == (None, None)


def test_a_cost_that_is_unknown_is_absent_and_a_usage_that_is_unknown_is_null() -> None:
    request = reading(CHAT, asking())
    free = canned_reply(bill=replace(BILL, usd=None))
    assert "cost" not in CHAT.reply(request, free)["usage"]
    lost = canned_reply(bill=replace(BILL, orchestration=None))
    assert CHAT.reply(request, lost)["usage"] is None


@settings(max_examples=200, deadline=None)
@given(BILLS)
def test_the_usage_is_the_bill_to_the_token_for_us_and_for_inspect(bill: RequestBill) -> None:
    body = CHAT.reply(reading(CHAT, asking()), canned_reply(bill=bill))
    usage = json.loads(json.dumps(body))["usage"]
    check_usage(usage, bill)
    output = asyncio.run(model_output_from_openai(dict(body)))
    assert usage_of_event(usage_from(output.usage), usage) == billed(bill)


@pytest.mark.parametrize("usage", [True, False], ids=["usage", "no-usage"])
@pytest.mark.parametrize("calls", [(), CALLS], ids=["text", "calls"])
def test_a_stream_amounts_to_the_plain_reply(usage: bool, calls: Any) -> None:
    options = {"stream": True, "stream_options": {"include_usage": usage}}
    request = reading(CHAT, asking(**options))
    for text in (TEXT, ""):
        reply = canned_reply(text, tool_calls=calls)
        found = check_chat_stream(streamed(CHAT, request, reply), usage=usage)
        plain = CHAT.reply(request, reply)
        assert found.steps == [SAID]
        assert found.usage == (plain["usage"] if usage else None)
        choice, whole = plain["choices"][0], found.whole.choices[0]
        assert whole.finish_reason == choice["finish_reason"]
        assert (whole.message.content or "") == (choice["message"]["content"] or "")
        said = [one.model_dump() for one in whole.message.tool_calls or []]
        told = choice["message"].get("tool_calls", [])
        assert [one["function"]["arguments"] for one in said] == [
            one["function"]["arguments"] for one in told
        ]


def test_a_stream_that_fails_ends_with_the_error() -> None:
    request = reading(CHAT, asking(stream=True))
    last = failed(CHAT, request, Refusal(502, "worker_failed", "atlas failed."))[-2:]
    assert json.loads(last[0].data)["error"]["message"] == "atlas failed."
    assert last[1].data == "[DONE]"


def without(word: str) -> Callable[[list[StreamEvent]], list[StreamEvent]]:
    """Return a server's fault: the events that have a word are lost."""
    return lambda events: [event for event in events if word not in event.data]


FAULTS: dict[str, Callable[[list[StreamEvent]], list[StreamEvent]]] = {
    "usage-lost": without('"prompt_tokens"'),
    "end-lost": lambda events: events[:-1],
    "reason-lost": without('"finish_reason": "stop"'),
    "role-lost": lambda events: events[1:],
    "no-end-of-text": lambda events: [*events[:-3], events[-2], events[-3], events[-1]],
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_server_with_a_fault_is_found_out(
    fault: Callable[[list[StreamEvent]], list[StreamEvent]],
) -> None:
    request = reading(CHAT, asking(stream=True, stream_options={"include_usage": True}))
    with pytest.raises(AssertionError):
        check_chat_stream(fault(streamed(CHAT, request, canned_reply())), usage=True)


def test_a_usage_with_a_token_lost_is_found_out() -> None:
    usage = dict(CHAT.reply(reading(CHAT, asking()), canned_reply())["usage"])
    usage["completion_tokens"] -= 1
    with pytest.raises(AssertionError):
        check_usage(usage, BILL)


def test_openais_client_reads_replies_streams_and_errors() -> None:
    with (
        canned_server(CHAT, "chat/completions", canned_reply(tool_calls=CALLS)) as url,
        openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client,
    ):
        asked: dict[str, Any] = {"model": "podium/moa", "messages": [HI]}
        plain = client.chat.completions.create(**asked)
        assert (plain.created, plain.choices[0].message.content) == (CREATED, TEXT)
        assert plain.usage
        assert plain.usage.model_dump()["cost"] == 0.01234
        check_usage(plain.usage.model_dump(exclude_unset=True), BILL)
        with client.chat.completions.stream(**asked) as stream:
            whole = stream.get_final_completion()
        assert whole.choices[0].message.content == TEXT
        calls = whole.choices[0].message.tool_calls or []
        assert [call.function.arguments for call in calls] == ['{"city": "K\\u00f6ln"}', "{}"]
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(**asked, n=3)
        assert (caught.value.param, caught.value.code) == ("n", "unsupported_parameter")
        asked["model"] = "broken"
        with pytest.raises(openai.APIError, match=r"atlas failed\."):
            list(client.chat.completions.create(**asked, stream=True))
        raw = client.chat.completions.with_raw_response.create(
            model="podium/moa", messages=[{"role": "user", "content": "Hi."}], stream=True
        )
        check_chat_stream(events_of(raw.http_response.read().decode()), usage=False)
