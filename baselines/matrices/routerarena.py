"""RouterArena's cached results: two models on 809 mixed questions, with tokens and dollars.

Scores are of several metrics (choices, exact match, METEOR, tests passed); a few lie below 0 and
count as 0, which a note says. Dollars are RouterArena's, at the price table beside its results;
its token counts were not checked against a provider (its own threads say so).
"""

from pathlib import Path

from pydantic import Field

from baselines.matrices.reading import Given, Source, Strict, checked_rows, pinned
from harness.errors import UserError
from harness.learning.matrix import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)
from harness.records import Kind

FOLDER = "routerarena_cached"
FILES = ("claude-3-haiku-20240307.jsonl.gz", "gemini-2.0-flash-001.jsonl.gz")
KINDS: dict[str, Kind] = {"mcq_accuracy": "choice", "code_accuracy": "program"}
NOTE = "Scores are of several metrics, not all of them right or wrong; one draw each."


class _Tokens(Strict):
    output_tokens: int = Field(ge=0)


class _Result(Strict):
    score: float | None = Field(default=None, le=1)
    metric: str
    inference_cost: float | None = None


class _Row(Strict):
    global_index: str
    question: str
    llm_selected: str
    success: bool = True
    token_usage: _Tokens | None = None
    evaluation_result: _Result


def read(given: Given) -> Matrix:
    """Return the matrix of the two models; UserError when a file is absent or damaged."""
    paths = [given.data / FOLDER / name for name in FILES]
    pin = pinned(*paths)
    asked: dict[str, MatrixQuestion] = {}
    cells: list[MatrixCell] = []
    below = 0
    for path in paths:
        for row in checked_rows(_Row, path):
            _join(asked, row, path)
            below += (row.evaluation_result.score or 0) < 0
            cells.append(_cell(row))
    notes = [NOTE]
    if below:
        notes.append(f"Scores below 0 count as 0: {below} of {len(cells)}.")
    about = MatrixSource(
        "routerarena", f"RouteWorks/RouterArena at 4714a9ad73e8: {pin}", notes=tuple(notes)
    )
    return assemble_matrix(about, list(asked.values()), cells)


def _join(asked: dict[str, MatrixQuestion], row: _Row, path: Path) -> None:
    one = MatrixQuestion(
        id=row.global_index,
        text=row.question,
        kind=KINDS.get(row.evaluation_result.metric, "text"),
        group=row.global_index.rpartition("_")[0],
    )
    if asked.setdefault(one.id, one) != one:
        raise UserError(f"{path}: question {one.id} is another one in {FILES[0]}.")


def _cell(row: _Row) -> MatrixCell:
    """Return a draw; a generation that failed has no score, and what it cost is unknown."""
    result = row.evaluation_result
    if not row.success or result.score is None:
        return MatrixCell(row.global_index, row.llm_selected, None)
    tokens = row.token_usage
    return MatrixCell(
        row.global_index,
        row.llm_selected,
        max(0.0, result.score),
        usd=result.inference_cost or None,  # nobody answers for nothing: 0 is unknown
        tokens_out=None if tokens is None else float(tokens.output_tokens),
    )


ROUTERARENA = Source(
    "routerarena", "RouterArena: 2 models x 809 mixed questions, 1 draw, tokens and dollars", read
)
