"""A failure inside a 200 is no answer: it is named, asked again, and billed where usage says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.harness.upstream_failure import reported_failure
from podium.reports.audit import audit
from tests.harness.faulty_run import Left
from tests.harness.upstream_run import (
    CHAT,
    SOON,
    ask_questions,
    ask_worker,
    broken,
    changed,
    reasons_in,
)
from tests.providers import CLIENTS_WARN, Act

pytestmark = CLIENTS_WARN

OPENROUTER = "openrouter/meta/llama"
RESPONSES = "openai/gpt-5-mini"
DIED = {"code": 502, "message": "Provider disconnected"}
WORDS = (
    "error",
    "network_error",
    "insufficient_system_resource",
    "abort",
    "aborted",
    "cancelled",
    "timeout",
    "engine_overloaded",
)


def chat(reason: object, **choice: object) -> dict[str, Any]:
    return {"choices": [{"finish_reason": reason, "message": {"content": "half"}, **choice}]}


@pytest.mark.parametrize("word", WORDS)
def test_a_finish_reason_that_says_that_the_upstream_failed_is_a_failure_to_ask_again(
    word: str,
) -> None:
    failure = reported_failure(chat(word))
    assert failure is not None
    assert failure.decision.retry
    assert failure.status_code is None, "a part came, so it may be billed"
    assert word in str(failure)


@pytest.mark.parametrize(
    "body",
    [
        *(
            pytest.param(chat(reason), id=str(reason))
            for reason in ("stop", "length", "content_filter", "tool_calls", "eos_token", "", None)
        ),
        pytest.param(chat("stop", error=None), id="null error"),
        pytest.param(chat("stop", error={"code": None, "message": ""}), id="empty error"),
        pytest.param({**chat("stop"), "error": {}}, id="error without a word"),
        pytest.param({"status": "incomplete", "output": [], "error": None}, id="cut response"),
        pytest.param({"status": "completed", "output": []}, id="response"),
        pytest.param({"stop_reason": "refusal", "content": []}, id="refusal"),
        pytest.param({"candidates": [{"finishReason": "MAX_TOKENS"}]}, id="google"),
        pytest.param({"candidates": [], "promptFeedback": {"blockReason": "X"}}, id="blocked"),
        pytest.param({"choices": []}, id="no choices"),
        pytest.param({"choices": "none", "error": 0}, id="odd types"),
        pytest.param(None, id="nothing"),
    ],
)
def test_whatever_else_a_body_says_is_a_reply(body: Mapping[str, Any] | None) -> None:
    assert reported_failure(body) is None


@pytest.mark.parametrize(
    ("body", "retried", "status"),
    [
        pytest.param({"error": DIED}, True, 502, id="error alone"),
        pytest.param({"error": {"code": "503", "message": "x"}}, True, 503, id="digits"),
        pytest.param({"error": {"code": 429, "message": "x"}}, True, 429, id="rate limit"),
        pytest.param({"error": {"code": 402, "message": "x"}}, False, 402, id="no credits"),
        pytest.param({"error": {"type": "server_error"}}, True, None, id="no code"),
        pytest.param({"error": {"type": "invalid_request_error"}}, False, None, id="request"),
        pytest.param({"error": {"code": "insufficient_quota"}}, False, None, id="quota"),
        pytest.param({"error": "upstream died"}, True, None, id="a text"),
        pytest.param({"choices": None, "error": DIED}, True, 502, id="null choices"),
        pytest.param(chat(None, error=DIED), True, None, id="of a choice"),
        pytest.param(chat("stop", error=DIED), True, None, id="of a choice that ends well"),
        pytest.param(
            {"type": "error", "error": {"type": "overloaded_error"}}, True, None, id="anthropic"
        ),
        pytest.param({"status": "failed", "output": [], "error": None}, True, None, id="failed"),
        pytest.param({"status": "cancelled", "output": []}, True, None, id="cancelled"),
        pytest.param({"sdkHttpResponse": {}}, True, None, id="google without candidates"),
    ],
)
def test_an_error_in_a_body_is_asked_again_unless_it_says_that_that_is_in_vain(
    body: Mapping[str, Any], retried: bool, status: int | None
) -> None:
    failure = reported_failure(body)
    assert failure is not None
    assert (failure.decision.retry, failure.status_code) == (retried, status)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Questions of which each meets a failure with usage, and no second try."""
    folder = tmp_path_factory.mktemp("failed")
    return ask_questions(folder, CHAT, [*map(broken, WORDS)], limit=len(WORDS), retries=0)


def test_a_reply_that_its_provider_broke_off_is_unanswered_with_its_reason(failed: Left) -> None:
    reasons = reasons_in(failed)
    assert len(reasons) == len(WORDS), "none is graded"
    assert all(
        "the provider reported a failure in its reply (finish_reason" in one for one in reasons
    )
    assert {word for word in WORDS for one in reasons if f" {word})" in one} == set(WORDS)


