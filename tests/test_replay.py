"""No reply that was paid for is bought twice: a run keeps it until its sample is in its log."""

import stat
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from audited import failing, rows_below
from toy import PRICES, calls, toy_pool, toy_run

from harness.ledger.spending import spent
from harness.prices import read_book
from harness.reply_cache import FOLDER

CENT = Decimal("0.01")
SC = {"systems": ("self-consistency:ada",), "limit": 3}


def stopped(log_dir: Path) -> None:
    """Ask three questions of five calls each, with money for seven calls."""
    toy_pool(log_dir, connections=1)
    outcome = toy_run(log_dir, systems=("self-consistency",), limit=3, selection_limit=1,
                      max_usd=Decimal("0.09"))
    assert not outcome.finished


def test_x(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    stopped(log_dir)
    print(calls(log_dir), list((log_dir / FOLDER).iterdir()))
    before = len(calls(log_dir))
    outcome = toy_run(log_dir, systems=("self-consistency",), limit=3, selection_limit=1, max_usd=Decimal(1))
    assert outcome.finished
    print(Counter(calls(log_dir)))
    for row in rows_below(log_dir): print(row.task, row.question, row.role, row.from_store, row.cache, row.usd, row.usd_list, row.counted, row.error)
    print(failing(log_dir), list(log_dir.iterdir()))
    assert 0
