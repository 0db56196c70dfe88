"""Fields, errors and usage that OpenAI's Chat Completions and Responses APIs have in common."""

import json
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, cast

from inspect_ai.model import ChatMessage, ContentImage, GenerateConfig, ResponseSchema
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ConfigDict, Field, model_validator

from podium.serving.exchange import (
    Place,
    Refusal,
    RefusalKind,
    RequestBill,
    checked,
    invalid,
    tool_info,
    unsupported,
)

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Tokens = Annotated[int, Field(ge=1, lt=2**31)]
Penalty = Annotated[float, Field(ge=-2, le=2)]


class Fields(BaseModel):
    """An object in a request's body: unknown fields are refused, and null means unset."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _said(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {k: v for k, v in cast(Mapping[str, Any], value).items() if v is not None}


class SharedFields(Fields):
    """Request fields of both OpenAI APIs, Chat Completions and Responses."""

    model: Annotated[str, Field(min_length=1)]
    tools: list[Any] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    stream: bool | None = None
    store: Literal[False] | None = None
    service_tier: Literal["auto", "default"] | None = None
    top_logprobs: Literal[0] | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory"] | None = None


class FunctionFields(Fields):
    """A function (tool) of the client that the model may call."""

    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    """`strict` is not passed on: Inspect sets it for OpenAI-compatible workers, not for others."""


class SchemaFields(Fields):
    """The JSON schema that the model's answer must follow."""

    name: Annotated[str, Field(min_length=1)]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    description: str | None = None
    strict: bool | None = None


class PlainFormat(Fields):
    """The type of an answer's format; subclasses add the schema."""

    type: Literal["text", "json_schema"]


class StreamOptions(Fields):
    """The field `stream_options` of a request."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


Found = TypeVar("Found", bound=Fields)


def read_fields(kind: type[Found], value: object, path: str = "") -> Found:
    """Validate `value` as class `kind`; Refusal names the first invalid field, within `path`."""

    def name_of(place: Place) -> str:
        name = path
        for key in place:
            name += f"[{key}]" if isinstance(key, int) else f".{key}" if name else key
        return name

    return checked(kind, value, name_of)


def asked_sampling(
    options: Iterable[tuple[str, str, Any]],
) -> tuple[GenerateConfig, dict[str, str]]:
    """Return the config of all options that have a value, and each field's name in the request.

    An option is (field of the config, name in the request, value or None).
    """
    fields = [option for option in options if option[2] is not None]
    config = GenerateConfig(**{field: value for field, _, value in fields})
    return config, {field: name for field, name, _ in fields}


LOST = {"title", "description", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
"""Keywords of JSON Schema without effect on a worker: an answer's schema may have them, and they
are dropped."""


def _refuse_lost(schema: object, supported: Iterable[str], path: str) -> None:
    """Raise Refusal for a keyword of an answer's schema that Inspect would drop."""
    if not isinstance(schema, Mapping):
        return
    fields = cast(Mapping[str, Any], schema)
    for word in fields:
        if word not in supported and word not in LOST:
            raise unsupported(
                f"{path}.{word}", "workers do not receive this keyword of JSON Schema; leave it out"
            )
    below = fields.get("properties")
    inner: list[tuple[str, object]] = [
        (f"{path}.{w}", fields.get(w)) for w in ("items", "additionalProperties")
    ]
    if isinstance(below, Mapping):
        inner += [(f"{path}.properties.{n}", child) for n, child in cast(Any, below).items()]
    if isinstance(fields.get("anyOf"), list):
        inner += [(f"{path}.anyOf[{n}]", child) for n, child in enumerate(fields["anyOf"])]
    for name, child in inner:
        _refuse_lost(child, JSONSchema.model_fields, name)


def function_tool(function: FunctionFields, path: str) -> ToolInfo:
    """Return a client's function as a tool for workers; Refusal if its schema is invalid."""
    schema = function.parameters or {"type": "object"}
    return tool_info(function.name, function.description or "", schema, f"{path}.parameters")


def refuse_twins(tools: Sequence[ToolInfo]) -> None:
    """Raise Refusal if two functions have the same name, since a call would be ambiguous."""
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise invalid("tools", "two functions have the same name; rename one")


def response_schema(form: SchemaFields, path: str) -> ResponseSchema:
    """Return the schema that a worker's answer must follow; Refusal if the schema is invalid."""
    place = f"{path}.schema"
    try:
        json.dumps(form.schema_, allow_nan=False)  # replies repeat the schema
        _refuse_lost(form.schema_, JSONSchema.model_fields, place)
        schema = JSONSchema.model_validate(form.schema_)
    except (ValueError, RecursionError):
        raise invalid(place, "it is not a valid JSON schema; correct it") from None
    return ResponseSchema(
        name=form.name, json_schema=schema, description=form.description, strict=form.strict
    )


CHOICES: Mapping[str, Literal["auto", "any", "none"]] = {
    "auto": "auto",
    "none": "none",
    "required": "any",
}


