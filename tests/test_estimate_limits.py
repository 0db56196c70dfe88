"""What a dry run says of the limits that it was given."""

from decimal import Decimal
from pathlib import Path

from test_estimate import asked, dry, limited_pool
from toy import toy_run

from harness.estimate.estimate import Estimate
from harness.estimate.text import as_text, warning


def test_a_limit_below_one_question_is_said_before_the_start(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    found = dry(log_dir)
    small = asked(log_dir, max_usd=Decimal("0.001"))
    assert warning(found, small) == (
        "one question of single:ada on toy may cost $0.0074, more than --max-usd 0.001 leaves "
        "(its plan; no past call of ada)."
    )
    each = asked(log_dir, max_usd_per_query=Decimal("0.001"))
    assert "more than --max-usd-per-query 0.001" in warning(found, each)
    assert warning(found, asked(log_dir, max_usd=Decimal(1))) == ""


def test_limits_that_may_stop_something_are_named_one_line_each(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    blind = dry(log_dir)

    def said(found: Estimate, max_usd: str, each: str) -> list[str]:
        limits = {"max_usd": Decimal(max_usd), "max_usd_per_query": Decimal(each)}
        told = as_text(found, asked(log_dir, None, **limits)).splitlines()
        return told[len(as_text(found).splitlines()) :]

    assert said(blind, max_usd="1", each="1") == []
    assert said(blind, max_usd="0.05", each="0.001") == [
        "--max-usd 0.05 may stop the run before the end: up to $0.0890 is possible.",
        "--max-usd-per-query 0.001 may stop questions before the end: up to $0.0075 is possible "
        "(single:ada on toy).",
    ]
    toy_run(log_dir, limit=5)
    known = dry(log_dir, limit=12)
    assert said(known, max_usd="0.1", each="0.001") == [
        "--max-usd 0.1 ($0.0500 of it is spent) is too little: $0.0700 is expected.",
        "--max-usd-per-query 0.001 is too little: $0.0100 is expected (single:ada on toy).",
    ]
