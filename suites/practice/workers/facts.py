# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Facts about chemical elements, planets and units (facts.toml), and their use in a text."""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from podium.suites.practice.workers.workers import spell_out

NOBLE = (2, 10, 18, 36, 54, 86, 118)
COMMON = {
    "hydrogen", "helium", "carbon", "nitrogen", "oxygen", "sodium", "calcium", "iron", "gold",
    "mercury", "venus", "earth",
}  # fmt: skip
"""Names of the elements and planets that a worker with `common` facts knows."""

ATTRIBUTES = {
    "number": (
        r"atomic numbers?|proton numbers?|numbers? of protons|proton counts?|protons"
        r"|nuclear charge|numbers? of electrons|electrons"
    ),
    "period": r"period(?: numbers?)?|row",
    "group": r"group(?: numbers?)?",
    "mass": r"(?:relative )?atomic (?:mass|weight)(?:es|s)?|molar mass(?:es)?",
    "symbol": r"(?:chemical )?symbols?|abbreviation",
    "category": r"category|family|class|type of element|kind of element|classified|classification",
    "moons": (
        r"numbers? of (?:known |natural |confirmed )*(?:moons|satellites)|moon counts?"
        r"|(?:known |natural )*(?:moons|satellites)"
    ),
    "order": (
        r"positions?(?: in order)?(?: numbers?)?|planet numbers?|order|ordinal(?: number| position)?"
        r"|place|rank|planet number"
    ),
    "diameter": r"diameter|size|radius",
    "year": r"orbital period|year|time to orbit",
    "kind": r"type of planet|kind of planet",
    "letters": (
        r"(?:number|count) of (?:number of )?(?:letters|characters) in (?:the|its) (?:english )?(?:names?|words?)(?: for)?"
        r"|(?:letters|characters) in the (?:english )?(?:names?|words?)(?: for)?"
        r"|letter counts?|length of the (?:english )?names?"
    ),
}


class _FactTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    elements: tuple[str, ...]
    spellings: dict[str, str]
    planets: dict[str, tuple[int, int, int, int, str, str]]
    units: dict[str, tuple[str, str]]
    constants: dict[str, float]


Properties = dict[str, dict[str, str]]
"""Name of an element or planet -> name of an attribute -> the attribute's value, as text."""


def _group(number: int) -> int | None:
    start = max((gas for gas in NOBLE if gas < number), default=0)
    length = min(gas for gas in NOBLE if gas >= number) - start
    column = number - start
    if column <= 2 and number != 2:
        return column
    return None if length == 32 and column <= 16 else column + 18 - length


def _category(number: int, group: int | None) -> str:
    if group is None or number in (71, 103):
        return "lanthanide" if number < 80 else "actinide"
    if number in (1, 6, 7, 8, 15, 16, 34):
        return "nonmetal"
    if number in (5, 14, 32, 33, 51, 52):
        return "metalloid"
    names = {1: "alkali metal", 2: "alkaline earth metal", 17: "halogen", 18: "noble gas"}
    if group in names:
        return names[group]
    return "transition metal" if group <= 12 else "post-transition metal"


@cache
def table() -> _FactTable:
    """Return the tables of facts.toml: elements, planets, spellings, units and constants."""
    path = Path(__file__).with_name("facts.toml")
    return _FactTable.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


@cache
def elements() -> Properties:
    """Return name -> attributes of the chemical elements."""
    return dict(_element(number, row) for number, row in enumerate(table().elements, start=1))


def _element(number: int, row: str) -> tuple[str, dict[str, str]]:
    symbol, name, mass = row.split()
    group = _group(number)
    known = {
        "symbol": symbol,
        "number": str(number),
        "mass": mass,
        "period": str(1 + sum(gas < number for gas in NOBLE)),
        "category": _category(number, group),
        "letters": str(len(name)),
    }
    return name, {**known, "group": str(group)} if group else known


@cache
def planets() -> Properties:
    """Return name -> attributes of the planets."""
    keys = ("order", "moons", "diameter", "year", "kind", "nickname", "letters")
    return {
        name: dict(zip(keys, map(str, (*values, len(name))), strict=True))
        for name, values in table().planets.items()
    }


@cache
def _names() -> frozenset[str]:
    return frozenset({*elements(), *planets(), *table().spellings})


@cache
def name_pattern() -> str:
    """Return a regular expression that matches each name of a chemical element or planet."""
    return r"\b(?:" + "|".join(sorted(_names(), key=len, reverse=True)) + r")\b"


def usual_name(name: str) -> str:
    """Return the name of an element or planet in the spelling of facts.toml."""
    return table().spellings.get(name, name)


