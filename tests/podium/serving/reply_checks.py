"""What must hold of every answer of a server, in any dialect; AssertionError says what does not.

Tests hold answers against these, and test_server_mutations.py shows that they catch what they are
for. Tokens and dollars are held against the journal, by the code that made the bill.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from podium.harness.ledger.hooks import text_digest
from podium.harness.ledger.served import TRACE, ServedQuery, read_trace
from podium.reports.audit import audit
from podium.serving.exchange import DialectName, RequestBill, ServedReply, bill_of
from tests.podium.serving import message_checks
from tests.podium.serving.stream_checks import (
    check_chat_stream,
    check_response_stream,
    check_usage,
    events_of,
)

PATHS: Mapping[DialectName, str] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
DIALECTS: tuple[DialectName, ...] = ("chat", "responses", "messages")


def body_of(dialect: DialectName, text: str, model: str, **more: Any) -> dict[str, Any]:
    """Return a request of one user message, streamed with its usage if `stream` is among more."""
    if dialect == "responses":
        return {"model": model, "input": text, **more}
    if dialect == "messages":
        more = {"max_tokens": 500, **more}
    elif more.get("stream"):
        more = {"stream_options": {"include_usage": True}, **more}
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


@dataclass(frozen=True, slots=True)
class Received:
    """An answer as a client received it."""

    dialect: DialectName
    status: int
    headers: Mapping[str, str]
    text: str

    @classmethod
    def of(cls, dialect: DialectName, response: httpx.Response) -> "Received":
        return cls(dialect, response.status_code, dict(response.headers), response.text)

    @property
    def trace(self) -> str:
        """The id of its request, which every answer has."""
        found = self.headers.get("x-request-id", "")
        assert TRACE.fullmatch(found), f"no request id: {found!r}"
        return found


def check_refusal(received: Received, status: int) -> str:
    """Return what a refusal says: the dialect's own object, with its request's id."""
    assert received.status == status, received.text[:500]
    body, trace = json.loads(received.text), received.trace
    error = body["error"]
    if received.dialect == "messages":
        assert body["type"] == "error"
        assert body["request_id"] == trace
        assert error["type"] in message_checks.ERROR_TYPES
    else:
        assert set(error) == {"message", "type", "param", "code"}
        assert isinstance(error["type"], str)
    assert error["message"].strip()
    return str(error["message"])


def check_whole(received: Received, log_dir: Path) -> None:
    """Hold a reply that is not streamed against its dialect and against the journal."""
    assert received.status == 200, received.text[:500]
    body, query, headers = json.loads(received.text), _query(received, log_dir), received.headers
    bill = bill_of(query.rows)
    assert headers.get("x-podium-trace") == f"/v1/traces/{received.trace}"
    assert headers.get("x-podium-calls") == str(bill.calls)
    assert headers.get("x-litellm-total-tokens") == str(bill.total_tokens)
    assert float(headers.get("x-litellm-response-cost", "nan")) == float(bill.usd or -1)
    if received.dialect == "messages":
        said = "".join(one["text"] for one in body["content"] if one["type"] == "text")
        message_checks.check_message(body, _as_served(received, said, bill))
    elif received.dialect == "chat":
        said = ChatCompletion.model_validate(body).choices[0].message.content or ""
        check_usage(body.get("usage"), bill)
    else:
        said = Response.model_validate(body).output_text
        check_usage(body.get("usage"), bill)
    assert text_digest(said) == query.answer_sha256, "another answer than the journal's"


def check_streamed(received: Received, log_dir: Path) -> None:
    """Hold a stream against its dialect and against the journal; it says what is being done."""
    assert received.status == 200, received.text[:500]
    assert received.headers.get("content-type", "").startswith("text/event-stream")
    events, query = events_of(received.text), _query(received, log_dir)
    bill = bill_of(query.rows)
    assert events, "nothing came"
    if received.dialect == "chat":
        chat = check_chat_stream(events, usage=True)
        said, steps = chat.whole.choices[0].message.content or "", chat.steps
        check_usage(chat.usage, bill)
    elif received.dialect == "responses":
        whole = check_response_stream(events)
        said, steps = Response.model_validate(whole.whole).output_text, whole.steps
        check_usage(whole.whole["usage"], bill)
    else:
        bodies = [json.loads(event.data) for event in events]
        said = "".join(one["delta"].get("text", "") for one in bodies if "delta" in one)
        message_checks.check_stream(events, _as_served(received, said, bill))
        steps = [one for one in bodies if one["type"] == "ping"]
    assert steps, "whoever waits hears nothing"
    assert text_digest(said) == query.answer_sha256, "another answer than the journal's"


def check_books(log_dir: Path) -> None:
    """Every request has an end, every call an outcome, and an audit finds nothing wrong."""
    lines = [
        json.loads(line)
        for path in log_dir.glob("ledger/*/*.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    asked, ended = _ids(lines, "request"), _ids(lines, "answer")
    assert sorted(asked) == sorted(ended), "a request without an end"
    intents = [line["call"] for line in lines if line["kind"] == "intent"]
    outcomes = [line["call"] for line in lines if line["kind"] == "outcome"]
    assert sorted(intents) == sorted(outcomes), "a call without an outcome"
    assert [one.invariant for one in audit(log_dir).verdicts if one.status == "fail"] == []


def _ids(lines: list[dict[str, Any]], kind: str) -> list[str]:
    return [line["sample"]["uuid"] for line in lines if line["kind"] == kind]


def _query(received: Received, log_dir: Path) -> ServedQuery:
    found = read_trace(log_dir, received.trace)
    assert found is not None, "the journal has no such request"
    return found


def _as_served(received: Received, text: str, bill: RequestBill) -> ServedReply:
    return message_checks.reply_of(
        trace=received.trace, model="podium/moa-lite", text=text, bill=bill
    )
