"""`practice-NAME@unseen`: `practice-NAME` with wordings or combinations that it does not generate.

The split `eval` has hand-written questions (unseen.toml) and generated ones: in hand-written
wordings, or, for practice-composed, with facts and computations that no topic of composed.py
combines. A run on it shows whether workers only recognise templates; nothing is tuned on it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import comb
from pathlib import Path
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, Field

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.suite import Card, Split
from podium.suites.aime25 import SUFFIX
from podium.suites.base import choice_text
from podium.suites.code_grading import ProgramCase, ProgramTests
from podium.suites.practice import Draft, IntegerProblem, PracticeSuite, Topic
from podium.suites.practice.composed import (
    ELEMENTS,
    ORDER,
    PLANETS,
    AboutTwo,
    gcd_or_lcm,
    of_number,
    sum_or_product,
)

UNSEEN = "unseen"
REVISION = "unseen-2"
SIZE = 75
"""Number of questions in the split `eval` of each such suite: 300 in the four suites together."""

COMPOSED = "practice-composed"
WRITTEN = Path(__file__).with_suffix(".toml")
TASK = "### Question:\n"
"""The heading above a program's task, as in LiveCodeBench's prompt."""
PROGRAM_INSTRUCTION = (
    "Give one Python program in a block that opens with ```python and closes with ```."
)


def _element_fact(rng: Random) -> tuple[int, str]:
    element = rng.choice(ELEMENTS)
    return element.number, f"the atomic number of {element.name}"


def _planet_fact(rng: Random) -> tuple[int, str]:
    name = rng.choice(PLANETS)
    return PLANETS.index(name) + 1, f"the position of {name} {ORDER}"


def _of_two(operation: AboutTwo, verb: str) -> Topic:
    def topic(rng: Random) -> Draft | None:
        (a, element), (b, planet) = _element_fact(rng), _planet_fact(rng)
        word, answer = operation(rng, a, b)
        return IntegerProblem(rng, f"unseen {word} {element} {planet}", answer).worded(
            f"What is the {word} of {element} and {planet}?",
            f"{verb} the {word} of {planet} and {element}.",
        )

    return topic


def _of_planet(rng: Random) -> Draft | None:
    (place, planet), factor = _planet_fact(rng), rng.randint(5, 60)
    n, fact = factor * place, f"{factor} times {planet}"
    word = rng.choice(("divisors", "primes", "digits"))
    answer, texts = of_number(n, fact)[word.replace("divisors", "divisor count")]
    return IntegerProblem(rng, f"unseen {word} of {fact}", answer).worded(*texts)


def _committee(rng: Random) -> Draft | None:
    (number, fact), k = _element_fact(rng), rng.randint(2, 4)
    return IntegerProblem(rng, f"unseen choose {k} from {fact}", comb(number, k)).worded(
        f"In how many ways can a committee of {k} members be chosen from a group of people if the "
        f"number of people is {fact}?",
        f"A set has n elements, where n is {fact}. How many of its subsets have {k} elements?",
    )


def _series(rng: Random) -> Draft | None:
    (number, fact), step = rng.choice((_element_fact, _planet_fact))(rng), rng.randint(2, 9)
    key = f"unseen series {step} to {fact}"
    return IntegerProblem(rng, key, step * number * (number + 1) // 2).worded(
        f"What is the sum of the first n positive multiples of {step}, where n is {fact}?",
        f"Let n be {fact}. Add {step} times each of the integers from 1 to n. What is the total?",
    )


TOPICS: Mapping[str, Topic] = {
    "element and planet: multiples": _of_two(gcd_or_lcm, "Compute"),
    "element and planet: sum or product": _of_two(sum_or_product, "Find"),
    "planet: divisors, primes, digits": _of_planet,
    "element: choosing": _committee,
    "element or planet: series": _series,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen(PracticeSuite):
    """A practice suite `NAME@unseen`: other wordings or combinations of facts in its eval split."""

    plain: PracticeSuite
    """The practice suite from which `train`, `validation` and the grader are taken."""

    @property
    def data_revision(self) -> str:
        """The data revision of the suite without `@unseen`, and the unseen questions' version."""
        return f"{self.plain.data_revision}-{REVISION}"

    @property
    def card(self) -> Card:
        """The description of the suite without `@unseen`, adapted to the unseen questions."""
        card = self.plain.card
        about = f"{card.about} Its eval split is in words or of combinations that no split has."
        sizes = {**card.sizes, "eval": len(self.load())}
        return replace(card, title=f"{card.title}, {UNSEEN}", sizes=sizes, about=about)

    def questions(self, split: Split) -> Sequence[Question]:
        """Return a split's questions; in `eval`, hand-written ones come before generated ones."""
        if split != "eval":
            return self.plain.load(split)
        questions = paraphrases()[self.plain.name]
        written = [replace(question, topic="written") for question in questions]
        return [*written, *PracticeSuite.questions(self, split)]


