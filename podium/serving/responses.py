"""OpenAI's Responses, without a store: requests read, replies and streams written."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Literal, cast

from inspect_ai.model import ChatMessageSystem, messages_from_openai_responses
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import Field, TypeAdapter

from podium.harness.text import make_storable
from podium.serving.exchange import (
    DialectName,
    Refusal,
    RefusalKind,
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
    PlainFormat,
    SchemaFields,
    SharedFields,
    StreamOptions,
    Tokens,
    asked_sampling,
    content_parts,
    error_body,
    function_tool,
    kind_of,
    read_fields,
    read_messages,
    read_tool_choice,
    refuse_address,
    refuse_twins,
    response_schema,
    usage_fields,
)


class ReasoningFields(Fields):
    """`reasoning`. A summary of our own choosing may be none at all."""

    effort: Effort | None = None
    summary: Literal["auto", "none"] | None = None
    generate_summary: Literal["auto"] | None = None


class SchemaFormat(SchemaFields):
    """`text.format` of JSON."""

    type: Literal["json_schema"]


class TextFields(Fields):
    """`text`."""

    format: dict[str, Any] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ResponsesFields(SharedFields):
    """The body of a request."""

    input: Any
    instructions: str | None = None
    max_output_tokens: Tokens | None = None
    reasoning: ReasoningFields | None = None
    text: TextFields | None = None
    # No item of ours has reasoning that could be encrypted; Codex always asks for it.
    include: list[Literal["reasoning.encrypted_content"]] | None = None
    truncation: Literal["disabled"] | None = None
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    background: Literal[False] | None = None
    stream_options: StreamOptions | None = None
    client_metadata: dict[str, Any] | None = None
    """Codex's name for what it tells a server of itself."""


class FunctionToolFields(FunctionFields):
    """A function among `tools`, or in a namespace of them."""

    type: Literal["function"]


class NamespaceFields(Fields):
    """Functions under one roof, as Codex offers those for its sub-agents."""

    type: Literal["namespace"]
    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    tools: list[Any]


ITEMS = ("message", "function_call", "function_call_output", "reasoning")
SAID, HEARD = ("output_text", "refusal"), ("input_text", "input_image")
"""Parts of what an assistant says, and of all else; the converter drops others in silence."""
FAILED: Mapping[RefusalKind, str] = {
    "too_many": "rate_limit_exceeded",
    "out_of_budget": "rate_limit_exceeded",
    "invalid_request": "invalid_prompt",
    "unsupported_parameter": "invalid_prompt",
}  # codes of a failed response; of all others: server_error
CUT: Mapping[str, str] = {
    "max_tokens": "max_output_tokens",
    "model_length": "max_output_tokens",
    "content_filter": "content_filter",
}  # why a reply is incomplete
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


class OpenAIResponses:
    """The dialect of `/v1/responses`."""

    name: DialectName = "responses"

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Return a request; Refusal (400) names what is wrong or cannot be honoured."""
        asked = read_fields(ResponsesFields, make_storable(body))
        _check_input(asked.input)
        convert = messages_from_openai_responses(_for_inspect(asked.input))
        messages, images = await read_messages(convert, "input")
        if asked.instructions:
            messages.insert(0, ChatMessageSystem(content=asked.instructions))
        offered = Offer(asked.tools or [])
        choice = read_tool_choice(asked.tool_choice, offered.tools)
        config, params = asked_sampling(_sampling(asked))
        if offered.tools:
            params["tools"] = "tools"
        if images:
            params["images"] = "input_image"
        return ServedRequest(
            dialect=self.name,
            model=asked.model,
            messages=messages,
            tools=offered.tools,
            tool_choice=choice,
            config=config,
            params=params,
            stream=bool(asked.stream),
            echo={**_echo(asked), "tools": offered.echo, "tool_choice": _chosen(choice)},
        )

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return a response object."""
        return _ended(request, reply, [item.whole for item in _items(request, reply)])

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return OpenAI's error object; the trace is in its headers."""
        return error_body(refusal)

    def stream(self, request: ServedRequest, trace: str, created: int) -> ReplyStream:
        """Return the writer of events."""
        return ResponsesStream(request, trace, created)


def _for_inspect(found: Any) -> Any:
    """Return input as the converter takes it.

    It drops an assistant's parts where a message does not say that it is one, and it keeps a call's
    namespace for as long as the process lives.
    """
    if isinstance(found, str):
        return found
    items = cast(list[dict[str, Any]], found)
    plain = ({k: v for k, v in one.items() if k != "namespace"} for one in items)
    return [{"type": "message", **one} for one in plain]


def _check_input(found: object) -> None:
    if isinstance(found, str):
        return
    if not isinstance(found, list) or not found:
        raise invalid("input", "it is a text, or a list of items")
    for number, item in enumerate(cast(list[object], found)):
        at = f"input[{number}]"
        if not isinstance(item, Mapping):
            raise invalid(at, "it is an object")
        _check_item(cast(Mapping[str, Any], item), at)


