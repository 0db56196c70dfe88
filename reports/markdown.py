"""table.md: a table per suite, footnotes on each row's limitations, workers, and all costs."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from importlib.resources import files
from itertools import groupby

from podium.harness.ledger.runs import RunFacts
from podium.harness.ledger.totals import SystemRun, system_totals, total
from podium.harness.prices import book_from_json
from podium.reports import blocks, published, render
from podium.reports.across import across_markdown
from podium.reports.columns import full_columns, label, narrow_columns
from podium.reports.comparison_rows import paid_cell, systems_table
from podium.reports.derived import (
    MOST_GROUPS,
    PASS_AT,
    BlockSummary,
    Comparison,
    GroupScore,
    by_group,
    largest_groups,
)
from podium.reports.learning_cost import learning_markdown
from podium.reports.profile_table import known_tables
from podium.reports.render import (
    UNKNOWN,
    Columns,
    count,
    interval,
    p_value,
    percent,
    points,
    usd,
    usd_about,
)
from podium.reports.row import TableRow
from podium.reports.stats import equivalence_words

MARK = "<!-- podium report -->"
"""First line of every table.md that podium wrote: a later report may overwrite such files."""

FIGURES: Columns[TableRow] = full_columns(
    *("accuracy", "ci_low", "paired_diff", "epochs", "n_graded", "n_unparsed", "n_too_long"),
    *("invalid_plan_pct", "usd_per_query", "usd_paid_low", "tokens_in", "tokens_out"),
    *("tokens_reasoning", "worker_tokens_out", "conductor_tokens", "calls", "steps", "depth"),
    *("critical_path_s", "conductor_s", "knowledge_cutoff"),
)
CALLS: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}` ({row.label})"),
    ("by its manifest", lambda row: row.calls_expected or UNKNOWN),
    ("fewest", lambda row: UNKNOWN if row.calls_min is None else str(row.calls_min)),
    ("most", lambda row: UNKNOWN if row.calls_max is None else str(row.calls_max)),
    ("mean of all calls", lambda row: UNKNOWN if row.calls is None else f"{row.calls:.2f}"),
)
Lines = Sequence[str]


def markdown(
    comparison: Comparison,
    system_runs: Sequence[SystemRun],
    skipped: Lines,
    chosen: Columns[TableRow] = (),
) -> str:
    """Return the text of table.md; columns that the user chose replace those of its main tables."""
    sections = [MARK, "# Comparison", prose("legend.md")]
    papers = _published([row.suite for row in comparison.rows])
    for key, group in groupby(comparison.rows, key=lambda row: (row.suite, row.split)):
        rows = list(group)
        ids = {id(row) for row in rows}
        fields = [block for block in comparison.fields if id(block.rows[0]) in ids]
        derived = [row for row in comparison.derived if (row.suite, row.split) == key]
        above = [line for block in fields for line in _above(block, comparison.rows)]
        sections.append(_suite(rows, "\n".join(above), chosen or FIGURES))
        sections += _sections(fields, derived, rows)
        sections += [_parts(grouping, scores) for grouping, scores in comparison.blocks(rows)]
        learnt = [cost for cost in comparison.learning if id(cost.row) in ids]
        sections.append(learning_markdown(learnt))
        pairs = [pair for block in comparison.pairs for pair in block if id(pair[0]) in ids]
        sections += [
            f"### {title}\n\n{render.figures_table(table)}" for title, table in known_tables(pairs)
        ]
        sections.append(_table("Worker calls per question", "", CALLS, rows))
        sections.append(papers.get(key[0], ""))
    declared, spend = systems_table(comparison.rows), spend_table(system_runs)
    workers = workers_table([system_run.facts for system_run in system_runs])
    sections += [
        across_markdown(comparison.across),
        papers.get("", ""),
        f"## Terms\n\n{prose('terms.md')}",
        _bullets("## Boxes", blocks.package_lines(comparison.rows)),
        # Older logs lack the sources.
        f"## Systems\n\n{render.figures_table(declared)}" if declared[1:] else "",
        f"## Workers\n\n{render.markdown_table(workers, left=len(workers[0]))}",
        f"## Spend, all attempts included\n\n{render.markdown_table(spend, left=4)}",
        _bullets("## Passed over", skipped),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def prose(name: str) -> str:
    """Return the text of a Markdown file of this package; the documentation shows the same text."""
    return files("podium.reports").joinpath(name).read_text(encoding="utf-8").rstrip("\n")


def _bullets(title: str, lines: Lines) -> str:
    return f"{title}\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def _above(block: BlockSummary, rows: Sequence[TableRow]) -> Iterator[str]:
    if block.headline:
        yield f"- **{block.headline}.**"
    yield f"- **{_block_words(block.rows[0], rows)}**: {'; '.join((block.said, *block.cautions))}."


def _suite(rows: Sequence[TableRow], can_show: str, figures: Columns[TableRow]) -> str:
    top = rows[0]
    seconds = sorted({row.time_scale for row in rows if row.label == "rehearsal"})
    facts = [f"questions dated {top.dates}", f"data `{top.data_revision}`"]
    boxes = blocks.boxes_of(rows)
    facts += [f"graded in box {', '.join(boxes)}"] if boxes else []
    box_notes = {id(row): f"graded in box {box}" for box, row in blocks.boxes_by_row(rows)}
    slept = f"rehearsal latency slept times {', '.join(map(str, seconds))}, shown as stated"
    facts += [slept] if seconds else []
    title = f"## {top.suite}, version {top.suite_version}, {top.split} split"
    title += f"\n\n{'; '.join(facts)}."
    notes: list[str] = []
    header = ("system", *(head for head, _ in figures))
    ruler = ["---", *["---:"] * (len(header) - 2), "---"]
    lines = [render.markdown_line(cells) for cells in (header, ruler)]
    for block in blocks.blocks_of(rows):
        lines.append(render.markdown_line([_head(block), *[""] * (len(header) - 1)]))
        for row in block:
            texts = (*row.notes.split("; "), box_notes.get(id(row), ""))
            name = render.footnoted(f"`{row.system}`", texts, notes)
            lines.append(render.markdown_line([name, *render.cells(figures, row)]))
    return "\n\n".join(filter(None, (title, can_show, "\n".join(lines), render.numbered(notes))))


def _head(block: Sequence[TableRow]) -> str:
    top, reference = block[0], blocks.reference_of_block(block)
    rule = next((row.reference_rule for row in block if row.reference), "")
    rule = f" ({rule})" if rule else ""
    pool = blocks.pinned_name(top.pool, top.pool_sha256)
    book = f"{blocks.pinned_name(top.price_book, top.price_book_sha256)}, {top.price_book_date},"
    prompt = f"**{top.label}**{blocks.prompt_words(top.prompt, top.equal)}"
    return f"{prompt}, pool {pool}, price book {book} seed {top.seed}; reference: {reference}{rule}"


def _parts(grouping: str, scores: Sequence[GroupScore]) -> str:
    largest, left_out = largest_groups(scores, MOST_GROUPS)
    groups, rows = by_group(largest)
    lines = [("system", *groups)]
    for row, cells in rows:
        prompt = blocks.prompt_words(row.prompt, row.equal)
        label = f"`{row.system}` ({row.label}{prompt}, pool {row.pool})"
        values = (
            f"{percent(score.value)} {interval(score.ci_low, score.ci_high)} n={score.n}"
            if score
            else UNKNOWN
            for score in cells
        )
        lines.append((label, *values))
    title = "several tries" if grouping == PASS_AT else grouping
    few = f" Of the questions {left_out}." if left_out else ""
    head = f"### By {title}\n\nPercent, 95 % interval, graded questions.{few}\n\n"
    return head + render.markdown_table(lines)


def workers_table(facts: Sequence[RunFacts]) -> list[Sequence[str]]:
    """Return a table of the workers of some runs, header first: models, settings, prices."""
    header = ("pool", "worker", "model", "settings", "USD per million in/out", "knowledge cutoff")
    lines: dict[tuple[str, str], Sequence[str]] = {}
    for run in sorted(facts, key=lambda run: (run.pool, run.pool_sha256)):
        book, market = book_from_json(run.prices), run.label != "rehearsal"
        for name, worker in run.workers.items():
            settings = ", ".join(
                f"{key}={json.dumps(value) if isinstance(value, dict | list) else value}"
                for key, value in worker.settings.items()
            )
            price = book.price(worker.price)
            rates = f"{price.input} / {price.output}" if price else "no price"
            if price and price.evidence and market:
                rates += f" ({book.evidence(worker.price)})"
            cells = (run.pool, f"`{name}`", f"`{worker.model}`", settings or "provider defaults")
            cutoff = worker.knowledge_cutoff if market else "none"
            lines.setdefault((run.pool_sha256, name), (*cells, rates, cutoff))
    return [header, *lines.values()]


def spend_table(system_runs: Sequence[SystemRun]) -> list[Sequence[str]]:
    """Return a table of each system run's dollars, all attempts included; the sum comes last."""
    lines: list[Sequence[str]] = [
        ("purpose", "suite", "system", "label", "calls", "would-be USD", "paid USD", "grading USD")
    ]
    spent: list[tuple[Decimal | None, Decimal | None]] = []
    order = ("purpose", "suite", "split", "label", "system")
    for system_run in sorted(
        system_runs, key=lambda run: (*(getattr(run.facts, name) for name in order), *run.logs)
    ):
        facts, totals = system_run.facts, system_totals(system_run)
        spend = system_run.spend
        calls = total(spend.values()).calls
        usd_solve = total(tally for kind, tally in spend.items() if kind.phase == "solve").listed
        paid = paid_cell(totals.paid.low, totals.paid.high, totals.paid.unpriced)
        suite = f"{facts.suite} ({facts.split}){blocks.prompt_words(facts.prompt, facts.equal)}"
        cells = [facts.purpose, suite, f"`{facts.system}`", facts.label]
        cells += [str(calls), usd(usd_solve), paid, usd(totals.usd_grading)]
        lines.append(cells)
        spent.append((usd_solve, totals.usd_spent))
    sums = [usd(render.usd_sum(column)) for column in zip(*spent, strict=True)]
    return [*lines, ["in all", *[""] * 4, *sums, ""]]


