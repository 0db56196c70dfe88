"""A training of a policy that plans by profiles: tiny, for real, and broken off."""
# pyright: basic, reportMissingImports=false

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.cli import main
from podium.conductor import profile_policy as policy
from podium.conductor.profiled import read_policy
from tests.conductor.training.tiny_training import begun, lines, trained_here

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what torch's libraries warn of is theirs
]

TINY = """
base = "practice-cpu-profiled"

[model.profiled]
questions = 8
searched = 8
warm_steps = 6
warm_batch = 8

[pool]
name = "rehearsal"
order = "random"
drawn = 4

[suites]
names = ["practice-integer", "practice-choice"]
train = 24

[grpo]
max_steps = 4
num_generations = 4
per_device_train_batch_size = 16

[validation]
every = 2
questions = 4

[run]
save_every = 1
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    trained_here(config, out)
    return out


def told(out: Path) -> list[dict[str, Any]]:
    names = ("step", "reward", "correct", "steps", "workers", "loss", "entropy")
    return [{name: line.get(name) for name in names} for line in lines(out)]


def test_a_training_leaves_policies_that_play(whole: Path) -> None:
    assert [line["step"] for line in lines(whole)] == [0, 1, 2, 3, 4]
    assert {"given_valid", "one_step", "distinct"} <= lines(whole)[-1].keys()
    assert lines(whole)[0]["usd"] > lines(whole)[1]["usd"] > 0  # of the trial and the search
    first = policy.first_weights(0)
    for name in ("best", "last"):
        found = read_policy(str(whole / name))
        assert found.about.suites == ("practice-integer", "practice-choice")
        assert len(found.about.questions) >= 24
        assert (whole / name / "README.md").is_file()
    moved = read_policy(str(whole / "last")).arrays
    assert all(np.isfinite(values).all() for values in moved.values())
    assert any((moved[name] != first[name]).any() for name in first)


def test_no_exam_pool_teaches_and_some_pools_only_validate(whole: Path) -> None:
    said = (whole / "last" / "README.md").read_text()
    assert "4 drawn for training" in said
    assert "one in 8 validates alone" in said


def test_a_training_that_is_broken_off_goes_on_as_if_it_had_not_been(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with begun(config, out) as process:
        while process.poll() is None and not any(
            line["step"] >= 2 for line in (lines(out) if (out / "metrics.jsonl").exists() else [])
        ):
            pass
        process.kill()
    assert lines(out)[-1]["step"] < 4
    trained_here(config, out, "--resume")
    assert told(out) == told(whole)
    mine, theirs = (read_policy(str(one / "last")).arrays for one in (out, whole))
    assert all(np.allclose(mine[name], theirs[name], atol=1e-6) for name in mine)


def test_the_median_seed_is_released_with_all_logs(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "released"
    assert main(["train", "--release", str(whole), "--to", str(to)]) == 0
    assert "seed 0 of 1 seed" in capsys.readouterr().out
    assert read_policy(str(to)).sha256 == read_policy(str(whole / "best")).sha256
    assert (to / "log" / "seed-0" / "metrics.jsonl").is_file()


def test_numpy_plays_what_torch_has_learnt() -> None:
    import torch

    from podium.conductor.training.profile_training import log_chances
    from tests.conductor.test_profile_policy import shown, table_of

    weights, seen = policy.first_weights(5), shown(*[table_of(6)] * 9)
    plans = policy.write(weights, policy.read(weights, seen, np), np.random.default_rng(0))
    tensors = {name: torch.from_numpy(values) for name, values in weights.items()}
    read = policy.read(tensors, policy.Shown(*map(torch.from_numpy, seen)), torch)
    ours = policy.read(weights, seen, np)
    for mine, theirs in zip(ours, read, strict=True):
        assert np.allclose(mine, theirs.numpy(), atol=1e-5)
    logs, entropy = log_chances(tensors, read, plans, torch)
    assert (logs < 0).all()
    assert (entropy > 0).all()
    often = np.zeros(4000, np.int64)
    drawn = policy.write(weights, ours.at(often), np.random.default_rng(1))
    steps = Counter(str(drawn.steps(at)) for at in range(4000))
    said, times = steps.most_common(1)[0]
    at = next(at for at in range(4000) if str(drawn.steps(at)) == said)
    one = policy.Plans(drawn.tasks[at : at + 1], drawn.workers[at : at + 1])
    chance = float(log_chances(tensors, read.at([0]), one, torch)[0].exp())
    assert abs(chance - times / 4000) < 4 * (chance / 4000) ** 0.5


def test_settings_that_cannot_be_are_refused(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(config), "--out", str(tmp_path / "run"), "--dry-run"]
    assert main([*words, "--set", "pool.drawn=0"]) == 2
    assert "is trained on drawn pools from random weights" in capsys.readouterr().err
    assert main([*words, "--set", "model.path=x"]) == 2
    assert "must have exactly one of path, from_scratch and profiled" in capsys.readouterr().err
