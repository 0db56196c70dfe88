"""What `podium run` and its audit make of each fault of a provider; nothing becomes 0 silently."""

from decimal import Decimal
from pathlib import Path

import pytest
from faulty_run import ONE_SHORT_TRY, ONE_TRY, TWO_TRIES, Left, run, run_pool, usage
from providers import (
    CLIENTS_WARN,
    Act,
    Server,
    cutting,
    failing,
    ok,
    rate_limited,
    stalling,
    too_much_cached,
    too_much_reasoning,
    unreported,
    write_pool,
    wrong_total,
)

from harness.audit import audit
from harness.records import Usage

pytestmark = CLIENTS_WARN

ALL_THREE = "moa-lite"
"""Asks all three workers at once, then `olive` once more."""
ZERO = Decimal(0)


def strictly_failing(left: Left) -> set[str]:
    """Return what a strict audit finds failing."""
    found = audit(left.folder, strict=True).verdicts
    return {one.invariant for one in found if one.status == "fail"}


def test_a_clean_run_over_three_dialects_passes_and_counts_what_its_providers_bill(
    tmp_path: Path,
) -> None:
    full = Usage(input=100, output=40, cache_read=30, reasoning=12)
    left = run(tmp_path, [ok(usage=full)] * 8, ALL_THREE, limit=2)
    assert left.failing == set()
    assert len(left.rows) == len(left.bill.lines) == 8
    assert usage(left.rows).input == left.bill.usage().input == 800
    assert usage(left.rows).output == left.bill.usage().output == 320
    assert usage(left.rows).cache_read == left.bill.usage().cache_read == 240
    assert usage(left.rows).reasoning == left.bill.usage().reasoning == 96
    assert {line.key for line in left.bill.lines} == {"test-olive", "test-plum", "test-quince"}
    ids = {line.request_id for line in left.bill.lines if line.dialect != "google"}
    assert {row.request_id for row in left.rows if row.role != "quince"} == ids


def test_a_second_try_is_a_row_of_its_own_and_the_first_costs_nothing(tmp_path: Path) -> None:
    script = {
        "gpt-5-mini": [rate_limited()],
        "claude-sonnet-5": [failing(529)],
        "gemini-2.5-pro": [failing(500)],
    }
    left = run(tmp_path, script, ALL_THREE, TWO_TRIES)
    assert left.failing == set()
    assert len(left.rows) == len(left.bill.lines) == 7
    first = {row.role: row for row in left.rows if row.billable == "no"}
    assert {role: row.http_status for role, row in first.items()} == {
        "olive": 429,
        "plum": 529,
        "quince": 500,
    }
    assert [row.attempt for row in first.values()] == [1, 1, 1]
    assert {row.error for row in first.values()} == {
        "RateLimitError",
        "OverloadedError",
        "ServerError",
    }
    assert {row.usd for row in first.values()} == {ZERO}
    assert sorted(row.attempt for row in left.rows if row.billable == "yes") == [1, 2, 2, 2]
    assert usage(left.rows).output == left.bill.usage().output


@pytest.mark.parametrize(
    ("worker", "status"), [("olive", 500), ("plum", 529), ("quince", 429)], ids=str
)
def test_a_call_that_was_refused_at_last_is_billed_nothing_and_has_its_status(
    worker: str, status: int, tmp_path: Path
) -> None:
    left = run(tmp_path, [failing(status)], f"single:{worker}")
    assert left.failing == set()
    assert left.bill.billed == []
    assert (left.row.billable, left.row.http_status, left.row.usd) == ("no", status, ZERO)
    assert left.row.usage_source == "missing"
    assert left.row.input_uncached is None


@pytest.mark.parametrize("worker", ["olive", "plum", "quince"])
def test_a_call_that_stalled_is_a_range_from_nothing_to_all_it_could_have_cost(
    worker: str, tmp_path: Path
) -> None:
    left = run(tmp_path, [stalling()], f"single:{worker}", ONE_SHORT_TRY)
    assert left.failing == set()
    assert [line.billed for line in left.bill.lines] == [True]
    row = left.row
    assert (row.billable, row.error) == ("unknown", "AttemptTimeoutError")
    assert (row.usd, row.usd_list, row.usd_low) == (None, None, ZERO)
    assert row.usd_high is not None
    assert row.usd_high > 0
    assert left.reasons("I9") == {"attempts that may have been billed, with an upper bound": 1}
    assert "I9" in strictly_failing(left)


