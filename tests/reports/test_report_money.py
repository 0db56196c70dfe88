"""What a report says about money: ranges, prices that are missing, hardware, graders, the order."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.journal import CallOutcome, Head, open_journal
from podium.harness.prices import Book
from podium.harness.prices.cost import Gpu, Price
from podium.harness.records import Usage
from podium.reports.comparison_rows import paid_cell
from tests.harness.runs import BOOK, facts, sit
from tests.reports.audit.tampered_run import intent_of, journal
from tests.reports.small_reports import report, row_of, rows_of

HEAD = Head("numbers single:sage", "numbers", "single:sage", "live", "test-book", "0" * 64)
CALL = Decimal("0.000016")
"""3 tokens in at 2 and 1 out at 10 dollars per million."""


def priced(**changes: Price) -> Book:
    return replace(BOOK, prices={**BOOK.prices, **changes})


def with_price(price: Price) -> dict[str, Any]:
    return {"prices": priced(**{"scripted/sage": price}).as_json()}


def test_a_call_that_never_ended_makes_what_was_paid_a_range(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", journal=1)
    journal(tmp_path / "logs", "single:sage", calls=4)
    left = open_journal(tmp_path / "logs", HEAD)
    left.intent(intent_of(max_tokens=10))
    left.close()
    row = row_of(report(tmp_path).rows, "single:sage")
    assert row.usd_paid_low == CALL
    assert row.usd_paid_high == CALL + Decimal("0.000622") / 4
    assert (row.usd_paid_per_query, row.n_unknown_billed) == (None, 1)
    text = (tmp_path / "report" / "table.md").read_text()
    assert "0.0000160–0.000172" in text
    assert "calls that were sent and never ended: 1, which may have been billed" in text
    assert "| 0.0000640–0.000686 |" in text


def test_what_nothing_bounds_has_no_upper_end(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", journal=1)
    journal(tmp_path / "logs", "single:sage", calls=4)
    left = open_journal(tmp_path / "logs", HEAD)
    left.intent(intent_of())
    left.close()
    row = row_of(report(tmp_path).rows, "single:sage")
    assert (row.usd_paid_low, row.usd_paid_high) == (CALL, None)
    assert "0.0000160–?" in (tmp_path / "report" / "table.md").read_text()


def test_calls_that_all_ended_are_paid_exactly_and_graders_apart(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", journal=1, ask_grader=True, limit=2)
    made = open_journal(tmp_path / "logs", HEAD)
    for scope in ("inference", "inference", "scoring"):
        call = made.intent(intent_of(scope=scope))
        made.outcome(call, CallOutcome(event=None, usage=Usage(input=3, output=1)))
    refused = made.intent(intent_of())
    made.outcome(
        refused, CallOutcome(event=None, usage=None, error="RateLimitError", http_status=429)
    )
    made.close()
    row = row_of(report(tmp_path).rows, "single:sage")
    assert row.usd_paid_per_query == row.usd_paid_low == row.usd_paid_high == CALL
    assert row.usd_scoring_per_query is not None
    assert row.usd_scoring_per_query > 0
    assert "grading by models, in no column: USD" in row.notes
    assert "sage: dated" in row.price_evidence


@pytest.mark.parametrize("resumed", [False, True])
def test_runs_older_than_journals_are_paid_by_their_logs(tmp_path: Path, resumed: bool) -> None:
    sit(tmp_path / "logs", "single:sage")
    if resumed:  # by a podium that keeps journals: they lack what was asked before
        journal(tmp_path / "logs", "single:sage", calls=1)
    (row,) = rows_of(tmp_path)
    assert row.usd_paid_per_query == row.usd_paid_low == row.usd_paid_high == row.usd_per_query
    assert row.order is None


def test_what_has_no_price_is_no_smaller_number(tmp_path: Path) -> None:
    book = replace(BOOK, prices={})
    sit(tmp_path / "logs", "single:sage", prices=book.as_json())
    row = row_of(report(tmp_path).rows, "single:sage")
    assert (row.usd_per_query, row.usd_paid_per_query, row.n_unpriced) == (None, None, 4)
    text = (tmp_path / "report" / "table.md").read_text()
    assert text.count("| —(4 unpriced) | —(4 unpriced) |") == 1
    assert "no USD/query, calls without a price: single:sage 4" in report(tmp_path).text


def test_a_price_that_was_carried_back_is_said_so(tmp_path: Path) -> None:
    price = Price(Decimal("2"), Decimal("10"), evidence="carried-back")
    sit(tmp_path / "logs", "single:sage", **with_price(price))
    row = row_of(report(tmp_path).rows, "single:sage")
    assert (row.price_evidence, row.price_book_date) == ("sage: carried-back", "2026-01-02")
    text = (tmp_path / "report" / "table.md").read_text()
    assert (
        "prices carried back to 2026-01-02 (a later price, assumed to be valid then): sage" in text
    )
    assert "price book test-book (00000000), 2026-01-02, seed 0" in text
    assert "| 2 / 10 (carried-back) |" in text


def test_a_price_on_own_hardware_stands_beside_the_one_of_the_service(tmp_path: Path) -> None:
    gpu = Gpu("H100", 2, Decimal("3.6"), Decimal("1000"), "measured by a test")
    sit(tmp_path / "logs", "single:sage", **with_price(Price(Decimal("2"), Decimal("10"), gpu=gpu)))
    (row,) = rows_of(tmp_path)
    assert row.tokens_out == 1
    assert row.usd_gpu_per_query == Decimal("0.000002")
    assert row.usd_per_query is not None
    assert "on own hardware USD 0.00000200 per query" in row.notes


def test_a_row_says_which_place_its_system_had(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", order=2)
    assert "order" not in facts("single:sage")
    (row,) = rows_of(tmp_path)
    assert row.order == 2


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (Decimal("0.0123"), Decimal("0.015"), "0.0123–0.0150"),
        (Decimal("0.0123"), Decimal("0.0123"), "0.0123"),
        (Decimal("0.0123"), None, "0.0123–?"),
        (None, None, "-"),
        (Decimal(0), Decimal(0), "0"),
    ],
)
def test_a_range_has_both_its_ends(low: Decimal | None, high: Decimal | None, said: str) -> None:
    assert paid_cell(low, high, 0) == said
