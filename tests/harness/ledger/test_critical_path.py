"""How long an answer takes: its longest chain of calls, as long on a busy machine as on any."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.ledger.critical_path import longest_chain, steps_awaited
from podium.harness.ledger.ledger_tables import ask
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemTotals, system_totals
from podium.harness.pool_config import POOLS
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.run import run

SYSTEMS = ("single:sage", "debate", "conductor-prompted", "conductor-untrained")


def chain(
    calls: Sequence[tuple[int | None, float | None]], plan: str | None, waves: object = None
) -> float | None:
    """Return the longest chain of calls: their steps and seconds."""
    steps = [step for step, _ in calls]
    return longest_chain(steps, [took for _, took in calls], steps_awaited(steps, plan, waves))


def plan(*reads: Any) -> str:
    return json.dumps([{"worker": "sage", "reads": one} for one in reads])


def test_the_critical_path_is_the_longest_chain_of_reads() -> None:
    calls = [(1, 3.0), (2, 1.0), (3, 2.0)]
    assert chain(calls, plan([], [], [])) == 3.0
    assert chain(calls, plan([], [], [1])) == 3.0
    assert chain(calls, plan([], [], "all")) == 5.0


def test_planning_comes_before_every_step() -> None:
    assert chain([(None, 4.0), (1, 3.0), (2, 1.0)], plan([], [])) == 7.0


def test_a_later_round_waits_for_all_of_the_one_before() -> None:
    calls = [(None, 1.0), (1, 3.0), (2, 1.0), (None, 1.0), (3, 2.0)]
    assert chain(calls, plan([], [], [1])) == 7.0


def test_what_is_asked_only_after_a_reply_comes_on_top_though_it_reads_nothing() -> None:
    calls = [(1, 3.0), (2, 1.0), (3, 2.0)]
    assert chain(calls, plan([], [], []), [1, 1, 1]) == 6.0
    assert chain(calls, plan([], [], []), [1, 2]) == 5.0


@pytest.mark.parametrize("waves", [[1], [4, -1], ["3"], 3, [1, 1, 1, 1]])
def test_waves_that_are_not_those_of_the_plan_say_nothing(waves: object) -> None:
    assert chain([(1, 3.0), (2, 1.0), (3, 2.0)], plan([], [], []), waves) == 3.0


def test_without_a_plan_or_a_latency_the_critical_path_is_unknown() -> None:
    assert chain([(1, 1.0), (2, 1.0)], "malformed: no list") is None
    assert chain([(1, None)], plan([])) is None
    assert chain([], plan([])) is None
    assert chain([(1, 2.0)], None) == 2.0


def rehearsed(folder: Path, connections: int, time_scale: float) -> Path:
    """Run some systems where so many calls may be out at once, each slept for so much."""
    pool, limit = folder.with_suffix(".toml"), "max_tokens = 2048"
    text = (POOLS / "rehearsal.toml").read_text()
    pool.write_text(text.replace(limit, f"{limit}, max_connections = {connections}"))
    few: dict[str, Any] = {"limit": 2, "selection_limit": 1}
    asked = RunRequest(
        suites=("practice-composed",),
        systems=SYSTEMS,
        pool=str(pool),
        log_dir=folder,
        time_scale=time_scale,
        **few,
    )
    assert run(asked, whole_catalogue(), replace(controls(), log_realtime=False)).finished
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the same run twice: once calls wait for each other and take long, once not."""
    home = tmp_path_factory.mktemp("runs")
    return rehearsed(home / "crowded", 1, 0.02), rehearsed(home / "free", 20, 0.0)


def by_system(folder: Path) -> dict[str, SystemTotals]:
    found = [one for one in load_runs([folder])[0] if one.facts.purpose == "eval"]
    return {one.facts.system: system_totals(one) for one in found}


@pytest.mark.slow
def test_rehearsed_seconds_are_those_that_workers_state_whatever_the_machine_does(
    runs: tuple[Path, Path],
) -> None:
    crowded, free = map(by_system, runs)
    assert set(crowded) >= set(SYSTEMS)
    for name, totals in crowded.items():
        assert totals.critical_path_s is not None
        assert totals.critical_path_s == free[name].critical_path_s, name
        assert totals.overhead_s is not None
        assert totals.overhead_s >= 0


def test_waiting_for_a_free_connection_is_measured_apart(runs: tuple[Path, Path]) -> None:
    crowded, free = map(by_system, runs)
    assert (crowded["debate"].overhead_s or 0) > (free["debate"].overhead_s or 0)


def test_the_ledger_has_the_seconds_of_the_table(runs: tuple[Path, Path]) -> None:
    sql = "select system, avg(critical_path_s) as s from queries where purpose = 'eval' group by 1"
    said: dict[str, float] = dict(ask(runs[0], sql).rows)
    for name, totals in by_system(runs[0]).items():
        assert said[name] == pytest.approx(totals.critical_path_s)
