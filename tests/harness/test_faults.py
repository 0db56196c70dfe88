"""What `podium run` and its audit make of each fault of a provider; nothing becomes 0 silently."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from podium.harness.ledger.call import Call
from podium.reports.audit import audit
from podium.reports.audit.amounts import UNBELIEVED
from tests.harness.faulty_run import ALL_THREE, ONE_TRY, TWO_TRIES, Left, run, run_pool, usage
from tests.providers import (
    CLIENTS_WARN,
    Act,
    Server,
    cutting,
    failing,
    rate_limited,
    stalling,
    too_much_cached,
    too_much_reasoning,
    write_pool,
    wrong_total,
)

pytestmark = CLIENTS_WARN

ZERO = Decimal(0)
WORKERS = pytest.mark.parametrize("worker", ["olive", "plum", "quince"])


def is_refused(row: Call) -> bool:
    return row.billable == "no"


def is_stalled(row: Call) -> bool:
    return row.error == "AttemptTimeoutError"


def is_silent(row: Call) -> bool:
    """Say whether a reply has no usage, which Anthropic's client cannot read."""
    return row.billable == "yes" or row.error == "TypeError"


def is_cut(row: Call) -> bool:
    return not (is_refused(row) or is_stalled(row) or is_silent(row))


def the(kind: Callable[[Call], bool], left: Left, worker: str) -> Call:
    """Return the one row of a kind that a worker has."""
    (row,) = filter(kind, left.of(worker))
    return row


def test_a_clean_run_over_three_dialects_passes_and_counts_what_its_providers_bill(
    clean: Left,
) -> None:
    assert clean.failing == set()
    assert len(clean.rows) == len(clean.bill.lines) == 8
    assert usage(clean.rows).input == clean.bill.usage().input == 800
    assert usage(clean.rows).output == clean.bill.usage().output == 320
    assert usage(clean.rows).cache_read == clean.bill.usage().cache_read == 240
    assert usage(clean.rows).reasoning == clean.bill.usage().reasoning == 96
    assert {line.key for line in clean.bill.lines} == {"test-olive", "test-plum", "test-quince"}
    ids = {line.request_id for line in clean.bill.lines if line.dialect != "google"}
    assert {row.request_id for row in clean.rows if row.role != "quince"} == ids


@pytest.mark.slow
def test_a_second_try_is_a_row_of_its_own_and_the_first_costs_nothing(retried: Left) -> None:
    assert retried.failing == set()
    assert len(retried.rows) == len(retried.bill.lines) == 7
    first = {row.role: row for row in retried.rows if row.billable == "no"}
    assert {role: (row.http_status, row.error) for role, row in first.items()} == {
        "olive": (429, "RateLimitError"),
        "plum": (529, "OverloadedError"),
        "quince": (500, "ServerError"),
    }
    assert [row.attempt for row in first.values()] == [1, 1, 1]
    assert {row.usd for row in first.values()} == {ZERO}
    assert sorted(row.attempt for row in retried.rows if row.billable == "yes") == [1, 2, 2, 2]
    assert usage(retried.rows).output == retried.bill.usage().output


def test_what_no_reply_came_for_passes_and_a_strict_audit_does_not_accept_it(
    unanswered: Left,
) -> None:
    assert unanswered.failing == set()
    found = audit(unanswered.folder, strict=True).verdicts
    assert {one.invariant for one in found if one.status == "fail"} >= {"I6", "I9"}
    assert unanswered.reasons("I9") == {
        "attempts that may have been billed, with an upper bound": 7
    }
    assert unanswered.reasons("I6") == {"calls without a price whose provider counted no tokens": 2}
    assert len(unanswered.rows) == len(unanswered.bill.lines) == 12
    assert len(unanswered.bill.billed) == 9, "all but what was refused"


@pytest.mark.parametrize(
    ("worker", "status"), [("olive", 500), ("plum", 529), ("quince", 429)], ids=str
)
def test_a_call_that_was_refused_at_last_is_billed_nothing_and_has_its_status(
    worker: str, status: int, unanswered: Left
) -> None:
    row = the(is_refused, unanswered, worker)
    assert (row.http_status, row.usd) == (status, ZERO)
    assert (row.usage_source, row.input_uncached) == ("missing", None)


@WORKERS
def test_a_call_that_stalled_is_a_range_from_nothing_to_all_it_could_have_cost(
    worker: str, unanswered: Left
) -> None:
    row = the(is_stalled, unanswered, worker)
    assert (row.billable, row.usd, row.usd_list, row.usd_low) == ("unknown", None, None, ZERO)
    assert row.usd_high is not None
    assert row.usd_high > 0


@WORKERS
def test_a_reply_that_was_cut_off_may_have_been_billed(worker: str, unanswered: Left) -> None:
    row = the(is_cut, unanswered, worker)
    assert (row.billable, row.usd, row.usd_low) == ("unknown", None, ZERO)
    assert row.usd_high is not None


