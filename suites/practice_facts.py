"""The facts that `practice-choice` and `practice-composed` ask about: elements and planets.

School knowledge, true and unambiguous. An element has a category only where every textbook agrees:
no metalloids, and no "nonmetals", which halogens are as well.
"""

from dataclasses import dataclass
from typing import Literal

Category = Literal[
    "alkali metal", "alkaline earth metal", "transition metal", "halogen", "noble gas"
]

CATEGORIES: tuple[Category, ...] = (
    "alkali metal",
    "alkaline earth metal",
    "transition metal",
    "halogen",
    "noble gas",
)


@dataclass(frozen=True, slots=True)
class Element:
    """A row of the periodic table."""

    name: str
    symbol: str
    number: int
    """Atomic number."""
    period: int
    category: Category | None = None
    """None where textbooks differ; such elements are asked about in other ways."""


_ROWS = """
hydrogen H 1 1
helium He 2 1 noble gas
lithium Li 3 2 alkali metal
beryllium Be 4 2 alkaline earth metal
boron B 5 2
carbon C 6 2
nitrogen N 7 2
oxygen O 8 2
fluorine F 9 2 halogen
neon Ne 10 2 noble gas
sodium Na 11 3 alkali metal
magnesium Mg 12 3 alkaline earth metal
aluminium Al 13 3
silicon Si 14 3
phosphorus P 15 3
sulfur S 16 3
chlorine Cl 17 3 halogen
argon Ar 18 3 noble gas
potassium K 19 4 alkali metal
calcium Ca 20 4 alkaline earth metal
scandium Sc 21 4 transition metal
titanium Ti 22 4 transition metal
vanadium V 23 4 transition metal
chromium Cr 24 4 transition metal
manganese Mn 25 4 transition metal
iron Fe 26 4 transition metal
cobalt Co 27 4 transition metal
nickel Ni 28 4 transition metal
copper Cu 29 4 transition metal
zinc Zn 30 4
gallium Ga 31 4
germanium Ge 32 4
arsenic As 33 4
selenium Se 34 4
bromine Br 35 4 halogen
krypton Kr 36 4 noble gas
rubidium Rb 37 5 alkali metal
strontium Sr 38 5 alkaline earth metal
yttrium Y 39 5
zirconium Zr 40 5 transition metal
niobium Nb 41 5 transition metal
molybdenum Mo 42 5 transition metal
palladium Pd 46 5 transition metal
silver Ag 47 5 transition metal
cadmium Cd 48 5
tin Sn 50 5
antimony Sb 51 5
tellurium Te 52 5
iodine I 53 5 halogen
xenon Xe 54 5 noble gas
caesium Cs 55 6 alkali metal
barium Ba 56 6 alkaline earth metal
tungsten W 74 6 transition metal
platinum Pt 78 6 transition metal
gold Au 79 6 transition metal
mercury Hg 80 6
lead Pb 82 6
bismuth Bi 83 6
radon Rn 86 6 noble gas
radium Ra 88 7 alkaline earth metal
uranium U 92 7
"""


def _element(row: str) -> Element:
    name, symbol, number, period, *words = row.split()
    known: dict[str, Category] = {category: category for category in CATEGORIES}
    return Element(name, symbol, int(number), int(period), known.get(" ".join(words)))


ELEMENTS = tuple(_element(row) for row in _ROWS.strip().splitlines())
BY_SYMBOL = {element.symbol: element for element in ELEMENTS}
BY_NUMBER = {element.number: element for element in ELEMENTS}

PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune")
"""In order of distance from the Sun."""

UNITS = {
    "force": "newton",
    "energy": "joule",
    "power": "watt",
    "pressure": "pascal",
    "frequency": "hertz",
    "electric charge": "coulomb",
    "electric potential": "volt",
    "electrical resistance": "ohm",
    "capacitance": "farad",
    "inductance": "henry",
    "magnetic flux density": "tesla",
    "magnetic flux": "weber",
    "electrical conductance": "siemens",
    "radioactivity": "becquerel",
    "luminous intensity": "candela",
    "amount of substance": "mole",
    "thermodynamic temperature": "kelvin",
    "electric current": "ampere",
}
"""Quantity and SI unit."""

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
"""CODATA values to three digits: mantissa, power of ten, unit."""

MASSES = {"H": 1, "C": 12, "N": 14, "O": 16, "Na": 23, "Mg": 24, "S": 32, "K": 39, "Ca": 40}
"""Relative atomic masses rounded to whole numbers, as school tables give them."""

COMPOUNDS = {
    "H2O": "water",
    "CO2": "carbon dioxide",
    "NH3": "ammonia",
    "CH4": "methane",
    "H2SO4": "sulfuric acid",
    "HNO3": "nitric acid",
    "NaOH": "sodium hydroxide",
    "CaCO3": "calcium carbonate",
    "C2H6O": "ethanol",
    "C6H12O6": "glucose",
    "SO2": "sulfur dioxide",
    "MgO": "magnesium oxide",
    "KNO3": "potassium nitrate",
    "C3H8": "propane",
    "H2O2": "hydrogen peroxide",
    "CaO": "calcium oxide",
    "NaHCO3": "sodium hydrogen carbonate",
    "C6H6": "benzene",
}
