"""Anthropic's Messages: how its clients write requests and read replies, and its count of tokens.

Thinking is asked of workers and paid, and shown to nobody: no reply has blocks of it. Which stop
sequence ended a reply, no provider of Inspect's says, so such a reply ends its turn.
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
"""Why a reply ended before its end."""
EVENTS: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
COUNTING_S = 30.0  # how long a provider may take to count


class AnthropicMessages:
    """Requests and replies of POST /v1/messages."""

    name: DialectName = "messages"

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Return a request; Refusal (400) names the field that is wrong or cannot be honoured."""
        found = read_fields(MessageFields, body)
        config, params = _sampling(found)
        return await _request(found, config, params, stream=bool(found.stream))

    async def read_count(self, body: Mapping[str, Any]) -> ServedRequest:
        """Return a request whose tokens are to be counted, as `read` does."""
        return await _request(read_fields(CountFields, body), GenerateConfig(), {})

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return the body of a reply that is not streamed."""
        return _message(reply).model_dump()

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return the body of an error; `error_code` is what the client's exception calls it."""
        details = {"error_code": refusal.kind, "param": refusal.param}
        error = {"type": ERROR_TYPES[refusal.kind], "message": str(refusal), "details": details}
        return {"type": "error", "error": error, "request_id": trace}

    def stream(self, request: ServedRequest, trace: str, created: int) -> "MessageStream":
        """Return the writer of a streamed reply."""
        return MessageStream(self, trace)


async def _request(
    found: CountFields, config: GenerateConfig, params: dict[str, str], *, stream: bool = False
) -> ServedRequest:
    messages = await _conversation(found)
    tools = _tools(found)
    more = {"tools": "tools"} if tools else {}
    if shown := _shown(messages):
        more["images"] = shown
    return ServedRequest(
        dialect="messages",
        model=found.model,
        messages=messages,
        tools=tools,
        tool_choice=_tool_choice(found, tools),
        config=config,
        params={**params, **more},
        stream=stream,
    )


async def _conversation(found: CountFields) -> list[ChatMessage]:
    if found.messages[-1].role == "assistant":
        raise unsupported("messages", "end them with the user's, for no answer can be begun here")
    # Inspect keeps what its messages have no field for beside them, for one sample at a time;
    # without one of its own, a request would leave it to the process for good.
    init_sample_assistant_internal()
    try:
        turns = [turn.model_dump(exclude_unset=True) for turn in found.messages]
        messages = await messages_from_anthropic(cast(list[MessageParam], turns))
    except Exception:  # too deep, or whatever anthropic's own objects raise
        raise invalid("messages", "they cannot be read as a conversation") from None
    for one in messages:
        if isinstance(one, ChatMessageTool) and one.function is None:
            asked = one.tool_call_id or ""
            raise invalid("messages", f"no call before it has the id of a result, {asked!r:.80}")
    if not _shown(messages) and not any(one.text.strip() for one in messages):
        raise invalid("messages", "nothing is said in them")
    return [*_system(found), *messages]


def _system(found: CountFields) -> Iterator[ChatMessage]:
    """Yield a message a block: Anthropic drops blocks that begin as its headers do, whole."""
    system = found.system or ""
    texts = [system] if isinstance(system, str) else [one.text for one in system]
    yield from (ChatMessageSystem(content=text) for text in texts if text)


def _shown(messages: Sequence[ChatMessage]) -> str:
    """Return the kind of the first block that is no text; empty where all are."""
    for one in messages:
        for part in one.content if isinstance(one.content, list) else []:
            if isinstance(part, ContentImage | ContentDocument):
                return part.type
    return ""


def _tools(found: CountFields) -> Sequence[ToolInfo]:
    tools = found.tools or []
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise invalid("tools", "two of them have one name")
    return [
        tool_info(tool.name, tool.description, tool.input_schema, f"tools.{number}.input_schema")
        for number, tool in enumerate(tools)
    ]


def _tool_choice(found: CountFields, tools: Sequence[ToolInfo]) -> ToolChoice | None:
    choice = found.tool_choice
    if choice is None:
        return None
    if choice.type == "tool":
        if choice.name not in [tool.name for tool in tools]:
            raise invalid("tool_choice.name", "it names none of `tools`")
        return ToolFunction(name=choice.name)
    if not tools and choice.type == "any":
        raise invalid("tool_choice", "there are no `tools` to choose from")
    return choice.type


def _sampling(found: MessageFields) -> tuple[GenerateConfig, dict[str, str]]:
    """Return what was asked for, and by our name what the dialect calls it."""
    choice = found.tool_choice
    one_call = False if choice and choice.disable_parallel_tool_use else None
    asked = {
        "max_tokens": ("max_tokens", found.max_tokens),
        "temperature": ("temperature", found.temperature),
        "top_p": ("top_p", found.top_p),
        "top_k": ("top_k", found.top_k),
        "stop_seqs": ("stop_sequences", found.stop_sequences or None),
        "parallel_tool_calls": ("tool_choice.disable_parallel_tool_use", one_call),
        **_reasoning(found),
    }
    given = {field: one for field, one in asked.items() if one[1] is not None}
    config = GenerateConfig(**cast(dict[str, Any], {field: one[1] for field, one in given.items()}))
    return config, {field: one[0] for field, one in given.items()}


