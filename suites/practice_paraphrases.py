"""Hand-written questions of the practice kinds, in words that no generator uses.

They answer one doubt: do workers and conductors understand questions, or do they recognise our
templates? Nothing is tuned on them; they are part of the exams in practice_unseen.py.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from harness.records import Question
from suites.choices import INSTRUCTION as CHOOSE
from suites.choices import LETTERS
from suites.practice_integer import INSTRUCTION as BOXED
from suites.programs import Case, ProgramTests

FILE = Path(__file__).with_suffix(".toml")

RowT = TypeVar("RowT")

PROGRAM = "Give one Python program in a block that opens with ```python and closes with ```."


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str


class _Integer(_Row):
    answer: int


class _Choice(_Row):
    options: Annotated[list[str], Field(min_length=4, max_length=4)]
    answer: Annotated[str, Field(pattern="^[A-D]$")]


class _Program(_Row):
    cases: list[tuple[str, str]]
    method: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    integer: list[_Integer]
    choice: list[_Choice]
    program: list[_Program]
    composed: list[_Integer]


def paraphrases() -> dict[str, Sequence[Question]]:
    """Return the hand-written questions by the name of the suite whose grader they take."""
    rows = _File.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))
    return {
        "practice-integer": [_integer("integer", at, row) for at, row in _numbered(rows.integer)],
        "practice-choice": [_choice(at, row) for at, row in _numbered(rows.choice)],
        "practice-code": [_program(at, row) for at, row in _numbered(rows.program)],
        "practice-composed": [
            _integer("composed", at, row) for at, row in _numbered(rows.composed)
        ],
    }


def _integer(kind: str, at: int, row: _Integer) -> Question:
    text = f"{row.text}\n\n{BOXED}"
    return Question(f"paraphrase-{kind}-{at}", text, "integer", str(row.answer), topic=kind)


def _choice(at: int, row: _Choice) -> Question:
    lines = [f"{name}) {option}" for name, option in zip(LETTERS, row.options, strict=True)]
    text = "\n\n".join((CHOOSE, row.text, "\n".join(lines)))
    return Question(f"paraphrase-choice-{at}", text, "choice", row.answer, topic="choice")


def _program(at: int, row: _Program) -> Question:
    tests = ProgramTests(tuple(Case(given, out) for given, out in row.cases), row.method)
    text = f"{row.text}\n\n{PROGRAM}"
    return Question(f"paraphrase-code-{at}", text, "program", tests.as_json(), topic="code")


def _numbered(rows: Sequence[RowT]) -> list[tuple[int, RowT]]:
    return list(enumerate(rows, start=1))
