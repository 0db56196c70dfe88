r"""Numbers as answers state them: with a unit, a percent sign, a power of ten, a word for a scale.

`quantity` reads one, `alike` compares two as OpenBMB/RLPR does at 8490fca (`math_equal` of
verl/utils/reward_score/prime_math/grader.py: relative tolerance 1e-4), except that whole numbers
must be equal, that factors of 100 are forgiven only beside a percent sign, and that two different
units differ. Not here: names of units (suites/units.py), expressions (suites/equality.py) and where
in a reply an answer is.
"""

import math
import re
from dataclasses import dataclass

from harness.statements import without_markup
from suites.units import same_unit, spelled

TOLERANCE = 1e-4
"""Relative, between decimals: RLPR's own."""
LONGEST_UNIT = 40
WORDS_OF_UNIT = 4

_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s*[\u20ac\u00a3\u00a5]?\s*"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d{0,40})?|\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})"
    r"(?:(?:[eE]|\s*(?:[x*\u00d7\u00b7]|\\times|\\cdot)\s*10\s*\^\s*)[({]?\s*(?P<power>[+-]?\d{1,3})[)}]?)?"
    r"(?P<rest>.*)"
)
_FRACTION = re.compile(
    r"([+-]?)\s*(?:\\[dt]?frac\s*\{(\d{1,15})\}\s*\{(\d{1,15})\}|(\d{1,15})\s*/\s*(\d{1,15}))"
)
_SCALE = re.compile(r"\s*(thousand|million|billion|trillion)\b", re.I)
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_PERCENT = re.compile(r"\s*(?:%|per\s?cent\b)", re.I)
_SIGNS = r"A-Za-z\u00b5\u03a9\u00b0"
_UNIT = re.compile(rf"[{_SIGNS}](?:[{_SIGNS} /\u00b7*.(){{}}]|\^[{{(]?-?\d[)}}]?)*")
_NO_UNIT = re.compile(r"\b(?:[xyzniet]|pi|sqrt|log|ln|sin|cos|tan|exp|and|or|to|mod)\b")
"""Names that make an expression of what a number is followed by."""
_DEGREES_OF = re.compile(
    r"\s*(?:\^?\s*\{?\s*\\circ\s*\}?|\u00b0)\s*(?=(?:\\(?:text|mathrm)\{)?[CFK]\b)"
)
"""Degrees of a scale, whose letter is the unit that stays."""
_TIGHT = re.compile(
    r"(?:\u00b0[CFK]?|[kcmn\u00b5]m|k?g|mg|ms|k?J|k?Pa|[kMG]?Hz|[kMG]?eV|mol|rad|ft|lbs?|mph|k[NWV]"
    r"|MW|m[AVL]|dB)(?:[/\u00b7^].*)?"
)
"""Units that may follow a number without a space; `2x` is no quantity."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what stands behind it."""

    value: float
    whole: bool = False
    """Written without a decimal point, a power or a scale."""
    percent: bool = False
    unit: str = ""
    """In symbols."""


def quantity(text: str) -> Quantity | None:
    r"""Return the number, with its unit, that a text is, or None when it is more or less.

    >>> quantity("$0.7617 million"), quantity("1.13e4 N").unit, quantity("2x")
    (Quantity(value=761700.0, whole=False, percent=False, unit=''), 'N', None)
    """
    scaled = _DEGREES_OF.sub(" ", text[:LONGEST_TEXT])
    plain = without_markup(scaled.replace("\\$", "").replace("\\%", "%"))
    if fraction := _FRACTION.fullmatch(plain):
        over, under = (int(part) for part in fraction.groups()[1:] if part)
        return Quantity(_signed(fraction[1], over / under)) if under else None
    found = _NUMBER.fullmatch(plain.removesuffix("."))
    rest = _rest(found["rest"]) if found else None
    if found is None or rest is None:
        return None
    scale, percent, unit = rest
    value = float(f"{found['digits'].replace(',', '')}e{found['power'] or 0}") * scale
    whole = "." not in found["digits"] and found["power"] is None and scale == 1
    if not math.isfinite(value):
        return None
    return Quantity(_signed(found["sign"], value), whole, percent, unit)


LONGEST_TEXT = 200
"""Characters of a text that may be a quantity; what is cut off a longer one makes it none."""


def alike(gold: Quantity, said: Quantity) -> bool:
    """Return whether two quantities are the same, as far as their digits tell."""
    if gold.unit and said.unit and not same_unit(gold.unit, said.unit):
        return False
    if gold.percent != said.percent:
        number, percent = (said, gold) if gold.percent else (gold, said)
        return _close(number.value, percent.value) or _close(number.value, percent.value / 100)
    if gold.whole and said.whole:
        return gold.value == said.value
    return _close(gold.value, said.value)


def _rest(text: str) -> tuple[float, bool, str] | None:
    """Return scale, percent sign and unit behind a number; None when it goes on otherwise."""
    scale, percent = 1.0, False
    if word := _SCALE.match(text):
        scale, text = _SCALES[word[1].lower()], text[word.end() :]
    if sign := _PERCENT.match(text):
        percent, text = True, text[sign.end() :]
    unit = text.strip(" .")
    if not unit:
        return scale, percent, ""
    spaced = text[0] in " \u00b0"
    if not (_is_unit(unit) if spaced else _TIGHT.fullmatch(unit)):
        return None
    return scale, percent, spelled(unit)


def _is_unit(text: str) -> bool:
    few = len(text) <= LONGEST_UNIT and len(text.split()) <= WORDS_OF_UNIT
    return few and bool(_UNIT.fullmatch(text)) and not _NO_UNIT.search(text)


def _signed(sign: str, value: float) -> float:
    return -value if sign == "-" else value


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE)