def _check_item(item: Mapping[str, Any], at: str) -> None:
    kind = item.get("type", "message")
    if kind not in ITEMS:
        raise unsupported(f"{at}.type", f"it can only be {', '.join(ITEMS)} here")
    if kind == "message" and item.get("role") not in ("user", "assistant", "system", "developer"):
        raise invalid(f"{at}.role", "it is user, assistant, system or developer")
    held = {"message": "content", "function_call_output": "output"}.get(kind)
    if held is None:
        return
    parts = SAID if item.get("role") == "assistant" else HEARD
    for where, part in content_parts(item.get(held), f"{at}.{held}"):
        if part.get("type") not in parts:
            raise unsupported(f"{where}.type", f"it can only be {' or '.join(parts)} here")
        if part["type"] == "input_image":
            refuse_address(part.get("image_url"), f"{where}.image_url")


class Offer:
    """The tools of a request: as workers are offered them, and as its reply repeats them."""

    def __init__(self, found: list[Any]) -> None:
        """Read them; Refusal names one that cannot be offered."""
        self.tools: list[ToolInfo] = []
        self.echo: list[dict[str, Any]] = []
        for number, tool in enumerate(found):
            self._add(tool, f"tools[{number}]")
        refuse_twins(self.tools)

    def _add(self, tool: Any, at: str) -> None:
        kind = kind_of(tool)
        if kind == "namespace":
            space = read_fields(NamespaceFields, tool, at)
            inner = [self._function(one, f"{at}.tools[{n}]") for n, one in enumerate(space.tools)]
            self.echo.append({**space.model_dump(), "tools": inner})
        elif kind in (None, "function"):
            self.echo.append(self._function(tool, at))
        elif kind != "web_search":
            raise unsupported(f"{at}.type", "workers can only be offered functions")
        elif tool.get("external_web_access") is not False:
            # Codex offers a search that forbids the web unless its own is switched off. A model
            # need not take it: it is withheld, and does not stand among the tools of the reply.
            said = 'no worker searches the web (Codex: web_search = "disabled")'
            raise unsupported(f"{at}.external_web_access", said)

    def _function(self, tool: object, at: str) -> dict[str, Any]:
        found = read_fields(FunctionToolFields, tool, at)
        self.tools.append(function_tool(found, at))
        return {**found.model_dump(), "strict": bool(found.strict)}


def _sampling(asked: ResponsesFields) -> Iterator[tuple[str, str, Any]]:
    yield "max_tokens", "max_output_tokens", asked.max_output_tokens
    yield "temperature", "temperature", asked.temperature
    yield "top_p", "top_p", asked.top_p
    if asked.parallel_tool_calls is False:  # true is what every server does unasked
        yield "parallel_tool_calls", "parallel_tool_calls", False
    if asked.reasoning:
        yield "reasoning_effort", "reasoning.effort", asked.reasoning.effort
    if asked.text is None:
        return
    yield "verbosity", "text.verbosity", asked.text.verbosity
    form = asked.text.format
    if form is not None and form.get("type") == "json_schema":
        found = read_fields(SchemaFormat, form, "text.format")
        yield "response_schema", "text.format", response_schema(found, "text.format")
    elif form is not None:
        read_fields(PlainFormat, form, "text.format")


def _chosen(choice: ToolChoice | None) -> Any:
    if isinstance(choice, ToolFunction):
        return {"type": "function", "name": choice.name}
    return "required" if choice == "any" else choice or "auto"


def _echo(asked: ResponsesFields) -> dict[str, Any]:
    """Return what a response repeats; the schema takes no null for what has a default."""
    text = asked.text or TextFields()
    effort = asked.reasoning.effort if asked.reasoning else None
    return {
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "metadata": asked.metadata or {},
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "prompt_cache_key": asked.prompt_cache_key,
        "reasoning": {"effort": effort, "summary": None},
        "safety_identifier": asked.safety_identifier,
        "temperature": 1.0 if asked.temperature is None else asked.temperature,
        "text": {
            "format": text.format or {"type": "text"},
            **({"verbosity": text.verbosity} if text.verbosity else {}),
        },
        "top_p": 1.0 if asked.top_p is None else asked.top_p,
        "user": asked.user,
    }


def _response(request: ServedRequest, trace: str, created: int, **more: Any) -> dict[str, Any]:
    """Return a response object with every null that its schema wants."""
    whole: dict[str, Any] = {
        "id": f"resp_{trace}",
        "object": "response",
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "frequency_penalty": 0.0,
        "incomplete_details": None,
        "max_tool_calls": None,
        "model": request.model,
        "output": [],
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "service_tier": "default",
        "store": False,
        "top_logprobs": 0,
        "truncation": "disabled",
        "usage": None,
        **request.echo,
        "created_at": created,
        **more,
    }
    made = Response.model_validate(whole).model_dump(mode="json", exclude_unset=True, by_alias=True)
    return made | {name: whole[name] for name in ("created_at", "completed_at")}  # whole seconds


