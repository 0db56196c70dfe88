"""Make a cassette (a file of recorded replies) from the files of a provider's batch job.

A batch job has an input file of requests `{custom_id, url, body}` and an output file of results
`{custom_id, response: {status_code, body}, error}`, one per line: the format of OpenAI's Batch API,
which other servers use too. Text, finish reason and usage are read; other fields are ignored.
"""

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    StopReason,
    messages_from_openai,
    messages_from_openai_responses,
    model_output_from_openai,
)
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from podium.harness.cassette import (
    CassetteHeader,
    RecordedReply,
    RecordedTokens,
    RecordSummary,
    refuse_written,
    write_recorded,
)
from podium.harness.errors import UserError
from podium.harness.files import (
    check_row,
    json_with_nan,
    lines_of,
    open_text,
    parse_json,
    refuse_absent,
)
from podium.harness.prices import newest_list
from podium.harness.records import Usage
from podium.harness.request import request_digest
from podium.harness.text import make_storable, pluralise
from podium.harness.usage import believed, raw_usage, usage_from_raw

Json = dict[str, Any]
Endpoint = Literal["chat", "responses"]
ENDPOINTS: Mapping[str, Endpoint] = {"/chat/completions": "chat", "/responses": "responses"}
"""Last part of a request's URL -> its API, `chat` or `responses`; podium cannot replay replies from
other URLs."""
STOPS: Mapping[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "model_length": "model_length",
    "content_filter": "content_filter",
}
"""A server's finish reason -> Inspect's stop reason; any other finish reason becomes `unknown`."""
FAILED = re.compile(r"error|abort|cancel|fail|insufficient|network|time.?out")
"""Words in a finish reason that mean that a failure ended the reply."""
WITHOUT_TEXT = ("max_tokens", "model_length", "content_filter")
"""Stop reasons (Inspect's names) with which a reply without text is valid."""
UNDONE = ("failed", "cancelled", "queued", "in_progress")
"""Values of `status` in a body of OpenAI's Responses API that holds no reply."""
FIX = "Download the file again, or delete the row."
TOOLS = "calls tools, and a cassette can replay text only. Delete the row"


class BatchRow(BaseModel):
    """Base class for objects in batch files; undeclared fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


CustomId = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]


class BatchRequest(BatchRow):
    """A row of a batch's input file: one request to a model."""

    custom_id: CustomId
    url: str | None = None  # None if the server sets one URL for the whole batch
    body: Json

    @cached_property
    def endpoint(self) -> Endpoint | None:
        """The API of the request's URL; None if podium cannot replay replies of that URL."""
        if not self.url:
            return "chat" if "messages" in self.body else "responses"
        path = self.url.partition("?")[0].rstrip("/")
        return next((kind for end, kind in ENDPOINTS.items() if path.endswith(end)), None)

    def conversation(self, place: str) -> list[ChatMessage]:
        """Return a request's messages; UserError if the URL, tools or images prevent a replay."""
        if self.endpoint is None:
            urls = " and ".join(f"/v1{end}" for end in ENDPOINTS)
            raise UserError(
                f"{place}: its url is {self.url}, but podium replays only {urls}. Delete the row."
            )
        messages = self._messages(f"{place}: its body")
        lists = (message.content for message in messages if isinstance(message.content, list))
        texts_only = all(piece.type == "text" for contents in lists for piece in contents)
        if self.body.get("tools") or not texts_only:
            raise UserError(
                f"{place}: its body has tools or content that is not text; a cassette can replay "
                "text only. Delete the row."
            )
        return messages

    def _messages(self, place: str) -> list[ChatMessage]:
        body, convert, turns = self.body, messages_from_openai, self.body.get("messages")
        if self.endpoint == "responses":
            convert, turns = messages_from_openai_responses, body.get("input")
            turns = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns
        try:
            messages: list[ChatMessage] = anyio.run(cast(Any, convert), turns)
        except Exception as error:  # Inspect's converters raise many types
            raise UserError(
                f"{place} is not a valid request for {self.url or self.endpoint}: its messages "
                f"cannot be read ({type(error).__name__}). Correct `messages` (chat) or `input` "
                "(responses)."
            ) from error
        if self.endpoint == "responses" and body.get("instructions"):
            messages.insert(0, ChatMessageSystem(content=str(body["instructions"])))
        return messages


def _with_body(value: object) -> object:
    """Return a response with a field `body`; Fireworks sends the body alone, which is wrapped."""
    if not isinstance(value, Mapping):
        return value
    response = cast(Json, value)
    bare = "body" not in response and ("choices" in response or "output" in response)
    return {"body": response} if bare else response


