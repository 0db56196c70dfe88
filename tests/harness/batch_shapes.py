"""Rows of batches as providers write them, and what `podium record` makes of each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from podium.harness.batch_replies import record_batch
from podium.harness.cassette import open_cassette
from podium.harness.errors import UserError

Json = dict[str, Any]
Outcome = Literal["recorded", "failed", "left out"]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TEXT = r"It is \boxed{4}"
USAGE = {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23}
THOUGHTS = {"type": "thinking", "thinking": [{"type": "text", "text": "2 and 2"}]}
UPSTREAM = {"code": 502, "message": "upstream"}


@dataclass(frozen=True, slots=True)
class BatchShape:
    """One result row, the request row that it answers, and what comes of it."""

    result: Json
    outcome: Outcome = "recorded"
    text: str = TEXT
    stop: str = "stop"
    tokens: tuple[int, int] | None = (20, 3)
    request: Json = field(default_factory=lambda: chat_request())
    says: str = ""
    """What the sentence about a row that is left out names."""


def chat_request(url: str | None = CHAT, model: str | None = "m") -> Json:
    body = {"messages": [{"role": "user", "content": "2+2?"}]}
    named = {} if model is None else {"model": model}
    where = {} if url is None else {"method": "POST", "url": url}
    return {"custom_id": "t", **where, "body": {**named, **body}}


def responses_request() -> Json:
    return {"custom_id": "t", "url": RESPONSES, "body": {"model": "m", "input": "2+2?"}}


def wrapped(body: object, status: int = 200, **fields: Any) -> Json:
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": "t", "response": response, "error": None, **fields}


def completion(message: Mapping[str, Any] | None = None, **changes: Any) -> Json:
    """Return a chat completion; `None` takes a field away, `choice` changes its only choice."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", **(message or {"content": TEXT})},
        "finish_reason": "stop",
        **changes.pop("choice", {}),
    }
    body: Json = {
        "id": "c",
        "object": "chat.completion",
        "created": 1771000000,
        "model": "m",
        "choices": [choice],
        "usage": USAGE,
        **changes,
    }
    return {name: value for name, value in body.items() if value is not None}


def chat(message: Mapping[str, Any] | None = None, **changes: Any) -> Json:
    return wrapped(completion(message, **changes))


def response(*parts: Json, **changes: Any) -> Json:
    """Return a Responses body as it was before `cache_write_tokens`."""
    texts = parts or ({"type": "output_text", "text": TEXT, "annotations": [], "logprobs": []},)
    said = {"type": "message", "id": "m1", "status": "completed", "role": "assistant"}
    body: Json = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1771000000,
        "status": "completed",
        "model": "m",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [{"type": "reasoning", "id": "rs", "summary": []}, {**said, "content": texts}],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 23,
        },
        **changes,
    }
    return wrapped(body)


