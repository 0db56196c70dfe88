"""Draws plot.png: accuracy against dollars per query at list price."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox

from podium.harness.text import escape_controls
from podium.reports.blocks import SINGLE, asked_name, avg_at, blocks_of, book_name, pool_name
from podium.reports.costs import non_dominated
from podium.reports.render import percent, shortened
from podium.reports.row import TableRow

# pyright: reportUnknownMemberType=false
# matplotlib types its keyword arguments only in part.


SOFTWARE = "podium"  # in the image's metadata: a later report may overwrite such images

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A",
)  # fmt: skip
"""Okabe and Ito's colour-blind safe palette (2008); brown replaces yellow, which fades on white."""
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
NAMED = len(SHAPES)  # maximum systems named in a panel; more names would hide the points
GREY = "#9a9a9a"
NAME = 32  # maximum characters of a drawn name
DECADE = 10  # a range wider than this is drawn on a logarithmic axis
DOLLARS = "USD per query (would-be)"
TOKENS = "output tokens per query (no worker here has a price)"


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the plot: a block of comparable rows, their positions, and which get a label."""

    rows: Sequence[TableRow]
    places: Mapping[int, float]
    """id(row) -> x in dollars or tokens; rows without an accuracy or x are missing."""
    unit: str
    named: Sequence[TableRow]
    frontier: Sequence[TableRow]
    """The Pareto frontier of cost and accuracy, by rising cost; without oracles and hindsight."""

    @property
    def drawn(self) -> list[TableRow]:
        """The rows with a position in `places`."""
        return [row for row in self.rows if id(row) in self.places]

    def point(self, row: TableRow) -> tuple[float, float]:
        """Return x and the accuracy in percent of a drawn row."""
        return self.places[id(row)], 100 * (row.accuracy or 0.0)

    def span(self, row: TableRow) -> tuple[float, float, float]:
        """Return x and both ends, in percent, of a drawn row's accuracy interval."""
        x, y = self.point(row)
        low, high = (y if bound is None else 100 * bound for bound in (row.ci_low, row.ci_high))
        return x, min(y, low), max(y, high)


def may_replace(path: Path) -> bool:
    """Return whether podium may draw to a path: no file is there, or podium drew the file."""
    return not path.exists() or (path.is_file() and SOFTWARE.encode() in path.read_bytes())


def draw(rows: Sequence[TableRow], path: Path) -> None:
    """Write the plot of table rows as a PNG file."""
    figure_of(rows).savefig(path, format="png", dpi=110, metadata={"Software": SOFTWARE})


def figure_of(rows: Sequence[TableRow]) -> Figure:
    """Return the plot, a panel per block of rows; text below says which rows are named or grey."""
    panels = [panel_of(block) for block in blocks_of(rows)]
    across = 1 if len(panels) == 1 else 2
    down = max(1, ceil(len(panels) / across))
    figure = Figure(figsize=(7.2 * across, 4.8 * down), layout="constrained")
    FigureCanvasAgg(figure)
    names = dict.fromkeys(row.system for panel in panels for row in panel.named)
    looks = {
        name: (COLOURS[index % len(COLOURS)], SHAPES[index % len(SHAPES)])
        for index, name in enumerate(names)
    }
    drawn = [(figure.add_subplot(down, across, i + 1), panel) for i, panel in enumerate(panels)]
    for axes, panel in drawn:
        _panel(axes, panel, looks)
        _title(axes, panel, rows)
    figure.draw_without_rendering()  # positions in the picture are known only afterwards
    for axes, panel in drawn:
        _names(axes, panel)
    return figure


def panel_of(block: Sequence[TableRow]) -> Panel:
    """Return a block's panel; it names the reference, the Pareto frontier, then the best rows."""
    in_usd = any(row.usd_per_query is not None for row in block)
    costs = {id(row): row.usd_per_query if in_usd else row.tokens_out for row in block}
    places = {
        id(row): float(place)
        for row in block
        if (place := costs[id(row)]) is not None and row.accuracy is not None
    }
    drawn = [row for row in block if id(row) in places]
    frontier = _frontier(drawn, places)
    reference = [row for row in drawn if row.verdict == "reference"]
    best = sorted(frontier, key=lambda row: -(row.accuracy or 0.0))
    queue = {id(row): row for row in (*reference, *best, *drawn)}  # rows come best first
    shown_rows = [*queue.values()][:NAMED]
    return Panel(block, places, DOLLARS if in_usd else TOKENS, shown_rows, frontier)


def _frontier(drawn: Sequence[TableRow], places: Mapping[int, float]) -> list[TableRow]:
    """Return the Pareto frontier by rising cost, without systems that had answers or hindsight."""
    plain = [row for row in drawn if row.reference_allowed and not row.uses_targets]
    costs = np.array([places[id(row)] for row in plain])
    on = non_dominated(costs, np.array([row.accuracy or 0.0 for row in plain])).tolist()
    rows = [row for row, there in zip(plain, on, strict=True) if there]
    return sorted(rows, key=lambda row: places[id(row)])


