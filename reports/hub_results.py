"""Exports a conductor's results to the Hugging Face Hub: `.eval_results/*.yaml`, model card."""

import json
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from podium.harness.errors import UserError
from podium.reports.blocks import versioned_suite
from podium.reports.columns import full_columns, narrow_columns
from podium.reports.render import Columns, interval, markdown_table, tabulate, usd
from podium.reports.report import Report, refuse_unfinished
from podium.reports.row import TableRow

DATASET = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{40})\b")
TASKS = {"gpqa-diamond": "gpqa_diamond"}
"""Suite -> id of its task in the dataset's `eval.yaml` on the Hub; other suites: `default`."""
SHOWN: Columns[TableRow] = (
    ("suite", versioned_suite),
    ("pool", lambda row: row.pool),
    ("label", lambda row: row.label),
    ("questions", lambda row: f"{row.n_asked // row.epochs}, avg@{row.epochs}"),
    *full_columns("accuracy", "ci_low"),
    *narrow_columns("usd_per_query", "reference", "paired_diff", "verdict"),
)
BELOW = """
`rehearsal`: podium's practice programs answered; says nothing about real models. `recorded`:
replies of real models, replayed. `live`: providers were asked. Dollars are at list price."""


def rows_of_checkpoint(report: Report, sha256: str) -> list[TableRow]:
    """Return the rows of a checkpoint with this digest; UserError for none or unfinished runs."""
    pairs = (pair for block in report.shown.pairs for pair in block)
    matches = [pair for pair in pairs if json.loads(pair[0].args or "{}").get("sha256") == sha256]
    if not matches:
        raise UserError(
            f"No system in these runs used the checkpoint with the digest {sha256[:16]}. Name "
            "runs that used it, or the checkpoint that these runs used."
        )
    for pair in matches:
        refuse_unfinished(*pair)
    return [row for row, _ in matches]


def results_text(rows: Sequence[TableRow]) -> str:
    """Return a model card's table of a conductor's results on suites, in Markdown."""
    return f"{markdown_table(tabulate(SHOWN, rows), left=3)}\n{BELOW}\n"


def eval_results(rows: Sequence[TableRow]) -> Iterator[tuple[str, str]]:
    """Yield (file name, YAML) of results, except rehearsals, for leaderboards of Hub datasets."""
    hub: Any = import_module("huggingface_hub")  # both imports are slow
    yaml: Any = import_module("yaml")
    for row in rows:
        match = DATASET.match(row.data_revision)
        if not match or row.label == "rehearsal" or row.accuracy is None:
            continue
        entry = hub.EvalResultEntry(
            dataset_id=match[1],
            task_id=TASKS.get(row.suite, "default"),
            value=round(100 * row.accuracy, 2),
            dataset_revision=match[2],
            notes=_notes(row),
        )
        data = hub.eval_result_entries_to_yaml([entry])
        name = re.sub(r"[^\w-]+", "-", f"{row.suite}-{row.pool}")
        yield f"{name}.yaml", yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000)


def _notes(row: TableRow) -> str:
    """Return a note on a row's result: interval, questions, label, workers, dollars, versions."""
    workers = sorted(json.loads(row.config or "{}").keys() - {"conductor"})
    return (
        f"accuracy in percent, 95 % CI {interval(row.ci_low, row.ci_high)}, "
        f"{row.n_asked // row.epochs} questions, avg@{row.epochs}, {row.label}; a conductor with "
        f"workers {', '.join(workers)} (pool {row.pool}), {usd(row.usd_per_query)} USD a question; "
        f"podium {version('podium')}, suite version {row.suite_version}"
    )
