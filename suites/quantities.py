"""Parse numbers as exact fractions, and compare quantities, such as RLPR's reference answers.

Quantities are compared as by `math_equal` of OpenBMB/RLPR at 8490fca (verl/utils/reward_score/
prime_math/grader.py: relative tolerance 1e-4), except that whole numbers must be equal, a factor of
100 is accepted only if just one has a percent sign, and different units are converted or unequal.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise

from podium.suites.latex import UNITS, Measured, normalise_answer, parse_measured, units_contradict

LONGEST = 3000
"""Maximum length of an answer, in characters; a longer one equals nothing."""
PLACES = 6
"""Decimal places to which a decimal is compared with a fraction or an expression."""
TOLERANCE = 1e-4
"""Relative tolerance between decimals, as in RLPR."""
LONGEST_TEXT = 200
_WHOLE = re.compile(r"[-+]?[\d,]+")
_DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3}){1,12}|\d{1,40})(?:\.\d{0,40})?|\.\d{1,40})"
_RATIONALS = (
    re.compile(rf"(?P<whole>[-+]?{_DECIMAL})"),
    re.compile(
        rf"(?P<sign>[-+]?)(?:(?P<mixed>\d{{1,40}}) )?(?P<top>{_DECIMAL})/(?P<bottom>{_DECIMAL})"
    ),
    re.compile(
        r"(?P<sign>[-+]?)(?P<mixed>\d{0,40})\\frac\{(?P<minus>-?)(?P<top>\d{1,40})\}\{(?P<bottom>\d{1,40})\}"
    ),
    re.compile(
        r"(?P<sign>[-+]?)(?P<before>\d{0,40})\.(?P<first>\d{0,40})\\overline(?:\{(?P<again>\d{1,40})\}|(?P<digit>\d))"
    ),
    re.compile(
        rf"(?P<whole>[-+]?{_DECIMAL})(?:[eE]|(?:\\times|\\cdot|[x*])10\^)\{{?(?P<ten>[-+]?\d{{1,3}})\}}?"
    ),
)
_PRODUCT = r"\d{1,15}(?:(?:\\cdot|\*)\d{1,15}){0,9}"
_TERMS = re.compile(rf"[-+]?{_PRODUCT}(?:[-+]{_PRODUCT}){{0,19}}")
_TERM = re.compile(r"[-+]?\d+(?:(?:\\cdot|\*)\d+)*")
_FACTOR = re.compile(r"[-+]?\d+")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, with the unit, scale and words of the text that states it."""

    value: float
    whole: bool
    """Whether the number is written without decimal point, power of ten, or scale (million)."""
    measured: Measured


_close = partial(math.isclose, rel_tol=TOLERANCE)


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity | None:
    r"""Return the number, with its unit, that a text states, or None if the text is anything else.

    >>> parse_quantity("$0.7617 million").value, parse_quantity("2x")
    (761700.0, None)
    """
    measure = parse_measured(normalise_answer(text)) if len(text) <= LONGEST_TEXT else Measured("")
    number = None if measure.words else parse_rational(measure.value)
    if number is None:
        return None
    try:
        value = float(number * measure.scale)
    except OverflowError:
        return None
    return Quantity(value, bool(_WHOLE.fullmatch(measure.value)) and measure.scale == 1, measure)


def same_quantity(gold: Quantity, answer: Quantity) -> bool:
    """Return whether two quantities are equal: whole numbers exactly, others within TOLERANCE."""
    if units_contradict(gold.measured, answer.measured):
        return _converted(gold, answer)
    if gold.measured.percent != answer.measured.percent:
        number, percent = (answer, gold) if gold.measured.percent else (gold, answer)
        whole = gold.measured.percent or abs(number.value) >= 1  # 0.25 % is 0.0025, not 0.25
        same = whole and _close(number.value, percent.value)
        return same or _close(number.value, percent.value / 100)
    if gold.whole and answer.whole:
        return gold.value == answer.value
    return _close(gold.value, answer.value)


def _converted(gold: Quantity, answer: Quantity) -> bool:
    """Return whether quantities in two units are equal once converted: 45 minutes and 0.75 h."""
    base, answer_base = in_base_units(gold.measured.unit), in_base_units(answer.measured.unit)
    if not base or not answer_base or base[1] != answer_base[1] or not base[1]:
        return False
    tolerance = 1e-9 if gold.whole and answer.whole else TOLERANCE
    return math.isclose(gold.value * base[0], answer.value * answer_base[0], rel_tol=tolerance)


@lru_cache(maxsize=4096)
def in_base_units(unit: str) -> tuple[float, dict[str, int]] | None:
    """Return a unit as factor and powers of base units, or None if units.toml cannot convert it.

    >>> in_base_units("mmol/L") == in_base_units("mM"), in_base_units("apples")
    (True, None)
    """
    factor, powers, sign = Fraction(1), Counter[str](), 1
    factors = _UNIT_PART.findall(unit)
    if "".join(symbol + power for symbol, power in factors) != unit:
        return None
    for symbol, power in factors:
        if symbol == "/":
            sign = -1
            continue
        size, bases = _BASES[symbol]
        times, sign = sign * int(power[1:] or 1), 1
        factor *= size**times
        powers.update({base: each * times for base, each in bases.items()})
    return float(factor), {base: power for base, power in powers.items() if power}