def lookup(name: str, attribute: str) -> str | None:
    """Return an attribute of an element or planet, or None. For Mercury the attribute decides."""
    name = usual_name(name.lower())
    facts = (kind.get(name, {}).get(attribute) for kind in (elements(), planets()))
    return next((fact for fact in facts if fact is not None), None)


def name_of(facts: Properties, attribute: str, value: object) -> str | None:
    """Return the name whose attribute has a value (case matters: Co is not CO), or None."""
    return next((name for name, known in facts.items() if known[attribute] == str(value)), None)


def attributes_in(text: str) -> list[str]:
    """Return the names of the attributes of elements and planets that a text mentions."""
    return [
        name
        for name, pattern in ATTRIBUTES.items()
        if re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
    ]


_NUMBERED = r"(?:chemical\s+)?element\s+(?:(?:with|whose|having|that has|which has|of)\s+(?:the\s+|an\s+)?(?:atomic|proton)\s+number\s*(?:is\s+|of\s+|equal to\s+|equals\s+|=\s*|:\s*)?|number\s+|no\.\s*)\$?\d{1,3}\b\$?"
_SET = r"\b(?:let|call|where|and|with|,|if|suppose|denote)\s*\$?([a-zA-Z])\$?\s*(?:be|is|denotes?|=|stands? for)\s*(?:the\s+)?({entity})"
_CALLED = r"({entity})[^.,;?]{{0,30}}?[,(]?\s*(?:which we )?(?:call|name|label)(?:ed)?\s*(?:it|this element|this planet|that element|that planet)?\s*\$?([A-Za-z])\$?\b"


@cache
def _entity_pattern() -> str:
    """Return a regular expression, without groups, for names and numbers of elements, planets."""
    return f"{name_pattern()}|{_NUMBERED}"


def _resolve(words: str) -> str:
    """Return the name of the element that a description gives, or the words themselves.

    >>> _resolve("element with atomic number 50")
    'tin'
    """
    words = " ".join(words.replace("$", "").split())
    numbered = re.search(r"element.*?(\d{1,3})", words, re.IGNORECASE)
    return (numbered and name_of(elements(), "number", numbered[1])) or words


def _speaks_of_any(text: str) -> bool:
    """Return, by a fast check, whether a text may mention an element or a planet."""
    low = text.lower()
    told = "element" in low or "planet" in low
    return told or not _names().isdisjoint(re.findall("[a-z]+", low))


@cache
def _described() -> re.Pattern[str]:
    return re.compile(_entity_pattern(), re.IGNORECASE)


@cache
def _letter_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    entity = _entity_pattern()
    being, called = (re.compile(form.format(entity=entity), re.I) for form in (_SET, _CALLED))
    return being, called


def _letters_set(text: str) -> dict[str, str]:
    """Return letter -> name for the letters that a text defines as an element or planet."""
    being, called = _letter_patterns()
    found = {m[1]: _resolve(m[2]) for m in being.finditer(text)}
    found |= {m[2]: _resolve(m[1]) for m in called.finditer(text)}
    return {letter: name for letter, name in found.items() if name.lower() in _names()}


