"""The ablation table: on a terminal, and as ablations.md and ablations.csv.

Not here: the figures (reports/ablation_rows.py).
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from reports.ablation_rows import ALL, AblationRow, Variant, ablation_rows
from reports.files import (
    markdown_file,
    refuse_foreign,
    refuse_unwritable,
    text_file,
    write_files,
)
from reports.render import UNKNOWN, aligned, count, interval, percent, points, usd_about

MARK = "<!-- podium ablations -->"
COLUMNS = tuple(one.name for one in fields(AblationRow))
MARKS = {"ablations.md": MARK, "ablations.csv": ",".join(COLUMNS[:8])}

ACCURACY = ("ablation", "acc %", "95 % interval", "vs unablated", "95 % interval", "verdict")
WORK = ("ablation", "read %", "calls", "steps", "cond. tokens", "USD", "CPU s", "best step")
SAID = (
    "ablation", "subtasks", "distinct", "new", "new words", "new % of all", "leaked %",
    "acc % without",
)  # fmt: skip
LEGEND = (
    "acc %: all suites together, on the held-out questions that did not pick the checkpoint; "
    "verdicts are paired by question and adjusted for the number of ablations (Holm). read %: "
    "plans that could be read. new: subtasks that the warm start's grammar cannot have "
    "written; new words: those of them with a word that it does not have. "
    "leaked %: plans with a subtask that holds the answer, of those where that can be told. "
    "CPU s: of one seed's training; a warm start that several share is counted where it was made. "
    "Validation questions of generated suites; no exam was opened."
)


def write_ablations(
    variants: Sequence[Variant], reference: str, out: Path
) -> tuple[str, tuple[Path, ...]]:
    """Write ablations.md and .csv; return the text for a terminal, and the files.

    UserError for foreign files in `out`, and one that cannot be written.
    """
    refuse_foreign_ablations(out)
    rows = ablation_rows(variants, reference)
    files = {
        "ablations.md": markdown_file(ablation_markdown(rows), MARK),
        "ablations.csv": text_file(ablation_csv(rows)),
    }
    return ablation_text(rows), write_files(out, files)


def refuse_foreign_ablations(out: Path) -> None:
    """Raise UserError, before anything is trained, when the files could not be written."""
    refuse_unwritable(out)
    refuse_foreign(out, MARKS)


def ablation_text(rows: Sequence[AblationRow]) -> str:
    """Return the tables for a terminal."""
    tables = ["\n".join(aligned(table)) for table in _tables(rows)]
    return "\n\n".join([*tables, *_without(rows), LEGEND])


def ablation_markdown(rows: Sequence[AblationRow]) -> str:
    """Return the same as a page, with what each row is and whom it asks."""
    names = ("Accuracy", "By suite", "Work", "What subtasks say")
    parts = [MARK, "# Ablations of the conductor"]
    for name, table in zip(names, _tables(rows), strict=True):
        parts += [f"## {name}", _markdown(table)]
    parts += ["## Whom it asks", _markdown(_asked(rows)), "## What they are"]
    parts.append("\n".join(f"- {row.ablation}: {row.says}" for row in _whole(rows)))
    return "\n\n".join([*parts, *_without(rows), LEGEND]) + "\n"


def ablation_csv(rows: Sequence[AblationRow]) -> str:
    """Return the rows as CSV; an empty cell is an unknown figure."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = asdict(row).items()
        writer.writerow({name: "" if value is None else _plain(value) for name, value in cells})
    return text.getvalue()


def _plain(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def _whole(rows: Sequence[AblationRow]) -> list[AblationRow]:
    return [row for row in rows if row.suite == ALL]


def _trained(rows: Sequence[AblationRow]) -> list[AblationRow]:
    return [row for row in _whole(rows) if not row.not_run]


def _tables(rows: Sequence[AblationRow]) -> list[list[Sequence[str]]]:
    """Return accuracy, suites, work and words, headers first."""
    trained = _trained(rows)
    return [
        [ACCURACY, *map(_accuracy, trained)],
        _by_suite(rows),
        [WORK, *map(_work, trained)],
        [SAID, *map(_said, trained)],
    ]


def _accuracy(row: AblationRow) -> Sequence[str]:
    return (
        row.ablation,
        percent(row.accuracy),
        interval(row.ci_low, row.ci_high),
        points(row.paired_diff),
        interval(row.paired_low, row.paired_high, signed=True),
        row.verdict or UNKNOWN,
    )


def _by_suite(rows: Sequence[AblationRow]) -> list[Sequence[str]]:
    """Return accuracy with its interval and steps, a pair of columns per suite."""
    suites = list(dict.fromkeys(row.suite for row in rows if row.suite != ALL))
    cells = {(row.ablation, row.suite): row for row in rows}
    table: list[Sequence[str]] = [("ablation", *(c for s in suites for c in (s, "", "steps")))]
    for row in _trained(rows):
        line = [row.ablation]
        for suite in suites:
            found = cells.get((row.ablation, suite))
            line += _suite_cells(found) if found else [UNKNOWN] * 3
        table.append(line)
    return table


def _suite_cells(row: AblationRow) -> list[str]:
    return [percent(row.accuracy), interval(row.ci_low, row.ci_high), count(row.steps, 2)]


def _work(row: AblationRow) -> Sequence[str]:
    return (
        row.ablation,
        percent(row.parsed),
        count(row.calls, 2),
        count(row.steps, 2),
        count(row.conductor_tokens),
        usd_about(row.usd),
        count(row.cpu_s),
        row.best_step,
    )


def _said(row: AblationRow) -> Sequence[str]:
    counts = (count(one) for one in (row.subtasks, row.distinct, row.new, row.foreign))
    shares = (row.share_new, row.leaked, row.accuracy_unleaked)
    return (row.ablation, *counts, *map(percent, shares))


def _asked(rows: Sequence[AblationRow]) -> list[Sequence[str]]:
    trained = {row.ablation for row in _trained(rows)}
    return [
        ("ablation", "suite", "worker calls"),
        *((row.ablation, row.suite, row.workers) for row in rows if row.ablation in trained),
    ]


def _without(rows: Sequence[AblationRow]) -> list[str]:
    """Return a line for each ablation that has no figures, and why."""
    lines = [f"Not run: {row.ablation}: {row.not_run}." for row in _whole(rows) if row.not_run]
    return ["\n".join(lines)] if lines else []


def _markdown(table: Sequence[Sequence[str]]) -> str:
    ruler = ["---", *["---:"] * (len(table[0]) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (table[0], ruler, *table[1:]))
