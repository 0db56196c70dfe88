"""Print what podium makes of every fault of a provider, in three dialects, as Markdown.

    python tests/benchmarks/fault_table.py          # a minute or two; nobody is paid

A local server commits each fault once per dialect and keeps its own bill (tests/providers). Per
cell: requests it served, rows of the ledger, whether tokens are equal, whether the dollars that it
bills lie within the ledger's range, how the question was graded, and what the audit finds broken
(in brackets what the provider's own words contradict, which an audit has to find).
"""

import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.harness.fault_table import Cell, Faulty, faulty
from tests.providers.faults import DIALECTS, FAULTS

HEADING = ("fault", "dialect", "served", "rows", "tokens", "dollars in range", "grade", "audit")


def table(left: Faulty) -> str:
    """Return the table, and a line of sums below it."""
    cells = [left.cells[fault.name, dialect] for fault in FAULTS for dialect in DIALECTS]
    lines = [HEADING, ["---"] * len(HEADING), *map(_row, cells)]
    served, rows = len(left.lines), len(left.rows)
    holding = sum(cell.holds for cell in cells)
    sums = (
        f"{len(FAULTS)} faults, {len(cells)} cells, {holding} hold; {served} requests served, "
        f"{rows} rows; broken elsewhere: {'; '.join(left.elsewhere) or 'nothing'}"
    )
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", sums])


def _row(cell: Cell) -> list[str]:
    broken = [f"({name})" if name in cell.expected else name for name in sorted(cell.failing)]
    return [
        cell.fault.name + ("" if cell.holds else " **(!)**"),
        cell.dialect,
        str(len(cell.lines)),
        str(len(cell.rows)),
        cell.tokens,
        "yes" if cell.in_range else "NO",
        cell.verdict,
        ", ".join(broken) or "clean",
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        found = faulty(Path(folder))
    print(table(found))
