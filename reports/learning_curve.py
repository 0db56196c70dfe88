"""Learning curves of one or several trainings, from their metrics.jsonl: reads files only."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError


def draw_curves(folders: Sequence[Path], path: Path) -> Path:
    """Draw validation and reward over steps, a line per run; UserError where there is no run."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9, 3.6), layout="constrained")
    left: Any = figure.add_subplot(1, 2, 1)
    right: Any = figure.add_subplot(1, 2, 2)
    for folder in folders:
        lines = read_run(folder)
        steps, right_ones = points(lines, "validation")
        left.plot(steps, right_ones, marker=".", label=folder.name)
        right.plot(*points(lines, "reward"), label=folder.name, linewidth=1)
    left.set(xlabel="step", ylabel="right, held-out, greedy", ylim=(0, 1))
    right.set(xlabel="step", ylabel="mean reward, sampled", ylim=(0, 1))
    left.legend(fontsize="small")
    figure.savefig(path, dpi=150)
    return path


def read_run(folder: Path) -> list[dict[str, Any]]:
    """Return a run's lines in the order of their steps; UserError when it has none."""
    path = folder / "metrics.jsonl"
    if not path.is_file():
        raise UserError(f"{folder} is no training: it has no metrics.jsonl.")
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return sorted(lines, key=lambda line: line["step"])


def points(lines: Sequence[dict[str, Any]], what: str) -> tuple[list[int], list[float]]:
    """Return steps and values: `reward` of a step, or the share right of a `validation`."""
    found: list[tuple[int, float]] = []
    for line in lines:
        said: Any = line.get(what)
        value = said and said["correct"] if what == "validation" else said
        if value is not None:
            found.append((line["step"], float(value)))
    return [step for step, _ in found], [value for _, value in found]
