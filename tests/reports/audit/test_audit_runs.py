"""The audit of runs as they happen: resumed, retried, killed, cached, old, foreign, several."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.ledger.logs import UNWRITTEN
from podium.harness.ledger.runs import system_runs_below
from podium.reports.audit import as_json, as_text, audit
from podium.reports.audit.audit_report import audit_parts
from tests.harness.ledger.test_ledger import cached, foreign_log
from tests.harness.runs import BOOK, Crew, failing_on, number, sit, steps
from tests.providers import flaky as moody
from tests.providers.scripted import Heard
from tests.reports.audit.audited_run import (
    Json,
    edit_journal,
    edit_log,
    edit_samples,
    failing,
    model_events,
    rows_below,
    said,
    sat,
)


def once(question: str) -> Crew:
    """Return a crew whose clerk fails at a question the first time."""
    tries: list[str] = []

    def speak(heard: Heard) -> str:
        tries.append(heard.last)
        if heard.last == question and tries.count(question) == 1:
            raise RuntimeError("provider down")
        return number(heard)

    return Crew(clerk=speak)


def causes(folder: Path, record: str) -> set[str]:
    """Return why the ledger has more than one of Inspect's totals."""
    return set(audit(folder).table.causes[record])


def test_a_resumed_run_holds_and_each_difference_has_a_name(tmp_path: Path) -> None:
    sat(tmp_path, crew=Crew(clerk=failing_on("Say 2")))
    sat(tmp_path)
    assert failing(tmp_path) == set()
    assert causes(tmp_path, "samples") == {"attempts that were made again"}
    assert "UNEXPLAINED" not in causes(tmp_path, "runs")
    assert not causes(tmp_path, "hooks"), "both processes counted to their end"


def test_what_a_retry_within_the_run_made_the_log_forget_is_named(tmp_path: Path) -> None:
    sat(tmp_path, crew=once("Say 2"), settings={"retry_on_error": 1})
    assert failing(tmp_path) == set()
    assert "calls that no log has" in causes(tmp_path, "samples")
    assert not causes(tmp_path, "runs"), "Inspect's total of the run still has it"


