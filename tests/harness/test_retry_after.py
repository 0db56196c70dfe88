"""A provider that asks to wait is obeyed up to a limit; every wait is printed."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.genai.errors import ClientError
from openai import APIStatusError, InternalServerError, RateLimitError
from tenacity import RetryCallState, Retrying, wait_none

from podium.harness.upstream_failure import ABSURD_S, LONGEST_S, SPREAD, RetryWait, requested_wait
from tests.harness.faulty_run import run
from tests.harness.upstream_run import CHAT, ask_questions
from tests.providers import CLIENTS_WARN, Act, dropping, failing, ok

pytestmark = CLIENTS_WARN

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")


def refusal(
    headers: Mapping[str, str], status: int = 429, kind: type[APIStatusError] = RateLimitError
) -> APIStatusError:
    """Return what OpenAI's client raises for a refusal with some headers."""
    response = httpx2.Response(status, headers=dict(headers), request=REQUEST)
    return kind("slow down", response=response, body=None)


def of_google(*details: Any) -> ClientError:
    return ClientError(429, {"error": {"code": 429, "message": "x", "details": [*details]}})


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"retry-after": "8"}, 8.0, id="seconds"),
        pytest.param({"Retry-After": " 2.5 "}, 2.5, id="a fraction"),
        pytest.param({"retry-after-ms": "350"}, 0.35, id="milliseconds"),
        pytest.param({"retry-after": "1", "retry-after-ms": "350"}, 0.35, id="both"),
        pytest.param({"retry-after": "9", "retry-after-ms": "soon"}, 9.0, id="one is unusable"),
        pytest.param({"retry-after": str(int(ABSURD_S))}, ABSURD_S, id="a day"),
        *(
            pytest.param({"retry-after": text}, None, id=text or "empty")
            for text in ("", "soon", "-3", "0", "nan", "inf", "1e400", "1764300000", "0.001")
        ),
        pytest.param({"retry-after-ms": "-200"}, None, id="negative milliseconds"),
        pytest.param({"retry-after-ms": "nan"}, None, id="no number of milliseconds"),
        pytest.param({"x-ratelimit-reset-tokens": "6m0s"}, None, id="not asked to wait"),
        pytest.param({}, None, id="no header"),
    ],
)
def test_a_wait_is_what_the_headers_ask_for_and_what_cannot_be_is_none(
    headers: Mapping[str, str], seconds: float | None
) -> None:
    assert requested_wait(refusal(headers)) == seconds
    assert requested_wait(refusal(headers, 503, InternalServerError)) == seconds


@pytest.mark.parametrize(
    ("offset_s", "usable"), [(3600, True), (-60, False)], ids=["to come", "past"]
)
def test_a_date_is_a_wait_until_then(offset_s: int, usable: bool) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=offset_s), usegmt=True)
    seconds = requested_wait(refusal({"retry-after": date}))
    assert (seconds is not None) == usable
    if seconds is not None:
        assert offset_s - 600 < seconds <= offset_s


@pytest.mark.parametrize(
    ("details", "seconds"),
    [
        ([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}], 34.0),
        ([{"retryDelay": "0.5s"}, "odd"], 0.5),
        ([{"retryDelay": 7}], None),
        ([], None),
    ],
    ids=["seconds", "a fraction", "no text", "nothing"],
)
def test_google_asks_in_the_body(details: list[Any], seconds: float | None) -> None:
    assert requested_wait(of_google(*details)) == seconds


def test_what_led_to_a_failure_may_ask_for_the_wait() -> None:
    error = RuntimeError("no reply")
    error.__cause__ = refusal({"retry-after": "4"})
    assert requested_wait(error) == 4.0


@pytest.mark.parametrize(
    ("asked", "least"),
    [("8", 8.0), ("3600", LONGEST_S), ("-1", 0.0), ("1e9", 0.0)],
    ids=["asked", "too long", "negative", "absurd"],
)
def test_a_wait_is_obeyed_up_to_the_limit_and_otherwise_the_backoff_holds(
    asked: str, least: float
) -> None:
    state = RetryCallState(Retrying(), None, (), {})
    error = refusal({"retry-after": asked})
    state.set_exception((type(error), error, None))
    waited = RetryWait("openai", wait_none())(state)
    assert least <= waited <= least * (1 + SPREAD)


def asked_to_wait(seconds: str, together: int = 1) -> Act:
    return Act(status=429, headers={"retry-after": seconds}, waits_for=together)


def test_calls_wait_as_they_are_asked_to_and_what_waits_together_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = ask_questions(tmp_path, CHAT, [asked_to_wait("1", together=3)] * 3, limit=3, retries=1)
    assert left.bill.statuses == [429] * 3 + [200] * 3
    lines = left.bill.lines
    assert lines[3].at - lines[2].at >= 1.0
    assert [(row.http_status, row.billable) for row in left.rows] == [
        (429, "no"),
        (None, "yes"),
    ] * 3
    assert left.failing == set()
    said = "openai: asked to wait 1 s (429); trying again (attempt 2)"
    assert [line for line in capsys.readouterr().err.splitlines() if "wait" in line] == [said]


@pytest.mark.slow  # Inspect waits 3 to 6 seconds before it tries again
@pytest.mark.parametrize(
    ("script", "failure"),
    [([dropping(), ok()], "connection error"), ([failing(503), ok()], "HTTP 503")],
    ids=["dropped", "failing"],
)
def test_while_no_provider_answers_each_wait_is_said(
    script: list[Act], failure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = ask_questions(tmp_path, CHAT, script, limit=1, retries=1)
    assert left.failing == set()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "trying again" in line]
    assert re.fullmatch(rf"openai: {failure}, trying again in \d(\.\d)? s \(attempt 2\)", line)


@pytest.mark.slow
def test_a_call_that_is_cancelled_while_it_waits_has_not_been_sent(tmp_path: Path) -> None:
    refused_late = Act(status=400, waits_for=3, wait_s=0.3)
    script = {
        "gpt-5-mini": [asked_to_wait("100")],
        "claude-sonnet-5": [asked_to_wait("100")],
        "gemini-2.5-pro": [refused_late],
    }
    left = run(tmp_path, script, "moa-lite", "max_tokens = 64, max_retries = 1")
    assert sorted(left.bill.statuses) == [400, 429, 429], "else this test would take 100 s"
    assert {(row.attempt, row.billable, row.usd) for row in left.rows} == {(1, "no", 0)}
    assert left.failing == set()
