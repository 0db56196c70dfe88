"""Runs that fail, stop, are killed and grow: finished questions are never asked twice."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import model_roles

from podium.harness.errors import UserError
from podium.harness.ledger.logs import IN_FLIGHT
from podium.harness.ledger.system_runs import load_runs, spent
from podium.harness.ledger.totals import system_totals
from podium.harness.model_judge import regrade_dir
from podium.harness.prices import book_from_json
from podium.harness.run.evaluate import mean_score
from podium.harness.run.experiment import read_experiment
from tests import ROOT
from tests.harness.ledger.ledger_rows import rows_in
from tests.harness.toy_run import Toy, calls, toy_pool, toy_run

COMMAND = [sys.executable, "-m", "tests.harness.toy_run"]


def test_a_second_run_of_the_same_command_asks_nothing(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir).finished
    assert toy_run(log_dir).finished
    assert Counter(calls(log_dir)) == {f"ada eval-{n}": 1 for n in range(12)}


def test_a_run_leaves_no_worker_of_its_own_to_whoever_started_it(tmp_path: Path) -> None:
    before = model_roles()
    toy_pool(tmp_path / "run")
    assert toy_run(tmp_path / "run").finished
    assert model_roles() is before


def test_an_experiment_grows_by_systems_and_questions_and_keeps_what_it_has(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=5)
    toy_run(log_dir, limit=5, systems=("single:bob",))
    outcome = toy_run(log_dir, limit=8, systems=("single:bob",))
    assert outcome.finished
    once = {f"{worker} eval-{n}": 1 for worker in ("ada", "bob") for n in range(8)}
    assert Counter(calls(log_dir)) == once
    assert {log.eval.task: mean_score(log)[0] for log in outcome.logs} == {
        "toy single:ada": 1.0,
        "toy single:bob": 0.0,
    }


def test_a_failed_question_stays_unanswered_and_only_it_is_asked_again(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    broken = Path(f"{log_dir}.broken")
    broken.write_text("eval-3")
    outcome = toy_run(log_dir)
    assert not outcome.finished
    assert len(outcome.trouble) == 1
    assert "the provider is down" in outcome.trouble[0]
    broken.unlink()
    assert toy_run(log_dir).finished
    asked = Counter(calls(log_dir))
    assert {question for question, times in asked.items() if times > 1} == {"ada eval-3"}
    ((system_run,), _) = load_runs([log_dir])
    assert [attempt.value for attempt in system_run.attempts] == [1.0] * 12


@pytest.mark.slow
def test_after_kill_9_the_same_command_asks_no_finished_question_again(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)
    Path(f"{log_dir}.slow").write_text("0.4")
    command = [*COMMAND, str(log_dir)]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        wait_for(lambda: len(calls(log_dir)) >= 5)
        time.sleep(0.2)  # in the middle of the fifth question; the fourth has had time to be logged
        os.killpg(process.pid, signal.SIGKILL)
    finished = calls(log_dir, "end")
    assert 1 <= len(finished) < 12
    Path(f"{log_dir}.slow").unlink()
    subprocess.run(command, cwd=ROOT, check=True)
    asked = Counter(calls(log_dir))
    assert {asked[question] for question in finished} == {1}
    assert Counter(calls(log_dir, "end")) == {f"ada eval-{n}": 1 for n in range(12)}


@pytest.mark.slow
def test_a_call_in_flight_at_kill_9_makes_what_was_paid_unknown(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=2)
    Path(f"{log_dir}.slow").write_text("0.4")
    command = [*COMMAND, str(log_dir)]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        wait_for(lambda: len(calls(log_dir)) >= 5)
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
    begun, finished = len(calls(log_dir)), len(calls(log_dir, "end"))
    Path(f"{log_dir}.slow").unlink()
    subprocess.run(command, cwd=ROOT, check=True)
    ((system_run,), _) = load_runs([log_dir])
    lost = [call for call in rows_in(*system_run.paths) if call.error == IN_FLIGHT]
    assert len(lost) == begun - finished > 0
    assert all(call.usage is None and not call.counted for call in lost)
    found = system_totals(system_run)
    assert found.usd_paid is None
    assert found.usd_at_least == 12 * Decimal("0.01")
    assert (found.n_failed, found.n_graded) == (len(lost), 12)
    book = book_from_json(system_run.facts.prices)
    assert spent(log_dir, book) == (12 + len(lost)) * Decimal("0.01")


@pytest.mark.slow
def test_ctrl_c_leaves_a_state_that_the_same_command_finishes(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)
    Path(f"{log_dir}.slow").write_text("0.4")
    command = [*COMMAND, str(log_dir)]
    apart: dict[str, Any] = {"start_new_session": True, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, **apart) as process:
        wait_for(lambda: len(calls(log_dir)) >= 4)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) != 0
    finished = calls(log_dir, "end")
    Path(f"{log_dir}.slow").unlink()
    subprocess.run(command, cwd=ROOT, check=True)
    asked = Counter(calls(log_dir))
    assert {asked[question] for question in finished} == {1}
    assert len(set(calls(log_dir, "end"))) == 12


def test_max_usd_stops_cleanly_and_a_larger_one_finishes(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)  # one call costs 100 tokens x $100 / Mtok = $0.01
    outcome = toy_run(log_dir, max_usd=Decimal("0.05"))
    assert not outcome.finished
    assert "--max-usd 0.05 is spent" in outcome.trouble[0]
    assert 5 <= len(calls(log_dir)) < 12
    stopped_at = len(calls(log_dir))
    assert not toy_run(log_dir, max_usd=Decimal("0.05")).finished
    assert len(calls(log_dir)) == stopped_at
    assert toy_run(log_dir, max_usd=Decimal("1")).finished
    assert Counter(calls(log_dir, "end")) == {f"ada eval-{n}": 1 for n in range(12)}


def test_best_single_is_chosen_on_train_and_its_calls_are_kept_apart(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, systems=("best-single",)).finished
    experiment = read_experiment(log_dir)
    assert experiment is not None
    assert dict(experiment.entries[0].args) == {"worker": "ada", "chosen_on": "train", "n": 12}
    assert experiment.entries[0].reference_allowed
    system_runs, _ = load_runs([log_dir])
    purposes = Counter((one.facts.purpose, one.facts.split) for one in system_runs)
    assert purposes == {("selection", "train"): 2, ("eval", "eval"): 1}


def test_choosing_the_best_single_does_not_stand_in_for_sitting_the_exam(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, systems=("single", "best-single"), limit=3).finished
    system_runs, _ = load_runs([log_dir])
    sat = {one.facts.system for one in system_runs if one.facts.purpose == "eval"}
    assert sat == {"single:ada", "single:bob", "best-single"}
    assert {f"bob eval-{n}" for n in range(3)} <= set(calls(log_dir))


def test_best_single_without_a_train_split_is_chosen_in_hindsight_and_says_so(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, Toy(splits=("eval",)), systems=("best-single",)).finished
    experiment = read_experiment(log_dir)
    assert experiment is not None
    row = next(row for row in experiment.entries if row.system == "best-single")
    assert row.args["worker"] == "ada"
    assert not row.reference_allowed
    assert any("hindsight" in note for note in row.notes)


@pytest.mark.parametrize(
    ("changes", "suite", "reason"),
    [
        pytest.param({"seed": 1}, Toy(), "its seed is 0, not 1", id="seed"),
        pytest.param({}, Toy(version="2-A"), "its version of toy is '1-A', not '2-A'", id="suite"),
        pytest.param({"split": "train"}, Toy(), "its split is 'eval', not 'train'", id="split"),
    ],
)
def test_another_experiments_directory_is_refused_and_left_alone(
    tmp_path: Path, changes: dict[str, Any], suite: Toy, reason: str
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir)
    before = {path: path.stat().st_mtime_ns for path in log_dir.rglob("*")}
    with pytest.raises(UserError, match="holds a run with other settings") as refusal:
        toy_run(log_dir, suite, **changes)
    assert reason in str(refusal.value)
    assert {path: path.stat().st_mtime_ns for path in log_dir.rglob("*")} == before


def test_a_directory_whose_grader_moved_asks_nobody_again_for_another_suite(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir)
    before = calls(log_dir)
    moved, other = Toy(version="2-A"), Toy()
    other.name = "other"
    with pytest.raises(UserError, match="its version of toy is '1-A', not '2-A'; grade it again"):
        toy_run(log_dir, moved, more=(other,), suites=("other",))
    assert calls(log_dir) == before
    regrade_dir(log_dir, {"toy": moved}, None, everything=True)
    assert toy_run(log_dir, moved, more=(other,), suites=("other",)).finished
    assert Counter(calls(log_dir)[len(before) :]) == {f"ada eval-{n}": 1 for n in range(12)}


def test_another_pool_file_of_the_same_name_is_refused(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    pool = toy_pool(log_dir)
    toy_run(log_dir)
    pool.write_text(pool.read_text() + "\n# changed\n")
    with pytest.raises(UserError, match="its pool_sha256 is"):
        toy_run(log_dir)


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    log_dir.mkdir()
    (log_dir / "thesis.txt").write_text("do not overwrite")
    with pytest.raises(UserError, match="is not empty and holds no podium experiment"):
        toy_run(log_dir)
    assert [path.name for path in log_dir.iterdir()] == ["thesis.txt"]


def wait_for(condition: object, seconds: float = 60.0) -> None:
    """Wait until a condition holds; fail after a while."""
    assert callable(condition)
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the run did not get there"
        time.sleep(0.02)
