"""What table.md says beside its figures: what can be detected, tests, costs, frontiers.

Cells only; how they become text is reports/markdown.py. The figures come with the rows (reports/
row.py) and with what holds for a block (reports/field.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.blocks import pool_name, put
from reports.field import Field, corners_text
from reports.published import (
    AVERAGE_TEXT,
    AVERAGE_TITLE,
    TEXT,
    TITLE,
    averages,
    numbered,
    published,
    table_of,
)
from reports.render import UNKNOWN, count, interval, percent, points, usd, usd_about
from reports.row import Row


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table with a paragraph before it; no lines where there is no table."""

    title: str
    text: str
    lines: Sequence[Sequence[str]]
    """Heads first."""
    foot: str = ""


def published_section(suite: str) -> list[Section]:
    """Return the published figures of a suite; nothing where there are none."""
    found, notes = published(suite), list[str]()
    lines = table_of(found, notes)
    return [Section(f"{suite}: {TITLE.lower()}", TEXT, lines, numbered(notes))] if found else []


def published_averages() -> Section:
    """Return the published means over several suites that tell tokens or dollars."""
    notes: list[str] = []
    return Section(AVERAGE_TITLE, AVERAGE_TEXT, table_of(averages(), notes), numbered(notes))


def place(row: Row, rows: Sequence[Row]) -> str:
    """Return the words that tell a block of an exam from its others."""
    return f"{row.label}{put(row.prompt)}, pool {pool_name(row, rows)}"


def first_words(found: Sequence[Field], rows: Sequence[Row]) -> str:
    """Return what the questions of each block can show."""
    return "\n".join(f"- **{place(one.rows[0], rows)}**: {one.said}." for one in found)


def sections(found: Sequence[Field], derived: Sequence[Row], rows: Sequence[Row]) -> list[Section]:
    """Return the sections of one exam; empty ones are left out."""
    made = [_tests(rows), _costs(rows), _blocks(found, rows), _derived(derived)]
    return [one for one in made if len(one.lines) > 1 or (one.text and not one.lines)]


def _tests(rows: Sequence[Row]) -> Section:
    heads = (
        "system", "SE", "SE by topic", "difference, BCa", "p", "p (Holm)", "test", "better/worse",
        "correlation", "detectable",
    )  # fmt: skip
    return Section(
        "Differences from the reference",
        "BCa bootstrap over questions (10,000 resamples). `mcnemar`: exact, on single right/wrong "
        "draws; `sign-flip`: a permutation test on questions' means over epochs. Holm's p counts "
        "all comparisons of the block. *SE by topic* takes questions of a topic together (CR1).",
        [heads, *(_test(row) for row in rows if row.se is not None)],
    )


def _test(row: Row) -> tuple[str, ...]:
    split = UNKNOWN if row.n_better is None else f"{row.n_better}/{row.n_worse} of {row.n_paired}"
    return (
        f"`{row.system}`",
        percent(row.se),
        percent(row.se_clustered),
        _versus(row),
        _p(row.p_value),
        _p(row.p_holm),
        row.test or UNKNOWN,
        split,
        UNKNOWN if row.correlation is None else f"{row.correlation:.2f}",
        percent(row.min_detectable),
    )


def _versus(row: Row) -> str:
    bounds = interval(row.paired_bca_low, row.paired_bca_high, signed=True)
    return UNKNOWN if row.paired_diff is None else f"{points(row.paired_diff)} {bounds}"


def _p(value: float | None) -> str:
    return UNKNOWN if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _costs(rows: Sequence[Row]) -> Section:
    heads = (
        "system", "USD/query, BCa", "median", "p95", "times the reference", "USD/right",
        "tokens/right", "cost of pass", "never right", "on the frontier",
    )  # fmt: skip
    known = (row for row in rows if row.usd_median is not None)
    return Section(
        "Costs",
        "Over questions, would-be dollars. *Cost of pass* is E[cost] / P(right), the mean over the "
        "questions that were ever answered right; for the share *never right* it is infinite. "
        "*USD/right* is all dollars over all right answers. *On the frontier*: how often no other "
        "system is as good and cheaper when questions are resampled.",
        [heads, *(_cost(row) for row in known)],
    )


