"""Build the table of conductor ablations from training and log folders: rows, terminal, files."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from podium.harness.ledger.logs import open_log
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import QuestionResult, SystemRun
from podium.harness.records import CONDUCTOR
from podium.harness.text import aligned
from podium.reports import render
from podium.reports.blocks import refuse_mixed_versions
from podium.reports.columns import label, narrow_label
from podium.reports.intervals import accuracy_columns, difference, grades_of, holm_adjusted
from podium.reports.render import UNKNOWN, Columns, count, interval, percent, points, usd_about
from podium.reports.training_runs import read_run

ALL = "all"  # all suites together; every question has the same weight


@dataclass(frozen=True)
class AblationRuns:
    """One ablation of a conductor: its description, a training folder and a log folder per seed."""

    name: str
    says: str
    not_run: str = ""  # why it is not trained; empty if it is or will be
    runs: tuple[Path, ...] = ()
    logs: tuple[Path, ...] = ()
    words: Mapping[str, float | None] = field(default_factory=dict[str, float | None])

    @cached_property
    def system_runs(self) -> tuple[SystemRun, ...]:
        """The evaluations of the trained conductors, read once from the log folders."""
        return tuple(run for path in self.logs for run in load_runs([path])[0])


WORDS = ("leaked", "accuracy_unleaked")
"""Two columns: share of plans whose subtasks contain the answer; accuracy without these plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """The results of one ablation on one suite, or on all suites; None means unknown."""

    ablation: str
    suite: str
    seeds: int = 0
    n: int = 0  # questions that were not used to pick the checkpoint
    accuracy: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    paired_diff: float | None = None  # accuracy minus the reference's, same questions
    paired_low: float | None = None
    paired_high: float | None = None
    verdict: str = ""
    calls: float | None = None  # mean worker calls per question
    conductor_tokens: float | None = None
    steps: float | None = None
    usd: float | None = None  # mean cost per question at list price
    workers: str = ""  # shares of the worker calls, largest first; over all questions
    parsed: float | None = None
    trained: int | None = None
    best_step: str = ""  # step of the kept checkpoint, for each seed
    leaked: float | None = None
    accuracy_unleaked: float | None = None
    says: str = ""
    not_run: str = ""


COMPARED = ("paired_diff", "paired_low", "paired_high", "verdict")
Attempts = Mapping[str, list[QuestionResult]]


def ablation_rows(variants: Sequence[AblationRuns], reference: str) -> list[AblationRow]:
    """Return a row per ablation on all suites together, then a row per ablation and suite.

    Rows are compared with the ablation `reference`. UserError if a suite's versions differ.
    """
    refuse_mixed_versions([run for variant in variants for run in variant.system_runs])
    attempts = {variant.name: _attempts_by_suite(variant) for variant in variants}
    rows = [row for variant in variants for row in _rows(variant, attempts[variant.name])]
    for suite in dict.fromkeys(row.suite for row in rows if row.accuracy is not None):
        rows = _compared(rows, suite, reference, attempts)
    return rows


def _compared(
    rows: list[AblationRow], suite: str, reference: str, attempts: Mapping[str, Attempts]
) -> list[AblationRow]:
    base = grades_of(attempts[reference].get(suite, []))
    family = [row for row in rows if row.suite == suite and row.ablation != reference]
    raw = [difference(grades_of(attempts[row.ablation].get(suite, [])), base) for row in family]
    adjusted = {
        id(row): replace(row, **{name: getattr(result, name) for name in COMPARED})
        for row, result in zip(family, holm_adjusted(raw), strict=True)
        if result
    }
    return [adjusted.get(id(row), row) for row in rows]


def _attempts_by_suite(variant: AblationRuns) -> Attempts:
    """Return suite (or `ALL`) -> results of all seeds on questions not used to pick checkpoints."""
    by_suite: dict[str, list[QuestionResult]] = {ALL: []}
    for system_run in variant.system_runs:
        manifest = json.loads((variant.runs[0] / "manifest.json").read_text())
        limit = int(manifest["data"][system_run.facts.suite]["validation_questions"])
        with open_log(system_run.paths[0]) as log:
            picked = {str(key) for key in log.header["eval"]["dataset"]["sample_ids"][:limit]}
        attempts = [attempt for attempt in system_run.attempts if attempt.question not in picked]
        by_suite.setdefault(system_run.facts.suite, []).extend(attempts)
        by_suite[ALL].extend(attempts)
    return by_suite if by_suite[ALL] else {}


def _rows(variant: AblationRuns, by_suite: Attempts) -> list[AblationRow]:
    if not by_suite:
        reason = variant.not_run or "not trained and evaluated yet"
        return [AblationRow(ablation=variant.name, suite=ALL, says=variant.says, not_run=reason)]
    return [_row(variant, suite, attempts) for suite, attempts in by_suite.items()]


def _row(variant: AblationRuns, suite: str, attempts: Sequence[QuestionResult]) -> AblationRow:
    grades = grades_of(attempts)
    graded = [result for result in attempts if result.graded]
    row = AblationRow(
        ablation=variant.name,
        suite=suite,
        seeds=len(variant.logs),
        n=len(grades),
        **accuracy_columns(grades),
        calls=render.whole_mean([result.totals.worker_calls for result in graded]),
        conductor_tokens=render.whole_mean([result.totals.conductor_tokens for result in graded]),
        steps=render.whole_mean([result.steps for result in graded if result.steps]),
        usd=render.whole_mean([result.totals.usd for result in graded]),
        parsed=render.whole_mean([bool(result.steps) for result in graded]),
        workers=_shares([run for run in variant.system_runs if suite in (ALL, run.facts.suite)]),
        says=variant.says,
    )
    return replace(row, **_training(variant), **variant.words) if suite == ALL else row


