"""OpenAI's Chat Completions: requests read, replies and streams written."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

from inspect_ai.model import StopReason, messages_from_openai
from inspect_ai.tool import ToolInfo
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BeforeValidator, Field

from podium.harness.text import make_storable
from podium.serving.exchange import (
    DialectName,
    Refusal,
    ReplyStream,
    ServedReply,
    ServedRequest,
    StepBegun,
    StreamEvent,
    invalid,
    text_pieces,
    unsupported,
)
from podium.serving.openai_fields import (
    Effort,
    Fields,
    FunctionFields,
    Penalty,
    PlainFormat,
    SchemaFields,
    SharedFields,
    StreamOptions,
    Tokens,
    asked_sampling,
    content_parts,
    error_body,
    function_tool,
    read_fields,
    read_messages,
    read_tool_choice,
    refuse_address,
    refuse_twins,
    response_schema,
    usage_fields,
)

Token = Annotated[str, Field(pattern="^[0-9]{1,9}$")]
Bias = Annotated[float, Field(ge=-100, le=100)]


class ChatFormat(PlainFormat):
    """`response_format`."""

    json_schema: SchemaFields | None = None


class ChatToolFields(Fields):
    """One of `tools`."""

    type: Literal["function"]
    function: FunctionFields


class CalledFields(Fields):
    """A function and the arguments it was called with."""

    name: str
    arguments: str


class ChatCallFields(Fields):
    """One of an assistant's `tool_calls`."""

    id: str
    type: Literal["function"]
    function: CalledFields


class ChatMessageFields(Fields):
    """One of `messages`; the converter reads them, but it drops what it does not know."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Any = None
    tool_calls: list[ChatCallFields] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning: Any = None  # these three: how other servers name it
    reasoning_content: Any = None
    reasoning_details: Any = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None


class ChatFields(SharedFields):
    """The body of a request."""

    messages: Annotated[list[Any], Field(min_length=1)]
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    stop: Annotated[
        list[str] | None,
        BeforeValidator(lambda found: [found] if isinstance(found, str) else found),
    ] = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    logit_bias: dict[Token, Bias] | None = None
    reasoning_effort: Effort | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    response_format: ChatFormat | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None = None


ROLES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("system", "developer", "tool"), ("text",)),
    "user": ("text", "image_url"),
    "assistant": ("text", "refusal"),
}  # the parts that each role's content may have
FINISH: Mapping[StopReason, Literal["stop", "length", "tool_calls", "content_filter"]] = {
    "stop": "stop",
    "unknown": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


class ChatCompletions:
    """The dialect of `/v1/chat/completions`."""

    name: DialectName = "chat"

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Return a request; Refusal (400) names what is wrong or cannot be honoured."""
        asked = read_fields(ChatFields, make_storable(body))
        said = [_said(one, f"messages[{number}]") for number, one in enumerate(asked.messages)]
        messages, images = await read_messages(messages_from_openai(said), "messages")
        tools = [_tool(one, f"tools[{at}]") for at, one in enumerate(asked.tools or [])]
        refuse_twins(tools)
        config, params = asked_sampling(_sampling(asked))
        options = asked.stream_options
        return ServedRequest(
            dialect=self.name,
            model=asked.model,
            messages=messages,
            tools=tools,
            tool_choice=read_tool_choice(asked.tool_choice, tools),
            config=config,
            params=params
            | ({"tools": "tools"} if tools else {})
            | ({"images": "image_url"} if images else {}),
            stream=bool(asked.stream),
            include_usage=bool(options and options.include_usage),
        )

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return a chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
        message["annotations"] = []
        if reply.tool_calls:
            message |= {"content": reply.text or None, "tool_calls": _calls(reply)}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
        whole = {
            "id": f"chatcmpl-{reply.trace}",
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [choice],
            "usage": usage_fields(reply.bill, "prompt_tokens", "completion_tokens"),
        }
        return ChatCompletion.model_validate(whole).model_dump(mode="json", exclude_unset=True)

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return OpenAI's error object; the trace is in its headers."""
        return error_body(refusal)

    def stream(self, request: ServedRequest, trace: str, created: int) -> ReplyStream:
        """Return the writer of chunks."""
        return ChatStream(request, trace, created)


