"""Trainings from end to end: complete, killed, stopped; two processes; adapters.

What is killed or stopped has a process of its own; what is not is trained in this one. Not here:
those that run out of money or patience (test_ended_trainings.py).
"""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from podium.conductor.checkpoint import read_info
from podium.conductor.decoder import read_decoder
from podium.harness.errors import UserError
from tests.conductor.training.tiny_training import (
    TINY,
    begun,
    finished,
    lines,
    refused_here,
    together,
    trained_here,
)

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what torch's libraries warn of is theirs
]


def until(process: subprocess.Popen[str], out: Path, step: int) -> None:
    """Wait until a step's line is written, or the process has ended without it."""
    path = out / "metrics.jsonl"
    while not path.is_file() or f'"step": {step},' not in path.read_text():
        assert process.poll() is None, process.communicate()[0][-4000:]
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
    assert len((whole / "plans.jsonl").read_text().splitlines()) == 6 * 16


def test_every_checkpoint_says_what_its_validation_came_to(whole: Path) -> None:
    for folder in ("start", "best", "last", "checkpoints/checkpoint-6"):
        names = {path.name for path in (whole / folder).iterdir()}
        assert {"model.safetensors", "tokenizer.json", "podium.json", "README.md"} <= names
        card = " ".join((whole / folder / "README.md").read_text().split())
        assert json.loads((whole / "manifest.json").read_text())["pool"]["sha256"][:16] in card
        made = folder != "start"
        assert ("Greedy, 12 held-out questions" in card) == made
        assert ("is a maximum and optimistic" in card) == made


def test_the_seconds_of_a_step_divide_into_its_parts(whole: Path) -> None:
    for line in map(json.loads, (whole / "metrics.jsonl").read_text().splitlines()[1:]):
        parts = [line[f"{part}_seconds"] for part in ("worker", "grading", "generation", "update")]
        assert sum(parts) == pytest.approx(line["seconds"], abs=0.01)
        assert 0.01 < line["peak_memory_gib"] < 1000
        validation = line.get("validation", line)
        parts = [validation[f"{part}_seconds"] for part in ("worker", "grading")]
        assert sum(parts) == pytest.approx(validation["reward_seconds"], abs=0.01)


