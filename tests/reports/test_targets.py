"""The table of targets: known answers from made-up contests, and from logs alone."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from tests.benchmarks.targets import (
    ScoredSystem,
    ScoredSystems,
    SystemCosts,
    SystemKind,
    Target,
    TargetResult,
    scored_systems,
    target_results,
    targets_markdown,
)
from tests.benchmarks.targets import main as write
from tests.harness.runs import Crew, number, sit, steps, wrong
from tests.reports.small_reports import EXAM, right_up_to

SUITES = ("a", "b")


def made(
    name: str, kind: SystemKind, right: float, usd: float = 1.0, calls: float = 1.0
) -> ScoredSystem:
    """Return a contestant that is right on the first `right` of 40 questions of each suite."""
    values = {f"q{at:02}": np.array([float(at < 40 * right)]) for at in range(40)}
    costs = SystemCosts(usd, calls, 10.0, 20.0)
    return ScoredSystem(name, kind, (name,), dict.fromkeys(SUITES, values), costs, 0)


FIELD = (
    made("single:sage", "single", 0.4),
    made("single:swift", "single", 0.2),
    made("moa-lite", "ensemble", 0.5, usd=9, calls=9),
    made("router-knn", "router", 0.6),
    made("template-router", "other", 0.9, usd=3, calls=2),
    made("oracle", "bound", 1.0),
)


def result(who: ScoredSystem, *others: ScoredSystem) -> TargetResult:
    (one,) = target_results(
        ScoredSystems(SUITES, (who, *(others or FIELD)), "eval", "toy", "rehearsal")
    )
    return one


def targets(who: ScoredSystem, *others: ScoredSystem) -> Mapping[str, Target]:
    return {one.name: one for one in result(who, *others).targets}


def test_all_targets_are_reached_by_one_that_reaches_them() -> None:
    found = targets(made("conductor", "trained", 0.9, usd=2, calls=3))
    assert [one.reached for one in found.values()] == [True] * 9
    assert found["worker calls beside moa-lite"].found == "0.33 x (3.00 of 9.00 a question)"
    assert found["share of oracle less single:sage on a"].found.startswith("83.3 % ")


def test_what_is_missed_says_by_how_much_and_by_whom() -> None:
    found = targets(made("conductor", "trained", 0.6, usd=4, calls=4.5))
    routers = found["superior to every one-step router"]
    assert (routers.reached, routers.short) == (False, "router-knn +0.0")
    assert found["worker calls beside moa-lite"].short == "by 0.10 x"
    assert found["not inferior to template-router"].reached is False
    assert found["no baseline both cheaper and more accurate"].short == "template-router"
    share = found["share of oracle less single:sage on the mean over suites"]
    assert (share.reached, share.short) == (False, "by 46.7 % of that way")


def test_a_short_way_to_the_oracle_asks_for_no_share_of_it() -> None:
    found = targets(
        made("conductor", "trained", 0.9),
        made("single:sage", "single", 0.95),
        made("oracle", "bound", 1.0),
    )
    assert not any(name.startswith("share") for name in found)


def test_what_the_logs_cannot_say_is_unknown() -> None:
    found = targets(made("conductor", "trained", 0.9), made("single:sage", "single", 0.4))
    assert found["superior to every single worker"].reached
    assert found["not inferior to template-router"].reached is None
    assert found["worker calls beside moa-lite"].reached is None


def test_each_seed_stands_under_its_suites_in_whatever_order_they_were_sat() -> None:
    halves = {"b": np.array([1.0, 1.0]), "a": np.array([0.0, 0.5])}
    scores = {suite: {f"q{at:02}": values for at in range(40)} for suite, values in halves.items()}
    members = ("conductor@x-seed-0/best", "conductor@x-seed-1/best")
    who = ScoredSystem("conductor@x", "trained", members, scores, SystemCosts(1, 1, 1, 1), 0)
    found = ScoredSystems(SUITES, (who, *FIELD), "eval", "toy", "rehearsal")
    text = targets_markdown(found, target_results(found))
    heads = "| seed | a | b | mean |\n| --- | --- | --- | --- |\n"
    assert f"{heads}| 0 | 0.0 | 100.0 | 50.0 |\n| 1 | 50.0 | 100.0 | 75.0 |\n" in text


def test_a_bound_and_another_training_dominate_nobody() -> None:
    best = result(
        made("conductor", "trained", 0.5),
        made("oracle", "bound", 1.0, usd=0.1),
        made("single:sage", "single", 0.6, usd=0.1),
    )
    assert best.targets[-1].found == "single:sage"


def trained(logs: Path, seed: int, last: int) -> None:
    """Let a checkpoint's stand-in sit an exam of 6."""
    sit(
        logs, f"conductor@runs/tiny-seed-{seed}/best", steps("clerk"),
        Crew(clerk=right_up_to(last)), exam=EXAM, args={"checkpoint": f"runs/tiny-seed-{seed}"},
    )  # fmt: skip


def run(logs: Path) -> None:
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(2)), exam=EXAM)
    sit(logs, "moa-lite", steps("clerk", "sage", "sage"), Crew(clerk=wrong, sage=number), exam=EXAM)
    for seed, last in enumerate((4, 5, 6)):
        trained(logs, seed, last)


def test_seeds_of_one_training_are_one_contestant(tmp_path: Path) -> None:
    run(tmp_path)
    found = scored_systems(load_runs([tmp_path])[0])
    who = found.named("conductor@tiny")
    assert who is not None
    assert who.kind == "trained"
    assert [name.split("-")[2] for name in who.members] == ["0/best", "1/best", "2/best"]
    assert who.mean == pytest.approx(5 / 6)
    assert who.costs.worker_calls == 1
    assert {one.name: one.kind for one in found.systems if one is not who} == {
        "moa-lite": "ensemble", "single:sage": "single",
    }  # fmt: skip


def test_the_command_writes_the_table_from_logs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "logs")
    write([str(tmp_path / "logs")])
    said = capsys.readouterr().out
    assert "## `conductor@tiny`" in said
    assert "3 seeds, 6 questions: 83.3 [" in said
    assert (
        "| seed | numbers | mean |\n| --- | --- | --- |\n| 0 | 66.7 | 66.7 |\n| 1 | 83.3 |" in said
    )
    folder = tmp_path / "logs" / "report"
    first = (folder / "targets.md").read_bytes(), (folder / "targets.json").read_bytes()
    (found,) = json.loads(first[1])["trained"]
    assert found["mean"]["seeds"] == 3
    assert [sum(one.values()) for one in found["seeds"].values()] == pytest.approx(
        [4 / 6, 5 / 6, 1]
    )
    write([str(tmp_path / "logs")])
    assert first == ((folder / "targets.md").read_bytes(), (folder / "targets.json").read_bytes())


def test_podium_report_says_where_the_targets_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path), "--targets"]) == 2
    assert "python -m tests.benchmarks.targets DIR" in capsys.readouterr().err


def test_logs_without_anything_trained_or_of_two_seeds_are_refused(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", exam=EXAM)
    with pytest.raises(UserError, match="Nothing that was trained"):
        write([str(tmp_path)])
    sit(tmp_path, "pair", steps("clerk", "sage"), exam=EXAM, seed=1)
    with pytest.raises(UserError, match="one run's directory"):
        scored_systems(load_runs([tmp_path])[0])
