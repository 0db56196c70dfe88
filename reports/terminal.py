"""The comparison of systems as plain text for a terminal; columns that do not fit are dropped."""

from collections.abc import Sequence

from podium.harness.text import aligned
from podium.reports import blocks, render
from podium.reports.across import across_text
from podium.reports.columns import narrow_columns, narrow_label
from podium.reports.derived import (
    MOST_GROUPS,
    SUBJECT,
    Comparison,
    GroupScore,
    by_group,
    largest_groups,
)
from podium.reports.headline import why_inconclusive
from podium.reports.render import Columns, count, percent, share, shortened
from podium.reports.row import IMPOSSIBLE, TableRow
from podium.reports.stats import equivalence_words

LEGEND = (
    "diff: points against the reference, question by question; inconclusive: below what this "
    "number of questions can show, or not confirmed by a sign test or by a test adjusted for all "
    "comparisons (Holm)"
)
STAR = "* looks at targets, was chosen in hindsight, or is not graded in full: see table.md"
NO_ANSWER, TOO_LONG = map(narrow_label, ("n_unparsed", "n_too_long"))
NAME = 30
FEWEST = 10  # minimum questions of the largest subject for a table by subject
DERIVED = 64  # characters of a derived row's name, which includes suite and worker
DERIVED_COLUMNS: Columns[TableRow] = (
    ("derived, no call of its own", lambda row: shortened(f"{row.suite} {row.system}", DERIVED)),
    *narrow_columns("accuracy", "ci_low", "paired_diff", "verdict", "usd_per_query"),
)
FIGURES: Columns[TableRow] = (
    ("system", lambda row: _name(row)),
    *narrow_columns("accuracy", "ci_low", "paired_diff", "verdict", "n_graded", "n_unparsed"),
    *narrow_columns("n_too_long", "invalid_plan_pct", "usd_per_query", "tokens_out", "calls"),
    *narrow_columns("critical_path_s"),
)
LEFT_OUT = (
    *map(narrow_label, ("n_graded", "tokens_out", "invalid_plan_pct", "n_unparsed", "n_too_long")),
    *map(narrow_label, ("calls", "critical_path_s", "ci_low", "paired_diff")),
)
"""The order in which columns are dropped on a narrow terminal; table.md has all columns."""


def table_text(comparison: Comparison, chosen: Columns[TableRow] = ()) -> str:
    """Return the tables of a report, one per block of comparable rows, fitted to the terminal."""
    sections = [_block(block, comparison, chosen) for block in blocks.blocks_of(comparison.rows)]
    compared = any(row.paired_diff is not None for row in comparison.rows)
    below = render.wrapped(LEGEND) if compared else []
    margins = {row.equivalence_margin for row in comparison.rows} - {None}
    below += [line for each in margins if each for line in render.wrapped(equivalence_words(each))]
    below += render.wrapped(STAR) if any(map(_is_limited, comparison.rows)) else []
    sections += ["\n".join(below)] if below else []
    return "\n\n".join(filter(None, (*sections, across_text(comparison.across))))


def _block(block: Sequence[TableRow], table: Comparison, chosen: Columns[TableRow]) -> str:
    head, rows = block[0], table.rows
    pool, book = blocks.pool_name(head, rows), blocks.book_name(head, rows)
    reference = blocks.reference_of_block(block)
    title = f"{blocks.asked_name(head)}, pool {pool}, prices {book}; reference: {reference}"
    if chosen:
        lines, gone = aligned(render.tabulate((FIGURES[0], *chosen), block)), ()
    else:
        some = any(row.n_too_long for row in block)
        figures = [col for col in FIGURES if some or col[0] != TOO_LONG]  # else all are 0
        lines, gone = render.fitted(render.tabulate(figures, block), LEFT_OUT)
    lines += render.left_out(gone)
    lines += [*_each(block, (NO_ANSWER, TOO_LONG) if chosen else gone), *_once(block)]
    for grouping, scores in table.blocks(block):
        lines += _parts(grouping, scores)
    summary = next((field for field in table.fields if field.rows[0] is head), None)
    above = [summary.headline, title, summary.said, *summary.cautions] if summary else [title]
    heads = [line for sentence in above for line in render.wrapped(sentence)]
    return "\n".join((*heads, *lines))


