"""`podium train` without torch: what it refuses, and the picture that it draws of runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as where it is not installed: an import of it fails
from podium.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_without_torch_a_training_is_one_sentence_that_says_what_to_install(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "train", "practice-cpu", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "podium: Training needs torch: pip install '.[train]'.\n"
    assert not out.exists()


@pytest.mark.parametrize("name", ["aime25", "gpqa-diamond"])
def test_an_exam_teaches_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, names = tmp_path / "run", f'suites.names=["{name}"]'
    words = ["train", "practice-cpu", "--out", str(out), "--set", names]
    assert main([*words, "--set", "suites.weights={}"]) == 2
    said = capsys.readouterr().err
    assert name in said
    assert "is for evaluation only: it has no train split" in said
    assert len(said.splitlines()) == 1
    assert not out.exists()


def run(folder: Path, right: tuple[float, ...]) -> Path:
    """Write the log of a training that was validated every second step."""
    folder.mkdir()
    lines: list[dict[str, Any]] = [
        {"step": at, "reward": 0.5 * worth, "validation": {"correct": worth}}
        for at, worth in enumerate(right)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_learning_curves_of_runs_are_a_picture_with_a_line_for_each(tmp_path: Path) -> None:
    from matplotlib import image

    runs = [run(tmp_path / "a", (0.1, 0.9)), run(tmp_path / "b", (0.8, 0.2))]
    colours: list[int] = []
    for shown in (runs[:1], runs):
        path = tmp_path / f"{len(shown)}.png"
        assert main(["train", "--plot", *map(str, shown), "--to", str(path)]) == 0
        drawn: Any = image.imread(path)
        height, width, _ = drawn.shape
        assert height > 300 < width
        pixels = (255 * drawn[:, :, :3]).round()
        blue, orange = ((0, 114, 178), (213, 94, 0))  # Okabe and Ito's
        colours.append(sum((pixels == one).all(axis=2).any() for one in (blue, orange)))
    assert colours == [1, 2]


def test_a_folder_without_a_training_has_no_learning_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--plot", str(tmp_path), "--to", str(tmp_path / "c.png")]) == 2
    assert "is not a training" in capsys.readouterr().err
    assert not (tmp_path / "c.png").exists()