def _published(suites: Sequence[str]) -> dict[str, str]:
    """Return suite -> section of table.md with its published results; `""` -> means over suites."""
    by_suite = {
        suite: (f"### {suite}: {published.TITLE.lower()}", published.TEXT, figures)
        for suite in suites
        if (figures := published.of_suite(suite))
    }
    if by_suite:
        means = published.averages()
        by_suite[""] = (f"## {published.AVERAGE_TITLE}", published.AVERAGE_TEXT, means)
    sections: dict[str, str] = {}
    for suite, (title, text, figures) in by_suite.items():
        notes: list[str] = []
        table = render.figures_table(published.table_of(figures, notes))
        sections[suite] = "\n\n".join(filter(None, (title, text, table, render.numbered(notes))))
    return sections


def _table(title: str, text: str, columns: Columns[TableRow], rows: Sequence[TableRow]) -> str:
    table = render.figures_table(render.tabulate(columns, rows))
    return "\n\n".join(filter(None, (f"### {title}", text, table))) if rows else ""


def _block_words(row: TableRow, rows: Sequence[TableRow]) -> str:
    prompt = blocks.prompt_words(row.prompt, row.equal)
    return f"{row.label}{prompt}, pool {blocks.pool_name(row, rows)}"


def _sections(
    fields: Sequence[BlockSummary], derived: Sequence[TableRow], rows: Sequence[TableRow]
) -> list[str]:
    """Return a suite's sections below its main table in table.md; the caller drops empty ones."""
    lines = [
        f"{_block_words(block.rows[0], rows)}: {line}."
        for block in fields
        for line in block_lines(block)
    ]
    return [
        *(_table(*table) for table in row_tables(rows)),
        _bullets("### Block by block", lines),
        _table("Derived rows", DERIVED, DERIVED_COLUMNS, derived),
    ]


