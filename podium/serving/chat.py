"""OpenAI's Chat Completions: reads requests, writes replies and streams."""

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
    """The field `response_format` of a chat request: the format of the answer."""

    json_schema: SchemaFields | None = None


class ChatToolFields(Fields):
    """An entry of `tools` in a chat request: one function."""

    type: Literal["function"]
    function: FunctionFields


class CalledFields(Fields):
    """The called function of a tool call: its name and its JSON arguments."""

    name: str
    arguments: str


class ChatCallFields(Fields):
    """An entry of `tool_calls` in an assistant's message of a chat request."""

    id: str
    type: Literal["function"]
    function: CalledFields


class ChatMessageFields(Fields):
    """A message of a chat request; validated here, as Inspect's converter drops unknown fields."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Any = None
    tool_calls: list[ChatCallFields] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning: Any = None  # three names that servers use for reasoning
    reasoning_content: Any = None
    reasoning_details: Any = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None


class ChatFields(SharedFields):
    """The body of a chat completion request."""

    messages: Annotated[list[Any], Field(min_length=1)]
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    stop: Annotated[
        list[str] | None,
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
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
}  # content types that each role may have
FINISH: Mapping[StopReason, Literal["stop", "length", "tool_calls", "content_filter"]] = {
    "stop": "stop",
    "unknown": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


class ChatCompletions:
    """The dialect of `/v1/chat/completions`: reads requests, writes replies."""

    name: DialectName = "chat"

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Parse a request's body; Refusal (400) if a field is invalid or not supported."""
        fields = read_fields(ChatFields, make_storable(body))
        turns = [_said(turn, f"messages[{number}]") for number, turn in enumerate(fields.messages)]
        messages, images = await read_messages(messages_from_openai(turns), "messages")
        tools = [_tool(tool, f"tools[{n}]") for n, tool in enumerate(fields.tools or [])]
        refuse_twins(tools)
        config, params = asked_sampling(_sampling(fields))
        options = fields.stream_options
        return ServedRequest(
            dialect=self.name,
            model=fields.model,
            messages=messages,
            tools=tools,
            tool_choice=read_tool_choice(fields.tool_choice, tools),
            config=config,
            params=params
            | ({"tools": "tools"} if tools else {})
            | ({"images": "image_url"} if images else {}),
            stream=bool(fields.stream),
            include_usage=bool(options and options.include_usage),
        )

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return the body of a reply that is not streamed: a chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
        message["annotations"] = []
        if reply.tool_calls:
            message |= {"content": reply.text or None, "tool_calls": _calls(reply)}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
        body = {
            "id": f"chatcmpl-{reply.trace}",
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [choice],
            "usage": usage_fields(reply.bill, "prompt_tokens", "completion_tokens"),
        }
        return ChatCompletion.model_validate(body).model_dump(mode="json", exclude_unset=True)

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return OpenAI's error object; the request's id (`trace`) is in the HTTP headers only."""
        return error_body(refusal)

    def stream(self, request: ServedRequest, trace: str, created: int) -> ReplyStream:
        """Return the writer of the chunks of a streamed reply."""
        return ChatStream(request, trace, created)


def _said(value: Any, path: str) -> Any:
    """Return a valid message of a request without null fields, as Inspect's converter needs it."""
    message = read_fields(ChatMessageFields, value, path)
    if message.role == "tool" and message.tool_call_id is None:
        raise invalid(
            f"{path}.tool_call_id",
            "a message with role `tool` needs the id of the call that it answers",
        )
    calling = message.role == "assistant" and (message.tool_calls or message.refusal)
    if not (calling and message.content is None):
        _check_content(message, f"{path}.content")
    return {name: value for name, value in value.items() if value is not None}


def _check_content(message: ChatMessageFields, path: str) -> None:
    kinds = ROLES[message.role]
    for place, block in content_parts(message.content, path):
        kind = block.get("type")
        if kind not in kinds:
            raise unsupported(f"{place}.type", f"send {' or '.join(kinds)}")
        if kind == "image_url":
            image = block.get("image_url")
            url = cast(Mapping[str, Any], image).get("url") if isinstance(image, Mapping) else None
            refuse_address(url, f"{place}.image_url.url")


def _tool(value: object, path: str) -> ToolInfo:
    return function_tool(read_fields(ChatToolFields, value, path).function, f"{path}.function")


def _sampling(fields: ChatFields) -> Iterator[tuple[str, str, Any]]:
    limit, older = fields.max_completion_tokens, fields.max_tokens
    if None not in (limit, older) and limit != older:
        raise invalid(
            "max_tokens", "`max_completion_tokens` has another value; send only one of them"
        )
    name = "max_tokens" if limit is None else "max_completion_tokens"
    yield "max_tokens", name, older if limit is None else limit
    yield "stop_seqs", "stop", fields.stop or None
    if fields.parallel_tool_calls is False:  # true is every server's default
        yield "parallel_tool_calls", "parallel_tool_calls", False
    for field in ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"):
        yield field, field, getattr(fields, field)
    yield "logit_bias", "logit_bias", fields.logit_bias
    yield "reasoning_effort", "reasoning_effort", fields.reasoning_effort
    yield "verbosity", "verbosity", fields.verbosity
    form = fields.response_format
    if form is not None and form.type == "json_schema":
        path = "response_format.json_schema"
        if form.json_schema is None:
            raise invalid(path, "it is missing; send the schema")
        yield "response_schema", "response_format", response_schema(form.json_schema, path)


def _finish(reply: ServedReply) -> str:
    calls = reply.tool_calls and reply.stop in ("stop", "unknown")  # some providers send these
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
    """A chat completion in chunks; while the reply is pending, a heartbeat is an empty chunk."""

    def __init__(self, request: ServedRequest, trace: str, created: int) -> None:
        """Write the chunks of the reply to request `trace` (its id); `created` is a Unix time."""
        self._request, self._trace, self._created = request, trace, created

    def begin(self) -> Iterator[StreamEvent]:
        """Yield the first chunk: the role `assistant` and an empty text."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield an empty chunk; its field `podium.step` names the workflow step that has begun."""
        yield self._chunk({}, {} if step is None else {"podium": {"step": str(step)}})

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the text, tool calls and finish reason, and the usage if it was requested."""
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
        """Yield the error object, which clients raise as an exception, and the mark of the end."""
        yield StreamEvent(json.dumps(error_body(refusal)))
        yield StreamEvent("[DONE]")

    def _chunk(
        self, delta: Mapping[str, Any], extra: Mapping[str, Any] | None = None, finish: Any = None
    ) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event({"choices": [choice], **(extra or {})})

    def _event(self, fields: Mapping[str, Any]) -> StreamEvent:
        """Return a chunk; if usage was requested, `usage` is null except in the last chunk."""
        body = {
            "id": f"chatcmpl-{self._trace}",
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._request.model,
            **({"usage": None} if self._request.include_usage else {}),
            **fields,
        }
        chunk = ChatCompletionChunk.model_validate(body)
        return StreamEvent(json.dumps(chunk.model_dump(mode="json", exclude_unset=True)))
