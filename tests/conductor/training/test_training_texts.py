"""Texts of a suite that must not be published are in nothing that a training writes or prints."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from podium.cli.list_commands import whole_catalogue
from podium.conductor.training.config import read_config
from podium.conductor.training.job import find_job
from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.rewards.splits import whole_text
from tests.conductor.training.tiny_training import tiny_config
from tests.harness.rewards.small_suites import Graded

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

CANARY = "zyxquatch"
PARTS = ("tail", "wing", "claw", "beak", "horn")


@dataclass
class Secret(Graded):
    """Ten questions with a canary in each, which may not be published."""

    name: str = "secret"
    publishable: bool = False

    def load(self, split: Any = "train") -> Sequence[Question]:
        return [
            Question(
                f"q{n}", f"The {CANARY}'s {PARTS[n % 5]} weighs {n}. Say it.", "integer", str(n)
            )
            for n in range(10)
        ]


def test_no_text_of_a_secret_suite_is_written_or_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    from podium.conductor.training.train import train

    settings = ('suites.names=["secret"]', "grpo.max_steps=2", "warm_start.steps=20")
    config = read_config(str(tiny_config(tmp_path)), settings)
    known = replace(whole_catalogue(), suites={"secret": Secret()})
    out = tmp_path / "run"
    caplog.set_level(logging.DEBUG)
    training = find_job(config, out, known, whole_text)
    said: list[str] = []
    train(training, said.append)
    printed = capfd.readouterr()
    assert CANARY not in printed.out + printed.err + "\n".join(said) + caplog.text
    written = [path for path in out.rglob("*") if path.is_file()]
    assert len(written) > 20
    wanted = CANARY.encode()
    assert [path for path in written if wanted in path.read_bytes()] == []
    assert (out / "plans.jsonl").read_text().count("\n") == 32


def test_a_log_of_completions_is_refused_where_texts_must_not_be_published(tmp_path: Path) -> None:
    settings = ('suites.names=["secret"]', "grpo.log_completions=true")
    config = read_config(str(tiny_config(tmp_path)), settings)
    known = replace(whole_catalogue(), suites={"secret": Secret()})
    with pytest.raises(UserError, match="log_completions writes prompts to files, and suite 'sec"):
        find_job(config, tmp_path / "run", known, whole_text)


class Leaky(Secret):
    """A validation split of four questions, two of which the exam asks, too."""

    def load(self, split: Any = "train") -> Sequence[Question]:
        numbers = {"train": range(10, 20), "validation": range(4), "eval": range(2, 9)}[split]
        return [Question(f"{split}-{n}", f"Say {n}.", "integer", str(n)) for n in numbers]


def test_a_validation_question_that_an_exam_asks_is_left_out(tmp_path: Path) -> None:
    config = read_config(str(tiny_config(tmp_path)), ('suites.names=["secret"]',))
    leaky = Leaky(splits=("train", "validation", "eval"))
    known = replace(whole_catalogue(), suites={"secret": leaky})
    training = find_job(config, tmp_path / "run", known, whole_text)
    assert list(training.held_out["secret"].questions) == ["validation-0", "validation-1"]
