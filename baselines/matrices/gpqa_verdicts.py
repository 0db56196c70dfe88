"""GPQA-Diamond: who was right on which of the 198 questions, by record id and without any text.

What counts is declared here. Counted: workers of the sources in `COUNTED`, each with at least two
full passes over the 198 records, averaged; a rotation of the answers is a draw, as is a run or an
epoch. Left out: gpt-4o and claude-3.5-sonnet of suzgunmirac/dynamic-cheatsheet (two prompts are no
two draws, and they name 197 records), and Saturn-7B, R1-distill-70b and gemini-2.0-flash-thinking
(one pass each, 196 or 197 records).

The authors ask that no question appears in plain text: the texts come through a callable that
opens the encrypted archive in memory, and the matrix says that it must not be published.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
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
from harness.records import Question

VERDICTS = "gpqa/gpqa_diamond_verdicts_redacted.csv.gz"
EPOCHS = "gpqa/gpqa_diamond_scores_evalconfidence.csv"
COUNTED = {
    "klukosiute/gpqa-eval": "{}",
    "HaveFunWithAI/gpqa_diamond_exp": "{} (HaveFunWithAI)",
}
"""Sources that count, and how their workers are called here: several ran models of one name."""
QUESTIONS = 198
LEAST_PASSES = 2
NOTE = (
    "Scores are means of 4, 5 or 10 draws, of three sources with prompts of their own: workers "
    "differ by prompt and date too. No costs were recorded."
)


class _Verdict(Strict):
    source: str
    model: str
    record_id: str = Field(min_length=1)
    correct: int = Field(ge=0, le=1)


class _Epoch(Strict):
    item_id: str = Field(min_length=1)
    model_id: str
    score: float = Field(ge=0, le=1)


def read(given: Given) -> Matrix:
    """Return the matrix of the declared workers; UserError when a file is absent or not whole."""
    verdicts, epochs = given.data / VERDICTS, given.data / EPOCHS
    pin = pinned(verdicts, epochs)
    cells = [*_cells(verdicts), *_epoch_cells(epochs)]
    _refuse_partial(cells, verdicts)
    questions, reason = _questions(given)
    about = MatrixSource(
        "gpqa-verdicts",
        f"klukosiute/gpqa-eval, HaveFunWithAI/gpqa_diamond_exp, stephlinds/evalconfidence: {pin}",
        notes=(NOTE, reason) if reason else (NOTE,),
        publishable=False,
    )
    return assemble_matrix(about, _asked(cells, questions), cells)


def _cells(path: Path) -> Iterator[MatrixCell]:
    for row in checked_rows(_Verdict, path):
        if row.source in COUNTED:
            yield MatrixCell(
                row.record_id, COUNTED[row.source].format(row.model), float(row.correct)
            )


def _epoch_cells(path: Path) -> Iterator[MatrixCell]:
    for row in checked_rows(_Epoch, path):
        yield MatrixCell(row.item_id, f"{row.model_id} (evalconfidence)", row.score)


def _refuse_partial(cells: Sequence[MatrixCell], path: Path) -> None:
    """Raise UserError when a declared worker has not passed all questions often enough."""
    passes = Counter((cell.worker, cell.question) for cell in cells)
    for worker in dict.fromkeys(cell.worker for cell in cells):
        counts = [n for (name, _), n in passes.items() if name == worker]
        if len(counts) != QUESTIONS or min(counts) < LEAST_PASSES:
            raise UserError(
                f"{path} or the file beside it is not whole: {worker} has {len(counts)} records, "
                f"at the least {min(counts)} times; {QUESTIONS} records are due, each "
                f"{LEAST_PASSES} times or more."
            )


def _questions(given: Given) -> tuple[dict[str, Question], str]:
    """Return the questions by record id, or none and why."""
    if given.gpqa is None:
        return {}, "No question texts here, so no router can learn."
    try:
        return {question.id: question for question in given.gpqa()}, ""
    except UserError as error:
        return {}, f"No question texts, so no router can learn: {error}"


def _asked(cells: Sequence[MatrixCell], questions: dict[str, Question]) -> list[MatrixQuestion]:
    return [
        MatrixQuestion(
            id=id,
            text=questions[id].text if id in questions else "",
            kind="choice",
            group=questions[id].topic if id in questions else "",
        )
        for id in sorted({cell.question for cell in cells})
    ]


GPQA = Source(
    "gpqa-verdicts",
    "GPQA-Diamond: 17 models x 198 questions, 4 to 10 draws, texts opened in memory only; no costs",
    read,
    exam="gpqa-diamond",
)
