"""Rows of openbmb/RLPR-Train-Dataset -> questions, and which of them are for training.

The columns are those of verl: `prompt` (a chat whose system message asks for <think> and <answer>
tags), `reward_model` (`ground_truth`, `style`), `ability`, `data_source`. Not here: how a reply is
graded (suites/rlpr_rules.py).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ValidationError

from harness.errors import UserError
from harness.records import Question
from harness.suite import Split

SHARES: tuple[Split, ...] = ("train", "train", "train", "validation", "eval")
"""What each fifth of the questions is for. The conductor paper has 46,620 and 15,540 of 77,700, and
does not say which."""

ASKED_AT = "asked_at"
"""Key in a question's metadata: where in its text the question begins, after the system message."""


def _loaded(value: object) -> object:
    """Some copies of the data have these columns as JSON text."""
    return json.loads(value) if isinstance(value, str) else value


class Turn(BaseModel):
    """One message of a prompt."""

    role: str
    content: str


class Reference(BaseModel):
    """The column `reward_model`."""

    ground_truth: str | int | float


class Row(BaseModel):
    """One row; columns that grade nothing are left out."""

    prompt: Annotated[list[Turn], BeforeValidator(_loaded)]
    reward_model: Annotated[Reference, BeforeValidator(_loaded)]
    ability: str = ""
    data_source: str = ""

    def said_by(self, role: str) -> str:
        """Return what one role says in the prompt."""
        return "\n\n".join(turn.content for turn in self.prompt if turn.role == role).strip()


def questions(rows: Sequence[Mapping[str, Any]], where: str) -> list[Question]:
    """Return the questions of rows, in order; rows that are alike are one question.

    An id is the digest of question and answer, as the data has no ids of its own that are known to
    be distinct. UserError names the row and the column that is missing or not as it should be.
    """
    made: dict[str, Question] = {}
    for number, row in enumerate(rows, start=1):
        question = _question(_checked(row, f"{where}, row {number}"), f"{where}, row {number}")
        made.setdefault(question.id, question)
    return list(made.values())


def of_split(all_questions: Sequence[Question], split: Split) -> list[Question]:
    """Return the questions of a split: a fixed 60, 20 and 20 % of the different question texts.

    By rank of the text's digest, so that a text with two answers is not in two splits.
    """
    keys = [_digest(question.text) for question in all_questions]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return [
        question
        for question, key in zip(all_questions, keys, strict=True)
        if SHARES[ranks[key] * len(SHARES) // len(ranks)] == split
    ]


def asked(question: Question) -> str:
    """Return a question without the system message before it."""
    return question.text[int(question.metadata.get(ASKED_AT, 0)) :]


def _checked(row: Mapping[str, Any], where: str) -> Row:
    for column in ("prompt", "reward_model"):
        if column not in row:
            raise UserError(f"{where} has no column {column!r}.")
    try:
        return Row.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where}, column {column}: {first['msg']}.") from error


def _question(row: Row, where: str) -> Question:
    system, problem = row.said_by("system"), row.said_by("user")
    answer = str(row.reward_model.ground_truth).strip()
    if not problem:
        raise UserError(f"{where}, column prompt: there is no message of the user.")
    if not answer:
        raise UserError(f"{where}, column reward_model.ground_truth: it is empty.")
    before = f"{system}\n\n" if system else ""
    return Question(
        id=f"rlpr-{_digest(problem, answer)[:16]}",
        text=before + problem,
        kind="text",
        target=answer,
        topic=row.ability,
        metadata={ASKED_AT: len(before), "data_source": row.data_source},
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
