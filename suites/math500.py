"""MATH-500: 500 problems of the MATH test set, answered with an expression.

The conductor paper trained on 300 of the problems and tested on 100, and did not publish which: the
splits here are podium's own.
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
"""Text before a problem: `math_500` of huggingface/lighteval at 01e73a4, default_prompts.py. The
authors of MATH published no prompt."""

SIZES: Mapping[Split, int] = {"train": 300, "validation": 100, "eval": 100}
"""Number of questions per split; the questions fill the splits in order of their ids' sha256."""

COLUMNS = ("problem", "answer", "subject", "level", "unique_id")
SHOWN = 200
FETCH = "Use the file of `podium data fetch math500`."


@dataclass(frozen=True, slots=True)
class Math500(DatasetSuite):
    """The MATH-500 suite: `math500` has three splits, `math500-all` has all questions in one."""

    name: str = "math500"
    version: str = "5-A"
    dates: str = "2021-03"
    splits: tuple[Split, ...] = ("train", "validation", "eval")
    source = "math500"

    def questions(self, split: Split) -> Sequence[Question]:
        """Return the questions of a split, in the order of the data file."""
        every = math500_questions(self.rows(), "MATH-500")
        if len(self.splits) == 1:
            return every
        chosen = split_members(split, [question.id for question in every])
        return [question for question in every if question.id in chosen]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return a file's questions; raises UserError unless 500 rows have the hub's columns."""
        rows = [row for _, row in read_rows(path)]
        if len(rows) != sources()["math500"].rows:
            raise UserError(f"{path} has {len(rows)} rows, but MATH-500 has 500. {FETCH}")
        for (number, row), column in product(enumerate(rows, start=1), COLUMNS):
            if not str(row.get(column) or "").strip():
                raise UserError(f"{path}, row {number} has no `{column}`. {FETCH}")
        return math500_questions(rows, str(path))

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        """Grade a reply by equality of expressions.

        `look` in the grade's metadata says what decided: `exact` (podium itself) or `math-verify`.
        """
        target, reading = unsealed(question), read_expressions(reply)
        statements, read_by = reading.value or (), {READ_BY: reading.rule}
        if not statements:
            return Grade(0.0, None, f"No answer was found; the target is {target}.", read_by)
        answer, verdict = statements[-1], compare(target, statements[-1])
        if len(statements) > 1 and not verdict.gave_up:
            answer, verdict = _of_several(target, statements, verdict)
        excerpt, equals = answer[:SHOWN], "equals" if verdict.equal else "differs from"
        reason = f"{excerpt} {equals} the target {target}."
        if verdict.gave_up:
            reason = f"math-verify came to no end on {excerpt}, which therefore counts as wrong."
        return Grade(float(verdict.equal), excerpt, reason, {"look": verdict.look, **read_by})

    def read(self, question: Question, reply: str) -> Reading[tuple[str, ...]]:
        """Return a reply's answer and the rule that found it, for `podium grade --explain`."""
        return read_expressions(reply)


def _of_several(target: str, statements: Sequence[str], verdict: Equality) -> tuple[str, Equality]:
    """Return adjacent answer statements of a reply as one answer, and if it equals the target.

    If the target is a list, each value may have its own statement. Otherwise several answers count
    as wrong, unless each equals the target. `verdict` compares the last statement and the target.
    """
    together = ",".join(statements)
    if is_list(target):
        return (statements[-1], verdict) if verdict.equal else (together, compare(target, together))
    alike = verdict.equal and all(compare(target, statement).equal for statement in statements)
    return (statements[-1], verdict) if alike else (together, Equality(False, verdict.look))


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
    """Return a split's question ids: `ids`, sorted by sha256, fill the splits of SIZES in order."""
    if split not in SIZES:
        raise UserError(f"MATH-500 has no {split!r} split; it has: {', '.join(SIZES)}.")
    ranked = sorted(ids, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    ends = dict(zip(SIZES, accumulate(SIZES.values()), strict=True))
    return frozenset(ranked[ends[split] - SIZES[split] : ends[split]])


def math500_questions(rows: Sequence[Mapping[str, Any]], source: str) -> Sequence[Question]:
    """Return the questions of data rows in their order; UserError if two have the same id."""
    return refuse_duplicates([_question(row) for row in rows], source)


def _question(row: Mapping[str, Any]) -> Question:
    path = str(row["unique_id"]).removeprefix("test/").removesuffix(".json")
    return Question(
        id=f"math500-{path.replace('/', '-')}",
        text=PROMPT + str(row["problem"]).strip(),
        kind="text",
        target=str(row["answer"]).strip(),
        topic=str(row["subject"]),
        metadata={"level": f"Level {str(row['level']).removeprefix('Level ')}"},  # "2" on the hub
    )
