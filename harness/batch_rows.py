"""Rows of OpenAI-shaped batches: what was asked, and what came of it.

The rows are those of OpenAI's Batch API, which other servers read and write too: a request
`{custom_id, url, body}` and a result `{custom_id, response: {status_code, body}, error}`. Read here
is what a reply needs, its text, finish and usage; whatever else a server writes is ignored, since
every client's model of a reply refuses fields that were new, or are not yet there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, cast

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

from podium.harness.errors import UserError
from podium.harness.files import check_row, parse_json
from podium.harness.records import Usage
from podium.harness.usage import believed, raw_usage, usage_from_raw

Json = dict[str, Any]
Endpoint = Literal["chat", "responses"]
ENDPOINTS: Mapping[str, Endpoint] = {"/chat/completions": "chat", "/responses": "responses"}
"""The ends of the urls whose replies can be replayed, whatever a server has before them."""
STOPS: Mapping[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "model_length": "model_length",
    "content_filter": "content_filter",
}
"""Finish reasons in Inspect's words; any other is unknown."""
FAILED = re.compile(r"error|abort|cancel|fail|insufficient|network|time.?out")
"""Words in a finish reason which say that a failure ended the reply."""
WITHOUT_TEXT = ("max_tokens", "model_length", "content_filter")
"""How a reply may end before it has any text."""
UNDONE = ("failed", "cancelled", "queued", "in_progress")
"""The status of a Responses body that holds no reply."""
TOOLS = "calls tools, and a cassette can replay texts only"


class BatchRow(BaseModel):
    """Part of a row: what is not named here may be absent, new or of any type."""

    model_config = ConfigDict(extra="ignore", frozen=True)


CustomId = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]


class BatchRequest(BatchRow):
    """A row of a batch's input."""

    custom_id: CustomId
    url: str | None = None  # Mistral and Together name it for the whole batch
    body: Json

    @cached_property
    def endpoint(self) -> Endpoint | None:
        """Which replies answer it; None for those that cannot be replayed."""
        if not self.url:
            return "chat" if "messages" in self.body else "responses"
        path = self.url.partition("?")[0].rstrip("/")
        return next((kind for end, kind in ENDPOINTS.items() if path.endswith(end)), None)

    def conversation(self, where: str) -> list[ChatMessage]:
        """Return what was sent; UserError for what a cassette cannot know again."""
        if self.endpoint is None:
            urls = " and ".join(f"/v1{end}" for end in ENDPOINTS)
            raise UserError(f"{where}: podium replays {urls}, and no other url.")
        messages = self._messages(f"{where}: its body")
        lists = (message.content for message in messages if isinstance(message.content, list))
        texts_only = all(part.type == "text" for parts in lists for part in parts)
        if self.body.get("tools") or not texts_only:
            raise UserError(
                f"{where}: its body has tools or more than texts; a cassette can replay texts only."
            )
        return messages

    def _messages(self, place: str) -> list[ChatMessage]:
        body, convert, given = self.body, messages_from_openai, self.body.get("messages")
        if self.endpoint == "responses":
            convert, given = messages_from_openai_responses, body.get("input")
            given = [{"role": "user", "content": given}] if isinstance(given, str) else given
        try:
            messages: list[ChatMessage] = anyio.run(cast(Any, convert), given)
        except Exception as error:  # they raise whatever their client's objects do
            raise UserError(f"{place} is not what this url takes.") from error
        if self.endpoint == "responses" and body.get("instructions"):
            messages.insert(0, ChatMessageSystem(content=str(body["instructions"])))
        return messages


def _with_body(value: object) -> object:
    """Return a response with a body of its own: Fireworks' is the completion itself."""
    if not isinstance(value, Mapping):
        return value
    response = cast(Json, value)
    bare = "body" not in response and ("choices" in response or "output" in response)
    return {"body": response} if bare else response


def _parsed(value: object) -> object:
    return parse_json(value) if isinstance(value, str) else value


class BatchResponse(BatchRow):
    """What was answered over HTTP."""

    status_code: int | None = None
    body: Annotated[Json | None, BeforeValidator(_parsed)] = None


