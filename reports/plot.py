"""plot.png: accuracy against would-be dollars per query."""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from harness.text import escape_controls
from reports.blocks import SINGLE, asked_name, avg_at, blocks_of, book_name, pool_name
from reports.costs import non_dominated
from reports.render import percent
from reports.row import TableRow

# pyright: reportUnknownMemberType=false
# matplotlib types its keyword arguments only in part.


SOFTWARE = "podium"  # stands in the image's metadata: what a later report may overwrite

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A",
)  # fmt: skip
"""Okabe and Ito's colour-blind safe palette (2008), yellow replaced by brown: it fades on white."""
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
MOST = 60  # systems in one panel; more of them hide each other, and a panel grows with its key
DECADE = 10  # a range wider than this is drawn on a logarithmic axis
DOLLARS = "USD per query (would-be)"
TOKENS = "output tokens per query (no worker here has a price)"


def draw(rows: Sequence[TableRow], path: Path) -> None:
    """Write the plot as a PNG file."""
    figure_of(rows).savefig(path, format="png", dpi=110, metadata={"Software": SOFTWARE})


def figure_of(rows: Sequence[TableRow]) -> Figure:
    """Return the plot; systems without accuracy or without a price are named below their panel."""
    blocks = blocks_of(rows)
    panels = [thinned(block) for block in blocks]
    across = 1 if len(panels) == 1 else 2
    down = max(1, ceil(len(panels) / across))
    tallest = max(map(len, panels), default=1)
    height = max(3.8, 1.3 + 0.215 * tallest)
    figure = Figure(figsize=(8.2 * across, height * down), layout="constrained")
    FigureCanvasAgg(figure)
    looks = _looks(rows)
    for at, (panel, block) in enumerate(zip(panels, blocks, strict=True)):
        axes = figure.add_subplot(down, across, at + 1)
        _panel(axes, panel, looks)
        _name(axes, panel, len(block), rows)
    return figure


def thinned(block: Sequence[TableRow]) -> list[TableRow]:
    """Return the most accurate rows of a large block (rows come sorted so), with the reference."""
    rest = [row for row in block[MOST:] if row.verdict == "reference"]
    return [*block[: MOST - len(rest)], *rest]


def _looks(rows: Sequence[TableRow]) -> dict[str, tuple[str, str]]:
    names = sorted({row.system for row in rows})
    return {
        name: (COLOURS[at % len(COLOURS)], SHAPES[at // len(COLOURS) % len(SHAPES)])
        for at, name in enumerate(names)
    }


def _panel(axes: Axes, rows: Sequence[TableRow], looks: Mapping[str, tuple[str, str]]) -> None:
    places = _places(rows)
    shown = [row for row in rows if row.accuracy is not None and id(row) in places]
    for row in shown:
        _point(axes, row, places[id(row)], looks[row.system])
    _frontier(axes, shown, places)
    for row in shown:
        if row.verdict == "reference" and row.accuracy is not None:
            axes.axhline(100 * row.accuracy, color="grey", linewidth=0.8, linestyle=":")
    costs = [places[id(row)] for row in shown]
    if costs and min(costs) > 0 and max(costs) > DECADE * min(costs):
        axes.set_xscale("log")
    tries = avg_at(rows)
    axes.set_ylabel(f"accuracy{f' ({tries})' if tries else ''}, %, with 95 % interval")
    axes.set_ylim(-3, 103)
    axes.grid(visible=True, alpha=0.25)
    if shown:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False)


def _frontier(axes: Axes, shown: Sequence[TableRow], places: Mapping[int, float]) -> None:
    """Join the plain systems that no other beats in both; steps, for none lies between them."""
    plain = [row for row in shown if row.reference_allowed and not row.uses_targets]
    costs = np.array([places[id(row)] for row in plain])
    scores = np.array([row.accuracy or 0.0 for row in plain])
    points = sorted(set(zip(costs[on := non_dominated(costs, scores)], scores[on], strict=True)))
    if len(points) > 1:
        x, y = zip(*points, strict=True)
        heights = [100 * score for score in y]
        axes.step(x, heights, where="post", color="grey", linewidth=0.8, alpha=0.6)


def _scale(rows: Sequence[TableRow]) -> str:
    return DOLLARS if any(row.usd_per_query is not None for row in rows) else TOKENS


def _places(rows: Sequence[TableRow]) -> dict[int, float]:
    in_usd = _scale(rows) == DOLLARS
    found = ((row, row.usd_per_query if in_usd else row.tokens_out) for row in rows)
    return {id(row): float(place) for row, place in found if place is not None}


def _name(axes: Axes, panel: Sequence[TableRow], of: int, rows: Sequence[TableRow]) -> None:
    first, scale, places = panel[0], _scale(panel), _places(panel)
    axes.set_title(drawable(f"{asked_name(first)}, pool {pool_name(first, rows)}"), fontsize=10)
    prices = f", prices {book_name(first, rows)}" if scale == DOLLARS else ""
    left = [row.system for row in panel if row.accuracy is None or id(row) not in places]
    which = " and the reference" if any(row.verdict == "reference" for row in panel) else ""
    fewer = f"drawn: {len(panel)} of {of:,} systems, the most accurate{which}"
    fewer = "" if of == len(panel) else fewer
    text = "not drawn (no grade or no price): " + ", ".join(left) if left else ""
    lines = [scale + prices, *wrap(fewer, 90), *wrap(text, 90)]
    axes.set_xlabel(drawable("\n".join(lines)), fontsize=8 if len(lines) > 1 else 10)


def drawable(text: str) -> str:
    """Return a text that is drawn as it is: a dollar sign would begin a formula."""
    return escape_controls(text).replace("$", r"\$")


def _point(axes: Axes, row: TableRow, x: float, look: tuple[str, str]) -> None:
    """Draw one system; single workers are large and hollow, so what lies on them still shows."""
    assert row.accuracy is not None, "the caller draws graded rows only"
    single = row.system.startswith(SINGLE)
    low = row.accuracy - (row.accuracy if row.ci_low is None else row.ci_low)
    high = (row.accuracy if row.ci_high is None else row.ci_high) - row.accuracy
    axes.errorbar(
        x,
        100 * row.accuracy,
        yerr=[[100 * max(low, 0.0)], [100 * max(high, 0.0)]],
        fmt=look[1],
        color=look[0],
        markerfacecolor="none" if single else look[0],
        markersize=11 if single else 7,
        elinewidth=1,
        capsize=2,
        label=drawable(f"{percent(row.accuracy)}  {row.system}"),
    )
