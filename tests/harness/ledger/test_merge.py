"""The ledger's rows: every attempt once, whether journal, log or both have it."""

from decimal import Decimal
from pathlib import Path

import pytest

from podium.harness.ledger.call import TEMPLATE, canonical
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import system_runs_below
from tests.harness.ledger.test_ledger import cached
from tests.harness.runs import Crew, facts, failing_on, number, sit, steps
from tests.providers.scripted import Heard
from tests.reports.audit.audited_run import (
    edit_journal,
    edit_samples,
    model_events,
    of_kind,
    rows_below,
    sat,
)


def test_each_call_is_one_row_that_both_records_know(tmp_path: Path) -> None:
    (log,) = sat(tmp_path)
    rows = rows_below(tmp_path)
    assert len(rows) == 8
    assert all(row.event and row.log and row.journal for row in rows)
    first = [row for row in rows if row.question == "q1"]
    assert [(row.role, row.step, row.scope) for row in first] == [
        ("sage", "step 1: sage", "inference"),
        ("clerk", "step 2: clerk", "inference"),
    ]
    assert {row.sample for row in rows} == {sample.uuid for sample in log.samples or []}
    assert sum(row.usd or 0 for row in rows) == 4 * Decimal("0.000019")
    assert all(row.usd == row.usd_list == row.usd_low == row.usd_high for row in rows)
    assert all(row.counted and row.billable == "yes" and row.attempt == 1 for row in rows)


def test_an_old_run_without_a_journal_has_the_same_rows_but_for_the_journal(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"))
    rows = rows_below(tmp_path)
    assert len(rows) == 8
    assert {row.journal for row in rows} == {None}
    assert all(row.call == row.event for row in rows)
    assert sum(row.usd or 0 for row in rows) == 4 * Decimal("0.000019")


def test_an_old_run_is_priced_as_its_workers_were_served(tmp_path: Path) -> None:
    flex = facts("pair")["workers"]
    flex["sage"]["args"] = {"service_tier": "flex"}
    sit(tmp_path, "pair", steps("sage", "clerk"), workers=flex)
    rows = rows_below(tmp_path)
    assert {(row.role, row.service) for row in rows} == {("sage", "flex"), ("clerk", "standard")}
    assert {row.usd for row in rows if row.role == "sage"} == {None}, "the book has no factor"
    assert all(row.usd_list for row in rows)


def test_rows_come_in_one_order_and_read_twice_are_the_same_bytes(tmp_path: Path) -> None:
    sat(tmp_path, epochs=2)
    (files,) = system_runs_below(tmp_path)
    once, again = ([canonical(row.as_json()) for row in rows_of(files)] for _ in range(2))
    assert once == again
    order = [(row.question, row.epoch, row.started) for row in rows_of(files)]
    assert order == sorted(order)


def test_a_call_without_an_outcome_is_a_range(tmp_path: Path) -> None:
    sat(tmp_path)
    uuids: list[str] = []

    def killed(line: dict[str, object]) -> None:
        uuids.append(str(line["event"]))

    edit_journal(tmp_path, of_kind("outcome", killed))
    edit_journal(tmp_path, lambda line: None if line["kind"] in ("totals", "closed") else line)

    def lost(sample: dict[str, object]) -> None:
        for event in model_events(sample):
            if event["uuid"] in uuids:
                sample["events"].remove(event)  # pyright: ignore

    edit_samples(tmp_path, lost)
    (row,) = [row for row in rows_below(tmp_path) if row.billable == "unknown"]
    assert (row.usd, row.usd_list, row.usd_low) == (None, None, 0)
    assert row.usd_high is None, "the request set no limit on the reply"
    assert row.error == "in flight when the run was stopped"
    assert row.event is None


def test_a_limit_on_the_reply_bounds_a_call_without_an_outcome(tmp_path: Path) -> None:
    sat(tmp_path, "single:sage", steps("sage"))
    edit_journal(tmp_path, of_kind("outcome", lambda line: None))
    edit_journal(tmp_path, lambda line: {**line, "max_tokens": 100} if "span" in line else line)
    edit_samples(tmp_path, lambda sample: sample["events"].clear())
    (row,) = [row for row in rows_below(tmp_path) if row.billable == "unknown"]
    # "Say 1" has five bytes: at most five tokens and a template's at $2, and at most 100 at $10 a
    # million.
    most = ((5 + TEMPLATE) * 2 + 100 * 10) / Decimal(1_000_000)
    assert (row.usd_low, row.usd_high) == (0, most)


def test_a_failed_call_is_a_row_and_what_it_cost_is_unknown(tmp_path: Path) -> None:
    sat(tmp_path, crew=Crew(clerk=failing_on("Say 2")))
    rows = [row for row in rows_below(tmp_path) if row.question == "q2"]
    assert [(row.role, row.billable, row.counted) for row in rows] == [
        ("sage", "yes", False),
        ("clerk", "unknown", False),
    ]
    assert rows[1].error == "RuntimeError"


def test_a_resumed_run_has_every_attempt_once_and_counts_the_graded_ones(tmp_path: Path) -> None:
    sat(tmp_path, crew=Crew(clerk=failing_on("Say 2")))
    sat(tmp_path)
    (files,) = system_runs_below(tmp_path)
    assert (len(files.logs), len(files.journals)) == (2, 2)
    rows = list(rows_of(files))
    assert len(rows) == len({row.call for row in rows}) == 10
    assert [row.counted for row in rows].count(False) == 2


def test_calls_that_a_retry_within_the_run_made_the_log_forget_are_in_the_ledger(
    tmp_path: Path,
) -> None:
    tries: list[str] = []

    def once(heard: Heard) -> str:
        tries.append(heard.last)
        if heard.last == "Say 2" and tries.count("Say 2") == 1:
            raise RuntimeError("provider down")
        return number(heard)

    sat(tmp_path, crew=Crew(clerk=once), settings={"retry_on_error": 1})
    rows = [row for row in rows_below(tmp_path) if row.question == "q2"]
    forgotten = [row for row in rows if row.event is None]
    assert [(row.role, row.counted) for row in forgotten] == [("sage", False)]
    assert len(rows) == 4


def test_a_cache_read_is_paid_nothing_and_keeps_its_list_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    sit(logs, "single:sage", solver=cached(), epochs=2, settings={"max_samples": 1})
    reads = [row for row in rows_below(logs) if row.cache == "read"]
    assert len(reads) == 4
    assert {(row.usd, row.usd_list, row.billable) for row in reads} == {
        (Decimal(0), Decimal("0.000014"), "no")
    }


def test_grading_is_a_scope_of_its_own(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", ask_grader=True)
    scopes = [row.scope for row in rows_below(tmp_path) if row.question == "q1"]
    assert sorted(scopes) == ["inference", "scoring"]


def test_two_systems_in_one_directory_are_two_sittings(tmp_path: Path) -> None:
    sat(tmp_path, "pair")
    sat(tmp_path, "single:sage", steps("sage"))
    found = system_runs_below(tmp_path)
    assert [files.task for files in found] == ["numbers pair", "numbers single:sage"]
    assert [len(list(rows_of(files))) for files in found] == [8, 4]


def test_a_journal_without_any_log_is_a_sitting_too(tmp_path: Path) -> None:
    sat(tmp_path)
    for path in tmp_path.glob("*.eval"):
        path.unlink()
    rows = rows_below(tmp_path)
    assert len(rows) == 8
    assert {(row.question, row.log, row.counted) for row in rows} == {
        (f"q{n}", None, False) for n in range(1, 5)
    }
    assert all(row.usd is None for row in rows), "no file says what the book's prices were"
