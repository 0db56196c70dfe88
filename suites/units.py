"""Units: their names and symbols, and what else stands behind the number of an answer.

One spelling of a unit, so that `meters per second` is `m/s`. Nothing is converted: `cm` is not `m`.
A thing that is counted may be left out, a word for a scale is a factor, and any other words change
what is said (`5 or so`). Which numbers are equal is equality.py and quantities.py.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

_SI = {
    "m": "meter metre", "g": "gram gramme gm", "s": "second sec", "A": "ampere amp", "K": "kelvin",
    "mol": "mole", "N": "newton", "J": "joule", "W": "watt", "Pa": "pascal", "V": "volt",
    "\u03a9": "ohm Omega", "Hz": "hertz", "C": "coulomb", "F": "farad", "T": "tesla", "H": "henry",
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
    "$": "dollar USD", "\u00a2": "cent", "\u20ac": "euro EUR", "\u00a3": "GBP", "rpm": "",
    "\u00a5": "yen", "\u20b9": "rupee",
}  # fmt: skip


def _table() -> dict[str, str]:
    """Return the symbol by name and by symbol, plural names included."""
    found = dict[str, str]()
    for units, prefixes in ((_SI, _PREFIXES), (_EVERYDAY, {"": ""})):
        for symbol, names in units.items():
            for prefix, sign in prefixes.items():
                found.setdefault(sign + symbol, sign + symbol)
                for name in names.split():
                    shorts = (prefix,) if len(name) > 3 else (sign, prefix)
                    for short in shorts[: 1 + (len(name) == 3)]:
                        found |= dict.fromkeys((short + name, f"{short}{name}s"), sign + symbol)
    return {**found, "mph": "mi/h", "kph": "km/h", "kmh": "km/h", "Celsius": "C", "Fahrenheit": "F"}


SYMBOLS = _table()
"""The symbol of a unit by its name, singular or plural, and by itself."""
_CHARACTERS = str.maketrans(
    {"\u03bc": "\u00b5", "\u2126": "\u03a9", "\u00b2": "^2", "\u00b3": "^3"}
)
_TOKEN = re.compile(r"[A-Za-z\u00b5\u03a9\u00b0\u00a2\u20ac\u00a3\u00a5\u20b9$]+|\^-?\d+|/|\d+")
_POWERS = {"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}
_BEHIND = {"squared": "^2", "cubed": "^3", "per": "/"}


@lru_cache(maxsize=4096)
def spelled(unit: str) -> str:
    """Return a unit in symbols, without spaces; what is no unit of the table stays as it is.

    >>> spelled("meters per second squared"), spelled("square inches"), spelled("apples")
    ('m/s^2', 'in^2', 'apples')
    """
    return _OF_SCALE.sub("", "".join(_tokens(unit)))


_OF_SCALE = re.compile("deg(?=[CFK]$)")


@lru_cache(maxsize=4096)
def known(unit: str) -> bool:
    """Return whether every word of a unit is in the table.

    >>> known("km/h"), known("or so"), known("")
    (True, False, False)
    """
    words = [token for token in _tokens(unit) if token[0] not in "/^"]
    return bool(words) and all(
        each in SYMBOLS or (len(each) > 1 and each.lower() in SYMBOLS)
        for word in words
        for each in word.split("/")
    )


def same_unit(one: str, other: str) -> bool:
    """Return whether two spelled units are one; small and capital letters differ for known ones.

    >>> same_unit("km", "KM"), same_unit("mW", "MW")
    (True, False)
    """
    if one == other:
        return True
    both = one in SYMBOLS and other in SYMBOLS
    return not both and one.casefold() == other.casefold()


def contradict(gold: "Measured", said: "Measured") -> bool:
    """Return whether both have a unit and the two differ; a percent sign is one, too."""
    if gold.unit and said.unit:
        return not same_unit(gold.unit, said.unit)
    other = gold if said.unit else said
    return bool((gold.unit or said.unit) and (other.percent or other.counted))


def _tokens(unit: str) -> list[str]:
    plain = re.sub(r"[{}()]", "", unit.translate(_CHARACTERS).replace("\\cdot", " "))
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


SCALES = {
    "dozen": 12, "dozens": 12, "hundred": 100, "hundreds": 100, "thousand": 1000,
    "thousands": 1000, "million": 10**6, "millions": 10**6, "billion": 10**9, "billions": 10**9,
    "trillion": 10**12, "trillions": 10**12,
}  # fmt: skip
"""Words that multiply the number before them."""
_NO_UNIT = frozenset({"unit", "units", "square units", "square unit", "cubic units", "cubic unit"})
_PLURALS = frozenset({"people", "children", "men", "women", "feet", "dice", "mice", "geese"})
_CHANGING = frozenset(
    [
        "about",
        "almost",
        "always",
        "and",
        "approximately",
        "around",
        "as",
        "at",
        "but",
        "exactly",
        "false",
        "fewer",
        "greater",
        "if",
        "is",
        "least",
        "less",
        "maybe",
        "minus",
        "mod",
        "modulo",
        "more",
        "most",
        "nearly",
        "no",
        "not",
        "only",
        "or",
        "over",
        "perhaps",
        "plus",
        "possibly",
        "probably",
        "scores",
        "so",
        "sometimes",
        "than",
        "tens",
        "than",
        "under",
        "was",
        "when",
        "where",
        "wrong",
        "halves",
        "thirds",
        "quarters",
        "fourths",
        "fifths",
        "sixths",
        "sevenths",
        "eighths",
        "ninths",
        "tenths",
        "hundredths",
        "thousandths",
        "millionths",
        "billionths",
    ]
)
"""Words that make another statement of a number."""
_CHUNK = "\u00ab[^\u00ab\u00bb]{1,60}\u00bb(?:\\^\\{?-?\\d\\}?)?"
_TAIL = re.compile(rf"\^?\{{?{_CHUNK}\}}?(?:(?:/|\\cdot|\.|;)?{_CHUNK}){{0,7}}$")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?![A-Za-z])")
_MONEY = re.compile(
    "([-+]?)(?:US)?\u00ab([$\u20ac\u00a3\u00a5\u20b9]|USD|EUR|GBP|dollars?|euros?)\u00bb([-+]?)"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A value apart from what stands around it."""

    value: str
    unit: str = ""
    """In symbols, where the table has it."""
    words: str = ""
    """Words that may not be left out."""
    scale: int = 1
    percent: bool = False
    counted: bool = False
    """Whether a thing is named that is counted."""


