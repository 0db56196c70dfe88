"""Inspect alone runs our suites and systems: by installed name, of before 0.2 too, and by file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from podium.baselines import SYSTEMS as BASELINES
from podium.conductor import SYSTEMS as CONDUCTORS
from podium.suites import SUITES
from tests import ROOT
from tests.installed import Installed

pytestmark = pytest.mark.slow

DATA = Path(os.environ.get("PODIUM_DATA", ROOT.parent / "shared" / "data"))

PROVIDERS = [f"podium/{name}" for name in ("embedded", "fugu", "podium", "recorded", "rehearsal")]

FOUND = """
import json, sys
from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai._util.registry import registry_lookup
ensure_entry_points()
names = [name.split(" ") for name in sys.argv[1:]]
print(json.dumps([name for kind, name in names if registry_lookup(kind, name) is None]))
"""
"""Inspect has no public question "is this name registered?"; asking by an eval takes 4 s a name."""


def only_log(folder: Path) -> EvalLog:
    (info,) = list_eval_logs(str(folder))
    return read_eval_log(info)


def evaluated(wheel: Installed, folder: Path, asked: str) -> EvalLog:
    """Return the log of one question of an `inspect eval`, by names alone."""
    rest = "--limit 1 --display plain --log-dir logs"
    done = wheel.run(*f"inspect eval {asked} {rest}".split(), cwd=folder)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return only_log(folder / "logs")


@pytest.mark.parametrize("rooms", [("podium", "podium"), ("suites", "baselines")])
def test_a_suite_and_a_system_run_by_their_installed_names(
    rooms: tuple[str, str], podium_wheel: Installed, tmp_path: Path
) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "__init__.py").touch()  # a user's own, which is in nobody's way
    suite, system = f"{rooms[0]}/practice_integer", f"{rooms[1]}/moa_lite"
    asked = f"{suite} --solver {system} -S pool=rehearsal --model none"
    log = evaluated(podium_wheel, tmp_path, asked)
    assert log.status == "success"
    assert log.eval.task_registry_name in (suite, "podium/practice_integer")
    assert log.eval.solver == system
    assert log.eval.solver_args == {"pool": "rehearsal"}
    assert log.results is not None
    assert log.results.completed_samples == 1


def test_a_released_checkpoint_is_a_model_of_inspects_by_its_name(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    asked = "podium/practice_integer --model embedded/trained --temperature 0 --max-tokens 48"
    log = evaluated(podium_wheel, tmp_path, asked)
    assert (log.status, log.eval.model) == ("success", "embedded/trained")
    usage = log.stats.model_usage["embedded/trained"]
    assert usage.input_tokens > 0
    assert 0 < usage.output_tokens <= 48


def test_a_checkpoint_that_is_not_there_is_said_by_inspect_in_one_sentence(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    asked = "inspect eval podium/practice_integer --model embedded/nobody --display plain"
    done = podium_wheel.run(*asked.split(), cwd=tmp_path)
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "There is no checkpoint 'nobody'; released: trained" in said
    assert "Traceback" not in said


def test_inspect_finds_every_suite_system_and_provider(
    podium_wheel: Installed, tmp_path: Path
) -> None:
    tasks = [
        f"task {room}/{name.replace('-', '_')}" for name in SUITES for room in ("podium", "suites")
    ]
    solvers = [f"solver {card.solver}" for card in {**BASELINES, **CONDUCTORS}.values()]
    old = {"baselines": BASELINES, "conductor": CONDUCTORS}
    solvers += [
        f"solver {room}/{card.solver.rpartition('/')[2]}"
        for room, cards in old.items()
        for card in cards.values()
    ]
    providers = [f"modelapi {name}" for name in PROVIDERS]
    names = [*tasks, *solvers, *providers]
    done = podium_wheel.run(podium_wheel.python, "-c", FOUND, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
    assert "Unexpected exception" not in done.stderr


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data folder at {DATA}; set PODIUM_DATA")
def test_file_paths_work_in_a_checkout(tmp_path: Path) -> None:
    asked = "inspect_ai eval suites/aime25.py@aime25 --solver baselines/single.py@single"
    worker = "-S pool=recorded-aime25 -S worker=r1-distill-1.5b --model none --limit 1"
    rest = f"{worker} --display plain --log-dir {tmp_path}"
    done = subprocess.run(
        [sys.executable, "-m", *asked.split(), *rest.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    log = only_log(tmp_path)
    assert log.status == "success"
    assert log.eval.task_file == "suites/aime25.py"