def test_it_is_billed_for_what_its_usage_says_and_a_strict_audit_accepts_it(failed: Left) -> None:
    assert [(row.error, row.billable) for row in failed.rows] == [
        ("UpstreamFailure", "yes") for _ in WORDS
    ]
    assert {(row.input_total, row.output) for row in failed.rows} == {(90, 30)}
    assert all(row.raw_usage for row in failed.rows)
    strict = audit(failed.folder, strict=True)
    assert [one.invariant for one in strict.verdicts if one.status == "fail"] == []


def error_alone(body: dict[str, Any]) -> object:
    return {"error": {"code": 503, "message": "no instances available"}, "user_id": "u"}


def null_choices(body: dict[str, Any]) -> object:
    return {**body, "choices": None, "error": DIED}


def failed_response(body: dict[str, Any]) -> object:
    return {**body, "status": "failed", "error": {"code": "server_error", "message": "sorry"}}


def cancelled_response(body: dict[str, Any]) -> object:
    return {**body, "status": "cancelled", "output": []}


def overloaded(body: dict[str, Any]) -> object:
    return {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def no_candidates(body: dict[str, Any]) -> object:
    return {"usageMetadata": body["usageMetadata"]}


@pytest.mark.parametrize(
    ("model", "act", "billable"),
    [
        pytest.param(CHAT, broken("error", error=DIED), "yes", id="half a chat reply"),
        pytest.param(CHAT, changed(null_choices), "yes", id="null choices and usage"),
        pytest.param(CHAT, changed(error_alone), "no", id="an error alone"),
        pytest.param(OPENROUTER, broken("error", error=DIED), "yes", id="half of OpenRouter's"),
        pytest.param(OPENROUTER, changed(error_alone), "no", id="OpenRouter's error alone"),
        pytest.param(RESPONSES, changed(failed_response), "yes", id="a failed response"),
        pytest.param(RESPONSES, changed(cancelled_response), "yes", id="a cancelled response"),
        pytest.param(
            "anthropic/claude-sonnet-5", changed(overloaded), "unknown", id="Anthropic's error"
        ),
        pytest.param(
            "google/gemini-2.5-pro",
            changed(no_candidates, {}),
            "yes",
            id="no candidates",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_failure_is_asked_again_and_stands_beside_the_answer_as_an_attempt(
    model: str, act: Act, billable: str, tmp_path: Path
) -> None:
    left = ask_worker(tmp_path, model, [act])
    assert left.bill.statuses == [200, 200]
    assert [(row.error, row.billable) for row in left.rows] == [
        ("UpstreamFailure", billable),
        (None, "yes"),
    ]
    assert left.failing == set()
    ((attempt,),) = (one.attempts for one in load_runs([left.folder])[0])
    assert attempt.value is not None
    answered = left.rows[1]
    assert (attempt.totals.tokens_in, attempt.totals.usd) == (answered.input_total, answered.usd)
    if billable == "yes":
        assert (left.rows[0].input_total, left.rows[0].output) == (90, 30)


def test_a_failure_that_stays_is_unanswered_after_as_many_tries_as_a_5xx(tmp_path: Path) -> None:
    left = ask_worker(tmp_path, OPENROUTER, [broken("error", error=DIED)] * 2)
    assert left.bill.statuses == [200, 200]
    assert [row.billable for row in left.rows] == ["yes", "yes"]
    (reason,) = reasons_in(left)
    assert "finish_reason error, code 502): Provider disconnected" in reason
    assert left.failing == set()


def test_a_failure_that_is_the_requests_own_fault_is_not_asked_again(tmp_path: Path) -> None:
    def no_credits(body: dict[str, Any]) -> object:
        return {"error": {"code": 402, "message": "Insufficient credits"}}

    left = ask_worker(tmp_path, OPENROUTER, [changed(no_credits)])
    assert [(row.http_status, row.usd) for row in left.rows] == [(402, 0)]
    assert "Insufficient credits" in reasons_in(left)[0]


def test_a_stream_that_ends_with_an_error_is_a_failure_whose_cost_nobody_knows(
    tmp_path: Path,
) -> None:
    chunk = '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]%s}'
    said = chunk % (
        '{"index":0,"delta":{"role":"assistant","content":"half"},"finish_reason":null}',
        "",
    )
    last = chunk % (
        '{"index":0,"delta":{"content":""},"finish_reason":"error"}',
        ',"error":{"code":502,"message":"Provider disconnected"}',
    )
    content = f"data: {said}\n\ndata: {last}\n\ndata: [DONE]\n\n".encode()
    stream = {**SOON, "content-type": "text/event-stream"}
    acts = [Act(content=content, headers=stream)]
    left = ask_worker(tmp_path, "openai-api/gateway/llama", acts, args=", stream = true")
    assert [(row.error, row.billable) for row in left.rows] == [
        ("UpstreamFailure", "unknown"),
        (None, "yes"),
    ]
    assert left.failing == set()


def test_a_key_that_a_failure_quotes_is_in_no_reason(tmp_path: Path) -> None:
    def quoting(body: dict[str, Any]) -> object:
        return {"error": {"code": 401, "message": "no such key: test-olive"}}

    left = ask_worker(tmp_path, CHAT, [changed(quoting)])
    (reason,) = reasons_in(left)
    assert "test-olive" not in reason
    assert "no such key" in reason