def test_without_a_journal_what_a_retry_forgot_is_a_gap(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"), once("Say 2"), settings={"retry_on_error": 1})
    found = audit(tmp_path)
    assert found.ok
    assert "tokens of failed attempts that no record has" in said(found, "I3")
    assert "I3" in failing(tmp_path, strict=True)


def test_retries_over_http_are_rows_and_refused_ones_cost_nothing(tmp_path: Path) -> None:
    moody.sat(tmp_path, ["q1: 429 500 answer", "q2: answer"])
    found = audit(tmp_path)
    assert found.table.counts["attempts"] == found.table.counts["intents"] + 2 == 4
    assert found.table.counts["refused"] == 2
    assert said(found, "I9").startswith("pass")


def test_a_retry_that_the_journal_does_not_have_fails_i9(tmp_path: Path) -> None:
    moody.sat(tmp_path, ["q1: 429 answer"])
    edit_journal(tmp_path, lambda line: None if line["kind"] == "retry" else line)
    assert "the log has 2 attempts, the journal 1" in said(audit(tmp_path), "I9")


def test_a_call_that_got_no_answer_is_a_range_that_a_strict_audit_does_not_accept(
    tmp_path: Path,
) -> None:
    moody.sat(tmp_path, ["q1: die", "q2: answer"])
    found = audit(tmp_path)
    assert found.table.counts["unknown"] == 1
    assert found.table.dollars["live inference"].billed is None
    assert "attempts that may have been billed" in said(found, "I9")
    assert said(audit(tmp_path, strict=True), "I9").startswith("fail")


def test_cache_hits_are_in_the_ledger_and_in_none_of_inspects_totals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    sit(logs, "single:sage", solver=cached(), epochs=2, settings={"max_samples": 1})
    found = audit(logs)
    assert (found.ok, found.table.counts["cached"]) == (True, 4)
    dollars = found.table.dollars["live inference"]
    assert dollars.billed is not None
    assert dollars.listed == 2 * dollars.billed


def test_graders_are_a_scope_of_their_own(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", ask_grader=True)
    found = audit(tmp_path)
    assert found.ok
    assert set(found.table.dollars) == {"live inference", "live scoring"}


def test_a_grader_that_escaped_the_journal_fails_i4(tmp_path: Path) -> None:
    sat(tmp_path, "single:sage", steps("sage"), ask_grader=True)
    found = audit(tmp_path)
    assert "the log has a call that no journal has" in said(found, "I4")
    assert "hooks" in said(found, "I4")


IN_FLIGHT = ("q4", "clerk")


def killed(folder: Path) -> None:
    """Leave what kill -9 leaves: no header, a sample less, a call without its outcome."""
    for path in folder.glob("*.eval"):
        edit_log(path, lambda name, found: None if name == "header.json" or "q4" in name else found)
    last: list[str] = []

    def cut(line: Json) -> Json | None:
        if line["kind"] == "intent" and (line["sample"]["question"], line["role"]) == IN_FLIGHT:
            last.append(line["call"])
        ended = line["kind"] == "outcome" and line["call"] in last
        return None if ended or line["kind"] in ("totals", "closed") else line

    edit_journal(folder, cut)


def test_a_killed_run_holds_and_what_was_in_flight_is_a_range(tmp_path: Path) -> None:
    sat(tmp_path, settings={"max_samples": 1})
    killed(tmp_path)
    found = audit(tmp_path)
    assert found.ok
    assert (found.table.counts["in flight"], found.table.counts["without event"]) == (1, 2)
    assert said(found, "I3").startswith("not applicable")
    assert causes(tmp_path, "samples") == {"calls that no log has"}
    assert causes(tmp_path, "hooks") == {"processes that were killed"}


def test_a_call_whose_process_lived_on_was_not_in_flight(tmp_path: Path) -> None:
    sat(tmp_path, settings={"max_samples": 1})
    (path,) = tmp_path.glob("*.eval")
    edit_log(path, lambda name, found: None if "q4" in name else found)
    of_q4: set[str] = set()

    def cut(line: Json) -> Json | None:
        if line["kind"] == "intent" and line["sample"]["question"] == "q4":
            of_q4.add(line["call"])
        return None if line["kind"] == "outcome" and line["call"] in of_q4 else line

    edit_journal(tmp_path, cut)
    found = audit(tmp_path)
    assert (found.table.counts["in flight"], found.table.counts["untold"]) == (0, 2)
    rows = [row for row in rows_below(tmp_path) if row.question == "q4"]
    assert {(row.error, row.billable) for row in rows} == {(UNWRITTEN, "unknown")}


def test_a_killed_run_that_was_resumed_holds(tmp_path: Path) -> None:
    sat(tmp_path, settings={"max_samples": 1})
    killed(tmp_path)
    shutil.rmtree(tmp_path / ".eval-set-id", ignore_errors=True)
    sat(tmp_path / "resumed")
    for path in (tmp_path / "resumed").glob("*.eval"):
        shutil.move(path, tmp_path / path.name)
    for path in (tmp_path / "resumed" / "ledger").glob("*/*.jsonl"):
        shutil.move(path, tmp_path / "ledger" / path.parent.name / path.name)
    shutil.rmtree(tmp_path / "resumed")
    found = audit(tmp_path)
    assert found.ok, said(found, "I3")
    assert found.table.counts["in flight"] == 1
    assert found.table.counts["intents"] == 16


def test_an_old_run_passes_and_says_what_it_lacks(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"))
    found = audit(tmp_path)
    assert found.ok
    for name in ("I4", "I14"):
        assert "no journal: the run is older than journals" in said(found, name)


def test_a_log_that_inspect_wrote_alone_can_be_audited(tmp_path: Path) -> None:
    foreign_log(tmp_path)
    found = audit(tmp_path)
    assert found.ok
    assert said(found, "I2").startswith("pass")
    assert "not a run of podium" in said(found, "I13")
    assert found.table.dollars["unlabelled inference"].billed is None
    assert "unlabelled: podium did not run it" in as_text(found)
    assert "older than journals" not in as_text(found)
    assert "no journal: podium did not run it" in said(found, "I4")


def test_one_call_without_a_price_leaves_no_total(tmp_path: Path) -> None:
    prices = {**BOOK.as_json(), "usd_per_mtok": {"scripted/sage": {"input": "2", "output": "10"}}}
    sit(tmp_path, "pair", steps("sage", "clerk"), prices=prices)
    found = audit(tmp_path)
    assert found.table.dollars["live inference"].billed is None
    assert found.table.dollars["live inference"].listed is None
    assert "calls without a price of scripted/clerk" in said(found, "I6")
    assert "I6" in failing(tmp_path, strict=True)


def test_a_price_that_was_written_down_and_that_no_book_has_fails_i6(tmp_path: Path) -> None:
    prices = {**BOOK.as_json(), "usd_per_mtok": {"scripted/sage": {"input": "2", "output": "10"}}}
    sat(tmp_path, prices=prices)
    assert "and no price book has its price" in said(audit(tmp_path), "I6")


def test_a_constant_count_over_many_prompts_fails_i11(tmp_path: Path) -> None:
    from tests.harness.runs import Exam

    sat(tmp_path, "single:sage", steps("sage"), exam=Exam(size=24))

    def forty(usage: Json) -> None:
        usage["input_tokens"] = usage["total_tokens"] = 40

    edit_samples(tmp_path, lambda sample: forty(model_events(sample)[0]["output"]["usage"]))
    found = {"input": 40, "total_reported": 41}
    edit_journal(
        tmp_path,
        lambda line: (
            {**line, "usage": {**line["usage"], **found}}
            if line["kind"] == "outcome"
            else {**line, "prompt_bytes": sum(map(ord, line["call"]))}
            if line["kind"] == "intent"
            else line
        ),
    )
    assert "24 of 24 distinct prompts have 40 input tokens" in said(audit(tmp_path), "I11")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return twenty sittings in directories of their own."""
    folder = tmp_path_factory.mktemp("several")
    sat(folder / "0")
    for number_ in range(1, 20):
        shutil.copytree(folder / "0", folder / str(number_))
    edit_samples(folder / "7", lambda sample: sample["model_usage"].clear())
    return folder


def test_the_sitting_at_fault_is_named_among_several(several: Path) -> None:
    found = audit(several)
    assert found.table.counts["sittings"] == 20
    (verdict,) = [one for one in found.verdicts if one.status == "fail"]
    assert verdict.invariant == "I2"
    assert {fault.task for fault in verdict.faults} == {"7/numbers pair"}
    assert as_json(found) == as_json(audit(several))


@pytest.mark.slow
def test_several_processes_find_what_one_finds(several: Path) -> None:
    system_runs = system_runs_below(several)
    assert list(audit_parts(system_runs, large=0)) == list(audit_parts(system_runs))


def test_the_command_prints_the_table_first_and_exits_1_on_a_failure(
    several: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(several / "0")]) == 0
    assert capsys.readouterr().out.startswith("RECONCILIATION of 1 system run: 1 log, 1 journal\n")
    out = tmp_path / "audit.json"
    assert main(["audit", str(several / "7"), "--json", str(out)]) == 1
    text = capsys.readouterr().out
    assert "I2 calls = sample: 8 faults" in text
    data = json.loads(out.read_bytes())
    assert (data["schema"], data["ok"]) == ("podium-audit-1", False)
    assert len(data["invariants"]) == 18


@pytest.mark.parametrize("damage", ["no directory", "no log", "cut", "no log at all"])
def test_what_the_user_can_mend_is_one_sentence_and_exit_2(
    several: Path, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    if damage in ("cut", "no log at all"):
        shutil.copytree(several / "0", run)
    if damage == "no log":
        run.mkdir()
    for path in run.glob("*.eval"):
        path.write_bytes(path.read_bytes()[:-300] if damage == "cut" else b"hello")
    assert main(["audit", str(run)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("podium: ")
    assert message.count("\n") == 1


OFFLINE = """
import socket, sys

def refuse(*args, **kwargs):
    raise RuntimeError("the audit asked the network")

socket.socket.connect = refuse
socket.getaddrinfo = refuse
from podium.cli import main
sys.exit(main(["audit", sys.argv[1], "--json", sys.argv[2]]))
"""


@pytest.mark.slow
def test_an_audit_needs_no_network_and_no_data(several: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    command = [sys.executable, "-c", OFFLINE, str(several / "0"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == as_json(audit(several / "0"))
