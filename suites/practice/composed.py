"""`practice-composed`: generated questions that need facts and a computation, in 2 to 4 steps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import comb, gcd, lcm
from random import Random

from inspect_ai import Task, task

from podium.harness.inspect_adapters import as_task
from podium.harness.suite import Split
from podium.suites.base import user_errors
from podium.suites.practice import Draft, IntegerProblem, PracticeSuite, Topic
from podium.suites.practice.integer import (
    digit_sum,
    divisors,
    grade_integer,
    integer_question,
    is_prime,
)

CATEGORIES = ("alkali metal", "alkaline earth metal", "transition metal", "halogen", "noble gas")
_ROWS = """
hydrogen H 1 1; helium He 2 1 noble gas; lithium Li 3 2 alkali metal;
beryllium Be 4 2 alkaline earth metal; boron B 5 2; carbon C 6 2; nitrogen N 7 2; oxygen O 8 2;
fluorine F 9 2 halogen; neon Ne 10 2 noble gas; sodium Na 11 3 alkali metal;
magnesium Mg 12 3 alkaline earth metal; aluminium Al 13 3; silicon Si 14 3; phosphorus P 15 3;
sulfur S 16 3; chlorine Cl 17 3 halogen; argon Ar 18 3 noble gas; potassium K 19 4 alkali metal;
calcium Ca 20 4 alkaline earth metal; scandium Sc 21 4 transition metal;
titanium Ti 22 4 transition metal; vanadium V 23 4 transition metal;
chromium Cr 24 4 transition metal; manganese Mn 25 4 transition metal;
iron Fe 26 4 transition metal; cobalt Co 27 4 transition metal; nickel Ni 28 4 transition metal;
copper Cu 29 4 transition metal; zinc Zn 30 4; gallium Ga 31 4; germanium Ge 32 4; arsenic As 33 4;
selenium Se 34 4; bromine Br 35 4 halogen; krypton Kr 36 4 noble gas; rubidium Rb 37 5 alkali metal;
strontium Sr 38 5 alkaline earth metal; yttrium Y 39 5; zirconium Zr 40 5 transition metal;
niobium Nb 41 5 transition metal; molybdenum Mo 42 5 transition metal;
palladium Pd 46 5 transition metal; silver Ag 47 5 transition metal; cadmium Cd 48 5; tin Sn 50 5;
antimony Sb 51 5; tellurium Te 52 5; iodine I 53 5 halogen; xenon Xe 54 5 noble gas;
caesium Cs 55 6 alkali metal; barium Ba 56 6 alkaline earth metal; tungsten W 74 6 transition metal;
platinum Pt 78 6 transition metal; gold Au 79 6 transition metal; mercury Hg 80 6; lead Pb 82 6;
bismuth Bi 83 6; radon Rn 86 6 noble gas; radium Ra 88 7 alkaline earth metal; uranium U 92 7
"""
AboutTwo = Callable[[Random, int, int], tuple[str, int]]
"""A function that chooses an operation on two numbers, and returns its name and the result."""
PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune")
"""The planets in order of distance from the Sun."""
UNITS = {
    "force": "newton", "energy": "joule", "power": "watt", "pressure": "pascal",
    "frequency": "hertz", "electric charge": "coulomb", "electric potential": "volt",
    "electrical resistance": "ohm", "capacitance": "farad", "inductance": "henry",
    "magnetic flux density": "tesla", "magnetic flux": "weber", "electrical conductance": "siemens",
    "radioactivity": "becquerel", "luminous intensity": "candela", "amount of substance": "mole",
    "thermodynamic temperature": "kelvin", "electric current": "ampere",
}  # fmt: skip
CONSTANTS = {
    "the speed of light in vacuum": ("3.00", 8, "m/s"),
    "the Planck constant": ("6.63", -34, "J s"),
    "the elementary charge": ("1.60", -19, "C"),
    "the Avogadro constant": ("6.02", 23, "per mole"),
    "the Boltzmann constant": ("1.38", -23, "J/K"),
    "the gravitational constant": ("6.67", -11, "N m^2/kg^2"),
    "the molar gas constant": ("8.31", 0, "J/(mol K)"),
    "the mass of an electron": ("9.11", -31, "kg"),
    "the mass of a proton": ("1.67", -27, "kg"),
    "the standard acceleration of gravity": ("9.81", 0, "m/s^2"),
    "the Faraday constant": ("9.65", 4, "C/mol"),
    "the vacuum permittivity": ("8.85", -12, "F/m"),
}
"""Physical constants by name, with CODATA values to three digits: mantissa, power of ten, unit."""
COMPOUNDS = {
    "H2O": "water", "CO2": "carbon dioxide", "NH3": "ammonia", "CH4": "methane",
    "H2SO4": "sulfuric acid", "HNO3": "nitric acid", "NaOH": "sodium hydroxide",
    "CaCO3": "calcium carbonate", "C2H6O": "ethanol", "C6H12O6": "glucose", "SO2": "sulfur dioxide",
    "MgO": "magnesium oxide", "KNO3": "potassium nitrate", "C3H8": "propane",
    "H2O2": "hydrogen peroxide", "CaO": "calcium oxide", "NaHCO3": "sodium hydrogen carbonate",
    "C6H6": "benzene",
}  # fmt: skip
ORDER = "in order from the Sun"
TWO_SPELLINGS = ("Al", "S", "Cs")
"""Elements spelt differently in British and American English: no question counts their letters."""


@dataclass(frozen=True, slots=True)
class Element:
    """A chemical element, with the facts about it that questions need."""

    name: str
    symbol: str
    number: int
    period: int
    category: str | None = None
    """One of CATEGORIES; None, and never asked for, if textbooks differ or none fits."""


def _element(name: str, symbol: str, number: str, period: str, *words: str) -> Element:
    return Element(name, symbol, int(number), int(period), " ".join(words) or None)


ELEMENTS = tuple(_element(*row.split()) for row in _ROWS.split(";"))
BY_NUMBER = {element.number: element for element in ELEMENTS}


def gcd_or_lcm(rng: Random, a: int, b: int) -> tuple[str, int]:
    """Return the name and the value of the gcd or the lcm of a and b, chosen at random."""
    multiple = "least common multiple", lcm(a, b)
    return rng.choice((("greatest common divisor", gcd(a, b)), multiple, multiple))


def sum_or_product(rng: Random, a: int, b: int) -> tuple[str, int]:
    """Return the name and the value of the sum or the product of a and b, chosen at random."""
    return rng.choice((("sum", a + b), ("product", a * b)))


def _of_two(operation: AboutTwo, verb: str) -> Topic:
    def topic(rng: Random) -> Draft | None:
        a, b = rng.sample(ELEMENTS, 2)
        word, answer = operation(rng, a.number, b.number)
        return IntegerProblem(rng, f"{word} of numbers {a.symbol} {b.symbol}", answer).worded(
            f"What is the {word} of the atomic number of {a.name} and the atomic number of "
            f"{b.name}?",
            f"{verb} the {word} of the atomic numbers of {a.name} and {b.name}.",
        )

    return topic


def _power_direct(rng: Random) -> Draft | None:
    element, n, modulus = rng.choice(ELEMENTS), rng.randint(2, 30), rng.randint(11, 997)
    fact = f"the atomic number of {element.name}"
    if rng.random() < 0.5:
        key = f"{n} to the number of {element.symbol} mod {modulus}"
        return IntegerProblem(rng, key, pow(n, element.number, modulus)).worded(
            f"What is the remainder when {n} to the power of {fact} is divided by {modulus}?",
            f"Raise {n} to the power of {fact}. What remainder does the result leave on division "
            f"by {modulus}?",
        )
    key = f"number of {element.symbol} to the {n} mod {modulus}"
    return IntegerProblem(rng, key, pow(element.number, n, modulus)).worded(
        f"What is the remainder when {fact} to the power of {n} is divided by {modulus}?",
        f"Find the remainder when {fact}, raised to the power {n}, is divided by {modulus}.",
    )


def of_number(n: int, fact: str) -> Mapping[str, tuple[int, tuple[str, str]]]:
    """Return kind of question -> (answer, two wordings); the wordings call the number n `fact`."""
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


def _one_element(rng: Random) -> Draft | None:
    element, factor = rng.choice(ELEMENTS), rng.randint(2, 15)
    fact = f"{factor} times the atomic number of {element.name}"
    word, (answer, texts) = rng.choice([*of_number(factor * element.number, fact).items()])
    return IntegerProblem(rng, f"{word} of {factor} times {element.symbol}", answer).worded(*texts)


def _planet_direct(rng: Random) -> Draft | None:
    name, n = rng.choice(PLANETS), rng.randint(2, 40)
    place = PLANETS.index(name) + 1
    fact = f"the position of {name} {ORDER}"
    if rng.random() < 0.5:
        return IntegerProblem(rng, f"{n} to the place of {name}", n**place % 1000).worded(
            f"What is the remainder when {n} to the power of {fact} is divided by 1000?",
            f"Raise {n} to the power of {fact} and give the remainder on division by 1000.",
        )
    return IntegerProblem(rng, f"choose place of {name} from {n}", comb(n, place)).worded(
        f"In how many ways can a committee be chosen from {n} people if the number of its members "
        f"is {fact}?",
        f"A set has {n} elements. Let k be {fact}. How many of its subsets have k elements?",
    )


def _power(rng: Random) -> Draft | None:
    a, b = rng.sample(ELEMENTS, 2)
    modulus = rng.randint(11, 997)
    key = f"power of numbers {a.symbol} {b.symbol} {modulus}"
    return IntegerProblem(rng, key, pow(a.number, b.number, modulus)).worded(
        f"Let a be the atomic number of {a.name} and b the atomic number of {b.name}. What is the "
        f"remainder when a^b is divided by {modulus}?",
        f"Let $a$ be the number of protons in a {a.name} nucleus and $b$ the number of protons in "
        rf"a {b.name} nucleus. Compute $a^b \bmod {modulus}$.",
    )


def _common(rng: Random) -> Draft | None:
    a, b = rng.sample(ELEMENTS, 2)
    factor = rng.randint(2, 30)
    x, y = a.number * factor, b.number * (factor + 6)
    key = f"common divisor {a.symbol} {b.symbol} {factor}"
    return IntegerProblem(rng, key, gcd(x, y)).worded(
        f"Multiply the atomic number of {a.name} by {factor} and the atomic number of {b.name} by "
        f"{factor + 6}. What is the greatest common divisor of the two products?",
        f"Let $x$ be ${factor}$ times the atomic number of {a.name} and let $y$ be ${factor + 6}$ "
        rf"times the atomic number of {b.name}. Find $\gcd(x, y)$.",
    )


def _divisor_sum(rng: Random) -> Draft | None:
    a, b = rng.sample(ELEMENTS, 2)
    extra = rng.randint(1, 60)
    n = a.number + b.number + extra
    key = f"divisors of sum {a.symbol} {b.symbol} {extra}"
    return IntegerProblem(rng, key, sum(divisors(n))).worded(
        f"Add the atomic numbers of {a.name} and {b.name}, then add {extra}. What is the sum of "
        "all positive divisors of the result?",
        f"Let $n = a + b + {extra}$, where $a$ and $b$ are the atomic numbers of {a.name} and "
        f"{b.name}. Find the sum of the positive divisors of $n$.",
    )


def _planet_choose(rng: Random) -> Draft | None:
    element, planet = rng.choice(ELEMENTS), rng.choice(PLANETS)
    place = PLANETS.index(planet) + 1
    if element.number < place:
        return None
    modulus = rng.randint(50, 999)
    key = f"choose {element.symbol} {planet} {modulus}"
    return IntegerProblem(rng, key, comb(element.number, place) % modulus).worded(
        f"Let n be the atomic number of {element.name} and let k be the position of {planet} in "
        "order from the Sun (the nearest planet has position 1). What is the remainder when the "
        f"binomial coefficient C(n, k) is divided by {modulus}?",
        f"Counting from the Sun, {planet} is planet number $k$. The atomic number of "
        rf"{element.name} is $n$. Find $\binom{{n}}{{k}} \bmod {modulus}$.",
    )


def _primes_between(rng: Random) -> Draft | None:
    a, b = sorted(rng.sample(ELEMENTS, 2), key=lambda element: element.number)
    factor = rng.randint(2, 9)
    low, high = a.number * factor, b.number * factor
    key = f"primes between {a.symbol} {b.symbol} {factor}"
    return IntegerProblem(rng, key, sum(is_prime(n) for n in range(low, high + 1))).worded(
        f"How many prime numbers are there from {factor} times the atomic number of {a.name} to "
        f"{factor} times the atomic number of {b.name}, inclusive?",
        f"Let $a$ and $b$ be the atomic numbers of {a.name} and {b.name}. Find the number of "
        rf"primes $p$ with ${factor}a \le p \le {factor}b$.",
    )


def _found_element(rng: Random) -> Draft | None:
    n = rng.randint(60, 2000)
    element = BY_NUMBER[len(divisors(n))]
    if element.symbol in TWO_SPELLINGS:
        return None
    base, modulus = rng.randint(2, 30), rng.randint(20, 999)
    exponent = len(element.name) + element.period
    key = f"found element {n} {base} {modulus}"
    return IntegerProblem(rng, key, pow(base, exponent, modulus)).worded(
        f"The number {n} has d positive divisors. Take the element with atomic number d, count the "
        "letters of its English name and add the number of its period in the periodic table; call "
        f"the result e. What is the remainder when {base}^e is divided by {modulus}?",
        f"Let $d$ be the number of positive divisors of ${n}$, let X be the element with atomic "
        "number $d$, and let $e$ be the number of letters in the English name of X plus the period "
        rf"of X. Compute ${base}^e \bmod {modulus}$.",
    )


def _neighbour(rng: Random) -> Draft | None:
    start = rng.choice([element for element in ELEMENTS if element.number <= 22])
    planet = rng.choice(PLANETS)
    place = PLANETS.index(planet) + 1
    element = BY_NUMBER[start.number + place]
    if element.symbol in TWO_SPELLINGS:
        return None
    factor = rng.randint(3, 60)
    answer = digit_sum((factor * len(element.name)) ** element.period)
    return IntegerProblem(rng, f"neighbour {start.symbol} {planet} {factor}", answer).worded(
        f"Start at {start.name} in the periodic table and go forward by as many elements as the "
        f"position of {planet} from the Sun (nearest planet: 1). Let L be the number of letters in "
        f"the English name of the element you reach and p its period. What is the sum of the "
        f"digits of ({factor} * L)^p?"
    )


SUITE = PracticeSuite(
    name="practice-composed",
    version="6-A",
    topics={
        "two elements": _of_two(sum_or_product, "Find"),
        "common multiples": _of_two(gcd_or_lcm, "Compute"),
        "power of a fact": _power_direct,
        "one element": _one_element,
        "planets": _planet_direct,
        "power": _power,
        "common divisor": _common,
        "divisor sum": _divisor_sum,
        "planet and element": _planet_choose,
        "primes between": _primes_between,
        "found element": _found_element,
        "neighbour": _neighbour,
    },
    write=integer_question,
    judge=grade_integer,
)


@task
@user_errors
def practice_composed(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated questions that need two to four steps; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
