"""Trainings that end before their last step: no money is left, or no validation gets better.

Those that go on begin as copies of the whole training, cut back to a checkpoint.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.harness.pool_config import POOLS
from tests.conductor.training.tiny_training import TINY, lines, trained_here

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what torch's libraries warn of is theirs
]

Line = dict[str, Any]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that plans well enough for its first validation to cost something."""
    path = tmp_path_factory.mktemp("config") / "tiny.toml"
    # A limit holds back what a call can cost: here a small part of a step, whoever is asked.
    brief, full = path.with_name("brief.toml"), "config = { temperature = 1.0, max_tokens = 2048 }"
    pool = (POOLS / "rehearsal.toml").read_text()
    assert pool.count(full) == 8
    alike = 'price = "rehearsal/sage"\nconfig = { temperature = 1.0, max_tokens = 64 }'
    brief.write_text(pool.replace(full, alike))
    config = TINY.replace("steps = 100", "steps = 300")
    path.write_text(config.replace('name = "rehearsal"', f'name = "{brief}"'))
    return path


@pytest.fixture(scope="module")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nobody interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    trained_here(config, out)
    return out


def dollars(line: Line) -> float:
    """Return what a step cost, its validation included."""
    return line.get("usd", 0.0) + line.get("validation", {}).get("usd", 0.0)


def same(out: Path, whole: Path) -> None:
    """Compare steps, plans and weights."""
    assert lines(out) == lines(whole)
    assert (out / "plans.jsonl").read_text() == (whole / "plans.jsonl").read_text()
    for folder in ("last", "best"):
        weights = (out / folder / "model.safetensors").read_bytes()
        assert weights == (whole / folder / "model.safetensors").read_bytes()


def warmed(whole: Path, out: Path) -> Path:
    """Return a training that has made its warm start and nothing else."""
    shutil.copytree(whole / "start", out / "start")
    shutil.copy(whole / "manifest.json", out)
    return out


def cut_back(whole: Path, out: Path, step: int, change: Callable[[Line], Line]) -> Path:
    """Copy a training as it was after a step, its lines changed, with nothing paid for."""
    left_out = shutil.ignore_patterns("ledger", "checkpoint-6" if step < 6 else "")
    shutil.copytree(whole, out, ignore=left_out)
    path = out / "metrics.jsonl"
    kept = [json.loads(line) for line in path.read_text().splitlines()][: step + 1]
    path.write_text("".join(json.dumps(change(line)) + "\n" for line in kept))
    return out


def free(line: Line) -> Line:
    """Say that a line's validation cost nothing, so that nobody knows what the next one will."""
    return (
        {**line, "validation": {**line["validation"], "usd": 0}} if "validation" in line else line
    )


def unvalidated(line: Line) -> Line:
    return {key: value for key, value in line.items() if key != "validation" or line["step"] < 6}


def test_money_that_ends_within_a_step_leaves_the_one_before_and_the_rest_stays_the_same(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    out, steps = warmed(whole, tmp_path / "poor"), lines(whole)
    most = dollars(steps[0]) + 0.5 * dollars(steps[1])
    said = trained_here(config, out, "--resume", "--max-usd", f"{most:.6f}")
    assert "Step 0: stopped, because the budget is spent." in said
    assert lines(out) == steps[:1]
    assert (out / "checkpoints" / "checkpoint-0" / "optimizer.pt").is_file()
    most = dollars(steps[0]) * 1.9 + dollars(steps[1])
    said = trained_here(config, out, "--resume", "--max-usd", f"{most:.6f}")
    assert "Step 1: stopped" in said
    assert "another step could exceed" in said
    assert lines(out) == steps[:2]
    assert (out / "checkpoints" / "checkpoint-1" / "optimizer.pt").is_file()
    trained_here(config, out, "--resume", "--max-usd", "1")
    same(out, whole)


def test_a_first_validation_that_the_money_does_not_last_for_is_made_again(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    out = warmed(whole, tmp_path / "poor")
    half = f"{0.5 * dollars(lines(whole)[0]):.6f}"
    said = trained_here(config, out, "--resume", "--max-usd", half)
    assert "Step 0: stopped, because the budget ran out in the validation of step 0." in said
    assert "No validation has selected a checkpoint; continue with --resume" in said
    assert not (out / "best").exists()
    assert not (out / "metrics.jsonl").exists()
    trained_here(config, out, "--resume")
    same(out, whole)


def test_a_validation_that_the_money_does_not_last_for_picks_nothing_and_is_made_on_resuming(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    steps = lines(whole)
    out = cut_back(whole, tmp_path / "poor", 4, free)
    best = (out / "best" / "model.safetensors").read_bytes()
    most = steps[5]["usd"] + steps[6]["usd"] + 0.5 * steps[6]["validation"]["usd"]
    said = trained_here(config, out, "--resume", "--max-usd", f"{most:.6f}")
    assert "stopped, because the budget ran out in the validation of step 6" in said
    assert lines(out)[6] == unvalidated(steps[6])
    assert (out / "best" / "model.safetensors").read_bytes() == best
    assert "Not made at this step" in (out / "checkpoints/checkpoint-6/README.md").read_text()
    said = trained_here(config, out, "--resume", "--max-usd", "1")
    assert "step 6: validation" in said
    assert lines(out)[5:] == steps[5:]
    assert "Greedy, 12 held-out" in (out / "last" / "README.md").read_text()


def test_a_validation_that_could_pass_the_limit_is_not_begun(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    out = cut_back(whole, tmp_path / "poor", 6, unvalidated)
    most = f"{0.5 * dollars(lines(whole)[0]):.6f}"
    said = trained_here(config, out, "--resume", "--max-usd", most)
    assert f"$0.0000 is spent and a validation could exceed ${most}" in said
    assert "validation" not in lines(out)[-1]
    assert not list((out / "ledger").glob("**/*.jsonl"))


def test_a_training_without_a_better_validation_ends_when_its_patience_does(
    config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "patient"
    wanted = ("validation.patience=2", "validation.every=1", "grpo.learning_rate=1e-12")
    quick = ("warm_start.steps=40", "validation.questions=2", "run.tensorboard=false")
    said = trained_here(config, out, *(w for one in (*wanted, *quick) for w in ("--set", one)))
    assert "Step 2: no better validation in the last 2, best at step 0." in said
    assert "--resume" not in said
    assert [line["step"] for line in lines(out)] == [0, 1, 2]
    assert (out / "checkpoints" / "checkpoint-2" / "optimizer.pt").is_file()


def test_a_training_of_which_no_plan_is_read_for_five_steps_stops_with_a_sentence(
    tmp_path: Path,
) -> None:
    out, path = tmp_path / "unread", tmp_path / "tiny.toml"
    path.write_text(TINY)
    quick = ("warm_start.kind=none", "grpo.max_steps=8", "run.save_every=8")
    wanted = (*quick, "grpo.max_completion_length=8", "validation.questions=2")
    said = trained_here(path, out, *(w for one in wanted for w in ("--set", one)))
    assert "Step 5: no plan of 5 steps could be read, so nothing is learnt. Begin with" in said
    assert "--resume" not in said
    assert [line["step"] for line in lines(out)] == list(range(6))
