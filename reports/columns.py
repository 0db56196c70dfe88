"""The columns of a comparison, as columns.toml declares them, and the text of their cells."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from typing import Any

from podium.harness.errors import UserError, did_you_mean
from podium.harness.text import columns
from podium.reports.comparison_rows import paid_cell, usd_cell
from podium.reports.render import (
    UNKNOWN,
    Columns,
    count,
    interval,
    percent,
    points,
    share,
    usd,
    usd_about,
)
from podium.reports.row import COLUMNS, TableRow

LIST = ("list",)
"""The value of `--columns` that prints a list of all columns."""
Show = Callable[[TableRow], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, meaning and unit, for the terminal, Markdown, LaTeX, page and files."""

    key: str
    """The column's name in table.csv, table.json, table.parquet and data frames."""
    tip: str
    unit: str = ""
    """Empty if none; `share`, `points`: fractions of 1, shown in percent; `%`: already percent."""
    label: str = ""
    """The header in table.md and on the HTML page; empty if only data files have the column."""
    narrow: str = ""
    """The header in a terminal and in LaTeX, where there is less room; empty: as `label`."""

    def shown(self, value: Any) -> str:
        """Return a value of the column as text, formatted for the column's unit."""
        if self.unit in UNITS:
            return UNITS[self.unit](value)
        cells = (show(value) for kind, show in KINDS.items() if isinstance(value, kind))
        return next(cells, UNKNOWN)

    def cell(self, row: TableRow) -> str:
        """Return a row's value of the column as text, as in tables made with `--columns`."""
        return self.shown(getattr(row, self.key))


_TEXT = files("podium.reports").joinpath("columns.toml").read_text(encoding="utf-8")
DECLARED: Mapping[str, Column] = {
    key: Column(key, **settings) for key, settings in tomllib.loads(_TEXT).items()
}
"""Key in columns.toml -> column, in the order of table.csv."""


def label(key: str) -> str:
    """Return a column's header in table.md and on the HTML page."""
    return DECLARED[key].label


def narrow_label(key: str) -> str:
    """Return a column's header in a terminal and in LaTeX."""
    return DECLARED[key].narrow or label(key)


def full_columns(*keys: str) -> Columns[TableRow]:
    """Return columns, as (header, row -> cell), for table.md and the HTML page."""
    return [(col.label, FULL.get(col.key, col.cell)) for col in map(DECLARED.__getitem__, keys)]


def narrow_columns(*keys: str) -> Columns[TableRow]:
    """Return columns, as (header, row -> cell), for a terminal and LaTeX."""
    return [
        (narrow_label(col.key), NARROW.get(col.key) or FULL.get(col.key, col.cell))
        for col in map(DECLARED.__getitem__, keys)
    ]


def named_columns(names: Sequence[str]) -> Columns[TableRow]:
    """Return the columns that `--columns` names, in that order; UserError for an unknown name."""
    for name in names:
        if name not in COLUMNS:
            raise UserError(
                f"{did_you_mean(name, COLUMNS)}--columns: There is no column {name!r}. `podium "
                "report DIR --columns list` lists all columns."
            )
    chosen = (DECLARED[name] for name in dict.fromkeys(names) if name != "system")
    return [(f"{col.key} %" if col.unit in PERCENT else col.key, col.cell) for col in chosen]


def column_list() -> str:
    """Return what `--columns list` prints: each column, its unit and its meaning."""
    rows = [(key, column.unit, column.tip) for key, column in DECLARED.items()]
    return columns(("column", "unit", "what it is"), rows)


def _figure(value: float) -> str:
    return count(value, 2) if abs(value) >= 1 else f"{value:.3g}"


PERCENT = ("share", "points")
UNITS: Mapping[str, Callable[[Any], str]] = {"share": percent, "points": points, "%": share}
KINDS: Mapping[type, Callable[[Any], str]] = {
    Decimal: usd,
    bool: lambda value: "yes" if value else "no",  # before int, its base class
    int: count,
    float: _figure,
    str: lambda value: " ".join(value.split()) or UNKNOWN,
}


def _graded(row: TableRow) -> str:
    return f"{row.n_graded}/{row.n_asked}"


def _interval(row: TableRow) -> str:
    return interval(row.ci_low, row.ci_high)


def _difference(row: TableRow) -> str:
    """Return a row's difference from the reference in points, with its interval and verdict."""
    if row.verdict == "reference":
        return "reference"
    if row.paired_diff is None:
        return UNKNOWN
    bounds = interval(row.paired_low, row.paired_high, signed=True)
    return f"{points(row.paired_diff)} {bounds} {row.verdict}"


def _invalid(row: TableRow) -> str:
    reason = f" ({row.invalid_plan_reason})" if row.invalid_plan_reason else ""
    return f"{share(row.invalid_plan_pct)}{reason}"


def _with_interval(key: str) -> Show:
    bounds = (f"{key}_low", f"{key}_high")
    return lambda row: (
        f"{percent(getattr(row, key))} {interval(*(getattr(row, bound) for bound in bounds))}"
    )


def _counted(key: str, places: int) -> Show:
    return lambda row: count(getattr(row, key), places)


def _as_is(key: str) -> Show:
    return lambda row: str(getattr(row, key))


def _share(key: str) -> Show:
    return lambda row: share(getattr(row, key))


FULL: Mapping[str, Show] = {
    "ci_low": _interval,
    "paired_diff": _difference,
    "n_graded": _graded,
    "invalid_plan_pct": _invalid,
    "usd_per_query": lambda row: usd_cell(row.usd_per_query, row.n_unpriced, row.auditable),
    "usd_paid_low": lambda row: paid_cell(
        row.usd_paid_low, row.usd_paid_high, row.n_unpriced, row.auditable
    ),
    **{
        key: _counted(key, 0) for key, col in DECLARED.items() if col.unit == "tokens" and col.label
    },
    **{key: _counted(key, 2) for key in ("calls", "steps", "depth")},
    **{key: _counted(key, 3) for key in ("critical_path_s", "conductor_s")},
    **{key: _as_is(key) for key in ("epochs", "n_unparsed", "n_too_long")},
    "knowledge_cutoff": lambda row: row.knowledge_cutoff or "none",
    **{key: _with_interval(key) for key in ("avg_at_k", "pass_at_k", "pass_all_k")},
    **{key: _share(key) for key in ("one_step_pct", "commonest_plan_pct")},
    "valid_plan_accuracy": lambda row: percent(row.valid_plan_accuracy),
    "worker_entropy": _counted("worker_entropy", 2),
    "regret_accuracy": lambda row: points(row.regret_accuracy),
    "regret_usd": lambda row: usd_about(row.regret_usd),
}
"""Key -> function from row to cell for table.md and the page, if not formatted by `Column.cell`."""
NARROW: Mapping[str, Show] = {
    "paired_diff": lambda row: points(row.paired_diff),
    "invalid_plan_pct": lambda row: share(row.invalid_plan_pct),
    "usd_per_query": lambda row: usd(row.usd_per_query),
    **{key: _counted(key, 0) for key in ("n_unparsed", "n_too_long")},
    "calls": _counted("calls", 1),
    "critical_path_s": _counted("critical_path_s", 2),
}
"""Key -> function from row to cell for a terminal and LaTeX, if it differs from `FULL`."""
