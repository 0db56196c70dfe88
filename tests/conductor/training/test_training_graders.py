"""The graders that reward a training: pinned in its folder, and what is refused once they moved."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.checkpoint import read_info
from podium.conductor.training.config import read_config
from podium.conductor.training.job import TrainingJob, find_job
from podium.conductor.training.model_card import describe_checkpoint
from podium.conductor.training.run_folder import prepare_folder
from podium.harness.errors import UserError
from podium.suites.mbpp import MBPP
from podium.suites.practice import choice, integer
from tests.conductor.toy_checkpoint import write_checkpoint

NAMES = ("practice-integer", "practice-choice", "practice-code", "practice-composed")
SMALL = ("suites.train=8", "validation.questions=4")
MOVED = {
    "practice-integer": replace(integer.SUITE, version="1000-A"),
    "practice-choice": replace(choice.SUITE, version="1001-A"),
}


def training(out: Path, moved: Mapping[str, Any] = {}, *, resume: bool = False) -> TrainingJob:
    """Return a training whose suites are graded by other versions than ours, where some moved."""
    parts = whole_catalogue()
    known = {name: parts.suites[name] for name in parts.suites}
    parts = replace(parts, suites={**known, **moved})
    config = read_config("practice-cpu", SMALL)
    return find_job(config, out, parts, controls().bare, resume=resume)


def refused(made: TrainingJob) -> str:
    with pytest.raises(UserError) as error:
        prepare_folder(made)
    return str(error.value)


def edited(out: Path, edit: Any) -> None:
    path = out / "manifest.json"
    said = json.loads(path.read_text())
    edit(said)
    path.write_text(json.dumps(said))


def test_a_manifest_pins_the_grader_of_every_suite_of_a_mix(tmp_path: Path) -> None:
    prepare_folder(training(tmp_path))
    said = json.loads((tmp_path / "manifest.json").read_text())["data"]
    known = whole_catalogue().suites
    assert {name: one["version"] for name, one in said.items()} == {
        name: known[name].version for name in NAMES
    }


def test_a_resumed_training_is_refused_in_a_sentence_that_names_every_grader_that_moved(
    tmp_path: Path,
) -> None:
    prepare_folder(training(tmp_path))
    edited(tmp_path, lambda said: said.update(code_revision="0123456789abcdef"))
    before = (tmp_path / "manifest.json").read_bytes()
    now = whole_catalogue().suites
    integer, choice = (now[name].version for name in MOVED)
    version = json.loads(before)["versions"]["podium"]
    assert refused(training(tmp_path, MOVED, resume=True)) == (
        f"Graders of this training have changed since it began: practice-integer {integer} (now "
        f"1000-A), practice-choice {choice} (now 1001-A). All its rewards must be of one version. "
        f"Resume it with podium {version} (commit 0123456789ab), or begin anew with --out."
    )
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_a_training_goes_on_with_the_graders_that_it_began_with(tmp_path: Path) -> None:
    prepare_folder(training(tmp_path, MOVED))
    assert prepare_folder(training(tmp_path, MOVED, resume=True)) == tmp_path


def test_a_grader_of_a_suite_that_teaches_nobody_may_move(tmp_path: Path) -> None:
    prepare_folder(training(tmp_path))
    other = {"mbpp": replace(MBPP, version="1000-A")}
    assert prepare_folder(training(tmp_path, other, resume=True)) == tmp_path


def test_a_manifest_that_pins_no_grader_is_said_to_be_unknown(tmp_path: Path) -> None:
    prepare_folder(training(tmp_path))
    edited(tmp_path, lambda said: said["data"]["practice-choice"].pop("version"))
    assert refused(training(tmp_path, resume=True)) == (
        "This training's manifest does not say which version of suite practice-choice graded its "
        "rewards, and one training must use one version. Start a new training with --out."
    )


def test_a_manifest_that_does_not_know_its_podium_is_no_crash(tmp_path: Path) -> None:
    prepare_folder(training(tmp_path))
    edited(tmp_path, lambda said: [said.pop(key) for key in ("versions", "code_revision")])
    said = refused(training(tmp_path, MOVED, resume=True))
    assert "Resume it with the podium that it began with, or begin anew with --out." in said


def test_a_checkpoint_says_which_graders_rewarded_it(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "best")
    describe_checkpoint(training(tmp_path / "run", MOVED), folder, 3, None)
    said = read_info(folder).graders
    now = {name: whole_catalogue().suites[name].version for name in NAMES}
    assert said == {**now, "practice-integer": "1000-A", "practice-choice": "1001-A"}


def test_ablations_are_not_mixed_with_those_of_other_graders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.toml"
    file.write_text(
        'config = "practice-cpu"\nreference = "a"\n[all.suites]\ntrain = 8\n'
        '[ablations.a]\nsays = "A."\n'
    )
    prepare_folder(training(tmp_path / "out" / "runs" / "a-seed-0", MOVED))
    assert main(["ablate", "--file", str(file), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "training have changed since it began: practice-integer 1000-A (now" in said


def test_a_training_that_goes_on_from_a_checkpoint_says_whose_graders_have_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_checkpoint(tmp_path / "best")
    describe_checkpoint(training(tmp_path / "run", MOVED), folder, 3, None)
    begin = ("--set", f"model.path={folder}", "--set", "suites.train=8")
    assert main(["train", "practice-cpu-recursive", "--dry-run", *begin]) == 0
    said = f"The training of conductor@{folder} used other grader versions: practice-integer 1000-A"
    assert said in capsys.readouterr().out


def test_a_training_from_random_weights_goes_on_from_no_grader(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "practice-cpu", "--dry-run", "--set", "suites.train=8"]) == 0
    assert "grader versions" not in capsys.readouterr().out
