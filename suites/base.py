"""Common code of suites: base classes, suite cards (descriptions), multiple-choice questions.

To add a suite, write a subclass of `DatasetSuite` or code_checks.UnitTestedSuite and its task, add
both to __init__.py and _registry.py, and its tables to cards.toml (its description for people) and
sources.toml (its pinned data).
"""

import tomllib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, ParamSpec, Self

from inspect_ai import Task
from pydantic import BaseModel, Field, PositiveInt, StringConstraints, ValidationError

from podium.harness.errors import UserError, first_fault
from podium.harness.extract import Reading, read_choice
from podium.harness.records import READ_BY, Grade, Question
from podium.harness.suite import OFFICIAL, Card, Prompt, Split, TaskRefusal
from podium.sandbox import Box
from podium.suites.data import Rows, data_revision, fetch_rows

CARDS = Path(__file__).parent / "cards.toml"
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Change = Annotated[str, StringConstraints(pattern=r"^\d+-[A-Z] \(\d{4}-\d\d-\d\d\): \S")]
Params = ParamSpec("Params")
LETTERS = "ABCD"
CHOICE_INSTRUCTION = (
    "Answer the following multiple choice question. The last line of your response should be of "
    "the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. "
    "Think step by step before answering."
)
"""The instruction before each multiple-choice question: first paragraph of
QUERY_TEMPLATE_MULTICHOICE in github.com/openai/simple-evals @ ee3b031."""


@dataclass(frozen=True, slots=True)
class DatasetSuite:
    """Base class of suites whose data sources.toml pins; a subclass adds questions and a grader."""

    data: str | Path | None = None
    """A folder of local data; see suites/data.py for the default."""
    name: str = ""
    version: str = ""
    dates: str = ""
    splits: tuple[Split, ...] = ("eval",)
    publishable: bool = True
    needs_box: bool = False
    image: str = ""
    source: ClassVar[str]

    @property
    def card(self) -> Card:
        """The suite's description for people, from its table in suites/cards.toml."""
        return card(self.name)

    @property
    def data_revision(self) -> str:
        """Version of the data: digest of the local file; without such a file, hub revision."""
        return data_revision(self.source, self.data)

    def rows(self) -> Rows:
        """Return the suite's data rows; UserError if unavailable or not as sources.toml says."""
        return fetch_rows(self.source, self.data)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return a split's questions in a fixed order; UserError if split or data is missing."""
        refuse_unknown_split(self.name, split, self.splits)
        return self.questions(split)

    @abstractmethod
    def questions(self, split: Split) -> Sequence[Question]:
        """Return the questions of a split; `load` has checked that the suite has this split."""

    @abstractmethod
    def grade(self, question: Question, reply: str, box: Any = None) -> Grade:
        """Grade a reply to a question, which must have its target (the correct answer)."""


@dataclass(frozen=True, slots=True)
class PromptedSuite(DatasetSuite):
    """A suite with two prompts: `official` (the usual one) and `paper` (of the Conductor paper)."""

    prompt: Prompt = OFFICIAL
    prompts: tuple[Prompt, ...] = (OFFICIAL, "paper")

    def prompted(self, prompt: Prompt) -> Self:
        """Return a copy of the suite with the prompt of that name; UserError if there is none."""
        if prompt not in self.prompts:
            names = ", ".join(self.prompts)
            raise UserError(f"Suite {self.name} has no prompt {prompt!r}; it has: {names}.")
        return replace(self, prompt=prompt)


def refuse_unknown_split(name: str, split: Split, splits: Sequence[Split]) -> None:
    """Raise UserError if `split` is not one of `splits`, those of the suite `name`."""
    if split not in splits:
        raise UserError(f"Suite {name} has no {split!r} split; it has: {', '.join(splits)}.")


