"""The comparison as plain text for a terminal: 120 columns, no colour, the essential columns."""

from collections.abc import Sequence
from textwrap import wrap

from harness.text import aligned
from reports import blocks, render
from reports.across import across_text
from reports.derived import MOST_GROUPS, SUBJECT, Comparison, GroupScore, by_group, largest_groups
from reports.equivalence import equivalence_words
from reports.render import UNKNOWN, Columns, count, interval, percent, points, share, shortened, usd
from reports.row import TableRow

WIDTH = 120
LEGEND = (
    "vs ref: points against the reference, question by question; inconclusive: less than so many "
    "questions can show, or not confirmed by a sign test or for so many comparisons (Holm)"
)
STAR = "* looks at targets, was chosen in hindsight, or is not graded in full: see table.md"
NAME = 30
FEWEST = 10  # questions of a subject: shares of fewer say nothing at a glance
DERIVED = 64  # of a derived row's name, which names its suite and its worker, too
DERIVED_COLUMNS: Columns[TableRow] = (
    ("derived, no call of its own", lambda row: shortened(f"{row.suite} {row.system}", DERIVED)),
    ("acc %", lambda row: percent(row.accuracy)),
    ("95 % interval", lambda row: interval(row.ci_low, row.ci_high)),
    ("vs ref", lambda row: points(row.paired_diff)),
    ("verdict", lambda row: row.verdict or UNKNOWN),
    ("USD/query", lambda row: usd(row.usd_per_query)),
)
FIGURES: Columns[TableRow] = (
    ("acc %", lambda row: percent(row.accuracy)),
    ("95 % CI", lambda row: interval(row.ci_low, row.ci_high)),
    ("vs ref", lambda row: points(row.paired_diff)),
    ("verdict", lambda row: row.verdict or UNKNOWN),
    ("graded", lambda row: f"{row.n_graded}/{row.n_asked}"),
    ("invalid", lambda row: share(row.invalid_plan_pct)),
    ("USD/query", lambda row: usd(row.usd_per_query)),
    ("tok out", lambda row: count(row.tokens_out)),
    ("calls", lambda row: count(row.calls, 1)),
    ("sec", lambda row: count(row.latency_s, 2)),
)


def table_text(shown: Comparison, chosen: Columns[TableRow] = ()) -> str:
    """Return the rows block by block, no line longer than 120 characters.

    Columns that somebody has `chosen` are all shown, however long the lines.
    """
    parts = [_block(block, shown, chosen) for block in blocks.blocks_of(shown.rows)]
    below = wrap(LEGEND, WIDTH) if any(row.paired_diff is not None for row in shown.rows) else []
    margins = {row.equivalence_margin for row in shown.rows} - {None}
    below += [line for one in margins if one for line in wrap(equivalence_words(one), WIDTH)]
    below += [STAR] if any(map(_is_limited, shown.rows)) else []
    parts += ["\n".join(below)] if below else []
    return "\n\n".join(filter(None, (*parts, across_text(shown.across, WIDTH))))


def _block(block: Sequence[TableRow], shown: Comparison, chosen: Columns[TableRow]) -> str:
    first, rows = block[0], shown.rows
    pool, book = blocks.pool_name(first, rows), blocks.book_name(first, rows)
    reference = blocks.reference_of_block(block)
    title = f"{blocks.asked_name(first)}, pool {pool}, prices {book}; reference: {reference}"
    lines = _table(block, NAME, chosen or FIGURES)
    over = max(map(len, lines)) - WIDTH
    if over > 0 and not chosen:  # long names give way to figures
        lines = _table(block, max(len(_name(row)) for row in block) - over, FIGURES)
    below = [*_each(block), *_once(block)]
    for grouping, parts in shown.blocks(block):
        below += _parts(grouping, parts)
    above = [title, *(one.said for one in shown.fields if one.rows[0] is first)]
    heads = [part for one in above for part in wrap(one, WIDTH, break_on_hyphens=False)]
    cut = None if chosen else WIDTH
    return "\n".join(line[:cut].rstrip() for line in (*heads, *lines, *below))


