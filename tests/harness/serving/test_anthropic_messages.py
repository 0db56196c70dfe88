"""Anthropic's dialect: what is read, refused by name, answered and billed, by its own client."""

import asyncio
import base64
import dataclasses
import json
from collections.abc import Callable, Generator
from decimal import Decimal
from typing import Any, get_args

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    ContentReasoning,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    get_model,
    model_output_from_anthropic,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolFunction

from harness.records import Usage
from harness.serving.anthropic_messages import AnthropicMessages, count_tokens, message_usage
from harness.serving.exchange import (
    Bill,
    Refusal,
    RefusalKind,
    ServedReply,
    ServedRequest,
    StreamEvent,
)
from harness.usage import raw_usage, usage_from, usage_of_event, usage_of_reply
from tests.harness.serving.message_checks import (
    BILL,
    TRACE,
    check_error,
    check_message,
    check_stream,
    check_usage,
    read_as,
    reply_of,
    serving,
    stream_of,
)
from tests.providers import CLIENTS_WARN

pytestmark = CLIENTS_WARN

Json = dict[str, Any]
HELLO: Json = {
    "model": "podium/toy",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello."}],
}
PIXEL = base64.b64encode(b"\x89PNG").decode()
IMAGE: Json = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
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


def read(**changes: Any) -> ServedRequest:
    return asyncio.run(AnthropicMessages().read({**HELLO, **changes}))


def asked(content: Any) -> list[Json]:
    return [{"role": "user", "content": content}]


# What is read


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


# What is answered, read by anthropic's own client


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with serving(_answer) as running:
        yield running


@pytest.fixture
def client(url: str) -> Generator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=url, api_key="key", max_retries=0) as made:
        yield made


STATUSES = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    413: anthropic.RequestTooLargeError,
    429: anthropic.RateLimitError,
    500: anthropic.InternalServerError,
    503: anthropic.ServiceUnavailableError,
    504: anthropic.DeadlineExceededError,
}


def _answer(request: ServedRequest) -> ServedReply:
    """Answer a request; a model that is called as a status is refused with it."""
    if request.model.isdigit():
        raise Refusal(int(request.model), "too_many", "Ask later.", retry_after_s=3)
    if request.tools:
        return reply_of(request, text="I look.", tool_calls=CALLS, stop="tool_calls")
    return reply_of(request, text="Twelve. " * 100)


@pytest.mark.parametrize("more", [{}, {"tools": [WEATHER]}], ids=["text", "tools"])
def test_anthropics_client_reads_the_same_of_a_stream_as_of_a_plain_reply(
    more: Json, client: anthropic.Anthropic
) -> None:
    plain = client.messages.create(**HELLO, **more)
    with client.messages.stream(**HELLO, **more) as stream:
        texts = [*stream.text_stream]
        whole = stream.get_final_message()
    assert whole.to_dict() == plain.to_dict()
    assert "".join(texts) == "".join(one.text for one in plain.content if one.type == "text")
    calls = [one for one in plain.content if one.type == "tool_use"]
    assert [one.input for one in calls] == [one.arguments for one in CALLS[: len(calls)]]
    assert plain.stop_reason == ("tool_use" if more else "end_turn")
    assert plain._request_id == TRACE
    check_usage(plain.usage.to_dict(mode="json"), BILL)


@pytest.mark.parametrize("status", STATUSES)
def test_a_refusal_is_the_exception_of_anthropics_client(
    status: int, client: anthropic.Anthropic
) -> None:
    with pytest.raises(STATUSES[status], match=r"Ask later\.") as caught:
        client.messages.create(**{**HELLO, "model": str(status)})
    assert caught.value.status_code == status
    assert (caught.value.type, caught.value.error_code) == ("rate_limit_error", "too_many")
    assert caught.value.request_id == TRACE


