"""The script for minutes on a GPU, as far as a CPU can tell: names, wheels, pieces."""

import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from podium.conductor.parse import PlanFormat
from podium.conductor.prompt import plan_prompt
from podium.conductor.training.config import read_config
from podium.harness.pool_config import read_pool
from podium.suites import SUITES
from tests.benchmarks import gpu_session
from tests.benchmarks.gpu_session import join_pieces, name_entry_points, split_large

LEAST_CHARACTERS = 3.2
"""Of a token: 1,131 were 355 in SmolLM2's words (2026-11-28)."""
FINDS = """
import sys
from importlib.metadata import distribution
from inspect_ai.model import get_model
print(distribution("podium").version, get_model("rehearsal/sage"))
"""


@pytest.mark.slow
def test_a_podium_that_is_only_on_the_path_is_found_by_its_entry_points(tmp_path: Path) -> None:
    folder = name_entry_points(tmp_path)
    (about,) = folder.glob("*.dist-info")
    named = {(point.group, point.name) for point in PathDistribution(about).entry_points}
    assert {("inspect_ai", "podium"), ("console_scripts", "podium")} <= named
    done = subprocess.run(
        [sys.executable, "-c", FINDS],
        env={"PYTHONPATH": f"{folder}:{gpu_session.ROOT}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["0", "rehearsal/sage"], done.stderr


def test_what_botocore_knows_of_services_is_left_out_of_its_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "botocore-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (
            "botocore/client.py",
            "botocore/data/s3/service-2.json",
            "botocore/cacert.pem",
        ):
            archive.writestr(name, "")
    gpu_session._trim(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist() == ["botocore/client.py", "botocore/cacert.pem"]


def test_large_results_leave_in_pieces_and_come_together_again(tmp_path: Path) -> None:
    whole = bytes(range(256)) * 10
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "adapter.safetensors").write_bytes(whole)
    (tmp_path / "small.json").write_text("{}")
    pieces = split_large(tmp_path, piece=1000)
    assert [piece.stat().st_size for piece in pieces] == [1000, 1000, 560]
    assert not (tmp_path / "last" / "adapter.safetensors").exists()
    missing = pieces[1].read_bytes()
    pieces[1].unlink()
    with pytest.raises(SystemExit, match=r"A piece of .*adapter\.safetensors is missing"):
        join_pieces(tmp_path)
    pieces[1].write_bytes(missing)
    assert join_pieces(tmp_path) == [tmp_path / "last" / "adapter.safetensors"]
    assert (tmp_path / "last" / "adapter.safetensors").read_bytes() == whole
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == [
        "adapter.safetensors",
        "small.json",
    ]


@pytest.mark.parametrize("name", ["small-gpu", "smollm"])
def test_a_static_cache_holds_the_longest_practice_prompt_and_its_plan(name: str) -> None:
    config = read_config(name)
    cards = [worker.card for worker in read_pool("rehearsal").workers]
    form = PlanFormat(layout=config.form.layout)
    questions = [one for suite in config.suites.names for one in SUITES[suite].load("train")]
    prompts = (plan_prompt(form, question.text, cards) for question in questions)
    most = max(sum(len(turn.text) for turn in prompt) for prompt in prompts)
    longest = most / LEAST_CHARACTERS + config.grpo["max_completion_length"]
    assert config.grpo["generation_kwargs"]["max_cache_len"] >= longest
