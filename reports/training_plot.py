"""Draw curve.png: training metrics by step, with intervals, and the shares of workers in plans."""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from podium.harness.errors import UserError
from podium.reports.plot import COLOURS, SOFTWARE, drawable, may_replace
from podium.reports.training_runs import (
    SHARE,
    CurvePanel,
    TrainingRun,
    alike,
    asked_shares,
    panels_of,
    training_runs,
)

ACROSS = 2
MOST = 8
"""Maximum number of training runs in the legend; more entries would hide the curves."""


FORMATS: Mapping[str, Mapping[str, str | None]] = {
    "png": {"Software": SOFTWARE},
    "pdf": {"Creator": SOFTWARE, "CreationDate": None},
    "svg": {"Creator": SOFTWARE, "Date": None},
}
"""Format -> metadata by which podium recognises its own plots; these have no timestamp."""


def draw_curves(folders: Sequence[Path], path: Path) -> list[TrainingRun]:
    """Draw the curves of trainings into a file; return the trainings.

    Raises `UserError` for a folder without a training, an unknown format, and a file that cannot be
    written or that podium did not draw.
    """
    format = path.suffix.removeprefix(".").lower()
    if format not in FORMATS:
        formats = f"{', '.join(FORMATS)}; a folder becomes a page"
        raise UserError(f"Curves cannot be drawn in the format of {path}. Use one of: {formats}.")
    if not may_replace(path):
        raise UserError(f"{path} was not written by podium; name another --to.")
    runs = training_runs(folders)
    try:
        write_curves(runs, path, format)
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror})"
        raise UserError(f"{problem}; name another --to.") from error
    return runs


def write_curves(runs: Sequence[TrainingRun], path: Path, format: str = "png") -> None:
    """Write the curves of trainings as a file; the same runs give the same bytes of a PNG."""
    drawn: Any = curves_of(runs)
    drawn.savefig(path, format=format, dpi=110, metadata=FORMATS[format])


def curves(*folders: str | Path) -> Figure:
    """Return the curves of trainings as a figure; UserError for a folder without a training."""
    return curves_of(training_runs([Path(folder) for folder in folders]))


def curves_of(runs: Sequence[TrainingRun]) -> Figure:
    """Return a plot: a panel per training metric, and below the shares of workers in plans."""
    panels = panels_of(runs)
    # An area chart needs two steps.
    trainings = {name: some for name, some in alike(runs).items() if len(asked_shares(some)) > 1}
    down = ceil((len(panels) + len(trainings)) / ACROSS)
    figure: Any = Figure(figsize=(11, 3.1 * down), layout="constrained")
    places: list[Any] = list(figure.subplots(down, ACROSS, squeeze=False).flat)
    for axes, panel in zip(places, panels, strict=False):
        _panel(axes, panel, runs)
    if places[0].get_legend_handles_labels()[0]:  # colours are the same in all panels
        places[0].legend(fontsize="x-small", frameon=False)
    below = places[len(panels) :]
    for axes, (name, some) in zip(below, trainings.items(), strict=False):
        _asked(axes, name, some)
    for axes in below[len(trainings) :]:
        axes.set_axis_off()
    return figure


def _panel(axes: Any, panel: CurvePanel, runs: Sequence[TrainingRun]) -> None:
    colours = {run.name: COLOURS[index % len(COLOURS)] for index, run in enumerate(runs)}
    means = any(curve.mean for curve in panel.curves)
    for curve in panel.curves:
        steps, values = [dot.step for dot in curve.points], [dot.value for dot in curve.points]
        look = {"color": colours.get(curve.run, "black"), "linewidth": 2.2 if curve.mean else 1.3}
        has_label = curve.mean or len(runs) <= MOST
        marker = "." if len(steps) <= 60 else ""
        label = drawable(curve.run) if has_label else None
        axes.plot(steps, values, marker=marker, label=label, **look)
        if curve.mean or not means:
            points = [point for point in curve.points if point.low is not None]
            lows, highs = [point.low for point in points], [point.high for point in points]
            band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
            axes.fill_between([point.step for point in points], lows, highs, **band)
    axes.set_title(drawable(panel.title), fontsize=10)
    axes.set(xlabel="step", ylabel=panel.unit)
    axes.set_ylim(bottom=0, top=1 if panel.unit == SHARE else None)
    axes.grid(visible=True, alpha=0.25)


def _asked(axes: Any, training: str, runs: Sequence[TrainingRun]) -> None:
    """Plot each worker's share of plan steps over the training steps, as stacked areas."""
    step_shares = asked_shares(runs)
    workers = sorted({name for _, table in step_shares for name in table})
    stacked = [[table.get(name, 0.0) for _, table in step_shares] for name in workers]
    palette = [COLOURS[index % len(COLOURS)] for index in range(len(workers))]
    steps = [step for step, _ in step_shares]
    axes.stackplot(steps, stacked, labels=list(map(drawable, workers)), colors=palette)
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    axes.set_title(drawable(f"workers that {training} asks, on held-out questions"), fontsize=10)
    axes.set(xlabel="step", ylabel="share of a plan's steps", ylim=(0, 1))
