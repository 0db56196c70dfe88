"""The files of a report: the terminal table, what is never overwritten, the plot."""

from contextvars import copy_context
from pathlib import Path

import pytest
from inspect_ai import Task, eval_set
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model

from podium.harness.errors import UserError
from podium.reports.report import Report, write_report
from tests.harness.runs import number, sit, steps
from tests.providers.scripted import script
from tests.reports.small_reports import report


def test_the_terminal_table_fits_120_columns(made: Report) -> None:
    assert "best-single" in made.text
    assert "oracle*" in made.text
    assert "best-single*" not in made.text
    tables = made.text.split("\n\n")[0].splitlines()
    assert max(map(len, tables)) <= 120


def test_foreign_files_are_never_overwritten(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    out = tmp_path / "report"
    out.mkdir()
    (out / "table.csv").write_text("my,own,table\n")
    with pytest.raises(UserError, match=r"table\.csv was not written by podium"):
        write_report([tmp_path / "logs"], out)
    assert (out / "table.csv").read_text() == "my,own,table\n"
    assert [path.name for path in out.iterdir()] == ["table.csv"]


def test_a_report_replaces_its_own_files(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    first = write_report([tmp_path / "logs"], tmp_path / "report")
    sit(tmp_path / "logs", "single:clerk", steps("clerk"))
    second = write_report([tmp_path / "logs"], tmp_path / "report")
    assert (len(first.rows), len(second.rows)) == (1, 2)
    assert "single:clerk" in second.files[1].read_text()


def test_a_foreign_log_is_passed_over_with_a_line(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    task = Task(dataset=[Sample(input="Say 1")], name="stranger")
    model = get_model(script("stranger", number), memoize=False)
    log_dir = str(tmp_path / "logs" / "other")
    copy_context().run(
        eval_set, [task], log_dir=log_dir, model=model, display="none", score_display=False
    )
    found = report(tmp_path)
    (line,) = found.skipped
    assert "passed over, `podium run` did not write it" in line
    assert line in found.text
    assert line in found.files[0].read_text()


def test_the_plot_is_a_picture_of_ours(made: Report) -> None:
    content = made.files[3].read_bytes()
    assert content.startswith(b"\x89PNG")
    assert b"podium" in content[:400]