def derived_text(comparison: Comparison) -> str:
    """Return a table of derived rows (computed from other rows' calls); empty if there are none."""
    if not comparison.derived:
        return ""
    lines, gone = render.fitted(render.tabulate(DERIVED_COLUMNS, comparison.derived), LEFT_OUT)
    sentences = blocks.beaten_oracles(comparison.derived, comparison.rows)
    lines += [line for sentence in sentences for line in render.wrapped(sentence)]
    return "\n".join((*lines, *render.left_out(gone)))


def _each(block: Sequence[TableRow], gone: Sequence[str]) -> list[str]:
    tries = blocks.avg_at(block)
    sentences = [f"acc: {tries}, the mean over epochs; intervals are clustered by question"]
    sentences = [*(sentences if tries else []), *blocks.beaten_oracles(block, block)]
    reasons = dict.fromkeys(reason for row in block if (reason := why_inconclusive(row)))
    priced = block[0].price_book != "none"  # the block's heading states "none"
    for title, each in {
        **{
            f"inconclusive because {reason}": [
                row.system for row in block if why_inconclusive(row) == reason
            ]
            for reason in reasons
        },
        "graded wrong, no answer found": [
            f"{row.system} {row.n_unparsed}"
            for row in block
            if row.n_unparsed and NO_ANSWER in gone
        ],
        "graded wrong, request longer than the worker's context": [
            f"{row.system} {row.n_too_long}" for row in block if row.n_too_long and TOO_LONG in gone
        ],
        "invalid plans, graded wrong, with the most frequent fault": [
            f"{row.system} {share(row.invalid_plan_pct)} ({row.invalid_plan_reason})"
            for row in block
            if row.n_invalid_plans
        ],
        # Conductors that no provider bills: they run on this machine.
        "conductor on this machine's own processor, sec per query": [
            f"{row.system} {count(row.conductor_s, 3)}"
            for row in block
            if row.label == "live" and row.conductor_s is not None
        ],
        f"no {narrow_label('usd_per_query')}, calls without a price": [
            f"{row.system} {row.n_unpriced}"
            for row in block
            if priced and row.n_unpriced and row.usd_per_query is None
        ],
        "warning": [
            f"{row.system}: {note}"
            for row in block
            for note in row.notes.split("; ")
            if note.startswith(IMPOSSIBLE)
        ],
    }.items():
        sentences += [f"{title}: {', '.join(each)}"] if each else []
    return [line for sentence in sentences for line in render.wrapped(sentence)]


def _once(block: Sequence[TableRow]) -> list[str]:
    apart = [f"box of {row.system}: {box}" for box, row in blocks.boxes_by_row(block)]
    sentences = [
        *(apart or [f"box: {box}" for box in blocks.boxes_of(block)]),
        *(
            f"published evaluator on {row.system}: {percent(row.official_accuracy)} % "
            f"({row.n_official_differ} verdicts differ)"
            for row in block
            if row.n_official_differ
        ),
    ]
    return [line for sentence in sentences for line in render.wrapped(sentence)]


def _parts(grouping: str, scores: Sequence[GroupScore]) -> list[str]:
    """Return a table of accuracy by group of questions; the smallest groups are dropped to fit."""
    maximum = max(score.n for score in scores)
    if grouping == SUBJECT and maximum < FEWEST:
        return [f"{grouping}: see table.md, no group has more than {maximum} questions"]
    largest, beyond = largest_groups(scores, MOST_GROUPS)
    groups, rows = by_group(largest)
    sizes = [max(score.n for score in largest if score.group == group) for group in groups]
    heads = [f"{group} (n={size})" for group, size in zip(groups, sizes, strict=True)]
    smallest = [
        head for _, _, head in sorted(zip(sizes, range(0, -len(heads), -1), heads, strict=True))
    ]
    table = [
        (_name(row), *(percent(score and score.value) for score in cols)) for row, cols in rows
    ]
    lines, gone = render.fitted([(grouping, *heads), *table], smallest)
    return [*lines, *render.left_out(gone), *([f"{grouping}: {beyond}"] if beyond else [])]


def _name(row: TableRow) -> str:
    return shortened(row.system + ("*" if _is_limited(row) else ""), NAME)


def _is_limited(row: TableRow) -> bool:
    return row.uses_targets or not row.reference_allowed or row.n_graded < row.n_asked
