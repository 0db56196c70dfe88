"""Write docs/columns.md from the one table of columns: `python -m tests.column_page`."""

from pathlib import Path

from podium.reports.columns import DECLARED, narrow_label
from podium.reports.render import markdown_table
from podium.reports.terminal import FIGURES

PAGE = Path(__file__).parents[1] / "docs" / "columns.md"
HEAD = """\
# Columns

What a figure is called in a terminal, on the page and in table.md, and in files and Python
(`table.csv`, `table.json`, `table.parquet`, `load_runs(DIR).runs`). A dash: it is not shown there.
`share` and `points` are fractions of 1 in files and percent in tables.
Made by `python -m tests.column_page`.
"""


def column_page() -> str:
    """Return the page: a line for each column."""
    narrow = {head for head, _ in FIGURES}
    rows = [("terminal", "page", "CSV and Python", "unit", "what it is")]
    for key, one in DECLARED.items():
        short = narrow_label(key)
        shown = short if short in narrow else "-"
        rows.append((shown, one.label or "-", f"`{key}`", one.unit or "-", one.tip))
    return f"{HEAD}\n{markdown_table(rows, left=len(rows[0]))}\n"


if __name__ == "__main__":
    PAGE.write_text(column_page())