def _mentioned(text: str) -> list[str]:
    found = [_resolve(m[0]).lower() for m in _described().finditer(text)]
    return list(dict.fromkeys(name for name in found if name in _names()))


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
"""Matches words which show that an element must first be found by counting places."""
_ITS = re.compile(
    r"\b(?:its\s+(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in ATTRIBUTES.items())
    + r")|(?:number of )?(?P<spelt>letters) in its (?:english )?name)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)
def _phrases(letters: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    named = [rf"\$?\b(?-i:{letter})\b\$?" for letter in letters]
    entity = rf"(?:{'|'.join([_entity_pattern(), _THAT, *named])})"
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
    """Return sentences, in a text's own words, on all facts that it asks for and a worker knows."""
    if not _speaks_of_any(text):
        return ()
    letters = _letters_set(text)
    said: list[str] = []
    for attribute, pattern in _phrases(tuple(sorted(letters))):
        for found in pattern.finditer(text):
            values = _values(found, attribute, letters, knows)
            if values:
                said.append(_sentence(re.sub(r"\s+", " ", found[0]), values))
                said += _that_of(text, attribute, knows)
    said += _of_it(text, letters, knows)
    said += _basics(text, knows)
    return tuple(dict.fromkeys(said))


def _values(
    found: re.Match[str], attribute: str, letters: dict[str, str], knows: Knows
) -> list[str]:
    """Return an attribute's values for all names in a phrase; an empty list if one is unknown."""
    before, values = found.string[: found.start()], list[str]()
    for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[1]):
        words = re.sub(r"^(?:(?:of|in|the|planet|element)\s+)+(?=\w+$)", "", part)
        name = letters.get(words.strip("$ ")) or _resolve(words)
        if re.fullmatch(_THAT, words, re.IGNORECASE):
            if _COUNTED_ON.search(before):
                return []
            name = _meant(before) or words
        value = lookup(name, attribute) if _known(name, knows) else None
        if value is None:
            return []
        values.append(value)
    return values


def _meant(before: str) -> str | None:
    """Return which name "that element" means after a text: one described or the only one named."""
    names = _mentioned(before)
    described = [m[0] for m in _described().finditer(before)]
    sure = described and re.search(r"element|planet", described[-1], re.IGNORECASE)
    return names[-1] if names and (sure or len(names) == 1) else None


def _known(name: str, knows: Knows) -> bool:
    return knows(usual_name(name.lower()))


def _sentence(phrase: str, values: list[str]) -> str:
    listed = " and ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else values[0]
    if phrase.lower().startswith("how many"):
        phrase = f"number asked for by {phrase}"
    phrase = phrase if "'s " in phrase else f"The {phrase}"
    return f"{phrase} {'are' if len(values) > 1 else 'is'} {listed}."


def _that_of(text: str, attribute: str, knows: Knows) -> Iterator[str]:
    entity = _entity_pattern()
    for match in re.finditer(rf"\bthat of\s+(?:the planet\s+|the\s+)?({entity})", text, re.I):
        value = lookup(_resolve(match[1]), attribute)
        if value and _known(_resolve(match[1]), knows):
            yield f"{match[0].capitalize()} is {value}."


def _of_it(text: str, letters: dict[str, str], knows: Knows) -> Iterator[str]:
    """Yield sentences on phrases such as "its atomic number", for the name mentioned before."""
    for found in _ITS.finditer(text):
        before = text[: found.start()]
        meant = None if _COUNTED_ON.search(before) else _meant(before)
        named = [meant] if meant else list(letters.values())
        attribute = str(found.lastgroup).replace("spelt", "letters")
        value = lookup(named[-1], attribute) if named else None
        if value and _known(named[-1], knows):
            its = found[0] if found["spelt"] is None else f"The {found[0]}"
            yield f"{its[:1].upper()}{its[1:]} is {value}."


def _basics(text: str, knows: Knows) -> Iterator[str]:
    """Yield atomic number or position of each name in a text, from which a reader can count on."""
    for name in _mentioned(text):
        known = usual_name(name) if _known(name, knows) else ""
        if known in elements():
            yield f"The atomic number of {name} is {lookup(name, 'number')}."
        if known in planets():
            yield f"The position of {name} is {lookup(name, 'order')}."


_STATEMENT = re.compile(
    r"^\W*(?:so |here |also |thus )?(?:the )?([a-z][^.:;=?]{2,160}?) (?:is|are|="
    r"|equals) (-?\d+(?:(?:, | and )\d+)*)\W*$",
    re.IGNORECASE,
)
_VALUE = re.compile(r"^the value of (.{1,160}) is (-?\d+)(?:\.|$)", re.IGNORECASE)
_BACK = r"back\w*|before|left\w*|preced\w+|earlier|down\w*|prior"
_WAY = rf"(?:{_BACK}|after|beyond|past|follow\w+|forwards?|ahead|further|farther|later|right\w*|up\w*|on|along|from)"
_COUNT = r"(\$?[\w()+*^-]{1,24}\$?)"
_STEPS = rf"{_COUNT} (?:places?|positions?|elements?|steps?|spots?|squares?|boxes)"
_REACHED = r"(?:that |which |you |we |one |is |are |lies |comes |stands |reached |found |located |obtained |gets? |reach(?:es)? |arrived? |at |to |by |sits |when |if |on |after |moving |going |counting |stepping |moves? |goes |go |steps? |forwards? |back\w* |ahead |in the periodic table )*"


def _read_statements(reply: str) -> dict[str, str]:
    """Return phrase -> number for each sentence "PHRASE is NUMBER" of an earlier reply."""
    found: dict[str, str] = {}
    for sentence in re.split(r"(?<=\d)\.\s+|(?<=[a-z])[.:]\s+|\n+", reply):
        match = _STATEMENT.match(sentence.strip())
        if match and not match[1].lower().startswith("value of"):
            phrase = match[1].lower().removeprefix("number asked for by ")
            found[phrase] = match[2]
            owned = re.fullmatch(r"(.+?) of (?:the )?(\w+)", phrase)
            if owned:
                found.setdefault(f"{owned[2]}'s {owned[1]}", match[2])
    return found


def place_statements(text: str, replies: Sequence[str]) -> str:
    """Return a text in which phrases are replaced by the numbers that earlier replies state."""
    for reply in replies:
        bindings = _read_statements(reply)
        text = _substitute(_put_values(text, reply), bindings)
        text = _walked(_set_by_name(text, bindings), bindings)
    return text


def _set_by_name(text: str, bindings: dict[str, str]) -> str:
    """Replace "tin has atomic number n" or "Mars is the k-th planet" by the letter's value."""
    for phrase, value in bindings.items():
        known = re.fullmatch(r"(?:atomic number|position) of ([a-z]+)", phrase)
        if known is None:
            continue
        place = r"(?:the )?(?:planet )?(?:number )?(?:in (?:position|place) (?:number )?)?"
        text = re.sub(
            rf"(?i)\b{known[1]}(?: (?:has|having|with)(?: the| an?)? atomic number (?:of )?| is {place})"
            r"\$?\b([a-z])\b\$?(?:\s?-?\s?th)?(?: planet)?(?:[^.,;?]{0,20}from the sun)?",
            rf" \1 = {value} ",
            text,
        )
    return text


def _put_values(text: str, reply: str) -> str:
    """Replace letters and expressions in a text by their values in a reply."""
    for line in reply.splitlines():
        found = _VALUE.match(line.strip())
        if found and len(found[1]) == 1:
            own = rf"\$?(?<![\w']){re.escape(found[1])}(?![\w'])\$?"
            kept = re.sub(rf"(?i)\b(?:let|call)\s+{own}\s+(?:be|denote)\b", "take ", text)
            text = re.sub(own, f" {found[2]} ", kept) if found[1] != "a" else text
        elif found:
            text = text.replace(found[1], f" {found[2]} ")
    return text


def _substitute(text: str, bindings: dict[str, str]) -> str:
    """Replace phrases in a text by their numbers in `bindings`, the longest phrase first."""
    for phrase in sorted(bindings, key=len, reverse=True):
        words = r"\s+".join(map(re.escape, phrase.split()))
        pattern = re.compile(rf"(?:\bthe\s+)?(?<![\w']){words}(?![\w'])", re.IGNORECASE)
        text = pattern.sub(f" {bindings[phrase]} ", text)
    return text


_NUMBER_OF = (
    r"(?i)(?:the )?(?:atomic|proton) number (?:of|for) the element with atomic number (\([^()]*\))",
    r"(?i)(?:the )?number of protons (?:of|in) (?:(?:the|an?|atoms?|nucleus|of) )*the element with atomic number (\([^()]*\))",
)
_NUMBER_REACHED = r"(?i)(?:the )?(?:atomic number|number of protons) (?:of|in) (?:the|this|that)(?: new| resulting)? element(?: (?:that )?(?:you|we|one) (?:reach|arrive|land|end up|get to)\w*(?: on| at)?| reached| found)?"


def _walked(text: str, bindings: dict[str, str]) -> str:
    """Replace "the element 5 places after zinc" by "the element with atomic number (30 + 5)"."""
    numbers = {k.removeprefix("atomic number of "): v for k, v in bindings.items() if k.startswith("atomic number of ")}  # fmt: skip
    for name, start in sorted(numbers.items(), key=lambda item: -len(item[0])):
        if not re.fullmatch(r"[a-z]+", name) or not start.isdigit():
            continue
        for pattern in _walks(name):
            found = pattern.search(text)
            if found is None:
                continue
            steps = spell_out(found["steps"].strip("$"))
            way = "-" if re.search(rf"\b(?:{_BACK})\b", found[0], re.IGNORECASE) else "+"
            text = f"{text[: found.start()]}the element with atomic number ({start} {way} {steps}){text[found.end() :]}"
            for asked in _NUMBER_OF:
                text = re.sub(asked, r" \1 ", text)
            text = re.sub(_NUMBER_REACHED, f" ({start} {way} {steps}) ", text)
    return text


def _walks(name: str) -> list[re.Pattern[str]]:
    steps = _STEPS.replace("(", "(?P<steps>", 1)
    return [
        re.compile(rf"(?:the )?(?:chemical )?element {_REACHED}{steps} (?:{_WAY}|in the periodic table|of|the|table|element| )*\s*\b{name}\b(?: in the periodic table)?", re.I),
        re.compile(rf"(?:the )?(?:chemical )?element {_REACHED}(?:(?:starting|beginning) )?(?:from|at|with) {name}[^.?]{{0,40}}?{steps}(?: {_WAY}| in the periodic table)*", re.I),
        re.compile(rf"(?:start\w*|begin\w*) (?:at|from|with|on) (?:the )?(?:element )?{name}\b[^?]{{0,80}}?{steps}(?: {_WAY}| in the periodic table)*", re.I),
        re.compile(rf"from {name},? (?:move|go|step|count)\w* [^.?]{{0,30}}?{steps}(?: {_WAY}| in the periodic table)*", re.I),
    ]  # fmt: skip
