"""The reviewers' view of runs whose providers fail: real clients at a local server."""

from decimal import Decimal
from pathlib import Path

import pytest

from podium.harness.ledger.details import QuestionFilter, details
from podium.harness.ledger.journal import read_lines
from podium.harness.ledger.ledger_tables import ask, export
from podium.harness.ledger.logs import seconds_between
from podium.harness.ledger.show import query_text
from podium.harness.ledger.system_runs import load_runs
from tests.harness.faulty_run import Left
from tests.providers import CLIENTS_WARN

pytestmark = CLIENTS_WARN


def test_a_second_try_took_from_its_own_beginning_to_the_end_of_the_call(retried: Left) -> None:
    journals = retried.folder.glob("**/ledger/*/*.jsonl")
    lines = [line for path in journals for line in read_lines(path)]
    ends = {line["call"]: str(line["at"]) for line in lines if line["kind"] == "outcome"}
    second = [row for row in retried.rows if row.attempt == 2]
    assert len(second) == 3
    for row in second:
        by_date = seconds_between(
            row.started, ends[row.call]
        )  # of the line, written a little later
        assert row.latency_s == pytest.approx(by_date, abs=0.5)


def test_what_was_waited_before_a_second_try_is_on_no_critical_path(retried: Left) -> None:
    (question,) = {row.question for row in retried.rows}
    (found,) = details(retried.folder, QuestionFilter(question))
    (run,) = load_runs([retried.folder])[0]
    (answer,) = run.attempts
    assert answer.critical_path_s is not None
    assert answer.critical_path_s == found.row.critical_path_s, "the table's and the ledger's"
    assert answer.overhead_s is not None
    assert found.row.latency_s == pytest.approx(answer.critical_path_s + answer.overhead_s)
    assert answer.overhead_s > answer.critical_path_s, "clients wait before they try again"


def test_refused_tries_are_retries_that_cost_nothing(retried: Left, tmp_path: Path) -> None:
    (question,) = {row.question for row in retried.rows}
    (found,) = details(retried.folder, QuestionFilter(question))
    counts = (found.row.calls, found.row.attempts, found.row.retries, found.row.failed)
    assert counts == (4, 7, 3, 3)
    billed = [row.usd for row in retried.rows if row.billable == "yes"]
    assert found.row.usd == sum(one for one in billed if one is not None)
    assert (found.row.n_unpriced, found.row.n_unknown) == (0, 0)
    text = query_text(details(retried.folder, QuestionFilter(question)))
    assert "calls 4, 3 retries, 3 failed attempts" in text
    assert "RateLimitError (429)" in text
    out = tmp_path / "tables"
    export(retried.folder, out)
    ((calls, usd),) = ask(out, "SELECT count(DISTINCT call), sum(usd) FROM calls").rows
    assert (calls, Decimal(usd)) == (4, found.row.usd)


def test_a_reply_that_never_came_leaves_a_range_and_no_verdict(unanswered: Left) -> None:
    (stalled,) = [row for row in unanswered.of("olive") if row.error == "AttemptTimeoutError"]
    wanted = QuestionFilter(stalled.question, stalled.system)
    (found,) = details(unanswered.folder, wanted)
    assert (found.row.verdict, found.row.usd, found.row.usd_list) == ("unscored", None, None)
    assert (found.row.n_unknown, found.row.usd_low) == (1, Decimal(0))
    assert "unknown cost of 1 attempt" in query_text(details(unanswered.folder, wanted))
