"""What of a request in Anthropic's dialect is read, and what is refused by its name."""

import asyncio
import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai.model import ContentReasoning, GenerateConfig
from inspect_ai.model._assistant_internal import dump_sample_assistant_internal
from inspect_ai.tool import ToolFunction

from podium.serving.anthropic_messages import AnthropicMessages
from podium.serving.exchange import Refusal
from tests.podium.serving.message_checks import (
    CALLS,
    HELLO,
    WEATHER,
    Json,
    asked,
    read,
    reply_of,
)

PIXEL = base64.b64encode(b"\x89PNG").decode()
IMAGE: Json = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
}


def test_a_request_as_claude_code_sends_it_is_read_in_whole() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    found = read(
        system=[
            {"type": "text", "text": "x-anthropic-billing-header: v=2"},
            {"type": "text", "text": "Be brief.", **mark},
        ],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "Rain?", **mark}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I ask.", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "weather", "input": {"place": "Oslo"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [{"type": "text", "text": "Rain."}, IMAGE],
                        **mark,
                    },
                    {"type": "text", "text": "Well?"},
                ],
            },
        ],
        tools=[{**WEATHER, **mark}],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        metadata={"user_id": "someone"},
        thinking={"type": "adaptive"},
        output_config={"effort": "medium"},
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        temperature=1,
        stream=True,
    )
    assert [one.role for one in found.messages] == [
        *("system", "system", "user", "assistant", "tool", "user")
    ]
    assert [one.text for one in found.messages][1:] == [
        *("Be brief.", "Rain?", "I look.", "Rain.", "Well?")
    ]
    parts = found.messages[3].content
    assert isinstance(parts, list)
    assert [one.summary for one in parts if isinstance(one, ContentReasoning)] == ["I ask.", None]
    assert found.messages[4].role == "tool"
    assert found.messages[4].function == "weather"
    assert found.stream
    assert found.tool_choice == "auto"
    assert found.config == GenerateConfig(
        max_tokens=100, temperature=1, parallel_tool_calls=False, reasoning_effort="medium"
    )
    assert found.params == {
        "max_tokens": "max_tokens",
        "temperature": "temperature",
        "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
        "reasoning_effort": "thinking",
        "tools": "tools",
        "images": "image",
    }


@pytest.mark.parametrize(
    ("sent", "config", "params"),
    [
        ({"top_p": 0.5, "top_k": 3}, {"top_p": 0.5, "top_k": 3}, {"top_p", "top_k"}),
        ({"stop_sequences": ["END"]}, {"stop_seqs": ["END"]}, {"stop_seqs"}),
        ({"stop_sequences": []}, {}, set[str]()),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}},
            {"reasoning_tokens": 2048},
            {"reasoning_tokens"},
        ),
        ({"thinking": {"type": "disabled"}}, {}, set[str]()),
        (
            {"thinking": {"type": "adaptive"}},
            {"reasoning_effort": "high"},
            {"reasoning_effort"},
        ),
        ({"output_config": {"effort": "max"}}, {"effort": "max"}, {"effort"}),
        ({"service_tier": "standard_only", "speed": "standard"}, {}, set[str]()),
        ({"container": None, "tools": None, "context_management": {"edits": []}}, {}, set[str]()),
    ],
)
def test_what_is_asked_of_sampling_is_honoured_and_nothing_else_is(
    sent: Json, config: Json, params: set[str]
) -> None:
    found = read(**sent)
    assert found.config == GenerateConfig(max_tokens=100, **config)
    assert set(found.params) == {"max_tokens", *params}


def test_a_worker_is_told_of_a_tool_even_what_inspect_has_no_field_for() -> None:
    (tool,) = read(tools=[WEATHER]).tools
    assert (tool.name, tool.description) == ("weather", "Say the weather.")
    schema = tool.parameters.model_dump(exclude_none=True)
    assert schema["properties"] == {
        "place": {"type": "string", "description": "A city."},
        "days": {
            "type": "array",
            "items": {"description": '(JSON Schema: {"const": 1})'},
            "description": '(JSON Schema: {"minItems": 1})',
        },
    }
    assert (schema["required"], schema["additionalProperties"]) == (["place"], True)


def test_references_of_a_tools_schema_and_what_they_refer_to_are_told() -> None:
    schema = {"type": "object", "properties": {"at": {"$ref": "#/$defs/P"}}, "$defs": {"P": {}}}
    (tool,) = read(tools=[{**WEATHER, "input_schema": schema}]).tools
    assert tool.description == 'Say the weather. (JSON Schema: {"$defs": {"P": {}}})'
    assert tool.parameters.properties["at"].description == '(JSON Schema: {"$ref": "#/$defs/P"})'


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        ({"type": "any"}, "any"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "weather"}, ToolFunction(name="weather")),
    ],
)
def test_which_tool_is_to_be_called_is_read(choice: Json, meant: object) -> None:
    assert read(tools=[WEATHER], tool_choice=choice).tool_choice == meant


def test_reading_leaves_nothing_of_a_request_in_the_process() -> None:
    call = {"type": "tool_use", "id": "only-here", "name": "weather", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "only-here", "content": "Rain."}
    turns = [*asked("Rain?"), {"role": "assistant", "content": [call]}, *asked([result])]
    assert len(read(messages=turns).messages) == 3
    assert "only-here" not in json.dumps(dump_sample_assistant_internal())


