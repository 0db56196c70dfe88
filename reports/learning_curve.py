"""Learning curves of one or several trainings, from their metrics.jsonl: reads files only."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError
from reports.plot import drawable

OVER = 10
"""Steps that the thick line of rewards is a mean of: one step's mean jumps with its questions."""


def draw_curves(folders: Sequence[Path], path: Path) -> Path:
    """Draw validation and reward over steps, a line per run; UserError where there is no run."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9, 3.6), layout="constrained")
    left: Any = figure.add_subplot(1, 2, 1)
    right: Any = figure.add_subplot(1, 2, 2)
    for folder in folders:
        lines = read_run(folder)
        steps, right_ones = points(lines, "validation")
        left.plot(steps, right_ones, marker=".", label=drawable(folder.name))
        steps, rewards = points(lines, "reward")
        (thin,) = right.plot(steps, rewards, linewidth=0.6, alpha=0.35)
        right.plot(steps, smooth(rewards), color=thin.get_color(), label=drawable(folder.name))
    left.set(xlabel="step", ylabel="right, held-out, greedy", ylim=(0, 1))
    right.set(xlabel="step", ylabel=f"mean reward, sampled (mean of {OVER} steps)", ylim=(0, 1))
    left.legend(fontsize="small")
    figure.savefig(path, dpi=150)
    return path


def draw_panels(panels: Mapping[str, Sequence[Path]], path: Path) -> Path:
    """Draw validation over steps, a panel per training and a line per run; its start is ringed.

    UserError where a folder is no run.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(3.2 * len(panels), 3.2), layout="constrained")
    every: Any = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for axes, (title, folders) in zip(every[0], panels.items(), strict=True):
        for folder in folders:
            steps, right = points(read_run(folder), "validation")
            (line,) = axes.plot(steps, right, marker=".", label=drawable(folder.name))
            axes.plot(steps[:1], right[:1], marker="o", markersize=9, fillstyle="none",
                      color=line.get_color())  # fmt: skip
        axes.set(title=title, xlabel="step", ylim=(0, 1))
        axes.legend(fontsize="small", loc="lower right")
    every[0][0].set_ylabel("right, held-out, greedy (ring: start)")
    figure.savefig(path, dpi=150)
    return path


def smooth(values: Sequence[float], over: int = OVER) -> list[float]:
    """Return the mean of each value and those before it, `over` of them at most.

    >>> smooth([1.0, 3.0, 5.0], 2)
    [1.0, 2.0, 4.0]
    """
    parts = [values[max(0, end - over) : end] for end in range(1, len(values) + 1)]
    return [sum(part) / len(part) for part in parts]


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
