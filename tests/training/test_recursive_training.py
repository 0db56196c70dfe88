"""A recursive training: later rounds are made beforehand, told from first ones, and made again."""

import json
from pathlib import Path

import pytest
from tiny_training import lines, refused_here, tiny_config, trained_here

WHY = "needs torch: pip install 'podium[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

RECURSIVE = """
[recursion]
share = 0.5
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training, and a recursive one that goes on from it."""
    folder = tmp_path_factory.mktemp("recursive")
    first = tiny_config(folder)
    trained_here(first, folder / "first", "--set", "grpo.max_steps=2")
    text = first.read_text().replace("context = 512", "context = 1024")
    (folder / "again.toml").write_text(text + RECURSIVE)
    trained_here(folder / "again.toml", folder / "again", *given(folder))
    return folder


def given(folder: Path) -> list[str]:
    """Return the settings of the recursive training: it goes on from the first one."""
    data = (folder / "again.toml").read_text()
    start = data.index("[model.from_scratch]")
    end = data.index("[pool]")
    (folder / "again.toml").write_text(data[:start] + data[end:])
    return [
        "--set", f"model.path={folder / 'first' / 'best'}", "--set", "warm_start.steps=20",
        "--set", "warm_start.learning_rate=1e-3",
        "--set", "grpo.scale_rewards=batch", "--set", "grpo.max_steps=2",
    ]  # fmt: skip


def test_a_recursive_training_discounts_first_rounds_and_validates_later_ones(runs: Path) -> None:
    about = json.loads((runs / "again" / "last" / "podium.json").read_text())
    assert about["rounds"] == 1
    plans = [json.loads(line) for line in (runs / "again" / "plans.jsonl").read_text().splitlines()]
    scored = {line["value"] for line in plans if line["status"] == "scored"}
    assert scored & {0.125, 0.25}  # first rounds, times a quarter
    assert lines(runs / "again")[0]["validation"]["questions"] > 12


def test_a_recursive_training_warms_up_the_checkpoint_that_it_goes_on_from(runs: Path) -> None:
    before = (runs / "first" / "best" / "model.safetensors").read_bytes()
    assert (runs / "again" / "start" / "model.safetensors").read_bytes() != before
    vocabularies = [
        json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
        for folder in (runs / "first" / "best", runs / "again" / "start")
    ]
    assert vocabularies[0] == vocabularies[1]
    assert (runs / "again" / "warm_start.jsonl").read_text().count("\n") == 2


def test_a_discount_that_would_cancel_is_refused(runs: Path) -> None:
    words = ["--set", "grpo.scale_rewards=group", "--set", "model.path=x"]
    said = refused_here(runs / "again.toml", runs / "none", *words)
    assert "scale_rewards=batch" in said
