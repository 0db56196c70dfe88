"""Did a conductor learn to orchestrate: what its plans have in common, and when they collapsed."""

import json
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.plan_habits import collapse_of, plan_habits
from podium.harness.workflow import Step, Workflow
from podium.reports.report import report_of
from podium.reports.training_runs import METRICS, collapse, training_runs
from tests import ROOT

CHAIN = Workflow((Step("scholar"), Step("abacus", reads=(0,)))).shape
RELEASED = sorted((ROOT / "conductor" / "released").glob("*/log/seed-*"))


def test_habits_are_counted_by_whom_a_plan_asks_and_who_reads_whom() -> None:
    apart = Workflow((Step("scholar"), Step("abacus"))).shape
    habits = plan_habits(["sage"] * 2 + [CHAIN, apart])
    assert habits is not None
    assert (habits.plans, habits.one_step, habits.distinct) == (4, 0.5, 3)
    assert (habits.commonest, habits.workers["sage"]) == (0.5, 2 / 6)
    assert habits.worker_entropy == pytest.approx(1.585, abs=0.001)
    assert plan_habits([]) is None


@pytest.mark.parametrize(
    ("shapes", "collapsed"),
    [
        (["sage"] * 20, "one worker (sage) and one step"),
        (["sage", "sage, sage(1)"] * 10, "one worker (sage)"),
        (["sage", "abacus", "swift"] * 7, "one step"),
        ([CHAIN] * 20, "one plan"),
        ([CHAIN, "scribe"] * 10, "two plans"),
        ([CHAIN, "scribe", "sage"] * 7, ""),
        (["sage"] * 19, ""),
    ],
)
def test_what_plans_have_collapsed_to(shapes: list[str], collapsed: str) -> None:
    habits = plan_habits(shapes)
    assert habits is not None
    assert habits.collapse == collapsed


def line(step: int, **found: Any) -> tuple[int, dict[str, Any]]:
    return step, {"workers": {"a": 0.5, "b": 0.5}, "steps": 1.6, **found}


def test_a_training_says_from_which_step_on_its_plans_are_alike() -> None:
    alone = {"workers": {"a": 0.99, "b": 0.01}, "steps": 1.0}
    assert collapse([line(0), line(10, **alone), line(20, **alone)]) == (
        10,
        "one worker (a) and one step",
    )
    assert collapse([line(0, **alone), line(10)]) is None, "it found its way out"
    assert collapse([line(0), line(10, one_step=0.2, distinct=2.0)]) == (10, "two plans")
    assert collapse_of({}, 0.0, None) == ""


@pytest.mark.slow
def test_a_plot_of_a_training_that_collapsed_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"step": step, "reward": 0.5, "validation": {"correct": 0.5, "questions": 9, **found}}
        for step, found in (line(0), line(10, workers={"a": 1.0}))
    ]
    (tmp_path / METRICS).write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert main(["train", "--plot", str(tmp_path), "--to", str(tmp_path / "curve.png")]) == 0
    assert "has collapsed to one worker (a), from step 10 on." in capsys.readouterr().out


@pytest.mark.parametrize("folder", RELEASED, ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_our_released_trainings_kept_several_workers(folder: Path) -> None:
    (run,) = training_runs([folder])
    assert collapse([*run.validations]) is None


@pytest.mark.slow
def test_the_two_plans_of_the_cost_aware_conductor_ring(tmp_path: Path) -> None:
    """What was found by hand on 2026-11-22: one chain for all but code, scribe alone for code."""
    words = ["run", "--suite", "practice-choice", "--suite", "practice-integer", "--limit", "20"]
    words += ["--pool", "rehearsal", "--time-scale", "0", "--display", "none"]
    assert main([*words, "--system", "conductor@cost-aware", "--log-dir", str(tmp_path)]) == 0
    for row in report_of([tmp_path]).rows:
        assert (row.distinct_plans, row.one_step_pct, row.commonest_plan_pct) == (1, 0.0, 100.0)
        assert row.worker_entropy == 1.0
        assert "its 20 plans have collapsed to one plan" in row.notes
