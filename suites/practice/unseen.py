"""`practice-...@unseen`: an exam in words, or of combinations, that no generated split has."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import comb, gcd, lcm
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from harness.records import Question
from harness.suite import Card, Split
from suites.base import CHOICE_INSTRUCTION as CHOOSE
from suites.base import LETTERS
from suites.code_grading import ProgramCase, ProgramTests
from suites.practice import Draft, PracticeSuite, Topic, integer_draft
from suites.practice.composed import ELEMENTS, ORDER, PLANETS, of_number
from suites.practice.integer import INSTRUCTION as BOXED

# § `practice-...@unseen`: an exam in words, or of combinations, that no generated split has.
# §
# § The plain suites split by parameters, so their eval split asks what train asked, with
# § other numbers.
# § Here `eval` is the hand-written questions (practice_paraphrases.toml) and, for composed
# § questions,
# § a fact and a computation that no topic of practice_composed.py joins; `train` and
# § `validation` are
# § the plain suite's, so that who learns learns what it always does.
# § tests/test_practice_unseen.py
# § holds both claims against every split. Grading is the plain suite's.


UNSEEN = "unseen"
REVISION = "unseen-1"
"""Raised by a change to any question below, or to a written one."""
COMBINED = 51
"""Composed questions of new combinations, beside the nine that are written."""


def _element_fact(rng: Random) -> tuple[int, str]:
    element = rng.choice(ELEMENTS)
    return element.number, f"the atomic number of {element.name}"


def _planet_fact(rng: Random) -> tuple[int, str]:
    name = rng.choice(PLANETS)
    return PLANETS.index(name) + 1, f"the position of {name} {ORDER}"


def multiples(rng: Random) -> Draft | None:
    """A common divisor or multiple of an element's and a planet's number."""
    (a, one), (b, other) = _element_fact(rng), _planet_fact(rng)
    word, answer = rng.choice(
        (
            ("greatest common divisor", gcd(a, b)),
            ("least common multiple", lcm(a, b)),
            ("least common multiple", lcm(a, b)),
        )
    )
    return integer_draft(
        rng,
        f"unseen {word} {one} {other}",
        answer,
        f"What is the {word} of {one} and {other}?",
        f"Compute the {word} of {other} and {one}.",
    )


def together(rng: Random) -> Draft | None:
    """A sum or product of an element's and a planet's number."""
    (a, one), (b, other) = _element_fact(rng), _planet_fact(rng)
    word, answer = rng.choice((("sum", a + b), ("product", a * b)))
    return integer_draft(
        rng,
        f"unseen {word} {one} {other}",
        answer,
        f"What is the {word} of {one} and {other}?",
        f"Find the {word} of {other} and {one}.",
    )


def of_planet(rng: Random) -> Draft | None:
    """Divisors, primes and digits of a planet's number times a factor."""
    (place, planet), factor = _planet_fact(rng), rng.randint(5, 60)
    n, fact = factor * place, f"{factor} times {planet}"
    word, wanted = rng.choice(
        (("divisors", "divisor count"), ("primes", "primes"), ("digits", "digits"))
    )
    answer, texts = of_number(n, fact)[wanted]
    return integer_draft(rng, f"unseen {word} of {fact}", answer, *texts)


def committee(rng: Random) -> Draft | None:
    """How many ways to choose among as many as an element's number."""
    (number, fact), k = _element_fact(rng), rng.randint(2, 4)
    return integer_draft(
        rng,
        f"unseen choose {k} from {fact}",
        comb(number, k),
        f"In how many ways can a committee of {k} members be chosen from a group of people if the "
        f"number of people is {fact}?",
        f"A set has n elements, where n is {fact}. How many of its subsets have {k} elements?",
    )


def series(rng: Random) -> Draft | None:
    """The sum of the first whole numbers, as many as an element's or a planet's number says."""
    (number, fact), step = rng.choice((_element_fact, _planet_fact))(rng), rng.randint(2, 9)
    return integer_draft(
        rng,
        f"unseen series {step} to {fact}",
        step * number * (number + 1) // 2,
        f"What is the sum of the first n positive multiples of {step}, where n is {fact}?",
        f"Let n be {fact}. Add {step} times each of the integers from 1 to n. What is the total?",
    )