def row_tables(
    rows: Sequence[TableRow],
) -> Iterator[tuple[str, str, Columns[TableRow], Sequence[TableRow]]]:
    """Yield a suite's further tables, e.g. of costs: title, introduction, columns, rows."""
    tests = [row for row in rows if row.se is not None]
    priced = [row for row in rows if row.usd_median is not None]
    compared = [row for row in rows if row.equivalence_margin is not None]
    said_equal = equivalence_words(compared[0].equivalence_margin or 0) + "." if compared else ""
    behind = [row for row in rows if row.regret_accuracy is not None]
    yield "Differences from the reference", TESTS, TEST, tests
    yield "Equivalence", f"*{said_equal.replace(':', '*:', 1)}", EQUAL, compared
    yield "Costs", COSTS, COST, priced
    yield "Tries", TRIES, TRY, [row for row in rows if row.tries_k is not None]
    yield "Plans", PLANS, PLAN, [row for row in rows if row.distinct_plans is not None]
    yield "Regret to the oracle", REGRETS, REGRET, behind


TESTS = (
    "BCa bootstrap over questions (10,000 resamples). `mcnemar`: exact, on single right/wrong "
    "draws; `sign-flip`: a permutation test on questions' means over epochs. Holm's p counts "
    "all comparisons of the block. *SE by topic* clusters questions by topic (CR1)."
)


def _difference(row: TableRow) -> str:
    bounds = interval(row.paired_bca_low, row.paired_bca_high, signed=True)
    return UNKNOWN if row.paired_diff is None else f"{points(row.paired_diff)} {bounds}"


def _split(row: TableRow) -> str:
    return UNKNOWN if row.n_better is None else f"{row.n_better}/{row.n_worse} of {row.n_paired}"


