"""Reports of real logs, for the tests of tables and of files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.reports.blocks import DEFAULTS, ReportOptions
from podium.reports.derived import compare
from podium.reports.render import write_files
from podium.reports.report import Report, report_of
from podium.reports.row import TableRow
from tests.harness.runs import Crew, Exam, number, sit, wrong
from tests.providers.scripted import Heard, ReplyFunction

EXAM = Exam(size=6)


def right_up_to(last: int) -> ReplyFunction:
    """Return a worker that knows the first few answers."""
    return lambda heard: number(heard) if int(number(heard)) <= last else wrong(heard)


def report(tmp_path: Path, *dirs: Path, wanted: ReportOptions = DEFAULTS) -> Report:
    """Return a report with all its files but the plot, which takes longer than the rest."""
    found = report_of(dirs or [tmp_path / "logs"], wanted)
    contents = {name: one for name, one in found.contents.items() if name != "plot.png"}
    return replace(found, files=write_files(tmp_path / "report", contents))


def rows_of(tmp_path: Path) -> tuple[TableRow, ...]:
    """Return the rows without writing files: drawing the plot takes a while."""
    system_runs, _ = load_runs([tmp_path / "logs"])
    return compare(system_runs).rows


def row_of(rows: Sequence[TableRow], system: str) -> TableRow:
    (row,) = [row for row in rows if row.system == system]
    return row


def interrupted_run(home: Path) -> None:
    """Let a worker sit the exam until somebody stops it at the third question."""

    def stop(heard: Heard) -> str:
        if "Say 3" in heard.last:
            raise KeyboardInterrupt
        return number(heard)

    one_at_a_time = {"max_samples": 1, "max_connections": 1}
    with pytest.raises(BaseException):  # noqa: B017, PT011 - Ctrl-C, however Inspect hands it on
        sit(home, "single:sage", crew=Crew(sage=stop), settings=one_at_a_time)
