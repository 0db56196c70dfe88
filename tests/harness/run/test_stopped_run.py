"""A run that is stopped by SIGTERM, SIGHUP and Ctrl-C, and gone on with: nothing is bought twice.

The provider's bill is the truth. What signals do to a single call is test_shutdown.py.
"""

import signal
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podium.harness.ledger.runs import calls_of
from tests.harness.billed_run import BilledRun, billed, default_signals

pytestmark = pytest.mark.slow

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
QUESTIONS, WORKERS = 8, 4
NEEDED = QUESTIONS * (WORKERS + 1)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run that was stopped three times, and finished."""

    run: BilledRun
    codes: list[int]
    said: list[str]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stopped]:
    """Stop a run by each signal with calls in flight, and let it finish."""
    with billed(tmp_path_factory.mktemp("stopped"), QUESTIONS, WORKERS) as run:
        codes, said = list[int](), list[str]()
        for number in SIGNALS:
            codes.append(run.stopped(number, after=3))
            said.append(run.said)
        codes.append(run.finished())
        yield Stopped(run, codes, said)


def test_its_exit_code_names_the_signal(stopped: Stopped) -> None:
    assert stopped.codes == [*(128 + number for number in SIGNALS), 0]


def test_it_says_in_a_line_what_it_waits_for(stopped: Stopped) -> None:
    for number, said in zip(SIGNALS, stopped.said, strict=True):
        (line,) = [one for one in said.splitlines() if "no new calls start" in one]
        assert line.startswith(f"podium: {number.name}:")
        assert "Traceback" not in said


def test_no_reply_is_bought_twice(stopped: Stopped) -> None:
    assert (stopped.run.bought_twice, stopped.run.requests) == (0, NEEDED)


def test_the_ledger_has_the_providers_dollars_and_no_bound_above(stopped: Stopped) -> None:
    paid = stopped.run.paid
    assert paid.exact == stopped.run.true_usd
    assert paid.unknown == 0


def test_its_audit_finds_no_fault(stopped: Stopped) -> None:
    assert stopped.run.failing == {}


def test_a_second_signal_ends_it_and_bounds_only_what_was_sent(tmp_path: Path) -> None:
    with billed(tmp_path, QUESTIONS, WORKERS, wait_s=60) as run:
        process = run.start()
        run.await_requests(WORKERS * 2, process)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # signals that come together are one
        process.send_signal(signal.SIGTERM)
        assert run.ended(process) == 128 + signal.SIGTERM
    unknown = [row for row in run.rows if row.billable == "unknown"]
    assert len(unknown) == run.requests
    for path in run.log_dir.glob("ledger/*/*.jsonl"):
        assert all(call.outcome for call in calls_of(path)), "how each ended is written"


def test_under_nohup_it_goes_on_after_a_hangup(tmp_path: Path) -> None:
    def nohup() -> None:
        default_signals()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with billed(tmp_path, questions=1, workers=1) as run:
        assert run.stopped(signal.SIGHUP, after=1, prepare=nohup) == 0