class BatchResult(BatchRow):
    """A row of a batch's output, or of its file of errors."""

    custom_id: CustomId
    response: Annotated[BatchResponse | None, BeforeValidator(_with_body)] = None
    error: Any = None

    @property
    def body(self) -> Json | None:
        """What the model's server answered; None for a call that failed."""
        response = self.response
        if _is_error(self.error) or response is None or response.body is None:
            return None
        if response.status_code is not None and not 200 <= response.status_code < 300:
            return None
        failed = _is_error(response.body.get("error")) or response.body.get("object") == "error"
        return None if failed else response.body


def _is_error(value: object) -> bool:
    """Say whether an error is one: some servers write an object whose fields are all null."""
    return any(cast(Json, value).values()) if isinstance(value, Mapping) else bool(value)


def _text_of(value: object) -> str | None:
    """Return the text of a content, which may be a list of parts; ValueError for anything else."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError("it is neither a text nor a list of parts")
    texts = [_text_of_part(part) for part in cast(list[object], value)]
    return "\n".join(text for text in texts if text is not None)  # as Inspect joins them


def _text_of_part(part: object) -> str | None:
    """Return a part's text; None for thoughts, references and what else is beside a text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise ValueError("a part of it is no object")
    fields = cast(Json, part)
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
    """One reply to a request."""

    text: str
    stop: StopReason
    usage: Usage | None
    model: str
    """As the server names it; empty if it names none."""
    failed_as: str = ""
    """The finish reason of a reply with a text that may have been broken off by a failure."""


def read_replies(endpoint: Endpoint, body: Json, where: str) -> list[BatchReply]:
    """Return the replies in a body, one for each choice; none if the call failed."""
    read = _chat_replies if endpoint == "chat" else _responses_replies
    return read(body, where)


def _chat_replies(body: Json, where: str) -> list[BatchReply]:
    answer = check_row(_ChatBody, body, where)
    usage = _usage(body) if len(answer.choices) == 1 else None  # nobody says how it is divided
    replies: list[BatchReply] = []
    for at, choice in enumerate(answer.choices):
        message, reason = choice.message, str(choice.finish_reason).lower()
        if message.tool_calls or message.function_call:
            raise UserError(f"{where}: choices.{at}.message: it {TOOLS}.")
        text, failed_as = _chat_text(message), reason if FAILED.search(reason) else ""
        if _is_error(choice.error) or (failed_as and not text):
            continue
        stop = STOPS.get(reason, "unknown")
        if text is None and stop not in WITHOUT_TEXT:
            raise UserError(f"{where}: choices.{at}.message.content: it is absent.")
        replies.append(BatchReply(text or "", stop, usage, _name(answer.model), failed_as))
    return replies


def _chat_text(message: _Message) -> str | None:
    """Return a reply's text without its thoughts; None if nothing says that it is empty."""
    if message.refusal:
        return message.refusal
    reasoning = message.reasoning_details or message.reasoning_content or message.reasoning
    if message.content is None:
        return "" if reasoning or "content" in message.model_fields_set else None
    if reasoning or "<think" not in message.content:
        return message.content
    said = {"role": "assistant", "content": message.content}
    choice = {"index": 0, "finish_reason": "stop", "message": said}
    whole = {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}
    return anyio.run(model_output_from_openai, whole).completion  # Inspect's reading, as when live


def _responses_replies(body: Json, where: str) -> list[BatchReply]:
    answer = check_row(_ResponsesBody, body, where)
    if answer.status in UNDONE:
        return []
    if any(item.type.endswith("_call") for item in answer.output):
        raise UserError(f"{where}: output: it {TOOLS}.")
    if not answer.output and answer.status != "incomplete":
        raise UserError(f"{where}: output: it is empty, and the reply is not incomplete.")
    texts = [
        check_row(_Said, item.model_dump(exclude_unset=True), f"{where}: output.{at}").content
        for at, item in enumerate(answer.output)
        if item.type == "message"
    ]
    reason = str(answer.incomplete_details and answer.incomplete_details.reason)
    stop = STOPS.get(reason, "stop" if answer.status != "incomplete" else "unknown")
    text = "\n".join(text for text in texts if text)
    return [BatchReply(text, stop, _usage(body), _name(answer.model))]


def _usage(body: Json) -> Usage | None:
    """Return the tokens that a body states; None, never 0, if it states none that can be."""
    raw = raw_usage(body)
    if raw is None:
        return None
    dialect = "openai-chat" if "prompt_tokens" in raw else "openai-responses"
    return believed(usage_from_raw(dialect, raw), raw)


def _name(model: object) -> str:
    return model if isinstance(model, str) else ""
