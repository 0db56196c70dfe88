"""A run that is killed twenty times with SIGKILL loses no call and buys none twice.

The provider's own file of what reached it is the truth that journals and logs are held to.
"""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample, read_eval_log

from podium.harness.ledger.join import journal_calls, rows_of
from podium.harness.ledger.journal import FOLDER, read_chain
from podium.harness.ledger.logs import newest_logs
from podium.harness.ledger.runs import CallRecord, calls_of, system_runs_below
from podium.harness.ledger.system_runs import spent
from podium.harness.prices import read_book
from podium.reports.audit import audit
from tests import ROOT
from tests.harness.toy_run import PRICES, calls, toy_pool

pytestmark = pytest.mark.slow

KILLED = [sys.executable, "-m", "tests.harness.run.killed_run"]
TOY = [sys.executable, "-m", "tests.harness.toy_run"]
KILLS, SEED = 20, 7
AT_ONCE = 3
"""Calls that may be in flight when a sitting is killed: one worker sits each task."""
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Killed:
    """A run that was killed and finished, and what its journals say."""

    log_dir: Path
    journals: Sequence[Path]
    calls: Sequence[CallRecord]

    @property
    def asked(self) -> Sequence[CallRecord]:
        """The calls that went out; the others were read from the store."""
        return [one for one in self.calls if not (one.outcome and one.outcome["from_store"])]

    def samples(self, paths: Sequence[Path]) -> list[EvalSample]:
        """Return the samples of some logs."""
        return [one for path in paths for one in read_eval_log(str(path)).samples or []]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Kill a run at random points, let it finish, and read its journals."""
    log_dir = tmp_path_factory.mktemp("killed") / "run"
    toy_pool(log_dir, connections=AT_ONCE)
    Path(f"{log_dir}.slow").write_text("0.03")
    subprocess.run([*KILLED, str(log_dir), str(KILLS), str(SEED)], cwd=ROOT, check=True)
    journals = sorted((log_dir / FOLDER).glob("*/*.jsonl"))
    return Killed(log_dir, journals, [call for path in journals for call in calls_of(path)])


def events(samples: Sequence[EvalSample]) -> dict[str, ModelEvent]:
    """Return the model events of samples that are over, each once, by uuid."""
    found = [event for sample in samples for event in sample.events]
    return {
        event.uuid or "": event
        for event in found
        if isinstance(event, ModelEvent) and not event.pending
    }


def test_every_sitting_was_killed(killed: Killed) -> None:
    ended = Path(f"{killed.log_dir}.sittings").read_text().split("\n")[:-1]
    assert [line.split()[0] for line in ended] == ["killed"] * KILLS
    assert sum(line.split()[2] != "0" for line in ended) >= 15, "with calls in flight"


def test_every_call_that_reached_the_provider_was_written_down_before(killed: Killed) -> None:
    intents = Counter(
        f"{call.intent['role']} {call.intent['sample']['question']}" for call in killed.asked
    )
    sent = Counter(calls(killed.log_dir))
    assert not sent - intents, "a call was dispatched that no journal knows"
    unsent = intents.total() - sent.total()
    assert unsent <= sum(call.outcome is None for call in killed.asked)


def test_no_reply_whose_outcome_is_written_was_bought_twice(killed: Killed) -> None:
    read = Counter(
        f"{call.intent['role']} {call.intent['sample']['question']}"
        for call in killed.asked
        if call.outcome
    )
    served = Counter(calls(killed.log_dir, "end"))
    finals = killed.samples(newest_logs([killed.log_dir], recursive=False))
    exam = {str(sample.id) for sample in finals}
    asked = (call.intent for call in killed.asked)  # one may have been kept without its outcome
    names = {f"{intent['role']} {intent['sample']['question']}" for intent in asked}
    needed = Counter({name: 5 if name.split()[1] in exam else 1 for name in names})
    assert not read - needed, "five for an answer, one to choose the worker"
    stored = needed.total() - read.total()
    assert needed.total() == 2 * 3 + 12 * 5
    assert 0 <= stored <= KILLS, "kept, and killed before its line was written"
    unread = served - read
    assert not read - served
    assert unread.total() <= sum(call.outcome is None for call in killed.asked), "and named"


def test_a_call_without_an_outcome_was_in_flight_when_its_process_died(killed: Killed) -> None:
    for path in killed.journals:
        every = journal_calls(path, read_book("rehearsal"))
        without = [calls for one, calls in every if one.outcome is None]
        assert len(without) <= AT_ONCE, "more than could be in flight"
        assert all(call.billable == "unknown" for calls in without for call in calls)
    known = [call for call in killed.asked if call.outcome]
    assert 0 <= len(calls(killed.log_dir, "end")) - len(known) <= len(killed.asked) - len(known)


def test_every_event_of_every_log_is_one_calls(killed: Killed) -> None:
    logged = events(killed.samples(sorted(killed.log_dir.glob("**/*.eval"))))
    by_span = {call.intent["span"]: call for call in killed.calls}
    assert len(by_span) == len(killed.calls)
    for uuid, event in logged.items():
        outcome = by_span[event.span_id or ""].outcome
        assert outcome is None or outcome["event"] == uuid, "killed between its event and its line"
    ended = [call.outcome["event"] for call in killed.calls if call.outcome]
    assert len(set(ended)) == len(ended) > 60


def test_no_question_paid_for_a_call_twice(killed: Killed) -> None:
    finals = killed.samples(newest_logs([killed.log_dir], recursive=False))
    by_sample = Counter(call.intent["sample"]["uuid"] for call in killed.calls)
    assert len(finals) == 12
    for sample in finals:
        assert sample.error is None
        assert len(events([sample])) == by_sample[sample.uuid] == 5


def test_the_ledger_has_a_row_for_every_call_and_none_beside_them(killed: Killed) -> None:
    rows = [row for files in system_runs_below(killed.log_dir) for row in rows_of(files)]
    assert len(rows) == len(killed.calls)
    assert all(row.journal for row in rows)
    unknown = [row for row in rows if row.billable == "unknown"]
    logged = events(killed.samples(sorted(killed.log_dir.glob("**/*.eval"))))
    in_logs = {event.span_id for event in logged.values()}
    lost = [call for call in killed.calls if call.outcome is None]
    assert len(unknown) == sum(call.intent["span"] not in in_logs for call in lost) > 0
    assert all(row.usd is None and row.usd_low == 0 for row in unknown)
    replayed = [row for row in rows if row.from_store]
    assert len(replayed) == len(killed.calls) - len(killed.asked) > 0
    assert {(row.billable, row.usd, row.usd_list) for row in replayed} == {("no", 0, CENT)}
    assert sum(row.usd or 0 for row in rows) == CENT * (len(rows) - len(unknown) - len(replayed))


def test_what_is_spent_covers_what_was_billed(killed: Killed, tmp_path: Path) -> None:
    prices = tmp_path / "book.toml"
    prices.write_text(PRICES)
    assert spent(killed.log_dir, read_book(str(prices))) == CENT * len(killed.asked)
    assert CENT * len(killed.asked) >= CENT * len(calls(killed.log_dir))


def test_an_audit_finds_no_fault_with_what_was_killed_and_recovered(killed: Killed) -> None:
    assert list(killed.log_dir.glob("*-recovered.eval")), "Inspect kept no half-asked question"
    found = audit(killed.log_dir)
    assert [one.faults for one in found.verdicts if one.status == "fail"] == []


def test_the_chain_of_every_journal_holds(killed: Killed) -> None:
    assert [read_chain(path).faults for path in killed.journals] == [()] * len(killed.journals)


def test_a_call_that_outlasts_the_grace_period_has_an_outcome_and_a_bound(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=AT_ONCE)
    Path(f"{log_dir}.slow").write_text("30")
    command = [*TOY, str(log_dir), "--grace", "0.5"]
    apart: dict[str, Any] = {"start_new_session": True, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, **apart) as process:
        end = time.monotonic() + 60
        while len(calls(log_dir)) < AT_ONCE and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) != 0
    (path,) = (log_dir / FOLDER).glob("*/*.jsonl")
    ended = [call.outcome and call.outcome["error"] for call in calls_of(path)]
    assert ended == ["CancelledError"] * AT_ONCE
    every = journal_calls(path, read_book("rehearsal"))
    assert [call.billable for _, calls in every for call in calls] == ["unknown"] * AT_ONCE
