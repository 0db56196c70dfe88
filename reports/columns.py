"""The columns that `--columns` chooses: any of table.csv, under the name that it has there."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from podium.harness.errors import UserError, did_you_mean
from podium.reports.render import UNKNOWN, Columns, count, percent, points, share, usd
from podium.reports.row import COLUMNS, TableRow

SHARES = frozenset(
    {
        "accuracy", "ci_low", "ci_high", "se", "se_clustered", "min_detectable", "pass_at_5",
        "pass_at_10", "maj_accuracy", "official_accuracy", "share_infinite", "pareto_probability",
        "regret_accuracy", "equivalence_margin",
    }
)  # fmt: skip
POINTS = frozenset(
    {name for name in COLUMNS if name.startswith(("paired_", "equivalence_"))} - SHARES
)
LIST = ("list",)
"""What `--columns` is when it asks which there are."""


def named_columns(names: Sequence[str]) -> Columns[TableRow]:
    """Return columns in the order in which they are named; UserError for one that is not there.

    The system comes first, whether it is named or not: it says whose row it is.
    """
    for name in names:
        if name not in COLUMNS:
            near = did_you_mean(name, COLUMNS)
            raise UserError(
                f"--columns: there is no column {name!r}; `podium report DIR --columns list` names "
                f"all.{near}"
            )
    return [_column(name) for name in dict.fromkeys(names) if name != "system"]


def _column(name: str) -> tuple[str, Callable[[TableRow], str]]:
    head = f"{name} %" if name in SHARES | POINTS else name
    return head, lambda row: _shown(name, getattr(row, name))


def _shown(name: str, value: Any) -> str:
    if name in SHARES | POINTS:
        return (points if name in POINTS else percent)(value)
    if name == "invalid_plan_pct":
        return share(value)
    return next((show(value) for kind, show in SHOWN.items() if isinstance(value, kind)), UNKNOWN)


def _figure(value: float) -> str:
    return count(value, 2) if abs(value) >= 1 else f"{value:.3g}"


SHOWN: Mapping[type, Callable[[Any], str]] = {
    Decimal: usd,
    bool: lambda value: "yes" if value else "no",  # before int, which it is, too
    int: count,
    float: _figure,
    str: lambda value: " ".join(value.split()) or UNKNOWN,
}