def test_tensorboard_has_validations_and_the_shares_of_workers(whole: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    (path,) = whole.glob("**/events.out.tfevents.*")
    written: Any = reader.EventAccumulator(str(path)).Reload()
    line = json.loads((whole / "metrics.jsonl").read_text().splitlines()[-1])
    for name, values in (("correct", line["validation"]), ("suite/practice-choice", {})):
        said = written.Scalars(f"train/validation/{name}")
        assert [one.step for one in said] == [0, 2, 4, 6]
        assert said[-1].value == pytest.approx(values.get(name, said[-1].value))
    shares = [written.Scalars(f"train/podium/worker/{name}") for name in line["workers"]]
    assert sum(share[-1].value for share in shares) == pytest.approx(1)


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
    until(process, out, 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    trained_here(config, out, "--resume")
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
    until(process, out, 1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode == 0, said[-2000:]
    assert "; continue with --resume" in said
    assert "hashed" not in said  # all that a training hangs on is no text for the screen
    trained_here(config, out, "--resume")
    plans = [json.loads(line) for line in (out / "plans.jsonl").read_text().splitlines()]
    assert plans == [json.loads(x) for x in (whole / "plans.jsonl").read_text().splitlines()]
    assert lines(out) == lines(whole)


def test_two_processes_train_one_model_and_write_one_folder(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "two"
    wanted = (
        "grpo.max_steps=2",
        "grpo.per_device_train_batch_size=8",
        "warm_start.steps=40",
    )
    said = finished(together(2, config, out, *(w for one in wanted for w in ("--set", one))))
    assert said.count("all steps are made") == 1
    steps = lines(out)
    assert [line["step"] for line in steps] == [0, 1, 2]
    assert [line["validation"]["questions"] for line in steps if "validation" in line] == [12, 12]
    plans = [json.loads(line) for line in (out / "plans.jsonl").read_text().splitlines()]
    assert len(plans) == 2 * 16
    assert len({(plan["suite"], plan["question"]) for plan in plans}) == 8
    assert (out / "last" / "model.safetensors").is_file()
    warm = [json.loads(line) for line in (out / "warm_start.jsonl").read_text().splitlines()]
    assert [line["step"] for line in warm] == [0, 20, 39]


def test_adapters_are_trained_and_merged_into_a_model_that_is_embedded(
    config: Path, tmp_path: Path
) -> None:
    pytest.importorskip("peft", reason=WHY)
    out = tmp_path / "adapters"
    wanted = ("lora.r=4", "lora.target_modules=all-linear", "grpo.max_steps=2", "run.save_every=2")
    trained_here(config, out, *(word for one in wanted for word in ("--set", one)))
    assert (out / "last" / "adapter" / "adapter_model.safetensors").is_file()
    before, after = (read_decoder(out / name) for name in ("start", "last"))
    assert before.parameters == after.parameters
    with pytest.raises(UserError, match="has adapters, not whole weights"):
        read_decoder(out / "checkpoints" / "checkpoint-2")


def test_all_that_a_loaded_model_learns_is_in_its_adapters_from_the_warm_start_on(
    tmp_path: Path,
) -> None:
    from safetensors.numpy import load_file

    pytest.importorskip("peft", reason=WHY)
    words = {"warm_start.steps": 2, "grpo.max_steps": 1, "validation.questions": 2}
    quick = [word for key, value in words.items() for word in ("--set", f"{key}={value}")]
    path, began, out = tmp_path / "tiny.toml", tmp_path / "began", tmp_path / "out"
    path.write_text(TINY)
    trained_here(path, began, *quick)
    path.write_text(TINY[TINY.index("[pool]") :])
    trained_here(path, out, *quick, "--set", f"model.path={began / 'start'}", "--set", "lora.r=4")
    assert (out / "start" / "adapter_model.safetensors").is_file()
    assert not (out / "start" / "model.safetensors").exists()
    before, after = (
        load_file(folder / "model.safetensors") for folder in (began / "start", out / "last")
    )
    moved = {name for name, held in before.items() if not np.array_equal(held, after[name])}
    assert moved == {name for name in before if "proj.weight" in name}
    assert read_info(out / "last").weights_sha256  # of the merged weights, which are read


def test_a_chat_model_is_warmed_up_in_the_template_that_it_is_asked_in(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    mark, words = "\x01", {"warm_start.steps": 2, "grpo.max_steps": 1, "validation.questions": 2}
    path, began = tmp_path / "tiny.toml", tmp_path / "began"
    path.write_text(TINY.replace("layers = 1", "layers = 1\ntied = false"))
    quick = [word for key, value in words.items() for word in ("--set", f"{key}={value}")]
    trained_here(path, began, *quick, "--set", "warm_start.kind=none")
    template = began / "start" / "chat_template.jinja"
    template.write_text(template.read_text().replace("{{", f"{mark}{{{{"))
    path.write_text(TINY[TINY.index("[pool]") :])
    trained_here(path, tmp_path / "chat", *quick, "--set", f"model.path={began / 'start'}")
    tokenizer = Tokenizer.from_file(str(began / "start" / "tokenizer.json"))
    (token,) = tokenizer.encode(mark, add_special_tokens=False).ids
    before, after = (
        load_file(folder / "start" / "model.safetensors")["model.embed_tokens.weight"][token]
        for folder in (began, tmp_path / "chat")
    )
    assert (before != after).all()  # it was read, and so it was taught


def test_a_checkpoint_of_another_model_is_refused(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "foreign"
    shutil.copytree(whole, out)
    path = out / "checkpoints" / "checkpoint-6" / "config.json"
    path.write_text(path.read_text().replace('"hidden_size": 32', '"hidden_size": 64'))
    said = refused_here(config, out, "--resume")
    assert "checkpoint-6 is of another model: its hidden_size is 64" in said
    assert lines(out) == lines(whole)
