"""What every export for others begins with: runs that are finished and graded, and safe names."""

import re
from collections.abc import Sequence
from pathlib import Path

from podium.harness.ledger.totals import SystemRun
from podium.reports.report import refuse_unfinished, report_of
from podium.reports.row import TableRow
from podium.reports.site.texts import RowTexts, row_texts

UNSAFE = re.compile(r"[^\w.-]+")
Finished = tuple[TableRow, SystemRun, RowTexts]
"""A system run with its row of a report, and what its texts are read from."""


def finished_runs(dirs: Sequence[Path]) -> list[Finished]:
    """Return the system runs of directories, each a report of its own."""
    found: list[Finished] = []
    for one in dict.fromkeys(path.resolve() for path in dirs):
        report = report_of([one])
        pairs = [pair for block in report.shown.pairs for pair in block]
        found += ((*pairs[texts.row], texts) for texts in row_texts([one], report, {}))
    for row, system_run, _ in found:
        refuse_unfinished(row, system_run)
    return found


def safe_name(name: str) -> str:
    """Return a name that may stand in any path: `single:sage` is `single_sage`."""
    return UNSAFE.sub("_", name).strip(". ") or "_"
