"""The plot: who is named, that no name hides another, and what is said of the rest."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from operator import attrgetter
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

import podium
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.reports.curve import best_at_each_price, series_of
from podium.reports.derived import compare
from podium.reports.plot import COLOURS, NAMED, SHAPES, figure_of, panel_of
from podium.reports.report import Report
from podium.reports.row import TableRow
from tests.harness.runs import BOOK, Exam, sit
from tests.reports.site.trained import trained


@pytest.fixture(scope="module")
def row(made: Report) -> TableRow:
    """Return a plain row, from which others are made."""
    return next(row for row in made.rows if row.system == "single:sage")


def at(row: TableRow, system: str, accuracy: float, usd: str, **changes: object) -> TableRow:
    """Return a row of a system at a place in the plot."""
    own: dict[str, object] = {"ci_low": None, "ci_high": None, "verdict": "", **changes}
    price = Decimal(usd)
    return replace(row, system=system, accuracy=accuracy, usd_per_query=price, **own)  # pyright: ignore[reportArgumentType] - any column


def many(row: TableRow, systems: int) -> list[TableRow]:
    """Return a block of systems, best first: the dearer the worse, but for the reference."""
    rows = [at(row, f"system-{n:02}", 0.9 - n / 200, f"0.0{n + 10}") for n in range(systems)]
    cheap = at(row, "cheap", 0.2, "0.0001")
    return [*rows, at(row, "usual", 0.1, "0.05", verdict="reference"), cheap]


def test_the_reference_the_frontier_and_then_the_most_accurate_are_named(row: TableRow) -> None:
    panel = panel_of(many(row, 20))
    first = [f"system-{n:02}" for n in range(NAMED - 2)]
    assert [one.system for one in panel.named] == ["usual", "system-00", "cheap", *first[1:]]
    assert [one.system for one in panel.frontier] == ["cheap", "system-00"]


def test_the_rest_is_grey_and_counted(row: TableRow) -> None:
    figure = figure_of(many(row, 20))
    (axes,) = figure.axes
    said = axes.xaxis.label.get_text()
    assert "named: 7 of 22 systems" in said.replace("\n", " ")
    assert "grey: 15" in said
    assert len(annotations(figure)) == NAMED


def test_a_row_that_looks_at_targets_is_on_no_frontier(row: TableRow) -> None:
    sees = at(row, "oracle", 1.0, "0.00001", uses_targets=True)
    assert "oracle" not in [one.system for one in panel_of([sees, *many(row, 3)]).frontier]


def test_seven_names_have_seven_colours_and_seven_shapes() -> None:
    assert len({*COLOURS}) >= NAMED == len({*SHAPES})


@pytest.mark.parametrize("spread", [0.2, 0.02, 0.0], ids=["apart", "near", "in one point"])
def test_no_name_hides_another(row: TableRow, spread: float) -> None:
    rows = [
        at(row, f"a-system-of-some-length-{n}", 0.5 - spread * n / 10, f"{0.01 + spread * n / 100}")
        for n in range(NAMED)
    ]
    refuse_overlaps(figure_of(rows))


def test_no_two_texts_of_the_plot_overlap(logs: Path, tmp_path: Path) -> None:
    sit(tmp_path / "more", "single:sage", exam=Exam(name="letters"), label="rehearsal")
    unpriced = {**BOOK.as_json(), "usd_per_mtok": {}}
    sit(tmp_path / "more", "oracle", exam=Exam(name="letters"), label="rehearsal", prices=unpriced)
    sit(tmp_path / "more", "single:sage", exam=Exam(name="words"), prices=unpriced)
    system_runs, _ = load_runs([logs, tmp_path / "more"])
    labels = refuse_overlaps(figure_of(compare(system_runs).rows))
    assert "not drawn (no grade or no price): oracle" in labels
    assert "output tokens per query (no worker here has a price)" in labels


def refuse_overlaps(figure: Figure) -> str:
    """Assert that no text of a figure lies on another; return all of them."""
    boxes = texts_of(figure)
    assert len(boxes) > 7
    for (left, one), (right, two) in combinations(boxes, 2):
        assert not Bbox.intersection(one, two), f"{left!r} and {right!r} overlap"
    return " ".join(text for text, _ in boxes)


def texts_of(figure: Figure) -> Sequence[tuple[str, Bbox]]:
    """Return titles, axis labels and names with the room they take."""
    figure.draw_without_rendering()
    found: list[Text] = [*annotations(figure)]
    for axes in figure.axes:
        found += [axes.title, axes.xaxis.label, axes.yaxis.label]
    return [(text.get_text(), Text.get_window_extent(text)) for text in found]


def annotations(figure: Figure) -> list[Annotation]:
    """Return the names beside points."""
    return [one for axes in figure.axes for one in axes.texts if isinstance(one, Annotation)]


def test_a_name_is_drawn_as_it_is(row: TableRow) -> None:
    hostile = at(row, "$\\frac{1}$\x1b[31m" + "x" * 500, 0.5, "0.01")
    (name,) = annotations(figure_of([hostile]))
    assert name.get_text().startswith(r"\$\frac{1}\$\u001b[31m")
    assert len(name.get_text()) < 60


def test_a_figure_of_runs_is_had_without_a_file(logs: Path) -> None:
    before = set(logs.rglob("*"))
    drawn = podium.figure(logs)
    assert drawn.axes[0].get_ylabel()
    assert set(logs.rglob("*")) == before


def test_curves_of_trainings_are_a_figure_too(tmp_path: Path) -> None:
    drawn = podium.curves(trained(tmp_path / "one"), trained(tmp_path / "two", seed=1))
    assert "step" in {axes.get_xlabel() for axes in drawn.axes}
    with pytest.raises(UserError):
        podium.curves(tmp_path)


def test_a_curve_connects_variants_and_says_who_is_best_at_each_price(row: TableRow) -> None:
    low = at(row, "single:sage@low", 0.5, "0.002", ci_low=0.25, ci_high=0.75, critical_path_s=2.0)
    high = at(row, "single:sage@high", 0.7, "0.02", critical_path_s=None)
    dear, same = at(row, "moa-lite", 0.6, "0.03"), at(row, "self-consistency@8", 0.5, "0.003")
    rows = [high, low, dear, same]
    found = series_of(rows, attrgetter("usd_per_query"))
    assert found["single:sage"] == [(0.002, 50.0, 25.0, 75.0), (0.02, 70.0, 70.0, 70.0)]
    assert found.keys() == {"single:sage", "moa-lite", "self-consistency@8"}
    assert series_of([high, low], attrgetter("critical_path_s")) == {
        "single:sage": [(2.0, 50.0, 25.0, 75.0)]
    }
    assert best_at_each_price(rows).splitlines()[1:] == [
        "  from 0.002: single:sage@low, 50.0 %",
        "  from 0.02: single:sage@high, 70.0 %",
    ]
