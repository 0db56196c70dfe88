"""Two-hop questions of `practice-composed`: look up one or two facts, then one computation.

They name the facts where the numbers would stand, so the computation is a plain one as soon as the
facts are known. The longer chains are in practice_composed.py.
"""

from collections.abc import Mapping
from math import comb, gcd, lcm
from random import Random

from suites.practice import Draft, asked
from suites.practice_facts import ELEMENTS, PLANETS
from suites.practice_integer_numbers import digit_sum, divisors, is_prime

ORDER = "in order from the Sun"


def two_elements(rng: Random) -> Draft | None:
    """A sum, product or difference of two atomic numbers."""
    a, b = rng.sample(ELEMENTS, 2)
    left, right = f"the atomic number of {a.name}", f"the atomic number of {b.name}"
    word, answer = rng.choice((("sum", a.number + b.number), ("product", a.number * b.number)))
    return asked(
        rng,
        f"{word} of numbers {a.symbol} {b.symbol}",
        answer,
        f"What is the {word} of {left} and {right}?",
        f"Find the {word} of the atomic numbers of {a.name} and {b.name}.",
    )


def common(rng: Random) -> Draft | None:
    """The greatest common divisor or least common multiple of two atomic numbers."""
    a, b = rng.sample(ELEMENTS, 2)
    left, right = f"the atomic number of {a.name}", f"the atomic number of {b.name}"
    word, answer = rng.choice(
        (
            ("greatest common divisor", gcd(a.number, b.number)),
            ("least common multiple", lcm(a.number, b.number)),
            ("least common multiple", lcm(a.number, b.number)),
        )
    )
    return asked(
        rng,
        f"{word} of numbers {a.symbol} {b.symbol}",
        answer,
        f"What is the {word} of {left} and {right}?",
        f"Compute the {word} of the atomic numbers of {a.name} and {b.name}.",
    )


def power(rng: Random) -> Draft | None:
    """A number to the power of a fact, or a fact to the power of a number, modulo a number."""
    element, n, modulus = rng.choice(ELEMENTS), rng.randint(2, 30), rng.randint(11, 997)
    fact = f"the atomic number of {element.name}"
    if rng.random() < 0.5:
        return asked(
            rng,
            f"{n} to the number of {element.symbol} mod {modulus}",
            pow(n, element.number, modulus),
            f"What is the remainder when {n} to the power of {fact} is divided by {modulus}?",
            f"Raise {n} to the power of {fact}. What remainder does the result leave on division "
            f"by {modulus}?",
        )
    return asked(
        rng,
        f"number of {element.symbol} to the {n} mod {modulus}",
        pow(element.number, n, modulus),
        f"What is the remainder when {fact} to the power of {n} is divided by {modulus}?",
        f"Find the remainder when {fact}, raised to the power {n}, is divided by {modulus}.",
    )


def of_number(n: int, fact: str) -> Mapping[str, tuple[int, tuple[str, str]]]:
    """Return what can be asked of a number that a fact names: the answer, and two wordings."""
    return {
        "divisor count": (len(divisors(n)), (
            f"How many positive divisors does {fact} have?",
            f"Find the number of positive divisors of {fact}.")),
        "divisor sum": (sum(divisors(n)), (
            f"What is the sum of all positive divisors of {fact}?",
            f"Find the sum of the positive divisors of {fact}.")),
        "primes": (sum(map(is_prime, range(n))), (
            f"How many prime numbers are less than {fact}?",
            f"Count the primes below {fact}.")),
        "digits": (digit_sum(n**3), (
            f"What is the sum of the digits of the cube of {fact}?",
            f"Take {fact} and cube it. What is the digit sum of the result?")),
    }  # fmt: skip


def one_element(rng: Random) -> Draft | None:
    """Divisors, primes and digits of one atomic number times a factor."""
    element, factor = rng.choice(ELEMENTS), rng.randint(2, 15)
    n = factor * element.number
    fact = f"{factor} times the atomic number of {element.name}"
    word, (answer, texts) = rng.choice([*of_number(n, fact).items()])
    return asked(rng, f"{word} of {factor} times {element.symbol}", answer, *texts)


def planet(rng: Random) -> Draft | None:
    """A planet's position in a power or a binomial coefficient."""
    name, n = rng.choice(PLANETS), rng.randint(2, 40)
    place = PLANETS.index(name) + 1
    fact = f"the position of {name} {ORDER}"
    if rng.random() < 0.5:
        return asked(
            rng,
            f"{n} to the place of {name}",
            n**place % 1000,
            f"What is the remainder when {n} to the power of {fact} is divided by 1000?",
            f"Raise {n} to the power of {fact} and give the remainder on division by 1000.",
        )
    return asked(
        rng,
        f"choose place of {name} from {n}",
        comb(n, place),
        f"In how many ways can a committee be chosen from {n} people if the number of its members "
        f"is {fact}?",
        f"A set has {n} elements. Let k be {fact}. How many of its subsets have k elements?",
    )


DIRECT = {
    "two elements": two_elements,
    "common multiples": common,
    "power of a fact": power,
    "one element": one_element,
    "planets": planet,
}
