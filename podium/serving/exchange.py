"""One request as every dialect reads it, one reply as every dialect writes it, and its bill."""

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
    """A request that gets no answer, in one sentence; each dialect has its own object for it."""

    def __init__(
        self,
        status: int,
        kind: RefusalKind,
        sentence: str,
        *,
        param: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """Say why: `param` is the field at fault, `retry_after_s` when asking again can help."""
        super().__init__(sentence)
        self.status, self.param, self.retry_after_s = status, param, retry_after_s
        self.kind: RefusalKind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequest:
    """What a client asks, whatever dialect it speaks."""

    dialect: DialectName
    model: str
    """As it was asked: a system, an alias or a dated id."""
    messages: Sequence[ChatMessage]
    tools: Sequence[ToolInfo] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)
    """The sampling that was asked for, and nothing else: None is not asked for."""
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    """By field of `config`, and `tools`: its name in the dialect, for refusals that name it."""
    stream: bool = False
    include_usage: bool = False
    """Whether a stream of chat completions is to end with the usage."""
    echo: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a reply repeats of the request, in the dialect's own words."""

    @property
    def conversation(self) -> Conversation:
        """What is asked of the system."""
        return Conversation(
            messages=self.messages,
            tools=self.tools,
            tool_choice=self.tool_choice,
            config=self.config,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBill:
    """What the calls of one request come to, by the one sum; None: a part is unknown."""

    visible: Usage | None
    """Tokens of the worker call that answered last; of no call, where none answered."""
    orchestration: Usage | None
    """Of all other calls together: conductor, other workers, attempts that failed."""
    calls: int
    usd: Decimal | None

    @property
    def total_tokens(self) -> int | None:
        """All tokens, orchestration included."""
        if self.visible is None or self.orchestration is None:
            return None
        return self.visible.parts_total + self.orchestration.parts_total


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedReply:
    """What a system answered."""

    trace: str
    """The request's id: of its trace, and `x-request-id`."""
    model: str
    """The id that the reply names: what was asked for."""
    created: int
    """Seconds since 1970."""
    text: str
    tool_calls: Sequence[ToolCall] = ()
    stop: StopReason = "stop"
    bill: RequestBill


@dataclass(frozen=True, slots=True)
class StepBegun:
    """A step that has begun: what a heartbeat says."""

    number: int
    """From 1, in the order of beginning; a conductor's planning is 0."""
    of: int | None
    """How many steps there are, where the plan is known."""
    worker: str

    def __str__(self) -> str:
        if not self.number:
            return "planning"
        of = f" of {self.of}" if self.of else ""
        return f"step {self.number}{of}: {self.worker}"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event: its name, where the dialect gives one, and its data."""

    data: str
    name: str | None = None


class ReplyStream(Protocol):
    """One reply as a stream of events: it begins, beats while it is waited for, and ends once."""

    def begin(self) -> Iterator[StreamEvent]:
        """Yield what comes first, before anything is known."""
        ...

    def beat(self, step: StepBegun | None) -> Iterator[StreamEvent]:
        """Yield events with data, for clients whose idle timers count no comments."""
        ...

    def finish(self, reply: ServedReply) -> Iterator[StreamEvent]:
        """Yield the whole answer and its usage, to the end of the stream."""
        ...

    def fail(self, refusal: Refusal) -> Iterator[StreamEvent]:
        """Yield the dialect's own error, to the end of the stream."""
        ...


class Dialect(Protocol):
    """How one kind of client writes requests and reads replies."""

    name: DialectName

    async def read(self, body: Mapping[str, Any]) -> ServedRequest:
        """Return a request; Refusal (400) names the field that is wrong or cannot be honoured."""
        ...

    def reply(self, request: ServedRequest, reply: ServedReply) -> Mapping[str, Any]:
        """Return the body of a reply that is not streamed."""
        ...

    def error(self, refusal: Refusal, trace: str) -> Mapping[str, Any]:
        """Return the body of an error."""
        ...

    def stream(self, request: ServedRequest, trace: str, created: int) -> ReplyStream:
        """Return the writer of a streamed reply."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One finished request, answered or not."""

    trace: str
    system: str
    dialect: DialectName
    model: str
    """As it was asked."""
    status: int
    error: RefusalKind | None
    stream: bool
    seconds: float
    started: datetime
    bill: RequestBill | None
    """None where nothing is known of what it made."""
    calls: Sequence[Call] = ()
    key: str | None = None
    """The name of the caller's key; for the log alone."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The client's; a span reads `traceparent` and `tracestate`, and nothing else."""


def tokens_of(bill: RequestBill | None) -> Mapping[str, int | None]:
    """Return the tokens of a bill as its reply's usage has them; None is unknown."""
    own, others = (bill.visible, bill.orchestration) if bill else (None, None)
    return {
        "input": own.input_total if own else None,
        "output": own.output if own else None,
        "orchestration_input": others.input_total + others.orchestration_in if others else None,
        "orchestration_output": others.output + others.orchestration_out if others else None,
    }


NO_TOKENS = Usage(reasoning=0)
NO_ORCHESTRATION = dict.fromkeys(
    ("orchestration_in", "orchestration_in_cached", "orchestration_out"), 0
)


def bill_of(rows: Sequence[Call]) -> RequestBill:
    """Return what the calls of a request come to; no call answered where all have failed."""
    steps = {row.call: step_number(row.step) for row in rows if row.error is None}
    last = max((step for step in steps.values() if step is not None), default=None)
    visible = [row for row in rows if row.error is None and last and steps[row.call] == last]
    own, others = usage_of(visible), usage_of(row for row in rows if row not in visible)
    return RequestBill(
        visible=own and replace(own, **NO_ORCHESTRATION, total_reported=None),
        orchestration=own and others and _orchestration(own) + _whole(others),
        calls=len({row.call for row in rows}),
        usd=add_up(rows).billed,
    )


def _whole(usage: Usage) -> Usage:
    """Return tokens with those among them that a worker spent on models of its own."""
    return replace(usage, **NO_ORCHESTRATION, total_reported=None) + _orchestration(usage)


def _orchestration(usage: Usage) -> Usage:
    cached = usage.orchestration_in_cached
    asked = usage.orchestration_in - cached
    return replace(NO_TOKENS, input=asked, cache_read=cached, output=usage.orchestration_out)


Found = TypeVar("Found", bound=BaseModel)
Place = tuple[int | str, ...]
UNHONOURED = ("extra_forbidden", "none_required", "literal_error", "union_tag_invalid")
"""Pydantic's words for what another server may honour."""
PIECE = 160  # characters: a text that arrives whole is still read as it comes


def checked(kind: type[Found], found: Any, name_of: Callable[[Place], str]) -> Found:
    """Return an object's fields; Refusal names the first one that is wrong, as a dialect does."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    name, context = name_of(first["loc"]), first.get("ctx", {})
    if first["type"] == "missing":
        raise Refusal(400, "invalid_request", f"`{name}` is missing: send it.", param=name)
    if first["type"] not in UNHONOURED:
        raise invalid(name, first["msg"].removeprefix("Value error, "))
    expected = context.get("expected_tags") or context.get("expected")
    raise unsupported(name, f"it can only be {expected} here" if expected else "leave it out")


def invalid(name: str, why: str) -> Refusal:
    """Return the refusal of a field that is wrong in any server."""
    said = f"`{name:.120}` is wrong: {why[:1].lower()}{why[1:]}."
    return Refusal(400, "invalid_request", said, param=name[:120])


def unsupported(name: str, remedy: str) -> Refusal:
    """Return the refusal of a field that cannot be honoured here."""
    said = f"`{name:.120}` cannot be honoured here: {remedy}."
    return Refusal(400, "unsupported_parameter", said, param=name[:120])


def text_pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces."""
    yield from (text[at : at + PIECE] for at in range(0, len(text), PIECE))


SILENT = {"title", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
"""Words of JSON Schema that ask nothing of a worker."""


def tool_info(name: str, description: str, schema: Mapping[str, Any], at: str) -> ToolInfo:
    """Return a function as a worker is told of it; Refusal names `at`, where its schema stands.

    Inspect has fields for a part of JSON Schema and drops the rest (`$ref`, `const`, `minItems`):
    what it would drop stands in the description of what it is said of, as JSON.
    """
    try:
        json.dumps(schema, allow_nan=False)  # a reply repeats it
        told = _told(schema, ToolParams.model_fields)
        parameters = ToolParams.model_validate({"additionalProperties": True, **told})
    except (ValueError, RecursionError):
        said = f"`{at}` is no JSON schema of an object: send one, with `properties`."
        raise Refusal(400, "invalid_request", said, param=at) from None
    more = told.get("description", "")
    return ToolInfo(name=name, description=f"{description} {more}".strip(), parameters=parameters)


def _told(schema: object, known: Collection[str] = JSONSchema.model_fields) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    found = dict(cast(Mapping[str, Any], schema))
    said = found.pop("description", "")
    lost = {word: one for word, one in found.items() if word not in known and word not in SILENT}
    kept = {word: _below(word, one) for word, one in found.items() if word in known}
    if lost:
        said = f"{said} (JSON Schema: {json.dumps(lost)})".lstrip()
    return {**kept, "description": said} if said else kept


def _below(word: str, found: Any) -> Any:
    """Return what stands under a word of a schema, its own schemas told as well."""
    if word in ("items", "additionalProperties"):
        return _told(found)
    if word == "properties" and isinstance(found, Mapping):
        return {name: _told(one) for name, one in cast(Mapping[str, Any], found).items()}
    if word == "anyOf" and isinstance(found, list):
        return [_told(one) for one in cast(list[object], found)]
    return found
