"""One table of what a provider can do wrong, and what podium must make of it.

A fault is a list of acts for one question; the same in every dialect, but where a dialect spells
it in its own way (`_spelled`). The right answer stands in whatever can be read: so a question that
is graded wrong was graded by a fault, unless its provider's model itself gave no answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from podium.harness.records import Usage
from tests.providers.script import (
    ANSWER,
    Act,
    Change,
    failing,
    rate_limited,
    unreported,
    wrong_total,
)

Json = dict[str, Any]
Verdict = Literal["right", "wrong", "unscored"]
CHAT, RESPONSES, MESSAGES = "chat", "responses", "messages"
DIALECTS = (CHAT, RESPONSES, MESSAGES)

HTML = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
PAGE = {"content-type": "text/html"}
TOOK = Usage(input=90, output=30)
LONG = "Let me think. " * 10_000


@dataclass(frozen=True, slots=True)
class Fault:
    """What a provider does with the requests of one question."""

    name: str
    acts: Sequence[Act] | Mapping[str, Sequence[Act]]
    """For all dialects, or by dialect."""
    verdict: Verdict | Mapping[str, Verdict] = "unscored"
    """`wrong` only where the model itself gave no answer, and was paid for it."""
    fails: Mapping[str, str] = field(default_factory=dict[str, str])
    """By dialect: the invariant that the provider's own words contradict, which an audit names."""

    def acts_in(self, dialect: str, answer: str) -> list[Act]:
        """Return the acts in one dialect, with the right answer where an answer stands."""
        acts = self.acts[dialect] if isinstance(self.acts, Mapping) else self.acts
        return [replace(act, text=act.text.replace(ANSWER, answer)) for act in acts]

    @property
    def stalls(self) -> bool:
        """Say whether only a client's patience ends it."""
        return any(act.ending == "stalled" for act in self.acts_in(CHAT, ""))

    def verdict_in(self, dialect: str) -> Verdict:
        """Return how its question is graded."""
        return self.verdict if isinstance(self.verdict, str) else self.verdict[dialect]


def _changed(change: Change, usage: Usage = TOOK) -> Act:
    return Act(usage=usage, change=change)


def _spelled(**changes: Change) -> Mapping[str, Sequence[Act]]:
    """Return one act per dialect, whose reply is changed in the dialect's own way."""
    return {dialect: [_changed(changes[dialect])] for dialect in DIALECTS}


def _with(*path: str | int, value: object) -> Change:
    """Return a change that sets one value of a reply."""

    def change(body: Json) -> object:
        holder: Any = body
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = value
        return body

    return change


def _counts(value: Callable[[int], object]) -> Change:
    """Return a change of how many tokens a reply says that it wrote."""

    def change(body: Json) -> object:
        usage = body["usage"]
        name = "completion_tokens" if "completion_tokens" in usage else "output_tokens"
        usage[name] = value(usage[name])
        if isinstance(usage[name], int | float) and "total_tokens" in usage:
            usage["total_tokens"] = usage[name] + TOOK.input
        return body

    return change


def _cached(body: Json) -> object:
    """Say of more tokens that they were cached than the prompt has."""
    usage = body["usage"]
    for name in ("prompt_tokens_details", "input_tokens_details"):
        if name in usage:
            usage[name]["cached_tokens"] = TOOK.input + 5
    return body


def _thought(body: Json) -> object:
    """Say of more tokens that they are reasoning than were written."""
    usage = body["usage"]
    known = usage.get("completion_tokens_details", usage.get("output_tokens_details", {}))
    name = "reasoning_tokens" if "reasoning_tokens" in known else "thinking_tokens"
    known[name] = TOOK.output + 5
    return body


