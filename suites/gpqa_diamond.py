"""GPQA-Diamond: 198 graduate-level science questions with four options each.

Its text is shown to models and stays out of everything else: tables, reports, exports, messages
(`publishable = False`). Where the rows come from is gpqa_rows.py, how options are ordered is
choice_order.py, how a letter is found is harness/extract.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai import Task, task

from harness.errors import UserError
from harness.inspect_adapters import as_task
from harness.records import Grade, Question
from harness.suite import OFFICIAL, Card, Prompt, Split, refuse_unknown_prompt
from suites.cards import card
from suites.choice_order import arranged, first_places, later_order, order_seed
from suites.choices import LETTERS, choice_metadata, choice_text, grade_choice
from suites.fetch import Rows
from suites.gpqa_rows import ID, QUESTION, RIGHT, WRONG, official_revision, official_rows, own_rows
from suites.refusing import refusing


@dataclass(frozen=True, slots=True)
class GpqaDiamond:
    """The suite; `data` names a folder of local data (default: see suites/fetch.py).

    Prompts: `official` is the template of openai/simple-evals @ ee3b031 with the cells as they are.
    `paper` is the conductor paper's, which ran Lighteval: task `gpqa:diamond` of
    huggingface/lighteval @ 3fd1526, the same words with every cell stripped of outer white space.
    """

    data: str | Path | None = None
    prompt: Prompt = OFFICIAL
    name: str = "gpqa-diamond"
    version: str = "2-A"
    dates: str = "2023-11"
    splits: tuple[Split, ...] = ("eval",)
    publishable: bool = False
    needs_box: bool = False
    image: str = ""
    epochs: int = 4
    """As often as there are letters, so that each is right once for every question."""
    prompts: tuple[Prompt, ...] = (OFFICIAL, "paper")

    @property
    def card(self) -> Card:
        """Its table of suites/cards.toml."""
        return card(self.name)

    @property
    def data_revision(self) -> str:
        """The CSV's digest (in the archive or beside it), or the pinned hub revision."""
        return official_revision(self.data)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the 198 questions as epoch 1 asks them; UserError names what is missing."""
        if split != "eval":
            raise UserError(f"Suite gpqa-diamond has no {split!r} split; it has: eval.")
        return questions(official_rows(self.data), self.prompt)

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of a file in the official columns; where letters stand is its own.

        UserError for rows without these columns.
        """
        return questions(own_rows(path), self.prompt)

    def at_epoch(self, question: Question, epoch: int) -> Question:
        """Return an epoch-1 question as another epoch asks it: the right letter moves on by one."""
        return later_order(question, epoch)

    def prompted(self, prompt: Prompt) -> "GpqaDiamond":
        """Return the suite with its questions put so; UserError for a way that is not known."""
        refuse_unknown_prompt(self, self.name, prompt)
        return replace(self, prompt=prompt)

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        """Grade a reply by its letter, for the order in which its epoch showed the options."""
        return grade_choice(question, reply)


GPQA_DIAMOND = GpqaDiamond()


@task
@refusing
def gpqa_diamond(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int | None = None,
    data: str | None = None,
    prompt: Prompt = OFFICIAL,
) -> Task:
    """GPQA-Diamond: 198 graduate-level multiple-choice questions, four epochs unless told."""
    suite = GpqaDiamond(data=data).prompted(prompt)
    return as_task(suite, split=split, limit=limit, epochs=epochs)


def questions(rows: Rows, prompt: Prompt = OFFICIAL) -> list[Question]:
    """Return the questions of checked rows as epoch 1 asks them, in the order of the rows."""
    places = first_places(str(row[ID]) for row in rows)
    return [_question(row, places[str(row[ID])], prompt) for row in rows]


def _question(row: dict[str, Any], place: int, prompt: Prompt) -> Question:
    def cell(column: str) -> str:
        return row[column] if prompt == OFFICIAL else row[column].strip()

    wrong = [cell(column) for column in WRONG]
    printed = arranged(cell(RIGHT), wrong, place, order_seed(row[ID], 1))
    return Question(
        id=row[ID],
        text=choice_text(cell(QUESTION), printed),
        kind="choice",
        target=LETTERS[place],
        topic=_topic(row),
        metadata=choice_metadata(printed),
    )


def _topic(row: dict[str, Any]) -> str:
    named = (str(row.get(column) or "").strip() for column in ("High-level domain", "Subdomain"))
    return "/".join(name for name in named if name)
