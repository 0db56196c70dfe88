"""OpenAI's Responses API without stored responses: parses requests, writes replies, streams."""

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
    """The request's field `reasoning`; `summary: auto` is accepted, but no reply has a summary."""

    effort: Effort | None = None
    summary: Literal["auto", "none"] | None = None
    generate_summary: Literal["auto"] | None = None


class SchemaFormat(SchemaFields):
    """The request's field `text.format` if its type is `json_schema`."""

    type: Literal["json_schema"]


class TextFields(Fields):
    """The request's field `text`: format and verbosity of the answer."""

    format: dict[str, Any] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ResponsesFields(SharedFields):
    """The body of a request to `/v1/responses`."""

    input: Any
    instructions: str | None = None
    max_output_tokens: Tokens | None = None
    reasoning: ReasoningFields | None = None
    text: TextFields | None = None
    # Codex always requests it, although no item here has reasoning to encrypt.
    include: list[Literal["reasoning.encrypted_content"]] | None = None
    truncation: Literal["disabled"] | None = None
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    background: Literal[False] | None = None
    stream_options: StreamOptions | None = None
    client_metadata: dict[str, Any] | None = None
    """Metadata that Codex, OpenAI's coding agent, sends about itself."""


class FunctionToolFields(FunctionFields):
    """A function in a request's `tools`, or in a namespace (group) in `tools`."""

    type: Literal["function"]


class NamespaceFields(Fields):
    """A namespace, a group of functions, as Codex offers them for its sub-agents."""

    type: Literal["namespace"]
    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    tools: list[Any]


ITEMS = ("message", "function_call", "function_call_output", "reasoning")
SAID, HEARD = ("output_text", "refusal"), ("input_text", "input_image")
"""Content types of assistants' messages, and of others; Inspect's converter drops other types."""
FAILED: Mapping[RefusalKind, str] = {
    "too_many": "rate_limit_exceeded",
    "out_of_budget": "rate_limit_exceeded",
    "invalid_request": "invalid_prompt",
    "unsupported_parameter": "invalid_prompt",
}  # codes of a failed response; the default is server_error
CUT: Mapping[str, str] = {
    "max_tokens": "max_output_tokens",
    "model_length": "max_output_tokens",
    "content_filter": "content_filter",
}  # why a reply is incomplete
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


class OpenAIResponses:
    """The dialect of `/v1/responses`: reads requests, writes replies."""

    name: DialectName = "responses"

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Parse a request's body; Refusal (400) if a field is invalid or not supported."""
        fields = read_fields(ResponsesFields, make_storable(body))
        _check_input(fields.input)
        convert = messages_from_openai_responses(_for_inspect(fields.input))
        messages, images = await read_messages(convert, "input")
        if fields.instructions:
            messages.insert(0, ChatMessageSystem(content=fields.instructions))
        offered = Offer(fields.tools or [])
        choice = read_tool_choice(fields.tool_choice, offered.tools)
        config, params = asked_sampling(_sampling(fields))
        if offered.tools:
            params["tools"] = "tools"
        if images:
            params["images"] = "input_image"
        return ServedRequest(
            dialect=self.name,
            model=fields.model,
            messages=messages,
            tools=offered.tools,
            tool_choice=choice,
            config=config,
            params=params,
            stream=bool(fields.stream),
            echo={**_echo(fields), "tools": offered.echo, "tool_choice": _chosen(choice)},
        )

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return the body of a reply that is not streamed: a response object."""
        return _ended(request, reply, [item.whole for item in _items(request, reply)])

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return OpenAI's error object; the request's id (`trace`) is in the HTTP headers only."""
        return error_body(refusal)

    def stream(self, request: ServedRequest, trace: str, created: int) -> ReplyStream:
        """Return the writer of the events of a streamed reply."""
        return ResponsesStream(request, trace, created)


def _for_inspect(value: Any) -> Any:
    """Return a request's input as Inspect's converter needs it.

    Adds `type: message`, without which the converter drops the content of assistants' messages, and
    removes `namespace`, which the converter would keep in memory until the process ends.
    """
    if isinstance(value, str):
        return value
    items = cast(list[dict[str, Any]], value)
    plain = ({k: v for k, v in item.items() if k != "namespace"} for item in items)
    return [{"type": "message", **item} for item in plain]


def _check_input(value: object) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, list) or not value:
        raise invalid("input", "it must be a text, or a non-empty list of items")
    for number, item in enumerate(cast(list[object], value)):
        path = f"input[{number}]"
        if not isinstance(item, Mapping):
            raise invalid(path, "it must be an object")
        _check_item(cast(Mapping[str, Any], item), path)


