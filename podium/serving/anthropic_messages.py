"""Anthropic's Messages API: its requests, its replies, and its token counts.

Workers' thinking is requested and billed but not returned: no reply has thinking blocks. Inspect's
providers do not report which stop sequence ended a reply: its stop reason is then `end_turn`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import anyio
from anthropic.types import (
    DirectCaller,
    Message,
    MessageParam,
    MessageTokensCount,
    RawMessageStreamEvent,
    StopReason,
    TextBlock,
    ToolUseBlock,
)
from anthropic.types import Usage as MessageUsage
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageTool,
    ContentDocument,
    ContentImage,
    GenerateConfig,
    Model,
    messages_from_anthropic,
)
from inspect_ai.model import StopReason as WorkerStop
from inspect_ai.model._assistant_internal import (  # pyright: ignore[reportMissingTypeStubs]
    init_sample_assistant_internal,
)
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo
from pydantic import TypeAdapter

from podium.harness.records import Usage
from podium.harness.usage import INCOMPLETE
from podium.serving.anthropic_fields import CountFields, MessageFields, read_fields
from podium.serving.exchange import (
    DialectName,
    Refusal,
    RequestBill,
    ServedReply,
    ServedRequest,
    StepBegun,
    StreamEvent,
    invalid,
    text_pieces,
    tool_info,
    unsupported,
)

ERROR_TYPES: Mapping[str, str] = {
    "invalid_request": "invalid_request_error",
    "unsupported_parameter": "invalid_request_error",
    "unauthorised": "authentication_error",
    "forbidden": "permission_error",
    "not_found": "not_found_error",
    "too_large": "request_too_large",
    "too_many": "rate_limit_error",
    "out_of_budget": "billing_error",
    "loop": "invalid_request_error",
    "cancelled": "api_error",
    "worker_failed": "api_error",
    "failed": "api_error",
    "stopping": "overloaded_error",
    "deadline": "timeout_error",
}
STOPS: Mapping[WorkerStop, StopReason] = {
    "max_tokens": "max_tokens",
    "model_length": "model_context_window_exceeded",
    "content_filter": "refusal",
}
"""Inspect's stop reason -> Anthropic's, for replies that were cut off."""
EVENTS: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
COUNTING_S = 30.0  # timeout of all providers' token counts, in seconds


class AnthropicMessages:
    """The dialect of POST /v1/messages, Anthropic's API: reads requests, writes replies."""

    name: DialectName = "messages"

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Parse a request's body; Refusal (400) names a field that is invalid or not supported."""
        fields = read_fields(MessageFields, body)
        config, params = _sampling(fields)
        return await _request(fields, config, params, stream=bool(fields.stream))

    async def read_count(self, body: Mapping[str, Any]) -> ServedRequest:
        """Parse the body of a request for a token count; Refusal (400) names an invalid field."""
        return await _request(read_fields(CountFields, body), GenerateConfig(), {})

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return the body of a reply that is not streamed: Anthropic's message object."""
        return _message(reply).model_dump()

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return the body of an error reply; its `error_code` is the `RefusalKind`."""
        details = {"error_code": refusal.kind, "param": refusal.param}
        error = {"type": ERROR_TYPES[refusal.kind], "message": str(refusal), "details": details}
        return {"type": "error", "error": error, "request_id": trace}

    def stream(self, request: ServedRequest, trace: str, created: int) -> "MessageStream":
        """Return the writer of the events of a streamed reply."""
        return MessageStream(self, trace)


async def _request(
    fields: CountFields, config: GenerateConfig, params: dict[str, str], *, stream: bool = False
) -> ServedRequest:
    messages = await _conversation(fields)
    tools = _tools(fields)
    extra = {"tools": "tools"} if tools else {}
    if kind := _shown(messages):
        extra["images"] = kind
    return ServedRequest(
        dialect="messages",
        model=fields.model,
        messages=messages,
        tools=tools,
        tool_choice=_tool_choice(fields, tools),
        config=config,
        params={**params, **extra},
        stream=stream,
    )


async def _conversation(fields: CountFields) -> list[ChatMessage]:
    if fields.messages[-1].role == "assistant":
        raise unsupported(
            "messages",
            "the last message must be the user's, since a begun answer cannot be continued",
        )
    # Inspect keeps data that its messages have no field for in a store of the sample. Without
    # this call, a request has no such store, and its data would stay in the process for good.
    init_sample_assistant_internal()
    try:
        turns = [turn.model_dump(exclude_unset=True) for turn in fields.messages]
        messages = await messages_from_anthropic(cast(list[MessageParam], turns))
    except Exception:  # too deeply nested, or any error of the anthropic library
        raise invalid("messages", "they cannot be read: check roles and blocks") from None
    for message in messages:
        if isinstance(message, ChatMessageTool) and message.function is None:
            call_id = message.tool_call_id or ""
            raise invalid(
                "messages",
                f"no tool call has the id {call_id!r:.80} of a result; send the call",
            )
    if not _shown(messages) and not any(message.text.strip() for message in messages):
        raise invalid("messages", "no message has a text or an image; send one")
    return [*_system(fields), *messages]


def _system(fields: CountFields) -> Iterator[ChatMessage]:
    """Yield one message per system block: Anthropic drops the block with its billing header."""
    system = fields.system or ""
    texts = [system] if isinstance(system, str) else [block.text for block in system]
    yield from (ChatMessageSystem(content=text) for text in texts if text)


def _shown(messages: Sequence[ChatMessage]) -> str:
    """Return the type of the first image or document in a conversation; empty if there is none."""
    for message in messages:
        for block in message.content if isinstance(message.content, list) else []:
            if isinstance(block, ContentImage | ContentDocument):
                return block.type
    return ""


def _tools(fields: CountFields) -> Sequence[ToolInfo]:
    tools = fields.tools or []
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise invalid("tools", "two tools have the same name; rename one")
    return [
        tool_info(tool.name, tool.description, tool.input_schema, f"tools.{number}.input_schema")
        for number, tool in enumerate(tools)
    ]


def _tool_choice(fields: CountFields, tools: Sequence[ToolInfo]) -> ToolChoice | None:
    choice = fields.tool_choice
    if choice is None:
        return None
    if choice.type == "tool":
        if choice.name not in [tool.name for tool in tools]:
            raise invalid("tool_choice.name", "no tool in `tools` has this name; name one of them")
        return ToolFunction(name=choice.name)
    if not tools and choice.type == "any":
        raise invalid("tool_choice", "the request has no `tools`; send some, or leave it out")
    return choice.type


def _sampling(fields: MessageFields) -> tuple[GenerateConfig, dict[str, str]]:
    """Return a request's sampling settings, and each setting's name in the request."""
    choice = fields.tool_choice
    one_call = False if choice and choice.disable_parallel_tool_use else None
    options = {
        "max_tokens": ("max_tokens", fields.max_tokens),
        "temperature": ("temperature", fields.temperature),
        "top_p": ("top_p", fields.top_p),
        "top_k": ("top_k", fields.top_k),
        "stop_seqs": ("stop_sequences", fields.stop_sequences or None),
        "parallel_tool_calls": ("tool_choice.disable_parallel_tool_use", one_call),
        **_reasoning(fields),
    }
    settings = {field: option for field, option in options.items() if option[1] is not None}
    values: dict[str, Any] = {field: value for field, (_, value) in settings.items()}
    return GenerateConfig(**values), {field: name for field, (name, _) in settings.items()}


def _reasoning(fields: MessageFields) -> dict[str, tuple[str, int | str | None]]:
    """Return reasoning settings: config field -> (name in the request, value; None: not set)."""
    effort = fields.output_config.effort if fields.output_config else None
    thinking = fields.thinking
    if thinking is not None and thinking.type == "adaptive":
        # Inspect requests it by a `reasoning_effort`; Anthropic documents "high" as the default
        return {"reasoning_effort": ("thinking", effort or "high")}
    budget = thinking.budget_tokens if thinking and thinking.type == "enabled" else None
    return {
        "effort": ("output_config.effort", effort),
        "reasoning_tokens": ("thinking", budget),
    }


def message_usage(bill: RequestBill) -> dict[str, Any]:
    """Return a bill as Anthropic's `usage`, plus orchestration counts as in Sakana's Fugu API.

    Anthropic's counts must be integers. So if a part of the tokens is unknown, every count is a
    lower bound, 0 if nothing is known; `incomplete` is true, and total and cost are omitted. If a
    price is unknown, the cost is omitted, too.
    """
    visible, hidden = bill.visible or Usage(), bill.orchestration or Usage()
    usage: dict[str, Any] = {
        "input_tokens": visible.input,
        "cache_read_input_tokens": visible.cache_read,
        "cache_creation_input_tokens": visible.cache_write,
        "output_tokens": visible.output,
        # A worker may be an orchestrator itself.
        "orchestration_input_tokens": (
            hidden.input_total + hidden.orchestration_in + visible.orchestration_in
        ),
        "orchestration_input_cached_tokens": (
            hidden.cache_read + hidden.orchestration_in_cached + visible.orchestration_in_cached
        ),
        "orchestration_output_tokens": (
            hidden.output + hidden.orchestration_out + visible.orchestration_out
        ),
    }
    if visible.cache_write:
        usage["cache_creation"] = {
            "ephemeral_1h_input_tokens": visible.cache_write_1h,
            "ephemeral_5m_input_tokens": visible.cache_write - visible.cache_write_1h,
        }
    if visible.reasoning is not None:
        usage["output_tokens_details"] = {"thinking_tokens": visible.reasoning}
    if bill.total_tokens is None:
        return {**usage, INCOMPLETE: True}
    usage["total_tokens"] = bill.total_tokens
    return usage if bill.usd is None else {**usage, "cost": float(bill.usd)}


def _message(reply: ServedReply) -> Message:
    text = [TextBlock(type="text", text=reply.text)]
    direct = DirectCaller(type="direct")  # required by the documentation, optional in the types
    calls = [
        ToolUseBlock(
            type="tool_use", id=call.id, name=call.function, input=call.arguments, caller=direct
        )
        for call in reply.tool_calls
    ]
    return Message(
        id=reply.trace.replace("req-", "msg_", 1),
        type="message",
        role="assistant",
        model=reply.model,
        content=[*(text if reply.text or not calls else ()), *calls],
        # Not from `stop` alone: some providers report `stop` for a reply with tool calls.
        stop_reason=STOPS.get(reply.stop, "tool_use" if calls else "end_turn"),
        usage=MessageUsage.model_validate(message_usage(reply.bill)),
    )


class MessageStream:
    """A reply as server-sent events: pings while the reply is pending, then a message.

    `message_start` is sent only when the usage is known, since clients keep the usage that it has:
    anthropic's own client drops counts of `message_delta` that it does not know.
    """

    def __init__(self, dialect: AnthropicMessages, trace: str) -> None:
        """Write the events of the reply to the request whose id is `trace`."""
        self._dialect, self._trace = dialect, trace

    def begin(self) -> Iterator[StreamEvent]:
        """Yield a first ping, before the reply is known."""
        yield from self.beat(None)

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield a ping; its field `step` names the workflow step that has begun, if any has."""
        extra = {} if step is None else {"step": str(step)}
        yield StreamEvent(json.dumps({"type": "ping", **extra}), "ping")

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the events of the whole message, from `message_start` to `message_stop`."""
        message = _message(reply).model_dump()
        yield _event("message_start", message={**message, "content": [], "stop_reason": None})
        for index, block in enumerate(message["content"]):
            yield from _block(index, block)
        delta = {"stop_reason": message["stop_reason"]}
        yield _event("message_delta", delta=delta, usage=message_usage(reply.bill))
        yield _event("message_stop")

    def fail(self, refusal: Refusal) -> Iterator[StreamEvent]:
        """Yield an error event, which ends the stream."""
        yield StreamEvent(json.dumps(self._dialect.error(refusal, self._trace)), "error")


def _block(index: int, block: Mapping[str, Any]) -> Iterator[StreamEvent]:
    """Yield the events of a message's content block: start, content in pieces, stop."""
    is_text = block["type"] == "text"
    kind, piece = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
    filling: str = block["text"] if is_text else json.dumps(block["input"])
    frame: dict[str, Any] = {**block, **({"text": ""} if is_text else {"input": {}})}
    yield _event("content_block_start", index=index, content_block=frame)
    for some in text_pieces(filling):
        delta = {"type": kind, piece: some}
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(name: str, **fields: Any) -> StreamEvent:
    """Return a server-sent event; the anthropic library's types validate its content."""
    event = EVENTS.validate_python({"type": name, **fields})
    return StreamEvent(json.dumps(event.model_dump()), name)


async def count_tokens(request: ServedRequest, models: Sequence[Model]) -> Mapping[str, Any]:
    """Return the reply body with a request's token count: the maximum over `models`.

    `models` are the workers that may get this conversation: the one worker of a `single` system,
    all workers of a router; none if the system plans, since no worker then gets the conversation
    unchanged. The count is the provider's, or Inspect's estimate, which needs a tokenizer table
    from the network. Refusal (501) if there is no count.
    """
    if not models:
        raise _uncounted(f"{request.model} sends no worker the unchanged conversation")
    counts: list[int] = []
    try:
        with anyio.fail_after(COUNTING_S):
            for model in models:
                tools = await model.count_tool_tokens(request.tools) if request.tools else 0
                counts.append(tools + await model.count_tokens(list(request.messages)))
    except Exception as error:  # any error of a provider
        raise _uncounted(f"counting failed ({type(error).__name__})") from error
    return MessageTokensCount(input_tokens=max(counts)).model_dump()


def _uncounted(reason: str) -> Refusal:
    sentence = f"These tokens cannot be counted: {reason}. Read `usage` of the replies instead."
    return Refusal(501, "unsupported_parameter", sentence)