def _cost(row: Row) -> tuple[str, ...]:
    return (
        f"`{row.system}`",
        f"{usd(row.usd_per_query)}{_between(row.usd_low, row.usd_high)}",
        usd_about(row.usd_median),
        usd_about(row.usd_p95),
        _ratio(row),
        usd_about(row.usd_per_correct),
        count(row.tokens_per_correct),
        usd_about(row.cost_of_pass),
        f"{percent(row.share_infinite)} %",
        UNKNOWN if row.pareto_probability is None else f"{percent(row.pareto_probability)} %",
    )


def _ratio(row: Row) -> str:
    if row.usd_ratio is None:
        return UNKNOWN
    return f"{usd_about(row.usd_ratio)}{_between(row.usd_ratio_low, row.usd_ratio_high)}"


def _between(low: float | None, high: float | None) -> str:
    """Return an interval of estimates after a blank; nothing where there is none."""
    return "" if low is None or high is None else f" [{usd_about(low)},{usd_about(high)}]"


def _blocks(found: Sequence[Field], rows: Sequence[Row]) -> Section:
    said = [
        f"- {place(one.rows[0], rows)}: {line}."
        for one in found
        for line in (*_cochran(one), *_frontier(one))
    ]
    return Section("Block by block", "\n".join(said), ())


def _cochran(one: Field) -> list[str]:
    if one.cochran is None:
        return []
    q = one.cochran
    return [
        f"do any differ? Cochran's Q = {q.q:.2f}, {q.df} degrees of freedom, p = "
        f"{_p(q.p_value).removeprefix('<')}{' or less' if q.p_value < 0.001 else ''} "
        f"({q.differing} questions tell systems apart)"
    ]


def _frontier(one: Field) -> list[str]:
    if one.frontier is None:
        return []
    line, passed, whole = one.frontier, one.frontier.passed, one.questions
    names = ", ".join(f"`{name}`" for name in line.on)
    asked = f" on the {line.questions} that all were graded on" if line.questions < whole else ""
    said = [f"not dominated in accuracy and dollars{asked}: {names}"]
    if line.aiq is not None:
        alone = "" if line.aiq_singles is None else f", of single workers {line.aiq_singles:.3f}"
        said.append(
            f"AIQ between USD {usd_about(line.low)} and {usd_about(line.high)} per query (the "
            f"cheapest and the dearest system): {line.aiq:.3f}{alone}; corners of the hull, which "
            f"only *random mixing* joins: {corners_text(line)}"
        )
    if passed and passed.mean is not None:
        said.append(
            f"each question by the system that answers it most cheaply (a bound): cost of pass USD "
            f"{usd_about(passed.mean)}, never right {percent(passed.infinite)} %"
        )
    return said


def _derived(rows: Sequence[Row]) -> Section:
    heads = ("row", "accuracy %", "95 % interval", "vs reference (points)", "USD/query", "how")
    return Section(
        "Derived rows",
        "Made from the logs above without a call; `oracle-router*` knows the answers and is a "
        "bound. They change no verdict of the other rows.",
        [heads, *(_row(row) for row in rows)],
    )


def _row(row: Row) -> tuple[str, ...]:
    bounds = interval(row.paired_low, row.paired_high, signed=True)
    against = UNKNOWN
    if row.paired_diff is not None:
        against = f"{points(row.paired_diff)} {bounds} {row.verdict}"
    return (
        f"`{row.system}` ({row.label}, pool {row.pool})",
        percent(row.accuracy),
        interval(row.ci_low, row.ci_high),
        against,
        usd(row.usd_per_query),
        f"{row.derived}; {row.notes}",
    )