def unsealed(question: Question) -> str:
    """Return a question's target; ValueError if the question is sealed (has no target)."""
    if question.target is None:
        raise ValueError(
            f"{question.id} is sealed (has no target). Grade the question as its suite loads it."
        )
    return question.target


def required_box(box: Box | None, name: str) -> Box:
    """Return the sandbox `box`; ValueError, with `name` (a suite or question), if it is None."""
    if box is None:
        raise ValueError(f"{name} runs programs. Give a sandbox with --box.")
    return box


def user_errors(make: Callable[Params, Task]) -> Callable[Params, Task]:
    """Decorate a task function, below `@task`: Inspect shows its UserErrors without traceback."""

    @wraps(make)
    def made(*args: Params.args, **kwargs: Params.kwargs) -> Task:
        try:
            return make(*args, **kwargs)
        except UserError as error:
            raise TaskRefusal(str(error)) from error

    return made


class CardTable(BaseModel, extra="forbid", frozen=True):
    """A table of cards.toml: the description of a suite, with the fields of harness.suite.Card."""

    title: Text
    paper: Text
    sizes: dict[Split, PositiveInt]
    licence: Text
    human: Text
    about: Text
    changes: tuple[Change, ...] = Field(min_length=1)
    saturated: str = ""
    public: str = ""
    teacher: str = ""


def card(name: str) -> Card:
    """Return a suite's description from cards.toml; UserError if a field there is invalid."""
    return cards()[name]


@cache
def cards(path: Path = CARDS) -> dict[str, Card]:
    """Return a TOML file's suite descriptions by suite name; UserError if a field is invalid."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path.name} is not valid TOML: {error}.") from error
    return {name: _card(name, table, path) for name, table in tables.items()}


def _card(name: str, table: object, path: Path) -> Card:
    try:
        facts: dict[str, Any] = CardTable.model_validate(table).model_dump()
        facts["about"] = " ".join(facts["about"].split())
        return Card(**facts)
    except ValidationError as error:
        field, problem = first_fault(error)
        raise UserError(f"{path.name}, [{name}], {field or 'the table'}: {problem}.") from error


def choice_text(asked: str, printed: Sequence[str], instruction: str = CHOICE_INSTRUCTION) -> str:
    """Return a multiple-choice prompt: instruction, question and options in this order."""
    return "\n\n".join((instruction, asked, option_lines(printed)))


def option_lines(printed: Sequence[str]) -> str:
    r"""Return four options in this order, one per line, each after its letter.

    >>> option_lines(["1", "2", "4", "8"])
    'A) 1\nB) 2\nC) 4\nD) 8'
    """
    return "\n".join(f"{name}) {option}" for name, option in zip(LETTERS, printed, strict=True))


def choice_metadata(printed: Sequence[str]) -> dict[str, Any]:
    """Return a question's metadata: four options as printed, and the alphabetical rank of each."""
    places = sorted(range(len(printed)), key=lambda place: printed[place])
    return {
        "choices": list(printed),
        "permutation": [places.index(index) for index in range(len(places))],
    }


def choice_question(
    id: str, question: str, printed: Sequence[str], place: int, topic: str = ""
) -> Question:
    """Return a multiple-choice question with four options; the one at index `place` is right."""
    text, metadata = choice_text(question, printed), choice_metadata(printed)
    return Question(id, text, "choice", LETTERS[place], topic=topic, metadata=metadata)


def grade_choice(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade a reply by the option letter that it states or, without one, the option it quotes."""
    target, reading = unsealed(question), read_options(question, reply)
    letter, facts = reading.value, {READ_BY: reading.rule}
    if letter is None:
        return Grade(0.0, None, "no letter found", facts)
    right = letter == target
    return Grade(float(right), letter, "right" if right else f"expected {target}", facts)


def read_options(question: Question, reply: str) -> Reading[str]:
    """Return the letter that a reply chooses, None if it has none, and how the letter was read."""
    return read_choice(reply, question.metadata.get("choices", ()))
