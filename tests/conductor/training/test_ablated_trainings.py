"""Ablations for real: two tiny trainings, evaluated, and one table; and the same command again."""

import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from podium.conductor.training.ablations import read_ablations
from tests.conductor.training.tiny_training import QUIET, lines, tiny_config, trained

pytestmark = pytest.mark.slow

if util.find_spec("torch") is None or util.find_spec("trl") is None:
    pytest.skip(
        "needs torch: pip install '.[train]'; make trainers runs it", allow_module_level=True
    )

FILE = """
config = "tiny.toml"
reference = "unablated"

[all]
suites.names = ["practice-integer"]
warm_start.steps = 40
grpo.max_steps = 2
validation.every = 2
validation.questions = 2
run.tensorboard = false

[ablations.unablated]
says = "As it is."

[ablations.single-worker]
says = "Sage does every step."
set.form.worker = "sage"

[ablations.few-shots]
says = "No examples."
not_run = "there are none"
"""


def ablated(file: Path, out: Path) -> str:
    command = [sys.executable, "-m", "podium", "ablate", "--file", str(file)]
    done = subprocess.run(
        [*command, "--out", str(out)],
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("ablations")
    tiny_config(folder)
    (folder / "file.toml").write_text(FILE)
    return folder, ablated(folder / "file.toml", folder / "out")


def test_both_are_trained_evaluated_and_in_one_table(made: tuple[Path, str]) -> None:
    folder, said = made
    page = (folder / "out" / "report" / "ablations.md").read_text()
    assert "Not run: few-shots: there are none." in page
    assert "| single-worker | all | sage 100% |" in page or "| single-worker | all |  |" in page
    assert said.count("already trained") == 0
    assert (folder / "out" / "evaluations" / "unablated-seed-0" / "MANIFEST.json").is_file()


def test_a_warm_start_that_is_shared_is_the_one_that_would_have_been_made(
    made: tuple[Path, str],
) -> None:
    folder, said = made
    assert "reuses the identical warm start of unablated-seed-0" in said
    shared = folder / "out" / "runs" / "single-worker-seed-0"
    own = folder / "own"
    single = read_ablations(folder / "file.toml").rows[1]
    trained(
        folder / "tiny.toml", own, *(part for one in single.settings for part in ("--set", one))
    )
    weights = [(one / "start" / "model.safetensors").read_bytes() for one in (shared, own)]
    assert weights[0] == weights[1]
    assert lines(shared) == lines(own)


def test_the_same_command_again_trains_and_asks_nothing(made: tuple[Path, str]) -> None:
    folder, _ = made
    table = folder / "out" / "report" / "ablations.csv"
    before, metrics = table.read_bytes(), folder / "out" / "runs" / "unablated-seed-0"
    written = (metrics / "metrics.jsonl").stat().st_mtime_ns
    assert ablated(folder / "file.toml", folder / "out").count("already trained") == 2
    assert (metrics / "metrics.jsonl").stat().st_mtime_ns == written
    assert table.read_bytes() == before