@pytest.mark.parametrize("worker", ["olive", "quince"])
def test_a_reply_without_usage_has_no_price_and_is_not_free(worker: str, unanswered: Left) -> None:
    row = the(is_silent, unanswered, worker)
    assert (row.billable, row.usage_source) == ("yes", "missing")
    assert (row.input_uncached, row.output, row.usd, row.usd_list) == (None, None, None, None)


def test_a_message_of_anthropic_without_usage_may_have_been_billed(unanswered: Left) -> None:
    row = the(is_silent, unanswered, "plum")
    assert (row.billable, row.usd, row.error) == ("unknown", None, "TypeError")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Replies that are unusual, and true."""
    script = [Act(text=""), Act(served="gpt-5-mini-2025-08-07"), Act(served="gpt-4.1-nano")]
    return run(tmp_path_factory.mktemp("odd"), script, limit=3)


def test_an_empty_reply_costs_what_it_took(odd: Left) -> None:
    (row,) = [row for row in odd.rows if row.output == 1]
    (line,) = [line for line in odd.bill.lines if line.usage.output == 1]
    assert row.request_id == line.request_id
    assert row.usd == Decimal("0.00000025") * line.usage.input + Decimal("0.000002")


def test_the_model_that_answered_stands_beside_the_one_asked_for_and_another_is_told(
    odd: Left,
) -> None:
    assert {row.model for row in odd.rows} == {"openai/gpt-5-mini"}
    served = {"gpt-5-mini", "gpt-5-mini-2025-08-07", "gpt-4.1-nano"}
    assert {row.served_model for row in odd.rows} == served
    assert odd.failing == set()
    told = {"calls answered by a different model from the requested one": 1}
    assert odd.reasons("I11") == told, "a dated name is the model's own"


def test_counts_that_contradict_each_other_fail_the_token_partition(tmp_path: Path) -> None:
    left = run(tmp_path, [wrong_total(), too_much_reasoning(), too_much_cached()], limit=3)
    assert left.failing == {"I1"}
    reasoning, total = sorted(left.faults("I1"))
    assert reasoning == "8 reasoning tokens are more than its 3 output tokens"
    assert total.startswith("unexplained tokens: +7 of the "), "of the question that came first"
    assert left.reasons("I1") == {UNBELIEVED: 1}, "more cached than prompt cannot be"


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


@pytest.mark.slow
def test_a_stall_before_a_reply_is_a_range_beside_a_price(tmp_path: Path) -> None:
    two_short = "max_tokens = 64, max_retries = 1, attempt_timeout = 10"
    left = run(tmp_path, [stalling()], settings=two_short)
    assert left.failing == set()
    assert [(row.attempt, row.billable) for row in left.rows] == [(1, "unknown"), (2, "yes")]
    assert [line.billed for line in left.bill.lines] == [True, True]
    assert left.rows[0].usd_high is not None
    assert left.rows[1].usd is not None


@pytest.mark.slow
def test_a_call_that_was_cancelled_while_it_waited_to_try_again_is_one_row(tmp_path: Path) -> None:
    refused_late = Act(status=400, waits_for=3, wait_s=1.5)  # a retry waits 3 s at least
    script = {
        "gpt-5-mini": [rate_limited()],
        "claude-sonnet-5": [failing(529)],
        "gemini-2.5-pro": [refused_late],
    }
    left = run(tmp_path, script, ALL_THREE, TWO_TRIES)
    assert sorted(left.bill.statuses) == [400, 429, 529]  # the three are asked side by side
    assert sorted(row.http_status or 0 for row in left.rows) == [400, 429, 529]
    assert {(row.attempt, row.billable, row.usd) for row in left.rows} == {(1, "no", ZERO)}
    assert left.failing == set()


@pytest.mark.parametrize(
    ("worker", "header"), [("olive", "request-id"), ("plum", "x-request-id")], ids=str
)
def test_a_reply_with_two_ids_is_one_attempt_and_goes_by_its_providers_own(
    worker: str, header: str, tmp_path: Path
) -> None:
    left = run(tmp_path, [Act(gateway=header)] * 2, f"single:{worker}", limit=2)
    # The two questions are asked at once: whose request the server takes first is open.
    assert {row.request_id for row in left.rows} == {"req-1", "req-2"}
    assert left.failing == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "header"), [("olive", "request-id"), ("plum", "x-request-id")], ids=str
)
def test_retries_of_a_client_that_carry_two_ids_each_are_as_many_as_there_were(
    worker: str, header: str, tmp_path: Path
) -> None:
    acts = [Act(status=429, retry_after=0.01, gateway=header), Act(status=500), Act(gateway=header)]
    left = run_pool(
        tmp_path,
        acts,
        lambda server: write_pool(tmp_path, server, ONE_TRY, sdk_retries=2),
        f"single:{worker}",
    )
    told = [(row.attempt, row.http_status, row.request_id, row.billable) for row in left.rows]
    assert told == [(1, 429, "req-1", "no"), (2, 500, "req-2", "no"), (3, None, "req-3", "yes")]
    assert left.failing == set()