def _check_item(item: Mapping[str, Any], path: str) -> None:
    kind = item.get("type", "message")
    if kind not in ITEMS:
        raise unsupported(f"{path}.type", f"send {', '.join(ITEMS)}")
    if kind == "message" and item.get("role") not in ("user", "assistant", "system", "developer"):
        raise invalid(f"{path}.role", "it must be user, assistant, system or developer")
    field = {"message": "content", "function_call_output": "output"}.get(kind)
    if field is None:
        return
    kinds = SAID if item.get("role") == "assistant" else HEARD
    for part_path, content in content_parts(item.get(field), f"{path}.{field}"):
        if content.get("type") not in kinds:
            raise unsupported(f"{part_path}.type", f"send {' or '.join(kinds)}")
        if content["type"] == "input_image":
            refuse_address(content.get("image_url"), f"{part_path}.image_url")


class Offer:
    """The tools of a request: as workers get them, and as the reply repeats them."""

    def __init__(self, tools: list[Any]) -> None:
        """Read a request's tools; Refusal if workers cannot get one of them."""
        self.tools: list[ToolInfo] = []
        self.echo: list[dict[str, Any]] = []
        for number, tool in enumerate(tools):
            self._add(tool, f"tools[{number}]")
        refuse_twins(self.tools)

    def _add(self, tool: Any, path: str) -> None:
        kind = kind_of(tool)
        if kind == "namespace":
            space = read_fields(NamespaceFields, tool, path)
            inner = [self._function(raw, f"{path}.tools[{n}]") for n, raw in enumerate(space.tools)]
            self.echo.append({**space.model_dump(), "tools": inner})
        elif kind in (None, "function"):
            self.echo.append(self._function(tool, path))
        elif kind != "web_search":
            raise unsupported(f"{path}.type", "send function tools only")
        elif tool.get("external_web_access") is not False:
            # Codex offers a search without web access unless its own is switched off. A model need
            # not use it: workers do not get it, and the reply's tools do not list it.
            reason = 'workers cannot search the web; send false (Codex: web_search = "disabled")'
            raise unsupported(f"{path}.external_web_access", reason)

    def _function(self, tool: object, path: str) -> dict[str, Any]:
        fields = read_fields(FunctionToolFields, tool, path)
        self.tools.append(function_tool(fields, path))
        return {**fields.model_dump(), "strict": bool(fields.strict)}


def _sampling(fields: ResponsesFields) -> Iterator[tuple[str, str, Any]]:
    yield "max_tokens", "max_output_tokens", fields.max_output_tokens
    yield "temperature", "temperature", fields.temperature
    yield "top_p", "top_p", fields.top_p
    if fields.parallel_tool_calls is False:  # true is every server's default
        yield "parallel_tool_calls", "parallel_tool_calls", False
    if fields.reasoning:
        yield "reasoning_effort", "reasoning.effort", fields.reasoning.effort
    if fields.text is None:
        return
    yield "verbosity", "text.verbosity", fields.text.verbosity
    form = fields.text.format
    if form is not None and form.get("type") == "json_schema":
        schema = read_fields(SchemaFormat, form, "text.format")
        yield "response_schema", "text.format", response_schema(schema, "text.format")
    elif form is not None:
        read_fields(PlainFormat, form, "text.format")


def _chosen(choice: ToolChoice | None) -> Any:
    if isinstance(choice, ToolFunction):
        return {"type": "function", "name": choice.name}
    return "required" if choice == "any" else choice or "auto"


def _echo(fields: ResponsesFields) -> dict[str, Any]:
    """Return the request's fields that a reply repeats, with defaults if the API forbids null."""
    text = fields.text or TextFields()
    effort = fields.reasoning.effort if fields.reasoning else None
    return {
        "instructions": fields.instructions,
        "max_output_tokens": fields.max_output_tokens,
        "metadata": fields.metadata or {},
        "parallel_tool_calls": fields.parallel_tool_calls is not False,
        "prompt_cache_key": fields.prompt_cache_key,
        "reasoning": {"effort": effort, "summary": None},
        "safety_identifier": fields.safety_identifier,
        "temperature": 1.0 if fields.temperature is None else fields.temperature,
        "text": {
            "format": text.format or {"type": "text"},
            **({"verbosity": text.verbosity} if text.verbosity else {}),
        },
        "top_p": 1.0 if fields.top_p is None else fields.top_p,
        "user": fields.user,
    }


def _response(request: ServedRequest, trace: str, created: int, **fields: Any) -> dict[str, Any]:
    """Return a response object; required fields of unknown value are null."""
    body: dict[str, Any] = {
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
        **fields,
    }
    data = Response.model_validate(body).model_dump(mode="json", exclude_unset=True, by_alias=True)
    return data | {name: body[name] for name in ("created_at", "completed_at")}  # as int, not float