def _bases() -> dict[str, tuple[Fraction, dict[str, int]]]:
    bases = dict[str, tuple[Fraction, dict[str, int]]]()
    for symbol, base in UNITS["base"].items():
        factor, powers = (
            Fraction(base["factor"]),
            {key: base[key] for key in base if key != "factor"},
        )
        prefixes = UNITS["prefixes"].values() if symbol in UNITS["si"] else [("", 0)]
        bases |= {
            f"{sign}{symbol}": (factor * Fraction(10) ** ten, powers) for sign, ten in prefixes
        }
    return bases


_BASES = _bases()
_UNIT_PART = re.compile(
    f"({'|'.join(map(re.escape, sorted(_BASES, key=len, reverse=True)))}|/)(\\^\\d+|)"
)


def parse_rational(text: str) -> Fraction | None:
    r"""Return the value of a text that is one number, else None: `-1.50`, `3/4`, `1\frac{4}{5}`.

    >>> parse_rational(r"-1\frac{4}{5}"), parse_rational(r"6.7\times10^{-5}")
    (Fraction(-9, 5), Fraction(67, 1000000))
    """
    if text.isdecimal() and len(text) <= 40:
        return Fraction(int(text))
    for form in _RATIONALS:
        match = form.fullmatch(text)
        if match:
            return _fraction({name: value or "" for name, value in match.groupdict().items()})
    return None


def rounds_to(number: Fraction, text: str) -> bool:
    """Return whether `text` is `number` rounded to the decimal places of `text` (at least one).

    >>> rounds_to(Fraction(1, 3), "0.33"), rounds_to(Fraction(6), "5")
    (True, False)
    """
    _, point, decimals = text.partition(".")
    decimal = parse_rational(text)
    if decimal is None or not point or not decimals.isdigit():
        return False
    return abs(number - decimal) <= Fraction(1, 2 * 10 ** len(decimals))


def _fraction(groups: dict[str, str]) -> Fraction | None:
    groups = {name: value.replace(",", "").rstrip(".") for name, value in groups.items()}
    if "whole" in groups:
        return Fraction(groups["whole"]) * Fraction(10) ** int(groups.get("ten") or 0)
    if "first" in groups:
        again = groups["again"] or groups["digit"]
        once = Fraction(int(again), 10 ** len(again) - 1) / 10 ** len(groups["first"])
        value = Fraction(f"{groups['before'] or 0}.{groups['first'] or 0}") + once
        return -value if groups["sign"] == "-" else value
    bottom = Fraction(groups["bottom"])
    if bottom == 0:
        return None
    value = Fraction(groups["top"]) / bottom + int(groups.get("mixed") or 0)
    negative = (groups["sign"] == "-") != (groups.get("minus") == "-")
    return -value if negative else value


def evaluate_sum(text: str) -> Fraction | None:
    r"""Return the value of a number or of a sum of products of integers; None for other texts.

    >>> evaluate_sum("7+1"), evaluate_sum(r"2-3\cdot4"), evaluate_sum("2x")
    (Fraction(8, 1), Fraction(-10, 1), None)
    """
    if not _TERMS.fullmatch(text):
        return parse_rational(text)
    terms = (_FACTOR.findall(term) for term in _TERM.findall(text))
    return sum((Fraction(math.prod(map(int, term))) for term in terms), Fraction(0))


def same_number(gold: Measured, answer: Measured, values: tuple[Fraction, Fraction]) -> bool:
    """Return whether two numbers are equal, or `answer` is `gold` rounded to six places or more.

    Only a `gold` without a finite decimal form, such as 1/3, may be rounded. (math-verify is too
    lenient: it treats 0.0000671 and 0.0000672 as equal.)
    """
    target, value = values
    if gold.percent != answer.percent:
        number, percent = (value, target) if gold.percent else (target, value)
        return number == percent / 100 or (number == percent and (gold.percent or abs(number) >= 1))
    _, point, decimals = answer.value.partition(".")
    ends = pow(10, target.denominator.bit_length(), target.denominator) == 0
    if target == value or ends:  # a finite decimal such as 0.5 must be matched exactly
        return target == value
    long = bool(point) and decimals.isdigit() and len(decimals) >= PLACES
    return long and round(target, len(decimals)) == value


def decimal_places(text: str) -> int:
    """Return to how many decimals an answer is compared with the target `text`: PLACES or more."""
    number, places = parse_rational(text), PLACES
    while number and abs(number) < 1 and places < 40:
        number, places = number * 10, places + 1
    return places


_EMPHASIS = re.compile(r'^(?:["`^]|\\cdot|\s)+|(?:["`^]|\\cdot|\s)+$')
"""Matches emphasis marks around a side of an equation; `*` is already a product or power sign."""


def contradicts_itself(answer: str) -> bool:
    r"""Return whether an answer equates two plain numbers that differ: `6 = 5`.

    math-verify reads the last side only. A number with a unit or a percent sign is not plain. A
    decimal may be the rounded value of the side next to it.

    >>> [contradicts_itself(said) for said in ("6=5", "x=2+3=5", r"\frac13=0.33", "1 m = 100 cm")]
    [True, False, False, False]
    """
    equates = "=" in answer and len(answer) <= LONGEST
    return equates and sides_differ(normalise_answer(answer).split("="))


def sides_differ(sides: Sequence[str]) -> bool:
    """Return whether two adjacent sides of an equation are numbers that differ."""
    plain = [_EMPHASIS.sub("", side) for side in sides]
    bare = [side[1:-1] if side[:1] + side[-1:] == "()" else side for side in plain]
    numbers = [(value, side) for side in bare if (value := evaluate_sum(side)) is not None]
    return any(
        number != value and not rounds_to(number, side) and not rounds_to(value, text)
        for (number, text), (value, side) in pairwise(numbers)
    )