def read_tool_choice(choice: object, tools: Sequence[ToolInfo]) -> ToolChoice | None:
    """Return Inspect's form of a request's `tool_choice`, a word or a function; None if unset."""
    if choice is None:
        return None
    if isinstance(choice, str) and choice in CHOICES:
        if choice == "required" and not tools:
            raise invalid("tool_choice", "the request has no `tools`; send some, or leave it out")
        return CHOICES[choice]
    fields = cast(Mapping[str, Any], choice if isinstance(choice, Mapping) else {})
    if fields.get("type") != "function":
        raise unsupported("tool_choice", "send auto, none, required or a function")
    inner = fields.get("function", fields)  # chat completions nest the name one level deeper
    name = cast(Mapping[str, Any], inner).get("name") if isinstance(inner, Mapping) else None
    if name not in [tool.name for tool in tools]:
        raise invalid("tool_choice", "no function in `tools` has this name; name one of them")
    return ToolFunction(name=name)


def kind_of(value: object) -> object:
    """Return the `type` of a JSON object; None if it has none, or `value` is no object."""
    return cast(Mapping[str, Any], value).get("type") if isinstance(value, Mapping) else None


def content_parts(content: object, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (path, part) for each part of a message's content; a text has no parts."""
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise invalid(path, "it must be a text, or a non-empty list of parts")
    for number, block in enumerate(cast(list[object], content)):
        if not isinstance(block, Mapping):
            raise invalid(f"{path}[{number}]", "it must be an object with a `type`")
        yield f"{path}[{number}]", cast(Mapping[str, Any], block)


def refuse_address(url: object, path: str) -> None:
    """Raise Refusal for an image outside the request: its address could be a local file."""
    if not isinstance(url, str) or not url.startswith("data:image/"):
        raise unsupported(path, "send the image itself, as a `data:image/...` URL")


async def read_messages(
    convert: Awaitable[list[ChatMessage]], name: str
) -> tuple[list[ChatMessage], bool]:
    """Return a conversation, and whether it has images; Refusal if Inspect cannot read it."""
    try:
        messages = await convert
    except Exception:  # Inspect's converters raise any type of error
        raise invalid(name, "it cannot be read: check its roles and parts") from None
    images = any(
        isinstance(block, ContentImage)
        for message in messages
        for block in (message.content if isinstance(message.content, list) else [])
    )
    if not images and not any(message.text.strip() for message in messages):
        raise invalid(name, "no message has a text or an image; send one")
    return messages, images


ERRORS: Mapping[RefusalKind, tuple[str, str | None]] = {
    "invalid_request": ("invalid_request_error", None),
    "unsupported_parameter": ("invalid_request_error", "unsupported_parameter"),
    "unauthorised": ("authentication_error", "invalid_api_key"),
    "forbidden": ("permission_error", None),
    "not_found": ("not_found_error", "model_not_found"),
    "too_large": ("invalid_request_error", "request_too_large"),
    "too_many": ("rate_limit_error", "rate_limit_exceeded"),
    "out_of_budget": ("insufficient_quota", "insufficient_quota"),
    "loop": ("invalid_request_error", "loop_detected"),
    "cancelled": ("api_error", "cancelled"),
    "worker_failed": ("api_error", "worker_failed"),
    "failed": ("api_error", "server_error"),
    "stopping": ("api_error", "server_stopping"),
    "deadline": ("api_error", "deadline_exceeded"),
}
"""Kind of refusal -> (OpenAI's error type, error code); podium's code if OpenAI has none."""


def error_body(refusal: Refusal) -> dict[str, Any]:
    """Return the body of an error reply in OpenAI's form."""
    kind, code = ERRORS[refusal.kind]
    if refusal.kind == "not_found" and refusal.param != "model":
        code = "not_found"  # an unknown endpoint or trace
    return {"error": {"message": str(refusal), "type": kind, "param": refusal.param, "code": code}}


def usage_fields(bill: RequestBill, into: str, out: str) -> dict[str, Any] | None:
    """Return a bill as `usage` in the form of Sakana's Fugu API; None if tokens are unknown.

    `into` and `out` are the names of input and output tokens.
    """
    visible, hidden = bill.visible, bill.orchestration
    if visible is None or hidden is None:
        return None
    both = visible + hidden
    usage: dict[str, Any] = {
        into: visible.input_total,
        f"{into}_details": {
            "cached_tokens": visible.cache_read,
            "cache_write_tokens": visible.cache_write,
            "orchestration_input_tokens": hidden.input_total + both.orchestration_in,
            "orchestration_input_cached_tokens": hidden.cache_read + both.orchestration_in_cached,
        },
        out: visible.output,
        f"{out}_details": {"orchestration_output_tokens": hidden.output + both.orchestration_out},
        "total_tokens": bill.total_tokens,
    }
    if visible.reasoning is not None:
        usage[f"{out}_details"]["reasoning_tokens"] = visible.reasoning
    return usage if bill.usd is None else {**usage, "cost": float(bill.usd)}
