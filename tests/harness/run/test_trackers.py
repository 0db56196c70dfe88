"""Inspect's hooks for MLflow and W&B hear a run: its systems by name and its dollars, offline.

Of a suite that must not be published they would send every text: no such run begins.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import total
from tests.installed import foreign

pytestmark = pytest.mark.slow

PACKAGES = ("inspect-mlflow==0.9.0", "inspect-wandb==0.3.0", "mlflow-skinny==3.17.2")
PACKAGES += ("wandb==0.31.0",)
SYSTEMS = ("single:sage", "moa-lite")
READ = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
(tracked,) = client.search_experiments(filter_string="name = 'inspect_ai'")
runs = client.search_runs([tracked.experiment_id])
print(json.dumps([{**run.data.tags, **run.data.metrics} for run in runs]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign(tmp_path_factory.mktemp("trackers") / "env", *PACKAGES)


def settings(home: Path) -> dict[str, str]:
    """Return the environment of somebody who tracks in files of a folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PODIUM_DATA": str(home),
        "MLFLOW_TRACKING_URI": f"file:{home / 'mlruns'}",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        # With more threads its files lose a figure now and then: two make one folder at a time.
        "MLFLOW_ASYNC_LOGGING_THREADPOOL_SIZE": "1",
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(home),
        "WANDB_API_KEY": "0" * 40,
        "WANDB_PROJECT": "podium",
        "WANDB_ENTITY": "nobody",
    }


def ran(python: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "podium", "run", *words, "--log-dir", str(home / "logs")],
        cwd=home,
        env=settings(home),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def tracked(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("tracked")
    systems = [word for name in SYSTEMS for word in ("--system", name)]
    done = ran(python, home, "--suite", "practice-integer", *systems, "--limit", "2")
    assert done.returncode == 0, done.stderr[-3000:]
    return home


def test_mlflow_has_a_run_for_each_system_with_its_mean_and_its_dollars(
    python: Path, tracked: Path
) -> None:
    done = subprocess.run(
        [python, "-c", READ, f"file:{tracked / 'mlruns'}"],
        env=settings(tracked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = {one["inspect.model"]: one for one in json.loads(done.stdout) if "inspect.model" in one}
    runs = {f"podium/{run.facts.system}": run for run in load_runs([tracked / "logs"])[0]}
    assert found.keys() == runs.keys()
    for name, run in runs.items():
        right = [one.value or 0.0 for one in run.attempts]
        assert found[name]["podium/mean"] == pytest.approx(sum(right) / len(right))
        listed = total(run.spend.values()).listed
        assert listed is not None
        assert found[name]["cost/total_usd"] == pytest.approx(float(listed))


def test_wandb_has_an_offline_run_of_the_whole_set(tracked: Path) -> None:
    (run,) = tracked.glob("wandb/offline-run-*")
    (written,) = (one.read_bytes() for one in run.glob("*.wandb"))
    begun_first = [name for name in SYSTEMS if f"inspect_model:podium/{name}".encode() in written]
    assert len(begun_first) == 1  # inspect-wandb names the first task of a set, and no other
    assert b"inspect task metadata" in written
    assert b"practice-integer-eval-0001" not in written


def test_a_suite_that_must_not_be_published_does_not_begin(python: Path, tmp_path: Path) -> None:
    done = ran(python, tmp_path, "--suite", "gpqa-diamond", "--system", "single:sage")
    assert done.returncode == 2
    line = done.stderr.strip().splitlines()[-1]
    assert "gpqa-diamond must not be published" in line
    assert "mlflow_tracking" in line
    assert not (tmp_path / "logs").exists()
    assert not (tmp_path / "mlruns").exists()
