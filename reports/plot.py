"""plot.png: accuracy against would-be dollars per query, one panel per exam and label.

Names stand in a key beside each panel and not at the points, so no two labels can overlap.
"""

# pyright: reportUnknownMemberType=false
# matplotlib types its keyword arguments only in part.

from collections.abc import Sequence
from itertools import groupby
from math import ceil
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reports.render import percent
from reports.tables import Row

SOFTWARE = "podium"
"""Stands in the image's metadata: what a later report may overwrite."""

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A",
)  # fmt: skip
"""Okabe and Ito's colour-blind safe palette (2008), yellow replaced by brown: it fades on white."""
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
SINGLE = "single:"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot; systems without accuracy or without a price are named below their panel."""
    panels = [
        list(group) for _, group in groupby(rows, key=lambda row: (row.suite, row.split, row.label))
    ]
    across = 1 if len(panels) == 1 else 2
    down = max(1, ceil(len(panels) / across))
    tallest = max((len(panel) for panel in panels), default=1)
    height = max(3.8, 1.3 + 0.215 * tallest)
    figure = Figure(figsize=(8.2 * across, height * down), layout="constrained")
    FigureCanvasAgg(figure)
    for at, panel in enumerate(panels):
        _panel(figure.add_subplot(down, across, at + 1), panel)
    figure.savefig(path, format="png", dpi=110, metadata={"Software": SOFTWARE})


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    first = rows[0]
    axes.set_title(
        f"{first.suite} {first.suite_version} ({first.split}), {first.label}", fontsize=11
    )
    shown = [row for row in rows if row.accuracy is not None and row.usd_per_query is not None]
    for at, row in enumerate(shown):
        _point(axes, row, at)
    if shown and all(row.usd_per_query for row in shown):
        axes.set_xscale("log")
    axes.set_xlabel("USD per query (would-be)")
    axes.set_ylabel("accuracy, %, with 95 % interval")
    axes.set_ylim(-3, 103)
    axes.grid(visible=True, alpha=0.25)
    if shown:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False)
    left = [row.system for row in rows if row not in shown]
    if left:
        text = "not drawn (no grade or no price): " + ", ".join(left)
        axes.annotate(text, (0.0, -0.2), xycoords="axes fraction", fontsize=7, wrap=True)


def _point(axes: Axes, row: Row, at: int) -> None:
    assert row.accuracy is not None, "the caller draws graded rows only"
    low = row.accuracy - (row.accuracy if row.ci_low is None else row.ci_low)
    high = (row.accuracy if row.ci_high is None else row.ci_high) - row.accuracy
    axes.errorbar(
        float(row.usd_per_query or 0),
        100 * row.accuracy,
        yerr=[[100 * max(low, 0.0)], [100 * max(high, 0.0)]],
        fmt=SHAPES[at // len(COLOURS) % len(SHAPES)],
        color=COLOURS[at % len(COLOURS)],
        markerfacecolor="white" if row.system.startswith(SINGLE) else COLOURS[at % len(COLOURS)],
        markersize=8,
        elinewidth=1,
        capsize=2,
        label=f"{percent(row.accuracy)}  {row.system}",
    )
