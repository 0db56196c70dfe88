"""Anthropic's messages: input excludes cached tokens, output includes thinking, no total is said.

Fields as in the anthropic package, 2.12.0. A reply without usage is no reply in this dialect: its
client cannot read one, so `None` becomes an empty object.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from podium.harness.records import Usage
from tests.providers.dialect import Asked, Dialect, Json, Said, texts


def messages_usage(usage: Usage) -> Json:
    """Return the usage of a message."""
    told: dict[str, Any] = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write - usage.cache_write_1h,
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    }
    if usage.reasoning is not None:
        told["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return told


def _asked(body: Json, path: Mapping[str, str]) -> Asked:
    prompt = texts([body.get("system") or "", body["messages"]])
    streamed = bool(body.get("stream"))
    return Asked(str(body["model"]), prompt, streamed, body.get("service_tier"), body)


def _message(said: Said) -> Json:
    return {
        "id": said.id,
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [{"type": "text", "text": said.text}] if said.text else [],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {} if said.usage is None else messages_usage(said.usage),
    }


def _events(said: Said) -> Sequence[tuple[str, Json]]:
    told = {} if said.usage is None else messages_usage(said.usage)
    begun = {**_message(said), "content": [], "stop_reason": None, "usage": {**told}}
    if said.usage is not None:
        begun["usage"]["output_tokens"] = 1
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    block: list[Json] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": said.text},
        },
        {"type": "content_block_stop", "index": 0},
    ]
    events: list[Json] = [
        {"type": "message_start", "message": begun},
        *(block if said.text else []),
        {"type": "message_delta", "delta": end, "usage": told},
        {"type": "message_stop"},
    ]
    return [(str(event["type"]), event) for event in events]


def _error(status: int) -> Json:
    kinds = {400: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = kinds.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": f"scripted {status}"}}


MESSAGES = Dialect("anthropic", "request-id", _asked, _message, _events, _error)