def _reasoning(found: MessageFields) -> dict[str, tuple[str, int | str | None]]:
    """Return how much thought is asked for; who wants none asks for none."""
    effort = found.output_config.effort if found.output_config else None
    thinking = found.thinking
    if thinking is not None and thinking.type == "adaptive":
        # Inspect asks for it by a `reasoning_effort`; Anthropic documents "high" where none is said
        return {"reasoning_effort": ("thinking", effort or "high")}
    budget = thinking.budget_tokens if thinking and thinking.type == "enabled" else None
    return {
        "effort": ("output_config.effort", effort),
        "reasoning_tokens": ("thinking", budget),
    }


def message_usage(bill: RequestBill) -> dict[str, Any]:
    """Return a bill as Anthropic's usage with Fugu's counts beside it; `harness.usage` reads it.

    Anthropic's counts must be integers. So where a part of the tokens is unknown, every count is
    what is known, at least that many, and 0 where nothing is; `incomplete` says so, and there is
    neither a total nor a cost. A price that is unknown is no cost either.
    """
    seen, rest = bill.visible or Usage(), bill.orchestration or Usage()
    usage: dict[str, Any] = {
        "input_tokens": seen.input,
        "cache_read_input_tokens": seen.cache_read,
        "cache_creation_input_tokens": seen.cache_write,
        "output_tokens": seen.output,
        # A worker may orchestrate, too.
        "orchestration_input_tokens": (
            rest.input_total + rest.orchestration_in + seen.orchestration_in
        ),
        "orchestration_input_cached_tokens": (
            rest.cache_read + rest.orchestration_in_cached + seen.orchestration_in_cached
        ),
        "orchestration_output_tokens": (
            rest.output + rest.orchestration_out + seen.orchestration_out
        ),
    }
    if seen.cache_write:
        usage["cache_creation"] = {
            "ephemeral_1h_input_tokens": seen.cache_write_1h,
            "ephemeral_5m_input_tokens": seen.cache_write - seen.cache_write_1h,
        }
    if seen.reasoning is not None:
        usage["output_tokens_details"] = {"thinking_tokens": seen.reasoning}
    if bill.total_tokens is None:
        return {**usage, INCOMPLETE: True}
    usage["total_tokens"] = bill.total_tokens
    return usage if bill.usd is None else {**usage, "cost": float(bill.usd)}


def _message(reply: ServedReply) -> Message:
    text = [TextBlock(type="text", text=reply.text)]
    direct = DirectCaller(type="direct")  # the document asks for one, and types have it optional
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
        # By the calls that are there: some providers call it a plain stop.
        stop_reason=STOPS.get(reply.stop, "tool_use" if calls else "end_turn"),
        usage=MessageUsage.model_validate(message_usage(reply.bill)),
    )


class MessageStream:
    """A reply as events: pings while it is waited for, and then a message.

    The message begins when its usage is known, since clients keep what only its beginning has:
    anthropic's own drops the counts of `message_delta` that it does not know.
    """

    def __init__(self, dialect: AnthropicMessages, trace: str) -> None:
        """Stand at the beginning."""
        self._dialect, self._trace = dialect, trace

    def begin(self) -> Iterator[StreamEvent]:
        """Yield a first sign of life."""
        yield from self.beat(None)

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield a ping, and in it what has begun."""
        said = {} if step is None else {"step": str(step)}
        yield StreamEvent(json.dumps({"type": "ping", **said}), "ping")

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the message from its beginning to its stop."""
        whole = _message(reply).model_dump()
        yield _event("message_start", message={**whole, "content": [], "stop_reason": None})
        for index, block in enumerate(whole["content"]):
            yield from _block(index, block)
        delta = {"stop_reason": whole["stop_reason"]}
        yield _event("message_delta", delta=delta, usage=message_usage(reply.bill))
        yield _event("message_stop")

    def fail(self, refusal: Refusal) -> Iterator[StreamEvent]:
        """Yield an error, which ends the stream."""
        yield StreamEvent(json.dumps(self._dialect.error(refusal, self._trace)), "error")


def _block(index: int, block: Mapping[str, Any]) -> Iterator[StreamEvent]:
    """Yield a block: its frame, what fills it piece by piece, and its end."""
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
    """Return an event once it is one of anthropic's own."""
    event = EVENTS.validate_python({"type": name, **fields})
    return StreamEvent(json.dumps(event.model_dump()), name)


async def count_tokens(request: ServedRequest, models: Sequence[Model]) -> Mapping[str, Any]:
    """Return the body that says how many tokens a request has: the most that a model counts.

    `models` are the workers that may be sent this conversation: a single system's one, a router's
    all; none for a system that plans, since it sends nobody the conversation as it is. Where a
    provider counts, that is its count; else it is Inspect's estimate, which needs a table from the
    network. Refusal (501) where a count cannot be had: there is no guess of ours.
    """
    if not models:
        raise _uncounted(f"{request.model} sends no worker the conversation as it is")
    counts: list[int] = []
    try:
        with anyio.fail_after(COUNTING_S):
            for model in models:
                tools = await model.count_tool_tokens(request.tools) if request.tools else 0
                counts.append(tools + await model.count_tokens(list(request.messages)))
    except Exception as error:  # a provider's, whatever it is
        raise _uncounted(f"counting failed ({type(error).__name__})") from error
    return MessageTokensCount(input_tokens=max(counts)).model_dump()


def _uncounted(why: str) -> Refusal:
    said = f"These tokens cannot be counted: {why}. Read `usage` of the replies instead."
    return Refusal(501, "unsupported_parameter", said)
