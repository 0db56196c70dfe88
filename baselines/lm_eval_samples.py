"""Read grades from lm-eval's sample files (EleutherAI/lm-evaluation-harness, format of 0.4.13).

DIR/<model>/samples_<task>_<time>.jsonl has a row per document (question) and filter;
results_<time>.json beside it names the model. The newest file of each model and task is used. All
models of a task are compared by one filter and metric. Prompts may differ by model (templates), so
a document is matched by lm-eval's own digest.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from podium.baselines.verdict_data import SourceRequest, VerdictRow, check_json
from podium.baselines.verdict_files import PRIVATE, named_path, share
from podium.harness.errors import UserError
from podium.harness.files import check_row, read_rows
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)

SAMPLES = re.compile(r"samples_(.+)_(\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
OLDEST = "0.4.7"
"""The first lm-eval known to write the columns `filter` and `metrics`; 0.4.5 does not."""
Way = tuple[str, str]
"""How lm-eval scored a reply: the names of the filter and of the metric."""


class _Row(VerdictRow):
    doc_id: int
    doc_hash: str
    arguments: Any
    filter: str = ""
    metrics: tuple[str, ...] = Field(min_length=1)


class _Results(VerdictRow):
    model_name: str = Field(min_length=1)
    shots: Mapping[str, Any] = Field({}, alias="n-shot")
    versions: Mapping[str, Any] = {}
    higher_is_better: Mapping[str, Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class _Document:
    digest: str
    question: MatrixQuestion


@dataclass(frozen=True, slots=True)
class _Samples:
    """A sample file of lm-eval: one model's scores on the documents of one task."""

    model: str
    task: str
    path: Path
    results: _Results | None
    documents: Mapping[int, _Document]
    values: Mapping[Way, Mapping[int, tuple[int, object]]]
    """(filter, metric) -> document number -> (line number in the file, raw score)."""

    @property
    def ways(self) -> list[Way]:
        """Return pairs (filter, metric) that score all documents; omits lower-is-better metrics."""
        grows: Mapping[str, Any] = {}
        if self.results:
            grows = self.results.higher_is_better.get(self.task, grows)
        return [
            way
            for way, values in self.values.items()
            if values.keys() == self.documents.keys() and grows.get(way[1]) is not False
        ]


def read_lm_eval(request: SourceRequest) -> Matrix:
    """Return the matrix of grades (questions by models) of a folder of lm-eval's samples."""
    files = _newest_samples(named_path(request, "lm-eval:DIR"))
    tasks: dict[str, list[_Samples]] = defaultdict(list)
    for file in files:
        tasks[file.task].append(file)
    ways = {task: _common_way(task, models) for task, models in tasks.items()}
    questions, cells = dict[str, MatrixQuestion](), list[MatrixCell]()
    for models in tasks.values():
        _refuse_unlike(models)
    for file in files:
        for doc, document in file.documents.items():
            question = questions.setdefault(document.question.id, document.question)
            line, value = file.values[ways[file.task]][doc]
            place = f"{file.path}, line {line}: {ways[file.task][1]}"
            cells.append(MatrixCell(question.id, file.model, share(value, place)))
    names = (f"{task} by {metric} (filter {kind})" for task, (kind, metric) in ways.items())
    about = MatrixSource(
        f"lm-eval:{','.join(sorted(tasks))}",
        f"lm-eval's samples, {len(files)} files",
        notes=(f"Scores are lm-eval's: {', '.join(sorted(names))}. It records no costs.",),
        publishable=not any(PRIVATE.search(task) for task in tasks),
    )
    return assemble_matrix(about, [*questions.values()], cells)


def _newest_samples(folder: Path) -> list[_Samples]:
    """Return the newest sample file of each model and task; UserError if the folder has none."""
    newest: dict[tuple[str, str], tuple[str, Path, _Results | None]] = {}
    for path in sorted(folder.rglob("samples_*.jsonl")):
        if not (match := SAMPLES.fullmatch(path.name)):
            continue
        task, stamp = match.groups()
        place = path.with_name(f"results_{stamp}.json")
        results = check_json(_Results, place) if place.is_file() else None
        model = results.model_name if results else path.parent.name
        if stamp >= newest.get((model, task), ("",))[0]:
            newest[model, task] = (stamp, path, results)
    if not newest:
        raise UserError(
            f"{folder} holds no samples_*.jsonl. Run lm_eval {OLDEST} or later with --log_samples."
        )
    return [_samples(*key, path, results) for key, (_, path, results) in newest.items()]