def test_a_stream_that_fails_is_an_exception_of_anthropics_client(
    client: anthropic.Anthropic,
) -> None:
    with (
        client.messages.stream(**{**HELLO, "model": "500"}) as stream,
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        stream.get_final_message()
    assert caught.value.api_message == "Ask later."


@pytest.mark.parametrize("streaming", [False, True])
def test_what_podium_bills_as_a_client_is_what_the_server_says(streaming: bool, url: str) -> None:
    async def ask() -> tuple[str, Usage | None]:
        model = get_model("anthropic/toy", base_url=url, api_key="key", streaming=streaming)
        async with model:
            said: list[ChatMessage] = [ChatMessageUser(content="Hello.")]
            result = await model.api.generate(said, [], "auto", GenerateConfig(max_tokens=100))
        assert isinstance(result, tuple)
        output, call = result
        assert isinstance(output, ModelOutput)
        return output.completion, usage_of_reply(output, call.response)

    assert asyncio.run(ask()) == ("Twelve. " * 100, read_as(BILL))


@pytest.mark.parametrize("kind", get_args(RefusalKind))
def test_every_refusal_has_a_type_of_anthropics(kind: RefusalKind) -> None:
    refusal = Refusal(400, kind, "It is so.", param="seed")
    dialect = AnthropicMessages()
    check_error(dict(dialect.error(refusal, TRACE)), refusal)
    (event,) = dialect.stream(read(), TRACE, 1).fail(refusal)
    assert event.name == "error"
    check_error(json.loads(event.data), refusal)


REPLIES = [
    reply_of(),
    reply_of(text="Long. " * 200),
    reply_of(text=""),
    reply_of(text="", tool_calls=CALLS, stop="stop"),
    reply_of(text="I look.", tool_calls=CALLS, stop="tool_calls"),
    reply_of(bill=Bill(visible=None, orchestration=Usage(1, 2), calls=2, usd=None)),
    reply_of(bill=Bill(visible=Usage(1, 2), orchestration=None, calls=2, usd=None)),
    reply_of(bill=Bill(visible=Usage(1, 2), orchestration=Usage(), calls=1, usd=None)),
]


@pytest.mark.parametrize("reply", REPLIES)
def test_every_reply_is_a_message_and_a_stream_of_one(reply: ServedReply) -> None:
    check_message(dict(AnthropicMessages().reply(read(), reply)), reply)
    check_stream(stream_of(reply), reply)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("stop", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_length", "model_context_window_exceeded"),
        ("content_filter", "refusal"),
        ("unknown", "end_turn"),
    ],
)
def test_why_a_reply_ended_is_said_in_anthropics_words(stop: Any, reason: str) -> None:
    assert AnthropicMessages().reply(read(), reply_of(stop=stop))["stop_reason"] == reason


def test_a_beat_has_data_and_says_what_has_begun() -> None:
    assert [json.loads(one.data) for one in stream_of(reply_of())[:4]] == [
        {"type": "ping"},
        {"type": "ping", "step": "planning"},
        {"type": "ping"},
        {"type": "ping", "step": "step 2 of 3: atlas"},
    ]


# The checks see what goes wrong


def _body(change: Callable[[Json], Any]) -> Callable[[Json], Json]:
    def changed(body: Json) -> Json:
        change(body)
        return body

    return changed


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda body: body.pop("usage"), id="no usage"),
        pytest.param(lambda body: body["usage"].pop("total_tokens"), id="no total"),
        pytest.param(lambda body: body["usage"].pop("cost"), id="no cost"),
        pytest.param(
            lambda body: body["usage"].pop("orchestration_input_tokens"), id="no orchestration"
        ),
        pytest.param(lambda body: body["usage"].update(output_tokens=10), id="a token more"),
        pytest.param(lambda body: body.update(stop_reason=None), id="no stop reason"),
        pytest.param(lambda body: body["content"].clear(), id="no text"),
        pytest.param(lambda body: body.update(role="user"), id="another's"),
    ],
)
def test_a_message_with_a_fault_is_seen(change: Callable[[Json], Any]) -> None:
    body = json.loads(json.dumps(AnthropicMessages().reply(read(), reply_of())))
    check_message(body, reply_of())
    change(body)
    with pytest.raises((AssertionError, ValueError, KeyError)):
        check_message(body, reply_of())


