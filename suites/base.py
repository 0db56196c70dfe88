"""What suites share: cards, refusals under Inspect, and the multiple-choice question."""

import tomllib
from collections.abc import Callable, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

from inspect_ai import Task
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, StringConstraints, ValidationError

from harness.errors import TaskRefusal, UserError
from harness.extract import extract_choice
from harness.records import Grade, Question
from harness.suite import Card, Split
from sandbox import Box

# § Read suites/cards.toml: what each suite asks, where it is from, and how well people did.
# §
# § A card is for people (`podium suites NAME`); nothing is graded or fetched by it. What pins
# § the data
# § is sources.toml.


CARDS = Path(__file__).parent / "cards.toml"

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Change = Annotated[str, StringConstraints(pattern=r"^\d+-[A-Z] \(\d{4}-\d\d-\d\d\): \S")]


class CardTable(BaseModel):
    """One table of cards.toml; its fields are those of harness.suite.Card."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Text
    paper: Text
    sizes: dict[Split, PositiveInt]
    licence: Text
    human: Text
    about: Text
    changes: tuple[Change, ...] = Field(min_length=1)

    def card(self) -> Card:
        """Return the card, its paragraph on one line."""
        return Card(
            title=self.title,
            paper=self.paper,
            sizes=self.sizes,
            licence=self.licence,
            human=self.human,
            about=" ".join(self.about.split()),
            changes=self.changes,
        )


def card(name: str) -> Card:
    """Return a suite's card; UserError names the table and the field that is wrong."""
    return cards()[name]


@cache
def cards(path: Path = CARDS) -> dict[str, Card]:
    """Return every card of a file by suite; UserError names the table and field that is wrong."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path.name} is no TOML: {error}.") from error
    return {name: _checked_table(name, table, path).card() for name, table in tables.items()}


def _checked_table(name: str, table: object, path: Path) -> CardTable:
    try:
        return CardTable.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the table"
        raise UserError(f"{path.name}, [{name}], {field}: {first['msg']}.") from error


# § What podium refuses is one sentence under `inspect eval` too, not a traceback.


Params = ParamSpec("Params")


def user_errors(make: Callable[Params, Task]) -> Callable[Params, Task]:
    """Return a task function whose UserErrors Inspect prints; it stands under `@task`."""

    @wraps(make)
    def made(*args: Params.args, **kwargs: Params.kwargs) -> Task:
        try:
            return make(*args, **kwargs)
        except UserError as error:
            raise TaskRefusal(str(error)) from error

    return made


# § What multiple-choice exams share: the instruction, how options are printed, and the grade.
# §
# § Not here: where questions come from, and in which order an exam puts its options.


LETTERS = "ABCD"

CHOICE_INSTRUCTION = (
    "Answer the following multiple choice question. The last line of your response should be of "
    "the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. "
    "Think step by step before answering."
)
"""QUERY_TEMPLATE_MULTICHOICE of github.com/openai/simple-evals @ ee3b031, its first paragraph."""


def choice_text(asked: str, printed: Sequence[str], instruction: str = CHOICE_INSTRUCTION) -> str:
    """Return what a worker is sent: instruction, question and the options in this order."""
    return "\n\n".join((instruction, asked, option_lines(printed)))


def option_lines(printed: Sequence[str]) -> str:
    r"""Return four options in this order, one after another, each behind its letter.

    >>> option_lines(["1", "2", "4", "8"])
    'A) 1\nB) 2\nC) 4\nD) 8'
    """
    return "\n".join(f"{name}) {option}" for name, option in zip(LETTERS, printed, strict=True))


def choice_metadata(printed: Sequence[str]) -> dict[str, Any]:
    """Return what a system may see: the options as printed, and their permutation.

    The permutation says which option, in alphabetical order, stands at each letter. It is a
    function of what is printed, so it says nothing about which is right.
    """
    places = sorted(range(len(printed)), key=lambda place: printed[place])
    ranks = {place: rank for rank, place in enumerate(places)}
    return {"choices": list(printed), "permutation": [ranks[at] for at in range(len(printed))]}


def grade_choice(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade by the letter, or by the one option whose own text is stated where a letter was due.

    A reply without either is wrong and counted as unparsed. ValueError for a sealed question.
    """
    if question.target is None:
        raise ValueError(f"{question.id} is sealed: it cannot be graded")
    found = extract_choice(reply, question.metadata.get("choices", ()))
    if found is None:
        return Grade(value=0.0, extracted=None, explanation="no letter found")
    right = found == question.target
    verdict = "right" if right else f"expected {question.target}"
    return Grade(value=float(right), extracted=found, explanation=verdict)
