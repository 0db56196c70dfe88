"""Four-way questions about elements and planets, from elements.csv beside this file."""

import csv
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from podium import Card, DatasetSuite, Grade, Question, choice_metadata, choice_text, grade_choice

ROWS = Path(__file__).with_name("elements.csv")


@dataclass(frozen=True, slots=True)
class Elements(DatasetSuite):
    name: str = "elements"
    version: str = "1-A"  # raise the number whenever a grade could change
    dates: str = "2026-11"  # when the questions became public

    @property
    def card(self) -> Card:
        return Card(
            title="Elements and planets",
            paper="none",
            sizes={"eval": 4},
            licence="CC0",
            human="none published",
            about="Four-way questions, graded by the letter.",
            changes=("1-A (2026-11-23): first version",),
        )

    @property
    def data_revision(self) -> str:
        return f"{ROWS.name}@sha256:{sha256(ROWS.read_bytes()).hexdigest()[:12]}"

    def questions(self, split: str) -> list[Question]:
        with ROWS.open(newline="") as rows:
            return [as_question(row) for row in csv.DictReader(rows)]

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        return grade_choice(question, reply)


def as_question(row: dict[str, str]) -> Question:
    options = [row[letter] for letter in "ABCD"]
    return Question(
        id=row["id"],
        text=choice_text(row["question"], options),  # the usual instruction, then A) to D)
        kind="choice",
        target=row["answer"],
        metadata=choice_metadata(options),
    )


elements = Elements()