@pytest.mark.parametrize("lost", range(4, 11))
def test_a_stream_that_lost_an_event_or_its_name_is_seen(lost: int) -> None:
    reply = reply_of(text="Long. " * 50)
    events = stream_of(reply)
    assert len(events) == 11
    with pytest.raises((AssertionError, ValueError, KeyError, IndexError)):
        check_stream(events[:lost] + events[lost + 1 :], reply)
    events[lost] = StreamEvent(events[lost].data)
    with pytest.raises(AssertionError):
        check_stream(events, reply)


# The bill

COUNTS = st.integers(0, 10_000_000)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    wrote, asked = draw(COUNTS), draw(COUNTS)
    return Usage(
        input=draw(COUNTS),
        output=draw(COUNTS),
        cache_read=draw(COUNTS),
        cache_write=wrote,
        cache_write_1h=draw(st.integers(0, wrote)),
        reasoning=draw(st.none() | st.integers(1, 10)),
        orchestration_in=asked,
        orchestration_in_cached=draw(st.integers(0, asked)),
        orchestration_out=draw(COUNTS),
    )


BILLS = st.builds(
    Bill,
    visible=st.none() | usages(),
    orchestration=st.none() | usages(),
    calls=st.integers(1, 9),
    usd=st.none(),
)


@given(BILLS, st.none() | st.decimals(0, 100, places=6))
def test_what_podium_reads_of_a_usage_is_the_bill_to_the_token(
    bill: Bill, usd: Decimal | None
) -> None:
    bill = dataclasses.replace(bill, usd=None if bill.total_tokens is None else usd)
    reply = reply_of(bill=bill)
    check_usage(message_usage(bill), bill)
    body = json.loads(json.dumps(AnthropicMessages().reply(read(), reply)))
    check_message(body, reply)
    output = asyncio.run(model_output_from_anthropic(body))
    assert usage_of_event(usage_from(output.usage), raw_usage(body)) == read_as(bill)


# Counting


@modelapi("wordcounting")
class WordCounting(ModelAPI):
    """A model that counts words, and breaks where it is to count a certain one."""

    async def generate(self, *_: Any) -> Any:
        raise NotImplementedError

    async def count_text_tokens(self, text: str) -> int:
        if "broken" in text:
            raise ConnectionError("no table")
        return len(text.split()) + len(self.model_name)


def counted(text: str, *names: str, **more: Any) -> Any:
    async def count() -> Any:
        body = {"model": "podium/toy", "messages": asked(text), **more}
        request = await AnthropicMessages().read_count(body)
        return await count_tokens(request, [get_model(f"wordcounting/{name}") for name in names])

    return asyncio.run(count())


def test_a_conversation_has_as_many_tokens_as_the_worker_counts_that_counts_most() -> None:
    assert counted("one two three", "x") == {"input_tokens": 4}
    assert counted("one two three", "x", "long", "yy") == {"input_tokens": 7}
    assert counted("one two three", "x", system="four")["input_tokens"] == 5
    assert counted("one two three", "x", tools=[WEATHER])["input_tokens"] > 10


@pytest.mark.parametrize("names", [(), ("x",)], ids=["nobody", "broken"])
def test_a_count_that_cannot_be_had_is_refused_and_not_guessed(names: tuple[str, ...]) -> None:
    with pytest.raises(Refusal) as caught:
        counted("broken", *names)
    assert (caught.value.status, caught.value.kind) == (501, "unsupported_parameter")


def test_a_count_takes_no_sampling() -> None:
    with pytest.raises(Refusal, match="`max_tokens` cannot be honoured"):
        counted("one", "x", max_tokens=3)