@pytest.mark.parametrize("worker", ["olive", "plum", "quince"])
def test_a_reply_that_was_cut_off_may_have_been_billed(worker: str, tmp_path: Path) -> None:
    left = run(tmp_path, [cutting()], f"single:{worker}")
    assert left.failing == set()
    assert [line.billed for line in left.bill.lines] == [True]
    assert (left.row.billable, left.row.usd, left.row.usd_low) == ("unknown", None, ZERO)
    assert left.row.usd_high is not None
    assert "I9" in strictly_failing(left)


def test_counts_that_contradict_each_other_fail_the_token_partition(tmp_path: Path) -> None:
    left = run(tmp_path, [wrong_total(), too_much_reasoning(), too_much_cached()], limit=3)
    assert left.failing == {"I1"}
    assert sorted(left.faults("I1")) == [
        "8 reasoning tokens are more than its 3 output tokens",
        "a count of tokens is negative",
        "unexplained tokens: +7 of the 53 that are reported",
    ]


@pytest.mark.parametrize("worker", ["olive", "quince"])
def test_a_reply_without_usage_has_no_price_and_is_not_free(worker: str, tmp_path: Path) -> None:
    left = run(tmp_path, [unreported()], f"single:{worker}")
    row = left.row
    assert (row.billable, row.usage_source) == ("yes", "missing")
    assert (row.input_uncached, row.output, row.usd, row.usd_list) == (None, None, None, None)
    assert left.failing == set()
    assert left.reasons("I6") == {"calls without a price whose provider counted no tokens": 1}
    assert "I6" in strictly_failing(left)


def test_a_message_of_anthropic_without_usage_may_have_been_billed(tmp_path: Path) -> None:
    left = run(tmp_path, [unreported()], "single:plum")
    assert (left.row.billable, left.row.usd, left.row.error) == ("unknown", None, "TypeError")


def test_an_empty_reply_costs_what_it_took(tmp_path: Path) -> None:
    left = run(tmp_path, [Act(text="")])
    assert left.failing == set()
    assert left.row.output == left.bill.lines[0].usage.output == 1
    assert left.row.usd == Decimal("0.00001275")


@pytest.mark.parametrize(
    ("served", "other"),
    [("gpt-5-mini-2025-08-07", False), ("gpt-4.1-nano", True)],
    ids=["dated", "another"],
)
def test_the_model_that_answered_stands_beside_the_one_asked_for_and_another_is_told(
    served: str, other: bool, tmp_path: Path
) -> None:
    left = run(tmp_path, [Act(served=served)])
    assert (left.row.model, left.row.served_model) == ("openai/gpt-5-mini", served)
    assert left.failing == set()
    told = {"calls answered by another model than was asked for": 1} if other else {}
    assert left.reasons("I11") == told


def test_an_id_that_two_requests_share_fails_plausibility_by_name(tmp_path: Path) -> None:
    left = run(tmp_path, [Act(request_id="same"), Act(request_id="same")], limit=2)
    assert left.failing == {"I11"}
    assert left.faults("I11") == ["the provider gave 2 billed requests the same id"]


def test_a_try_that_a_client_made_again_by_itself_is_a_row_too(tmp_path: Path) -> None:
    def patient(server: Server) -> str:
        return write_pool(tmp_path, server, ONE_TRY, sdk_retries=2)

    left = run_pool(tmp_path, [rate_limited(), cutting()], patient, "single:plum")
    assert left.failing == set()
    assert [line.billed for line in left.bill.lines] == [False, True, True]
    assert [row.attempt for row in left.rows] == [1, 2, 3]
    assert [row.http_status for row in left.rows] == [429, None, None]
    assert [row.billable for row in left.rows] == ["no", "unknown", "yes"]
    assert [row.request_id for row in left.rows] == ["req-1", "req-2", "req-3"]
    assert {row.call for row in left.rows} == {left.rows[0].call}
    assert left.rows[1].usd_high is not None


def test_an_unseen_second_request_of_a_provider_is_on_its_bill_alone(tmp_path: Path) -> None:
    left = run(tmp_path, [Act(ending="dropped")], "single:quince")
    assert left.failing == set()
    assert len(left.rows) == 1
    assert len(left.bill.billed) == 2


def test_a_stall_before_a_reply_is_a_range_beside_a_price(tmp_path: Path) -> None:
    two_short = "max_tokens = 64, max_retries = 1, attempt_timeout = 4"
    left = run(tmp_path, [stalling()], settings=two_short)
    assert left.failing == set()
    assert [(row.attempt, row.billable) for row in left.rows] == [(1, "unknown"), (2, "yes")]
    assert [line.billed for line in left.bill.lines] == [True, True]
    assert left.rows[0].usd_high is not None
    assert left.rows[1].usd is not None
