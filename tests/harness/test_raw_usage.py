"""A provider's own usage, by dialect, as it is: contradictions stay, what is missing is unknown."""

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.harness.records import Usage
from podium.harness.usage import (
    CEILING,
    believed,
    dialect_of,
    raw_usage,
    usage_from_raw,
    usage_of_event,
    with_raw,
)

CHAT: dict[str, Any] = {
    "prompt_tokens": 50,
    "completion_tokens": 9,
    "total_tokens": 59,
    "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": None},
    "completion_tokens_details": {"reasoning_tokens": 4},
}
RESPONSES: dict[str, Any] = {
    "input_tokens": 20,
    "output_tokens": 7,
    "total_tokens": 63,
    "input_tokens_details": {
        "cached_tokens": 2,
        "orchestration_input_tokens": 30,
        "orchestration_input_cached_tokens": 3,
    },
    "output_tokens_details": {"orchestration_output_tokens": 6},
}
ANTHROPIC: dict[str, Any] = {
    "input_tokens": 5,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 40,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 30},
    "output_tokens": 8,
}
PODIUM: dict[str, Any] = {
    **ANTHROPIC,
    "output_tokens_details": {"thinking_tokens": 3},
    "orchestration_input_tokens": 70,
    "orchestration_input_cached_tokens": 20,
    "orchestration_output_tokens": 9,
    "total_tokens": 232,
}
GOOGLE: dict[str, Any] = {
    "promptTokenCount": 60,
    "cachedContentTokenCount": 10,
    "toolUsePromptTokenCount": 5,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 90,
    "totalTokenCount": 162,
}


@pytest.mark.parametrize(
    ("raw", "dialect", "usage"),
    [
        pytest.param(
            CHAT,
            "openai-chat",
            Usage(30, 9, cache_read=20, reasoning=4, total_reported=59),
            id="chat",
        ),
        pytest.param(
            RESPONSES,
            "openai-responses",
            Usage(
                input=18,
                output=7,
                cache_read=2,
                orchestration_in=30,
                orchestration_in_cached=3,
                orchestration_out=6,
                total_reported=63,
            ),
            id="fugu",
        ),
        pytest.param(
            ANTHROPIC,
            "anthropic",
            Usage(5, 8, cache_read=100, cache_write=40, cache_write_1h=30),
            id="anthropic",
        ),
        pytest.param(
            PODIUM,
            "anthropic",
            Usage(
                input=5,
                output=8,
                cache_read=100,
                cache_write=40,
                cache_write_1h=30,
                reasoning=3,
                orchestration_in=70,
                orchestration_in_cached=20,
                orchestration_out=9,
                total_reported=232,
            ),
            id="podium",
        ),
        pytest.param(
            GOOGLE,
            "google",
            Usage(55, 97, cache_read=10, reasoning=90, total_reported=162),
            id="google",
        ),
    ],
)
def test_each_dialects_counts_become_ours(raw: dict[str, Any], dialect: Any, usage: Usage) -> None:
    assert dialect_of(raw) == dialect
    assert usage_from_raw(dialect, raw) == usage
    if usage.total_reported is not None:
        assert usage.parts_total == usage.total_reported


def test_anthropics_counts_get_the_orchestration_and_the_total_that_inspect_drops() -> None:
    counted = Usage(5, 8, cache_read=100, cache_write=40, reasoning=3, total_reported=153)
    assert usage_of_event(counted, PODIUM) == usage_from_raw("anthropic", PODIUM)


def test_a_usage_that_says_that_it_is_incomplete_is_unknown() -> None:
    said = {**ANTHROPIC, "incomplete": True}
    assert usage_from_raw("anthropic", said) is None
    counted = usage_from_raw("anthropic", ANTHROPIC)
    assert usage_of_event(counted, said) is None
    assert usage_of_event(counted, {**ANTHROPIC, "incomplete": False}) == counted


def test_a_usage_without_prompt_or_reply_is_unknown() -> None:
    assert usage_from_raw("openai-chat", {"prompt_tokens": 3}) is None
    assert usage_from_raw("anthropic", {"input_tokens": None, "output_tokens": 1}) is None
    assert usage_from_raw("google", {"totalTokenCount": 3}) is None
    assert dialect_of({"tokens": 3}) is None
    assert raw_usage({"usage": None}) is None
    assert raw_usage({"usage": [3]}) is None


def test_a_reply_that_inspect_has_no_usage_of_gets_none_from_a_fragment() -> None:
    assert with_raw(None, RESPONSES) is None
    assert with_raw(Usage(1, 2), None) == Usage(1, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"completion_tokens": -9}, id="negative"),
        pytest.param({"completion_tokens": 9.5}, id="fractional"),
        pytest.param({"completion_tokens": CEILING + 1}, id="absurd"),
        pytest.param({"completion_tokens": float("nan")}, id="no number"),
        pytest.param({"total_tokens": float("inf")}, id="infinite"),
        pytest.param({"prompt_tokens": True}, id="true"),
        pytest.param({"prompt_tokens": "50"}, id="text"),
        pytest.param({"total_tokens": [59]}, id="list"),
        pytest.param({"prompt_tokens_details": {"cached_tokens": 51}}, id="part above whole"),
        pytest.param({"completion_tokens_details": {"reasoning_tokens": -1}}, id="in a detail"),
    ],
)
def test_counts_that_cannot_be_are_no_counts(wrong: dict[str, Any]) -> None:
    right = usage_from_raw("openai-chat", CHAT)
    assert believed(right, CHAT) == right
    assert believed(right, {**CHAT, **wrong}) is None


def test_counts_that_cannot_be_are_known_without_the_providers_own_words() -> None:
    for cannot in (
        Usage(-1, 2),
        Usage(1, CEILING + 1),
        Usage(CEILING, CEILING),
        Usage(1, 2, cache_write=1, cache_write_1h=2),
        Usage(1, 2, orchestration_in=1, orchestration_in_cached=2),
    ):
        assert believed(cannot, None) is None
    assert believed(Usage(CEILING - 1, 1), None) == Usage(CEILING - 1, 1)


def test_counts_that_contradict_each_other_and_can_be_stay_for_the_audit() -> None:
    said = {**CHAT, "total_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 400}}
    odd = Usage(30, 9, cache_read=20, reasoning=400, total_reported=1)
    assert believed(odd, said) == odd


def test_a_whole_number_with_a_point_and_what_nobody_here_knows_are_no_fault() -> None:
    said = {**CHAT, "completion_tokens": 9.0, "cost": 0.0012, "queue_time": -0.3, "note": "free"}
    usage = usage_from_raw("openai-chat", said)
    assert usage is not None
    assert believed(usage, said) == usage


def test_more_cached_than_prompt_stays_below_zero_for_the_audit_to_find() -> None:
    wrong = {**CHAT, "prompt_tokens_details": {"cached_tokens": 55}}
    usage = usage_from_raw("openai-chat", wrong)
    assert usage is not None
    assert usage.input == -5


@given(
    st.dictionaries(
        st.sampled_from([*CHAT, *RESPONSES, *ANTHROPIC, *GOOGLE]),
        st.one_of(
            st.integers(),
            st.floats(),
            st.booleans(),
            st.none(),
            st.text(),
            st.dictionaries(st.text(), st.none()),
        ),
    )
)
def test_no_usage_however_odd_makes_us_stumble(raw: dict[str, Any]) -> None:
    dialect = dialect_of(raw)
    if dialect is not None:
        usage_from_raw(dialect, raw)
    usage = usage_of_event(Usage(1, 2), raw)
    assert usage is None or min(count or 0 for count in asdict(usage).values()) >= 0
