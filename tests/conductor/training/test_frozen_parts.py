"""What a configuration freezes is the same after GRPO; what it does not is not."""
# pyright: basic, reportMissingImports=false

from pathlib import Path
from typing import Any

import pytest

from tests.conductor.training.tiny_training import tiny_config, trained_here

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)
safetensors: Any = pytest.importorskip("safetensors.numpy", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

STEPS = ("grpo.max_steps=2", "grpo.learning_rate=1e-2")


def test_grpo_leaves_frozen_parts_as_the_warm_start_made_them(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = (*STEPS, 'model.frozen=["layers.0.self_attn"]')
    trained_here(tiny_config(tmp_path), out, *(word for one in words for word in ("--set", one)))
    before, after = (
        safetensors.load_file(out / name / "model.safetensors") for name in ("start", "last")
    )
    same = {name for name, values in before.items() if (values == after[name]).all()}
    assert same == {name for name in before if "layers.0.self_attn" in name}


def test_a_part_that_no_parameter_has_is_refused_in_one_sentence(tmp_path: Path) -> None:
    words = (*STEPS, "warm_start.steps=2", 'model.frozen=["layers.7"]')
    given = (word for one in words for word in ("--set", one))
    said = "podium: \\[model\\] frozen: no parameter's name contains 'layers.7'"
    with pytest.raises(AssertionError, match=said):  # the helper holds the exit code against 0
        trained_here(tiny_config(tmp_path), tmp_path / "run", *given)
