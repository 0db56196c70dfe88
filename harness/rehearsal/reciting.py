"""Say the facts a question needs, in its own words, so that a later reader can put them in place.

"the atomic number of tungsten" in a question becomes the statement "The atomic number of tungsten
is 74". What reads these statements is in `placing`, and knows no facts.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from harness.rehearsal.entities import (
    entity_pattern,
    letters_set,
    mentioned,
    resolve,
    speaks_of_any,
)
from harness.rehearsal.facts import ATTRIBUTES, elements, lookup, planets, spellings

Knows = Callable[[str], bool]
_FILLER = (
    r"(?:(?:of|in|for|inside|within|a|an|one|the|single|neutral|atoms?|nucleus"
    r"|nuclei|element|elements|planet|planets|chemical|each|every|has|have|held by|name"
    r"|belonging to|orbiting|around|counted|that orbit|which orbit|circling|respective)\s+)*"
)
_TAIL = (
    r"(?:\s+(?:atoms?|nucleus))?"
    r"(?:\s+(?:among|amongst) (?:all )?the (?:eight )?planets(?: of (?:the|our) solar system)?)?"
    r"(?:\s+in (?:the|our) (?:solar system|periodic table))?"
    r"(?:(?:\s*,)?\s*(?:\(?(?:counting|counted|in order"
    r"|as counted|measured|when counting|in the order|outward|outwards"
    r"|starting)\b[^,.?)]{0,30}?)?\bfrom the sun(?:\s+outwards?)?\)?)?"
)
_THAT = r"(?:this|that|the resulting|the same) (?:new )?(?:element|planet)"
_COUNTED_ON = re.compile(r"\b(?:places?|positions|steps?|spots) ", re.IGNORECASE)
"""The element meant is one to be counted out first."""
_ITS = re.compile(
    r"\b(?:its\s+(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in ATTRIBUTES.items())
    + r")|(?:number of )?(?P<spelt>letters) in its (?:english )?name)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)
def _phrases(letters: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    named = [rf"\$?\b(?-i:{letter})\b\$?" for letter in letters]
    entity = rf"(?:{'|'.join([entity_pattern(), _THAT, *named])})"
    many = (
        rf"{entity}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)"
        rf"(?:(?:of|in|the|planet|element)\s+){{0,3}}{entity})*"
    )
    found: list[tuple[str, re.Pattern[str]]] = []
    for attribute, words in ATTRIBUTES.items():
        asked = rf"(?:{words})\b(?:\s*\([^)]{{1,20}}\))?(?:\s+\(?(?:counted )?from the sun\)?)?"
        forms = (rf"\b{asked}\s+{_FILLER}({many}){_TAIL}", rf"({entity})'s\s+{asked}{_TAIL}")
        found += [(attribute, re.compile(form, re.IGNORECASE)) for form in forms]
    for attribute, thing in (
        ("moons", "(?:known )?(?:moons|natural satellites)"),
        ("number", "(?:protons|electrons)"),
        ("letters", "letters"),
    ):
        form = (
            rf"\bhow many {thing} (?:(?:does|do|has|have|are|orbit|circle|there|in|the|name|word"
            rf"|of|for|an?|single|one|nucleus|atom|neutral|planet|element|english)\s+)*"
            rf"({entity})(?: (?:nucleus|atoms?))?(?: have| has| contain)?"
        )
        found.append((attribute, re.compile(form, re.IGNORECASE)))
    return tuple(found)


@lru_cache(maxsize=4096)
def statements(text: str, knows: Knows) -> tuple[str, ...]:
    """Return what is known of everything a text asks for, as sentences that echo its words."""
    if not speaks_of_any(text):
        return ()
    letters = letters_set(text)
    said: list[str] = []
    for attribute, pattern in _phrases(tuple(sorted(letters))):
        for found in pattern.finditer(text):
            values = _values(found, attribute, (text, letters), knows)
            if values:
                said.append(_sentence(re.sub(r"\s+", " ", found[0]), values))
                said += _that_of(text, attribute, knows)
    said += _of_it(text, letters, knows)
    said += _basics(text, knows)
    return tuple(dict.fromkeys(said))


def _values(
    found: re.Match[str], attribute: str, of: tuple[str, dict[str, str]], knows: Knows
) -> list[str]:
    """Return the values of every name in a phrase, none unless all are known."""
    text, letters = of
    values: list[str] = []
    for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[1]):
        words = re.sub(r"^(?:(?:of|in|the|planet|element)\s+)+(?=\w+$)", "", part)
        name = letters.get(words.strip("$ ")) or resolve(words)
        if re.fullmatch(_THAT, words, re.IGNORECASE):
            if _COUNTED_ON.search(text[: found.start()]):
                return []
            name = _meant(text[: found.start()]) or words
        value = lookup(name, attribute) if _known(name, knows) else None
        if value is None:
            return []
        values.append(value)
    return values


def _meant(before: str) -> str | None:
    """Return what "that element" means after some text: the only one named, or one described."""
    names = mentioned(before)
    described = [m[0] for m in re.finditer(entity_pattern(), before, re.IGNORECASE)]
    sure = described and re.search(r"element|planet", described[-1], re.IGNORECASE)
    return names[-1] if names and (sure or len(names) == 1) else None


def _known(name: str, knows: Knows) -> bool:
    return knows(spellings().get(name.lower(), name.lower()))


def _sentence(phrase: str, values: list[str]) -> str:
    listed = " and ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else values[0]
    if phrase.lower().startswith("how many"):
        phrase = f"number asked for by {phrase}"
    phrase = phrase if "'s " in phrase else f"The {phrase}"
    return f"{phrase} {'are' if len(values) > 1 else 'is'} {listed}."


def _that_of(text: str, attribute: str, knows: Knows) -> Iterator[str]:
    entity = entity_pattern()
    for match in re.finditer(rf"\bthat of\s+(?:the planet\s+|the\s+)?({entity})", text, re.I):
        value = lookup(resolve(match[1]), attribute)
        if value and _known(resolve(match[1]), knows):
            yield f"{match[0].capitalize()} is {value}."


def _of_it(text: str, letters: dict[str, str], knows: Knows) -> Iterator[str]:
    """State "its atomic number", of what was mentioned last before it."""
    for found in _ITS.finditer(text):
        meant = None if _COUNTED_ON.search(text[: found.start()]) else _meant(text[: found.start()])
        before = [meant] if meant else list(letters.values())
        value = (
            lookup(before[-1], str(found.lastgroup).replace("spelt", "letters")) if before else None
        )
        if value and _known(before[-1], knows):
            its = found[0] if found["spelt"] is None else f"The {found[0]}"
            yield f"{its[:1].upper()}{its[1:]} is {value}."


def _basics(text: str, knows: Knows) -> Iterator[str]:
    """State number or place of whatever is mentioned at all: a reader may count on from there."""
    for name in mentioned(text):
        if not _known(name, knows):
            continue
        known = spellings().get(name, name)
        if known in elements():
            yield f"The atomic number of {name} is {lookup(name, 'number')}."
        if known in planets():
            yield f"The position of {name} is {lookup(name, 'order')}."
