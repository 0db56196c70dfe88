"""What a training is not begun or resumed with, through the command: one sentence says why."""

import json
from pathlib import Path

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.training.config import read_config
from podium.conductor.training.job import find_job
from podium.conductor.training.run_folder import prepare_folder
from podium.harness.pool_config import POOLS
from tests.conductor.training.tiny_training import refused_here, tiny_config

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Return a configuration whose training on a pool of one's own has its folder, and no step."""
    text = (POOLS / "rehearsal.toml").read_text()
    (tmp_path / "mine.toml").write_text(text.replace('name = "rehearsal"\n', "", 1))
    config = tiny_config(tmp_path)
    config.write_text(config.read_text().replace('"rehearsal"', f'"{tmp_path / "mine.toml"}"'))
    prepare_folder(
        find_job(read_config(str(config)), tmp_path / "run", whole_catalogue(), controls().bare)
    )
    return config


def edited(config: Path, before: str, after: str) -> str:
    """Change the pool file and return what a resumed training says."""
    pool = config.with_name("mine.toml")
    assert before in pool.read_text()
    pool.write_text(pool.read_text().replace(before, after, 1))
    return refused_here(config, config.with_name("run"), "--resume")


def test_a_pool_file_whose_cards_were_edited_is_named_with_the_way_out(begun: Path) -> None:
    said = edited(begun, 'card = "Careful,', 'card = "Careless,')
    assert said == (
        "podium: This run began with another pool 'mine', whose file was edited since. Restore its "
        "workers' cards, or begin anew with --out.\n"
    )


def test_a_pool_file_that_was_edited_elsewhere_is_named_too(begun: Path) -> None:
    said = edited(begun, "max_tokens = 2048", "max_tokens = 1024")
    assert "another pool 'mine', whose file was edited since. Restore the file, or" in said


def test_a_training_whose_grader_moved_is_not_resumed_and_nothing_is_made(begun: Path) -> None:
    run = begun.with_name("run")
    manifest = run / "manifest.json"
    said = json.loads(manifest.read_text())
    said["data"]["practice-choice"]["version"] = "0-A"
    manifest.write_text(json.dumps(said))
    told = refused_here(begun, run, "--resume")
    began = "podium: Graders of this training have changed since it began: "
    assert told.startswith(f"{began}practice-choice 0-A (now ")
    assert told.count("\n") == 1
    assert [path.name for path in run.iterdir()] == ["manifest.json"]


def test_a_warm_start_under_zero_3_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "3")
    said = refused_here(tiny_config(tmp_path), tmp_path / "run")
    assert "Run it in one process first, which writes the model to OUT/start" in said
    assert not (tmp_path / "run").exists()
