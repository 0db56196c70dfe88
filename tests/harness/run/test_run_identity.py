"""What an experiment is known by: content, not paths; and what a refused run leaves behind."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.model_judge import regrade_dir
from podium.harness.run.experiment import lock_experiment, read_experiment
from tests.harness.toy_run import Toy, calls, toy_pool, toy_run


def test_a_moved_experiment_is_the_same_experiment_the_oracle_included(tmp_path: Path) -> None:
    log_dir, moved = tmp_path / "run", tmp_path / "else" / "where"
    pool = toy_pool(log_dir, label="live")
    systems = ("single:ada", "random-worker")
    toy_run(log_dir, systems=systems, limit=3)
    moved.parent.mkdir()
    log_dir.rename(moved)
    before = len(calls(log_dir))
    assert toy_run(moved, systems=systems, pool=str(pool)).finished
    assert len(calls(log_dir)) == before


def test_the_oracles_plans_are_named_below_the_log_directory_and_grow_with_it(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    words = ["--suite", "practice-choice", "--display", "none", "--log-dir", str(log_dir)]
    assert main(["run", *words, "--system", "oracle", "--limit", "1"]) == 0
    assert main(["run", *words, "--system", "random-worker", "--limit", "2"]) == 0
    moved = tmp_path / "moved"
    log_dir.rename(moved)
    words[-1] = str(moved)
    assert main(["run", *words, "--system", "oracle"]) == 0
    system_runs, _ = load_runs([moved])
    sat = {one.facts.system: [attempt.value for attempt in one.attempts] for one in system_runs}
    assert {system: len(values) for system, values in sat.items()} == {
        "oracle": 2,
        "random-worker": 2,
    }
    assert all(value is not None for values in sat.values() for value in values)
    (oracle,) = [one for one in system_runs if one.facts.system == "oracle"]
    assert oracle.facts.args == {"plans": "oracle/practice-choice.json"}
    samples = [
        sample.uuid
        for log in list_eval_logs(str(moved))
        for sample in read_eval_log(log).samples or []
        if read_eval_log(log, header_only=True).eval.task.endswith("oracle")
    ]
    assert len(set(samples)) == 2


def test_a_pool_file_may_be_spelled_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir = tmp_path / "run"
    pool = toy_pool(log_dir)
    toy_run(log_dir, limit=2)
    monkeypatch.chdir(tmp_path)
    assert toy_run(log_dir, limit=2, pool=pool.name).finished
    assert len(calls(log_dir)) == 2


def test_another_price_book_is_another_experiment(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=2)
    book = tmp_path / "run-prices.toml"
    book.write_text(book.read_text().replace('"100"', '"200"'))
    with pytest.raises(UserError, match="its book_sha256 changed"):
        toy_run(log_dir, limit=2)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"limit": 2}, "--limit 4; leave --limit out or raise it", id="limit"),
        pytest.param(
            {"limit": 4, "epochs": 1}, "it has 2 epochs of toy, not 1; leave --epochs", id="epochs"
        ),
    ],
)
def test_an_experiment_never_shrinks(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=4, epochs=2)
    with pytest.raises(UserError) as refusal:
        toy_run(log_dir, None, **changes)
    assert reason in str(refusal.value)


def test_what_is_left_out_is_as_the_experiment_has_it(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=2, epochs=2, seed=7)
    assert toy_run(log_dir, systems=("single:bob",)).finished
    assert Counter(calls(log_dir)) == {
        f"{worker} eval-{n}": 2 for worker in ("ada", "bob") for n in range(2)
    }


@pytest.mark.parametrize("scale", ["-1", "nan", "inf"])
def test_a_refused_run_leaves_no_experiment_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scale: str
) -> None:
    log_dir = tmp_path / "run"
    words = ["run", "--suite", "practice-choice", "--system", "single:sage", "--log-dir"]
    with pytest.raises(SystemExit) as refused:
        main([*words, str(log_dir), "--time-scale", scale])
    assert refused.value.code == 2
    assert f"--time-scale: {scale!r} is not a number from 0" in capsys.readouterr().err
    assert not log_dir.exists()


def test_two_runs_in_one_directory_are_one_too_many(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=1)
    with (
        lock_experiment(log_dir),
        pytest.raises(UserError, match="Another podium run is writing to"),
    ):
        toy_run(log_dir, limit=1)
    assert toy_run(log_dir, limit=1).finished


def test_a_best_single_on_the_train_split_is_a_choice_in_hindsight(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, systems=("best-single",), split="train").finished
    experiment = read_experiment(log_dir)
    assert experiment is not None
    row = next(row for row in experiment.entries if row.system == "best-single")
    assert row.args["chosen_on"] == "hindsight"
    assert not row.reference_allowed


def test_after_a_new_scorer_has_graded_all_the_run_can_be_resumed(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=2)
    newer = Toy(version="2-A")
    regrade_dir(log_dir, {"toy": newer}, None, everything=True)
    assert toy_run(log_dir, newer, limit=2).finished
    assert len(calls(log_dir)) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(
            "run --suite aime25 --system moa-lite --log-dir",
            "a replayed reply is never used for another request",
            id="other-system",
        ),
        pytest.param(
            "run --suite practice-integer --system single --log-dir",
            "use the suite and the prompt that were recorded",
            id="other-exam",
        ),
    ],
)
def test_a_recorded_pool_says_what_it_cannot_answer_in_a_process_of_its_own(
    tmp_path: Path, recorded_aime25: str, words: str, reason: str
) -> None:
    start = "import sys; from podium.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *words.split(), str(tmp_path / "run")]
    done = subprocess.run(
        [*command, "--pool", recorded_aime25], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("run --suite practice-choice --system single:sage --log-dir {file}", id="run"),
        pytest.param("record {logs} --out {file}/tape.jsonl", id="record"),
        pytest.param("report {logs} --out {file}", id="report"),
    ],
)
def test_a_path_that_cannot_be_written_is_named_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    log_dir = tmp_path / "run"
    words_of_run = "run --suite practice-choice --system single:sage --limit 1 --display none"
    main([*words_of_run.split(), "--log-dir", str(log_dir)])
    capsys.readouterr()
    blocked = tmp_path / "a-file"
    blocked.write_text("mine")
    text = words.format(file=blocked, logs=log_dir)
    assert main(text.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("podium: ")
    assert said.count("\n") == 1
    assert os.fspath(blocked) in said
    assert blocked.read_text() == "mine"
