"""Request, reply and bill in a form that is common to all dialects (client APIs)."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeVar, cast

from inspect_ai.model import ChatMessage, GenerateConfig, StopReason
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema
from pydantic import BaseModel, ValidationError

from podium.harness.conversation import Conversation
from podium.harness.errors import PodiumError
from podium.harness.ledger.call import Call
from podium.harness.ledger.critical_path import step_number
from podium.harness.ledger.totals import add_up, usage_of
from podium.harness.records import Usage

DialectName = Literal["chat", "responses", "messages"]
RefusalKind = Literal[
    "invalid_request", "unsupported_parameter", "unauthorised", "forbidden", "not_found",
    "too_large", "too_many", "out_of_budget", "loop", "cancelled", "worker_failed", "failed",
    "stopping", "deadline",
]  # fmt: skip


class Refusal(PodiumError):
    """Why a client's request gets no answer; each dialect writes it as its own error object."""

    def __init__(
        self,
        status: int,
        kind: RefusalKind,
        sentence: str,
        *,
        param: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """Store the reason, the invalid field, and the seconds after which a retry may succeed."""
        super().__init__(sentence)
        self.status, self.param, self.retry_after_s = status, param, retry_after_s
        self.kind: RefusalKind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequest:
    """A client's request, in a form that all dialects (client APIs) share."""

    dialect: DialectName
    model: str
    """The requested model: a system's id, an alias or an id with a date."""
    messages: Sequence[ChatMessage]
    tools: Sequence[ToolInfo] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)
    """The sampling settings that the client set; None means not set."""
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    """Field of `config`, `tools` or `images` -> its name in the request, for error messages."""
    stream: bool = False
    include_usage: bool = False
    """Whether a stream of chat completions ends with a chunk that has the usage."""
    echo: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the request that the reply repeats, in the dialect's form."""

    @property
    def conversation(self) -> Conversation:
        """Return the conversation that the system answers."""
        return Conversation(
            messages=self.messages,
            tools=self.tools,
            tool_choice=self.tool_choice,
            config=self.config,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBill:
    """Tokens and cost of all model calls of one request; a field is None if a part is unknown."""

    visible: Usage | None
    """Tokens of the worker call whose reply is the answer, that of the last successful step; all
    counts are 0 if every call failed."""
    orchestration: Usage | None
    """Tokens of all other calls: conductor, workers of earlier steps, failed attempts."""
    calls: int
    usd: Decimal | None

    @property
    def total_tokens(self) -> int | None:
        """Return the tokens of all calls, orchestration included; None if a part is unknown."""
        if self.visible is None or self.orchestration is None:
            return None
        return self.visible.parts_total + self.orchestration.parts_total


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedReply:
    """A system's answer to a client's request, with the bill."""

    trace: str
    """The request's id: also that of the request's trace, and the header `x-request-id`."""
    model: str
    """The model's id in the reply: the id that the client requested."""
    created: int
    """When the request began: Unix time, in seconds."""
    text: str
    tool_calls: Sequence[ToolCall] = ()
    stop: StopReason = "stop"
    bill: RequestBill


@dataclass(frozen=True, slots=True)
class StepBegun:
    """A workflow step that has begun; heartbeat events report it to the client."""

    number: int
    """Step number from 1, in order of start; a conductor's planning is 0."""
    of: int | None
    """Number of the workflow's steps; None if the plan is unknown."""
    worker: str

    def __str__(self) -> str:
        if not self.number:
            return "planning"
        of = f" of {self.of}" if self.of else ""
        return f"step {self.number}{of}: {self.worker}"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event: its data, and its name if the dialect has one."""

    data: str
    name: str | None = None


class ReplyStream(Protocol):
    """One reply as a stream of events: beginning, heartbeats while the reply is pending, end."""

    def begin(self) -> Iterator[StreamEvent]:
        """Yield the first events of the stream, before the reply is known."""
        ...

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield heartbeat events that name `step`, if any; clients would ignore SSE comments."""
        ...

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the events of the whole reply and its usage, and end the stream."""
        ...

    def fail(self, refusal: Refusal) -> Iterator[StreamEvent]:
        """Yield an error in the dialect's form, and end the stream."""
        ...


class Dialect(Protocol):
    """A client API: the format in which its clients write requests and read replies."""

    name: DialectName

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Parse a request's body; Refusal (400) names a field that is invalid or not supported."""
        ...

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return the body of a reply that is not streamed."""
        ...

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return the body of an error reply; `trace` is the request's id."""
        ...

    def stream(self, request: ServedRequest, trace: str, created: int) -> ReplyStream:
        """Return the writer of the events of a streamed reply."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One finished request, answered or refused, for the log, metrics and spans."""

    trace: str
    system: str
    dialect: DialectName
    model: str
    """The model's id as the client requested it."""
    status: int
    error: RefusalKind | None
    stream: bool
    seconds: float
    started: datetime
    bill: RequestBill | None
    """The cost of the request's calls; None if the calls are unknown."""
    calls: Sequence[Call] = ()
    key: str | None = None
    """Name of the client's access key; for the log only."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The client's HTTP headers; spans use only `traceparent` and `tracestate`."""


def tokens_of(bill: RequestBill | None) -> Mapping[str, int | None]:
    """Return a bill's tokens by kind, counted as in the reply's usage; None if unknown."""
    visible, hidden = (bill.visible, bill.orchestration) if bill else (None, None)
    return {
        "input": visible.input_total if visible else None,
        "output": visible.output if visible else None,
        "orchestration_input": hidden.input_total + hidden.orchestration_in if hidden else None,
        "orchestration_output": hidden.output + hidden.orchestration_out if hidden else None,
    }


NO_TOKENS = Usage(reasoning=0)
NO_ORCHESTRATION = dict.fromkeys(
    ("orchestration_in", "orchestration_in_cached", "orchestration_out"), 0
)


def bill_of(rows: Sequence[Call]) -> RequestBill:
    """Return the bill of a request's calls; `visible` has 0 tokens if all calls failed."""
    steps = {row.call: step_number(row.step) for row in rows if row.error is None}
    final = max((step for step in steps.values() if step is not None), default=None)
    visible = [row for row in rows if row.error is None and final and steps[row.call] == final]
    answer, hidden = usage_of(visible), usage_of(row for row in rows if row not in visible)
    return RequestBill(
        visible=answer and replace(answer, **NO_ORCHESTRATION, total_reported=None),
        orchestration=answer and hidden and _orchestration(answer) + _whole(hidden),
        calls=len({row.call for row in rows}),
        usd=add_up(rows).billed,
    )


def _whole(usage: Usage) -> Usage:
    """Return the usage with orchestration tokens of the worker itself added to input and output."""
    return replace(usage, **NO_ORCHESTRATION, total_reported=None) + _orchestration(usage)


def _orchestration(usage: Usage) -> Usage:
    cached = usage.orchestration_in_cached
    uncached = usage.orchestration_in - cached
    return replace(NO_TOKENS, input=uncached, cache_read=cached, output=usage.orchestration_out)


Found = TypeVar("Found", bound=BaseModel)
Place = tuple[int | str, ...]
UNHONOURED = ("extra_forbidden", "none_required", "literal_error", "union_tag_invalid")
"""Pydantic's error types for fields that are valid but not supported by podium."""
PIECE = 160  # characters per streamed event; workers' replies arrive whole


def checked(kind: type[Found], value: Any, name_of: Callable[[Place], str]) -> Found:
    """Validate `value` as class `kind`; Refusal names the first invalid field by `name_of`."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
    name, context = name_of(problem["loc"]), problem.get("ctx", {})
    if problem["type"] == "missing":
        raise Refusal(400, "invalid_request", f"`{name}` is missing: send it.", param=name)
    if problem["type"] not in UNHONOURED:
        raise invalid(name, problem["msg"].removeprefix("Value error, "))
    expected = context.get("expected_tags") or context.get("expected")
    raise unsupported(name, f"send {expected}" if expected else "leave it out")


def invalid(name: str, reason: str) -> Refusal:
    """Return the refusal (400) of a request whose field `name` is invalid."""
    sentence = f"`{name:.120}` is invalid: {reason[:1].lower()}{reason[1:]}."
    return Refusal(400, "invalid_request", sentence, param=name[:120])


def unsupported(name: str, remedy: str) -> Refusal:
    """Return the refusal (400) of a request whose field `name` is valid but not supported."""
    sentence = f"`{name:.120}` is not supported as sent: {remedy}."
    return Refusal(400, "unsupported_parameter", sentence, param=name[:120])


def text_pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of `PIECE` characters."""
    yield from (text[start : start + PIECE] for start in range(0, len(text), PIECE))


SILENT = {"title", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
"""Keywords of JSON Schema without effect on a worker; they are dropped without a note."""


def tool_info(name: str, description: str, schema: Mapping[str, Any], path: str) -> ToolInfo:
    """Return a tool for workers; if the tool's schema is invalid, Refusal names the field `path`.

    Inspect has fields for a part of JSON Schema and drops the rest (`$ref`, `const`, `minItems`):
    dropped keywords are appended, as JSON, to the description of their schema.
    """
    try:
        json.dumps(schema, allow_nan=False)  # replies repeat the schema
        inspect_schema = _told(schema, ToolParams.model_fields)
        parameters = ToolParams.model_validate({"additionalProperties": True, **inspect_schema})
    except (ValueError, RecursionError):
        sentence = f"`{path}` is not a JSON schema of an object. Send one, with `properties`."
        raise Refusal(400, "invalid_request", sentence, param=path) from None
    note = inspect_schema.get("description", "")
    return ToolInfo(name=name, description=f"{description} {note}".strip(), parameters=parameters)


def _told(schema: object, words: Collection[str] = JSONSchema.model_fields) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    fields = dict(cast(Mapping[str, Any], schema))
    description = fields.pop("description", "")
    lost = {word: v for word, v in fields.items() if word not in words and word not in SILENT}
    result = {word: _below(word, v) for word, v in fields.items() if word in words}
    if lost:
        description = f"{description} (JSON Schema: {json.dumps(lost)})".lstrip()
    return {**result, "description": description} if description else result


def _below(word: str, value: Any) -> Any:
    """Return the value of a JSON Schema keyword; `_told` converts the schemas inside the value."""
    if word in ("items", "additionalProperties"):
        return _told(value)
    if word == "properties" and isinstance(value, Mapping):
        return {name: _told(child) for name, child in cast(Mapping[str, Any], value).items()}
    if word == "anyOf" and isinstance(value, list):
        return [_told(child) for child in cast(list[object], value)]
    return value
