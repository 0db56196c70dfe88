r"""Write an inequality in one variable, or two joined by "or", as the interval or union that it is.

Only as text: `x<5` is `(-\infty,5)`. Whether two intervals are equal is equality.py.
"""

import re

_LESS = re.compile(r"<=?|\u2264|\\(?:lt|leq?(?:slant)?)(?![A-Za-z])")
_SIGN = re.compile(r"(<=?|>=?|\u2264|\u2265|\\(?:lt|gt|leq?(?:slant)?|geq?(?:slant)?)(?![A-Za-z]))")
_OR = re.compile(r"\\text\s*\{\s*or\s*\}|(?<![A-Za-z\\])or(?![A-Za-z])|\\(?:lor|vee)(?![A-Za-z])")
_INTERVAL = re.compile(r"\s*\$?(?:[A-Za-z]\s*\\in(?![a-z])\s*)?(?:\\left\s*)?[(\[][^<>]*,[^<>]*")
_VARIABLE = re.compile(r"[A-Za-z]")
_NAME = re.compile(r"(?<![\\A-Za-z])[A-Za-z]|,|=")
LONGEST = 200


def as_intervals(target: str, answer: str) -> tuple[str, str]:
    r"""Return both texts, an inequality as its interval where the other is an interval.

    >>> as_intervals("x<5", r"(-\infty,5)"), as_intervals("x<5", "y<5")
    (('(-\\infty,5)', '(-\\infty,5)'), ('x<5', 'y<5'))
    """
    if _INTERVAL.fullmatch(answer) and _SIGN.search(target):
        return interval(target) or target, answer
    if _INTERVAL.fullmatch(target) and _SIGN.search(answer):
        return target, interval(answer) or answer
    return target, answer


def interval(text: str) -> str | None:
    r"""Return the interval of an inequality, or the union of two in the same variable; else None.

    >>> interval(r"x<2 \text{ or } x \ge 3"), interval(r"-1 \le t < 4"), interval("x<y")
    ('(-\\infty,2)\\cup[3,\\infty)', '[-1,4)', None)
    """
    parts = [_one(part) for part in _OR.split(text.strip(" $.")[:LONGEST])]
    if len(parts) > 2 or len({part[0] if part else None for part in parts}) != 1:
        return None
    return "\\cup".join(part[1] for part in parts if part) or None


def _one(text: str) -> tuple[str, str] | None:
    """Return the variable and the interval of one inequality."""
    pieces = [piece.strip(" $") for piece in _SIGN.split(text)]
    if len(pieces) == 3:
        left, sign, right = pieces
        less = bool(_LESS.fullmatch(sign))
        if _VARIABLE.fullmatch(left):
            ends = ("", right) if less else (right, "")
            return _written(left, ends, (sign, sign))
        ends = (left, "") if less else ("", left)
        return _written(right, ends, (sign, sign))
    if len(pieces) != 5:
        return None
    low, one, name, other, high = pieces
    if bool(_LESS.fullmatch(one)) != bool(_LESS.fullmatch(other)):
        return None
    if _LESS.fullmatch(one):
        return _written(name, (low, high), (one, other))
    return _written(name, (high, low), (other, one))


def _written(name: str, ends: tuple[str, str], signs: tuple[str, str]) -> tuple[str, str] | None:
    if not _VARIABLE.fullmatch(name) or any(_NAME.search(end) for end in ends):
        return None
    low, high = ends
    left = "[" if low and _closed(signs[0]) else "("
    right = "]" if high and _closed(signs[1]) else ")"
    return name, f"{left}{low or '-' + INFINITY},{high or INFINITY}{right}"


INFINITY = "\\infty"


def _closed(sign: str) -> bool:
    return "=" in sign or sign in "\u2264\u2265" or sign.startswith(("\\le", "\\ge"))
