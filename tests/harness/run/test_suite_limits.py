"""A suite may have its own number of questions: it grows, never shrinks, and is counted ahead."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.run.experiment import read_experiment
from tests.harness.toy_run import calls, toy_pool, toy_run
from tests.suites.toy_suites import VariedToy

BOTH: dict[str, Any] = {"more": (VariedToy(),), "suites": ("toy", "varied"), "epochs": 1}


def test_each_suite_asks_its_own_number(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, **BOTH, limit=1, suite_limits={"varied": 3}).finished
    assert Counter(calls(log_dir)) == {"ada eval-0": 2, "ada eval-1": 1, "ada eval-2": 1}
    assert toy_run(log_dir, **BOTH, limit=2).finished, "the other suite keeps its number"
    assert Counter(calls(log_dir)) == {"ada eval-0": 2, "ada eval-1": 2, "ada eval-2": 1}
    stored = read_experiment(log_dir)
    assert stored
    assert [stored.limit_of(name) for name in ("toy", "varied")] == [2, 3]
    runs = load_runs([log_dir])[0]
    assert {run.facts.suite: run.asked for run in runs} == {"toy": 2, "varied": 3}


def test_a_number_never_shrinks_and_belongs_to_a_suite_of_the_run(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, **BOTH, limit=1, suite_limits={"varied": 3})
    with pytest.raises(UserError, match="it has 3 questions of varied; leave --suite-limit out"):
        toy_run(log_dir, **BOTH, limit=1, suite_limits={"varied": 2})
    with pytest.raises(UserError, match="--suite-limit other=2: the run asks toy, varied only"):
        toy_run(log_dir, **BOTH, limit=1, suite_limits={"other": 2})


@pytest.mark.slow
def test_a_dry_run_and_shards_count_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "--suite", "practice-integer", "--suite", "practice-choice", "--limit", "2"]
    words += ["--system", "single:sage", "--suite-limit", "practice-choice=4", "--time-scale", "0"]
    assert main([*words, "--log-dir", str(tmp_path / "dry"), "--dry-run"]) == 0
    (total,) = [line for line in capsys.readouterr().out.splitlines() if "total" in line]
    assert total.split()[1:3] == ["6", "6"], "questions left, calls"
    cut = ["--log-dir", str(tmp_path / "cut"), "--shards", "2", "--display", "none"]
    assert main([*words, *cut]) == 0
    runs = load_runs([tmp_path / "cut"])[0]
    assert Counter({run.facts.suite: run.asked for run in runs}) == {
        "practice-integer": 2,
        "practice-choice": 4,
    }
