"""GPQA-Diamond: 198 graduate-level science questions with four options each.

`grade_choice` (suites/base.py) grades the letter or option that `read_choice` (harness/extract.py)
finds in a reply by the rules of harness/rules.

The authors ask that no example appears as plain text where a crawler could find it. So only models
see the text: it is decrypted in memory, never written, and never quoted in a message or exception.
Exceptions of decoders contain their input, so they are not chained (`raise ... from`).
"""

import csv
import hashlib
import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, cast

from inspect_ai import Task, task

from podium.harness.errors import UserError
from podium.harness.extract import Reading
from podium.harness.files import read_rows
from podium.harness.inspect_adapters import as_task
from podium.harness.records import Grade, Question
from podium.harness.suite import OFFICIAL, Prompt, Split
from podium.suites.base import (
    LETTERS,
    PromptedSuite,
    choice_metadata,
    choice_question,
    grade_choice,
    option_lines,
    read_options,
    unsealed,
    user_errors,
)
from podium.suites.data import AGAIN, Rows, check_rows, data_folder, hub_file, local_bytes, sources

ARCHIVE, CSV = "gpqa-diamond", "gpqa-diamond-csv"
"""Names in sources.toml of the authors' encrypted archive, and of the CSV file that it contains."""

MEMBER = "dataset/gpqa_diamond.csv"
PASSWORD = "deserted-untie-orchid"
"""The archive's password, published in the README of github.com/idavidrein/gpqa: it only keeps
out web crawlers."""

ID = "Record ID"
QUESTION = "Question"
RIGHT = "Correct Answer"
WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


@dataclass(frozen=True, slots=True)
class GpqaDiamond(PromptedSuite):
    """The GPQA-Diamond suite, with one of two prompts.

    `official` is the template of openai/simple-evals @ ee3b031. `paper`, as in the conductor paper,
    is `gpqa:diamond` of huggingface/lighteval @ 3fd1526: the same, without spaces around the texts.
    """

    name: str = "gpqa-diamond"
    version: str = "4-A"
    dates: str = "2023-11"
    publishable: bool = False
    epochs: int = 4
    """Over four epochs, each letter is the right answer once for every question."""

    @property
    def data_revision(self) -> str:
        """The CSV's name and digest if the data is local, else the pinned revision on the hub."""
        if _is_local(ARCHIVE, self.data) or _is_local(CSV, self.data):
            return f"{Path(sources()[CSV].file).name}@sha256:{sources()[CSV].sha256[:12]}"
        return f"{sources()[ARCHIVE].hub}@{sources()[ARCHIVE].revision}"

    def questions(self, split: Split) -> Sequence[Question]:
        """Return the 198 questions with options in the order of epoch 1, the first pass."""
        return gpqa_questions(official_rows(self.data), self.prompt)

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return a file's questions; raises UserError if it lacks a column of the official CSV."""
        return gpqa_questions(read_own_rows(path), self.prompt)

    def at_epoch(self, question: Question, epoch: int) -> Question:
        """Reorder an epoch-1 question's options: the right letter moves by one per epoch."""
        return rotate_options(question, epoch)

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        """Grade a reply by its option letter; `question` must be that of the reply's epoch."""
        return grade_choice(question, reply)

    def read(self, question: Question, reply: str) -> Reading[str]:
        """Return a reply's answer and the rule that found it, for `podium grade --explain`."""
        return read_options(question, reply)


@task
@user_errors
def gpqa_diamond(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int | None = None,
    data: str | None = None,
    prompt: Prompt = OFFICIAL,
) -> Task:
    """GPQA-Diamond: 198 graduate-level multiple-choice questions, four epochs by default."""
    return as_task(GpqaDiamond(data).prompted(prompt), split=split, limit=limit, epochs=epochs)


def gpqa_questions(rows: Rows, prompt: Prompt = OFFICIAL) -> list[Question]:
    """Return the questions of checked data rows, in their order, with options as in epoch 1."""
    places = first_places(str(row[ID]) for row in rows)
    return [_question(row, places[str(row[ID])], prompt) for row in rows]


def _question(row: dict[str, Any], place: int, prompt: Prompt) -> Question:
    def cell(column: str) -> str:
        return row[column] if prompt == OFFICIAL else row[column].strip()

    subjects = (str(row.get(column) or "").strip() for column in ("High-level domain", "Subdomain"))
    wrong = [cell(column) for column in WRONG]
    printed = arrange_options(cell(RIGHT), wrong, place, order_seed(row[ID], 1))
    topic = "/".join(name for name in subjects if name)
    return choice_question(row[ID], cell(QUESTION), printed, place, topic)


def first_places(ids: Iterable[str]) -> dict[str, int]:
    """Return {id: index of the right option in epoch 1}: rank of the id's sha256 + 1, modulo 4."""
    ranked = sorted(ids, key=lambda id: hashlib.sha256(id.encode()).digest())
    return {id: (rank + 1) % len(LETTERS) for rank, id in enumerate(ranked)}


