"""`practice-choice`: generated four-way science questions, shaped like GPQA questions."""

import re
from collections.abc import Sequence
from decimal import Decimal
from random import Random

from inspect_ai import Task, task

from harness.inspect_adapters import as_task
from harness.records import Question
from harness.suite import Split
from suites.base import LETTERS, choice_metadata, choice_text, grade_choice, user_errors
from suites.practice import Draft, PracticeSuite, any_of
from suites.practice.composed import (
    CATEGORIES,
    COMPOUNDS,
    CONSTANTS,
    ELEMENTS,
    MASSES,
    PLANETS,
    UNITS,
)

# § The fact questions of `practice-choice`: elements, planets, units and constants.
# §
# § The wrong options are other facts of the same kind, near the right one.


def choice_draft(
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
    return choice_draft(
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
    return choice_draft(
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
        return choice_draft(
            rng,
            f"number of {element.name}",
            str(number),
            near,
            f"What is the atomic number of {element.name}?",
            f"How many protons are in the nucleus of an atom of {element.name}?",
            f"A neutral atom of {element.name} has how many electrons?",
        )
    near = [e.name for e in ELEMENTS if abs(e.number - number) <= 6]
    return choice_draft(
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
        return choice_draft(
            rng,
            f"period of {element.name}",
            f"period {element.period}",
            [f"period {period}" for period in range(1, 8)],
            f"In which period of the periodic table is {element.name}?",
            f"To which row (period) of the periodic table does {element.name} belong?",
        )
    others = [e.name for e in ELEMENTS if e.category not in (element.category, None)]
    if rng.random() < 0.5:
        return choice_draft(
            rng,
            f"which is {element.category}: {element.name}",
            element.name,
            others,
            f"Which of these elements is a {element.category}?".replace("a al", "an al"),
        )
    return choice_draft(
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
        return choice_draft(
            rng, f"planet {at}", name, PLANETS, f"Which planet is the {ordinal} from the Sun?"
        )
    if rng.random() < 0.5 and 0 < at < 7:
        return choice_draft(
            rng,
            f"between {at}",
            name,
            PLANETS,
            f"Which planet's orbit lies between those of {PLANETS[at - 1]} and {PLANETS[at + 1]}?",
        )
    further, nearer = rng.sample(PLANETS, 2)
    gap = abs(PLANETS.index(further) - PLANETS.index(nearer)) - 1
    return choice_draft(
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
        return choice_draft(
            rng,
            f"unit of {quantity}",
            name,
            list(UNITS.values()),
            f"What is the SI unit of {quantity}?",
            f"In which SI unit is {quantity} measured?",
        )
    return choice_draft(
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
    return choice_draft(
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


# § The computed questions of `practice-choice`: short school physics and chemistry.
# §
# § The wrong options are the results of usual slips: a forgotten square, a factor of two, a
# § division
# § upside down.


def number(value: Decimal | int) -> str:
    """Return a number without trailing zeros or exponent.

    >>> number(Decimal("2.50"))
    '2.5'
    """
    text = f"{Decimal(value):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _quantity_draft(
    rng: Random, key: str, values: Sequence[Decimal | int], unit: str, *phrasings: str
) -> Draft | None:
    """Return a computation; the first value is right, the rest are slips."""
    right, *slips = (f"{number(value)} {unit}".strip() for value in values)
    return choice_draft(rng, key, right, slips, *phrasings)


def ohm(rng: Random) -> Draft | None:
    """Ask for voltage, current or electric power."""
    i, r = rng.randint(2, 12), rng.randint(3, 40)
    v, which = i * r, rng.choice(("voltage", "current", "power"))
    values = {
        "voltage": (
            [v, i + r, 2 * v, abs(r - i), i * i * r],
            "V",
            f"A current of {i} A flows through a resistor of {r} ohms. What is the "
            "voltage across it?",
        ),
        "current": (
            [i, v * r, v + r, 2 * i, v - r],
            "A",
            f"A voltage of {v} V is applied to a resistor of {r} ohms. What current "
            "flows through it?",
        ),
        "power": (
            [v * i, v, i * r * r, v * i * 2, v + i],
            "W",
            f"A current of {i} A flows through a resistor of {r} ohms. How much power does "
            "it dissipate?",
        ),
    }
    numbers, unit, text = values[which]
    return _quantity_draft(rng, f"ohm {which} {i} {r}", numbers, unit, text)


def motion(rng: Random) -> Draft | None:
    """Ask for kinetic energy or momentum."""
    m, v = rng.randint(2, 40), rng.randint(3, 30)
    momentum = m * v
    energy = Decimal(m * v * v) / 2
    if rng.random() < 0.5:
        slips = [momentum, momentum * v, Decimal(momentum) / 2, m + v, 2 * momentum]
        return _quantity_draft(
            rng,
            f"momentum {m} {v}",
            slips,
            "kg m/s",
            f"What is the momentum of a body of mass {m} kg that moves at {v} m/s?",
            f"A {m} kg cart rolls at {v} m/s. Find its momentum.",
        )
    slips = [energy, energy * 2, momentum, energy / 2, Decimal(momentum) / 2]
    return _quantity_draft(
        rng,
        f"kinetic {m} {v}",
        slips,
        "J",
        f"What is the kinetic energy of a body of mass {m} kg that moves at {v} m/s?",
        f"A {m} kg ball flies at {v} m/s. How large is its kinetic energy?",
    )


def half_life(rng: Random) -> Draft | None:
    """Ask how much of a sample is left."""
    life, halvings, left = rng.randint(2, 30), rng.randint(2, 5), rng.randint(1, 20)
    start = left * 2**halvings
    slips = [left, left * 2, Decimal(10 * start // halvings) / 10, start - left, Decimal(left) / 2]
    return _quantity_draft(
        rng,
        f"half-life {life} {halvings} {start}",
        slips,
        "g",
        f"A radioactive isotope has a half-life of {life} days. Of {start} g, how much is left "
        f"after {life * halvings} days?",
        f"How many grams of a {start} g sample remain after {life * halvings} years if the "
        f"half-life is {life} years?",
    )


def density(rng: Random) -> Draft | None:
    """Ask for density or mass."""
    rho, volume = rng.randint(2, 21), rng.randint(3, 40)
    mass = rho * volume
    if rng.random() < 0.5:
        return _quantity_draft(
            rng,
            f"density {mass} {volume}",
            [rho, mass * volume, mass - volume, mass + volume, 2 * rho],
            "g/cm^3",
            f"A block has a mass of {mass} g and a volume of {volume} cm^3. What is its density?",
        )
    return _quantity_draft(
        rng,
        f"mass {rho} {volume}",
        [mass, rho + volume, 2 * mass, mass + rho, 10 * mass],
        "g",
        f"A metal has a density of {rho} g/cm^3. What is the mass of {volume} cm^3 of it?",
    )


def molar_mass(rng: Random) -> Draft | None:
    """Ask for the molar mass of a simple compound."""
    formula, name = rng.choice(list(COMPOUNDS.items()))
    found = re.findall(r"([A-Z][a-z]?)(\d*)", formula)
    parts = [(symbol, int(count or 1)) for symbol, count in found]
    mass = sum(MASSES[symbol] * count for symbol, count in parts)
    uncounted = sum(MASSES[symbol] for symbol, _ in parts)
    slips = [mass, uncounted, mass + 1, mass + 16, mass + 12, max(1, mass - 2)]
    return _quantity_draft(
        rng,
        f"molar mass {formula}",
        slips,
        "g/mol",
        f"What is the molar mass of {name} ({formula}), rounded to whole grams per mole?",
        f"Using rounded atomic masses, find the molar mass of {formula}.",
    )


def wave(rng: Random) -> Draft | None:
    """Ask for wave speed, frequency or wavelength."""
    f, length = rng.randint(3, 60), rng.randint(2, 25)
    v = f * length
    which, values, unit, text = rng.choice(
        [
            (
                "speed",
                [v, f + length, 2 * v, abs(f - length)],
                "m/s",
                f"A wave has a frequency of {f} Hz and wavelength {length} m. What is its speed?",
            ),
            (
                "frequency",
                [f, v * length, v - length, 2 * f],
                "Hz",
                f"A wave of wavelength {length} m travels at {v} m/s. What is its frequency?",
            ),
            (
                "wavelength",
                [length, v * f, v - f, 2 * length],
                "m",
                f"A wave of frequency {f} Hz travels at {v} m/s. What is its wavelength?",
            ),
        ]
    )
    return _quantity_draft(rng, f"wave {which} {f} {length}", values, unit, text)


def acid(rng: Random) -> Draft | None:
    """Ask for the pH of a strong acid or base at a power of ten."""
    power = rng.randint(1, 5)
    name, is_acid = rng.choice((("HCl", True), ("HNO3", True), ("HBr", True), ("NaOH", False)))
    molar = number(Decimal(10) ** -power)
    return _quantity_draft(
        rng,
        f"pH {name} {power}",
        [power, 14 - power, 7, power + 1] if is_acid else [14 - power, power, 7, 13 - power],
        "",
        f"What is the pH of a {molar} mol/L solution of {name} at 25 degrees Celsius?",
        f"{name} dissociates completely in water. What pH does a {molar} M solution have?",
    )


def force(rng: Random) -> Draft | None:
    """Ask for force or work."""
    m, a, s = rng.randint(2, 50), rng.randint(2, 15), rng.randint(2, 30)
    if rng.random() < 0.5:
        return _quantity_draft(
            rng,
            f"force {m} {a}",
            [m * a, m + a, 2 * m * a, m * a * a, 10 * m],
            "N",
            f"What net force gives a body of mass {m} kg an acceleration of {a} m/s^2?",
        )
    f = m * a
    return _quantity_draft(
        rng,
        f"work {f} {s}",
        [f * s, f + s, 2 * f * s, f * s * s],
        "J",
        f"A constant force of {f} N moves a body {s} m in its direction. How much work is done?",
    )


COMPUTED = {
    "electricity": ohm,
    "motion": any_of(motion, force),
    "half-life and density": any_of(half_life, density),
    "chemistry": any_of(molar_mass, acid),
    "waves": wave,
}


# § `practice-choice`: generated four-way science questions, shaped like GPQA questions.


def choice_question(id: str, draft: Draft) -> Question:
    """Return the question with its options shuffled by a generator seeded with its id."""
    options = sorted((draft.target, *draft.options))
    printed = [options[at] for at in Random(f"{id}/choices").sample(range(4), 4)]
    return Question(
        id=id,
        text=choice_text(draft.text, printed),
        kind="choice",
        target=LETTERS[printed.index(draft.target)],
        metadata=choice_metadata(printed),
    )


SUITE = PracticeSuite(
    name="practice-choice",
    version="3-A",
    topics={**FACTS, **COMPUTED},
    write=choice_question,
    judge=grade_choice,
)


@task
@user_errors
def practice_choice(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated four-way science questions, GPQA-like; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
