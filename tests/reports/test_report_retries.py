"""A report says of a run with failed tries, or without a journal, what the ledger says of it."""

from decimal import Decimal
from pathlib import Path

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemTotals, system_totals
from tests.harness.faulty_run import Left, run
from tests.providers import Act, failing, rate_limited, stalling
from tests.reports.audit.audited_run import rows_below, sat

TWO_SHORT_TRIES = "max_tokens = 64, max_retries = 1, attempt_timeout = 8"


def totals(folder: Path) -> SystemTotals:
    (system_run,), _ = load_runs([folder])
    return system_totals(system_run)


def listed(left: Left) -> Decimal:
    return sum((row.usd_list or Decimal(0) for row in left.rows), Decimal(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "act", [rate_limited(), failing(), stalling()], ids=["429", "500", "silence"]
)
def test_a_try_that_failed_and_was_made_again_is_no_call_of_the_headline(
    act: Act, tmp_path: Path
) -> None:
    left = run(tmp_path, [act], settings=TWO_SHORT_TRIES, limit=2)
    found = totals(left.folder)
    assert (len(left.rows), found.calls, found.n_failed) == (3, 1.0, 1)
    assert found.usd == listed(left) / 2
    assert found.tokens_in is not None
    assert found.paid.unknown == sum(row.billable == "unknown" for row in left.rows)


def test_what_was_paid_has_no_upper_bound_where_a_journal_is_gone(tmp_path: Path) -> None:
    sat(tmp_path, journal=1, limit=2)
    first = [*tmp_path.glob("ledger/*/*.jsonl")]
    sat(tmp_path, journal=1)
    whole = totals(tmp_path).paid
    assert whole.exact == sum(row.usd or 0 for row in rows_below(tmp_path))
    for path in first:
        path.unlink()
    rest = totals(tmp_path).paid
    assert (rest.low, rest.high) == (whole.low, None)
