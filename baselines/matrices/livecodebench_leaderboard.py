"""LiveCodeBench's leaderboard: pass@1 of 16 models on each of the 1,055 questions of release v6.

Scores are means over the leaderboard's draws (10 for most models), rounded by it to tenths; it
keeps no replies, tokens or costs. Texts and contest dates are those of the problems, by id.
"""

from pathlib import Path

from pydantic import Field

from baselines.matrices.reading import Given, Source, Strict, checked_json, checked_rows, pinned
from harness.errors import UserError
from harness.learning.matrix import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)

SCORES = "lcb_leaderboard_matrix/performances_generation_v6_16models_1055q.json.gz"
PROBLEMS = "lcb_problems/lcb_v6_1055_problems_assembled.jsonl.gz"
NOTE = "Scores are the leaderboard's pass@1 of 10 draws or fewer; it recorded no costs."


class _Performance(Strict):
    question_id: str
    model: str
    score: float = Field(alias="pass@1", ge=0, le=100)


class _Board(Strict):
    performances: tuple[_Performance, ...]


class _Problem(Strict):
    question_id: str
    question_title: str
    question_content: str
    platform: str
    contest_date: str


def read(given: Given) -> Matrix:
    """Return the leaderboard's matrix; UserError when it or the problems are absent or damaged."""
    scores, problems = given.data / SCORES, given.data / PROBLEMS
    pin = pinned(scores, problems)
    board = checked_json(_Board, scores)
    asked = [_asked(row) for row in checked_rows(_Problem, problems)]
    _refuse_unknown(board, asked, problems)
    cells = [MatrixCell(one.question_id, one.model, one.score / 100) for one in board.performances]
    about = MatrixSource(
        "lcb-leaderboard",
        f"LiveCodeBench/livecodebench.github.io, release_v6 leaderboard: {pin}",
        notes=(NOTE,),
        drawn=10,
    )
    return assemble_matrix(about, asked, cells)


def _asked(row: _Problem) -> MatrixQuestion:
    return MatrixQuestion(
        id=row.question_id,
        text=f"{row.question_title}\n\n{row.question_content}",
        kind="program",
        date=row.contest_date[:10],
        group=row.platform,
    )


def _refuse_unknown(board: _Board, asked: list[MatrixQuestion], problems: Path) -> None:
    known = {one.id for one in asked}
    for one in board.performances:
        if one.question_id not in known:
            raise UserError(f"{problems} has no problem {one.question_id} of the leaderboard.")


LEADERBOARD = Source(
    "lcb-leaderboard",
    "LiveCodeBench v6: 16 models x 1,055 questions, pass@1 of up to 10 draws, contest dates; "
    "no costs",
    read,
    exam="livecodebench",
)
