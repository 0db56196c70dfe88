"""Rows over all suites: one for each system, label, pool and price book that sat two or more.

The accuracy is a macro-average, each suite of equal weight, as the Conductor paper's 77.27 (arXiv
2512.04388, table 1). It stands only beside systems that sat the same suites.
"""

from dataclasses import dataclass
from decimal import Decimal

from reports.row import TableRow


@dataclass(frozen=True, slots=True)
class AcrossRow:
    """One system over all suites of its label, pool, seed, prompt and price book."""

    system: str
    args: str
    """Only where a suite has this system twice; else empty."""
    rows: tuple[TableRow, ...]
    """What it is made from, one for each suite that it was graded on."""
    missing: tuple[str, ...]
    """Suites that others sat and it did not, or of which nothing of it was graded."""
    accuracy: float | None
    """Mean of the suites' accuracies; None where one is missing. Its 95 % interval follows."""
    ci_low: float | None
    ci_high: float | None
    n_questions: int
    n_graded: int
    """(question, epoch) pairs."""
    usd_total: Decimal | None
    """Would-be dollars of all graded pairs, at list price."""
    usd_per_query: Decimal | None
    """Mean of the suites' dollars per query, each of equal weight as in the accuracy."""
    tokens_in: float | None
    """These two are means in the same way."""
    tokens_out: float | None

    @property
    def first(self) -> TableRow:
        """The row that tells label, pool and price book."""
        return self.rows[0]
