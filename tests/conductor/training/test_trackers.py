"""A training reports to trackio, W&B and MLflow at once, each read back by its own reader."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conductor.training.tiny_training import QUIET, command, refused_here

WHY = "needs torch and trackers: pip install '.[train]' trackio wandb mlflow; make trainers runs it"
for needed in ("torch", "trl", "trackio", "wandb", "mlflow"):
    pytest.importorskip(needed, reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

TRACKERS = ("trackio", "wandb", "mlflow")
READ_MLFLOW = """
import json, sys
from mlflow import MlflowClient
(run,) = MlflowClient(sys.argv[1]).search_runs(["0"])
print(json.dumps([run.info.run_name, run.data.metrics["validation/correct"]]))
"""


@pytest.fixture(scope="module")
def tracked(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of two steps that three trackers heard, offline; return where all of it is."""
    home = tmp_path_factory.mktemp("tracked")
    named = ", ".join(f'"{name}"' for name in TRACKERS)
    changed = ("grpo.max_steps=2", "run.tensorboard=false", f"run.report_to=[{named}]")
    words = [word for one in changed for word in ("--set", one)]
    done = subprocess.run(
        command(config, home / "first", *words),
        cwd=home,
        env=settings(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return home


def settings(home: Path) -> dict[str, str]:
    """Return the environment in which trackers keep everything in a folder."""
    theirs = {
        "TRACKIO_DIR": str(home / "trackio"),
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(home),
        "MLFLOW_TRACKING_URI": f"file:{home / 'mlruns'}",
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }
    return {**os.environ, **QUIET, **theirs}


def said(home: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], env=settings(home), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def correct(home: Path) -> float:
    """Return what the training itself wrote of its last validation."""
    line = (home / "first" / "metrics.jsonl").read_text().splitlines()[-1]
    return json.loads(line)["validation"]["correct"]


def test_trackio_has_the_run_by_the_name_of_its_folder(tracked: Path) -> None:
    trackio = ("-m", "trackio.cli", "list")
    runs = json.loads(said(tracked, *trackio, "runs", "--project", "podium", "--json"))
    assert runs["runs"] == ["first"]
    more = ("metrics", "--project", "podium", "--run", "first", "--json")
    assert "train/validation/correct" in said(tracked, *trackio, *more)


def test_mlflow_has_the_figures_of_the_last_validation(tracked: Path) -> None:
    store = f"file:{tracked / 'mlruns'}"
    name, value = json.loads(said(tracked, "-c", READ_MLFLOW, store))
    assert (name, value) == ("first", pytest.approx(correct(tracked)))


def test_wandb_has_an_offline_run_and_none_of_a_questions_text(tracked: Path) -> None:
    (run,) = tracked.glob("wandb/offline-run-*/*.wandb")
    assert b"validation/correct" in run.read_bytes()
    assert b"practice-integer-train-0001" not in run.read_bytes()


def test_a_tracker_that_nobody_knows_is_refused(config: Path, tmp_path: Path) -> None:
    refusal = refused_here(config, tmp_path / "out", "--set", 'run.report_to=["comet"]')
    assert "report_to" in refusal
    assert "trackio" in refusal
    assert not (tmp_path / "out").exists()


def test_a_tracker_that_stands_there_twice_is_refused(config: Path, tmp_path: Path) -> None:
    named = 'run.report_to=["mlflow", "mlflow"]'
    assert "name each once" in refused_here(config, tmp_path / "out", "--set", named)
    assert not (tmp_path / "out").exists()
