"""Formulas of school physics and chemistry: from a question's quantities to an expression.

Knowing the formula and working it out are two skills: `scholar` writes the expression down and
leaves it, a computing worker that reads it can finish.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from harness.rehearsal.facts import by_symbol, lookup
from harness.rehearsal.reading import plain

_NUMBER = r"(-?\d+(?:\.\d+)?(?:\s*(?:\*|x)\s*10\s*\^?\s*\(?\s*-?\d+\)?)?)"
UNITS = {
    "voltage": r"v|volts?",
    "current": r"a|amps?|amperes?",
    "resistance": r"ω|ohms?",
    "speed": r"m/s|met(?:re|er)s? per second|m s\^\(?-1\)?",
    "acceleration": r"m/s\^\(?2\)?|m/s2|met(?:re|er)s? per second squared",
    "mass": r"kg|kilograms?|g|grams?",
    "frequency": r"hz|hertz",
    "length": r"m|met(?:re|er)s?",
    "volume": r"cm\^\(?3\)?|m\^\(?3\)?|cm3|m3|ml|millilit(?:re|er)s?|l|lit(?:re|er)s?|cubic \w+",
    "force": r"n|newtons?",
    "time": r"s|seconds?",
    "span": r"s|seconds?|minutes?|min|hours?|h|days?|weeks?|years?|months?",
    "area": r"m\^\(?2\)?|m2|square met(?:re|er)s?",
    "moles": r"mol|moles?",
    "concentration": r"m|mol/l|mol/dm\^\(?3\)?|molar|mol per lit(?:re|er)|moles per lit(?:re|er)",
    "power": r"w|watts?",
}


@dataclass(frozen=True, slots=True)
class Formula:
    """What is asked, what it needs, and the expression, in order of what it needs."""

    name: str
    asked: str
    needs: tuple[str, ...]
    expression: str


FORMULAS: tuple[Formula, ...] = (
    Formula(
        "pH of a strong base",
        r"\bph\b[^?]*(?:naoh|koh|lioh|hydroxide)|(?:naoh|koh|lioh|hydroxide)[^?]*\bph\b",
        ("concentration",),
        "14 + log({0})",
    ),
    Formula("pH of a strong acid", r"\bph\b", ("concentration",), "0 - log({0})"),
    Formula("kinetic energy", r"kinetic energy", ("mass", "speed"), "{0} * {1}^2 / 2"),
    Formula("momentum", r"momentum", ("mass", "speed"), "{0} * {1}"),
    Formula("potential energy", r"potential energy", ("mass", "length"), "{0} * 9.8 * {1}"),
    Formula(
        "Ohm's law for the current",
        r"current|how many amp|ampere",
        ("voltage", "resistance"),
        "{0} / {1}",
    ),
    Formula(
        "Ohm's law for the voltage",
        r"voltage|potential difference|volt",
        ("current", "resistance"),
        "{0} * {1}",
    ),
    Formula("Ohm's law for the resistance", r"resistance|ohm", ("voltage", "current"), "{0} / {1}"),
    Formula("electric power", r"power|watt", ("voltage", "current"), "{0} * {1}"),
    Formula("density", r"density", ("mass", "volume"), "{0} / {1}"),
    Formula("wave speed", r"speed|velocity|how fast", ("frequency", "length"), "{0} * {1}"),
    Formula("frequency of a wave", r"frequency", ("speed", "length"), "{0} / {1}"),
    Formula("wavelength", r"wavelength", ("speed", "frequency"), "{0} / {1}"),
    Formula("frequency from the period", r"frequency", ("time",), "1 / {0}"),
    Formula("Newton's second law", r"force", ("mass", "acceleration"), "{0} * {1}"),
    Formula("acceleration", r"acceleration", ("force", "mass"), "{0} / {1}"),
    Formula("acceleration from speeds", r"acceleration", ("speed", "time"), "{0} / {1}"),
    Formula("weight", r"weight|weigh", ("mass",), "{0} * 9.8"),
    Formula("work", r"work", ("force", "length"), "{0} * {1}"),
    Formula("pressure", r"pressure", ("force", "area"), "{0} / {1}"),
    Formula("energy used", r"energy", ("power", "time"), "{0} * {1}"),
    Formula("speed", r"speed|velocity", ("length", "time"), "{0} / {1}"),
    Formula("distance", r"distance|how far", ("speed", "time"), "{0} * {1}"),
)
_COMPOUNDS = {
    "water": "H2O",
    "carbon dioxide": "CO2",
    "methane": "CH4",
    "ammonia": "NH3",
    "sodium chloride": "NaCl",
    "table salt": "NaCl",
    "glucose": "C6H12O6",
    "ethanol": "C2H6O",
    "calcium carbonate": "CaCO3",
    "sulfuric acid": "H2SO4",
    "hydrochloric acid": "HCl",
    "sodium hydroxide": "NaOH",
    "carbon monoxide": "CO",
    "hydrogen peroxide": "H2O2",
    "nitric acid": "HNO3",
    "sulfur dioxide": "SO2",
    "ozone": "O3",
}
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_COMPOUND = re.compile(
    r"\b((?:[A-Z][a-z]?_?\{?\d*\}?|\((?:[A-Z][a-z]?\d*)+\)_?\{?\d*\}?)+)(?![a-z])"
)


@lru_cache(maxsize=4096)
def find_expression(text: str) -> tuple[str, str] | None:
    """Return (formula's name, expression in numbers) for a question, None when none applies."""
    low = plain(text.translate(_SUBSCRIPTS))
    for finder in (_half_life, _molar_mass):
        found = finder(text.translate(_SUBSCRIPTS), low)
        if found:
            return found
    asked = " ".join(part for part in re.split(r"(?<=[.?!])\s", low) if "?" in part) or low
    for where in (asked, low):
        for formula in FORMULAS:
            if not re.search(formula.asked, where):
                continue
            values = [quantity(low, unit) for unit in formula.needs]
            if all(value is not None for value in values):
                return formula.name, formula.expression.format(*values)
    return None


def quantity(text: str, kind: str) -> str | None:
    """Return the first number in a text that is counted in units of some kind."""
    found = re.search(rf"{_NUMBER}\s*-?\s*(?:{UNITS[kind]})(?![\w/^])", text)
    return f"({found[1]})".replace("x", "*") if found else None


def quantities(text: str) -> list[str]:
    """Return every number that stands in a plain text."""
    return [found[1] for found in re.finditer(rf"(?<![\w.]){_NUMBER}(?!\w*\))", text)]


def _half_life(_: str, text: str) -> tuple[str, str] | None:
    if "half" not in text or not re.search(r"half[- ]?li(?:fe|ves)", text):
        return None
    life = re.search(
        rf"half[- ]?life[^.?]{{0,60}}?{_NUMBER}\s*-?\s*({UNITS['span']})\b", text
    ) or re.search(rf"{_NUMBER}\s*-?\s*({UNITS['span']})\s+half[- ]?life", text)
    spans = [m[1] for m in re.finditer(rf"{_NUMBER}\s*-?\s*(?:{UNITS['span']})\b", text)]
    turns = re.search(rf"{_NUMBER}\s+half[- ]?lives", text)
    if turns:
        power = turns[1]
    elif life and (others := [span for span in spans if span != life[1]]):
        power = f"({others[-1]} / {life[1]})"
    else:
        return None
    start = re.search(
        rf"{_NUMBER}\s*-?\s*(?:g|mg|grams?|milligrams?|kg|kilograms?|atoms|nuclei|bq"
        rf"|becquerels?|counts)\b",
        text,
    )
    share = re.search(r"fraction|percent|proportion|%", text)
    amount = "100" if share and "fraction" not in share[0] else "1"
    return "radioactive decay", f"{start[1] if start and not share else amount} * (1/2)^{power}"


def _molar_mass(text: str, low: str) -> tuple[str, str] | None:
    if not re.search(
        r"molar mass|molecular (?:mass|weight)|formula mass|how many (?:moles|grams)"
        r"|mass of .{0,20}\bmol",
        low,
    ):
        return None
    formulas = [
        m[1]
        for m in _COMPOUND.finditer(text)
        if _atoms(m[1]) and re.search(r"\d|[a-z]?[A-Z]", m[1][1:])
    ]
    named = [formula for name, formula in _COMPOUNDS.items() if name in low]
    for formula in (*formulas, *named):
        masses = [f"{count} * {lookup(name, 'mass')}" for name, count in _atoms(formula)]
        whole = " + ".join(masses)
        mass, moles = quantity(low, "mass"), quantity(low, "moles")
        if "how many moles" in low and mass:
            return "amount of substance", f"{mass} / ({whole})"
        if moles and re.search(r"how many grams|mass of|what mass", low):
            return "mass from moles", f"{moles} * ({whole})"
        return "molar mass", whole
    return None


def _atoms(formula: str) -> list[tuple[str, int]]:
    """Return (element, how many) in a formula; empty when it is not one."""
    plain_formula = re.sub(r"[_{}]", "", formula)
    found: dict[str, int] = {}
    for inner, times, symbol, count in re.findall(
        r"\(([A-Za-z0-9]+)\)(\d*)|([A-Z][a-z]?)(\d*)", plain_formula
    ):
        parts: Sequence[tuple[str, str]] = (
            re.findall(r"([A-Z][a-z]?)(\d*)", inner) if inner else [(symbol, count)]
        )
        for part, number in parts:
            name = by_symbol(part)
            if name is None:
                return []
            found[name] = found.get(name, 0) + int(number or 1) * int(times or 1)
    return list(found.items())
