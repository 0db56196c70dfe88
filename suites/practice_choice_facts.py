"""The fact questions of `practice-choice`: elements, planets, units and constants.

The wrong options are other facts of the same kind, near the right one.
"""

from collections.abc import Sequence
from random import Random

from suites.practice import Draft, any_of
from suites.practice_facts import CATEGORIES, CONSTANTS, ELEMENTS, PLANETS, UNITS


def choice(
    rng: Random, key: str, right: str, wrong: Sequence[str], *phrasings: str
) -> Draft | None:
    """Return a four-way question; None when fewer than three wrong options differ from it."""
    others = list(dict.fromkeys(option for option in wrong if option != right))
    if len(others) < 3:
        return None
    options = tuple(rng.sample(others, 3))
    return Draft(key=key, text=rng.choice(phrasings), target=right, options=options)


def element_symbol(rng: Random) -> Draft | None:
    """Ask for an element's symbol; wrong options look alike."""
    element = rng.choice(ELEMENTS)
    alike = [e.symbol for e in ELEMENTS if e.symbol[0] == element.symbol[0]]
    made_up = [element.name[:2].title(), element.name[0].upper() + element.name[2]]
    return choice(
        rng,
        f"symbol {element.name}",
        element.symbol,
        [*alike, *made_up, *(e.symbol for e in rng.sample(ELEMENTS, 2))],
        f"What is the chemical symbol of {element.name}?",
        f"Which symbol stands for the element {element.name} in the periodic table?",
    )


def element_name(rng: Random) -> Draft | None:
    """Ask which element a symbol stands for."""
    element = rng.choice(ELEMENTS)
    alike = [e.name for e in ELEMENTS if e.name[0] == element.symbol[0].lower()]
    return choice(
        rng,
        f"name {element.symbol}",
        element.name,
        [*alike, *(e.name for e in rng.sample(ELEMENTS, 3))],
        f"Which element has the symbol {element.symbol}?",
        f"The symbol {element.symbol} stands for which chemical element?",
    )


def atomic_number(rng: Random) -> Draft | None:
    """Ask for an atomic number, or for the element that has it."""
    element = rng.choice(ELEMENTS)
    number = element.number
    if rng.random() < 0.5:
        near = [str(number + off) for off in (-8, -2, -1, 1, 2, 8, 10) if number + off > 0]
        return choice(
            rng,
            f"number of {element.name}",
            str(number),
            near,
            f"What is the atomic number of {element.name}?",
            f"How many protons are in the nucleus of an atom of {element.name}?",
            f"A neutral atom of {element.name} has how many electrons?",
        )
    near = [e.name for e in ELEMENTS if abs(e.number - number) <= 6]
    return choice(
        rng,
        f"element with number {number}",
        element.name,
        near,
        f"Which element has the atomic number {number}?",
        f"An atom has {number} protons. Which element is it?",
    )


def element_place(rng: Random) -> Draft | None:
    """Ask for an element's period, or which element belongs to a category."""
    element = rng.choice(ELEMENTS)
    if element.category is None or rng.random() < 0.4:
        return choice(
            rng,
            f"period of {element.name}",
            f"period {element.period}",
            [f"period {period}" for period in range(1, 8)],
            f"In which period of the periodic table is {element.name}?",
            f"To which row (period) of the periodic table does {element.name} belong?",
        )
    others = [e.name for e in ELEMENTS if e.category not in (element.category, None)]
    if rng.random() < 0.5:
        return choice(
            rng,
            f"which is {element.category}: {element.name}",
            element.name,
            others,
            f"Which of these elements is a {element.category}?".replace("a al", "an al"),
        )
    return choice(
        rng,
        f"category of {element.name}",
        element.category,
        CATEGORIES,
        f"What kind of element is {element.name}?",
        f"To which group of elements does {element.name} belong?",
    )


def planet(rng: Random) -> Draft | None:
    """Ask about the order of the planets."""
    at = rng.randrange(len(PLANETS))
    name = PLANETS[at]
    ordinal = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")[at]
    if rng.random() < 0.4:
        return choice(
            rng, f"planet {at}", name, PLANETS, f"Which planet is the {ordinal} from the Sun?"
        )
    if rng.random() < 0.5 and 0 < at < 7:
        return choice(
            rng,
            f"between {at}",
            name,
            PLANETS,
            f"Which planet's orbit lies between those of {PLANETS[at - 1]} and {PLANETS[at + 1]}?",
        )
    further, nearer = rng.sample(PLANETS, 2)
    gap = abs(PLANETS.index(further) - PLANETS.index(nearer)) - 1
    return choice(
        rng,
        f"planets between {sorted((further, nearer))}",
        str(gap),
        [str(n) for n in range(7)],
        f"How many planets orbit the Sun between {nearer} and {further}?",
    )


def unit(rng: Random) -> Draft | None:
    """Ask for the unit of a quantity, or what a unit measures."""
    quantity, name = rng.choice(list(UNITS.items()))
    if rng.random() < 0.5:
        return choice(
            rng,
            f"unit of {quantity}",
            name,
            list(UNITS.values()),
            f"What is the SI unit of {quantity}?",
            f"In which SI unit is {quantity} measured?",
        )
    return choice(
        rng,
        f"quantity in {name}",
        quantity,
        list(UNITS),
        f"Which quantity has the {name} as its SI unit?",
        f"The {name} is the SI unit of which quantity?",
    )


def constant(rng: Random) -> Draft | None:
    """Ask for the value of a constant of nature; wrong options are off by powers of ten."""
    name, (mantissa, power, unit_name) = rng.choice(list(CONSTANTS.items()))
    near = [power + off for off in (-3, -2, -1, 1, 2, 3)]
    return choice(
        rng,
        f"constant {name}",
        f"{mantissa} x 10^{power} {unit_name}",
        [f"{mantissa} x 10^{other} {unit_name}" for other in near],
        f"Which of these is closest to {name}?",
        f"What is the approximate value of {name}?",
    )


FACTS = {
    "elements": any_of(element_symbol, element_name, atomic_number),
    "periodic table": any_of(element_place, atomic_number),
    "planets": planet,
    "units and constants": any_of(unit, unit, constant),
}
