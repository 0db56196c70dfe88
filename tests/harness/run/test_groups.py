"""`--system all` and the names of groups: who is run, and who is left out with a reason."""

from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.learning import read_artifact
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.estimate import estimate
from podium.harness.run.evaluate import Job
from podium.harness.run.run_request import RequestReader
from podium.harness.suite import TaskRefusal
from podium.harness.system import SystemCard
from tests.harness.toy_run import CONTROLS, Toy, calls, toy_catalogue, toy_pool, toy_run


def asked(log_dir: Path, *systems: str, exam: Toy | None = None, **changes: Any) -> Job:
    pool = toy_pool(log_dir)
    request = RunRequest(("toy",), systems, str(pool), log_dir, **changes)
    return RequestReader(request, toy_catalogue(exam), CONTROLS).read()


def left_out(found: Job) -> dict[str, str]:
    pairs = [line.split(": ", 1) for line in found.left_out]
    return {name: why for names, why in pairs for name in names.split(", ")}


def manifest(name: str) -> SystemCard:
    return toy_catalogue().systems[name]


def test_all_is_every_system_that_fits_but_for_frameworks(tmp_path: Path) -> None:
    found = asked(tmp_path / "run", "all")
    why = left_out(found)
    plain = {name for name in toy_catalogue().systems if name != "single:<worker>"}
    frameworks = {name for name in plain if manifest(name).group == "frameworks"}
    assert {*found.systems} == (plain - frameworks - why.keys()) | {"single:ada", "single:bob"}
    assert {"template-router", "router-knn", "moa-lite", "best-single"} <= {*found.systems}
    assert "tries many plans, and each costs money" in why["oracle"]
    assert "shows none" in why["retry"]
    assert "needs a conductor" in why["router-llm"]
    assert "needs at least 3 workers, and pool" in why["smoothie-local"]
    assert "matched with a conductor, which is not in this run" in why["compute-matched-usd"]


def test_what_is_matched_fits_when_what_it_is_matched_with_comes_with_it(tmp_path: Path) -> None:
    for names in (("controls", "moa-lite"), ("moa-lite", "controls"), ("controls", "contestants")):
        found = asked(tmp_path / "run", *names, match="moa-lite")
        assert {"compute-matched-usd", "compute-matched-tokens"} <= {*found.systems}


def test_a_group_has_its_own_members_once(tmp_path: Path) -> None:
    found = asked(tmp_path / "run", "routers", "router-knn", "all", "single")
    assert len(found.systems) == len({*found.systems})
    routers = asked(tmp_path / "run", "routers").systems
    assert {manifest(name).group for name in routers} == {"routers"}


def test_what_must_learn_is_left_out_where_nothing_teaches(tmp_path: Path) -> None:
    found = asked(tmp_path / "run", "all", exam=Toy(splits=("eval",)))
    assert "must be trained before it runs on 'toy'" in left_out(found)["router-knn"]
    assert "best-single" in found.systems


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("all@3",), "all takes no number, so there is no 'all@3': name 'all'"),
        (("single@3",), "single takes no number, so there is no 'single@3': name 'single'"),
        (("router",), "no system 'router'; .* groups of them: all, contestants, routers"),
        (("all", "smoothie-local"), "smoothie-local needs at least 3 workers"),
        (("all", "nobody"), "There is no system 'nobody'"),
        (("trinity",), "trinity needs at least .* --train-calls"),
    ],
)
def test_what_is_named_itself_and_cannot_run_is_refused_before_anything_is_written(
    tmp_path: Path, names: tuple[str, ...], reason: str
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    with pytest.raises(UserError, match=reason):
        toy_run(log_dir, systems=names, train_calls=2)
    assert calls(log_dir) == []
    assert not log_dir.exists()


@pytest.mark.parametrize(
    ("match", "reason"),
    [
        ("nobody", "--match: There is no system 'nobody'"),
        ("compute-matched-usd", "--match: compute-matched-usd is itself matched"),
    ],
)
def test_a_match_that_cannot_be_is_refused(tmp_path: Path, match: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        asked(tmp_path / "run", "moa-lite", "compute-matched-usd", match=match)


def test_a_dry_run_of_all_bounds_what_the_longest_plans_may_cost(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limit = "config = { max_connections = 1, max_tokens = 100 }"
    pool = toy_pool(log_dir)
    text = pool.read_text().splitlines()
    pool.write_text("\n".join(limit if one.startswith("config") else one for one in text) + "\n")
    request = RunRequest(("toy",), ("router-mas", "cascade", "best-single"), str(pool), log_dir)
    found = estimate(RequestReader(request, toy_catalogue(), CONTROLS).read())
    most = {line.system: line.most for line in found.lines}
    single = most["best-single"].output
    assert single == 12 * 100
    for name in ("router-mas", "cascade"):
        span = manifest(name).calls.span(2, {})
        assert span is not None
        assert most[name].output == single * span[1]


def test_an_untrained_router_is_refused_in_words_that_inspect_prints_plainly() -> None:
    with pytest.raises(TaskRefusal, match="router-knn is not trained: let `podium run` train it"):
        read_artifact(None, "router-knn")
