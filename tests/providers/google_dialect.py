"""Google's generateContent: input includes cached tokens, output excludes thoughts, total has all.

Fields as in the google-genai package, 3.4.0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from podium.harness.records import Usage
from tests.providers.dialect import Asked, Dialect, Json, Said, texts, total


def gemini_usage(usage: Usage) -> Json:
    """Return the usage of a generated content."""
    thoughts = usage.reasoning or 0
    told: dict[str, Any] = {
        "promptTokenCount": usage.input_total,
        "candidatesTokenCount": usage.output - thoughts,
        "totalTokenCount": total(usage),
    }
    if usage.cache_read:
        told["cachedContentTokenCount"] = usage.cache_read
    if thoughts:
        told["thoughtsTokenCount"] = thoughts
    return told


def _asked(body: Json, path: Mapping[str, str]) -> Asked:
    model, _, verb = path["call"].partition(":")
    prompt = texts([body.get("contents") or [], body.get("systemInstruction") or {}])
    return Asked(model, prompt, verb.startswith("stream"), None, body)


def _content(said: Said) -> Json:
    parts = [{"text": said.text}] if said.text else []
    told = {} if said.usage is None else {"usageMetadata": gemini_usage(said.usage)}
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "modelVersion": said.model,
        "responseId": said.id,
        **told,
    }


def _events(said: Said) -> Sequence[tuple[str, Json]]:
    return [("", _content(said))]


def _error(status: int) -> Json:
    names = {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
    name = names.get(status, "UNAVAILABLE")
    return {"error": {"code": status, "message": f"scripted {status}", "status": name}}


GENERATE_CONTENT = Dialect("google", "x-request-id", _asked, _content, _events, _error)
