# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""The fact table: elements, planets, units and constants, and how people ask for them.

Real facts (facts.toml). A worker that knows no facts never looks here.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

NOBLE = (2, 10, 18, 36, 54, 86, 118)
COMMON = frozenset(
    re.findall(
        r"\w+",
        "hydrogen helium carbon nitrogen oxygen sodium calcium iron gold mercury venus earth",
    )
)
"""What a generalist remembers without a table."""

ATTRIBUTES = {
    "number": (
        r"atomic numbers?|proton numbers?|numbers? of protons|proton counts?|protons"
        r"|nuclear charge|numbers? of electrons|electrons"
    ),
    "period": r"period(?: numbers?)?|row",
    "group": r"group(?: numbers?)?",
    "mass": r"(?:relative )?atomic (?:mass|weight)(?:es|s)?|molar mass(?:es)?",
    "symbol": r"(?:chemical )?symbols?|abbreviation",
    "category": r"category|family|class|type of element|kind of element|classified|classification",
    "moons": (
        r"numbers? of (?:known |natural |confirmed )*(?:moons|satellites)|moon counts?"
        r"|(?:known |natural )*(?:moons|satellites)"
    ),
    "order": (
        r"positions?(?: in order)?(?: numbers?)?|planet numbers?|order|ordinal(?: number| position)?"
        r"|place|rank|planet number"
    ),
    "diameter": r"diameter|size|radius",
    "year": r"orbital period|year|time to orbit",
    "kind": r"type of planet|kind of planet",
    "letters": (
        r"(?:number|count) of (?:number of )?(?:letters|characters) in (?:the|its) (?:english )?(?:names?|words?)(?: for)?"
        r"|(?:letters|characters) in the (?:english )?(?:names?|words?)(?: for)?"
        r"|letter counts?|length of the (?:english )?names?"
    ),
}


class FactTable(BaseModel):
    """The fact file as it is written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    elements: tuple[str, ...]
    spellings: dict[str, str]
    planets: dict[str, tuple[int, int, int, int, str, str]]
    units: dict[str, tuple[str, str]]
    constants: dict[str, float]


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one element or planet, by attribute, as text."""

    name: str
    known: dict[str, str]


def _group(number: int) -> int | None:
    if number in (1, 2):
        return 1 if number == 1 else 18
    start = max(gas for gas in NOBLE if gas < number)
    length = min(gas for gas in NOBLE if gas >= number) - start
    column = number - start
    if column <= 2:
        return column
    if length == 32 and column <= 16:
        return None
    return column + 18 - length


def _category(number: int, group: int | None) -> str:
    if group is None or number in (71, 103):
        return "lanthanide" if number < 80 else "actinide"
    if number in (1, 6, 7, 8, 15, 16, 34):
        return "nonmetal"
    if number in (5, 14, 32, 33, 51, 52):
        return "metalloid"
    names = {1: "alkali metal", 2: "alkaline earth metal", 17: "halogen", 18: "noble gas"}
    if group in names:
        return names[group]
    return "transition metal" if group <= 12 else "post-transition metal"


@cache
def table() -> FactTable:
    """Return the fact file as it is written."""
    path = Path(__file__).with_name("facts.toml")
    return FactTable.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


@cache
def elements() -> dict[str, Fact]:
    """Return the elements by name."""
    rows = enumerate(table().elements, start=1)
    return {fact.name: fact for fact in (_element(number, row) for number, row in rows)}


def _element(number: int, row: str) -> Fact:
    symbol, name, mass = row.split()
    group = _group(number)
    known = {
        "symbol": symbol,
        "number": str(number),
        "mass": mass,
        "period": str(1 + sum(gas < number for gas in NOBLE)),
        "category": _category(number, group),
        "letters": str(len(name)),
    }
    return Fact(name, {**known, "group": str(group)} if group else known)


@cache
def planets() -> dict[str, Fact]:
    """Return the planets by name."""
    keys = ("order", "moons", "diameter", "year", "kind", "nickname")
    return {
        name: Fact(
            name, {**dict(zip(keys, map(str, values), strict=True)), "letters": str(len(name))}
        )
        for name, values in table().planets.items()
    }


@cache
def spellings() -> dict[str, str]:
    """Return other spellings of names."""
    return table().spellings


@cache
def name_pattern() -> str:
    """Return a pattern for every name of an element or planet."""
    names = sorted({*elements(), *planets(), *spellings()}, key=len, reverse=True)
    return r"\b(?:" + "|".join(names) + r")\b"


def lookup(name: str, attribute: str) -> str | None:
    """Return one fact as text, None when there is none. Mercury is both: the attribute tells."""
    name = spellings().get(name.lower(), name.lower())
    for kind in (elements(), planets()):
        if name in kind and attribute in kind[name].known:
            return kind[name].known[attribute]
    return None


def by_symbol(symbol: str) -> str | None:
    """Return the element with a symbol (case matters: Co is not CO)."""
    return next((f.name for f in elements().values() if f.known["symbol"] == symbol), None)


def attributes_in(text: str) -> list[str]:
    """Return the attributes a text mentions."""
    return [
        name
        for name, pattern in ATTRIBUTES.items()
        if re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
    ]
