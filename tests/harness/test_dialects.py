"""What Inspect 0.3.285 makes of four dialects' usage, and what we make of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig, ModelUsage

from podium.harness.records import Usage
from podium.harness.request import recorded_settings, service_tier
from podium.harness.usage import dialect_of, usage_from_raw
from tests.providers import CLIENTS_WARN, Act, dropping, failing, ok, rate_limited, unreported
from tests.providers.one_question import ALL, ANTHROPIC, CHAT, FULL, GOOGLE, RESPONSES, ask

pytestmark = CLIENTS_WARN

SAYABLE = {
    CHAT: replace(FULL, cache_write_1h=0, total_reported=190),
    RESPONSES: replace(FULL, cache_write_1h=0, total_reported=190),
    ANTHROPIC: replace(FULL, total_reported=190),
    GOOGLE: Usage(input=120, output=40, cache_read=30, reasoning=12, total_reported=190),
}
"""What each dialect can say of `FULL`: Google's does not bill the writing of a cache by the call,
and only Anthropic's says for how long something was written. Anthropic gives no total; Inspect
adds one up."""


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_every_count_that_a_dialect_can_say_reaches_the_ledger(
    model: str, streaming: bool, tmp_path: Path
) -> None:
    told = ask(tmp_path, model, [ok(usage=FULL)], streaming=streaming)
    assert told.call.usage == SAYABLE[model]
    assert SAYABLE[model].parts_total == SAYABLE[model].total_reported
    assert [line.streamed for line in told.bill.lines] == [streaming]
    assert told.event.output.completion == "ANSWER: 7"


@pytest.mark.parametrize("model", ALL)
def test_the_providers_own_usage_says_the_same_as_inspect(model: str, tmp_path: Path) -> None:
    told = ask(tmp_path, model, [ok(usage=FULL)])
    raw = told.call.raw_usage
    assert raw is not None
    dialect = dialect_of(raw)
    assert dialect is not None
    assert dialect == told.bill.lines[0].dialect
    ours = usage_from_raw(dialect, raw)
    total = None if model == ANTHROPIC else 190
    assert ours == replace(SAYABLE[model], total_reported=total)


def test_inspect_keeps_no_hour_long_writes_and_the_providers_usage_does(tmp_path: Path) -> None:
    told = ask(tmp_path, ANTHROPIC, [ok(usage=FULL)])
    said = told.event.output.usage
    assert isinstance(said, ModelUsage)
    assert said.input_tokens_cache_write == 20
    assert told.call.usage is not None
    assert (told.call.usage.cache_write, told.call.usage.cache_write_1h) == (20, 8)


@pytest.mark.parametrize("model", [CHAT, RESPONSES, GOOGLE])
def test_usage_that_was_not_reported_is_unknown_and_not_zero(model: str, tmp_path: Path) -> None:
    told = ask(tmp_path, model, [unreported()])
    assert told.event.output.completion == "ANSWER: 7"
    assert told.event.error is None
    assert told.call.usage is None
    assert [line.billed for line in told.bill.lines] == [True]


def test_a_message_of_anthropic_without_usage_is_an_error_and_has_none(tmp_path: Path) -> None:
    told = ask(tmp_path, ANTHROPIC, [unreported()])
    assert told.call.error is not None
    assert told.call.usage is None
    assert [line.billed for line in told.bill.lines] == [True]


@pytest.mark.parametrize("model", ALL)
def test_the_model_that_answered_is_the_one_that_the_reply_names(
    model: str, tmp_path: Path
) -> None:
    told = ask(tmp_path, model, [Act(served="another-model-20260101")])
    assert told.call.model == model
    assert told.call.served_model == "another-model-20260101"


@pytest.mark.parametrize("model", ALL)
def test_an_empty_reply_is_billed_and_counted(model: str, tmp_path: Path) -> None:
    told = ask(tmp_path, model, [Act(text="")])
    assert told.event.output.completion == ""
    assert told.call.usage is not None
    assert told.call.usage.output == told.bill.lines[0].usage.output == 1


@pytest.mark.slow
@pytest.mark.parametrize("model", [CHAT, RESPONSES, ANTHROPIC])
def test_what_a_client_retries_on_its_own_stands_in_the_event_with_its_statuses(
    model: str, tmp_path: Path
) -> None:
    told = ask(tmp_path, model, [rate_limited(), failing()])
    assert told.bill.statuses == [429, 500, 200]
    assert told.call.retries == 2
    assert [one["status"] for one in told.call.request_ids] == [429, 500, 200]
    assert [one["id"] for one in told.call.request_ids] == ["req-1", "req-2", "req-3"]


@pytest.mark.slow
@pytest.mark.parametrize("model", [CHAT, RESPONSES, ANTHROPIC])
def test_a_client_that_may_not_retry_leaves_one_event_for_every_request(
    model: str, tmp_path: Path
) -> None:
    told = ask(tmp_path, model, [rate_limited()], max_retries=0)
    assert told.bill.statuses == [429]
    assert [one["status"] for one in told.call.request_ids] == [429]
    assert told.call.error is not None


def test_googles_client_does_not_retry_what_was_answered_and_keeps_no_id(tmp_path: Path) -> None:
    told = ask(tmp_path, GOOGLE, [failing()])
    assert told.bill.statuses == [500]
    assert told.call.error is not None
    assert told.call.request_ids == ()


def test_inspect_asks_reasoning_models_for_summaries_with_a_billed_call_that_no_log_has(
    tmp_path: Path,
) -> None:
    told = ask(tmp_path, RESPONSES, settings={"max_retries": 0})
    assert [line.billed for line in told.bill.lines] == [True, True]
    assert [one["id"] for one in told.call.request_ids] == ["req-2"]


def test_a_pools_workers_are_asked_nothing_that_no_log_has(tmp_path: Path) -> None:
    config, args = recorded_settings(RESPONSES, GenerateConfig(), {})
    settings = config.model_dump(exclude_none=True)
    told = ask(tmp_path, RESPONSES, settings={"max_retries": 0, **settings}, **args)
    assert [line.request_id for line in told.bill.lines] == ["req-1"]
    assert [one["id"] for one in told.call.request_ids] == ["req-1"]


def test_what_a_pool_says_of_summaries_and_retries_stays() -> None:
    said = GenerateConfig(reasoning_summary="auto")
    assert recorded_settings(RESPONSES, said, {"max_retries": 2}) == (said, {"max_retries": 2})
    assert recorded_settings(GOOGLE, GenerateConfig(), {}) == (GenerateConfig(), {})


@pytest.mark.slow
def test_googles_client_asks_again_when_a_connection_drops_and_nothing_of_ours_can_know(
    tmp_path: Path,
) -> None:
    told = ask(tmp_path, GOOGLE, [dropping()])
    assert [line.billed for line in told.bill.lines] == [True, True]
    assert (told.call.retries, told.call.request_ids) == (0, ())
    assert told.call.usage is not None


@pytest.mark.parametrize(
    ("config", "args", "service"),
    [
        pytest.param(GenerateConfig(), {}, "standard", id="nothing-said"),
        pytest.param(GenerateConfig(), {"service_tier": "auto"}, "standard", id="auto"),
        pytest.param(GenerateConfig(), {"service_tier": "flex"}, "flex", id="flex"),
        pytest.param(GenerateConfig(), {"service_tier": "priority"}, "priority", id="priority"),
        pytest.param(GenerateConfig(batch=True), {}, "batch", id="batch"),
        pytest.param(GenerateConfig(batch=50), {"service_tier": "flex"}, "batch", id="both"),
        pytest.param(GenerateConfig(batch=False), {}, "standard", id="no-batch"),
        pytest.param(
            GenerateConfig(extra_body={"service_tier": "flex"}), {}, "flex", id="in-the-body"
        ),
        pytest.param(GenerateConfig(), {"service_tier": "scale"}, "scale", id="no-price-knows-it"),
    ],
)
def test_how_a_call_is_served_is_read_from_a_workers_settings(
    config: GenerateConfig, args: dict[str, Any], service: str
) -> None:
    assert service_tier(config, args) == service


def test_a_request_for_the_tier_flex_arrives_as_one(tmp_path: Path) -> None:
    told = ask(tmp_path, RESPONSES, service_tier="flex")
    assert [line.service for line in told.bill.lines] == ["flex"]
