"""The first page of a site: blocks of comparable rows, the audit, and the command to repeat it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from shlex import join
from typing import Any

from podium.harness.ledger.runs import system_runs_below
from podium.harness.suite import moved_versions
from podium.harness.text import pluralise
from podium.reports import across, blocks, learning_cost, markdown, published, render
from podium.reports.audit import Audit
from podium.reports.blocks import asked_name, group_of
from podium.reports.columns import DECLARED, full_columns
from podium.reports.comparison_rows import Pair, systems_table
from podium.reports.derived import (
    MOST_GROUPS,
    PASS_AT,
    BlockSummary,
    GroupScore,
    by_group,
    compare,
    largest_groups,
)
from podium.reports.headline import headline_row
from podium.reports.profile_table import known_tables
from podium.reports.report import Report
from podium.reports.row import LABELS, TableRow, block_of
from podium.reports.site.audit_page import manifest_roots
from podium.reports.site.index import SiteBlock
from podium.reports.site.pages import data_script, render_page

FIRST = ("usd_per_query", "tokens_out", "calls", "steps", "critical_path_s")
"""The columns of table.md that the page shows by default, beside accuracy and difference."""
MORE = (
    *("epochs", "n_graded", "n_unparsed", "n_too_long", "invalid_plan_pct", "usd_paid_low"),
    *("tokens_in", "tokens_reasoning", "worker_tokens_out", "conductor_tokens", "depth"),
    *("conductor_s", "knowledge_cutoff", "regret_accuracy", "regret_usd"),
)
"""The columns that the page shows when a reader asks for more."""
MOST = 250_000
"""Maximum systems**2 * questions for which a site without a server offers other references."""
Table = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class SiteColumn:
    """A column of the comparison table: header, field of the row, tooltip, and formatter."""

    head: str
    field: str
    tip: str
    show: Callable[[TableRow], str]
    more: bool
    """Whether the column is hidden until a reader of the page asks for more."""


COLUMNS = tuple(
    SiteColumn(head, key, DECLARED[key].tip, show, keys is MORE)
    for keys in (FIRST, MORE)
    for key, (head, show) in zip(keys, full_columns(*keys), strict=True)
)
OF_BLOCKS: Mapping[str, Any] = {
    "columns": COLUMNS,
    "verdict_tip": DECLARED["verdict"].tip,
    "said_of_derived": markdown.DERIVED,
}
"""Template variables that are the same for every block."""


def context(
    report: Report,
    audits: Mapping[Path, Audit],
    versions: Mapping[str, str],
    site_blocks: Sequence[SiteBlock],
    *,
    served: bool = False,
) -> dict[str, Any]:
    """Return the template variables of index.html; `versions` are the current suite versions."""
    table = report.shown
    return {
        "compared": "; ".join(_compared(block) for block in table.fields),
        "alerts": [*_alerts(report, audits, versions)],
        "labels": {label: words for label, words in LABELS.items() if _has(table.rows, label)},
        **OF_BLOCKS,
        "blocks": [
            _block(report, block, site_block) | {"references": _references(site_block, served)}
            for block, site_block in zip(table.fields, site_blocks, strict=True)
        ],
        "across": across.across_tables(table.across),
        "learning": table.learning,
        "queries": learning_cost.QUERIES,
        "workers": _workers(report),
        "systems": systems_table(table.rows),
        "boxes": blocks.package_lines(table.rows),
        "spend": markdown.spend_table(report.system_runs),
        "published": [*_published(table.rows)],
        "invariants": _invariants(audits),
        "manifests": _manifests([*audits]),
        "command": _command(report, [*audits]),
        "digest": sha256(str(report.contents["table.json"]).encode()).hexdigest(),
        "legend": markdown.prose("legend.md").split("\n\n"),
        "said_of_across": across.SAID,
        "said_of_learning": learning_cost.SAID,
        "terms": markdown.prose("terms.md").removeprefix("- ").split("\n- "),
    }


def reference_files(
    report: Report, site_blocks: Sequence[SiteBlock], *, served: bool = False
) -> dict[str, Callable[[], str]]:
    """Return file name -> function that renders a block with another reference, as `--vs` does."""
    return {
        f"data/{_reference_file(block, number)}.js": partial(
            _held_against, report, index, block, number
        )
        for index, block in enumerate(site_blocks)
        for number in _references(block, served)
    }


def _reference_file(block: SiteBlock, number: int) -> str:
    return f"against/{block.name}/{number}"


def _references(block: SiteBlock, served: bool) -> list[int]:
    """Return the numbers of rows that a reader may choose as reference, one row per system.

    Empty without a server if systems**2 * questions is above `MOST`; then use `podium report --vs`.
    """
    cells = len(block.pairs) ** 2 * len(block.questions)
    if len(block.pairs) < 2 or (cells > MOST and not served):
        return []
    systems: dict[str, int] = {}
    for beside, (row, _) in enumerate(block.pairs):
        systems.setdefault(row.system, block.first + beside)
    reference_systems = {row.system for row, _ in block.pairs if row.verdict == "reference"}
    return [number for system, number in systems.items() if system not in reference_systems]


def _held_against(report: Report, index: int, site_block: SiteBlock, number: int) -> str:
    """Return the script with a block's table in which row `number` is the reference."""
    first_run = site_block.pairs[0][1]
    runs = [
        run
        for run in report.system_runs
        if run.facts.purpose != "eval" or group_of(run) == group_of(first_run)
    ]
    system = site_block.pairs[number - site_block.first][0].system
    table = compare(runs, replace(report.wanted, vs=system))
    block = _block(replace(report, shown=table), table.fields[0], site_block)
    values = {"id": index, "block": block, **OF_BLOCKS}
    html = {name: render_page(f"{name}.html", **values) for name in ("block", "learning")}
    return data_script(_reference_file(site_block, number), json.dumps(html).encode())