def _ended(
    request: ServedRequest, reply: ServedReply, output: list[dict[str, Any]]
) -> dict[str, Any]:
    cut = CUT.get(reply.stop)
    usage = usage_fields(reply.bill, "input_tokens", "output_tokens")
    if usage is not None:  # the schema requires this count even if it is unknown
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
    """One output item of a response, in two states: empty (`begun`) and complete (`whole`)."""

    whole: dict[str, Any]
    field: Literal["content", "arguments"]  # the field that the item's events fill

    @property
    def begun(self) -> dict[str, Any]:
        """Return the item without its content, as the stream first sends it."""
        nothing: Any = [] if self.field == "content" else ""
        return {**self.whole, "status": "in_progress", self.field: nothing}


def _items(request: ServedRequest, reply: ServedReply) -> list[OutputItem]:
    """Return a reply's text and tool calls as output items; an empty text if the reply is empty."""
    status = "incomplete" if reply.stop in CUT else "completed"
    items: list[OutputItem] = []
    if reply.text or not reply.tool_calls:
        content: dict[str, Any] = {
            "type": "output_text",
            "text": reply.text,
            "annotations": [],
            "logprobs": [],
        }
        message = {"id": f"msg_{reply.trace}", "type": "message", "role": "assistant"}
        items.append(OutputItem({**message, "status": status, "content": [content]}, "content"))
    spaces = {
        inner["name"]: tool["name"]
        for tool in request.echo.get("tools", ())
        for inner in tool.get("tools", ())
    }
    for number, call in enumerate(reply.tool_calls):
        item = {
            "id": f"fc_{reply.trace}_{number}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.function,
            "arguments": json.dumps(call.arguments),
            "status": status,
        }
        if call.function in spaces:
            item["namespace"] = spaces[call.function]
        items.append(OutputItem(item, "arguments"))
    return items


class ResponsesStream:
    """A response as numbered events; a heartbeat repeats `response.in_progress`.

    An SSE comment is not enough: Codex closes the connection after five minutes without an event.
    """

    def __init__(self, request: ServedRequest, trace: str, created: int) -> None:
        """Write the events of the reply to request `trace` (its id); `created` is a Unix time."""
        self._request = request
        self._begun = _response(request, trace, created)
        self._numbers = count()

    def begin(self) -> Iterator[StreamEvent]:
        """Yield the first events, `response.created` and `response.in_progress`."""
        yield self._of_response("created", self._begun)
        yield self._of_response("in_progress", self._begun)

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield `response.in_progress`; its field `podium.step` names the step that has begun."""
        extra = {} if step is None else {"podium": {"step": str(step)}}
        yield self._of_response("in_progress", self._begun, **extra)

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the events of each output item, then that of the whole response with its usage."""
        items = _items(self._request, reply)
        for index, item in enumerate(items):
            yield from self._item(index, item)
        response = _ended(self._request, reply, [item.whole for item in items])
        yield self._of_response(response["status"], response)

    def fail(self, refusal: Refusal) -> Iterator[StreamEvent]:
        """Yield the event of a failed response, with the error that ends the stream."""
        code = FAILED.get(refusal.kind, "server_error")
        error = {"code": code, "message": str(refusal)}
        yield self._of_response("failed", {**self._begun, "status": "failed", "error": error})

    def _item(self, index: int, item: OutputItem) -> Iterator[StreamEvent]:
        place = {"output_index": index}
        yield self._event("output_item.added", item=item.begun, **place)
        place |= {"item_id": item.whole["id"]}
        if item.field == "content":
            yield from self._text(item.whole["content"][0], {**place, "content_index": 0})
        else:
            text = item.whole["arguments"]
            yield self._event("function_call_arguments.delta", delta=text, **place)
            name = item.whole["name"]
            yield self._event("function_call_arguments.done", arguments=text, name=name, **place)
        yield self._event("output_item.done", item=item.whole, output_index=index)

    def _text(self, content: dict[str, Any], place: dict[str, Any]) -> Iterator[StreamEvent]:
        yield self._event("content_part.added", part={**content, "text": ""}, **place)
        for piece in text_pieces(content["text"]):
            yield self._event("output_text.delta", delta=piece, logprobs=[], **place)
        yield self._event("output_text.done", text=content["text"], logprobs=[], **place)
        yield self._event("content_part.done", part=content, **place)

    def _of_response(self, event_type: str, response: dict[str, Any], **extra: Any) -> StreamEvent:
        """Return an event with a response that is valid already: to validate it again is slow."""
        return self._sent({"type": f"response.{event_type}", "response": response, **extra})

    def _event(self, event_type: str, **fields: Any) -> StreamEvent:
        return self._sent({"type": f"response.{event_type}", **fields}, EVENT)

    def _sent(self, event: dict[str, Any], kind: TypeAdapter[Any] | None = None) -> StreamEvent:
        event["sequence_number"] = next(self._numbers)
        if kind is not None:
            model = kind.validate_python(event)
            event = model.model_dump(mode="json", exclude_unset=True, by_alias=True)
        return StreamEvent(json.dumps(event), event["type"])
