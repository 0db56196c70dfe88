"""Columns are declared once: files, terminal, Markdown, LaTeX and page draw from the same table."""

from dataclasses import fields
from pathlib import Path

import pytest

import podium
from podium.cli import main
from podium.reports.columns import declared, full_columns, label, narrow_columns
from podium.reports.report import Report
from podium.reports.row import COLUMNS, TableRow

UNITS = {"share", "points", "%", "USD", "tokens", "s", "questions", "pairs", "calls", "steps"}
UNITS |= {"times", ""}


def test_the_table_declares_the_fields_of_a_row_in_their_order() -> None:
    assert tuple(declared()) == COLUMNS == tuple(one.name for one in fields(TableRow))
    assert all(one.tip and one.unit in UNITS for one in declared().values())


def test_a_head_stands_for_one_column() -> None:
    for heads in ([x.label for x in declared().values()], [x.narrow for x in declared().values()]):
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
        assert f" {declared()[key].narrow or label(key)} " in f"{made.text} "


def test_the_list_says_what_each_column_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["report", str(tmp_path), "--columns", "list"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*COLUMNS]
    assert declared()["cost_of_pass"].tip in lines[COLUMNS.index("cost_of_pass")]


def test_frames_name_their_form_and_warn_of_a_name_that_goes(logs: Path) -> None:
    with pytest.warns(FutureWarning, match="critical_path_s in runs, elapsed_s in samples"):
        frames = podium.load_runs(logs)
    assert frames.runs.attrs["schema"] == "podium-table-1"
    assert frames.samples.attrs["schema"] == frames.calls.attrs["schema"] == "podium-ledger-1"
    for frame, name in ((frames.runs, "critical_path_s"), (frames.samples, "elapsed_s")):
        assert frame["latency_s"].equals(frame[name].rename("latency_s"))
