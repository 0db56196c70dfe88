"""Columns are declared once: files, terminal, Markdown, LaTeX and page draw from the same table."""

from dataclasses import fields
from pathlib import Path

import pytest

import podium
from podium.cli import main
from podium.reports.columns import (
    DECLARED,
    full_columns,
    label,
    named_columns,
    narrow_columns,
)
from podium.reports.paper import FIGURES
from podium.reports.report import Report
from podium.reports.row import COLUMNS, TableRow
from tests.column_page import PAGE, column_page

UNITS = {"share", "points", "%", "USD", "tokens", "s", "questions", "pairs", "calls", "steps"}
UNITS |= {"times", "plans", "bits", ""}


def test_the_table_declares_the_fields_of_a_row_in_their_order() -> None:
    assert tuple(DECLARED) == COLUMNS == tuple(one.name for one in fields(TableRow))
    assert all(one.tip and one.unit in UNITS for one in DECLARED.values())


def test_a_head_stands_for_one_column() -> None:
    for heads in ([x.label for x in DECLARED.values()], [x.narrow for x in DECLARED.values()]):
        shown = [head for head in heads if head]
        assert len(shown) == len({*shown})


def test_a_figure_has_one_value_and_fewer_digits_where_there_is_less_room(made: Report) -> None:
    row = next(one for one in made.rows if one.usd_per_query and one.calls)
    keys = ("accuracy", "ci_low", "usd_per_query", "calls")
    full = [show(row) for _, show in full_columns(*keys)]
    narrow = [show(row) for _, show in narrow_columns(*keys)]
    assert full[:3] == narrow[:3]
    assert (full[3], narrow[3]) == (f"{row.calls:.2f}", f"{row.calls:.1f}")


def test_each_table_of_a_report_has_the_heads_that_are_declared(made: Report) -> None:
    page = str(made.contents["table.md"])
    for key in ("accuracy", "ci_low", "paired_diff", "n_unparsed", "usd_per_query"):
        assert f"| {label(key)} |" in page
        assert f" {DECLARED[key].narrow or label(key)} " in f"{made.text} "


def test_a_column_that_is_chosen_shows_a_share_and_the_page_shows_points(made: Report) -> None:
    row = next(one for one in made.rows if one.regret_accuracy)
    assert row.regret_accuracy is not None
    shown = f"{100 * row.regret_accuracy:.1f}"
    ((head, chosen),) = named_columns(["regret_accuracy"])
    ((_, on_page),) = full_columns("regret_accuracy")
    assert (head, chosen(row), on_page(row)) == ("regret_accuracy %", shown, f"+{shown}")


def test_latex_has_two_places_of_calls_where_a_terminal_has_one(made: Report) -> None:
    row = next(one for one in made.rows if one.calls)
    by_head = {head: show(row) for head, show in FIGURES}
    assert by_head["calls"] == f"{row.calls:.2f}"


def test_the_list_says_what_each_column_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no cell is folded
    assert main(["report", str(tmp_path), "--columns", "list"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*COLUMNS]
    assert DECLARED["cost_of_pass"].tip in lines[COLUMNS.index("cost_of_pass")]


def test_frames_name_their_form_and_warn_of_a_name_that_goes(logs: Path) -> None:
    with pytest.warns(FutureWarning, match="critical_path_s in runs, elapsed_s in samples"):
        frames = podium.load_runs(logs)
    assert frames.runs.attrs["schema"] == "podium-table-1"
    assert frames.samples.attrs["schema"] == frames.calls.attrs["schema"] == "podium-ledger-1"
    for frame, name in ((frames.runs, "critical_path_s"), (frames.samples, "elapsed_s")):
        assert frame["latency_s"].equals(frame[name].rename("latency_s"))


def test_the_page_of_columns_is_what_the_table_of_columns_says() -> None:
    assert PAGE.read_text() == column_page(), "python -m tests.column_page writes it"
