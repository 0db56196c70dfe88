"""Twenty steps of GRPO from random weights on two practice suites: the mean reward rises."""

from pathlib import Path

import pytest

from tests.conductor.training.tiny_training import lines, tiny_config, trained_here

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

STEPS = 20

EASY = (
    "form.subtasks=false",
    "form.access=off",
    "form.max_steps=1",
    "form.words=8",
    "warm_start.steps=80",
    f"grpo.max_steps={STEPS}",
    "grpo.num_generations=8",
    "grpo.per_device_train_batch_size=64",
    "grpo.max_completion_length=40",
    "grpo.learning_rate=4e-3",
    "validation.every=20",
    "run.save_every=20",
)
"""Only a plan of one step, and so only a worker, is to be learnt; and to write in the form."""


def test_twenty_steps_from_random_weights_raise_the_mean_reward(tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained_here(tiny_config(tmp_path), out, *(word for one in EASY for word in ("--set", one)))
    steps = lines(out)
    assert [line["step"] for line in steps] == list(range(STEPS + 1))
    rewards = [line["reward"] for line in steps[1:]]
    assert sum(rewards[-5:]) / 5 > sum(rewards[:3]) / 3
    before, after = (out / name / "model.safetensors" for name in ("start", "last"))
    assert before.read_bytes() != after.read_bytes()
    for name in ("manifest.json", "plans.jsonl", "ledger", "best/podium.json", "last/README.md"):
        assert (out / name).exists()
    assert (out / f"checkpoints/checkpoint-{STEPS}/optimizer.pt").is_file()
