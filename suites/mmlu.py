"""MMLU: four-option questions on 57 subjects, graded by letter; options in the published order.

`eval` is the published `test`, `validation` the published `val`, `train` the published auxiliary
questions, which come from other data sets (ARC, MC_TEST, OBQA, RACE) and have no subject.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast

from inspect_ai import Task, task

from podium.harness.errors import UserError
from podium.harness.extract import Reading
from podium.harness.files import read_rows
from podium.harness.inspect_adapters import as_task
from podium.harness.records import Grade, Question
from podium.harness.suite import Split
from podium.suites.base import (
    LETTERS,
    DatasetSuite,
    choice_question,
    grade_choice,
    read_options,
    user_errors,
)
from podium.suites.data import (
    check_rows,
    data_folder,
    fetch_rows,
    local_bytes,
    refuse_duplicates,
    sources,
)

SOURCES: Mapping[Split, str] = {
    "eval": "mmlu",
    "validation": "mmlu-validation",
    "train": "mmlu-train",
}

FOLDERS: Mapping[Split, str] = {"eval": "test", "validation": "val"}
"""Folder of each split in the published archive, as in data/test/SUBJECT_test.csv."""

COLUMNS = ("question", "choices", "answer")
AUXILIARY = "auxiliary"


@dataclass(frozen=True, slots=True)
class Mmlu(DatasetSuite):
    """The MMLU suite; the split `train` has a source of its own: the authors' archive lacks it."""

    name: str = "mmlu"
    version: str = "4-A"
    dates: str = "2020-09"
    splits: tuple[Split, ...] = ("train", "validation", "eval")
    source = "mmlu"

    def questions(self, split: Split) -> Sequence[Question]:
        """Return a split's questions subject by subject, in the published order."""
        name = SOURCES[split]
        source = sources()[name]
        if split in FOLDERS and (data_folder(self.data) / source.file).is_file():
            rows = [*zip_rows(local_bytes(name, self.data), FOLDERS[split])]
            return mmlu_questions(check_rows(rows, source, source.file))
        return mmlu_questions(fetch_rows(name, self.data), AUXILIARY if split == "train" else "")

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of a file in the hub's schema: a whole split, or rows with an `id`.

        Raises UserError for part of a split without ids: its row numbers give wrong question ids.
        """
        rows = [row for _, row in read_rows(path)]
        split_sizes = {sources()[name].rows for name in SOURCES.values()}
        if len(rows) not in split_sizes and not all(row.get("id") for row in rows):
            raise UserError(
                f"{path} has only a part of an MMLU split, so its row numbers cannot be ids. Give "
                "each row its `id`, or name a file with the complete split."
            )
        return refuse_duplicates(mmlu_questions(rows, AUXILIARY, str(path)), str(path))

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        """Grade a reply by the option letter that it states or the option that it quotes."""
        return grade_choice(question, reply)

    def read(self, question: Question, reply: str) -> Reading[str]:
        """Return a reply's answer and the rule that found it, for `podium grade --explain`."""
        return read_options(question, reply)


@task
@user_errors
def mmlu(
    split: Split = "eval", limit: int | None = None, epochs: int = 1, data: str | None = None
) -> Task:
    """MMLU: 14,042 four-way questions on 57 subjects (validation 1,531, train 99,842)."""
    return as_task(Mmlu(data), split=split, limit=limit, epochs=epochs)


def mmlu_questions(
    rows: Iterable[Mapping[str, Any]], unnamed: str = "", source: str = "MMLU"
) -> list[Question]:
    """Return the questions of rows in the hub's schema, numbered from 1 within their subject.

    Raises UserError for an incomplete row; `unnamed` is the subject of rows without one.
    """
    numbers, questions = dict[str, Iterator[int]](), list[Question]()
    for place, row in enumerate(rows, start=1):
        _refuse_malformed(row, f"{source}, row {place}")
        subject = str(row.get("subject") or unnamed)
        number = next(numbers.setdefault(subject, count(1)))
        short = "aux" if subject == AUXILIARY else subject
        id, printed = str(row.get("id") or f"mmlu-{short}-{number}"), [*map(str, row["choices"])]
        text = str(row["question"])
        questions.append(choice_question(id, text, printed, row["answer"], subject))
    return questions


def _refuse_malformed(row: Mapping[str, Any], place: str) -> None:
    for column in COLUMNS:
        if column not in row:
            raise UserError(f"{place} has no column {column!r}. Add the column.")
    choices, answer = row["choices"], row["answer"]
    if not isinstance(choices, list) or len(cast(list[Any], choices)) != len(LETTERS):
        raise UserError(f"{place} must have exactly four choices. Correct the row.")
    if not isinstance(answer, int) or not 0 <= answer < len(LETTERS):
        wrong = f"its `answer` {str(answer)[:20]!r} is not a number from 0 to 3"
        raise UserError(f"{place}: {wrong}. Correct the row.")


def zip_rows(archive: bytes, folder: str) -> Iterator[dict[str, Any]]:
    """Yield the rows in a folder of the published zip, with the hub's columns, by subject."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for path in sorted(opened.namelist()):
            if path.startswith(f"data/{folder}/") and path.endswith(".csv"):
                subject = path.rsplit("/", 1)[1].removesuffix(f"_{folder}.csv")
                text = io.StringIO(opened.read(path).decode(), newline="")
                for question, *choices, letter in csv.reader(text):
                    yield {
                        "question": question,
                        "subject": subject,
                        "choices": choices,
                        "answer": LETTERS.index(letter),
                    }