def _parsed(value: object) -> object:
    return parse_json(value) if isinstance(value, str) else value


class BatchResponse(BatchRow):
    """The HTTP response to one request of a batch."""

    status_code: int | None = None
    body: Annotated[Json | None, BeforeValidator(_parsed)] = None


class BatchResult(BatchRow):
    """A row of a batch's output file or error file: the result of one request."""

    custom_id: CustomId
    response: Annotated[BatchResponse | None, BeforeValidator(_with_body)] = None
    error: Any = None

    @property
    def body(self) -> Json | None:
        """The body of the server's HTTP response; None if the request failed."""
        response = self.response
        if _is_error(self.error) or response is None or response.body is None:
            return None
        if response.status_code is not None and not 200 <= response.status_code < 300:
            return None
        failed = _is_error(response.body.get("error")) or response.body.get("object") == "error"
        return None if failed else response.body


def _is_error(value: object) -> bool:
    """Return whether a field `error` states an error; an object with only nulls states none."""
    return any(cast(Json, value).values()) if isinstance(value, Mapping) else bool(value)


def _text_of(value: object) -> str | None:
    """Return the text of a message's content (text, list of parts or None); else ValueError."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError("it is neither a text nor a list of parts")
    texts = [_text_of_part(piece) for piece in cast(list[object], value)]
    return "\n".join(text for text in texts if text is not None)  # as Inspect joins them


def _text_of_part(piece: object) -> str | None:
    """Return the text of one part of a message; None for other types of part, such as reasoning."""
    if isinstance(piece, str):
        return piece
    if not isinstance(piece, Mapping):
        raise ValueError("a part of it is not an object")
    fields = cast(Json, piece)
    kind = fields.get("type", "text")
    if kind not in ("text", "output_text", "refusal"):
        return None
    text = fields.get("refusal" if kind == "refusal" else "text")
    if not isinstance(text, str):
        raise ValueError("a part of it has no text")
    return text


Text = Annotated[str | None, BeforeValidator(_text_of)]


class _Message(BatchRow):
    content: Text = None
    refusal: Text = None
    tool_calls: Any = None
    function_call: Any = None
    reasoning_details: Any = None
    reasoning_content: Any = None
    reasoning: Any = None


class _Choice(BatchRow):
    message: _Message
    finish_reason: Any = None
    error: Any = None


class _ChatBody(BatchRow):
    model: Any = None
    choices: list[_Choice] = Field(min_length=1)


class _Item(BatchRow):
    type: str
    content: Any = None


class _Said(BatchRow):
    content: Text


class _Cut(BatchRow):
    reason: Any = None


class _ResponsesBody(BatchRow):
    model: Any = None
    status: Any = None
    incomplete_details: _Cut | None = None
    output: list[_Item]


@dataclass(frozen=True, slots=True)
class BatchReply:
    """One reply in a batch's results, with its stop reason and token usage."""

    text: str
    stop: StopReason
    usage: Usage | None
    model: str
    """The model's name in the response; empty if it has none."""
    failed_as: str = ""
    """The finish reason, if a failure may have cut the text short; else empty."""


def read_replies(endpoint: Endpoint, body: Json, place: str) -> list[BatchReply]:
    """Return the replies in a response body, one per choice; an empty list if the call failed."""
    read = _chat_replies if endpoint == "chat" else _responses_replies
    return read(body, place)


def _chat_replies(body: Json, place: str) -> list[BatchReply]:
    answer = check_row(_ChatBody, body, place)
    usage = _usage(body) if len(answer.choices) == 1 else None  # each choice's share is unknown
    replies: list[BatchReply] = []
    for index, choice in enumerate(answer.choices):
        message, reason = choice.message, str(choice.finish_reason).lower()
        if message.tool_calls or message.function_call:
            raise UserError(f"{place}: choices.{index}.message: it {TOOLS}.")
        text, failed_as = _chat_text(message), reason if FAILED.search(reason) else ""
        if _is_error(choice.error) or (failed_as and not text):
            continue
        stop = STOPS.get(reason, "unknown")
        if text is None and stop not in WITHOUT_TEXT:
            raise UserError(f"{place}: choices.{index}.message.content: it is absent. {FIX}")
        replies.append(BatchReply(text or "", stop, usage, _name(answer.model), failed_as))
    return replies