def arrange_options(right: str, wrong: Sequence[str], place: int, seed: str) -> list[str]:
    """Return a question's options: right one at index `place`, wrong ones shuffled by `seed`."""
    printed = Random(seed).sample(sorted(wrong), len(wrong))
    printed.insert(place, right)
    return printed


def order_seed(id: str, epoch: int) -> str:
    """Return the seed that shuffles a question's wrong options in an epoch (counted from 1)."""
    return f"{id}/{epoch}"


def rotate_options(question: Question, epoch: int) -> Question:
    """Reorder the options of an epoch-1 question: the right letter moves by one per epoch.

    The question must list its options in `metadata["choices"]`. Raises ValueError if its text does
    not end with them as `option_lines` formats them, or if its target is removed (sealed).
    """
    target = unsealed(question)
    options: list[str] = list(question.metadata["choices"])
    lines = option_lines(options)
    if not question.text.endswith(lines):
        raise ValueError(f"{question.id} does not end with its options")
    index = LETTERS.index(target)
    place = (index + epoch - 1) % len(LETTERS)
    wrong = options[:index] + options[index + 1 :]
    printed = arrange_options(options[index], wrong, place, order_seed(question.id, epoch))
    return replace(
        question,
        text=question.text.removesuffix(lines) + option_lines(printed),
        target=LETTERS[place],
        metadata={**question.metadata, **choice_metadata(printed)},
    )


def official_rows(data: str | Path | None = None) -> Rows:
    """Return GPQA-Diamond's 198 rows; UserError if they are absent, gated or not as pinned."""
    if _is_local(ARCHIVE, data):
        content = decrypt_archive(local_bytes(ARCHIVE, data))
        return _parsed_csv(content, f"{MEMBER} of the archive")
    if _is_local(CSV, data):
        return _parsed_csv(local_bytes(CSV, data), sources()[CSV].file)
    source = sources()[ARCHIVE]
    files = " or ".join(str(data_folder(data) / sources()[name].file) for name in (ARCHIVE, CSV))
    by_hand = (
        "run `podium data fetch gpqa-diamond`, which needs no token, or put the authors' file at "
        f"{files} (PODIUM_DATA can name another folder)"
    )
    return _parsed_csv(hub_file(source, by_hand).read_bytes(), f"{source.hub} at {source.revision}")


def read_own_rows(path: Path) -> Rows:
    """Return the rows of a user's file; UserError if it lacks a column of the official CSV."""
    rows, refused = Rows(), f"{path} has no rows. Give one row per question."
    try:
        rows = [row for _, row in read_rows(path)]
    except UserError as error:  # not chained: it may quote the data
        refused = str(error)
    if not rows:
        raise UserError(refused)
    return refuse_incomplete_rows(rows, str(path))


def refuse_incomplete_rows(rows: Rows, source: str) -> Rows:
    """Return the rows; UserError if a cell is empty, an id repeats or a wrong option is right."""
    for number, row in enumerate(rows, start=1):
        _refuse_incomplete(row, f"{source}, row {number}")
    for id, times in Counter(row[ID] for row in rows).items():
        if times > 1:
            raise UserError(f"{source} has the {ID} {id!r} twice. Give each row its own.")
    return rows


def _is_local(name: str, data: str | Path | None) -> bool:
    return (data_folder(data) / sources()[name].file).is_file()


@lru_cache(maxsize=1)
def decrypt_archive(archive: bytes) -> bytes:
    """Return the CSV in the authors' archive, decrypted once per process."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(MEMBER, pwd=PASSWORD.encode())


@lru_cache(maxsize=1)
def _parsed_csv(content: bytes, source: str) -> Rows:
    rows: Rows | None = None
    with suppress(UnicodeDecodeError, csv.Error):  # not chained: it contains the data
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        rows = cast(Rows, list(csv.DictReader(text, strict=True)))
    if rows is None:
        raise UserError(f"{source} cannot be read as CSV in UTF-8. {AGAIN}")
    return refuse_incomplete_rows(check_rows(rows, sources()[ARCHIVE], source), source)


def _refuse_incomplete(row: dict[str, object], place: str) -> None:
    for column in (ID, QUESTION, RIGHT, *WRONG):
        if column not in row:
            raise UserError(f"{place} has no column {column!r}. Add the column.")
        value = row[column]
        if not (isinstance(value, str) and value.strip()):
            raise UserError(f"{place}: its {column!r} is empty or not text. Correct the row.")
    right, *wrong = (str(row[column]).strip() for column in (RIGHT, *WRONG))
    if right in wrong:
        raise UserError(f"{place}: its {RIGHT!r} is also an incorrect answer. Correct the row.")