def unseen(plain: PracticeSuite) -> PracticeSuite:
    """Return the suite `NAME@unseen` of the practice suite NAME; UserError if there is none."""
    written = paraphrases().get(plain.name)
    if written is None:
        raise UserError(f"There is no suite {plain.name}@{UNSEEN}. Use {plain.name!r}.")
    names = [field.name for field in fields(PracticeSuite)]
    shared: dict[str, Any] = {name: getattr(plain, name) for name in names}
    shared["name"] = f"{plain.name}@{UNSEEN}"
    shared["topics"] = TOPICS if plain.name == COMPOSED else reworded(plain)
    shared["sizes"] = {**plain.sizes, "eval": SIZE - len(written)}
    return Unseen(**shared, plain=plain)


class _Written(BaseModel, extra="forbid", frozen=True):
    """A hand-written question of unseen.toml; the comment there lists the keys of each kind."""

    text: str
    answer: int | str = ""
    options: Annotated[list[str], Field(max_length=4)] = []
    cases: list[tuple[str, str]] = []
    method: str | None = None


class _Reworded(BaseModel, extra="forbid", frozen=True):
    """A row of unseen.toml: new wording of a topic's questions whose keys match the regex `key`."""

    topic: str
    key: str
    text: str


def reworded(plain: PracticeSuite) -> Mapping[str, Topic]:
    """Return the topics (question generators) that unseen.toml rewords, with its wordings."""
    rows = [_Reworded.model_validate(row) for row in _file()["reworded"]]
    by_topic = {name: [row for row in rows if row.topic == name] for name in plain.topics}
    return {name: _in_words(plain.topics[name], rows) for name, rows in by_topic.items() if rows}


def _in_words(topic: Topic, rows: Sequence[_Reworded]) -> Topic:
    def drawn(rng: Random) -> Draft | None:
        draft = topic(rng)
        for row in rows if draft else ():
            if draft and (key := re.fullmatch(row.key, draft.key)):
                return replace(draft, text=_instead(draft.text, row.text.format(*key.groups())))
        return None

    return drawn


def _instead(text: str, task: str) -> str:
    """Replace a question's text by `task`; in a programming question, only the task's paragraph."""
    head, heading, body = text.rpartition(TASK)
    _, gap, tail = body.partition("\n\n")
    return f"{head}{heading}{task}{gap}{tail}"  # without a heading only the task remains


def _file() -> dict[str, Any]:
    return tomllib.loads(WRITTEN.read_text(encoding="utf-8"))


def paraphrases() -> dict[str, Sequence[Question]]:
    """Return unseen.toml's hand-written questions by the name of the suite that grades them."""
    kinds = _file()
    kinds["code"] = kinds.pop("program")
    del kinds["reworded"]
    return {
        f"practice-{kind}": [
            _question(kind, n, _Written.model_validate(row)) for n, row in enumerate(rows, 1)
        ]
        for kind, rows in kinds.items()
    }


def _question(kind: str, number: int, row: _Written) -> Question:
    id = f"paraphrase-{kind}-{number}"
    if kind == "choice":
        text = choice_text(row.text, row.options)
        return Question(id, text, "choice", str(row.answer), topic=kind)
    if kind == "code":
        tests = ProgramTests(tuple(ProgramCase(*case) for case in row.cases), row.method)
        text = f"{row.text}\n\n{PROGRAM_INSTRUCTION}"
        return Question(id, text, "program", tests.as_json(), topic=kind)
    return Question(id, f"{row.text}\n\n{SUFFIX}", "integer", str(row.answer), topic=kind)