CALL = {"name": "search", "arguments": '{"query": "half \\ud83d"}'}
TOOL_CALLS = _spelled(
    chat=lambda body: {
        **body,
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "call-1", "type": "function", "function": CALL}],
                },
            }
        ],
    },
    responses=_with(
        "output",
        value=[{"type": "function_call", "id": "fc-1", "call_id": "call-1", **CALL}],
    ),
    messages=lambda body: {
        **body,
        "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "call-1", "name": "search", "input": {}}],
    },
)
NO_REPLY = _spelled(
    chat=_with("choices", value=[]),
    responses=_with("output", value=[]),
    messages=_with("content", value=[]),
)
NULL_REPLY = _spelled(
    chat=_with("choices", value=None),
    responses=_with("output", value=None),
    messages=_with("content", value=None),
)
NULL_TEXT = _spelled(
    chat=_with("choices", 0, "message", "content", value=None),
    responses=_with("output", 0, "content", 0, "text", value=None),
    messages=_with("content", 0, "text", value=None),
)
REFUSAL = _spelled(
    chat=lambda body: {
        **body,
        "choices": [
            {
                "index": 0,
                "finish_reason": "content_filter",
                "message": {"role": "assistant", "content": None, "refusal": "I cannot."},
            }
        ],
    },
    responses=_with("output", 0, "content", value=[{"type": "refusal", "refusal": "I cannot."}]),
    messages=lambda body: {**body, "stop_reason": "refusal", "content": []},
)
LENGTH = _spelled(
    chat=_with("choices", 0, "finish_reason", value="length"),
    responses=lambda body: {
        **body,
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    },
    messages=_with("stop_reason", value="max_tokens"),
)
UNKNOWN_STOP = _spelled(
    chat=_with("choices", 0, "finish_reason", value="eos_token_reached"),
    responses=_with("status", value="finished"),
    messages=_with("stop_reason", value="eos_token_reached"),
)
BROKEN = _spelled(
    chat=_with("choices", 0, "finish_reason", value="error"),
    responses=lambda body: {**body, "status": "failed", "error": FAILED},
    messages=_with("stop_reason", value="error"),
)
FAILED = {"code": "server_error", "message": "the upstream is gone"}
ANSWERED = {dialect: [Act()] for dialect in DIALECTS}
IN_BAND = b'{"error": {"message": "model is overloaded", "type": "server_error", "code": 503}}'
PARTS = {CHAT: "I1", RESPONSES: "I1"}
"""Anthropic's usage has no total, and its thinking is not read by Inspect."""
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages"}
REDIRECT = {
    dialect: [Act(status=307, headers={"location": path}), Act()] for dialect, path in PATHS.items()
}


def _followed(
    acts: Mapping[str, Sequence[Act]], by: Mapping[str, Sequence[Act]]
) -> Mapping[str, Sequence[Act]]:
    return {dialect: [*listed, *by[dialect]] for dialect, listed in acts.items()}


def _refused(status: int) -> Fault:
    return Fault(f"{status}", [failing(status)])


def _retried(status: int) -> Fault:
    return Fault(f"{status}, then an answer", [failing(status), Act()], "right")


