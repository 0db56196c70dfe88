"""Names of units and their symbols: SI units with their prefixes, and everyday ones.

One spelling of a unit, so that `meters per second` is `m/s`. Nothing is converted: `cm` is not `m`.
Which numbers are equal is equality.py and quantities.py.
"""

import re
from functools import lru_cache

_SI = {
    "m": "meter metre", "g": "gram gramme gm", "s": "second sec", "A": "ampere amp", "K": "kelvin",
    "mol": "mole", "N": "newton", "J": "joule", "W": "watt", "Pa": "pascal", "V": "volt",
    "\u03a9": "ohm", "Hz": "hertz", "C": "coulomb", "F": "farad", "T": "tesla", "H": "henry",
    "Wb": "weber", "eV": "electronvolt", "L": "liter litre l", "B": "byte", "cal": "calorie",
    "bar": "", "Bq": "becquerel", "M": "molar", "S": "siemens",
}  # fmt: skip
_PREFIXES = {
    "": "", "femto": "f", "pico": "p", "nano": "n", "micro": "\u00b5", "milli": "m", "centi": "c",
    "deci": "d", "kilo": "k", "mega": "M", "giga": "G", "tera": "T",
}  # fmt: skip
_EVERYDAY = {
    "min": "minute min", "h": "hour hr", "d": "day", "wk": "week wk", "mo": "month",
    "yr": "year yr", "in": "inch inches", "ft": "foot feet", "yd": "yard", "mi": "mile",
    "lb": "pound lb", "oz": "ounce", "gal": "gallon", "ha": "hectare", "acre": "",
    "atm": "atmosphere", "t": "tonne", "dB": "decibel", "deg": "degree \u00b0", "rad": "radian",
    "$": "dollar", "\u00a2": "cent", "\u20ac": "euro", "\u00a3": "", "rpm": "",
}  # fmt: skip


def _table() -> dict[str, str]:
    """Return the symbol by name and by symbol, plural names included."""
    found = dict[str, str]()
    for units, prefixes in ((_SI, _PREFIXES), (_EVERYDAY, {"": ""})):
        for symbol, names in units.items():
            for prefix, sign in prefixes.items():
                found.setdefault(sign + symbol, sign + symbol)
                for name in names.split():
                    short = prefix if len(name) > 3 else sign
                    found |= dict.fromkeys((short + name, f"{short}{name}s"), sign + symbol)
    return {**found, "mph": "mi/h", "kph": "km/h", "kmh": "km/h"}


SYMBOLS = _table()
"""The symbol of a unit by its name, singular or plural, and by itself."""
NAMES = tuple(sorted(name for name in SYMBOLS if len(name) > 3 and name.isalpha()))
"""Names that are no abbreviation and so no product of variables."""

_CHARACTERS = str.maketrans(
    {"\u03bc": "\u00b5", "\u2126": "\u03a9", "\u00b2": "^2", "\u00b3": "^3"}
)
_TOKEN = re.compile(r"[A-Za-z\u00b5\u03a9\u00b0\u00a2\u20ac\u00a3$]+|\^-?\d+|/|\d+")
_POWERS = {"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}
_BEHIND = {"squared": "^2", "cubed": "^3", "per": "/"}


@lru_cache(maxsize=4096)
def spelled(unit: str) -> str:
    """Return a unit in symbols, without spaces; what is no unit of the table stays as it is.

    >>> spelled("meters per second squared"), spelled("square inches"), spelled("apples")
    ('m/s^2', 'in^2', 'apples')
    """
    return "".join(_tokens(unit))


@lru_cache(maxsize=4096)
def known(unit: str) -> bool:
    """Return whether every word of a unit is in the table.

    >>> known("km/h"), known("or so"), known("")
    (True, False, False)
    """
    words = [token for token in _tokens(unit) if token[0] not in "/^"]
    return bool(words) and all(set(word.split("/")) <= SYMBOLS.keys() for word in words)


def same_unit(one: str, other: str) -> bool:
    """Return whether two spelled units are one; small and capital letters differ for known ones.

    >>> same_unit("km", "KM"), same_unit("mW", "MW")
    (True, False)
    """
    if one == other:
        return True
    both = one in SYMBOLS and other in SYMBOLS
    return not both and one.casefold() == other.casefold()


def _tokens(unit: str) -> list[str]:
    plain = re.sub(r"[{}()]", "", unit.translate(_CHARACTERS).replace("**", "^"))
    made, power = list[str](), ""
    for token in _TOKEN.findall(plain):
        word = token.lower() if token.lower() in _POWERS or token.lower() in _BEHIND else token
        if word in _POWERS:
            power = _POWERS[word]
        elif word.startswith("^-") and made:
            made[-1:] = ["/", made[-1]] + ([] if word == "^-1" else [f"^{word[2:]}"])
        else:
            made.append(_BEHIND.get(word) or _symbol(word))
            if power and made[-1] != "/":
                made.append(power)
                power = ""
    return made


def _symbol(word: str) -> str:
    return SYMBOLS.get(word) or (SYMBOLS.get(word.lower(), word) if len(word) > 3 else word)
