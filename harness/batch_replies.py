"""Replies of OpenAI-shaped batches as a cassette: a file of requests, joined with one of results.

The files are those of OpenAI's Batch API, which other servers read and write too: a line a request,
`{custom_id, url, body}`, and a line a result, `{custom_id, response: {status_code, body}, error}`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ModelOutput,
    messages_from_openai,
    messages_from_openai_responses,
    model_output_from_openai,
    model_output_from_openai_responses,
)
from pydantic import BaseModel, ConfigDict, Field

from harness.cassette import (
    CassetteHeader,
    RecordedReply,
    RecordedTokens,
    RecordSummary,
    refuse_written,
    write_recorded,
)
from harness.errors import UserError
from harness.files import check_row, read_rows
from harness.prices import newest_list
from harness.request import request_digest
from harness.text import make_storable
from harness.usage import usage_of_reply

Read = TypeVar("Read")
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


class BatchRequest(BaseModel):
    """A line of a batch's input."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    custom_id: str = Field(min_length=1)
    url: str
    body: dict[str, Any]


class BatchResponse(BaseModel):
    """What was answered over HTTP."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status_code: int
    body: dict[str, Any] | None = None


class BatchResult(BaseModel):
    """A line of a batch's output, or of its file of errors."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    custom_id: str = Field(min_length=1)
    response: BatchResponse | None = None
    error: Any = None


def record_batch(results: Path, requests: Path, out: Path) -> RecordSummary:
    """Write the cassette `out` of a batch and the pool file beside it; return what was done.

    A request that stands there k times has k draws, its epochs. UserError for what `record`
    refuses, for lines that are no batch's, and for results that nobody requested.
    """
    refuse_written(out)
    asked = _requests(requests)
    summary, rows, draws = RecordSummary(out), list[RecordedReply](), Counter[tuple[str, str]]()
    answered: set[str] = set()
    for line, row in read_rows(results):
        where = f"{results}, line {line}"
        result = check_row(BatchResult, make_storable(row), where)
        if result.custom_id not in asked or result.custom_id in answered:
            raise UserError(f"{where}: {requests.name} has no such custom_id, or none more.")
        answered.add(result.custom_id)
        found = [*_replies(*asked[result.custom_id], result, draws, (results.name, where))]
        summary.errors += not found
        rows += found
    summary.unfinished_samples = len(asked.keys() - answered)
    if not rows:
        raise UserError(f"{results} has no reply: there is nothing to record.")
    summary.workers = Counter(row.worker for row in rows)
    files = (results, requests)
    header = CassetteHeader(
        created_from=tuple(path.name for path in files),
        source_sha256=tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in files),
        source_label="live",
    )
    write_recorded(out, header, rows, [{"prices": newest_list().as_json()}])
    return summary


def _requests(path: Path) -> dict[str, tuple[BatchRequest, str]]:
    """Return the requests of a batch by their ids, each with its place."""
    found: dict[str, tuple[BatchRequest, str]] = {}
    for line, row in read_rows(path):
        where = f"{path}, line {line}"
        one = check_row(BatchRequest, make_storable(row), where)
        if one.url not in (CHAT, RESPONSES):
            raise UserError(f"{where}: podium replays {CHAT} and {RESPONSES}, and no other url.")
        if one.custom_id in found:
            raise UserError(f"{where}: its custom_id stands in an earlier line, too.")
        found[one.custom_id] = (one, where)
    if not found:
        raise UserError(f"{path} has no request: name the file that was sent as the batch.")
    return found


def _replies(
    asked: BatchRequest,
    asked_at: str,
    result: BatchResult,
    draws: Counter[tuple[str, str]],
    place: tuple[str, str],
) -> Iterator[RecordedReply]:
    """Yield the replies to a request, one for each choice; none where it failed."""
    (source, where), response = place, result.response
    if result.error or response is None or response.status_code != 200 or response.body is None:
        return
    chat = asked.url == CHAT
    convert = model_output_from_openai if chat else model_output_from_openai_responses
    output: ModelOutput = _awaited(convert, response.body, f"{where}: its response's body")
    named = str(asked.body.get("model") or output.model)
    worker = re.sub(r"[^A-Za-z0-9._-]+", "-", named.rpartition("/")[2]).lstrip("._-") or "model"
    digest = request_digest(_conversation(asked, asked_at))
    usage = usage_of_reply(output, response.body) if len(output.choices) == 1 else None
    counts = {name: getattr(usage, name, None) for name in RecordedTokens.model_fields}
    for choice in output.choices:
        if choice.message.tool_calls:
            raise UserError(f"{where}: it calls tools, and a cassette can replay texts only.")
        draws[worker, digest] += 1
        yield RecordedReply(
            worker=worker,
            digest=digest,
            epoch=draws[worker, digest],
            occurrence=0,
            text=choice.message.text,
            usage=RecordedTokens.model_validate(counts) if usage else None,
            model=named if "/" in named else f"openai/{named}",
            stop_reason=choice.stop_reason,
            question=asked.custom_id,
            source=source,
        )


def _conversation(asked: BatchRequest, where: str) -> list[ChatMessage]:
    """Return what a request sent; UserError for what a cassette cannot know again."""
    body, place = asked.body, f"{where}: its body"
    if asked.url == CHAT:
        messages: list[ChatMessage] = _awaited(messages_from_openai, body.get("messages"), place)
    else:
        said: object = body.get("input")
        turns = [{"role": "user", "content": said}] if isinstance(said, str) else said
        messages = _awaited(messages_from_openai_responses, turns, place)
        if body.get("instructions"):
            messages.insert(0, ChatMessageSystem(content=str(body["instructions"])))
    parts = (part for one in messages if isinstance(one.content, list) for part in one.content)
    if body.get("tools") or any(part.type != "text" for part in parts):
        raise UserError(f"{place} has tools or more than texts; a cassette can replay texts only.")
    return messages


def _awaited(convert: Callable[..., Awaitable[Read]], given: object, what: str) -> Read:
    """Return what a converter of Inspect's makes; UserError where it cannot read something."""
    try:
        return anyio.run(convert, given)
    except Exception as error:  # they raise whatever their client's objects do
        raise UserError(f"{what} is not what this url takes or answers.") from error
