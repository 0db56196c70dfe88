"""What OpenAI's two dialects share: fields that are read or refused by name, errors, usage."""

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
    """An object of a request; what it does not name cannot be honoured, and a null is unsaid."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _said(cls, found: Any) -> Any:
        if not isinstance(found, Mapping):
            return found
        return {k: v for k, v in cast(Mapping[str, Any], found).items() if v is not None}


class SharedFields(Fields):
    """What both dialects' bodies may have."""

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
    """A function that the client offers."""

    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    """Not passed on: Inspect asks it by itself of OpenAI-compatible workers, of others never."""


class SchemaFields(Fields):
    """The JSON that an answer is to be."""

    name: Annotated[str, Field(min_length=1)]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    description: str | None = None
    strict: bool | None = None


class PlainFormat(Fields):
    """The format of an answer where it asks nothing."""

    type: Literal["text", "json_schema"]


class StreamOptions(Fields):
    """`stream_options`."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


Found = TypeVar("Found", bound=Fields)


def read_fields(kind: type[Found], found: object, at: str = "") -> Found:
    """Return an object's fields; Refusal names the first one that is wrong, below `at`."""

    def name_of(place: Place) -> str:
        name = at
        for part in place:
            name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
        return name

    return checked(kind, found, name_of)


def asked_sampling(
    asked: Iterable[tuple[str, str, Any]],
) -> tuple[GenerateConfig, dict[str, str]]:
    """Return what was asked, and how the dialect calls it, of (our field, its name, value)."""
    given = [one for one in asked if one[2] is not None]
    config = GenerateConfig(**{field: value for field, _, value in given})
    return config, {field: name for field, name, _ in given}


LOST = {"title", "description", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
"""Words of JSON Schema that ask nothing of a worker, so that nobody misses them."""


def _refuse_lost(schema: object, known: Iterable[str], at: str) -> None:
    """Refuse the words of a schema that Inspect would drop."""
    if not isinstance(schema, Mapping):
        return
    found = cast(Mapping[str, Any], schema)
    for word in found:
        if word not in known and word not in LOST:
            raise unsupported(f"{at}.{word}", "workers are not sent this word of JSON Schema")
    below = found.get("properties")
    parts: list[tuple[str, object]] = [
        (f"{at}.{w}", found.get(w)) for w in ("items", "additionalProperties")
    ]
    if isinstance(below, Mapping):
        parts += [(f"{at}.properties.{n}", one) for n, one in cast(Any, below).items()]
    if isinstance(found.get("anyOf"), list):
        parts += [(f"{at}.anyOf[{n}]", one) for n, one in enumerate(found["anyOf"])]
    for name, one in parts:
        _refuse_lost(one, JSONSchema.model_fields, name)


def function_tool(found: FunctionFields, at: str) -> ToolInfo:
    """Return a function as a worker is offered it."""
    schema = found.parameters or {"type": "object"}
    return tool_info(found.name, found.description or "", schema, f"{at}.parameters")


def refuse_twins(tools: Sequence[ToolInfo]) -> None:
    """Refuse two functions of one name: a call of it would be of either."""
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise invalid("tools", "two functions have one name")


def response_schema(found: SchemaFields, at: str) -> ResponseSchema:
    """Return what a worker is to be held to."""
    where = f"{at}.schema"
    try:
        json.dumps(found.schema_, allow_nan=False)  # a reply repeats it
        _refuse_lost(found.schema_, JSONSchema.model_fields, where)
        schema = JSONSchema.model_validate(found.schema_)
    except (ValueError, RecursionError):
        raise invalid(where, "it is no JSON schema that workers can be sent") from None
    return ResponseSchema(
        name=found.name, json_schema=schema, description=found.description, strict=found.strict
    )


CHOICES: Mapping[str, Literal["auto", "any", "none"]] = {
    "auto": "auto",
    "none": "none",
    "required": "any",
}


def read_tool_choice(choice: object, tools: Sequence[ToolInfo]) -> ToolChoice | None:
    """Return which tool must be called; `choice` is a word, or an object that names a function."""
    if choice is None:
        return None
    if isinstance(choice, str) and choice in CHOICES:
        if choice == "required" and not tools:
            raise invalid("tool_choice", "there are no `tools` to choose from")
        return CHOICES[choice]
    named = cast(Mapping[str, Any], choice if isinstance(choice, Mapping) else {})
    if named.get("type") != "function":
        raise unsupported("tool_choice", "name auto, none, required or a function")
    inner = named.get("function", named)  # chat completions have the name one level below
    name = cast(Mapping[str, Any], inner).get("name") if isinstance(inner, Mapping) else None
    if name not in [tool.name for tool in tools]:
        raise invalid("tool_choice", "it names no function of `tools`")
    return ToolFunction(name=name)


def kind_of(found: object) -> object:
    """Return an object's `type`; None where it has none, or is none."""
    return cast(Mapping[str, Any], found).get("type") if isinstance(found, Mapping) else None


def content_parts(content: object, at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parts of a message's content and where they stand; a text has none."""
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise invalid(at, "it is a text, or a list of parts")
    for number, part in enumerate(cast(list[object], content)):
        if not isinstance(part, Mapping):
            raise invalid(f"{at}[{number}]", "it is an object with a `type`")
        yield f"{at}[{number}]", cast(Mapping[str, Any], part)


def refuse_address(url: object, at: str) -> None:
    """Refuse an image that is not in the request: whoever reads it would open a file of ours."""
    if not isinstance(url, str) or not url.startswith("data:image/"):
        raise unsupported(at, "send the image itself, as a `data:image/...` URL")


async def read_messages(
    convert: Awaitable[list[ChatMessage]], name: str
) -> tuple[list[ChatMessage], bool]:
    """Return a conversation and whether it has images; Refusal for one that cannot be read."""
    try:
        messages = await convert
    except Exception:  # Inspect's converters raise whatever their client's objects do
        raise invalid(name, "it cannot be read as a conversation") from None
    images = any(
        isinstance(part, ContentImage)
        for one in messages
        for part in (one.content if isinstance(one.content, list) else [])
    )
    if not images and not any(one.text.strip() for one in messages):
        raise invalid(name, "nothing is said in it")
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
"""OpenAI's type and code of each refusal; of ours, where it has none."""


def error_body(refusal: Refusal) -> dict[str, Any]:
    """Return OpenAI's error object."""
    kind, code = ERRORS[refusal.kind]
    if refusal.kind == "not_found" and refusal.param != "model":
        code = "not_found"  # a path or a trace
    return {"error": {"message": str(refusal), "type": kind, "param": refusal.param, "code": code}}


def usage_fields(bill: RequestBill, into: str, out: str) -> dict[str, Any] | None:
    """Return a bill as Fugu's usage, `into` and `out` being the dialect's names of the counts."""
    seen, rest = bill.visible, bill.orchestration
    if seen is None or rest is None:
        return None
    both = seen + rest
    usage: dict[str, Any] = {
        into: seen.input_total,
        f"{into}_details": {
            "cached_tokens": seen.cache_read,
            "cache_write_tokens": seen.cache_write,
            "orchestration_input_tokens": rest.input_total + both.orchestration_in,
            "orchestration_input_cached_tokens": rest.cache_read + both.orchestration_in_cached,
        },
        out: seen.output,
        f"{out}_details": {"orchestration_output_tokens": rest.output + both.orchestration_out},
        "total_tokens": bill.total_tokens,
    }
    if seen.reasoning is not None:
        usage[f"{out}_details"]["reasoning_tokens"] = seen.reasoning
    return usage if bill.usd is None else {**usage, "cost": float(bill.usd)}
