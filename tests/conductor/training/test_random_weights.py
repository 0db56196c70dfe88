"""paper-7b with random weights: the very configuration, made tiny by settings alone, on a CPU."""

import json
from pathlib import Path

import pytest

from podium.conductor.training.config import CONFIGS
from podium.conductor.training.training_estimate import PUBLISHED, shape_of
from tests.conductor.training.tiny_training import lines, trained_here

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)
safe_open = pytest.importorskip("safetensors").safe_open

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs


def tiny() -> list[str]:
    """Return the settings that the configuration's own comment names."""
    said = (CONFIGS / "paper-7b-random.toml").read_text().partition("base =")[0]
    words = said.partition("--out runs/tiny-0 ")[2].replace("#", " ").replace("\\", " ")
    return words.split()


def test_a_step_of_the_published_setting_with_random_weights_is_made_by_settings_alone(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    said = trained_here(Path("paper-7b-random"), out, *tiny())
    assert "Step 1: all steps are made." in said
    assert [line["step"] for line in lines(out)] == [0, 1]
    sizes = json.loads((out / "last" / "config.json").read_text())
    assert (sizes["vocab_size"], sizes["tie_word_embeddings"]) == (2048, False)


def test_weights_under_adapters_are_made_in_the_type_in_which_they_are_read(tmp_path: Path) -> None:
    """In bfloat16 a base of seven billion weights takes 15 GB of a card and of the disk."""
    out = tmp_path / "run"
    half = ("lora.r=4", "lora.alpha=8", "grpo.model_init_kwargs.dtype=bfloat16")
    sets = [word for one in half for word in ("--set", one)]
    assert "Step 1: all steps are made." in trained_here(
        Path("paper-7b-random"), out, *tiny(), *sets
    )
    with safe_open(out / "start" / "model.safetensors", "pt") as weights:
        kinds = {str(weights.get_tensor(name).dtype) for name in weights.keys()}  # noqa: SIM118
    assert kinds == {"torch.bfloat16"}


def test_random_weights_have_the_sizes_of_the_published_model() -> None:
    from podium.conductor.training.config import read_config

    assert shape_of(read_config("paper-7b-random")) == PUBLISHED["Qwen2.5-7B"]
