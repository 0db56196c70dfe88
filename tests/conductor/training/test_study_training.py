"""A study trains for a few steps on a toy matrix, keeps no text, and says what it is.

It runs where torch, transformers and TRL are installed, and is skipped elsewhere.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from podium.cli.list_commands import whole_catalogue
from podium.conductor.checkpoint import read_info, read_study
from podium.conductor.embedded import greedy_speaker
from podium.conductor.trained import CheckpointMethods
from podium.conductor.training.config import TrainingConfig, read_config
from podium.conductor.training.job import find_job
from podium.conductor.verdict_reward import planned_workers, split_verdicts
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)

REASON = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=REASON)
pytest.importorskip("trl", reason=REASON)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # what torch and transformers warn of is theirs
]

CANARY = "zyzzyva"
TINY = (
    "model.from_scratch.hidden=32",
    "model.from_scratch.intermediate=64",
    "model.from_scratch.vocab=400",
    "warm_start.steps=4",
    "warm_start.batch=8",
    "grpo.max_steps=3",
    "grpo.num_generations=4",
    "grpo.per_device_train_batch_size=16",
    "grpo.max_completion_length=48",
    "run.save_every=3",
    "validation.every=3",
)


def matrix() -> Matrix:
    """Return forty questions that must not be published, and whom of three workers gets them."""
    asked = [MatrixQuestion(f"q{n}", f"The {CANARY} of tale {n} is odd.") for n in range(40)]
    cells = [
        MatrixCell(one.id, name, float(n % 3 == at))
        for n, one in enumerate(asked)
        for at, name in enumerate(("Ada (High)", "bo", "cy"))
    ]
    return assemble_matrix(MatrixSource("toy", "made up", publishable=False), asked, cells)


def trained(out: Path) -> TrainingConfig:
    """Train a study on the first thirty questions, in the folder `out`."""
    from podium.conductor.training.train import train

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    config = read_config("verdicts-gpqa", TINY)

    def study(part: Any) -> Any:
        declared = {"source": "toy", "suite": "gpqa-diamond", "split": part.split}
        public = [f"Say number {n} in plain words." for n in range(30)]
        return split_verdicts(
            matrix().rows(range(30)), **declared, split_seed=part.split_seed, public=public
        )

    job = find_job(config, out, whole_catalogue(), lambda question: question.text, study=study)
    train(job, say=lambda said: None)
    return config


def test_three_steps_of_a_study_keep_no_text_and_say_what_they_are(tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained(out)
    every = [path for path in out.rglob("*") if path.is_file()]
    assert len(list(out.glob("checkpoints/checkpoint-3/*"))) > 5
    assert [path for path in every if CANARY.encode() in path.read_bytes()] == []
    study = read_study(out / "best")
    assert (study.role, study.split, study.exam) == ("study", "share:0.5", "gpqa-diamond")
    assert len(study.taught) + len(study.validated) == 30
    about = read_info(out / "best")
    assert about.role == "study"
    assert "was trained on recorded verdicts" in (
        CheckpointMethods().suite_refusal(str(out / "best"), "gpqa-diamond", ()) or ""
    )
    judged = matrix().rows(range(30, 40))
    assert planned_workers(study, judged, greedy_speaker(out / "best")).shape == (10,)
