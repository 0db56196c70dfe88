"""`practice-deep`: generated questions of up to five dependent parts that need different skills.

Each part but the last gives its value a letter ("Let c be ..."), which later parts can use: so the
text shows which parts must wait for others. The worker pool `rehearsal-deep` has a worker for each
skill (that for sums is cheap) and two that lack every skill. On it, the script deep_calibration.py
(commit bbc2f728) measured oracles, fixed plans and rules. The suite was fixed before any training.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, gcd, lcm
from random import Random

from inspect_ai import Task, task

from podium.harness.inspect_adapters import as_task
from podium.harness.suite import Split
from podium.suites.base import user_errors
from podium.suites.practice import Draft, IntegerProblem, PracticeSuite, Topic
from podium.suites.practice.composed import BY_NUMBER, ELEMENTS, ORDER, PLANETS, TWO_SPELLINGS
from podium.suites.practice.integer import (
    digit_sum,
    divisors,
    grade_integer,
    in_base,
    integer_question,
    is_prime,
)

LETTERS = "cdghjkpqrtvwz"
"""Letters that name parts of a question; no letter is also a word, an operation or a unit in the
phrases below."""
TAMED = [element for element in ELEMENTS if element.symbol not in (*TWO_SPELLINGS, "Hg")]
"""Elements with only one English spelling, except mercury, whose name is also a planet's."""
MOST, FACTORED = 99_999, 9_999  # the largest value of a part, and of a number to factor
LEAST = 11  # the smallest answer: smaller ones could be guessed


@dataclass(frozen=True, slots=True)
class Value:
    """A number that a part uses: an earlier part's value, named by letter, or a stated number."""

    name: str
    number: int


Said = tuple[str, int]
"""A part (step) of a question: its wording and its value; -1 if the part cannot be built."""
Skill = Callable[[Random, Sequence[Value]], Said]
"""A function that generates a random part of a question from the given values, at most two."""


def _element(rng: Random, values: Sequence[Value]) -> Said:
    element = rng.choice(TAMED)
    facts = (
        (f"the atomic number of {element.name}", element.number),
        (f"the number of protons in the nucleus of {element.name}", element.number),
        (f"the number of letters in the English name of {element.name}", len(element.name)),
    )
    return rng.choice(facts)


def _planet(rng: Random, values: Sequence[Value]) -> Said:
    name = rng.choice(PLANETS[1:])
    return f"the position of {name} {ORDER}", PLANETS.index(name) + 1


def _found_element(rng: Random, values: Sequence[Value]) -> Said:
    [number] = values
    element = BY_NUMBER.get(number.number)
    if element not in TAMED:
        return "", -1
    whose = f"the element with atomic number {number.name}"
    facts = (
        (f"the number of letters in the English name of {whose}", len(element.name)),
        (f"the period of {whose}", element.period),
    )
    return rng.choice(facts)


def _factors(rng: Random, values: Sequence[Value]) -> Said:
    x, y = (*values, _stated(rng, 12, 96))[:2]
    common = (
        (f"the greatest common divisor of {x.name} and {y.name}", gcd(x.number, y.number)),
        (f"the least common multiple of {x.name} and {y.name}", lcm(x.number, y.number)),
    )
    if len(values) == 2 or rng.random() < 0.4 or x.number > FACTORED:
        return rng.choice(common)
    numbers = divisors(x.number)
    alone = (
        (f"the number of positive divisors of {x.name}", len(numbers)),
        (f"the sum of all positive divisors of {x.name}", sum(numbers)),
        (f"the largest prime factor of {x.name}", max(filter(is_prime, numbers))),
    )
    return rng.choice(alone)


def _choices(rng: Random, values: Sequence[Value]) -> Said:
    x, y = (*values, _stated(rng, 2, 5))[:2]
    n, k = (x, y) if x.number >= y.number else (y, x)
    if not 2 <= n.number <= 60 or not 1 <= k.number < n.number:
        return "", -1
    ways = comb(n.number, k.number)
    phrases = (
        f"the binomial coefficient C({n.name}, {k.name})",
        f"the number of ways in which a committee of {k.name} people can be chosen from {n.name} "
        "people",
        f"the number of subsets with exactly {k.name} elements of a set of {n.name} elements",
    )
    return rng.choice(phrases), ways


