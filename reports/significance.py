"""What holds for all rows of a block, and what table.md says beside its figures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.ledger.totals import SystemRun
from reports import costs, published, render
from reports.blocks import SINGLE, avg_at, pool_name, prompt_words
from reports.costs import BlockArrays, CostOfPass
from reports.render import UNKNOWN, Columns, count, interval, percent, points, usd, usd_about
from reports.row import TableRow
from reports.stats import Cochran, cochran_q, detectable

USUAL = 0.1  # share of questions on which two systems differ, where no pair says it


@dataclass(frozen=True, slots=True)
class Frontier:
    """Accuracy against dollars, over the systems that can be placed."""

    questions: int  # that all of them were graded on; nothing else places them
    on: tuple[str, ...]  # not dominated, by rising cost
    corners: tuple[tuple[float, float], ...]  # of the hull: US dollars per query and accuracy
    low: float
    high: float
    aiq: float | None
    aiq_singles: float | None
    passed: CostOfPass | None  # each question by the system that answers it most cheaply: a bound


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """The rows of one block, and what is said of them all."""

    rows: tuple[TableRow, ...]
    questions: int
    cochran: Cochran | None
    """On the questions that all were graded on; without hindsight and looks at targets."""
    frontier: Frontier | None

    @property
    def said(self) -> str:
        """What so many questions can show; the first thing to know of a table."""
        tries = f", {avg_at(self.rows)}" if avg_at(self.rows) else ""
        asked = f"{self.questions} question{'' if self.questions == 1 else 's'}{tries}"
        known = sorted(one for row in self.rows if (one := row.min_detectable) is not None)
        if known:
            ends = dict.fromkeys(points(one)[1:] for one in (known[0], known[-1]))
            by = " (by system)" if len(ends) > 1 else ""
            return (
                f"{asked}: differences under {' to '.join(ends)} points{by} cannot be told "
                "from chance (80 % power)"
            )
        why = "one system only" if len(self.rows) == 1 else "no reference"
        if len(self.rows) > 1 and any(row.reference for row in self.rows):
            why = "no question was graded for the reference and for another"
        if any(row.n_paired for row in self.rows):
            return (
                f"{asked}: nobody differs from the reference, or on all questions alike, "
                "so what could be detected is unknown"
            )
        usual = points(detectable(USUAL, max(self.questions, 1)))[1:]
        return (
            f"{asked}; {why}: nothing is compared (two that differ on 10 % of them would "
            f"need {usual} points between them)"
        )


def block_summary(block: Sequence[tuple[TableRow, SystemRun]]) -> BlockSummary:
    """Return what holds for a block."""
    arrays = costs.block_arrays([system_run for _, system_run in block])
    rows = tuple(row for row, _ in block)
    once = all(row.epochs == 1 for row in rows)
    judged = arrays.scores[:, arrays.plain & ~np.isnan(arrays.scores).all(axis=0)]
    whole = judged[~np.isnan(judged).any(axis=1)]
    return BlockSummary(
        rows=rows,
        questions=len(arrays.scores),
        cochran=cochran_q(whole) if once and len(whole) else None,
        frontier=_frontier_of(rows, arrays),
    )


def _frontier_of(rows: Sequence[TableRow], block: BlockArrays) -> Frontier | None:
    """Return the frontier of the plain systems with prices; None for fewer than two."""
    there, both = costs.placeable(block)
    if there.sum() < 2 or not both.any():
        return None
    names = [row.system for row, kept in zip(rows, there.tolist(), strict=True) if kept]
    usd, grades = block.usd[both][:, there], block.scores[both][:, there]
    prices, scores = usd.mean(axis=0), grades.mean(axis=0)
    singles = np.array([name.startswith(SINGLE) for name in names])
    low, high = float(prices.min()), float(prices.max())
    best = zip(prices.tolist(), names, costs.non_dominated(prices, scores).tolist(), strict=True)
    return Frontier(
        questions=int(both.sum()),
        on=tuple(name for _, name, on in sorted(best) if on),
        corners=tuple(costs.hull(prices, scores)),
        low=low,
        high=high,
        aiq=costs.aiq(prices, scores, low, high),
        aiq_singles=costs.aiq(prices[singles], scores[singles], low, high),
        passed=costs.frontier_cost_of_pass(usd, grades),
    )


def published_sections(suites: Sequence[str]) -> dict[str, str]:
    """Return the published figures of each suite that has any; under `""` means over several."""
    known = {
        suite: (f"{suite}: {published.TITLE.lower()}", published.TEXT, figures)
        for suite in suites
        if (figures := published.of_suite(suite))
    }
    if known:
        known[""] = (published.AVERAGE_TITLE, published.AVERAGE_TEXT, published.averages())
    sections: dict[str, str] = {}
    for suite, (title, text, figures) in known.items():
        notes: list[str] = []
        lines, level = published.table_of(figures, notes), "###" if suite else "##"
        sections[suite] = _section(title, text, lines, render.numbered(notes), level)
    return sections


def _section(
    title: str, text: str, lines: Sequence[Sequence[str]], foot: str = "", level: str = "###"
) -> str:
    body = (f"{level} {title}", text, render.figures_table(lines) if lines else "", foot)
    return "\n\n".join(filter(None, body))


def _table(title: str, text: str, columns: Columns[TableRow], rows: Sequence[TableRow]) -> str:
    return _section(title, text, render.tabulate(columns, rows)) if rows else ""


def detectable_lines(found: Sequence[BlockSummary], rows: Sequence[TableRow]) -> str:
    """Return what the questions of each block can show."""
    return "\n".join(f"- **{_block_words(one.rows[0], rows)}**: {one.said}." for one in found)


def _block_words(row: TableRow, rows: Sequence[TableRow]) -> str:
    return f"{row.label}{prompt_words(row.prompt)}, pool {pool_name(row, rows)}"


def sections(
    found: Sequence[BlockSummary], derived: Sequence[TableRow], rows: Sequence[TableRow]
) -> list[str]:
    """Return the sections of one suite; empty ones are left out."""
    tests = [row for row in rows if row.se is not None]
    priced = [row for row in rows if row.usd_median is not None]
    said = [
        f"- {_block_words(one.rows[0], rows)}: {line}."
        for one in found
        for line in (*_cochran(one), *_frontier_lines(one))
    ]
    made = (
        _table("Differences from the reference", TESTS, TEST, tests),
        _table("Costs", COSTS, COST, priced),
        _section("Block by block", "\n".join(said), ()) if said else "",
        _table("Derived rows", DERIVED, DERIVED_COLUMNS, derived),
    )
    return list(filter(None, made))


TESTS = (
    "BCa bootstrap over questions (10,000 resamples). `mcnemar`: exact, on single right/wrong "
    "draws; `sign-flip`: a permutation test on questions' means over epochs. Holm's p counts "
    "all comparisons of the block. *SE by topic* takes questions of a topic together (CR1)."
)


def _difference(row: TableRow) -> str:
    bounds = interval(row.paired_bca_low, row.paired_bca_high, signed=True)
    return UNKNOWN if row.paired_diff is None else f"{points(row.paired_diff)} {bounds}"


def _split(row: TableRow) -> str:
    return UNKNOWN if row.n_better is None else f"{row.n_better}/{row.n_worse} of {row.n_paired}"


def _p(value: float | None) -> str:
    return UNKNOWN if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


TEST: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    ("SE", lambda row: percent(row.se)),
    ("SE by topic", lambda row: percent(row.se_clustered)),
    ("difference, BCa", _difference),
    ("p", lambda row: _p(row.p_value)),
    ("p (Holm)", lambda row: _p(row.p_holm)),
    ("test", lambda row: row.test or UNKNOWN),
    ("better/worse", _split),
    ("correlation", lambda row: count(row.correlation, 2)),
    ("detectable", lambda row: percent(row.min_detectable)),
)
COSTS = (
    "Over questions, would-be dollars. *Cost of pass* is E[cost] / P(right), the mean over the "
    "questions that were ever answered right; for the share *never right* it is infinite. "
    "*USD/right* is all dollars over all right answers. *On the frontier*: how often no other "
    "system is as good and cheaper when questions are resampled."
)
COST: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    ("USD/query, BCa", lambda row: _within(usd(row.usd_per_query), row.usd_low, row.usd_high)),
    ("median", lambda row: usd_about(row.usd_median)),
    ("p95", lambda row: usd_about(row.usd_p95)),
    (
        "times the reference",
        lambda row: _within(usd_about(row.usd_ratio), row.usd_ratio_low, row.usd_ratio_high),
    ),
    ("USD/right", lambda row: usd_about(row.usd_per_correct)),
    ("tokens/right", lambda row: count(row.tokens_per_correct)),
    ("cost of pass", lambda row: usd_about(row.cost_of_pass)),
    ("never right", lambda row: _share(row.share_infinite)),
    ("on the frontier", lambda row: _share(row.pareto_probability)),
)


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{percent(value)} %"


def _within(found: str, low: float | None, high: float | None) -> str:
    return found if low is None or high is None else f"{found} [{usd_about(low)},{usd_about(high)}]"


def _cochran(one: BlockSummary) -> list[str]:
    if one.cochran is None:
        return []
    q = one.cochran
    return [
        f"do any differ? Cochran's Q = {q.q:.2f}, {q.df} degrees of freedom, p = "
        f"{_p(q.p_value).removeprefix('<')}{' or less' if q.p_value < 0.001 else ''} "
        f"({q.differing} questions tell systems apart)"
    ]


def _frontier_lines(one: BlockSummary) -> list[str]:
    if one.frontier is None:
        return []
    line, passed, whole = one.frontier, one.frontier.passed, one.questions
    names = ", ".join(f"`{name}`" for name in line.on)
    corners = [f"{100 * score:.1f} % at USD {usd_about(usd)}" for usd, score in line.corners]
    asked = f" on the {line.questions} that all were graded on" if line.questions < whole else ""
    said = [f"not dominated in accuracy and dollars{asked}: {names}"]
    if line.aiq is not None:
        alone = "" if line.aiq_singles is None else f", of single workers {line.aiq_singles:.3f}"
        said.append(
            f"AIQ between USD {usd_about(line.low)} and {usd_about(line.high)} per query (the "
            f"cheapest and the dearest system): {line.aiq:.3f}{alone}; corners of the hull, which "
            f"only *random mixing* joins: {', '.join(corners)}"
        )
    if passed and passed.mean is not None:
        said.append(
            f"each question by the system that answers it most cheaply (a bound): cost of pass USD "
            f"{usd_about(passed.mean)}, never right {percent(passed.infinite)} %"
        )
    return said


def versus(row: TableRow) -> str:
    """Return the paired difference with its interval and verdict."""
    if row.verdict == "reference":
        return "reference"
    if row.paired_diff is None:
        return UNKNOWN
    bounds = interval(row.paired_low, row.paired_high, signed=True)
    return f"{points(row.paired_diff)} {bounds} {row.verdict}"


DERIVED = (
    "Made from the logs above without a call; `oracle-router*` knows the answers and is a "
    "bound. They change no verdict of the other rows."
)
DERIVED_COLUMNS: Columns[TableRow] = (
    ("row", lambda row: f"`{row.system}` ({row.label}, pool {row.pool})"),
    ("accuracy %", lambda row: percent(row.accuracy)),
    ("95 % interval", lambda row: interval(row.ci_low, row.ci_high)),
    ("vs reference (points)", versus),
    ("USD/query", lambda row: usd(row.usd_per_query)),
    ("how", lambda row: f"{row.derived}; {row.notes}"),
)
