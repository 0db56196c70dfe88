"""OpenAI's two dialects, chat completions and responses, which Sakana's Fugu speaks too.

Input includes cached tokens, output includes reasoning. Fields as in the openai package, 3.54.0;
orchestration tokens as on Sakana's pricing page (console.sakana.ai/pricing, read 2026-11-22).
"""

from collections.abc import Mapping, Sequence

from podium.harness.records import Usage
from tests.providers.dialect import Asked, Dialect, Json, Said, orchestration, texts, total


def chat_usage(usage: Usage) -> Json:
    """Return the usage of a chat completion."""
    inside, outside = orchestration(usage)
    return {
        "prompt_tokens": usage.input_total,
        "completion_tokens": usage.output,
        "total_tokens": total(usage),
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            **inside,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0, **outside},
    }


def responses_usage(usage: Usage) -> Json:
    """Return the usage of a response."""
    inside, outside = orchestration(usage)
    return {
        "input_tokens": usage.input_total,
        "output_tokens": usage.output,
        "total_tokens": total(usage),
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            **inside,
        },
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0, **outside},
    }


def _asked(body: Json, path: Mapping[str, str]) -> Asked:
    prompt = texts(body.get("messages") or body.get("input") or "")
    streamed = bool(body.get("stream"))
    return Asked(str(body["model"]), prompt, streamed, body.get("service_tier"), body)


def _completion(said: Said) -> Json:
    message = {"role": "assistant", "content": said.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    told = {} if said.usage is None else {"usage": chat_usage(said.usage)}
    return {
        "id": said.id,
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": said.model,
        "choices": [choice],
        **told,
    }


def _chunks(said: Said) -> Sequence[tuple[str, Json]]:
    base = {"id": said.id, "object": "chat.completion.chunk", "created": 1, "model": said.model}

    def choice(delta: Json, finish: str | None = None) -> Json:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    last = [] if said.usage is None else [{**base, "choices": [], "usage": chat_usage(said.usage)}]
    return [
        ("", choice({"role": "assistant", "content": said.text})),
        ("", choice({}, "stop")),
        *(("", one) for one in last),
    ]


def _response(said: Said) -> Json:
    content = [{"type": "output_text", "text": said.text, "annotations": []}]
    message = {"type": "message", "id": f"msg_{said.id}", "status": "completed"}
    return {
        "id": said.id,
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "model": said.model,
        "output": [{**message, "role": "assistant", "content": content}] if said.text else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if said.usage is None else responses_usage(said.usage),
    }


def _response_events(said: Said) -> Sequence[tuple[str, Json]]:
    begun = {**_response(said), "status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.completed", "response": _response(said)},
    ]
    return [(event["type"], {**event, "sequence_number": n}) for n, event in enumerate(events)]


def _error(status: int) -> Json:
    kind = "rate_limit_exceeded" if status == 429 else "server_error"
    return {"error": {"message": f"scripted {status}", "type": kind, "code": kind, "param": None}}


CHAT = Dialect(
    "openai-chat", "x-request-id", _asked, _completion, _chunks, _error, ends_with_done=True
)
RESPONSES = Dialect("openai-responses", "x-request-id", _asked, _response, _response_events, _error)
