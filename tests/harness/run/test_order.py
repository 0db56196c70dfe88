"""The order in which systems are begun: a shuffle that the seed decides, logged, stable."""

import json
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

from inspect_ai import Task, eval_set
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.solver import Generate, Solver, TaskState, solver

from podium.cli import main
from podium.harness.ledger.logs import find_logs
from podium.harness.run.experiment import (
    Entry,
    Experiment,
    open_experiment,
    order_entries,
    read_experiment,
)

SYSTEMS = ("moa-lite", "random-worker", "single:scholar", "single:verifier", "random-workflow")


def experiment(seed: int, *names: str) -> Experiment:
    return Experiment(
        pool="p",
        pool_sha256="1",
        recordings={},
        book_sha256="2",
        seed=seed,
        split="eval",
        box=None,
        time_scale=0.0,
        limit=None,
        suite_versions={"s": "1"},
        data_revisions={"s": "1"},
        epochs={"s": 1},
        entries=tuple(Entry(suite="s", system=name, solver="x", args={}) for name in names),
    )


def places(made: Experiment) -> dict[str, int | None]:
    return {row.system: row.order for row in made.entries}


def test_the_seed_decides_the_order() -> None:
    orders = [places(order_entries(experiment(seed, *SYSTEMS), ())) for seed in range(20)]
    assert orders[0] == places(order_entries(experiment(0, *reversed(SYSTEMS)), ()))
    assert all(set(one.values()) == {1, 2, 3, 4, 5} for one in orders)
    assert {one["moa-lite"] for one in orders} == {1, 2, 3, 4, 5}


def test_entries_keep_their_place_and_new_ones_come_behind(tmp_path: Path) -> None:
    first = open_experiment(tmp_path, experiment(0, *SYSTEMS[:3]))
    assert sorted(places(first).values(), key=str) == [1, 2, 3]
    again = open_experiment(tmp_path, experiment(0, *SYSTEMS))
    assert {name: places(again)[name] for name in SYSTEMS[:3]} == places(first)
    assert {places(again)[name] for name in SYSTEMS[3:]} == {4, 5}
    assert open_experiment(tmp_path, experiment(0, *SYSTEMS)) == again


def test_an_experiment_older_than_the_order_can_be_resumed(tmp_path: Path) -> None:
    open_experiment(tmp_path, experiment(0, *SYSTEMS[:2]))
    path = tmp_path / "experiment.json"
    stored = json.loads(path.read_text())
    for row in stored["entries"]:
        del row["order"]
    path.write_text(json.dumps(stored))
    older = read_experiment(tmp_path)
    assert older is not None
    assert {row.order for row in older.entries} == {None}
    made = open_experiment(tmp_path, replace(experiment(0), entries=()))
    assert set(places(made).values()) == {1, 2}


@solver
def noting(seen: list[str], name: str) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        seen.append(name)
        return state

    return solve


def test_an_eval_set_begins_its_tasks_in_the_order_given(tmp_path: Path) -> None:
    seen: list[str] = []
    names = [f"task {n}" for n in (7, 2, 9, 4, 1, 8, 3)]
    tasks = [
        Task(
            dataset=MemoryDataset([Sample(input="x", id="1")], name="one"),
            solver=noting(seen, name),
            name=name,
        )
        for name in names
    ]
    copy_context().run(
        eval_set,
        tasks,
        log_dir=str(tmp_path),
        model=None,
        display="none",
        max_tasks=1,
        retry_attempts=0,
        ctl_server=False,
    )
    assert seen == names


def test_a_run_s_logs_name_the_order_and_a_resumed_run_keeps_it(tmp_path: Path) -> None:
    home = tmp_path / "logs"
    command = ["run", "--suite", "practice-integer", "--log-dir", str(home)]
    for system in SYSTEMS:
        command += ["--system", system]
    for limit in ("1", "2"):
        assert main([*command, "--limit", limit]) == 0
        stored = read_experiment(home)
        assert stored is not None
        tasks = json.loads((home / "eval-set.json").read_text())["tasks"]
        begun = [one["name"] for one in sorted(tasks, key=lambda one: one["sequence"])]
        assert begun == [row.name for row in sorted(stored.entries, key=lambda row: row.order or 0)]
        for path in find_logs([home]):
            log = read_eval_log(str(path), header_only=True)
            facts = (log.eval.metadata or {})["podium"]
            assert facts["order"] == begun.index(log.eval.task) + 1
