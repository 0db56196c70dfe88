"""`practice-choice`: generated science questions with four options, like GPQA questions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from inspect_ai import Task, task

from podium.harness.inspect_adapters import as_task
from podium.harness.records import Question
from podium.harness.suite import Split
from podium.suites.base import choice_question, grade_choice, user_errors
from podium.suites.practice import Draft, PracticeSuite, any_of
from podium.suites.practice.composed import (
    CATEGORIES,
    COMPOUNDS,
    CONSTANTS,
    ELEMENTS,
    PLANETS,
    UNITS,
)

MASSES = {"H": 1, "C": 12, "N": 14, "O": 16, "Na": 23, "Mg": 24, "S": 32, "K": 39, "Ca": 40}
"""Relative atomic masses rounded to whole numbers, as school tables give them."""


@dataclass(frozen=True, slots=True)
class ChoiceProblem:
    """A generated four-option question without words yet; `wrong` lists possible wrong options."""

    rng: Random
    key: str
    right: str
    wrong: Sequence[str]

    def worded(self, *phrasings: str) -> Draft | None:
        """Return the question in a random phrasing, or None if it lacks three wrong options."""
        wrong = list(dict.fromkeys(option for option in self.wrong if option != self.right))
        if len(wrong) < 3:
            return None
        options = tuple(self.rng.sample(wrong, 3))
        return Draft(self.key, self.rng.choice(phrasings), self.right, options)


def _element_symbol(rng: Random) -> Draft | None:
    element = rng.choice(ELEMENTS)
    alike = [e.symbol for e in ELEMENTS if e.symbol[0] == element.symbol[0]]
    made_up = [element.name[:2].title(), element.name[0].upper() + element.name[2]]
    wrong = [*alike, *made_up, *(e.symbol for e in rng.sample(ELEMENTS, 2))]
    return ChoiceProblem(rng, f"symbol {element.name}", element.symbol, wrong).worded(
        f"What is the chemical symbol of {element.name}?",
        f"Which symbol stands for the element {element.name} in the periodic table?",
    )


def _element_name(rng: Random) -> Draft | None:
    element = rng.choice(ELEMENTS)
    alike = [e.name for e in ELEMENTS if e.name[0] == element.symbol[0].lower()]
    wrong = [*alike, *(e.name for e in rng.sample(ELEMENTS, 3))]
    return ChoiceProblem(rng, f"name {element.symbol}", element.name, wrong).worded(
        f"Which element has the symbol {element.symbol}?",
        f"The symbol {element.symbol} stands for which chemical element?",
    )


def _atomic_number(rng: Random) -> Draft | None:
    element = rng.choice(ELEMENTS)
    number = element.number
    if rng.random() < 0.5:
        near = [str(number + off) for off in (-8, -2, -1, 1, 2, 8, 10) if number + off > 0]
        return ChoiceProblem(rng, f"number of {element.name}", str(number), near).worded(
            f"What is the atomic number of {element.name}?",
            f"How many protons are in the nucleus of an atom of {element.name}?",
            f"A neutral atom of {element.name} has how many electrons?",
        )
    near = [e.name for e in ELEMENTS if abs(e.number - number) <= 6]
    return ChoiceProblem(rng, f"element with number {number}", element.name, near).worded(
        f"Which element has the atomic number {number}?",
        f"An atom has {number} protons. Which element is it?",
    )


def _element_place(rng: Random) -> Draft | None:
    element = rng.choice(ELEMENTS)
    if element.category is None or rng.random() < 0.4:
        key = f"period of {element.name}"
        wrong = [f"period {period}" for period in range(1, 8)]
        return ChoiceProblem(rng, key, f"period {element.period}", wrong).worded(
            f"In which period of the periodic table is {element.name}?",
            f"To which row (period) of the periodic table does {element.name} belong?",
        )
    names = [e.name for e in ELEMENTS if e.category not in (element.category, None)]
    if rng.random() < 0.5:
        key = f"which is {element.category}: {element.name}"
        return ChoiceProblem(rng, key, element.name, names).worded(
            f"Which of these elements is a {element.category}?".replace("a al", "an al")
        )
    return ChoiceProblem(rng, f"category of {element.name}", element.category, CATEGORIES).worded(
        f"What kind of element is {element.name}?",
        f"To which group of elements does {element.name} belong?",
    )


def _planet(rng: Random) -> Draft | None:
    i = rng.randrange(len(PLANETS))
    name = PLANETS[i]
    ordinal = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")[i]
    if rng.random() < 0.4:
        return ChoiceProblem(rng, f"planet {i}", name, PLANETS).worded(
            f"Which planet is the {ordinal} from the Sun?"
        )
    if rng.random() < 0.5 and 0 < i < 7:
        return ChoiceProblem(rng, f"between {i}", name, PLANETS).worded(
            f"Which planet's orbit lies between those of {PLANETS[i - 1]} and {PLANETS[i + 1]}?"
        )
    further, nearer = rng.sample(PLANETS, 2)
    gap = abs(PLANETS.index(further) - PLANETS.index(nearer)) - 1
    key = f"planets between {sorted((further, nearer))}"
    return ChoiceProblem(rng, key, str(gap), [str(n) for n in range(7)]).worded(
        f"How many planets orbit the Sun between {nearer} and {further}?"
    )


def _unit(rng: Random) -> Draft | None:
    quantity, name = rng.choice(list(UNITS.items()))
    if rng.random() < 0.5:
        return ChoiceProblem(rng, f"unit of {quantity}", name, list(UNITS.values())).worded(
            f"What is the SI unit of {quantity}?", f"In which SI unit is {quantity} measured?"
        )
    return ChoiceProblem(rng, f"quantity in {name}", quantity, list(UNITS)).worded(
        f"Which quantity has the {name} as its SI unit?",
        f"The {name} is the SI unit of which quantity?",
    )


def _constant(rng: Random) -> Draft | None:
    name, (mantissa, power, unit_name) = rng.choice(list(CONSTANTS.items()))
    near = [power + off for off in (-3, -2, -1, 1, 2, 3)]
    key = f"constant {name}"
    wrong = [f"{mantissa} x 10^{exponent} {unit_name}" for exponent in near]
    return ChoiceProblem(rng, key, f"{mantissa} x 10^{power} {unit_name}", wrong).worded(
        f"Which of these is closest to {name}?", f"What is the approximate value of {name}?"
    )


def number(value: Decimal | int) -> str:
    """Return a number without trailing zeros or exponent.

    >>> number(Decimal("2.50"))
    '2.5'
    """
    text = f"{Decimal(value):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _quantity(rng: Random, key: str, values: Sequence[Decimal | int], unit: str) -> ChoiceProblem:
    """Return a question on a quantity; the first value is right, the others are usual mistakes."""
    right, *slips = (f"{number(value)} {unit}".strip() for value in values)
    return ChoiceProblem(rng, key, right, slips)


def _ohm(rng: Random) -> Draft | None:
    i, r = rng.randint(2, 12), rng.randint(3, 40)
    v, flows = i * r, f"A current of {i} A flows through a resistor of {r} ohms."
    quantity, unit, values, text = rng.choice((
        ("voltage", "V", (v, i + r, 2 * v, abs(r - i), i * i * r),
         f"{flows} What is the voltage across it?"),
        ("current", "A", (i, v * r, v + r, 2 * i, v - r),
         f"A voltage of {v} V is applied to a resistor of {r} ohms. What current flows through "
         "it?"),
        ("power", "W", (v * i, v, i * r * r, v * i * 2, v + i),
         f"{flows} How much power does it dissipate?"),
    ))  # fmt: skip
    return _quantity(rng, f"ohm {quantity} {i} {r}", values, unit).worded(text)


def _motion(rng: Random) -> Draft | None:
    m, v = rng.randint(2, 40), rng.randint(3, 30)
    momentum, energy = m * v, Decimal(m * v * v) / 2
    if rng.random() < 0.5:
        slips = [momentum, momentum * v, Decimal(momentum) / 2, m + v, 2 * momentum]
        return _quantity(rng, f"momentum {m} {v}", slips, "kg m/s").worded(
            f"What is the momentum of a body of mass {m} kg that moves at {v} m/s?",
            f"A {m} kg cart rolls at {v} m/s. Find its momentum.",
        )
    slips = [energy, energy * 2, momentum, energy / 2, Decimal(momentum) / 2]
    return _quantity(rng, f"kinetic {m} {v}", slips, "J").worded(
        f"What is the kinetic energy of a body of mass {m} kg that moves at {v} m/s?",
        f"A {m} kg ball flies at {v} m/s. How large is its kinetic energy?",
    )


def _half_life(rng: Random) -> Draft | None:
    life, halvings, mass = rng.randint(2, 30), rng.randint(2, 5), rng.randint(1, 20)
    start = mass * 2**halvings
    slips = [mass, mass * 2, Decimal(10 * start // halvings) / 10, start - mass, Decimal(mass) / 2]
    return _quantity(rng, f"half-life {life} {halvings} {start}", slips, "g").worded(
        f"A radioactive isotope has a half-life of {life} days. Of {start} g, how much is left "
        f"after {life * halvings} days?",
        f"How many grams of a {start} g sample remain after {life * halvings} years if the "
        f"half-life is {life} years?",
    )


def _density(rng: Random) -> Draft | None:
    rho, volume = rng.randint(2, 21), rng.randint(3, 40)
    mass = rho * volume
    if rng.random() < 0.5:
        values = [rho, mass * volume, mass - volume, mass + volume, 2 * rho]
        return _quantity(rng, f"density {mass} {volume}", values, "g/cm^3").worded(
            f"A block has a mass of {mass} g and a volume of {volume} cm^3. What is its density?"
        )
    key = f"mass {rho} {volume}"
    return _quantity(rng, key, [mass, rho + volume, 2 * mass, mass + rho, 10 * mass], "g").worded(
        f"A metal has a density of {rho} g/cm^3. What is the mass of {volume} cm^3 of it?"
    )


def _molar_mass(rng: Random) -> Draft | None:
    formula, name = rng.choice(list(COMPOUNDS.items()))
    atoms = re.findall(r"([A-Z][a-z]?)(\d*)", formula)
    mass = sum(MASSES[symbol] * int(count or 1) for symbol, count in atoms)
    uncounted = sum(MASSES[symbol] for symbol, _ in atoms)
    slips = [mass, uncounted, mass + 1, mass + 16, mass + 12, max(1, mass - 2)]
    return _quantity(rng, f"molar mass {formula}", slips, "g/mol").worded(
        f"What is the molar mass of {name} ({formula}), rounded to whole grams per mole?",
        f"Using rounded atomic masses, find the molar mass of {formula}.",
    )


def _wave(rng: Random) -> Draft | None:
    f, length = rng.randint(3, 60), rng.randint(2, 25)
    v = f * length
    quantity, unit, values, text = rng.choice((
        ("speed", "m/s", (v, f + length, 2 * v, abs(f - length)),
         f"A wave has a frequency of {f} Hz and wavelength {length} m. What is its speed?"),
        ("frequency", "Hz", (f, v * length, v - length, 2 * f),
         f"A wave of wavelength {length} m travels at {v} m/s. What is its frequency?"),
        ("wavelength", "m", (length, v * f, v - f, 2 * length),
         f"A wave of frequency {f} Hz travels at {v} m/s. What is its wavelength?"),
    ))  # fmt: skip
    return _quantity(rng, f"wave {quantity} {f} {length}", values, unit).worded(text)


def _acid(rng: Random) -> Draft | None:
    power = rng.randint(1, 5)
    name, is_acid = rng.choice((("HCl", True), ("HNO3", True), ("HBr", True), ("NaOH", False)))
    molar = number(Decimal(10) ** -power)
    values = [power, 14 - power, 7, power + 1] if is_acid else [14 - power, power, 7, 13 - power]
    return _quantity(rng, f"pH {name} {power}", values, "").worded(
        f"What is the pH of a {molar} mol/L solution of {name} at 25 degrees Celsius?",
        f"{name} dissociates completely in water. What pH does a {molar} M solution have?",
    )


def _force(rng: Random) -> Draft | None:
    m, a, s = rng.randint(2, 50), rng.randint(2, 15), rng.randint(2, 30)
    f = m * a
    if rng.random() < 0.5:
        return _quantity(rng, f"force {m} {a}", [f, m + a, 2 * f, f * a, 10 * m], "N").worded(
            f"What net force gives a body of mass {m} kg an acceleration of {a} m/s^2?"
        )
    return _quantity(rng, f"work {f} {s}", [f * s, f + s, 2 * f * s, f * s * s], "J").worded(
        f"A constant force of {f} N moves a body {s} m in its direction. How much work is done?"
    )


def shuffled_question(id: str, draft: Draft) -> Question:
    """Return a draft as a multiple-choice question; `id` seeds the random order of its options."""
    printed = Random(f"{id}/choices").sample(sorted((draft.target, *draft.options)), 4)
    return choice_question(id, draft.text, printed, printed.index(draft.target))


SUITE = PracticeSuite(
    name="practice-choice",
    version="6-A",
    topics={
        "elements": any_of(_element_symbol, _element_name, _atomic_number),
        "periodic table": any_of(_element_place, _atomic_number),
        "planets": _planet,
        "units and constants": any_of(_unit, _unit, _constant),
        "electricity": _ohm,
        "motion": any_of(_motion, _force),
        "half-life and density": any_of(_half_life, _density),
        "chemistry": any_of(_molar_mass, _acid),
        "waves": _wave,
    },
    write=shuffled_question,
    judge=grade_choice,
)


@task
@user_errors
def practice_choice(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated four-option science questions, GPQA-like; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
