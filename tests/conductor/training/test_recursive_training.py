"""A recursive training: later rounds are made beforehand, told from first ones, and made again."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from podium.harness.ledger.system_runs import spent
from podium.harness.prices import read_book
from tests.conductor.training.tiny_training import (
    finished,
    lines,
    refused_here,
    tiny_config,
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


def test_two_processes_make_first_plans_once_and_hold_one_limit_of_dollars(
    runs: Path, tmp_path: Path
) -> None:
    wanted = (
        f"model.path={runs / 'again' / 'start'}", "warm_start.kind=none", "validation.every=9",
        "grpo.scale_rewards=batch", "grpo.per_device_train_batch_size=8", "grpo.max_steps=9",
        'suites.names=["practice-integer"]', "validation.questions=5", "run.save_every=9",
    )  # fmt: skip
    words = [word for one in wanted for word in ("--set", one)]
    out = tmp_path / "two"
    most = Decimal("0.072")  # a call can cost 0.032, and each process has half
    said = finished(together(2, runs / "again.toml", out, *words, "--max-usd", str(most)))
    kept = json.loads((out / "first_rounds.json").read_text())
    n = len(kept["kept"])
    assert said.count(f"{n} of {n + len(kept['unread'])} first plans were executed") == 1
    assert n > 0
    assert 5 <= lines(out)[0]["validation"]["questions"] <= 10  # an odd number, over two
    assert "; continue with --resume" in said
    assert lines(out)[-1]["step"] < 9
    assert 0 < spent(out / "ledger", read_book("rehearsal")) <= most


def test_a_discount_that_would_cancel_is_refused(runs: Path) -> None:
    words = ["--set", "grpo.scale_rewards=group", "--set", "model.path=x"]
    said = refused_here(runs / "again.toml", runs / "none", *words)
    assert "scale_rewards=batch" in said
