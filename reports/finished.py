"""Reads runs for exports to other tools; each run must be finished and graded."""

from collections.abc import Sequence
from pathlib import Path

from podium.harness.ledger.totals import SystemRun
from podium.reports.report import refuse_unfinished, report_of
from podium.reports.row import TableRow
from podium.reports.site.index import site_blocks
from podium.reports.site.texts import RowTexts, row_texts

Finished = tuple[TableRow, SystemRun, RowTexts]
"""A table row, the system run that the row is computed from, and the logs with its texts."""


def finished_runs(dirs: Sequence[Path]) -> list[Finished]:
    """Return all runs below directories; UserError if a run is unfinished or not graded."""
    runs: list[Finished] = []
    for folder in dict.fromkeys(path.resolve() for path in dirs):
        report = report_of([folder])
        pairs = [pair for block in report.shown.pairs for pair in block]
        rows = row_texts([folder], site_blocks(report.shown), {})
        runs += ((*pairs[texts.row], texts) for texts in rows)
    for row, system_run, _ in runs:
        refuse_unfinished(row, system_run)
    return runs
