"""Read grades from the user's own files: Inspect's logs, or a table with named columns."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AliasChoices, BeforeValidator, Field

from podium.baselines.verdict_data import SourceRequest, VerdictRow
from podium.harness.errors import UserError
from podium.harness.files import check_rows, read_rows
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    asked_text,
    assemble_matrix,
)
from podium.harness.ledger.log_files import is_log, logs_below
from podium.harness.ledger.logs import Json, naming, newest_logs, open_log
from podium.harness.records import PODIUM
from podium.harness.suite import publishable

PRIVATE = re.compile("gpqa", re.IGNORECASE)
"""Matches names of data sets whose authors ask that no question appears in plain text."""


def named_path(request: SourceRequest, form: str) -> Path:
    """Return the path in a source `NAME:PATH`; UserError if it is not given or does not exist."""
    path = Path(request.path)
    if not request.path or not path.exists():
        raise UserError(f"There is no {request.path or 'path'}. Write `podium route {form}`.")
    return path


def share(value: object, place: str) -> float:
    """Return `value` as a score; UserError if `value` is missing, or not a number from 0 to 1."""
    if value is None:
        raise UserError(f"{place} is missing. Add it, or leave the file out.")
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UserError(f"{place} is not a number from 0 to 1. Give one, or leave the file out.")
    return float(value)


# Inspect's logs of any task: the grade is that of the task's first scorer; each epoch is a draw.
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def read_inspect_logs(request: SourceRequest) -> Matrix:
    """Return the grade matrix of logs of `inspect eval`; UserError if a score is not readable."""
    folder = named_path(request, "inspect:DIR")
    questions, cells = dict[str, MatrixQuestion](), list[MatrixCell]()
    tasks, public = set[str](), True
    if not (is_log(folder) or any(logs_below(folder))):
        raise UserError(f"{folder} holds no .eval log. Give the folder that `inspect eval` wrote.")
    for path in newest_logs([folder]):
        with open_log(path) as log, naming(path):
            about: Json = log.header["eval"]
            task, model = str(about["task"]), str(about["model"])
            if model.startswith(f"{PODIUM}/"):
                raise UserError(
                    f"{path} was written by `podium run`. Write logs:{request.path} instead."
                )
            tasks.add(task)
            public = public and publishable(about.get("metadata")) and not PRIVATE.search(task)
            for sample in log.samples():
                id = f"{task}/{sample['id']}"
                question = MatrixQuestion(id, asked_text(sample), group=task)
                if questions.setdefault(id, question) != question:
                    raise UserError(
                        f"{path}: sample {sample['id']} differs from that of another log. Give "
                        "logs of one version of the task."
                    )
                cells.append(_inspect_cell(sample, id, model, path))
    note = "Scores are each task's first scorer's; dollars are Inspect's, where it had prices."
    cells.sort(key=lambda cell: cell.worker)  # the order of logs from the same second is arbitrary
    name = f"inspect:{','.join(sorted(tasks))}"
    about_it = MatrixSource(name, "logs of inspect eval", notes=(note,), publishable=public)
    return assemble_matrix(about_it, [*questions.values()], cells)


def _inspect_cell(sample: Json, id: str, model: str, path: Path) -> MatrixCell:
    scores = cast(Mapping[str, Json], sample.get("scores") or {})
    value: object = next(iter(scores.values()))["value"] if scores else None
    if isinstance(value, str):
        value = LETTERS.get(value, value)
    if value is None or value != value or sample.get("error"):  # Inspect writes NaN for unscored
        score = None
    else:
        score = share(value, f"{path}, sample {sample['id']}: its score")
    usage = [*cast(Mapping[str, Json], sample.get("model_usage") or {}).values()]
    usd = [row.get("total_cost") for row in usage]
    dollars_known = [float(value) for value in usd if value is not None]
    dollars = sum(dollars_known) if dollars_known and len(dollars_known) == len(usd) else None
    tokens = sum(int(row.get("output_tokens") or 0) for row in usage) if usage else None
    return MatrixCell(id, model, score, dollars, tokens)


def _empty(value: object) -> object:
    return None if value == "" else value


UNKNOWN = BeforeValidator(_empty)  # an empty cell is unknown, not 0
Amount = Annotated[Annotated[float, Field(ge=0, allow_inf_nan=False)] | None, UNKNOWN]
"""Dollars or output tokens in a table's cell; None if the cell is empty."""


# A table with a row per question and model. Each column may have any of the names in its list; the
# first name is HELM's.
class _TableRow(VerdictRow):
    id: str = Field(
        min_length=1,
        coerce_numbers_to_str=True,
        validation_alias=AliasChoices("instance_id", "question_id", "sample_id", "id"),
    )
    model: str = Field(
        min_length=1, validation_alias=AliasChoices("model", "model_name", "model_id", "worker")
    )
    score: Annotated[float | None, UNKNOWN] = Field(
        validation_alias=AliasChoices("score", "exact_match", "quasi_exact_match", "correct")
    )
    text: str = Field("", validation_alias=AliasChoices("input", "prompt", "question", "text"))
    group: str = Field(
        "", validation_alias=AliasChoices("scenario", "dataset", "task", "subject", "group")
    )
    usd: Amount = Field(
        None, validation_alias=AliasChoices("usd", "cost", "inference_cost", "total_cost")
    )
    tokens: Amount = Field(
        None, validation_alias=AliasChoices("num_output_tokens", "output_tokens", "tokens_out")
    )


def _refuse_nameless(path: Path) -> None:
    """Raise UserError if the first row of a table lacks a required column."""
    _, row = next(read_rows(path), (0, dict[str, Any]()))
    for field in _TableRow.model_fields.values():
        names = cast(AliasChoices, field.validation_alias).choices
        if field.is_required() and not any(name in row for name in names):
            listed = ", ".join(map(str, names))
            raise UserError(
                f"{path} has no column by one of the names {listed}. Add one (a .csv file needs "
                "commas between cells, any other file a JSON object per line)."
            )


def read_table(request: SourceRequest) -> Matrix:
    """Return the grade matrix of a table; rows of equal question and model are repeated draws."""
    path = named_path(request, "table:FILE")
    _refuse_nameless(path)
    questions, cells = dict[str, MatrixQuestion](), list[MatrixCell]()
    for row in check_rows(_TableRow, path):
        id = f"{row.group}/{row.id}" if row.group else row.id
        earlier = questions.get(id)
        if earlier is None or not earlier.text:  # an empty cell does not contradict a text
            questions[id] = MatrixQuestion(id, row.text, group=row.group)
        elif row.text and earlier.text != row.text:
            raise UserError(
                f"{path}: question {id} has two texts. Give all its rows the same text."
            )
        score = None if row.score is None else share(row.score, f"{path}: score of {id}")
        cells.append(MatrixCell(id, row.model, score, row.usd, row.tokens))
    public = not any(PRIVATE.search(f"{q.group} {path.name}") for q in questions.values())
    about = MatrixSource(f"table:{path.stem}", path.name, publishable=public)
    return assemble_matrix(about, [*questions.values()], cells)
