"""MATH-500: 500 problems of the MATH test set, answered with an expression.

The paper trained on 300 of the problems and tested on 100, and did not publish which: the splits
here are ours.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from pathlib import Path
from typing import Any

from inspect_ai import Task, task

from podium.harness.errors import UserError
from podium.harness.extract import Reading, read_expressions
from podium.harness.files import read_rows
from podium.harness.inspect_adapters import as_task
from podium.harness.records import READ_BY, Grade, Question
from podium.harness.suite import Split
from podium.suites.aime25 import PREFIX
from podium.suites.base import DatasetSuite, unsealed, user_errors
from podium.suites.data import refuse_duplicates, sources
from podium.suites.math_equality import Equality, compare, is_list

PROMPT = f"{PREFIX}\n\n"
"""huggingface/lighteval at 01e73a4, default_prompts.py, `math_500`; MATH itself has no prompt."""

SIZES: Mapping[Split, int] = {"train": 300, "validation": 100, "eval": 100}
"""Questions of each split, taken in this order by the rank of the id's sha256."""

COLUMNS = ("problem", "answer", "subject", "level", "unique_id")
SHOWN = 200


@dataclass(frozen=True, slots=True)
class Math500(DatasetSuite):
    """The suite: split in three, or `math500-all` whole."""

    name: str = "math500"
    version: str = "3-A"
    dates: str = "2021-03"
    splits: tuple[Split, ...] = ("train", "validation", "eval")
    source = "math500"

    def questions(self, split: Split) -> Sequence[Question]:
        """Return the questions of a split in the file's order."""
        every = math500_questions(self.rows(), "MATH-500")
        if len(self.splits) == 1:
            return every
        chosen = split_members(split, [question.id for question in every])
        return [question for question in every if question.id in chosen]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of rows; UserError unless they are 500 with the hub's columns."""
        rows = [row for _, row in read_rows(path)]
        if len(rows) != sources()["math500"].rows:
            raise UserError(f"{path} has {len(rows)} rows; MATH-500 has 500.")
        for (number, row), column in product(enumerate(rows, start=1), COLUMNS):
            if not str(row.get(column) or "").strip():
                raise UserError(f"{path}, row {number} has no `{column}`.")
        return math500_questions(rows, str(path))

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        """Grade a reply by equality of expressions; `look` in the metadata says what decided."""
        target, reading = unsealed(question), read_expressions(reply)
        said, read_by = reading.value or (), {READ_BY: reading.rule}
        if not said:
            return Grade(0.0, None, f"No answer was found; the target is {target}.", read_by)
        found, verdict = said[-1], compare(target, said[-1])
        if len(said) > 1 and not verdict.gave_up:
            found, verdict = _of_several(target, said, verdict)
        shown, equals = found[:SHOWN], "equals" if verdict.equal else "differs from"
        why = f"{shown} {equals} the target {target}."
        if verdict.gave_up:
            why = f"math-verify came to no end on {shown}, which therefore counts as wrong."
        return Grade(float(verdict.equal), shown, why, {"look": verdict.look, **read_by})

    def read(self, question: Question, reply: str) -> Reading[tuple[str, ...]]:
        """Read a reply for `podium grade --explain`."""
        return read_expressions(reply)


def _of_several(target: str, said: Sequence[str], last: Equality) -> tuple[str, Equality]:
    """Return statements that stand together as one answer, and what it is worth.

    Each value of a list may have a statement of its own; two answers to one question are none,
    unless they are the same number in two forms.
    """
    together = ",".join(said)
    if is_list(target):
        return (said[-1], last) if last.equal else (together, compare(target, together))
    alike = last.equal and all(compare(target, one).equal for one in said)
    return (said[-1], last) if alike else (together, Equality(False, last.look))


MATH500 = Math500()
MATH500_ALL = Math500(name="math500-all", splits=("eval",))


@task
@user_errors
def math500(
    split: Split = "eval", limit: int | None = None, epochs: int = 1, data: str | None = None
) -> Task:
    """MATH-500: 100 held-out competition problems, answered with an expression."""
    return as_task(Math500(data), split=split, limit=limit, epochs=epochs)


@task
@user_errors
def math500_all(limit: int | None = None, epochs: int = 1, data: str | None = None) -> Task:
    """MATH-500: all 500 problems, answered with an expression."""
    return as_task(replace(MATH500_ALL, data=data), limit=limit, epochs=epochs)


def split_members(split: Split, ids: Sequence[str]) -> frozenset[str]:
    """Return the ids of one split: consecutive ranks by sha256, train first."""
    if split not in SIZES:
        raise UserError(f"MATH-500 has no {split!r} split.")
    ranked = sorted(ids, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    ends = dict(zip(SIZES, accumulate(SIZES.values()), strict=True))
    return frozenset(ranked[ends[split] - SIZES[split] : ends[split]])


def math500_questions(rows: Sequence[Mapping[str, Any]], where: str) -> Sequence[Question]:
    """Return the questions of rows in their order; UserError for an id that comes twice."""
    return refuse_duplicates([_question(row) for row in rows], where)


def _question(row: Mapping[str, Any]) -> Question:
    path = str(row["unique_id"]).removeprefix("test/").removesuffix(".json")
    return Question(
        id=f"math500-{path.replace('/', '-')}",
        text=PROMPT + str(row["problem"]).strip(),
        kind="text",
        target=str(row["answer"]).strip(),
        topic=str(row["subject"]),
        metadata={"level": f"Level {str(row['level']).removeprefix('Level ')}"},  # the hub has 2
    )