def _ended(
    request: ServedRequest, reply: ServedReply, output: list[dict[str, Any]]
) -> dict[str, Any]:
    cut = CUT.get(reply.stop)
    usage = usage_fields(reply.bill, "input_tokens", "output_tokens")
    if usage is not None:  # the one count that the schema wants where nobody knows it
        usage["output_tokens_details"].setdefault("reasoning_tokens", 0)
    return _response(
        request,
        reply.trace,
        reply.created,
        status="incomplete" if cut else "completed",
        completed_at=None if cut else int(time.time()),
        incomplete_details={"reason": cut} if cut else None,
        model=reply.model,
        output=output,
        usage=usage,
    )


@dataclass(frozen=True, slots=True)
class OutputItem:
    """One item of a response: as it begins, and whole."""

    whole: dict[str, Any]
    field: Literal["content", "arguments"]  # what its events fill in

    @property
    def begun(self) -> dict[str, Any]:
        """The item before anything of it is known."""
        nothing: Any = [] if self.field == "content" else ""
        return {**self.whole, "status": "in_progress", self.field: nothing}


def _items(request: ServedRequest, reply: ServedReply) -> list[OutputItem]:
    """Return a reply's text and calls; a reply without either is an empty text."""
    status = "incomplete" if reply.stop in CUT else "completed"
    items: list[OutputItem] = []
    if reply.text or not reply.tool_calls:
        part: dict[str, Any] = {
            "type": "output_text",
            "text": reply.text,
            "annotations": [],
            "logprobs": [],
        }
        message = {"id": f"msg_{reply.trace}", "type": "message", "role": "assistant"}
        items.append(OutputItem({**message, "status": status, "content": [part]}, "content"))
    spaces = {
        inner["name"]: tool["name"]
        for tool in request.echo.get("tools", ())
        for inner in tool.get("tools", ())
    }
    for number, call in enumerate(reply.tool_calls):
        whole = {
            "id": f"fc_{reply.trace}_{number}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.function,
            "arguments": json.dumps(call.arguments),
            "status": status,
        }
        if call.function in spaces:
            whole["namespace"] = spaces[call.function]
        items.append(OutputItem(whole, "arguments"))
    return items


class ResponsesStream:
    """A response as numbered events; a beat is `response.in_progress` once more.

    A comment would not do: Codex hangs up after five minutes without an event.
    """

    def __init__(self, request: ServedRequest, trace: str, created: int) -> None:
        """Write for one request."""
        self._request = request
        self._begun = _response(request, trace, created)
        self._numbers = count()

    def begin(self) -> Iterator[StreamEvent]:
        """Yield that there is a response, and that it is worked on."""
        yield self._of_response("created", self._begun)
        yield self._of_response("in_progress", self._begun)

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield that it is worked on; `podium.step` beside the response says what has begun."""
        more = {} if step is None else {"podium": {"step": str(step)}}
        yield self._of_response("in_progress", self._begun, **more)

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the items, and the response with its usage."""
        items = _items(self._request, reply)
        for index, item in enumerate(items):
            yield from self._item(index, item)
        whole = _ended(self._request, reply, [item.whole for item in items])
        yield self._of_response(whole["status"], whole)

    def fail(self, refusal: Refusal) -> Iterator[StreamEvent]:
        """Yield the response as one that failed."""
        code = FAILED.get(refusal.kind, "server_error")
        error = {"code": code, "message": str(refusal)}
        yield self._of_response("failed", {**self._begun, "status": "failed", "error": error})

    def _item(self, index: int, item: OutputItem) -> Iterator[StreamEvent]:
        at = {"output_index": index}
        yield self._event("output_item.added", item=item.begun, **at)
        at |= {"item_id": item.whole["id"]}
        if item.field == "content":
            yield from self._text(item.whole["content"][0], {**at, "content_index": 0})
        else:
            said = item.whole["arguments"]
            yield self._event("function_call_arguments.delta", delta=said, **at)
            name = item.whole["name"]
            yield self._event("function_call_arguments.done", arguments=said, name=name, **at)
        yield self._event("output_item.done", item=item.whole, output_index=index)

    def _text(self, part: dict[str, Any], at: dict[str, Any]) -> Iterator[StreamEvent]:
        yield self._event("content_part.added", part={**part, "text": ""}, **at)
        for piece in text_pieces(part["text"]):
            yield self._event("output_text.delta", delta=piece, logprobs=[], **at)
        yield self._event("output_text.done", text=part["text"], logprobs=[], **at)
        yield self._event("content_part.done", part=part, **at)

    def _of_response(self, what: str, response: dict[str, Any], **more: Any) -> StreamEvent:
        """Return an event with a response that has been checked, which takes a while."""
        return self._sent({"type": f"response.{what}", "response": response, **more})

    def _event(self, what: str, **fields: Any) -> StreamEvent:
        return self._sent({"type": f"response.{what}", **fields}, EVENT)

    def _sent(self, event: dict[str, Any], kind: TypeAdapter[Any] | None = None) -> StreamEvent:
        event["sequence_number"] = next(self._numbers)
        if kind is not None:
            made = kind.validate_python(event)
            event = made.model_dump(mode="json", exclude_unset=True, by_alias=True)
        return StreamEvent(json.dumps(event), event["type"])
