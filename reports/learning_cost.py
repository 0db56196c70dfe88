"""What learning cost: dollars a query with selection and training included, and the break-even.

For systems that learnt or were chosen: a best single worker and whatever uses it, learned routers,
tuned thresholds, trained conductors. Dollars are would-be, at the price book of the row.
"""

from dataclasses import dataclass
from decimal import Decimal

from reports.row import TableRow

QUERIES = (100, 1_000, 10_000)
"""For so many queries a system's dollars are told."""


@dataclass(frozen=True, slots=True)
class LearningCost:
    """One row that learnt or was chosen, or the reference of its block."""

    row: TableRow
    usd: Decimal | None
    """Dollars of learning; 0 for a reference that was not chosen, None where nobody knows."""
    what: str
    """What it learnt from, or why its dollars are unknown; a sentence without full stop."""
    usd_at: tuple[Decimal | None, ...]
    """Dollars a query with learning included, for each number of `QUERIES`."""
    break_even: int | None
    """Queries from which on it is cheaper in all than the reference, whose learning counts too."""
    versus: str
    """`reference`, `at once`, `never`, `unknown`, or the number of `break_even` as words."""
