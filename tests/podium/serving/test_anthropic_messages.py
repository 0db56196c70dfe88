"""Anthropic's dialect: what is answered and billed, by its own client; the count of tokens."""

import asyncio
import dataclasses
import json
from collections.abc import Callable, Generator
from decimal import Decimal
from typing import Any, get_args

import anthropic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    get_model,
    model_output_from_anthropic,
    modelapi,
)

from podium.harness.records import Usage
from podium.harness.usage import raw_usage, usage_from, usage_of_event, usage_of_reply
from podium.serving.anthropic_messages import AnthropicMessages, count_tokens, message_usage
from podium.serving.exchange import (
    Refusal,
    RefusalKind,
    RequestBill,
    ServedReply,
    ServedRequest,
    StreamEvent,
)
from tests.podium.serving.message_checks import (
    BILL,
    CALLS,
    HELLO,
    TRACE,
    WEATHER,
    Json,
    asked,
    check_error,
    check_message,
    check_stream,
    check_usage,
    read,
    read_as,
    reply_of,
    serving,
    stream_of,
)
from tests.providers import CLIENTS_WARN

pytestmark = CLIENTS_WARN


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
    reply_of(bill=RequestBill(visible=None, orchestration=Usage(1, 2), calls=2, usd=None)),
    reply_of(bill=RequestBill(visible=Usage(1, 2), orchestration=None, calls=2, usd=None)),
    reply_of(bill=RequestBill(visible=Usage(1, 2), orchestration=Usage(), calls=1, usd=None)),
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
        ("tool_calls", "end_turn"),
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
    RequestBill,
    visible=st.none() | usages(),
    orchestration=st.none() | usages(),
    calls=st.integers(1, 9),
    usd=st.none(),
)


@given(BILLS, st.none() | st.decimals(0, 100, places=6))
def test_what_podium_reads_of_a_usage_is_the_bill_to_the_token(
    bill: RequestBill, usd: Decimal | None
) -> None:
    assume(bill.total_tokens != 0)  # Inspect's word for a total that nobody says
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

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
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
    with pytest.raises(Refusal, match="`max_tokens` is not supported"):
        counted("one", "x", max_tokens=3)