FAULTS: tuple[Fault, ...] = (
    Fault("an answer", [Act()], "right"),
    *map(_refused, (400, 401, 403, 404, 409, 422)),
    Fault("413", [failing(413)], {CHAT: "unscored", RESPONSES: "unscored", MESSAGES: "wrong"}),
    *map(_retried, (408, 500, 502, 503, 504, 529)),
    Fault("429, then an answer", [rate_limited(None), Act()], "right"),
    Fault("429 with retry-after, then an answer", [rate_limited(), Act()], "right"),
    Fault("429 for good", [rate_limited()] * 2),
    Fault("500 for good", [failing(500)] * 2),
    Fault("403 with a page of HTML", [Act(status=403, content=HTML, headers=PAGE)]),
    Fault(
        "502 with a page of HTML, then an answer",
        [Act(status=502, content=HTML, headers=PAGE), Act()],
        "right",
    ),
    Fault("an empty body", [Act(content=b"")] * 2),
    Fault("JSON that is cut short", [Act(content=b'{"id": "x", "choices": [{"mess')] * 2),
    Fault("a page of HTML as an answer", [Act(content=HTML, headers=PAGE)] * 2),
    Fault("an answer that is a list", [Act(content=b"[1, 2, 3]")] * 2),
    Fault("an answer that is a word", [Act(content=b'"overloaded"')] * 2),
    Fault("the wrong content type", [Act(headers={"content-type": "text/plain"})], "right"),
    Fault("an error with status 200", [Act(content=IN_BAND, billed=False)] * 2),
    Fault(
        "an error with status 200, then an answer",
        [Act(content=IN_BAND, billed=False), Act()],
        "right",
    ),
    Fault("half a reply that ends with an error", _followed(BROKEN, BROKEN)),
    Fault(
        "half a reply that ends with an error, then an answer", _followed(BROKEN, ANSWERED), "right"
    ),
    Fault("no choices", NO_REPLY, {CHAT: "unscored", RESPONSES: "wrong", MESSAGES: "wrong"}),
    Fault("choices that are null", NULL_REPLY),
    Fault(
        "a text that is null", NULL_TEXT, {CHAT: "wrong", RESPONSES: "unscored", MESSAGES: "wrong"}
    ),
    Fault("no usage", [unreported()], {CHAT: "right", RESPONSES: "right", MESSAGES: "unscored"}),
    Fault("usage of zero", [Act(usage=Usage(0, 0))], "right"),
    Fault("negative usage", [_changed(_counts(lambda said: -said))], "right"),
    Fault("fractional usage", [_changed(_counts(lambda said: said + 0.5))]),
    Fault("absurd usage", [_changed(_counts(lambda said: 10**12))], "right"),
    Fault("usage beyond any integer", [_changed(_counts(lambda said: 10**30))], "right"),
    Fault("usage in words", [_changed(_counts(lambda said: "thirty"))]),
    Fault(
        "usage as a text of digits",
        [_changed(_counts(str))],
        {CHAT: "right", RESPONSES: "right", MESSAGES: "unscored"},
    ),
    Fault("usage that is a list", [_changed(_with("usage", value=[1, 2]))]),
    Fault("more cached than asked", [_changed(_cached)], "right"),
    Fault("more reasoning than output", [_changed(_thought)], "right", PARTS),
    Fault("a wrong total", [wrong_total()], "right", PARTS),
    Fault("half a character", [Act(text=f"{ANSWER}\n\ud800", usage=TOOK)], "right"),
    Fault("half a character in a field's name", [_changed(_with("x\ud800", value="\udfff"))]),
    Fault(
        "half a character in an error's field",
        [Act(status=500, change=_with("error", "x\ud800", value="\ud800"))],
    ),
    Fault(
        "half a character in an error's text",
        [Act(status=400, change=_with("error", "message", value="\ud800"))],
    ),
    Fault("a number of 5,000 digits", [Act(content=b'{"id": ' + b"9" * 5000 + b"}")]),
    Fault("JSON that is 20,000 lists deep", [Act(content=b"[" * 20_000)]),
    Fault("NUL bytes", [Act(text=f"{ANSWER}\n\0\0")], "right"),
    Fault("a text of 140,000 characters", [Act(text=LONG + ANSWER)], "right"),
    Fault(
        "a number that is infinite",
        [Act(usage=TOOK, change=_with("x", value=float("inf")))],
        "right",
    ),
    Fault("a connection that is cut", [Act(ending="cut")] * 2),
    Fault("a connection that is dropped, then an answer", [Act(ending="dropped"), Act()], "right"),
    Fault("a stall, then an answer", [Act(ending="stalled"), Act()], "right"),
    Fault("an answer in drops", [Act(ending="dripped")], "right"),
    Fault("a redirect, then an answer", REDIRECT, "right"),
    Fault("a redirect to nowhere", [Act(status=302)]),
    Fault("no request id", [Act(headers={"x-request-id": None, "request-id": None})], "right"),
    Fault(
        "two request ids",
        [Act(headers={"x-request-id": "one", "request-id": "other"})],
        "right",
    ),
    Fault("a request id that was given before", [rate_limited(), Act(request_id="same")], "right"),
    Fault("another model answers", [Act(served="another-model-20260101")], "right"),
    Fault("a refusal", REFUSAL, "wrong"),
    Fault("a reply cut at its limit", LENGTH, "right"),
    Fault("an unknown stop reason", UNKNOWN_STOP, "right"),
    Fault("calls of tools that nobody offered", TOOL_CALLS, "wrong"),
)
"""Names are unique; question N of the exam meets fault N."""
