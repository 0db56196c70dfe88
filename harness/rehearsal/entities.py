# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Which element or planet a text means: by name, symbol, place, neighbour, or a letter set for it.

"the element with atomic number 26", "planet number 4", "the element right after tin", "X" after
"let X be ...". A worker that knows facts resolves these; nothing here computes.
"""

import re
from functools import cache

from harness.rehearsal.facts import by_symbol, elements, name_pattern, planets, spellings
from harness.rehearsal.reading import ORDINALS

_ORDINAL = "|".join([*list(ORDINALS)[:8], "1st", "2nd", "3rd", r"[4-8]th"])
_NEXT = r"(?:(?:that |which )?(?:comes? |stands? |lies? |is |sits? |found )?(?:directly |immediately |just |right |next |straight )*)"
_PLACE = r"(?:\s+(?:in order|counting|counted|outward|outwards|out))*(?:\s+from\s+the\s+sun)?(?:\s+outwards?)?"
_ALIASES = (
    r"(?:element\s+)?(?:with|whose|having|that has|which has)\s+(?:the\s+)?(?:chemical\s+)?symbol\s+(?:is\s+)?[\"'(]?[A-Z][a-z]?\b[\"')]?",
    r"(?:chemical\s+)?element\s+(?:(?:with|whose|having|that has|which has|of)\s+(?:the\s+|an\s+)?(?:atomic|proton)\s+number\s*(?:is\s+|of\s+|equal to\s+|equals\s+|=\s*|:\s*)?|number\s+|no\.\s*)\$?(\d{1,3})\b\$?",
    r"element\s+(?:with|whose nucle(?:us|i) (?:contains?|has|have|holds?)|whose atoms (?:contain|have)|having|that has|which has|containing)\s+(?:exactly\s+)?(\d{1,3})\s+protons(?: in (?:its|the) nucleus)?",
    r"(\d{1,3})\s+is\s+(?:then )?the atomic number of (?:an?|some|exactly one|another|which|what)\s+(?:chemical )?element",
    rf"(?:{_ORDINAL})\s+planet{_PLACE}",
    rf"planet\s+(?:number|no\.)\s*\$?(\d)\b\$?{_PLACE}",
    rf"planet\s+(?:that is |which is |in |at |with |whose |occupying |number )*(?:the )?(?:position|place|order)\s*(?:number |is |of )*\$?(\d)\b\$?{_PLACE}",
    rf"planet\s+(?:that is|which is|that comes|in)?\s*(?:the\s+)?(?:{_ORDINAL})(?: place| position)?\s+(?:from|away from|in order)[^.,?]{{0,12}}sun",
)
_NEIGHBOUR = rf"(?:next\s+)?(?:element|planet)\s+{_NEXT}(?P<side>after|following|follows|beyond|behind|outside|before|precedes|preceding|inside|prior to)\s+(?:the planet |the element )?(?P<of>{{name}})(?:\s+in\s+the\s+periodic\s+table)?"
_AFTER = ("after", "following", "follows", "beyond", "behind", "outside")
_SET = r"\b(?:let|call|where|and|with|,|if|suppose|denote)\s*\$?([a-zA-Z])\$?\s*(?:be|is|denotes?|=|stands? for)\s*(?:the\s+)?({entity})"
_CALLED = r"({entity})[^.,;?]{{0,30}}?[,(]?\s*(?:which we )?(?:call|name|label)(?:ed)?\s*(?:it|this element|this planet|that element|that planet)?\s*\$?([A-Za-z])\$?\b"


@cache
def entity_pattern() -> str:
    """Return a pattern without groups for every description of an element or planet."""
    neighbour = re.sub(r"\?P<\w+>", "?:", _NEIGHBOUR).replace("{name}", name_pattern())
    aliases = [re.sub(r"\((\\d(?:\{1,3\})?)\)", r"\1", alias) for alias in _ALIASES]
    return "|".join([neighbour, name_pattern(), *aliases])


@cache
def _neighbour() -> re.Pattern[str]:
    return re.compile(_NEIGHBOUR.replace("{name}", name_pattern()), re.IGNORECASE)


def by_number(number: int) -> str | None:
    """Return the element with an atomic number."""
    return next((f.name for f in elements().values() if f.known["number"] == str(number)), None)


def by_order(order: int) -> str | None:
    """Return the planet at a place counted from the Sun."""
    return next((p.name for p in planets().values() if p.known["order"] == str(order)), None)


def resolve(words: str) -> str:
    """Return the name behind a description, or the words themselves.

    >>> resolve("element right after tin"), resolve("planet number 4")
    ('antimony', 'mars')
    """
    words = re.sub(r"\s+", " ", words.replace("$", "")).strip()
    beside = _neighbour().search(words)
    if beside:
        by = 1 if beside["side"].lower() in _AFTER else -1
        return _beside(beside["of"], by, "planet" in words.lower()) or words
    symbol = re.search(r"symbol\s+(?:is\s+)?[\"'(]?([A-Z][a-z]?)\b", words)
    if symbol:
        return by_symbol(symbol[1]) or words
    planet = re.search(r"\bplanet\b", words, re.IGNORECASE) is not None
    digits = re.search(r"\d{1,3}", words)
    nth = re.search(rf"\b({_ORDINAL})\b", words, re.IGNORECASE)
    if planet and (nth or digits):
        word = nth[1].lower() if nth else ""
        place = ORDINALS.get(word) or int((digits or re.match(r"\d", word) or [0])[0])
        return by_order(int(place)) or words
    if digits and re.search(r"element", words, re.IGNORECASE):
        return by_number(int(digits[0])) or words
    return words


def _beside(name: str, by: int, planet: bool) -> str | None:
    name = spellings().get(name.lower(), name.lower())
    if name in planets() and (planet or name != "mercury"):
        return by_order(int(planets()[name].known["order"]) + by)
    return by_number(int(elements()[name].known["number"]) + by) if name in elements() else None


@cache
def _names() -> frozenset[str]:
    return frozenset({*elements(), *planets(), *spellings()})


def speaks_of_any(text: str) -> bool:
    """Say, at little cost, whether a text can mention an element or a planet at all."""
    low = text.lower()
    if "element" in low or "planet" in low:
        return True
    return not _names().isdisjoint(re.findall("[a-z]+", low))


@cache
def _described() -> re.Pattern[str]:
    return re.compile(entity_pattern(), re.IGNORECASE)


@cache
def _letter_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    entity = entity_pattern()
    being, called = (re.compile(form.format(entity=entity), re.I) for form in (_SET, _CALLED))
    return being, called


def letters_set(text: str) -> dict[str, str]:
    """Return letter -> name for letters a text sets for an element or planet."""
    being, called = _letter_patterns()
    found = {m[1]: resolve(m[2]) for m in being.finditer(text)}
    found |= {m[2]: resolve(m[1]) for m in called.finditer(text)}
    return {letter: name for letter, name in found.items() if name.lower() in _names()}


def mentioned(text: str) -> list[str]:
    """Return the names that a text mentions or describes, in order."""
    found = [resolve(m[0]).lower() for m in _described().finditer(text)]
    return list(dict.fromkeys(name for name in found if name in _names()))