def _panel(axes: Axes, panel: Panel, looks: Mapping[str, tuple[str, str]]) -> None:
    grey = [panel.point(row) for row in panel.drawn if not any(row is peer for peer in panel.named)]
    if grey:
        axes.scatter(*zip(*grey, strict=True), s=22, color=GREY, alpha=0.7, linewidths=0)
    if len({panel.point(row) for row in panel.frontier}) > 1:  # steps: no system lies between
        x, y = zip(*map(panel.point, panel.frontier), strict=True)
        axes.step(x, y, where="post", color="grey", linewidth=0.8, alpha=0.6)
    for row in panel.named:
        _point(axes, panel, row, looks[row.system])
        if row.verdict == "reference":
            axes.axhline(panel.point(row)[1], color="grey", linewidth=0.8, linestyle=":")
    costs = [panel.point(row)[0] for row in panel.drawn]
    if costs and min(costs) > 0 and max(costs) > DECADE * min(costs):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(plain_number))
    axes.margins(x=0.08)
    tries = avg_at(panel.rows)
    axes.set_ylabel(f"accuracy{f' ({tries})' if tries else ''}, %, with 95 % interval")
    axes.set_ylim(-3, 103)
    axes.grid(visible=True, alpha=0.25)


def plain_number(value: float, _: object = None) -> str:
    """Return a number without a power of ten.

    >>> plain_number(1e-05), plain_number(10.0)
    ('0.00001', '10')
    """
    return f"{Decimal(f'{value:.6g}').normalize():f}"


def _title(axes: Axes, panel: Panel, rows: Sequence[TableRow]) -> None:
    top = panel.rows[0]
    axes.set_title(drawable(f"{asked_name(top)}, pool {pool_name(top, rows)}"), fontsize=10)
    prices = f", prices {book_name(top, rows)}" if panel.unit == DOLLARS else ""
    grey = len(panel.drawn) - len(panel.named)
    absent = [shortened(row.system, NAME) for row in panel.rows if id(row) not in panel.places]
    tail = f", ... ({len(absent)} in all)" if len(absent) > NAMED else ""
    lines = [
        f"named: {len(panel.named)} of {len(panel.drawn):,} systems (the reference, the frontier, "
        f"then the most accurate); grey: {grey:,}"
        if grey
        else "",
        f"not drawn (no grade or no price): {', '.join(absent[:NAMED])}{tail}" if absent else "",
    ]
    words = [panel.unit + prices, *(piece for line in lines for piece in wrap(line, 90))]
    axes.set_xlabel(drawable("\n".join(words)), fontsize=8 if len(words) > 1 else 10)


def drawable(text: str) -> str:
    """Return a text for matplotlib with escaped dollar signs, which would begin a formula."""
    return escape_controls(text).replace("$", r"\$")


def _point(axes: Axes, panel: Panel, row: TableRow, look: tuple[str, str]) -> None:
    """Draw a named system; markers of single workers are hollow, so points inside them show."""
    single = row.system.startswith(SINGLE)
    (x, y), (_, low, high) = panel.point(row), panel.span(row)
    axes.errorbar(
        x,
        y,
        yerr=[[y - low], [high - y]],
        fmt=look[1],
        color=look[0],
        markerfacecolor="none" if single else look[0],
        markersize=11 if single else 7,
        elinewidth=1,
        capsize=2,
    )


AROUND = ((1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1))
REACHES = (8, 16, 26, 40, 60, 85, 120)
"""Distances between name and marker to try, in points (1/72 inch); the first free place is used."""
MARK = 5  # half the width of a marker, in points


def _names(axes: Axes, panel: Panel) -> None:
    """Write each row's name where it hides no other name and, if possible, no point or interval."""
    scale, within = axes.figure.dpi / 72, axes.get_window_extent()
    to_px = axes.transData.transform
    marks = [Bbox([to_px(panel.point(row))] * 2).padded(MARK * scale) for row in panel.drawn]
    marks += [Bbox(to_px([(x, low), (x, high)])) for x, low, high in map(panel.span, panel.named)]
    names: list[Bbox] = []
    for row in sorted(panel.named, key=lambda row: -panel.point(row)[1]):
        point: Any = to_px(panel.point(row))
        written: Any = axes.annotate(
            drawable(f"{shortened(row.system, NAME)} {percent(row.accuracy)}"),
            panel.point(row),
            (0, 0),
            textcoords="offset points",
            fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6},
        )
        written.set_in_layout(False)
        spots = list(_spots(point, Text.get_window_extent(written), scale))
        inside = [spot for spot in spots if _holds(within, spot)] or spots
        spot = _free(inside, marks + names) or _free(inside, names) or inside[0]
        written.set_position(((spot.x0 - point[0]) / scale, (spot.y0 - point[1]) / scale))
        names.append(spot)


def _spots(point: Sequence[float], size: Bbox, scale: float) -> Iterator[Bbox]:
    """Yield rectangles around a point, nearest first, in which the point's name could be drawn."""
    for reach, (right, up) in product(REACHES, AROUND):
        x = point[0] + scale * reach * right - size.width * (1 - right) / 2
        y = point[1] + scale * reach * up - size.height * (1 - up) / 2
        yield Bbox.from_bounds(x, y, size.width, size.height)


def _holds(outer: Bbox, inner: Bbox) -> bool:
    return all(outer.contains(*corner) for corner in (inner.min, inner.max))


def _free(spots: Sequence[Bbox], obstacles: Sequence[Bbox]) -> Bbox | None:
    return next((spot for spot in spots if not spot.count_overlaps(obstacles)), None)
