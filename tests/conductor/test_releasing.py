"""A release: the median seed, weights whose plans stay the same, the log of every seed."""

import json
import tracemalloc
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest

from podium.conductor.checkpoint import checkpoint_digest, read_info
from podium.conductor.training.config import read_config
from podium.conductor.training.model_card import (
    SeedRun,
    greedy_plans,
    read_seed,
    release,
)
from podium.conductor.training.run_folder import config_of, training_finished
from podium.harness.errors import UserError
from tests.conductor.toy_checkpoint import Sizes, random_tensors, save, speaker, write_checkpoint

HASHED = ("config.json", "model.safetensors", "tokenizer.json", "podium.json")
PROMPTS = ("What is 1 + 1?\n\nPlan:", "Name a metal.\n\nPlan:")


def run(folder: Path, seed: int, correct: float, *, steps: int = 4, title: str = "toy") -> Path:
    """Write the folder of a training that had four steps to make."""
    settings = (f"title={title}", f"run.seed={seed}", "grpo.max_steps=4")
    config = read_config("practice-cpu", settings).model_dump(mode="json")
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"seed": seed, "config": config}))
    lines = [
        {"step": 0, "validation": {"correct": 0.1}},
        {"step": 2, "validation": {"correct": correct}},
        {"step": steps, "validation": {"correct": correct}},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for at, name in enumerate(("start", "best", "last")):
        speaker(folder / name, seed=10 * seed + at)
    (folder / "best" / "README.md").write_text("# Card\n")
    (folder / "best" / "training_args.bin").write_bytes(b"a pickle")
    return folder


def has_ended(made: Path) -> bool:
    return training_finished(config_of(json.loads((made / "manifest.json").read_text())), made)


def prompts(folder: Path) -> tuple[str, ...]:
    return PROMPTS


def test_the_median_seed_is_released_with_the_log_of_every_seed(tmp_path: Path) -> None:
    runs = [run(tmp_path / f"s{at}", at, worth) for at, worth in enumerate((0.7, 0.9, 0.8))]
    to, start = tmp_path / "out" / "trained", tmp_path / "out" / "untrained"
    said = release(runs, to, prompts, start)
    assert "seed 2 of 3 seeds (seed 0: 0.700, seed 1: 0.900, seed 2: 0.800)" in said
    assert greedy_plans(to, PROMPTS) == greedy_plans(runs[2] / "best", PROMPTS)
    assert greedy_plans(start, PROMPTS) == greedy_plans(runs[2] / "start", PROMPTS)
    assert greedy_plans(to, PROMPTS) != greedy_plans(start, PROMPTS)
    assert sorted(path.name for path in (to / "log").iterdir()) == ["seed-0", "seed-1", "seed-2"]
    for name in ("manifest.json", "metrics.jsonl"):
        assert (to / "log" / "seed-1" / name).read_text() == (runs[1] / name).read_text()
    assert not (to / "training_args.bin").exists()
    said = (to / "README.md").read_text()
    assert "2 of 2 greedy plans" in said
    assert "highest of its seed's validations, so it is optimistic" in said
    assert read_info(to).summary.endswith("seed 2 of 3 seeds")
    assert read_info(start).reward == ""


def test_weights_are_halved_where_every_plan_stays_the_same(tmp_path: Path) -> None:
    source = run(tmp_path / "s", 0, 0.5)
    release([source], tmp_path / "out", prompts)
    both = (source / "best", tmp_path / "out")
    before, after = ((one / "model.safetensors").stat().st_size for one in both)
    assert after < 0.6 * before


def test_weights_stay_as_they_are_where_a_plan_would_change(tmp_path: Path) -> None:
    source = run(tmp_path / "s", 0, 0.5)
    sizes = Sizes(tied=False)
    tensors = random_tensors(sizes)
    tensors["lm_head.weight"] *= 1e6  # beyond what 16 bits hold
    save(source / "best", sizes, tensors)
    about = source / "best" / "podium.json"
    held = json.loads(about.read_text())
    about.write_text(json.dumps({**held, "weights_sha256": ""}))
    with pytest.warns(RuntimeWarning):
        release([source], tmp_path / "out", prompts)
    kept = tmp_path / "out" / "model.safetensors"
    assert kept.read_bytes() == (source / "best" / "model.safetensors").read_bytes()


def test_a_release_replaces_the_one_before_as_a_whole(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a", 0, 0.5), run(tmp_path / "b", 1, 0.5)
    release([first], tmp_path / "out", prompts)
    before = checkpoint_digest(tmp_path / "out")
    release([second], tmp_path / "out", prompts)
    assert checkpoint_digest(tmp_path / "out") != before
    assert [path.name for path in (tmp_path / "out" / "log").iterdir()] == ["seed-1"]


def test_a_model_is_hashed_in_pieces_whatever_its_size(tmp_path: Path) -> None:
    speaker(folder := tmp_path / "large")
    with (folder / "model.safetensors").open("ab") as weights:
        weights.truncate(1 << 26)
    tracemalloc.start()
    digest = checkpoint_digest(folder)
    with suppress(UserError):  # that it is not the file that was described
        read_info(folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 24
    parts = [(folder / name).read_bytes() for name in HASHED]
    assert digest == sha256(b"".join(sha256(one).digest() for one in parts)).hexdigest()


def test_of_an_even_number_the_lower_middle_one_is_the_median() -> None:
    seeds = [SeedRun(worth, at, Path(), 1) for at, worth in enumerate((0.9, 0.6, 0.8, 0.7))]
    assert median_low(seeds).seed == 3


def test_a_training_that_has_not_ended_is_not_released(tmp_path: Path) -> None:
    made = run(tmp_path / "s", 0, 0.5, steps=3)
    assert not has_ended(made)
    with pytest.raises(UserError, match=r"has not ended\. Continue it with --resume"):
        read_seed(made)


def add(made: Path, line: dict[str, Any]) -> None:
    with (made / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def test_a_validation_that_was_graded_in_part_ranks_nothing(tmp_path: Path) -> None:
    made = run(tmp_path / "s", 0, 0.5)
    add(made, {"step": 6, "validation": {"correct": 1.0, "masked": 0.9}})
    assert (read_seed(made).correct, read_seed(made).step) == (0.5, 2)


def test_a_training_whose_last_validation_is_owed_has_not_ended(tmp_path: Path) -> None:
    made = run(tmp_path / "s", 0, 0.5)
    add(made, {"step": 5})
    assert not has_ended(made)
    add(made, {"step": 5, "validation": {"correct": None}})
    assert has_ended(made)


def test_a_patient_training_has_ended_when_its_patience_has(tmp_path: Path) -> None:
    made = run(tmp_path / "s", 0, 0.5, steps=3)
    path = made / "manifest.json"
    for patience, ended in ((2, False), (1, True)):
        said = json.loads(path.read_text())
        said["config"]["validation"]["patience"] = patience
        path.write_text(json.dumps(said))
        assert has_ended(made) is ended


def test_two_trainings_or_one_seed_twice_are_refused(tmp_path: Path) -> None:
    one, other = run(tmp_path / "a", 0, 0.5), run(tmp_path / "b", 1, 0.5, title="another")
    with pytest.raises(UserError, match="different configurations"):
        release([one, other], tmp_path / "out", prompts)
    with pytest.raises(UserError, match="same seed"):
        release([one, one], tmp_path / "out", prompts)
    assert not (tmp_path / "out").exists()


def test_seeds_that_graders_of_two_versions_rewarded_are_refused(tmp_path: Path) -> None:
    both = [run(tmp_path / f"s{seed}", seed, 0.5) for seed in (0, 1)]
    for made, version in zip(both, ("1-A", "2-A"), strict=True):
        said = json.loads((made / "manifest.json").read_text())
        said["data"] = {"aime25": {"version": version}}
        (made / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(
        UserError, match=r"rewarded by different grader versions\. Release each of them"
    ):
        release(both, tmp_path / "out", prompts)
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_training_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "best")
    with pytest.raises(UserError, match="is not a training"):
        read_seed(tmp_path)
