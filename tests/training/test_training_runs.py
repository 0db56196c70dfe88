"""Trainings from end to end, in processes of their own: complete, killed, stopped, out of money."""

import json
import signal
import time
from pathlib import Path

import pytest
from tiny_training import begun, lines, tiny_config, trained

WHY = "needs torch: pip install 'podium[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_config(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="module")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nobody interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    trained(config, out)
    return out


def until(out: Path, step: int) -> None:
    """Wait until a step's line is written."""
    path = out / "metrics.jsonl"
    while not path.is_file() or f'"step": {step},' not in path.read_text():
        time.sleep(0.02)


def test_a_run_folder_says_what_was_trained_on_what_and_how_it_went(whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    assert manifest["pool"]["name"] == "rehearsal"
    assert len(manifest["pool"]["sha256"]) == 64
    assert manifest["data"]["practice-integer"]["train_questions"] == 24
    assert {"torch", "trl", "transformers"} <= set(manifest["versions"])
    steps = lines(whole)
    assert [line["step"] for line in steps] == list(range(7))
    assert [line["step"] for line in steps if "validation" in line] == [0, 2, 4, 6]
    for key in ("reward", "parsed", "steps", "workers", "entropy", "tokens", "usd", "calls"):
        assert key in steps[-1]
    for folder in ("start", "best", "last", "checkpoints/checkpoint-6"):
        names = {path.name for path in (whole / folder).iterdir()}
        assert {"model.safetensors", "tokenizer.json", "podium.json", "README.md"} <= names
    card = (whole / "best" / "README.md").read_text()
    assert manifest["pool"]["sha256"][:16] in card
    assert len((whole / "plans.jsonl").read_text().splitlines()) == 6 * 16


def test_training_moves_the_weights(whole: Path) -> None:
    before = (whole / "start" / "model.safetensors").read_bytes()
    after = (whole / "last" / "model.safetensors").read_bytes()
    assert len(before) == len(after)
    assert before != after


def test_a_killed_run_makes_the_same_next_steps_as_one_that_was_not(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    process = begun(config, out)
    until(out, 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    trained(config, out, "--resume")
    assert lines(out) == lines(whole)
    assert (out / "plans.jsonl").read_text() == (whole / "plans.jsonl").read_text()
    for folder in ("last", "best"):
        weights = (out / folder / "model.safetensors").read_bytes()
        assert weights == (whole / folder / "model.safetensors").read_bytes()


def test_an_interrupted_run_saves_the_running_step_and_goes_on_from_there(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "stopped"
    process = begun(config, out)
    until(out, 1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode == 0, said[-2000:]
    assert "--resume goes on" in said
    trained(config, out, "--resume")
    plans = [json.loads(line) for line in (out / "plans.jsonl").read_text().splitlines()]
    assert plans == [json.loads(x) for x in (whole / "plans.jsonl").read_text().splitlines()]


def test_a_run_stops_with_a_checkpoint_before_it_passes_its_dollars(
    config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "poor"
    said = trained(config, out, "--max-usd", "0.012")
    assert "another step could pass $0.012" in said or "the money is spent" in said
    made = lines(out)[-1]["step"]
    assert 0 < made < 6
    assert (out / "checkpoints" / f"checkpoint-{made}" / "optimizer.pt").is_file()
    trained(config, out, "--max-usd", "1", "--resume")
    assert [line["step"] for line in lines(out)] == list(range(7))
