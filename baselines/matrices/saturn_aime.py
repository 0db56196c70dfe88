"""AIME 2025: four real models on 30 problems, one draw each, with their output tokens.

The verdicts are Lighteval's, as recorded beside the replies (gtxygyzb/Saturn-code); nobody paid
for the calls, so there are no dollars. Thirty questions with one draw decide nothing.
"""

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

REPLIES = "saturn_lighteval/aime25_4models.jsonl.gz"
PROBLEMS = "aime25_problems/aime25.jsonl"
NOTE = "One draw of each of 30 questions: one question is 3.3 points, and nothing is decided."


class _Reply(Strict):
    model: str
    problem_id: str
    metric: float = Field(ge=0, le=1)
    out_tokens: int = Field(ge=0)


class _Problem(Strict):
    id: str
    problem: str


def read(given: Given) -> Matrix:
    """Return the matrix of the four models; UserError when a file is absent or damaged."""
    replies, problems = given.data / REPLIES, given.data / PROBLEMS
    pin = pinned(replies, problems)
    asked = [
        MatrixQuestion(id=row.id, text=row.problem, kind="integer", group=row.id.rpartition("-")[0])
        for row in checked_rows(_Problem, problems)
    ]
    known = {one.id for one in asked}
    cells: list[MatrixCell] = []
    for row in checked_rows(_Reply, replies):
        if row.problem_id not in known:
            raise UserError(f"{problems} has no problem {row.problem_id}, which {replies} names.")
        tokens = float(row.out_tokens)
        cells.append(MatrixCell(row.problem_id, row.model, row.metric, tokens_out=tokens))
    about = MatrixSource("aime25", f"gtxygyzb/Saturn-code at 2cc9d746ed33: {pin}", notes=(NOTE,))
    return assemble_matrix(about, asked, cells)


AIME25 = Source(
    "aime25",
    "AIME 2025: 4 small models x 30 questions, 1 draw, output tokens; no dollars",
    read,
    exam="aime25",
)