TOPICS: Mapping[str, Topic] = {
    "element and planet: multiples": multiples,
    "element and planet: sum or product": together,
    "planet: divisors, primes, digits": of_planet,
    "element: choosing": committee,
    "element or planet: series": series,
}
COMPOSED = "practice-composed"


@dataclass(frozen=True, slots=True)
class Unseen(PracticeSuite):
    """A practice suite whose eval split is unlike its others; made by `unseen`."""

    plain: PracticeSuite | None = None
    """The suite that it shares `train`, `validation` and the grader with; never None."""

    @property
    def data_revision(self) -> str:
        """The plain suite's, and the version of what is unseen."""
        return f"{self._plain().data_revision}-{REVISION}"

    @property
    def card(self) -> Card:
        """The plain suite's card, with what is asked instead."""
        known = self._plain().card
        about = f"{known.about} Its eval split is in words or of combinations that no split has."
        sizes = {**known.sizes, "eval": len(self.load())}
        return replace(known, title=f"{known.title}, {UNSEEN}", sizes=sizes, about=about)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the plain suite's questions; of `eval` the written and the combined ones."""
        if split != "eval":
            return self._plain().load(split)
        written = [replace(one, topic="written") for one in paraphrases()[self._plain().name]]
        combined = PracticeSuite.load(self, split) if self.topics else ()
        return [*written, *combined]

    def _plain(self) -> PracticeSuite:
        assert self.plain is not None
        return self.plain


def unseen(plain: PracticeSuite) -> PracticeSuite:
    """Return the suite `NAME@unseen` of a practice suite."""
    shared: dict[str, Any] = {one.name: getattr(plain, one.name) for one in fields(PracticeSuite)}
    own: dict[str, Any] = {
        "name": f"{plain.name}@{UNSEEN}",
        "topics": TOPICS if plain.name == COMPOSED else {},
        "sizes": {**plain.sizes, "eval": COMBINED},
    }
    return Unseen(**{**shared, **own}, plain=plain)


# § Hand-written questions of the practice kinds, in words that no generator uses.
# §
# § They answer one doubt: do workers and conductors understand questions, or do they
# § recognise our
# § templates? Nothing is tuned on them; they are part of the exams in practice_unseen.py.


WRITTEN = Path(__file__).with_suffix(".toml")

RowT = TypeVar("RowT")

PROGRAM_INSTRUCTION = (
    "Give one Python program in a block that opens with ```python and closes with ```."
)


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str


class _Integer(_Row):
    answer: int


class _Choice(_Row):
    options: Annotated[list[str], Field(min_length=4, max_length=4)]
    answer: Annotated[str, Field(pattern="^[A-D]$")]


class _Program(_Row):
    cases: list[tuple[str, str]]
    method: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    integer: list[_Integer]
    choice: list[_Choice]
    program: list[_Program]
    composed: list[_Integer]


def paraphrases() -> dict[str, Sequence[Question]]:
    """Return the hand-written questions by the name of the suite whose grader they take."""
    rows = _File.model_validate(tomllib.loads(WRITTEN.read_text(encoding="utf-8")))
    return {
        "practice-integer": [_integer("integer", at, row) for at, row in _numbered(rows.integer)],
        "practice-choice": [_choice(at, row) for at, row in _numbered(rows.choice)],
        "practice-code": [_program(at, row) for at, row in _numbered(rows.program)],
        "practice-composed": [
            _integer("composed", at, row) for at, row in _numbered(rows.composed)
        ],
    }


def _integer(kind: str, at: int, row: _Integer) -> Question:
    text = f"{row.text}\n\n{BOXED}"
    return Question(f"paraphrase-{kind}-{at}", text, "integer", str(row.answer), topic=kind)


def _choice(at: int, row: _Choice) -> Question:
    lines = [f"{name}) {option}" for name, option in zip(LETTERS, row.options, strict=True)]
    text = "\n\n".join((CHOOSE, row.text, "\n".join(lines)))
    return Question(f"paraphrase-choice-{at}", text, "choice", row.answer, topic="choice")


def _program(at: int, row: _Program) -> Question:
    tests = ProgramTests(tuple(ProgramCase(given, out) for given, out in row.cases), row.method)
    text = f"{row.text}\n\n{PROGRAM_INSTRUCTION}"
    return Question(f"paraphrase-code-{at}", text, "program", tests.as_json(), topic="code")


def _numbered(rows: Sequence[RowT]) -> list[tuple[int, RowT]]:
    return list(enumerate(rows, start=1))
