r"""Decide whether two mathematical answers are equal: as text, as numbers, then by math-verify.

A first look needs no algebra and decides most answers: the normalised texts are the same, or both
are plain numbers. What is left goes to math-verify in another process (equality_process.py), unless
it cannot be equal: a list for a single value, a number in another base. Units, degrees, dollar and
percent signs make no difference, as in every grader of MATH. Finding the answer in a reply is
harness/extract.py.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from suites.behind_numbers import behind
from suites.equality_process import math_verify_says
from suites.intervals import as_intervals
from suites.rationals import no_finite_decimal, rational, rounds_to
from suites.units import same_unit

Look = Literal["exact", "math-verify"]

LONGEST = 3000
"""Characters of an answer that are looked at; a longer one equals nothing."""
PLACES = 6
"""Decimal places to which math-verify compares decimals with what is not one."""

_FRACTION = re.compile(r"\\[dtc]frac(?![a-z])")
_PART = r"(\{[^{}]*\}|[0-9a-zA-Z]|\\[a-z]+)"
_SHORT_FRACTION = re.compile(rf"\\frac\s*{_PART}\s*{_PART}")
_SHORT_ROOT = re.compile(r"\\sqrt\s*([0-9a-zA-Z])")
_THIN = re.compile(r"(?<=\d)(?:,\s*\\!\s*|\{,\}|\\,)\s*(?=\d{3}(?!\d))")
_LAYOUT = re.compile(
    r"\\(?:left|right|displaystyle|bigl?|bigr?|Bigl?|Bigr?|limits)(?![A-Za-z])\.?|\\[!,;: ]|~"
    r"|\\q?quad(?![A-Za-z])|\\[()\[\]]|\\?\$"
)
_DEGREES = re.compile(r"\^\s*\{?\s*(?:\\circ|\\degree)\s*\}?|\\degree|\u00b0")
_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|rm|it|sf|tt)|mbox|bm)\s*\{([^{}]*)\}"
)
_NAMED = re.compile(r"[A-Za-z](?:_\{?\w+\}?)?(?:\([a-z]\))?(?:=|\\in(?![a-z]))")
_ORDINAL = re.compile(
    r"(?<=\d)\s*\^?\s*\{?\s*(?:\\(?:text|mathrm|textrm)\s*\{)?(?:st|nd|rd|th)\}{0,2}$"
)
_GAP = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_BASE = re.compile(r"_\{?(\d{1,2})\}?$")
_LIST = re.compile(r",|;|\\pm|\\mp|(?<![A-Za-z])(?:and|or)(?![A-Za-z])")

_INTEGER = re.compile(r"-?\d{1,40}")


@dataclass(frozen=True, slots=True)
class Equality:
    """Whether two answers are equal, and which look decided it."""

    equal: bool
    look: Look
    gave_up: bool = False
    """True where math-verify came to no end on them: not equal, and said so."""


def compare(target: str, answer: str) -> Equality:
    r"""Return whether an answer, as LaTeX or text, equals the target.

    EqualityError when the process that compares cannot be started.

    >>> compare(r"\frac{1}{2}", "0.5").equal, compare("10,080", r"x = 10{,}080 \text{ cm}").look
    (True, 'exact')
    """
    if not answer.strip() or len(answer) > LONGEST:
        return Equality(False, "exact")
    target, answer = as_intervals(target, answer)
    first = first_look(target, answer)
    if first is not None:
        return Equality(first, "exact")
    said = math_verify_says(
        _ascii_digits(target), _ascii_digits(_undollared(answer)), _places(target)
    )
    return Equality(said is True, "math-verify", gave_up=said is None)


def is_list(answer: str) -> bool:
    r"""Return whether an answer names several values: `1,-2`, `1 \pm \sqrt{19}`, `2 or 3`."""
    return bool(_LIST.search(plain(answer)))


def first_look(target: str, answer: str) -> bool | None:
    """Return what can be said without algebra: equal, certainly not equal, or None."""
    if _INTEGER.fullmatch(target) and _INTEGER.fullmatch(answer):
        return int(target) == int(answer)
    gold, said = plain(target), plain(answer)
    units, words = (behind(target).unit, behind(answer).unit), behind(answer).words
    if units[0] and units[1] and not same_unit(*units):
        return False
    if said == gold:
        return True
    if words or contradicts_itself(answer):
        return False
    short_gold, short_said = _unnamed(gold, said), _unnamed(said, gold)
    if short_said == short_gold:
        return True
    numbers = rational(short_gold), rational(short_said)
    if numbers[0] is not None and numbers[1] is not None:
        return _same_number(numbers[0], numbers[1], short_said)
    named = target.lstrip().startswith("\\text{") and gold.isalpha()  # a word or a choice
    return False if named or _cannot_be(gold, said) else None


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    r"""Return an answer in the form in which equal answers are mostly the same text.

    >>> plain(r"\left( 3, \dfrac\pi2 \right)"), plain(r"\text{(C)}"), plain("11,\\! 100")
    ('(3,\\frac{\\pi}{2})', 'C', '11100')
    """
    plain = _FRACTION.sub(r"\\frac", _ascii_digits(text).strip())
    tail = behind(plain)
    plain = plain[: tail.start] if tail.start >= 0 else plain
    plain = _THIN.sub("", plain).replace("\u2212", "-")
    plain = _LAYOUT.sub(lambda found: " " if found.group() in _SPACES else "", plain)
    plain = _DEGREES.sub("", plain.replace("\\%", "").replace("%", "")).strip()
    plain = _ORDINAL.sub("", plain)
    for _ in range(3):
        plain = _FONT.sub(r"\1", plain)
    plain = _SHORT_FRACTION.sub(
        lambda found: rf"\frac{_braced(found[1])}{_braced(found[2])}", plain
    )
    plain = _GAP.sub("", _SHORT_ROOT.sub(r"\\sqrt{\1}", plain)).strip().rstrip(".")
    if _THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    return _word(plain)


_SPACES = ("\\ ", "~", "\\quad", "\\qquad", "\\;", "\\:", "\\,")


def _word(text: str) -> str:
    """Return a word in small letters and a choice without its parentheses."""
    if re.fullmatch(r"\([A-Z]\)", text):
        return text[1]
    return text.lower() if re.fullmatch(r"[A-Za-z]{2,}", text) else text


def _braced(text: str) -> str:
    return text if text.startswith("{") else f"{{{text}}}"


def _ascii_digits(text: str) -> str:
    """Return the text with the digits of other scripts, and full-width signs, as ASCII."""
    if text.isascii():
        return text
    return "".join(
        str(int(char))
        if char.isdecimal()
        else chr(ord(char) - 0xFEE0)
        if "\uff01" <= char <= "\uff5e"
        else char
        for char in text
    )


def _unnamed(text: str, other: str) -> str:
    """Return `x=5` as `5` where the other side names nothing, and `70_{10}` as `70`."""
    named = _NAMED.match(text)
    bare = text[named.end() :] if named and not _NAMED.match(other) else text
    return bare.removesuffix("_{10}").removesuffix("_10")


def _same_number(gold: Fraction, said: Fraction, text: str) -> bool:
    """Return whether two numbers are equal, or one is the other rounded to six places or more.

    Only what has no finite decimal may be rounded; math-verify would take 0.0000671 for 0.0000672.
    """
    if said == gold:
        return True
    _, point, decimals = text.partition(".")
    finite = not no_finite_decimal(gold)
    if finite or not point or not decimals.isdigit() or len(decimals) < PLACES:
        return False
    return round(gold, len(decimals)) == said


def contradicts_itself(answer: str) -> bool:
    r"""Return whether an answer equates two plain numbers that differ: `6 = 5`.

    math-verify takes the last side, whatever the others are. A number with a unit or a percent sign
    is not plain, and a decimal may be another side rounded.

    >>> [contradicts_itself(said) for said in ("6=5", "x=2+3=5", r"\frac13=0.33", "1 m = 100 cm")]
    [True, False, False, False]
    """
    if "=" not in answer or len(answer) > LONGEST:
        return False
    sides = [plain(side) for side in answer.split("=") if not _NOT_PLAIN.search(side)]
    numbers = [(value, side) for side in sides if (value := rational(side)) is not None]
    return any(
        one != other and not rounds_to(one, text) and not rounds_to(other, before)
        for (one, before), (other, text) in pairwise(numbers)
    )


_NOT_PLAIN = re.compile(
    r"%|\\\$|\u00b0|\\circ|(?<!\\)\b[A-Za-z]|\\(?:text|mbox|mathrm|pmod|bmod|mod)"
)


def _cannot_be(gold: str, said: str) -> bool:
    """Return whether math-verify need not be asked, or would be wrong to say yes."""
    if re.search(r"\d \d", said):  # math-verify multiplies: 7 10 would be 70
        return True
    bases = [found[1] if found else None for found in (_BASE.search(gold), _BASE.search(said))]
    if bases[1] not in (None, bases[0]) and re.fullmatch(r"-?\d+_.*", said):
        return True
    return (is_list(said) and not is_list(gold)) or not re.search(r"[0-9A-Za-z]", said)


def _undollared(text: str) -> str:
    return text.replace("\\$", "").replace("$", "")


def _places(target: str) -> int:
    """Return more decimal places for a small target, so that its digits are compared at all."""
    number = rational(plain(target))
    if not number:
        return PLACES
    places = PLACES
    while abs(number) < 1 and places < 40:
        number, places = number * 10, places + 1
    return places