def _said(found: Any, at: str) -> Any:
    """Return a message as the converter takes it: without what is null."""
    message = read_fields(ChatMessageFields, found, at)
    if message.role == "tool" and message.tool_call_id is None:
        raise invalid(f"{at}.tool_call_id", "a tool's message names the call that it answers")
    calling = message.role == "assistant" and (message.tool_calls or message.refusal)
    if not (calling and message.content is None):
        _check_content(message, f"{at}.content")
    return {name: value for name, value in found.items() if value is not None}


def _check_content(message: ChatMessageFields, at: str) -> None:
    kinds = ROLES[message.role]
    for where, part in content_parts(message.content, at):
        kind = part.get("type")
        if kind not in kinds:
            raise unsupported(f"{where}.type", f"it can only be {' or '.join(kinds)} here")
        if kind == "image_url":
            image = part.get("image_url")
            url = cast(Mapping[str, Any], image).get("url") if isinstance(image, Mapping) else None
            refuse_address(url, f"{where}.image_url.url")


def _tool(found: object, at: str) -> ToolInfo:
    return function_tool(read_fields(ChatToolFields, found, at).function, f"{at}.function")


def _sampling(asked: ChatFields) -> Iterator[tuple[str, str, Any]]:
    limit, older = asked.max_completion_tokens, asked.max_tokens
    if None not in (limit, older) and limit != older:
        raise invalid("max_tokens", "`max_completion_tokens` says another number")
    name = "max_tokens" if limit is None else "max_completion_tokens"
    yield "max_tokens", name, older if limit is None else limit
    yield "stop_seqs", "stop", asked.stop or None
    if asked.parallel_tool_calls is False:  # true is what every server does unasked
        yield "parallel_tool_calls", "parallel_tool_calls", False
    for field in ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"):
        yield field, field, getattr(asked, field)
    yield "logit_bias", "logit_bias", asked.logit_bias
    yield "reasoning_effort", "reasoning_effort", asked.reasoning_effort
    yield "verbosity", "verbosity", asked.verbosity
    form = asked.response_format
    if form is not None and form.type == "json_schema":
        at = "response_format.json_schema"
        if form.json_schema is None:
            raise invalid(at, "it is missing")
        yield "response_schema", "response_format", response_schema(form.json_schema, at)


def _finish(reply: ServedReply) -> str:
    calls = reply.tool_calls and reply.stop in ("stop", "unknown")  # as some providers call it
    return "tool_calls" if calls else FINISH[reply.stop]


def _calls(reply: ServedReply) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
        }
        for call in reply.tool_calls
    ]


class ChatStream:
    """A chat completion in chunks; a beat is a chunk that adds nothing."""

    def __init__(self, request: ServedRequest, trace: str, created: int) -> None:
        """Write for one request."""
        self._request, self._trace, self._created = request, trace, created

    def begin(self) -> Iterator[StreamEvent]:
        """Yield the chunk that says who speaks."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield an empty chunk; `podium.step` beside its choices says what has begun."""
        yield self._chunk({}, {} if step is None else {"podium": {"step": str(step)}})

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the text, the calls, why it ended, and the usage where it was asked for."""
        for piece in text_pieces(reply.text):
            yield self._chunk({"content": piece})
        for index, call in enumerate(_calls(reply)):
            yield self._chunk({"tool_calls": [{"index": index, **call}]})
        yield self._chunk({}, finish=_finish(reply))
        if self._request.include_usage:
            usage = usage_fields(reply.bill, "prompt_tokens", "completion_tokens")
            yield self._event({"choices": [], "usage": usage})
        yield StreamEvent("[DONE]")

    def fail(self, refusal: Refusal) -> Iterator[StreamEvent]:
        """Yield the error object, which clients raise."""
        yield StreamEvent(json.dumps(error_body(refusal)))
        yield StreamEvent("[DONE]")

    def _chunk(
        self, delta: Mapping[str, Any], more: Mapping[str, Any] | None = None, finish: Any = None
    ) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event({"choices": [choice], **(more or {})})

    def _event(self, what: Mapping[str, Any]) -> StreamEvent:
        """Return a chunk; where usage was asked for, OpenAI has a null in all but the last one."""
        whole = {
            "id": f"chatcmpl-{self._trace}",
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._request.model,
            **({"usage": None} if self._request.include_usage else {}),
            **what,
        }
        chunk = ChatCompletionChunk.model_validate(whole)
        return StreamEvent(json.dumps(chunk.model_dump(mode="json", exclude_unset=True)))