def _samples(model: str, task: str, path: Path, results: _Results | None) -> _Samples:
    documents: dict[int, _Document] = {}
    values: dict[Way, dict[int, tuple[int, object]]] = defaultdict(dict)
    for line, fields in read_rows(path):
        place = f"{path}, line {line}"
        if not fields.keys() & {"filter", "metrics"}:
            raise UserError(
                f"{place}: it has no columns `filter` and `metrics`, so its grading is unknown. "
                f"lm-eval {OLDEST} and later write them: run that task again."
            )
        row = check_row(_Row, fields, place)
        document = _document(task, row, path)
        if documents.setdefault(row.doc_id, document).digest != document.digest:
            raise UserError(
                f"{place}: document {row.doc_id} differs from that of an earlier line. Run lm_eval "
                "on that task again."
            )
        for metric in dict.fromkeys(row.metrics):
            judged = values[row.filter, metric]
            if row.doc_id in judged:
                raise UserError(
                    f"{place}: document {row.doc_id} is also in line {judged[row.doc_id][0]} "
                    f"(filter {row.filter}). Keep one of them, or run that task again."
                )
            judged[row.doc_id] = (line, fields.get(metric))
    if not documents:
        raise UserError(f"{path} has no rows. Run lm_eval on that task again, or delete the file.")
    return _Samples(model, task, path, results, documents, values)


def _document(task: str, row: _Row, path: Path) -> _Document:
    arguments: Any = row.arguments
    requests: Any = [*arguments.values()] if isinstance(arguments, dict) else arguments
    try:  # newer versions name the arguments, older ones list them
        text: object = requests[0]["arg_0" if isinstance(requests[0], dict) else 0]
    except (LookupError, TypeError):
        raise UserError(
            f"{path}: document {row.doc_id} has no prompt in `arguments`. Run lm_eval on that task "
            "again."
        ) from None
    kind = "choice" if len(requests) > 1 else "text"
    id = f"{task}/{row.doc_id}"
    return _Document(row.doc_hash, MatrixQuestion(id, str(text), kind, group=task))


def _common_way(task: str, files: Sequence[_Samples]) -> Way:
    """Return the first filter and metric that all models of a task share; else UserError."""
    common = [way for way in files[0].ways if all(way in file.ways for file in files)]
    if common:
        return common[0]
    listed = "; ".join(f"{file.model} by {_named(file.ways)}" for file in files)
    raise UserError(
        f"The models of {task} have no filter and metric in common, so they cannot be compared: "
        f"{listed}. Run lm_eval with the same task for all of them."
    )


def _named(ways: Sequence[Way]) -> str:
    listed = ", ".join(f"{metric} (filter {kind})" for kind, metric in ways)
    return listed or "no metric that covers all documents and for which higher is better"


def _refuse_unlike(files: Sequence[_Samples]) -> None:
    """Raise UserError if a task's models differ in documents, n-shot or task version."""
    sample, digests = files[0], dict[int, str]()
    for file in files:
        for id, document in file.documents.items():
            if digests.setdefault(id, document.digest) != document.digest:
                raise UserError(
                    f"{file.path}: document {id} differs from that of an earlier file. Run lm_eval "
                    "with the same task for all models."
                )
    results = [(file.model, file.results) for file in files if file.results]
    for setting, values in (
        ("number of examples in the prompt (n-shot)", _by_model(results, "shots", sample.task)),
        ("version of the task", _by_model(results, "versions", sample.task)),
    ):
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{model} {value}" for model, value in values.items())
            raise UserError(
                f"The models of {sample.task} differ in the {setting}: {listed}. Run lm_eval with "
                "the same value for all of them."
            )


def _by_model(results: Iterable[tuple[str, _Results]], field: str, task: str) -> dict[str, str]:
    """Return model -> value of a results field for `task`; omits models without a value."""
    stated = ((model, getattr(row, field).get(task)) for model, row in results)
    return {model: str(value) for model, value in stated if value is not None}