PLANS = (
    "Did a conductor learn more than the format? *Given a valid plan*: accuracy on the questions "
    "whose plan was carried out. Plans differ if they ask different workers or if different "
    "steps read each other."
)
PLAN: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    *full_columns("valid_plan_accuracy", "one_step_pct", "distinct_plans"),
    *full_columns("commonest_plan_pct", "worker_entropy", "regret_accuracy"),
)


TEST: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    ("SE", lambda row: percent(row.se)),
    ("SE by topic", lambda row: percent(row.se_clustered)),
    ("difference, BCa", _difference),
    ("p", lambda row: p_value(row.p_value)),
    ("p (Holm)", lambda row: p_value(row.p_holm)),
    ("test", lambda row: row.test or UNKNOWN),
    ("better/worse", _split),
    ("correlation", lambda row: count(row.correlation, 2)),
    ("detectable", lambda row: percent(row.min_detectable)),
)
EQUAL: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    ("difference (points)", lambda row: points(row.paired_diff)),
    (
        "90 % interval",
        lambda row: interval(row.equivalence_low, row.equivalence_high, signed=True),
    ),
    ("p", lambda row: p_value(row.p_equivalence)),
    ("p (Holm)", lambda row: p_value(row.p_equivalence_holm)),
    (label("verdict"), lambda row: row.verdict),
)
TRIES = (
    "On questions with k graded tries, with 95 % intervals by question. avg@k: the mean of their "
    "tries; pass@k: the probability that at least one of k is right; pass^k: that all are."
)
TRY: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    *full_columns("tries_k", "avg_at_k", "pass_at_k", "pass_all_k"),
)
REGRETS = (
    "The oracle gives each question to the best of these systems. Accuracy: how much more "
    "accurate it is, on the questions on which all were graded. USD: how much a system costs "
    "above the cheapest that is as good, per question that it got right."
)
REGRET: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    ("accuracy (points)", lambda row: points(row.regret_accuracy)),
    (label("usd_per_query"), lambda row: usd_about(row.regret_usd)),
)
COSTS = (
    "Would-be dollars, over questions. *Cost of pass* is E[cost] / P(right), the mean over the "
    "questions that were ever answered right; for the share *never right* it is infinite. "
    "*USD/right* is all dollars divided by the number of right answers. *On the frontier*: the "
    "share of resamples of the questions in which no other system is as good and cheaper."
)
COST: Columns[TableRow] = (
    ("system", lambda row: f"`{row.system}`"),
    (
        f"{label('usd_per_query')}, BCa",
        lambda row: _within(usd(row.usd_per_query), row.usd_low, row.usd_high),
    ),
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


def _within(text: str, low: float | None, high: float | None) -> str:
    return text if low is None or high is None else f"{text} [{usd_about(low)},{usd_about(high)}]"


def block_lines(block: BlockSummary) -> Iterator[str]:
    """Yield sentences on a block of rows: Cochran's test, the frontier of accuracy and dollars."""
    if q := block.cochran:
        p = f"{p_value(q.p_value).removeprefix('<')}{' or less' if q.p_value < 0.001 else ''}"
        yield (
            f"test whether any systems differ: Cochran's Q = {q.q:.2f}, {q.df} degrees of "
            f"freedom, p = {p} "
            f"(systems differ on {q.differing} questions)"
        )
    if not (line := block.frontier):
        return
    few = line.questions < block.questions
    scope = f" on the {line.questions} that all were graded on" if few else ""
    names = ", ".join(f"`{name}`" for name in line.on)
    yield f"not dominated in accuracy and dollars{scope}: {names}"
    if line.aiq is not None:
        alone = "" if line.aiq_singles is None else f", of single workers {line.aiq_singles:.3f}"
        corners = [f"{100 * score:.1f} % at USD {usd_about(usd)}" for usd, score in line.corners]
        yield (
            f"AIQ between USD {usd_about(line.low)} and {usd_about(line.high)} per query (the "
            f"cheapest and the dearest system): {line.aiq:.3f}{alone}; corners of the hull, which "
            f"only *random mixing* joins: {', '.join(corners)}"
        )
    if line.passed and line.passed.mean is not None:
        yield (
            f"each question answered by its cheapest system (a bound): cost of pass USD "
            f"{usd_about(line.passed.mean)}, never right {percent(line.passed.infinite)} %"
        )


DERIVED = (
    "Computed from the logs above without a call; `oracle-router*` knows the answers and is a "
    "bound. These rows change no verdict of the other rows."
)
DERIVED_COLUMNS: Columns[TableRow] = (
    ("row", lambda row: f"`{row.system}` ({row.label}, pool {row.pool})"),
    *full_columns("accuracy", "ci_low", "paired_diff"),
    *narrow_columns("usd_per_query"),
    ("how", lambda row: f"{row.derived}; {row.notes}"),
)