def _chat_text(message: _Message) -> str | None:
    """Return a reply's text without reasoning; None if it has neither `content` nor reasoning."""
    if message.refusal:
        return message.refusal
    reasoning = message.reasoning_details or message.reasoning_content or message.reasoning
    if message.content is None:
        return "" if reasoning or "content" in message.model_fields_set else None
    if reasoning or "<think" not in message.content:
        return message.content
    turn = {"role": "assistant", "content": message.content}
    choice = {"index": 0, "finish_reason": "stop", "message": turn}
    reply = {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}
    return anyio.run(model_output_from_openai, reply).completion  # parsed as in live runs


def _responses_replies(body: Json, place: str) -> list[BatchReply]:
    answer = check_row(_ResponsesBody, body, place)
    if answer.status in UNDONE:
        return []
    if any(item.type.endswith("_call") for item in answer.output):
        raise UserError(f"{place}: output: it {TOOLS}.")
    if not answer.output and answer.status != "incomplete":
        raise UserError(f"{place}: output: it is empty, but `status` is not `incomplete`. {FIX}")
    texts = [
        check_row(_Said, item.model_dump(exclude_unset=True), f"{place}: output.{index}").content
        for index, item in enumerate(answer.output)
        if item.type == "message"
    ]
    reason = str(answer.incomplete_details and answer.incomplete_details.reason)
    stop = STOPS.get(reason, "stop" if answer.status != "incomplete" else "unknown")
    text = "\n".join(text for text in texts if text)
    return [BatchReply(text, stop, _usage(body), _name(answer.model))]


def _usage(body: Json) -> Usage | None:
    """Return the token usage in a response body; None (unknown, never 0) without valid usage."""
    raw = raw_usage(body)
    if raw is None:
        return None
    dialect = "openai-chat" if "prompt_tokens" in raw else "openai-responses"
    return believed(usage_from_raw(dialect, raw), raw)


def _name(model: object) -> str:
    return model if isinstance(model, str) else ""


UNREADABLE = (ValueError, gzip.BadGzipFile, EOFError, zlib.error)
SHOWN = 5  # maximum left-out rows in a message
RowModel = TypeVar("RowModel", BatchRequest, BatchResult)


@dataclass(slots=True)
class BatchSummary(RecordSummary):
    """Counts of a batch's recorded replies, and sentences on rows that were left out."""

    unreadable: list[str] = field(default_factory=list[str])
    """A sentence for each row that cannot be read: its file, line, field and what is wrong."""
    broken_off: list[str] = field(default_factory=list[str])
    """A sentence for each recorded reply whose finish reason means that a failure ended it."""

    def __str__(self) -> str:
        lines = [RecordSummary.__str__(self)]
        if self.unreadable:
            rows = pluralise(len(self.unreadable), "row")
            lines.append(f"Left out: {rows} that cannot be read (--strict refuses them).")
            lines += _listed(self.unreadable)
        if self.broken_off:
            replies = "replies" if len(self.broken_off) > 1 else "reply"
            lines.append(
                f"Recorded: {len(self.broken_off):,} {replies} that a failure may have cut short."
            )
            lines += _listed(self.broken_off)
        return "\n".join(lines)


def _listed(sentences: Sequence[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences[:SHOWN]] + _rest(sentences)


def _rest(sentences: Sequence[str]) -> list[str]:
    count = len(sentences) - SHOWN
    return [f"- and {count:,} more"] if count > 0 else []


@dataclass(frozen=True, slots=True)
class _Asked:
    """A batch request whose replies can be replayed, and the digest of its messages."""

    request: BatchRequest
    digest: str


def record_batch(results: Path, requests: Path, out: Path, *, strict: bool = False) -> BatchSummary:
    """Write cassette `out` from a batch's replies, with its pool file; return a summary."""
    refuse_written(out)
    summary = BatchSummary(out)
    batch = _Batch(results.name, requests.name, _requests(requests, summary), summary)
    for place, line in _lines(results):
        batch.add(place, line)
    _refuse_unfit(batch, results, strict=strict)
    summary.unfinished_samples = len(batch.waiting)
    summary.workers = Counter(row.worker for row in batch.rows)
    files = (results, requests)
    header = CassetteHeader(
        created_from=tuple(path.name for path in files),
        source_sha256=tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in files),
        source_label="live",
    )
    write_recorded(out, header, batch.rows, [{"prices": newest_list().as_json()}])
    return summary