def _has(rows: Sequence[TableRow], label: str) -> bool:
    return any(row.label == label for row in rows)


def _compared(block: BlockSummary) -> str:
    row = block.rows[0]
    questions = f"{pluralise(block.questions, 'question')} of {row.suite}"
    tries = f", each asked {row.epochs} times" if row.epochs > 1 else ""
    return f"{pluralise(len(block.rows), 'system')} on {questions} ({row.label}{tries})"


def _alerts(
    report: Report, audits: Mapping[Path, Audit], versions: Mapping[str, str]
) -> Iterator[str]:
    """Yield the warnings at the top of the page, worst first."""
    for folder, audit in audits.items():
        if failed := [verdict for verdict in audit.verdicts if verdict.status == "fail"]:
            names = ", ".join(f"{verdict.invariant} ({verdict.title})" for verdict in failed)
            yield (
                f"The audit of {_named(folder)} fails: {names}. The files differ from those that "
                "a run wrote, or its sums do not add up: do not rely on the figures below."
            )
    then = {row.suite: row.suite_version for row in report.rows if row.suite in versions}
    if moved := moved_versions(then, versions):
        yield (
            f"Run with a different version of the suite from the one in this podium: {moved}. "
            "Scores may differ; `podium regrade --all` grades again."
        )
    for block, pairs in zip(report.shown.fields, report.shown.pairs, strict=True):
        for alert in _block_alerts(block, pairs):
            row = block.rows[0]
            yield f"{row.suite} ({row.label}, pool {row.pool}): {alert}."
    yield from (f"{warning}." for warning in report.skipped)


def _block_alerts(block: BlockSummary, pairs: Sequence[Pair]) -> Iterator[str]:
    total = sum(row.n_asked for row, _ in pairs)
    answers = sum(len(system_run.attempts) for _, system_run in pairs)
    if answers < total:
        yield f"interrupted, {answers:,} of {total:,} answers are there; the same command continues"
    if not block.questions:
        yield "no question was graded, so there is nothing to compare"
    if unscored := answers - sum(row.n_graded for row, _ in pairs):
        yield (
            f"{pluralise(unscored, 'answer')} could not be scored: the matrix page lists the "
            "reasons; `podium regrade --unscored` grades them again"
        )
    lacking = [row for row, _ in pairs if row.usd_per_query is None and row.n_unpriced]
    if lacking:
        calls = pluralise(sum(row.n_unpriced for row in lacking), "call")
        every = len(lacking) == len(pairs)
        of = "" if every else f" for {len(lacking)} of {pluralise(len(pairs), 'system')}"
        yield f"no dollars{of}: {calls} have no price"


def _block(report: Report, block: BlockSummary, site_block: SiteBlock) -> dict[str, Any]:
    table, rows, head = report.shown, block.rows, block.rows[0]
    notes: list[str] = []
    boxes = {id(row): f"graded in box {box}" for box, row in blocks.boxes_by_row(rows)}
    lines = [
        {
            "row": row,
            "number": site_block.first + beside,
            "marks": render.note_numbers((*row.notes.split("; "), boxes.get(id(row), "")), notes),
            "figures": [column.show(row) for column in COLUMNS],
            "limited": row.uses_targets or not row.reference_allowed,
            "on_frontier": bool(block.frontier and row.system in block.frontier.on),
        }
        for beside, row in enumerate(rows)
    ]
    return {
        "first": head,
        "summary": block,
        "main": _main(block),
        "title": asked_name(head),
        "prompt": blocks.prompt_words(head.prompt, head.equal),
        "facts": _facts(rows, next(pairs for pairs in table.pairs if pairs[0][0] is head)),
        "lines": lines,
        "notes": notes,
        "said": [*markdown.block_lines(block)],
        "parts": [_part(grouping, scores) for grouping, scores in table.blocks(rows)],
        "tables": [
            (f"{title}. {caption}", render.tabulate(columns, cells))
            for title, caption, columns, cells in markdown.row_tables(rows)
            if cells
        ]
        + [*known_tables(site_block.pairs)],
        "derived": render.tabulate(
            markdown.DERIVED_COLUMNS,
            [row for row in table.derived if block_of(row) == block_of(head)],
        ),
        "learning": [cost for cost in table.learning if any(cost.row is row for row in rows)],
        "name": site_block.name,
        "reference": next((row for row in rows if row.verdict == "reference"), None),
    }


