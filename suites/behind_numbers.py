r"""What stands behind the number of an answer: a unit, a thing that is counted, or other words.

A unit or a counted thing may be left out of a comparison; other words change what is said
(`5 \text{ or so}`, `5 \text{ thousand}`), so they stay. Used by equality.py.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from suites.units import NAMES, known, spelled

_TEXT = r"\\(?:text(?:rm|bf|it|normal)?|mbox|mathrm)\s*\{[^{}]{0,60}\}(?:\s*\^\s*\{?-?\d\}?)?"
_NAMED = "|".join(NAMES)
_BARE = rf"(?:(?:square|cubic|sq\.?|per|{_NAMED}|units?|percent|cm|km|mm|kg|mph)\b[ .]?)+"
_BEHIND = re.compile(
    rf"(?<=[\d}})])\s*(?:(?P<text>{_TEXT}(?:\s*/?\s*{_TEXT}){{0,2}})|(?P<bare>{_BARE}))\.?$"
)
_MARKUP = re.compile(r"\\(?:text(?:rm|bf|it|normal)?|mbox|mathrm)\s*\{|[{}()$,]|\\[ ;:!]|~")
_DEGREES = re.compile(r"(?:\^\s*\{?\s*\\circ\s*\}?|\\degree|\u00b0)(?P<more>.*)", re.S)
_DOLLARS = re.compile(r"\\\$")
_NO_UNIT = frozenset({"unit", "units", "percent", "square units", "square unit", "cubic units"})
_COUNTED = re.compile(r"(?:[A-Za-z-]+ ){0,3}(?P<last>[A-Za-z-]{3,})")
_PLURALS = frozenset({"people", "children", "men", "women", "feet", "dice", "mice", "geese"})
_CHANGING_WORDS = (
    "about almost always and approximately around as at but dozen dozens false fewer greater if is "
    "least less maybe minus mod modulo more most nearly no not or over per perhaps plus possibly "
    "probably so sometimes than under was when where wrong hundred hundreds thousand thousands "
    "million millions billion billions trillion trillions halves thirds quarters fourths fifths "
    "sixths sevenths eighths ninths tenths hundredths thousandths"
)
"""Words that make another statement of a number."""
_CHANGING = frozenset(_CHANGING_WORDS.split())


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands behind a number."""

    start: int = -1
    """Where it begins, if it may be left out; else -1."""
    unit: str = ""
    """The unit in symbols, where the table of units has it."""
    words: str = ""
    """Words that may not be left out."""


NOTHING = Behind()


@lru_cache(maxsize=4096)
def behind(text: str) -> Behind:
    r"""Return what stands behind the number that a text begins with.

    >>> behind(r"15\mbox{ cm}^2").unit, behind(r"5 \text{ ways}").start, behind("90^\\circ").unit
    ('cm^2', 1, 'deg')
    >>> behind(r"5 \text{ or so}")
    Behind(start=-1, unit='', words='or so')
    """
    plain = text.rstrip(" $")
    degrees = _DEGREES.search(plain)
    if degrees:
        plain = plain[: degrees.start()] + degrees["more"].lstrip(" }")
    found = (
        _BEHIND.search(plain)
        if "}" in plain[-5:] or plain[-1:].isalpha() or plain[-1:] == "."
        else None
    )
    if found is None:
        bare = not degrees or degrees["more"].strip(" }.")
        return Behind(unit=("$" if _DOLLARS.search(text) else "") if bare else "deg")
    words = " ".join(_MARKUP.sub(" ", found["text"] or found["bare"]).replace(".", " ").split())
    start = -1 if degrees else found.start()
    if not words or words in _NO_UNIT:
        return Behind(start)
    if known(words):
        return Behind(start, "" if degrees else spelled(words))
    return Behind(start) if _counted(words, plain[: found.start()]) else Behind(words=words)


def _counted(words: str, number: str) -> bool:
    """Return whether words name what is counted: `ways`, `positive integers`, behind 1 a `way`."""
    found = _COUNTED.fullmatch(words)
    if not found or _CHANGING & {word.lower() for word in words.split()}:
        return False
    last = found["last"].lower()
    plural = last in _PLURALS or (last.endswith("s") and not last.endswith(("ss", "us", "is")))
    return plural or number.strip(" $\\({") == "1"