def _refuse_unfit(batch: "_Batch", results: Path, *, strict: bool) -> None:
    """Raise UserError if a batch has no reply to record, or (`strict`) a row cannot be read."""
    unreadable = batch.summary.unreadable
    examples = " ".join([*unreadable[:SHOWN], *_rest(unreadable)])
    if strict and unreadable:
        count = pluralise(len(unreadable), "row")
        raise UserError(f"{count} cannot be read: {examples} Correct them, or leave --strict out.")
    if not batch.rows:
        raise UserError(f"{results} has no reply. Name another output file. {examples}".strip())


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (`FILE, line N`, line) per non-blank line; UserError if a file is absent or binary."""
    refuse_absent(path)
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines_of(lines), start=1):
                if line.strip():
                    yield f"{path}, line {number}", line
    except UNREADABLE as error:
        raise UserError(f"{path} cannot be read as JSON Lines in UTF-8: {error}. {FIX}") from error


def _row(model: type[RowModel], line: str, place: str) -> RowModel:
    """Parse a line of a batch file as `model`; UserError names the field that cannot be read."""
    try:
        row: object = json_with_nan(line.encode("utf-8", "surrogatepass"))  # a logprob may be NaN
    except ValueError as error:
        raise UserError(f"{place}: it is not JSON: {error}. Correct or delete the line.") from error
    return check_row(model, make_storable(row), place)


def _requests(path: Path, summary: BatchSummary) -> dict[str, _Asked | None]:
    """Return {custom_id: request} of a batch file; None for a request that cannot be replayed."""
    requests: dict[str, _Asked | None] = {}
    for place, line in _lines(path):
        try:
            request = _row(BatchRequest, line, place)
            twice = request.custom_id in requests
            requests[request.custom_id] = None
            if twice:  # a result has only the id, so it could answer either request
                raise UserError(f"{place}: an earlier line has the same custom_id. Delete both.")
            digest = request_digest(request.conversation(place))
            requests[request.custom_id] = _Asked(request, digest)
        except UserError as error:
            summary.unreadable.append(str(error))
    if not requests and not summary.unreadable:
        raise UserError(f"{path} has no request: name the file that was sent as the batch.")
    return requests


@dataclass(slots=True)
class _Batch:
    """The state while a batch's results are read: replies so far, and requests without a result."""

    results: str
    requests: str
    asked: Mapping[str, _Asked | None]
    summary: BatchSummary
    rows: list[RecordedReply] = field(default_factory=list[RecordedReply])
    draws: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    waiting: set[str] = field(default_factory=set[str])
    """Values of `custom_id` of requests without a result so far."""
    answered: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.waiting = {id for id, request in self.asked.items() if request}

    def add(self, place: str, line: str) -> None:
        """Record the replies in a line of the output file; count a failed call, list a bad row."""
        try:
            result = _row(BatchResult, line, place)
            self.waiting.discard(result.custom_id)
            if result.custom_id not in self.asked or result.custom_id in self.answered:
                raise UserError(
                    f"{place}: {self.requests} does not have custom_id {result.custom_id[:80]!r}, "
                    "or an earlier result used it. Name the batch's own request file, and keep one "
                    "result per request."
                )
            if request := self.asked[result.custom_id]:  # None: listed as unreadable already
                self._add_replies(request, result, place)
        except UserError as error:
            self.summary.unreadable.append(str(error))

    def _add_replies(self, request: _Asked, result: BatchResult, row_place: str) -> None:
        endpoint, body = request.request.endpoint, result.body
        place = f"{row_place}: response.body"
        replies = read_replies(endpoint, body, place) if endpoint and body is not None else []
        self.summary.errors += not replies
        rows = [self._reply_row(request, reply, place) for reply in replies]
        self.rows += rows
        if rows:  # after a failed call, a later row may have its reply
            self.answered.add(result.custom_id)
        self.summary.broken_off += [
            f"{row_place}: its finish_reason is {reply.failed_as!r}."
            for reply in replies
            if reply.failed_as
        ]

    def _reply_row(self, request: _Asked, reply: BatchReply, place: str) -> RecordedReply:
        model = str(request.request.body.get("model") or reply.model)
        if not model:
            raise UserError(f"{place}: model: it is absent here and in the request. Add it to one.")
        worker = re.sub(r"[^A-Za-z0-9._-]+", "-", model.rpartition("/")[2]).lstrip("._-") or "model"
        self.draws[worker, request.digest] += 1
        counts = {name: getattr(reply.usage, name, None) for name in RecordedTokens.model_fields}
        return RecordedReply(
            worker=worker,
            digest=request.digest,
            epoch=self.draws[worker, request.digest],
            occurrence=0,
            text=reply.text,
            usage=RecordedTokens.model_validate(counts) if reply.usage else None,
            model=model if "/" in model else f"openai/{model}",
            stop_reason=reply.stop,
            question=request.request.custom_id,
            source=self.results,
        )