def _main(block: BlockSummary) -> list[TableRow]:
    """Return the rows shown large: declared system and reference; empty without a comparison."""
    row = headline_row(block.rows, block.declared)
    references = [row for row in block.rows if row.verdict == "reference"]
    return [row, *references] if row else []


def _facts(rows: Sequence[TableRow], pairs: Sequence[Pair]) -> dict[str, str]:
    """Return facts that the rows of a block share (pool, prices, seed and others), by name."""
    head, boxes = rows[0], blocks.boxes_of(rows)
    book = blocks.pinned_name(head.price_book, head.price_book_sha256)
    rule = next((row.reference_rule for row in rows if row.reference), "")
    files = [run.facts.run_file for _, run in pairs if run.facts.run_file]
    typed = {file["sha256"]: ", ".join(file["options"]) for file in files}
    facts = {
        "run file": "; ".join(f"{sha}{names and f' and {names}'}" for sha, names in typed.items()),
        "pool": blocks.pinned_name(head.pool, head.pool_sha256),
        "price book": f"{book}, {head.price_book_date}",
        "reference": f"{blocks.reference_of_block(rows)}{f' ({rule})' if rule else ''}",
        "questions": f"dated {head.dates}; data {head.data_revision}",
        "seed": str(head.seed),
        "box": ", ".join(boxes),
        "seconds": f"rehearsal latency slept times {head.time_scale:g}"
        if head.label == "rehearsal"
        else "",
    }
    return {name: value for name, value in facts.items() if value}


def _part(grouping: str, scores: Sequence[GroupScore]) -> dict[str, Any]:
    largest, left_out = largest_groups(scores, MOST_GROUPS)
    groups, lines = by_group(largest)
    sizes = [max(score.n for score in largest if score.group == group) for group in groups]
    return {
        "title": "Several tries" if grouping == PASS_AT else f"By {grouping}",
        "left_out": left_out,
        "groups": [*zip(groups, sizes, strict=True)],
        "lines": lines,
    }


def _workers(report: Report) -> Table:
    return markdown.workers_table([system_run.facts for system_run in report.system_runs])


def _published(rows: Sequence[TableRow]) -> Iterator[dict[str, Any]]:
    suites = [suite for suite, _ in groupby(row.suite for row in rows)]
    pairs = [(suite, published.of_suite(suite)) for suite in suites]
    sections = [
        (f"{suite}: {published.TITLE.lower()}", published.TEXT, all) for suite, all in pairs
    ]
    if any(figures for _, figures in pairs):
        sections.append((published.AVERAGE_TITLE, published.AVERAGE_TEXT, published.averages()))
    for title, text, figures in sections:
        notes: list[str] = []
        if figures:
            table = published.table_of(figures, notes)
            yield {"title": title, "text": text, "table": table, "notes": notes}


def _invariants(audits: Mapping[Path, Audit]) -> dict[str, Any]:
    """Return each audit invariant with its status in each directory, and a summary."""
    columns = [audit.verdicts for audit in audits.values()]
    counts = [sum(v.status == status for column in columns for v in column) for status in STATUSES]
    phrases = [f"{n} {words}" for n, words in zip(counts, STATUSES.values(), strict=True) if n]
    return {
        "folders": [_named(folder) for folder in audits],
        "rows": [*zip(*columns, strict=True)],
        "said": ", ".join(phrases),
    }


STATUSES = {
    "pass": "hold",
    "weak": "hold with a listed gap",
    "not applicable": "do not apply",
    "fail": "fail",
}


def _named(folder: Path) -> str:
    """Return a directory's name without its path: pages may be copied elsewhere."""
    return folder.resolve().name


def _manifests(dirs: Sequence[Path]) -> list[tuple[str, str]]:
    """Return the runs below log directories, each with the root hash of its manifest."""
    roots: list[tuple[str, str]] = []
    for folder in dirs:
        for run, root in manifest_roots(folder, system_runs_below(folder)):
            below = run.relative_to(folder).as_posix() if run.is_relative_to(folder) else run.name
            roots.append((f"{_named(folder)}/{below}".removesuffix("/."), root))
    return roots


def _command(report: Report, dirs: Sequence[Path]) -> str:
    settings = report.wanted
    margin = settings.equivalence
    options = {
        "--vs": settings.vs,
        "--epochs": settings.epochs,
        "--maj": settings.maj,
        "--equivalence": None if margin is None else f"{100 * margin:g}",
        "--columns": ",".join(settings.columns),
    }
    words = [word for name, value in options.items() if value for word in (name, str(value))]
    return join(["podium", "report", *map(_named, dirs), *words, "--site", "site"])