@lru_cache(maxsize=4096)
def measured(text: str) -> Measured:
    r"""Return the value that a text of latex.py states, and its unit.

    >>> measured("15\u00abcm\u00bb^2").unit, measured("5\u00abmillion\u00bb").scale
    ('cm^2', 1000000)
    >>> measured("5\u00abways\u00bb").words, measured("5\u00abor_so\u00bb").words
    ('', 'or so')
    """
    if "\u00ab" not in text:
        return Measured(text)
    money = _MONEY.match(text)
    text = f"{money[1]}{money[3]}{text[money.end() :]}" if money else text
    currency = spelled(money[2]) if money else ""
    tail = _TAIL.search(text)
    if tail is None or not tail.start():
        return Measured(text, currency)
    said = tail[0].replace("\u00ab%\u00bb", "\u00abpercent\u00bb").lstrip("^{")
    plain = re.sub("[\u00ab\u00bb_.;]", " ", re.sub("[{}]", "", said))
    made = _behind(text[: tail.start()], " ".join(plain.replace(" ^", "^").split()))
    if currency and made.unit not in ("", currency):
        return replace(made, words=made.unit)
    return replace(made, unit=currency or made.unit)


def _behind(value: str, words: str) -> Measured:
    ordinal = _ORDINAL.match(words)
    rest = (words[ordinal.end() :] if ordinal else words).split()
    scale = 1
    while rest and rest[0].lower() in SCALES:
        scale *= SCALES[rest.pop(0).lower()]
    rest = rest[rest[:1] == ["of"] :]
    percent = rest[:1] == ["percent"]
    left = " ".join(rest[percent:])
    if not left or left.lower() in _NO_UNIT:
        return Measured(value, scale=scale, percent=percent)
    if known(left):
        return Measured(value, spelled(left), scale=scale, percent=percent)
    counted = bool(_counted(left, value) or (ordinal and left.isalpha() and left not in _CHANGING))
    return Measured(value, "", "" if counted else left, scale, percent, counted)


def _counted(words: str, number: str) -> bool:
    """Return whether words name what is counted: `ways`, `positive integers`, behind 1 a `way`."""
    few = words.lower().replace("-", " ").split()
    last = few[-1]
    if _CHANGING & set(few) or SCALES.keys() & set(few) or not "".join(few).isalpha():
        return False
    plural = last in _PLURALS or (last.endswith("s") and not last.endswith(("ss", "us", "is")))
    return len(few) <= 4 and len(last) > 2 and (plural or number == "1")
