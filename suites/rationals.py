r"""Read plain numbers exactly: integers, decimals, fractions, mixed numbers, powers of ten.

No algebra: whatever else a text holds, it is no number here. Normalising it first is equality.py.
"""

import re
from fractions import Fraction

_DECIMAL = r"(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})"
_RATIONALS = (
    re.compile(rf"(?P<whole>[-+]?{_DECIMAL})"),
    re.compile(
        rf"(?P<sign>[-+]?)(?:(?P<mixed>\d{{1,40}}) )?(?P<top>{_DECIMAL})/(?P<bottom>{_DECIMAL})"
    ),
    re.compile(
        r"(?P<sign>[-+]?)(?P<mixed>\d{0,40})\\frac\{(?P<minus>-?)(?P<top>\d{1,40})\}\{(?P<bottom>\d{1,40})\}"
    ),
    re.compile(rf"(?P<whole>[-+]?{_DECIMAL})(?:\\times|\\cdot)10\^\{{?(?P<ten>[-+]?\d{{1,3}})\}}?"),
)


def rational(text: str) -> Fraction | None:
    r"""Return the number that a plain text is, or None: `-1.50`, `3/4`, `1\frac{4}{5}`.

    >>> rational(r"-1\frac{4}{5}"), rational(r"6.7\times10^{-5}") == rational("0.000067")
    (Fraction(-9, 5), True)
    """
    for form in _RATIONALS:
        found = form.fullmatch(text)
        if found:
            return _fraction({name: value or "" for name, value in found.groupdict().items()})
    return None


def rounds_to(number: Fraction, text: str) -> bool:
    """Return whether a decimal is a number rounded to the decimal's places, at least one.

    >>> rounds_to(Fraction(1, 3), "0.33"), rounds_to(Fraction(6), "5")
    (True, False)
    """
    _, point, decimals = text.partition(".")
    said = rational(text)
    if said is None or not point or not decimals.isdigit():
        return False
    return abs(number - said) <= Fraction(1, 2 * 10 ** len(decimals))


def no_finite_decimal(number: Fraction) -> bool:
    """Return whether a number's decimals never end."""
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest != 1


def _fraction(parts: dict[str, str]) -> Fraction | None:
    if "whole" in parts:
        return Fraction(parts["whole"].rstrip(".")) * Fraction(10) ** int(parts.get("ten") or 0)
    bottom = Fraction(parts["bottom"].rstrip("."))
    if bottom == 0:
        return None
    value = Fraction(parts["top"].rstrip(".")) / bottom + int(parts.get("mixed") or 0)
    negative = (parts["sign"] == "-") != (parts.get("minus") == "-")
    return -value if negative else value
