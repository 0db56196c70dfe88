"""A clock that is set while a run goes on: durations are measured by another one, or unknown."""

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.logs import newest_logs
from podium.harness.ledger.system_runs import read_figures
from podium.harness.records import PODIUM, SECONDS
from tests.harness.toy_run import toy_pool, toy_run
from tests.reports.audit.audited_run import Json, edit_samples, rows_below, sat

JUMP = timedelta(hours=25)


def later(event: Json, *names: str) -> None:
    """Date some times of an event after the clock was set."""
    for name in names:
        if event.get(name):
            event[name] = (datetime.fromisoformat(event[name]) + JUMP).isoformat()


def set_clock(sample: Json) -> None:
    """Let the clock have been set while the sample's calls were out."""
    for event in sample["events"]:
        if event["event"] == "span_end":
            later(event, "timestamp")
        if event["event"] == "model":
            later(event, "completed")


def forget_seconds(sample: Json) -> None:
    """Make a sample as older versions wrote it."""
    sample["metadata"][PODIUM].pop(SECONDS)


def seconds(folder: Path) -> list[float | None]:
    """Return how long the solvers of a run took."""
    attempts, _ = read_figures(newest_logs([folder], recursive=False))
    return [one.critical_path_s for one in attempts]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of a few short samples."""
    sat(tmp_path)
    return tmp_path


def test_a_clock_that_is_set_during_a_run_does_not_show(run: Path) -> None:
    before = seconds(run)
    assert all(one is not None and 0 <= one < 60 for one in before)
    edit_samples(run, set_clock)
    assert seconds(run) == before


def test_of_an_older_log_what_is_longer_than_its_sample_is_unknown(run: Path) -> None:
    edit_samples(run, forget_seconds)
    assert all(one is not None and one < 60 for one in seconds(run))
    edit_samples(run, set_clock)
    assert set(seconds(run)) == {None}


def test_a_call_that_only_a_log_knows_is_not_25_hours_long(run: Path) -> None:
    for path in run.glob("ledger/*/*.jsonl"):
        path.unlink()
    assert all(row.latency_s is not None for row in rows_below(run))
    edit_samples(run, set_clock)
    assert {row.latency_s for row in rows_below(run)} == {None}


def test_how_long_a_question_takes_whose_replies_were_read_back_is_unknown(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)
    asked: dict[str, Any] = {"systems": ("self-consistency",), "limit": 2, "selection_limit": 1}
    toy_run(log_dir, **asked, max_usd=Decimal("0.09"))
    toy_run(log_dir, **asked)
    assert [one is None for one in seconds(log_dir)] == [False, True]
