"""What holds for all rows of a block: what it can show, whether any differ, its frontier."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.sittings import Sitting
from reports.blocks import avg_at
from reports.joint import Arrays, arrays_of, placed
from reports.reference import SINGLE
from reports.render import points, usd_about
from reports.row import Row
from reports.stats.costs import CostOfPass, frontier_cost_of_pass
from reports.stats.frontier import aiq, hull, non_dominated
from reports.stats.many import Cochran, cochran_q
from reports.stats.power import detectable

USUAL = 0.1
"""Share of questions on which two systems differ, where no pair says it."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """Accuracy against dollars, over the systems that can be placed."""

    questions: int
    """That all of them were graded on; nothing else places them."""
    on: tuple[str, ...]
    """Not dominated, by rising cost."""
    corners: tuple[tuple[float, float], ...]
    """Of the hull: US dollars per query and accuracy."""
    low: float
    """Dollars per query of the cheapest and the dearest system: the bounds of AIQ."""
    high: float
    aiq: float | None
    aiq_singles: float | None
    """The same of single workers alone, between the same bounds."""
    passed: CostOfPass | None
    """Each question by the system that answers it most cheaply: a bound."""


@dataclass(frozen=True, slots=True)
class Field:
    """The rows of one block, and what is said of them all."""

    rows: tuple[Row, ...]
    questions: int
    cochran: Cochran | None
    """Of single binary draws on the questions that all were graded on; without systems that look
    at targets or were chosen in hindsight."""
    frontier: Frontier | None

    @property
    def said(self) -> str:
        """What so many questions can show; the first thing to know of a table."""
        asked = f"{self.questions} question{'' if self.questions == 1 else 's'}"
        tries = f", {avg_at(self.rows)}" if avg_at(self.rows) else ""
        known = sorted(one for row in self.rows if (one := row.min_detectable) is not None)
        if known:
            ends = dict.fromkeys(points(one)[1:] for one in (known[0], known[-1]))
            by = " (by system)" if len(ends) > 1 else ""
            return (
                f"{asked}{tries}: differences under {' to '.join(ends)} points{by} cannot be told "
                "from chance (80 % power)"
            )
        why = "one system only" if len(self.rows) == 1 else "no reference"
        if len(self.rows) > 1 and any(row.reference for row in self.rows):
            why = "no question was graded for the reference and for another"
        if len(self.rows) > 1 and any(row.n_paired for row in self.rows):
            return (
                f"{asked}{tries}: nobody differs from the reference, or on all questions alike, "
                "so what could be detected is unknown"
            )
        usual = points(detectable(USUAL, max(self.questions, 1)))[1:]
        return (
            f"{asked}{tries}; {why}: nothing is compared (two that differ on 10 % of them would "
            f"need {usual} points between them)"
        )


def field_of(block: Sequence[tuple[Row, Sitting]]) -> Field:
    """Return what holds for a block."""
    arrays = arrays_of([sitting for _, sitting in block])
    rows = tuple(row for row, _ in block)
    once = all(row.epochs == 1 for row in rows)
    contested = arrays.scores[:, arrays.plain & ~np.isnan(arrays.scores).all(axis=0)]
    whole = contested[~np.isnan(contested).any(axis=1)]
    return Field(
        rows=rows,
        questions=len(arrays.scores),
        cochran=cochran_q(whole) if once and len(whole) else None,
        frontier=_frontier(rows, arrays),
    )


def _frontier(rows: Sequence[Row], block: Arrays) -> Frontier | None:
    """Return the frontier of the plain systems with prices; None for fewer than two."""
    there, both = placed(block)
    if there.sum() < 2 or not both.any():
        return None
    names = [row.system for row, kept in zip(rows, there.tolist(), strict=True) if kept]
    usd, grades = block.usd[both][:, there], block.scores[both][:, there]
    costs, scores = usd.mean(axis=0), grades.mean(axis=0)
    singles = np.array([name.startswith(SINGLE) for name in names])
    low, high = float(costs.min()), float(costs.max())
    best = zip(costs.tolist(), names, non_dominated(costs, scores).tolist(), strict=True)
    return Frontier(
        questions=int(both.sum()),
        on=tuple(name for _, name, on in sorted(best) if on),
        corners=tuple(hull(costs, scores)),
        low=low,
        high=high,
        aiq=aiq(costs, scores, low, high),
        aiq_singles=aiq(costs[singles], scores[singles], low, high) if singles.any() else None,
        passed=frontier_cost_of_pass(usd, grades),
    )


def corners_text(frontier: Frontier) -> str:
    """Return the hull's corners in words."""
    each = (f"{100 * score:.1f} % at USD {usd_about(cost)}" for cost, score in frontier.corners)
    return ", ".join(each)
