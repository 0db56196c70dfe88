"""`practice-composed`: generated questions that need a fact and a computation, in 2 to 4 hops.

No step is hard for a worker with the right strength, but the computation cannot start before the
fact is known, so a plan must let a later step read an earlier reply.
"""

from math import comb, gcd
from random import Random

from inspect_ai import Task, task

from harness.inspect_adapters import as_task
from harness.suite import Split
from suites.practice import Draft, PracticeSuite, asked
from suites.practice_composed_direct import DIRECT
from suites.practice_facts import BY_NUMBER, ELEMENTS, PLANETS, Element
from suites.practice_integer import grade_integer, integer_question
from suites.practice_integer_numbers import digit_sum, divisors, is_prime
from suites.refusing import refusing

TWO_SPELLINGS = ("Al", "S", "Cs")
"""Elements whose English name differs across the Atlantic: their letters are not counted."""


def _two(rng: Random) -> tuple[Element, Element]:
    first, second = rng.sample(ELEMENTS, 2)
    return first, second


def power(rng: Random) -> Draft | None:
    """One atomic number to the power of another, modulo a number: two facts, one computation."""
    a, b = _two(rng)
    modulus = rng.randint(11, 997)
    return asked(
        rng,
        f"power of numbers {a.symbol} {b.symbol} {modulus}",
        pow(a.number, b.number, modulus),
        f"Let a be the atomic number of {a.name} and b the atomic number of {b.name}. What is the "
        f"remainder when a^b is divided by {modulus}?",
        f"Let $a$ be the number of protons in a {a.name} nucleus and $b$ the number of protons in "
        rf"a {b.name} nucleus. Compute $a^b \bmod {modulus}$.",
    )


def common(rng: Random) -> Draft | None:
    """A common divisor or multiple of two atomic numbers times a factor."""
    a, b = _two(rng)
    factor = rng.randint(2, 30)
    left, right = a.number * factor, b.number * (factor + 6)
    return asked(
        rng,
        f"common divisor {a.symbol} {b.symbol} {factor}",
        gcd(left, right),
        f"Multiply the atomic number of {a.name} by {factor} and the atomic number of {b.name} by "
        f"{factor + 6}. What is the greatest common divisor of the two products?",
        f"Let $x$ be ${factor}$ times the atomic number of {a.name} and let $y$ be ${factor + 6}$ "
        rf"times the atomic number of {b.name}. Find $\gcd(x, y)$.",
    )


def divisor_sum(rng: Random) -> Draft | None:
    """Divisors of a number built from two atomic numbers."""
    a, b = _two(rng)
    extra = rng.randint(1, 60)
    n = a.number + b.number + extra
    return asked(
        rng,
        f"divisors of sum {a.symbol} {b.symbol} {extra}",
        sum(divisors(n)),
        f"Add the atomic numbers of {a.name} and {b.name}, then add {extra}. What is the sum of "
        "all positive divisors of the result?",
        f"Let $n = a + b + {extra}$, where $a$ and $b$ are the atomic numbers of {a.name} and "
        f"{b.name}. Find the sum of the positive divisors of $n$.",
    )


def planet_choose(rng: Random) -> Draft | None:
    """A planet's place and an element's number in a binomial coefficient."""
    element, planet = rng.choice(ELEMENTS), rng.choice(PLANETS)
    place = PLANETS.index(planet) + 1
    if element.number < place:
        return None
    modulus = rng.randint(50, 999)
    return asked(
        rng,
        f"choose {element.symbol} {planet} {modulus}",
        comb(element.number, place) % modulus,
        f"Let n be the atomic number of {element.name} and let k be the position of {planet} in "
        "order from the Sun (the nearest planet has position 1). What is the remainder when the "
        f"binomial coefficient C(n, k) is divided by {modulus}?",
        f"Counting from the Sun, {planet} is planet number $k$. The atomic number of "
        rf"{element.name} is $n$. Find $\binom{{n}}{{k}} \bmod {modulus}$.",
    )


def primes_between(rng: Random) -> Draft | None:
    """Primes between two atomic numbers times a factor."""
    a, b = sorted(_two(rng), key=lambda element: element.number)
    factor = rng.randint(2, 9)
    low, high = a.number * factor, b.number * factor
    return asked(
        rng,
        f"primes between {a.symbol} {b.symbol} {factor}",
        sum(is_prime(n) for n in range(low, high + 1)),
        f"How many prime numbers are there from {factor} times the atomic number of {a.name} to "
        f"{factor} times the atomic number of {b.name}, inclusive?",
        f"Let $a$ and $b$ be the atomic numbers of {a.name} and {b.name}. Find the number of "
        rf"primes $p$ with ${factor}a \le p \le {factor}b$.",
    )


def found_element(rng: Random) -> Draft | None:
    """Compute, look up, compute: the element whose atomic number is a number of divisors."""
    n = rng.randint(60, 2000)
    element = BY_NUMBER[len(divisors(n))]
    if element.symbol in TWO_SPELLINGS:
        return None
    base, modulus = rng.randint(2, 30), rng.randint(20, 999)
    exponent = len(element.name) + element.period
    return asked(
        rng,
        f"found element {n} {base} {modulus}",
        pow(base, exponent, modulus),
        f"The number {n} has d positive divisors. Take the element with atomic number d, count the "
        "letters of its English name and add the number of its period in the periodic table; call "
        f"the result e. What is the remainder when {base}^e is divided by {modulus}?",
        f"Let $d$ be the number of positive divisors of ${n}$, let X be the element with atomic "
        "number $d$, and let $e$ be the number of letters in the English name of X plus the period "
        rf"of X. Compute ${base}^e \bmod {modulus}$.",
    )


def neighbour(rng: Random) -> Draft | None:
    """Look up, compute, look up, compute: an element a computed distance away."""
    start = rng.choice([element for element in ELEMENTS if element.number <= 22])
    planet = rng.choice(PLANETS)
    place = PLANETS.index(planet) + 1
    element = BY_NUMBER[start.number + place]
    if element.symbol in TWO_SPELLINGS:
        return None
    factor = rng.randint(3, 60)
    return asked(
        rng,
        f"neighbour {start.symbol} {planet} {factor}",
        digit_sum((factor * len(element.name)) ** element.period),
        f"Start at {start.name} in the periodic table and go forward by as many elements as the "
        f"position of {planet} from the Sun (nearest planet: 1). Let L be the number of letters in "
        f"the English name of the element you reach and p its period. What is the sum of the "
        f"digits of ({factor} * L)^p?",
    )


SUITE = PracticeSuite(
    name="practice-composed",
    version="3-A",
    topics={
        **DIRECT,
        "power": power,
        "common divisor": common,
        "divisor sum": divisor_sum,
        "planet and element": planet_choose,
        "primes between": primes_between,
        "found element": found_element,
        "neighbour": neighbour,
    },
    write=integer_question,
    judge=grade_integer,
)


@task
@refusing
def practice_composed(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated questions of two to four hops; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
