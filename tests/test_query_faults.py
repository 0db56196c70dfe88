"""The reviewers' view of runs whose providers fail: real clients at a local server."""

from decimal import Decimal
from pathlib import Path

from faulty_run import ONE_SHORT_TRY, TWO_TRIES, run
from providers import CLIENTS_WARN, failing, rate_limited, stalling

from harness.ledger.detail_text import query_text
from harness.ledger.details import Wanted, details
from harness.ledger.export import export
from harness.ledger.sql import ask

pytestmark = CLIENTS_WARN


def test_refused_tries_are_retries_that_cost_nothing(tmp_path: Path) -> None:
    script = {"gpt-5-mini": [rate_limited()], "claude-sonnet-5": [failing(529)]}
    left = run(tmp_path, script, "moa-lite", TWO_TRIES)
    (question,) = {row.question for row in left.rows}
    (found,) = details(left.folder, Wanted(question))
    assert (found.row.calls, found.row.attempts, found.row.retries, found.row.failed) == (
        4,
        6,
        2,
        2,
    )
    billed = [row.usd for row in left.rows if row.billable == "yes"]
    assert found.row.usd == sum(one for one in billed if one is not None)
    assert (found.row.n_unpriced, found.row.n_unknown) == (0, 0)
    text = query_text(left.folder, Wanted(question))
    assert "calls 4, 2 retries, 2 failed attempts" in text
    assert "RateLimitError (429)" in text
    out = tmp_path / "tables"
    export(left.folder, out)
    ((calls, usd),) = ask(out, "SELECT count(DISTINCT call), sum(usd) FROM calls").rows
    assert (calls, Decimal(usd)) == (4, found.row.usd)


def test_a_reply_that_never_came_leaves_a_range_and_no_verdict(tmp_path: Path) -> None:
    left = run(tmp_path, [stalling()], "single:olive", ONE_SHORT_TRY)
    (question,) = {row.question for row in left.rows}
    (found,) = details(left.folder, Wanted(question))
    assert (found.row.verdict, found.row.usd, found.row.usd_list) == ("unscored", None, None)
    assert (found.row.n_unknown, found.row.usd_low) == (1, Decimal(0))
    assert "nobody knows of 1 attempt" in query_text(left.folder, Wanted(question))
