"""Curves: accuracy against dollars or seconds per query, and the best system at each price."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from podium.harness.errors import UserError
from podium.harness.files import not_overwritten, refuse_other_suffix
from podium.reports import blocks, plot
from podium.reports.render import percent
from podium.reports.row import TableRow, block_of

Series = Mapping[str, Sequence[tuple[float, float, float, float]]]
"""Name of a system -> its points: x, accuracy y in percent, and the ends of y's interval."""
Chart = tuple[str, str, Series]
"""A title, the label of the x axis, and the series."""


def figure_of_charts(charts: Sequence[Chart]) -> Figure:
    """Draw charts in one figure, two side by side; each system has one colour and marker."""
    across, down = min(2, len(charts)), -(-len(charts) // 2)
    figure: Any = Figure(figsize=(8.4 * across, 4.8 * down), layout="constrained")
    names = [*dict.fromkeys(name for _, _, series in charts for name in series)]
    for index, (title, unit, series) in enumerate(charts):
        axes = figure.add_subplot(down, across, index + 1, title=plot.drawable(title))
        axes.set(xlabel=plot.drawable(unit), ylabel="accuracy, %, with 95 % interval")
        axes.set_ylim(-3, 103)
        for name, points in series.items():
            x, y, low, high = zip(*points, strict=True)
            bars = [[b - a for a, b in zip(*ends, strict=True)] for ends in ((low, y), (y, high))]
            number = names.index(name)
            look = {"color": plot.COLOURS[number % 8], "marker": plot.SHAPES[number % 7]}
            axes.errorbar(x, y, yerr=bars, label=plot.drawable(name), capsize=2, **look)
        _scale(axes, [x for points in series.values() for x, *_ in points])
        axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _scale(axes: Any, places: Sequence[float]) -> None:
    if min(places) > 0 and max(places) > plot.DECADE * min(places):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(plot.plain_number))
        axes.xaxis.set_minor_formatter(NullFormatter())


def charts_of(rows: Sequence[TableRow]) -> list[Chart]:
    """Return charts of accuracy against dollars and seconds or, for equal-budget rows, budgets."""
    charts = budget_charts([row for row in rows if row.equal])
    for block in blocks.blocks_of([row for row in rows if not row.equal]):
        title = f"{blocks.asked_name(block[0])}, pool {blocks.pool_name(block[0], rows)}"
        priced = f"{plot.DOLLARS}, prices {blocks.book_name(block[0], rows)}"
        waited = "seconds per query (longest chain of calls)"
        for unit, column in ((priced, "usd_per_query"), (waited, "critical_path_s")):
            if series := series_of(block, attrgetter(column)):
                charts.append((title, unit, series))
    return charts


def budget_charts(rows: Sequence[TableRow]) -> list[Chart]:
    """Return charts of accuracy against the budget per question, for each unit and suite."""
    groups: dict[tuple[object, ...], list[TableRow]] = {}
    for row in rows:
        unit, _, _ = row.equal.partition("=")
        groups.setdefault((*block_of(row)[:-1], unit), []).append(row)
    charts: list[Chart] = []
    for (*_, unit), group in groups.items():
        top = replace(group[0], equal="")
        title = f"{blocks.asked_name(top)}, pool {top.pool}"
        series = series_of(group, lambda row: float(row.equal.partition("=")[2]))
        charts.append((title, f"{unit} that a question may take", series))
    return charts


def series_of(rows: Sequence[TableRow], x_of: Callable[[TableRow], float | None]) -> Series:
    """Return system -> points (x, accuracy, interval); `single:W@VARIANT` counts as `single:W`."""
    series: dict[str, list[tuple[float, float, float, float]]] = {}
    for row in rows:
        if (x := x_of(row)) is not None and (y := row.accuracy) is not None:
            ends = (y if end is None else end for end in (row.ci_low, row.ci_high))
            low, high = (100 * end for end in ends)
            alone = row.system.startswith(blocks.SINGLE)
            name = row.system.partition("@")[0] if alone else row.system
            point = float(x), 100 * y, min(100 * y, low), max(100 * y, high)
            series.setdefault(name, []).append(point)
    return {name: sorted(points) for name, points in series.items()}


def refuse_curve(path: Path) -> None:
    """Raise UserError if `path` is not a .png, or is a file that podium did not draw."""
    refuse_other_suffix(path, "--curve", ".png")
    if not plot.may_replace(path):
        raise not_overwritten(path, "podium", "--curve FILE.png")


def write_curve(rows: Sequence[TableRow], path: Path) -> None:
    """Draw the charts of rows into a PNG; UserError if no accuracy has a price or seconds."""
    if not (charts := charts_of(rows)):
        raise UserError(
            "No row has an accuracy together with a price or seconds. Leave --curve out."
        )
    drawn: Any = figure_of_charts(charts)
    drawn.savefig(path, format="png", dpi=110, metadata={"Software": plot.SOFTWARE})


def best_at_each_price(rows: Sequence[TableRow]) -> str:
    """Return text on each block of rows: the systems whose accuracy no cheaper system reaches."""
    lines: list[str] = []
    for block in blocks.blocks_of(rows):
        panel = plot.panel_of(block)
        lines.append(f"Best at each price: {blocks.asked_name(block[0])}, in {panel.unit}")
        for row in panel.frontier:
            price = plot.plain_number(panel.point(row)[0])
            lines.append(f"  from {price}: {row.system}, {percent(row.accuracy)} %")
        if unplaced := [row.system for row in block if id(row) not in panel.places]:
            lines.append(f"  without a price or an accuracy: {', '.join(unplaced)}")
    return "\n".join(lines)
