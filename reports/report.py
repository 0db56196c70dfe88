"""Write a report: table.md, table.csv, table.json and plot.png, from log directories alone.

The same logs give the same bytes. Files that a report did not write are never overwritten.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

from harness.errors import UserError
from harness.learning.matrix_logs import SINGLE
from harness.ledger.tally import total
from harness.sittings import Sitting, read_sittings
from harness.totals import system_totals
from reports.breakdown import Comparison, Part, compare
from reports.field import Field
from reports.files import (
    markdown_file,
    refuse_foreign,
    refuse_unwritable,
    text_file,
    write_files,
)
from reports.markdown import MARK, markdown
from reports.plot import SOFTWARE, draw
from reports.published import published_text
from reports.reconciliation import reconciliation
from reports.row import COLUMNS, Row
from reports.terminal import derived_text, table_text
from reports.wanted import EVERYTHING, Wanted

SCHEMA = "podium-table-1"
MARKS = {
    "table.md": MARK,
    "table.csv": ",".join(COLUMNS[:20]),
    "table.json": f'"{SCHEMA}"',
    "plot.png": SOFTWARE,
}
"""By file; each kind carries a mark of its own."""
PLACES = Decimal("0.00000001")
"""Dollars per query are printed to a hundred-millionth: a cheap call costs about a millionth."""
SMALL = 0.01
"""Below this an estimate keeps six significant digits."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says and where it was written."""

    shown: Comparison
    files: tuple[Path, ...]
    skipped: tuple[str, ...]
    """One sentence for each log that was passed over."""
    spend: tuple[str, ...]
    """One sentence for each spend that is in no row: choosing the best single worker."""
    wanted: Wanted = EVERYTHING

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all tables."""
        return self.shown.rows

    @property
    def text(self) -> str:
        """The tables for a terminal, and below them what they leave out."""
        derived = derived_text(self.shown.derived) if self.wanted.derived else ""
        suites = dict.fromkeys(row.suite for row in self.rows)
        papers = published_text(list(suites)) if self.wanted.published else ""
        below = "\n".join((*self.spend, *self.skipped))
        parts = (table_text(self.shown), derived, papers, below)
        return "\n\n".join(filter(None, parts))


def write_report(dirs: Sequence[Path], out: Path, wanted: Wanted = EVERYTHING) -> Report:
    """Read the logs below `dirs` and write their report into `out`.

    UserError for damaged logs, mixed suite versions or epochs, nothing to report, foreign files in
    `out`, an `out` that cannot be written, and for what is `wanted` and cannot be had.
    """
    refuse_unwritable(out)
    refuse_foreign(out, MARKS)
    sittings, foreign = read_sittings(dirs)
    shown = compare(sittings, wanted)
    rows = shown.rows
    if not rows:
        raise UserError(
            "There are only logs of choosing a system, none of an exam; finish the run."
        )
    skipped = tuple(f"{path.name}: passed over, `podium run` did not write it" for path in foreign)
    checks = reconciliation(sittings)
    files = write_files(
        out,
        {
            "table.md": markdown_file(markdown(shown, sittings, skipped, checks), MARK),
            "table.csv": text_file(table_csv([*rows, *shown.derived])),
            "table.json": text_file(table_json(shown, skipped)),
            "plot.png": lambda path: draw(rows, path),
        },
    )
    return Report(shown, files, skipped, _selection(sittings), wanted)


def table_csv(rows: Sequence[Row]) -> str:
    """Return the rows as CSV; an empty cell is an unknown figure."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in asdict(row).items()})
    return text.getvalue()


def table_json(shown: Comparison, skipped: Sequence[str]) -> str:
    """Return rows and parts as JSON; null is an unknown figure, dollars are numbers."""
    every = (*shown.rows, *shown.derived)
    lines = [{name: _number(value) for name, value in asdict(row).items()} for row in every]
    parts = [_part(part, shown.rows.index(part.row)) for part in shown.parts]
    data = {
        "schema": SCHEMA,
        "columns": COLUMNS,
        "rows": lines,
        "parts": parts,
        "blocks": [_block_of(one, shown.rows) for one in shown.fields],
        "skipped": skipped,
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _block_of(one: Field, rows: Sequence[Row]) -> dict[str, object]:
    """Return what holds for a block for JSON; `rows` are the places of its rows."""
    return {
        "rows": [at for at, row in enumerate(rows) if any(row is mine for mine in one.rows)],
        "questions": one.questions,
        "said": one.said,
        "cochran": one.cochran and asdict(one.cochran),
        "frontier": one.frontier and asdict(one.frontier),
    }


def _part(part: Part, row: int) -> dict[str, object]:
    """Return a part for JSON; `row` is the place of its row."""
    figures = {name: _number(getattr(part, name)) for name in ("value", "ci_low", "ci_high")}
    system = {"row": row, "suite": part.row.suite, "system": part.row.system}
    return {**system, "grouping": part.grouping, "group": part.group, "n": part.n, **figures}


def _cell(value: object) -> object:
    if isinstance(value, Decimal):
        return format(value.quantize(PLACES).normalize(), "f")
    return "" if value is None else _number(value)


def _number(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value.quantize(PLACES))
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float) -> float:
    """Return a share to a millionth; what is small, e.g. dollars of a query, to six digits."""
    return round(value, 6) if abs(value) >= SMALL else float(f"{value:.6g}")


def _selection(sittings: Sequence[Sitting]) -> tuple[str, ...]:
    """Return what choosing the best single worker and what training cost: a line per suite each."""
    groups: dict[tuple[str, str], list[Sitting]] = {}
    for sitting in sittings:
        facts = sitting.facts
        if facts.purpose == "selection":
            alone = facts.system.startswith(SINGLE)
            groups.setdefault((facts.suite, "" if alone else facts.system), []).append(sitting)
    lines: list[str] = []
    for (suite, system), chosen in sorted(groups.items()):
        whole = total(tally for sitting in chosen for tally in sitting.spend.values())
        would_be = _total([whole.listed])
        paid = _total([system_totals(sitting).usd_spent for sitting in chosen])
        what = f"training {system}" if system else "choosing the best single worker"
        lines.append(
            f"Not in the table: {what} on {suite} ({whole.calls} calls, "
            f"would-be USD {would_be}, paid USD {paid})"
        )
    return tuple(lines)


def _total(parts: Sequence[Decimal | None]) -> str:
    known = [part for part in parts if part is not None]
    return f"{sum(known, Decimal(0)):.4f}" if len(known) == len(parts) else "unknown"
