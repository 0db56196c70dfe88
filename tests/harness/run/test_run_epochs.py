"""Epochs belong to a suite: its usual number, one that may grow, and what multiplies by it."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import system_totals
from podium.harness.run.experiment import FILE, read_experiment
from podium.harness.suite import refuse_judged_plans
from podium.reports.derived import compare
from tests.harness.toy_run import CONTROLS, calls, toy_pool, toy_run
from tests.suites.toy_suites import JudgedToy, VariedToy, asked, samples

BOTH: dict[str, Any] = {"more": (VariedToy(),), "suites": ("toy", "varied"), "limit": 2}


def epochs_of(log_dir: Path) -> dict[str, int]:
    experiment = read_experiment(log_dir)
    assert experiment is not None
    return dict(experiment.epochs)


def test_a_suite_is_asked_as_often_as_is_usual_for_it(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, **BOTH).finished
    assert epochs_of(log_dir) == {"toy": 1, "varied": 4}
    assert Counter(calls(log_dir)) == {f"ada eval-{n}": 5 for n in range(2)}


def test_each_epoch_asks_its_own_form_and_is_graded_by_it(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, VariedToy(), limit=1).finished
    forms = {
        one.epoch: (asked(one), (one.scores or {})["podium"].value) for one in samples(log_dir)
    }
    plain = "Question eval-0 is what?"
    assert forms == {
        1: (plain, 1.0),
        2: (f"{plain} (epoch 2)", 0.0),
        3: (f"{plain} (epoch 3)", 1.0),
        4: (f"{plain} (epoch 4)", 0.0),
    }


def test_epochs_named_for_one_suite_leave_the_others_as_they_are(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, **BOTH)
    assert toy_run(log_dir, more=(VariedToy(),), suites=("toy",), limit=2, epochs=3).finished
    assert epochs_of(log_dir) == {"toy": 3, "varied": 4}
    assert toy_run(log_dir, **BOTH).finished
    assert Counter(calls(log_dir)) == {f"ada eval-{n}": 3 + 4 for n in range(2)}


def test_more_epochs_ask_only_the_new_ones(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, VariedToy(), limit=2, epochs=1).finished
    first = {one.id: one.uuid for one in samples(log_dir)}
    assert toy_run(log_dir, VariedToy(), epochs=4).finished
    assert Counter(calls(log_dir)) == {f"ada eval-{n}": 4 for n in range(2)}
    assert {one.id: one.uuid for one in samples(log_dir) if one.epoch == 1} == first


def test_epochs_left_out_are_those_of_the_experiment_and_not_the_usual_ones(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, VariedToy(), limit=2, epochs=2)
    assert toy_run(log_dir, VariedToy(), systems=("single:bob",)).finished
    assert Counter(calls(log_dir)) == {
        f"{worker} eval-{n}": 2 for worker in ("ada", "bob") for n in range(2)
    }


def test_a_suite_never_loses_an_epoch_and_the_refusal_names_it(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, **BOTH)
    with pytest.raises(UserError) as refusal:
        toy_run(log_dir, **BOTH, epochs=2)
    assert "it has 4 epochs of varied, not 2; leave --epochs out" in str(refusal.value)
    assert len(calls(log_dir)) == 2 * 5


@pytest.mark.parametrize("epochs", [0, -1])
def test_no_epochs_are_refused_before_anything_is_written(tmp_path: Path, epochs: int) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    with pytest.raises(UserError, match=f"--epochs must be at least 1, not {epochs}"):
        toy_run(log_dir, epochs=epochs)
    assert not log_dir.exists()


def test_an_older_experiment_with_one_number_for_all_suites_can_be_resumed(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=2, epochs=2)
    older = json.loads((log_dir / FILE).read_bytes())
    older["epochs"] = 2
    del older["prompts"]
    (log_dir / FILE).write_text(json.dumps(older))
    assert epochs_of(log_dir) == {"toy": 2}
    assert toy_run(log_dir).finished
    assert len(calls(log_dir)) == 4
    with pytest.raises(UserError, match="it has 2 epochs of toy, not 1"):
        toy_run(log_dir, epochs=1)


@pytest.mark.parametrize(
    ("epochs", "reason"),
    [
        pytest.param({}, "it has none for toy", id="none"),
        pytest.param({"toy": 0}, "field epochs.toy", id="zero"),
        pytest.param("2", "field epochs", id="no-table"),
    ],
)
def test_an_experiment_with_damaged_epochs_is_named(
    tmp_path: Path, epochs: object, reason: str
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=1)
    stored = json.loads((log_dir / FILE).read_bytes())
    (log_dir / FILE).write_text(json.dumps({**stored, "epochs": epochs}))
    with pytest.raises(UserError, match=reason):
        toy_run(log_dir)


def test_the_best_single_worker_is_chosen_in_one_epoch(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, VariedToy(), systems=("best-single",), limit=1).finished
    asked = Counter(call for call in calls(log_dir) if "train" in call)
    assert set(asked.values()) == {1}
    assert epochs_of(log_dir) == {"varied": 4}
    assert epochs_of(log_dir / "selection") == {"varied": 1}


def test_an_exam_is_opened_again_only_while_one_of_its_epochs_is_unasked(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    opened: list[tuple[str, int]] = []
    noting = replace(CONTROLS, opened=lambda _, suite, n: opened.append((suite.name, n)))
    for epochs in (None, None, 5):
        toy_run(log_dir, **BOTH, epochs=epochs, controls=noting)
    first = [("toy", 2), ("varied", 2)]
    assert opened == [*first, *first]


def test_a_report_calls_the_mean_over_epochs_what_it_is(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, **BOTH)
    system_runs, _ = load_runs([log_dir])
    found = {row.suite: row for row in compare(system_runs).rows}
    varied = found["varied"]
    assert (varied.epochs, varied.n_asked, varied.n_graded, varied.accuracy) == (4, 8, 8, 0.5)
    assert (found["toy"].epochs, found["toy"].n_asked) == (1, 2)


def test_an_oracle_cannot_plan_for_questions_that_only_a_model_can_judge() -> None:
    judged, ruled = JudgedToy(), VariedToy()
    refuse_judged_plans(ruled, ruled.load())
    with pytest.raises(
        UserError, match=r"12 of the 12 questions of suite .* need a model as judge"
    ):
        refuse_judged_plans(judged, judged.load())


def test_questions_that_only_a_model_can_judge_are_refused_where_the_pool_has_no_grader(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    with pytest.raises(UserError, match=r"add a \[grader\] table"):
        toy_run(log_dir, JudgedToy(), limit=2)
    assert not log_dir.exists()


def test_a_pool_s_grader_judges_every_epoch_and_costs_no_system_anything(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    pool = toy_pool(log_dir)
    grader = f'[grader]\nmodel = "toy/bob"\nargs = {{ notes = "{log_dir}" }}\n'
    pool.write_text(f"{pool.read_text()}\n{grader}")
    assert toy_run(log_dir, JudgedToy(), limit=2, epochs=2).finished
    assert Counter(calls(log_dir)) == {
        f"{who} eval-{n}": 2 for who in ("ada", "bob") for n in range(2)
    }
    ((system_run,), _) = load_runs([log_dir])
    found = system_totals(system_run)
    assert (found.n_graded, found.calls, found.usd) == (4, 1, Decimal("0.01"))
    assert found.usd_grading == 4 * Decimal("0.01")
    (row,) = compare([system_run]).rows
    assert (row.accuracy, row.knowledge_cutoff) == (1.0, "ada: unknown")
    assert set(json.loads(row.config)) == {"ada", "grader"}
