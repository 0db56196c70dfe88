"""LLMRouterBench (ynulihao/LLMRouterBench): result files of many models on many data sets.

Its layout, from its README: DIR/<dataset>/<split>/<model>/<name>-<YYYYmmdd_HHMMSS>.json, each file
one model's records of one data set; of several the newest counts, and none marked `demo`. Nothing
of it lies in our data folder: the release is on its authors' pages.

Where its own loader takes 0, this says unknown. A record without a score, or without any output
token and any output, is a generation that failed: no score, no dollars. A cost of 0 is a model
that nobody priced (its small models ran on the authors' machines).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from baselines.matrices.reading import Given, Source, Strict, checked_json
from harness.errors import UserError
from harness.learning.matrix import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)

_STAMP = re.compile(r"(\d{8}_\d{6})\.json$")
Found = dict[tuple[str, str, str], tuple[str, Path, "_File"]]


class _Record(Strict):
    index: int | str
    origin_query: str | None = None
    prompt: str | None = None
    score: float | None = Field(default=None, ge=0, le=1)
    cost: float | None = Field(default=None, ge=0)
    completion_tokens: float | None = Field(default=None, ge=0)
    prediction: Any = None
    raw_output: Any = None

    @property
    def text(self) -> str:
        """What was asked, without the template around it where both are there."""
        return self.origin_query or self.prompt or ""

    @property
    def failed(self) -> bool:
        """Whether nothing came back, or nobody graded it."""
        silent = not (self.completion_tokens or self.prediction or self.raw_output)
        return self.score is None or silent


class _File(Strict):
    dataset_name: str
    split: str
    model_name: str
    demo: bool = False
    records: tuple[_Record, ...]


def read(given: Given) -> Matrix:
    """Return the matrix of a directory of result files.

    UserError when there are none, for a damaged one, and when two files of a data set disagree on
    what a question is.
    """
    folder = Path(given.path)
    if not given.path or not folder.is_dir():
        raise UserError(
            f"There is no directory {given.path or 'named'}: `podium route llmrouterbench:DIR` "
            "reads the unpacked release, DIR/<dataset>/<split>/<model>/*.json."
        )
    files = _newest(folder)
    asked: dict[str, MatrixQuestion] = {}
    cells: list[MatrixCell] = []
    for _, path, file in files.values():
        for record in file.records:
            one = _asked(file, record, path)
            if asked.setdefault(one.id, one) != one:
                raise UserError(f"{path}: question {one.id} is another one in an earlier file.")
            cells.append(_cell(one.id, file.model_name, record))
    failed = sum(cell.score is None for cell in cells)
    notes = [f"{failed} of {len(cells)} generations failed and have no score."] if failed else []
    source = f"ynulihao/LLMRouterBench, {len(files)} result files"
    return assemble_matrix(
        MatrixSource("llmrouterbench", source, notes=tuple(notes)), list(asked.values()), cells
    )


def _newest(folder: Path) -> Found:
    """Return, per data set, split and model, the newest file that is no demonstration."""
    found: Found = {}
    for path, file in _files(folder):
        key = (file.dataset_name, file.split, file.model_name)
        stamp = _STAMP.search(path.name)
        entry = (stamp[1] if stamp else "", path, file)
        if key not in found or entry[:2] > found[key][:2]:
            found[key] = entry
    if not found:
        raise UserError(f"{folder} holds no result file of LLMRouterBench (JSON, no demo).")
    return dict(sorted(found.items()))


def _files(folder: Path) -> Iterator[tuple[Path, _File]]:
    for path in sorted(folder.rglob("*.json")):
        file = checked_json(_File, path)
        if not file.demo:
            yield path, file


def _asked(file: _File, record: _Record, path: Path) -> MatrixQuestion:
    if not record.text.strip():
        raise UserError(f"{path}: record {record.index} has no question.")
    return MatrixQuestion(
        id=f"{file.dataset_name}/{file.split}/{record.index}",
        text=record.text,
        group=file.dataset_name,
    )


def _cell(id: str, model: str, record: _Record) -> MatrixCell:
    if record.failed:
        return MatrixCell(id, model, None)
    return MatrixCell(
        id,
        model,
        record.score,
        usd=record.cost or None,
        tokens_out=record.completion_tokens or None,
    )


LLMROUTERBENCH = Source(
    "llmrouterbench",
    "LLMRouterBench result files (not in the data folder): scores, tokens, dollars as found",
    read,
    path="DIR",
)