def test_a_schema_that_is_too_deep_is_refused() -> None:
    deep: Json = {}
    for _ in range(800):
        deep = {"properties": {"one": deep}, "type": "object"}
    with pytest.raises(Refusal, match="not a JSON schema"):
        read(tools=[{**WEATHER, "input_schema": deep}])


def test_our_own_reply_can_be_sent_back_as_history() -> None:
    said = reply_of(tool_calls=CALLS[:1], stop="tool_calls")
    body = AnthropicMessages().reply(read(), said)
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "Rain.", "is_error": True}
    turns = [*asked("Rain?"), {"role": "assistant", "content": body["content"]}, *asked([result])]
    assert [one.role for one in read(messages=turns).messages] == ["user", "assistant", "tool"]


# What is refused


def without(name: str) -> Json:
    return {name: None}


SERVER_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "7"}
BASH = {"type": "bash_20250124", "name": "bash"}
SCREEN = {"type": "computer_20250124", "name": "computer", "display_width_px": 9}


@pytest.mark.parametrize(
    ("sent", "kind", "param"),
    [
        (without("model"), "invalid_request", "model"),
        ({"model": ""}, "invalid_request", "model"),
        (without("max_tokens"), "invalid_request", "max_tokens"),
        ({"max_tokens": 0}, "invalid_request", "max_tokens"),
        ({"max_tokens": "9"}, "invalid_request", "max_tokens"),
        ({"max_tokens": True}, "invalid_request", "max_tokens"),
        (without("messages"), "invalid_request", "messages"),
        ({"messages": []}, "invalid_request", "messages"),
        ({"messages": "Hello."}, "invalid_request", "messages"),
        ({"messages": ["Hello."]}, "invalid_request", "messages.0"),
        ({"messages": asked("")}, "invalid_request", "messages.0.user.content"),
        ({"messages": asked([])}, "invalid_request", "messages.0.user.content"),
        ({"messages": asked("  ")}, "invalid_request", "messages"),
        ({"messages": asked(7)}, "invalid_request", "messages.0.user.content"),
        ({"messages": asked([RESULT])}, "invalid_request", "messages"),
        (
            {"messages": [*asked("I"), {"role": "assistant", "content": "am"}]},
            "unsupported_parameter",
            "messages",
        ),
        (
            {"messages": [{"role": "tool", "content": "7"}]},
            "unsupported_parameter",
            "messages.0",
        ),
        (
            {"messages": asked([{"type": "search_result", "source": "", "title": ""}])},
            "unsupported_parameter",
            "messages.0.user.content.0",
        ),
        (
            {"messages": asked([{"type": "image", "source": {"type": "url", "url": "/etc/motd"}}])},
            "unsupported_parameter",
            "messages.0.user.content.0.image.source.type",
        ),
        (
            {"messages": asked([{"type": "text", "text": "<content-internal>"}])},
            "invalid_request",
            "messages.0.user.content.0.text.text",
        ),
        ({"messages": asked("half \ud83d")}, "invalid_request", "messages.0.user.content"),
        ({"tools": [SERVER_TOOL]}, "unsupported_parameter", "tools.0.type"),
        (
            {"tools": [BASH]},
            "unsupported_parameter",
            "tools.0.type",
        ),
        ({"tools": [SCREEN]}, "unsupported_parameter", "tools.0.type"),
        ({"tools": [{**WEATHER, "strict": True}]}, "unsupported_parameter", "tools.0.strict"),
        ({"tools": [WEATHER, WEATHER]}, "invalid_request", "tools"),
        (
            {"tools": [{**WEATHER, "input_schema": {"type": "array"}}]},
            "invalid_request",
            "tools.0.input_schema",
        ),
        ({"tool_choice": {"type": "any"}}, "invalid_request", "tool_choice"),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "w"}},
            "invalid_request",
            "tool_choice.name",
        ),
        ({"mcp_servers": [{"url": "https://x"}]}, "unsupported_parameter", "mcp_servers"),
        ({"container": "c"}, "unsupported_parameter", "container"),
        (
            {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
            "unsupported_parameter",
            "context_management.edits.0.type",
        ),
        ({"service_tier": "priority"}, "unsupported_parameter", "service_tier"),
        ({"speed": "fast"}, "unsupported_parameter", "speed"),
        ({"seed": 7}, "unsupported_parameter", "seed"),
        ({"temperature": 1.5}, "invalid_request", "temperature"),
        ({"temperature": float("nan")}, "invalid_request", "temperature"),
        ({"stop_sequences": "END"}, "invalid_request", "stop_sequences"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 7}},
            "invalid_request",
            "thinking.enabled.budget_tokens",
        ),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
            "unsupported_parameter",
            "output_config.format",
        ),
        ({"stream": "yes"}, "invalid_request", "stream"),
    ],
)
def test_what_is_wrong_or_cannot_be_honoured_is_refused_by_name(
    sent: Json, kind: str, param: str
) -> None:
    body = {name: one for name, one in {**HELLO, **sent}.items() if one is not None}
    with pytest.raises(Refusal) as caught:
        asyncio.run(AnthropicMessages().read(body))
    assert (caught.value.status, caught.value.kind, caught.value.param) == (400, kind, param)
    assert str(caught.value).startswith(f"`{param}` ")
    assert str(caught.value).count("\n") == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
    ),
    max_leaves=8,
)


@given(st.sampled_from(["model", "messages", "system", "tools", "thinking", "tool_choice"]), JSON)
def test_whatever_is_sent_is_read_or_refused(name: str, sent: Any) -> None:
    try:
        found = read(**{name: sent})
    except Refusal:
        return
    assert found.messages