def _digits(rng: Random, values: Sequence[Value]) -> Said:
    x, base = (*values, _stated(rng, 2, 9))[:2]
    if not 2 <= base.number <= 9:
        x, base = base, x
    if not 2 <= base.number <= 9 or x.number < 2:
        return "", -1
    written = int(in_base(x.number, base.number))
    phrases = (
        (
            f"the sum of the digits of {x.name} when it is written in base {base.name}",
            digit_sum(written),
        ),
        (f"{x.name} written in base {base.name}", written),
        (f"{x.name} converted to base {base.name}", written),
    )
    return rng.choice(phrases)


def _sums(rng: Random, values: Sequence[Value]) -> Said:
    x, n, m = values[0], rng.randint(2, 30), rng.randint(2, 60)
    if len(values) == 2:
        y = values[1]
        both = (
            (f"the sum of {x.name} and {y.name}", x.number + y.number),
            (f"{n} * {x.name} + {y.name}", n * x.number + y.number),
            (f"the product of {x.name} and {y.name}", x.number * y.number),
        )
        return rng.choice(both)
    alone = (
        (f"{n} * {x.name} + {m}", n * x.number + m),
        (f"the remainder when {n} * {x.name} is divided by {m}", n * x.number % m),
    )
    return rng.choice(alone)


def _stated(rng: Random, low: int, high: int) -> Value:
    number = rng.randint(low, high)
    return Value(str(number), number)


SKILLS: Mapping[str, Skill] = {
    "E": _element, "P": _planet, "L": _found_element,
    "F": _factors, "C": _choices, "D": _digits, "K": _sums,
}  # fmt: skip
FACTS = "EP"
SHAPES = (
    "K", "kK", "kkK",
    "EF", "EC", "ED", "PK", "FC", "CD", "DF", "KD",
    "EKC", "EFD", "PCF", "EPK", "EPF", "FLK", "DCF", "CKF", "PKD", "FEK",
    "EFLC", "PCFK", "EKDC", "EPKF", "FCDK", "DFLK", "ECKD", "KFLC",
    "EPCFD", "EFLKC", "PKFCD", "EDCKF", "CFDLK", "KDFLC",
)  # fmt: skip
"""A string per kind of question; each letter is the skill of a part (a key of SKILLS). E, P,
lower-case letters and first parts use no earlier part, others the latest one or two unused ones."""


def _drawn(shape: str) -> Topic:
    """Return the topic (generator) of questions whose parts need the skills in `shape` (EFC)."""

    def topic(rng: Random) -> Draft | None:
        letters, open_parts, sentences = rng.sample(LETTERS, len(shape)), list[Value](), list[str]()
        words, number = "", -1
        for i, (skill, letter) in enumerate(zip(shape, letters, strict=True)):
            values, open_parts = _given(rng, skill, open_parts)
            words, number = SKILLS[skill.upper()](rng, values)
            is_final = i == len(shape) - 1
            if number < (LEAST if is_final else 2) or number > MOST:
                return None
            sentences.append(f"Let {letter} be {words}.")
            open_parts.append(Value(letter, number))
        text = " ".join(sentences[:-1])
        wordings = (f"{text} What is {words}?", f"{text} Find {words}.")
        return IntegerProblem(rng, text + words, number).worded(*map(str.strip, wordings))

    return topic


def _given(rng: Random, skill: str, values: list[Value]) -> tuple[list[Value], list[Value]]:
    """Return the values that a part uses, and the earlier values that are still unused."""
    if skill in FACTS:
        return [], values
    if skill.islower() or not values:
        return [_stated(rng, 5, 60)], values
    return values[-2:], values[:-2]


SUITE = PracticeSuite(
    name="practice-deep",
    version="3-A",
    topics={shape: _drawn(shape) for shape in SHAPES},
    write=integer_question,
    judge=grade_integer,
    sizes={"train": 600, "validation": 200, "eval": 300},
)


@task
@user_errors
def practice_deep(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated questions of one to five dependent parts; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
