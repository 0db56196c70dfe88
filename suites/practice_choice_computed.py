"""The computed questions of `practice-choice`: short school physics and chemistry.

The wrong options are the results of usual slips: a forgotten square, a factor of two, a division
upside down.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from random import Random

from suites.practice import Draft, any_of
from suites.practice_choice_facts import choice
from suites.practice_facts import COMPOUNDS, MASSES


def number(value: Decimal | int) -> str:
    """Return a number without trailing zeros or exponent.

    >>> number(Decimal("2.50"))
    '2.5'
    """
    text = f"{Decimal(value):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _quantity(
    rng: Random, key: str, values: Sequence[Decimal | int], unit: str, *phrasings: str
) -> Draft | None:
    """Return a computation; the first value is right, the rest are slips."""
    right, *slips = (f"{number(value)} {unit}".strip() for value in values)
    return choice(rng, key, right, slips, *phrasings)


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
    return _quantity(rng, f"ohm {which} {i} {r}", numbers, unit, text)


def motion(rng: Random) -> Draft | None:
    """Ask for kinetic energy or momentum."""
    m, v = rng.randint(2, 40), rng.randint(3, 30)
    momentum = m * v
    energy = Decimal(m * v * v) / 2
    if rng.random() < 0.5:
        slips = [momentum, momentum * v, Decimal(momentum) / 2, m + v, 2 * momentum]
        return _quantity(
            rng,
            f"momentum {m} {v}",
            slips,
            "kg m/s",
            f"What is the momentum of a body of mass {m} kg that moves at {v} m/s?",
            f"A {m} kg cart rolls at {v} m/s. Find its momentum.",
        )
    slips = [energy, energy * 2, momentum, energy / 2, Decimal(momentum) / 2]
    return _quantity(
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
    return _quantity(
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
        return _quantity(
            rng,
            f"density {mass} {volume}",
            [rho, mass * volume, mass - volume, mass + volume, 2 * rho],
            "g/cm^3",
            f"A block has a mass of {mass} g and a volume of {volume} cm^3. What is its density?",
        )
    return _quantity(
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
    return _quantity(
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
    return _quantity(rng, f"wave {which} {f} {length}", values, unit, text)


def acid(rng: Random) -> Draft | None:
    """Ask for the pH of a strong acid or base at a power of ten."""
    power = rng.randint(1, 5)
    name, is_acid = rng.choice((("HCl", True), ("HNO3", True), ("HBr", True), ("NaOH", False)))
    molar = number(Decimal(10) ** -power)
    return _quantity(
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
        return _quantity(
            rng,
            f"force {m} {a}",
            [m * a, m + a, 2 * m * a, m * a * a, 10 * m],
            "N",
            f"What net force gives a body of mass {m} kg an acceleration of {a} m/s^2?",
        )
    f = m * a
    return _quantity(
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
