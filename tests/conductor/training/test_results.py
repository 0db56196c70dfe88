"""What training gave, as docs/training.md and conductor/results show it: what stands in the logs.

Remade by benchmarks/show_training.py; no exam is run here but a toy's.
"""

import json
import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from podium.conductor.checkpoint import RELEASED as FOLDER
from podium.harness.errors import UserError
from tests.benchmarks.reproduce import RELEASED
from tests.benchmarks.show_training import TITLES, pools, show
from tests.benchmarks.targets import scored_systems
from tests.conductor.training.readme_block import (
    PAGE,
    RESULTS,
    block,
    named,
    parted,
    rows,
    section,
)
from tests.conductor.training.training_page import found_seeds, learnt, training_page
from tests.harness.runs import Crew, sit
from tests.reports.small_reports import EXAM, right_up_to

CONFIGS = [one for one in TITLES if (FOLDER / RELEASED[one] / "log").is_dir()]


def test_the_page_shows_what_the_results_say() -> None:
    assert parted(PAGE.read_text())[1] == block()


def test_every_page_is_listed_and_none_names_a_folder_of_the_machine() -> None:
    index = (RESULTS / "README.md").read_text()
    for page in RESULTS.glob("*.md"):
        text = page.read_text()
        assert f"({page.name})" in index or page.name == "README.md"
        assert "@/" not in text
        assert "/best" not in text


@pytest.mark.parametrize("config", CONFIGS)
def test_the_page_of_trainings_says_what_the_released_logs_say(config: str) -> None:
    shown = [
        tuple(row.values())[: len(learnt(seed))]
        for seed, row in zip(seeds(config), of(config), strict=True)
    ]
    assert shown == [learnt(seed) for seed in seeds(config)]
    assert sum(one.released for one in seeds(config)) == 1


def seeds(config: str) -> list:
    return found_seeds(config, FOLDER / RELEASED[config], None)


def of(config: str) -> list:
    text = (RESULTS / "training.md").read_text().partition("## Whom")[0]
    return [row for row in rows(text) if named(row["training"]) == config]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_exam_of_every_released_seed_is_published(config: str) -> None:
    fixed = (RESULTS / "fixed.md").read_text()
    said = section(fixed, f"conductor@{config}")
    (found,) = (part for part in said.split("\n\n") if part.startswith("| seed |"))
    each = rows(found)
    assert [row["seed"] for row in each] == [str(one.seed) for one in seeds(config)]
    (line,) = (
        one
        for one in rows(fixed.partition("\n## ")[0])
        if named(one["system"]) == f"conductor@{config}"
    )
    for name in ("practice-choice", "practice-code", "mean"):
        mean = sum(float(row[name]) for row in each) / len(each)
        assert mean == pytest.approx(float(line[name]), abs=0.11)


def run_of(config: str, seed: int, runs: Path) -> Path:
    """Make a run's folder of a released log, with two calls and two plans."""
    run = runs / f"{config}-seed-{seed}"
    shutil.copytree(FOLDER / RELEASED[config] / "log" / f"seed-{seed}", run)
    ledger = run / "ledger" / "ledger" / "rewards"
    ledger.mkdir(parents=True)
    lines = [{"kind": "intent"}, {"kind": "outcome", "usd": "0.25"}] * 2
    (ledger / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    plans = [
        {"step": 1, "suite": "practice-code", "plan": [["sage", []]]},
        {"step": 120, "suite": "practice-code", "plan": [["scribe", []], ["abacus", [0]]]},
        {"step": 120, "suite": "practice-code", "plan": None},
    ]
    (run / "plans.jsonl").write_text("".join(json.dumps(line) + "\n" for line in plans))
    return run


def test_a_run_folder_gives_the_bill_and_the_plans_of_the_last_steps(tmp_path: Path) -> None:
    run_of("practice-cpu", 1, tmp_path)
    found = found_seeds("practice-cpu", FOLDER / "trained", tmp_path)
    page = training_page(found, {})
    lines = {row["seed"].strip("*"): row for row in rows(page.partition("## Whom")[0])}
    paid = [lines[seed][name] for seed in "01" for name in ("calls paid", "USD")]
    assert paid == ["-", "-", "2", "0.500"]
    (plans,) = rows(page.partition("## Whom")[2])
    assert {plans[name] for name in ("plans", "steps")} == {"1", "2.00"}
    assert [plans[name] for name in ("sage", "abacus", "scribe")] == ["0", "50", "50"]


def test_a_run_folder_of_another_training_is_refused(tmp_path: Path) -> None:
    with (run_of("practice-cpu", 1, tmp_path) / "metrics.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(UserError, match="is not the training that"):
        found_seeds("practice-cpu", FOLDER / "trained", tmp_path)


def test_of_two_evaluations_of_a_pool_the_later_one_counts(tmp_path: Path) -> None:
    for folder, last in (("first", 2), ("second", 5)):
        logs = tmp_path / folder / "logs" / folder
        sit(logs, "single:sage", crew=Crew(sage=right_up_to(last)), exam=EXAM)
        (logs / "report").mkdir()
        (logs / "report" / "targets.json").write_text("{}")
    sit(tmp_path / "first" / "logs" / "first", "single:clerk", exam=EXAM)
    found = pools([tmp_path / "first", tmp_path / "second"])
    assert list(found) == ["first"]
    means = {one.name: round(6 * one.mean) for one in scored_systems(found["first"]).systems}
    assert means["single:sage"] == 5
    assert set(means) == {"single:sage", "single:clerk"}


def test_evaluations_that_have_not_ended_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No finished evaluation"):
        pools([tmp_path])
    with pytest.raises(UserError, match="was not written by this command"):
        show(Namespace(to=tmp_path))