def _shares(system_runs: Sequence[SystemRun]) -> str:
    calls: Counter[str] = Counter()
    for system_run in system_runs:
        for kind, tally in system_run.spend.items():
            if kind.role != CONDUCTOR:
                calls[kind.role] += tally.calls
    ranked = sorted((-count, name) for name, count in calls.items() if count)
    return ", ".join(f"{name} {-count / calls.total():.0%}" for count, name in ranked)


def _training(variant: AblationRuns) -> dict[str, Any]:
    lines = [read_run(folder) for folder in variant.runs]
    return {
        "trained": min(log[-1]["step"] for log in lines),
        "best_step": ", ".join(str(_best_step(log)) for log in lines),
    }


def _best_step(lines: Sequence[Mapping[str, Any]]) -> int:
    """Return the first step with the best validation (ungraded: wrong); 0 without a validation."""
    validations = [(line["validation"], line["step"]) for line in lines if "validation" in line]
    judged = [
        (validation["correct"] * (1 - (validation.get("masked") or 0.0)), -step)
        for validation, step in validations
        if validation["correct"] is not None
    ]
    return -max(judged, default=(0.0, 0))[1]


MARK = "<!-- podium ablations -->"
COLUMNS = tuple(column.name for column in fields(AblationRow))
MARKS = {"ablations.md": MARK, "ablations.csv": ",".join(COLUMNS[:8])}

ACCURACY: Columns[AblationRow] = (
    ("ablation", lambda row: row.ablation),
    (narrow_label("accuracy"), lambda row: percent(row.accuracy)),
    (label("ci_low"), lambda row: interval(row.ci_low, row.ci_high)),
    ("vs unablated", lambda row: points(row.paired_diff)),
    (label("ci_low"), lambda row: interval(row.paired_low, row.paired_high, signed=True)),
    (label("verdict"), lambda row: row.verdict or UNKNOWN),
)
SUITE: Columns[AblationRow] = (*ACCURACY[1:3], ("steps", lambda row: count(row.steps, 2)))
WORK: Columns[AblationRow] = (
    ("ablation", lambda row: row.ablation),
    ("read %", lambda row: percent(row.parsed)),
    ("calls", lambda row: count(row.calls, 2)),
    ("steps", lambda row: count(row.steps, 2)),
    ("cond. tokens", lambda row: count(row.conductor_tokens)),
    ("USD", lambda row: usd_about(row.usd)),
    ("best step", lambda row: row.best_step),
)
SAID: Columns[AblationRow] = (
    ("ablation", lambda row: row.ablation),
    ("leaked %", lambda row: percent(row.leaked)),
    ("acc % without", lambda row: percent(row.accuracy_unleaked)),
)
ASKED = "Whom it asks"  # the only table that the terminal does not show
LEGEND = (
    "acc %: all suites together, on the held-out questions that did not select the checkpoint; "
    "verdicts are paired by question and adjusted for the number of ablations (Holm). read %: "
    "plans that could be parsed. leaked %: plans with a subtask that contains the answer, of the "
    "plans for which that can be checked. Validation questions of generated suites; the eval "
    "split was not used."
)


def write_ablations(
    variants: Sequence[AblationRuns], reference: str, out: Path
) -> tuple[str, tuple[Path, ...]]:
    """Write ablations.md and ablations.csv; return the text for a terminal, and the file paths."""
    render.refuse_foreign(out, MARKS)
    rows = ablation_rows(variants, reference)
    total = [row for row in rows if row.suite == ALL]
    tables = _tables(rows, [row for row in total if not row.not_run])
    lacking = "\n".join(f"Not run: {row.ablation}: {row.not_run}." for row in total if row.not_run)
    below = [*filter(None, [lacking]), LEGEND]
    pages = [f"## {name}\n\n{render.markdown_table(table)}" for name, table in tables.items()]
    says = "\n".join(f"- {row.ablation}: {row.says}" for row in total)
    page = [MARK, "# Ablations of the conductor", *pages, "## What they are", says, *below]
    csv = render.rows_csv(rows, COLUMNS, render.rounded(6))
    contents = {"ablations.md": "\n\n".join(page) + "\n", "ablations.csv": csv}
    texts = ["\n".join(aligned(table)) for name, table in tables.items() if name != ASKED]
    return "\n\n".join([*texts, *below]), render.write_files(out, contents)


def _tables(
    rows: Sequence[AblationRow], trained: Sequence[AblationRow]
) -> dict[str, list[Sequence[str]]]:
    names = [row.ablation for row in trained]
    by_key = {(row.ablation, row.suite): row for row in rows}
    suites = list(dict.fromkeys(row.suite for row in rows if row.suite != ALL))
    by_suite: list[Sequence[str]] = [("ablation", *(c for s in suites for c in (s, "", "steps")))]
    for name in names:
        group = [by_key.get((name, s), AblationRow(ablation=name, suite=s)) for s in suites]
        by_suite.append([name, *(cell for row in group for cell in render.cells(SUITE, row))])
    shares = [(row.ablation, row.suite, row.workers) for row in rows if row.ablation in names]
    return {
        "Accuracy": render.tabulate(ACCURACY, trained),
        "By suite": by_suite,
        "Work": render.tabulate(WORK, trained),
        "What subtasks say": render.tabulate(SAID, trained),
        ASKED: [("ablation", "suite", "worker calls"), *shares],
    }