def _table(block: Sequence[TableRow], width: int, figures: Columns[TableRow]) -> list[str]:
    columns: Columns[TableRow] = (("system", lambda row: _name(row, width)), *figures)
    return aligned(render.tabulate(columns, block))


def derived_text(rows: Sequence[TableRow]) -> str:
    """Return derived rows for those who ask for them."""
    lines = aligned(render.tabulate(DERIVED_COLUMNS, rows))
    return "\n".join(line[:WIDTH].rstrip() for line in lines) if rows else ""


def _each(block: Sequence[TableRow]) -> list[str]:
    tries = blocks.avg_at(block)
    said = f"acc: {tries}, the mean over epochs; intervals are clustered by question"
    lines = [said] if tries else []
    priced = block[0].price_book != "none"  # as the block's heading then says: no more to say
    for title, each in {
        "graded wrong, no answer found": [
            f"{row.system} {row.n_unparsed}" for row in block if row.n_unparsed
        ],
        "invalid plans, graded wrong, with their commonest fault": [
            f"{row.system} {share(row.invalid_plan_pct)} ({row.invalid_plan_reason})"
            for row in block
            if row.n_invalid_plans
        ],
        # Of conductors that nobody bills, for they run where the run does.
        "conductor on this machine's own processor, sec per query": [
            f"{row.system} {count(row.conductor_s, 3)}"
            for row in block
            if row.label == "live" and row.conductor_s is not None
        ],
        "no USD/query, calls without a price": [
            f"{row.system} {row.n_unpriced}"
            for row in block
            if priced and row.n_unpriced and row.usd_per_query is None
        ],
    }.items():
        if each:
            lines += wrap(f"{title}: {', '.join(each)}", WIDTH, break_on_hyphens=False)
    return lines


def _once(block: Sequence[TableRow]) -> list[str]:
    scales = sorted({row.time_scale for row in block if row.label == "rehearsal"} - {1.0})
    times = ", ".join(map(str, scales))
    apart = [f"box of {row.system}: {box}" for box, row in blocks.boxes_by_row(block)]
    return [
        *([f"sec: rehearsal latency slept times {times}"] if scales else []),
        *(apart or [f"box: {box}" for box in blocks.boxes_of(block)]),
        *(
            f"published evaluator on {row.system}: {percent(row.official_accuracy)} % "
            f"({row.n_official_differ} verdicts differ)"
            for row in block
            if row.n_official_differ
        ),
    ]


def _parts(grouping: str, parts: Sequence[GroupScore]) -> list[str]:
    """Return a table of as many groups as have room, those with most questions."""
    most = max(part.n for part in parts)
    if grouping == SUBJECT and most < FEWEST:
        return [f"{grouping}: see table.md, none has more than {most} questions"]
    lines: list[str] = []
    for groups in range(MOST_GROUPS, 0, -1):
        kept, left_out = largest_groups(parts, groups)
        lines = _group_lines(grouping, kept)
        lines += [f"{grouping}: {left_out}"] if left_out else []
        if max(map(len, lines)) <= WIDTH:
            break
    return lines


def _group_lines(grouping: str, parts: Sequence[GroupScore]) -> list[str]:
    groups, rows = by_group(parts)
    sizes = (max(part.n for part in parts if part.group == group) for group in groups)
    heads = (f"{group} (n={size})" for group, size in zip(groups, sizes, strict=True))
    lines = [(_name(row), *(percent(one and one.value) for one in own)) for row, own in rows]
    return aligned([(grouping, *heads), *lines])


def _name(row: TableRow, width: int = NAME) -> str:
    return shortened(row.system + ("*" if _is_limited(row) else ""), width)


def _is_limited(row: TableRow) -> bool:
    return row.uses_targets or not row.reference_allowed or row.n_graded < row.n_asked
