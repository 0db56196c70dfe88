"""Say the facts a question needs, in its own words, so that a later reader can put them in place.

"the atomic number of tungsten" in a question becomes the statement "The atomic number of tungsten
is 74". The reader (`substitute`) knows no facts: it replaces phrases it was given.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from harness.rehearsal.facts import ATTRIBUTES, by_symbol, lookup, name_pattern, planets
from harness.rehearsal.reading import ORDINALS

Knows = Callable[[str], bool]
_FILLER = (
    r"(?:(?:of|in|for|inside|within|a|an|one|the|single|neutral|atoms?|nucleus"
    r"|nuclei|element|elements|planet|planets|chemical|each|every|has|have|held by"
    r"|belonging to|orbiting|around|counted|that orbit|which orbit|circling)\s+)*"
)
_TAIL = (
    r"(?:\s+(?:atoms?|nucleus))?(?:(?:\s*,)?\s*(?:\(?(?:counting|counted|in order"
    r"|as counted|measured|when counting|in the order|outward|outwards"
    r"|starting)\b[^,.?)]{0,30}?)?\bfrom the sun(?:\s+outwards?)?\)?)?"
)
_STATEMENT = re.compile(
    r"^\W*(?:so |here |also |thus )?(?:the )?([a-z][^.:;=?]{2,90}?) (?:is|are|="
    r"|equals) (-?\d+(?:(?:, | and )\d+)*)\W*$",
    re.IGNORECASE,
)


@cache
def _phrases() -> tuple[tuple[str, re.Pattern[str]], ...]:
    entity = rf"(?:{name_pattern()}|{_ALIAS})"
    many = rf"{entity}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?:of\s+|the planet\s+)?{entity})*"
    found: list[tuple[str, re.Pattern[str]]] = []
    for attribute, words in ATTRIBUTES.items():
        forms = (
            rf"\b(?:{words})\b(?:\s+from the sun)?\s+{_FILLER}({many}){_TAIL}",
            rf"\b({entity})'s\s+(?:{words})\b(?:\s+from the sun)?",
        )
        found += [(attribute, re.compile(form, re.IGNORECASE)) for form in forms]
    found.append(
        (
            "moons",
            re.compile(
                rf"\bhow many (?:known )?moons (?:does |has |orbit )?({entity})(?: have| has)?",
                re.IGNORECASE,
            ),
        )
    )
    return tuple(found)


_NTH = "|".join([*list(ORDINALS)[:8], "1st", "2nd", "3rd", r"[4-8]th"])
_ALIAS = (
    r"(?:element\s+)?(?:with|whose|having)\s+(?:the\s+)?(?:chemical\s+)?symbol\s+(?:is\s+)?[\"'(]?[A-Z][a-z]?\b[\"')]?"
    rf"|(?:{_NTH})\s+planet(?:\s+(?:in order|counting|outward|out))?(?:\s+from\s+the\s+sun)?"
)


def resolve(words: str) -> str:
    """Return the name behind a description ("the fourth planet"), or the words themselves."""
    symbol = re.search(r"symbol\s+(?:is\s+)?[\"'(]?([A-Z][a-z]?)\b", words)
    if symbol:
        return by_symbol(symbol[1]) or words
    nth = re.search(rf"({_NTH})\s+planet", words, re.IGNORECASE)
    if nth:
        word = nth[1].lower()
        order = str(ORDINALS.get(word, word[0]))
        return next((p.name for p in planets().values() if p.known["order"] == order), words)
    return words.strip()


def statements(text: str, knows: Knows) -> list[str]:
    """Return what is known of everything a text asks for, as sentences that echo its words."""
    said: list[str] = []
    for attribute, pattern in _phrases():
        for found in pattern.finditer(text):
            parts = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[1])
            names = [resolve(re.sub(r"^(?:of|the planet)\s+", "", part)) for part in parts]
            values = [lookup(name, attribute) if knows(name.lower()) else None for name in names]
            known = [value for value in values if value is not None]
            if len(known) != len(values):
                continue
            listed = (
                " and ".join([", ".join(known[:-1]), known[-1]]) if len(known) > 1 else known[0]
            )
            phrase = re.sub(r"\s+", " ", found[0])
            if phrase.lower().startswith("how many"):
                phrase = f"number asked for by {phrase}"
            phrase = phrase if "'s " in phrase else f"The {phrase}"
            said.append(f"{phrase} {'are' if len(known) > 1 else 'is'} {listed}.")
            said += _that_of(text, attribute, knows)
    return list(dict.fromkeys(said))


def _that_of(text: str, attribute: str, knows: Knows) -> list[str]:
    found = re.finditer(rf"\bthat of\s+(?:the planet\s+)?({name_pattern()})", text, re.IGNORECASE)
    values = [(match[0], match[1], lookup(match[1], attribute)) for match in found]
    return [
        f"{phrase.capitalize()} is {value}."
        for phrase, name, value in values
        if value and knows(name.lower())
    ]


def read_statements(replies: Sequence[str]) -> dict[str, str]:
    """Return phrase -> number for every sentence of earlier replies that says "P is N"."""
    found: dict[str, str] = {}
    for reply in replies:
        for sentence in re.split(r"(?<=\d)\.\s+|(?<=[a-z])[.:]\s+|\n+", reply):
            match = _STATEMENT.match(sentence.strip())
            if match:
                phrase = match[1].lower().removeprefix("number asked for by ")
                found[phrase] = match[2]
                owned = re.fullmatch(r"(.+?) of (?:the )?(\w+)", phrase)
                if owned:
                    found.setdefault(f"{owned[2]}'s {owned[1]}", match[2])
    return found


def substitute(text: str, bindings: dict[str, str]) -> tuple[str, int]:
    """Put numbers in the place of phrases, longest phrase first; return how many were placed."""
    placed = 0
    for phrase in sorted(bindings, key=len, reverse=True):
        words = r"\s+".join(map(re.escape, phrase.split()))
        pattern = re.compile(rf"(?:\bthe\s+)?(?<![\w']){words}(?![\w'])", re.IGNORECASE)
        text, count = pattern.subn(f" {bindings[phrase]} ", text)
        placed += count
    return text, placed