def answered(result: Json, **wanted: Any) -> BatchShape:
    return BatchShape(result, request=responses_request(), **wanted)


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CUT = {"reason": "max_output_tokens"}
SHAPES: Mapping[str, BatchShape] = {
    "OpenAI, chat": BatchShape(chat()),
    "content: a list of parts": BatchShape(chat({"content": [{"type": "text", "text": TEXT}]})),
    "created: a float": BatchShape(chat(created=1771000000.5)),
    "no created": BatchShape(chat(created=None)),
    "no id": BatchShape(chat(id=None)),
    "no object": BatchShape(chat(object=None)),
    "no id, object, created, model": BatchShape(
        chat(id=None, object=None, created=None, model=None)
    ),
    "finish_reason: null": BatchShape(chat(choice={"finish_reason": None}), stop="unknown"),
    "finish_reason: empty": BatchShape(chat(choice={"finish_reason": ""}), stop="unknown"),
    "finish_reason: abort, with a text": BatchShape(
        chat(choice={"finish_reason": "abort"}), stop="unknown"
    ),
    "finish_reason: error, with a text": BatchShape(
        chat(choice={"finish_reason": "error"}), stop="unknown"
    ),
    "finish_reason: eos, Together": BatchShape(chat(choice={"finish_reason": "eos"})),
    "no index": BatchShape(chat(choice={"index": None})),
    "Groq: service_tier on_demand": BatchShape(
        chat(service_tier="on_demand", x_groq={"id": "r"}, usage={**USAGE, "queue_time": 0.1})
    ),
    "DeepSeek: prompt_cache_hit_tokens": BatchShape(
        chat(usage={**USAGE, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 12})
    ),
    "tool_calls: []": BatchShape(chat({"content": TEXT, "tool_calls": []})),
    "total_tokens: 0": BatchShape(chat(usage={**USAGE, "total_tokens": 0})),
    "usage: null": BatchShape(wrapped({**completion(), "usage": None}), tokens=None),
    "no usage": BatchShape(chat(usage=None), tokens=None),
    "usage without output": BatchShape(chat(usage={"prompt_tokens": 20}), tokens=None),
    "usage that cannot be": BatchShape(chat(usage={**USAGE, "completion_tokens": -3}), tokens=None),
    "usage: details null": BatchShape(
        chat(usage={**USAGE, "prompt_tokens_details": None, "completion_tokens_details": None})
    ),
    "logprobs with -Infinity": BatchShape(
        chat(choice={"logprobs": {"content": [{"token": "a", "logprob": float("-inf")}]}})
    ),
    "reasoning_content beside": BatchShape(chat({"content": TEXT, "reasoning_content": "2 and 2"})),
    "thoughts in the text": BatchShape(chat({"content": f"<think>2 and 2</think>\n\n{TEXT}"})),
    "content: null, cut off while reasoning": BatchShape(
        chat({"content": None, "reasoning": "2 and"}, choice={"finish_reason": "length"}),
        text="",
        stop="max_tokens",
    ),
    "refusal": BatchShape(chat({"content": None, "refusal": "No."}), text="No."),
    "Azure: filtered, no content": BatchShape(
        wrapped(
            completion({"refusal": None}, choice={"finish_reason": "content_filter"}),
        ),
        text="",
        stop="content_filter",
        request=chat_request("/chat/completions", "deployment"),
    ),
    "Azure: url and filter results": BatchShape(
        {
            "custom_id": "t",
            "response": {"body": completion(prompt_filter_results=[{}]), "status_code": 200},
            "error": None,
        },
        request=chat_request("/chat/completions", "deployment"),
    ),
    "Azure: deployment in the url": BatchShape(
        chat(), request=chat_request("/openai/deployments/d/chat/completions?api-version=1")
    ),
    "Mistral: no url, no model": BatchShape(
        chat(choice={"finish_reason": "length"}),
        stop="max_tokens",
        request=chat_request(None, None),
    ),
    "Mistral: thoughts among the parts": BatchShape(
        chat({"content": [THOUGHTS, {"type": "text", "text": TEXT}], "prefix": False}),
        request=chat_request(None, None),
    ),
    "Together: no url": BatchShape(chat(prompt=[], choice={"seed": 7}), request=chat_request(None)),
    "Fireworks: the completion is the response": BatchShape(
        {"custom_id": "t", "response": completion()}, request=chat_request(None)
    ),
    "vLLM: null fields beside": BatchShape(
        chat({"content": TEXT, "refusal": None, "function_call": None}, prompt_logprobs=None)
    ),
    "no status_code": BatchShape(
        {"custom_id": "t", "response": {"body": completion()}, "error": None}
    ),
    "error: all null": BatchShape({**chat(), "error": {"code": None, "message": None}}),
    "custom_id: a number": BatchShape(
        {**chat(), "custom_id": 7}, request={**chat_request(), "custom_id": 7}
    ),
    "body: JSON in a text": BatchShape(wrapped(json.dumps(completion()))),
    "Responses before cache_write_tokens": answered(response()),
    "Responses of today": answered(
        response(
            usage={
                "input_tokens": 20,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 3,
                "output_tokens_details": {"reasoning_tokens": 1},
                "total_tokens": 23,
            }
        )
    ),
    "Responses: usage without details": answered(
        response(usage={"input_tokens": 20, "output_tokens": 3})
    ),
    "Responses: an item of tomorrow": answered(
        response({"type": "output_text", "text": TEXT}, {"type": "new_part", "x": 1})
    ),
    "Responses: incomplete": answered(
        response(status="incomplete", incomplete_details=CUT), stop="max_tokens"
    ),
    "Responses: incomplete, only reasoning": answered(
        response(status="incomplete", incomplete_details=CUT, output=[]), text="", stop="max_tokens"
    ),
    "Responses: refusal": answered(response({"type": "refusal", "refusal": "No."}), text="No."),
    "status_code 400": BatchShape(wrapped({"error": UPSTREAM}, 400), "failed"),
    "status_code 500, no body": BatchShape(wrapped(None, 500), "failed"),
    "expired": BatchShape(
        {"custom_id": "t", "response": None, "error": {"code": "batch_expired"}}, "failed"
    ),
    "vLLM: error a text": BatchShape(wrapped(None, 400, error="too long"), "failed"),
    "Mistral: error only": BatchShape({"custom_id": "t", "error": {"message": "x"}}, "failed"),
    "200 with an error": BatchShape(wrapped({"error": UPSTREAM}), "failed"),
    "200 with object: error": BatchShape(wrapped({"object": "error", "message": "x"}), "failed"),
    "OpenRouter: choices[0].error": BatchShape(
        chat({"content": ""}, choice={"finish_reason": "error", "error": UPSTREAM}), "failed"
    ),
    "DeepSeek: insufficient_system_resource": BatchShape(
        chat({"content": ""}, choice={"finish_reason": "insufficient_system_resource"}), "failed"
    ),
    "Responses: failed": answered(
        response(status="failed", error={"code": "server_error", "message": "x"}, output=[]),
        outcome="failed",
    ),
    "Responses: failed, no error": answered(response(status="failed"), outcome="failed"),
    "Responses: cancelled": answered(response(status="cancelled"), outcome="failed"),
    "tools are called": BatchShape(
        chat({"content": None, "tool_calls": [CALL]}, choice={"finish_reason": "tool_calls"}),
        "left out",
        says="calls tools",
    ),
    "Responses: tools are called": answered(
        response(output=[{"type": "function_call", "name": "f", "arguments": "{}"}]),
        outcome="left out",
        says="calls tools",
    ),
    "choices: []": BatchShape(chat(choices=[]), "left out", says="line 1: response.body: choices"),
    "no choices": BatchShape(wrapped({}), "left out", says="choices: Field required"),
    "no message": BatchShape(chat(choice={"message": None}), "left out", says="choices.0.message"),
    "no content": BatchShape(
        chat({"role": "assistant"}), "left out", says="choices.0.message.content: it is absent"
    ),
    "content: a number": BatchShape(
        chat({"content": 4}), "left out", says="choices.0.message.content"
    ),
    "body: a list": BatchShape(wrapped([]), "left out", says="line 1: response.body"),
    "no custom_id": BatchShape(
        {"response": chat()["response"]}, "left out", says="custom_id: Field required"
    ),
    "Responses: no output": answered(
        response(output=None), outcome="left out", says="line 1: response.body: output"
    ),
}


@dataclass(frozen=True, slots=True)
class ShapeResult:
    """What became of a row."""

    outcome: str
    text: str = ""
    stop: str = ""
    tokens: tuple[int, int] | None = None
    said: str = ""


GOOD = ({**chat_request(), "custom_id": "good"}, {**chat(), "custom_id": "good"})
"""A row that stands beside each shape, for a batch without a reply is refused."""


def recorded(shape: BatchShape, folder: Path) -> ShapeResult:
    """Record a batch of the shape in line 1 and a plain row."""
    files = folder / "in.jsonl", folder / "out.jsonl", folder / "tape.jsonl"
    for path, rows in zip(files, ((shape.request, GOOD[0]), (shape.result, GOOD[1])), strict=False):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        summary = record_batch(files[1], files[0], files[2])
    except UserError as error:
        return ShapeResult("refused", said=str(error))
    replies = [row for row in open_cassette(str(files[2])).rows.values() if row.question != "good"]
    if not replies:
        return ShapeResult("failed" if summary.errors else "left out", said=str(summary))
    (reply,) = replies
    tokens = reply.usage and (reply.usage.input, reply.usage.output)
    return ShapeResult("recorded", reply.text, reply.stop_reason, tokens, str(summary))
