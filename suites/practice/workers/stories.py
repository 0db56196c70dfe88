# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Readers of word problems: prices, rates, stocks, averages, equal pieces, joint work."""

import re
from functools import reduce

from podium.suites.practice.workers.arithmetic import Node
from podium.suites.practice.workers.phrases import Rewriting, op

A = r"#(\d+)"
_TIME = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
MANY = rf"{A}(?:(?:\s*,\s*|\s*,?\s*(?:and|or|nor|by|if|(?:but|and) not)\s+(?:(?:by|of)\s+)?)(?:both\s+)?{A})*"

BOUNDS = (
    (rf"(?:between|from|in the range|among|in the interval|numbers|integers)\s*\[?{A}\s*(?:,\s*#\d+\s*,\s*\.\.\.\s*,|and|to|through|up to|,)\s*{A}", 0, 0),
    (rf"{A}\s*(?:≤|<=)\s*[a-z]\s*(?:≤|<=)\s*{A}", 0, 0),
    (rf"{A} (?:to|through) {A}", 0, 0),
)  # fmt: skip

UPPER = (
    (rf"(?:less than|below|under|smaller than|fewer than|strictly less than|before|precedes|preceding|<)\s*{A}", -1),
    (rf"(?:at most|up to|not exceeding|no more than|no (?:larger|greater|bigger) than|not (?:greater|larger|more) than|less than or equal to|≤|do(?:es)? not exceed)\s*{A}", 0),
)  # fmt: skip

LOWER = (
    (rf"(?:greater than|above|(?<!not )exceeding|(?<!no )(?<!not )more than|(?<!no )(?<!not )larger than|bigger than|over|>|after|following|follows|beyond|exceeds)\s*{A}", 1),
    (rf"(?:at least|no less than|not less than|≥|greater than or equal to)\s*{A}", 0),
)  # fmt: skip

CONDITIONS: tuple[tuple[str, str], ...] = (
    ("divisor count", rf"(?:exactly|precisely|has|have|with|just)\s*{A}\s*(?:distinct |different )?(?:positive )?(?:integer )?(?:divisors|factors)"),
    ("digit sum", rf"(?:digit sum|digits sum|sum of (?:its |the |their |whose )?digits|digits (?:add up|add|sum|adding up))\s*(?:is|of|to|equal to|equals|that is|are)?\s*(?:equal to\s*)?(?:exactly\s*)?{A}"),
    ("remainder", rf"remainder(?: of)?\s*{A}[^#.]{{0,50}}(?:divided by|division by|dividing by|divide(?:s|d)? (?:it |them )?by|modulo|mod)\s*{A}"),
    ("remainder", rf"≡\s*{A}\s*\(?\s*mod\s*{A}"),
)  # fmt: skip

PLAIN = (
    ("prime", r"\bprimes?\b(?! (?:factor|divisor))"),
    ("even", r"\beven (?:positive )?(?:integer|number|whole|n\b)|\b(?:is|are) even\b"),
    ("odd", r"\bodd (?:positive )?(?:integer|number|whole|n\b)|\b(?:is|are) odd\b"),
)  # fmt: skip

MONEY = r"(?:[$€£]\s*)?"
SALE = rf"{A} [a-z ]{{2,40}}?(?: that cost| costing| priced| which cost| worth)?,?\s*(?:at|for|cost|costs|costing|worth)?\s*{MONEY}{A}\s*(?:dollars|euros|pounds|cents|coins|credits)?\s*(?:each|apiece|per|every)"
UNIT_PRICE = rf"\b(?:each|every|one|an?|per) (?:single )?(?!and\b|of\b|the\b|for\b)([a-z]+?)s?\b[^#.]{{0,30}}?(?:costs?|is|sells for|weighs|holds|has|contains|seats|for|gets|needs|uses)\s*{MONEY}{A}"
PRICED = rf"\b([a-z]{{3,}}?)(?:s|es)? (?:at|for|cost|costs|costing|priced at|are) {MONEY}{A}[a-z $€£]{{0,12}}(?:each|apiece|per)"
CREW = rf"{A} [a-z]+ (?:can |could )?[a-z ]{{0,40}}?(?:in|take|takes|need|needs) {A} (?:hours|days|minutes|weeks)[^#]{{0,80}}{A}"


def read_story(state: Rewriting) -> Node | None:
    """Return the calculation of a word problem, or None if no reader knows its kind."""
    nodes = (reader(state) for reader in READERS)
    return next((node for node in nodes if node is not None), None)


def _parts(state: Rewriting, pattern: str) -> list[list[Node]]:
    return [state.marks(found[0]) for found in re.finditer(pattern, state.text)]


def _together(state: Rewriting) -> Node | None:
    """Return the least common multiple of periods, if a text asks when events coincide."""
    if not state.find(r"together|same (?:time|moment|day|instant)|simultaneous|coincide|both"):
        return None
    every = r"(?:every|each|once in|once every|after every|at intervals of)"
    several = _parts(state, rf"(?:every|intervals of)\s+{A}(?:(?:,| and|, and)\s*{A})+")
    turns = several[0] if several else [one for one, *_ in _parts(state, rf"{every}\s+{A}")]
    return op("common multiple", *turns) if len(turns) > 1 else None


def _crew(state: Rewriting) -> Node | None:
    found = _parts(state, CREW)
    if not found or not state.find(r"how (?:long|many (?:hours|days|minutes|weeks))"):
        return None
    workers, days, others = found[0][:3]
    return workers * days / others


def _sale(state: Rewriting) -> Node | None:
    if state.find(r"\b(?:km|kilomet|mph|miles|legs|per ?cent|older|younger)|%"):
        return None
    sales = _unit_prices(state)
    sales = sales or [parts[:2] for parts in _parts(state, SALE) if len(parts) >= 2]
    if not sales or not state.find(r"how much|total|cost|pay|spend|price|bill|altogether|how many"):
        return None
    return reduce(Node.__add__, [op("product", *sale) for sale in sales])


def _unit_prices(state: Rewriting) -> list[list[Node]]:
    """Return (number, price) of things whose price and number are in different places of a text."""
    found: list[list[Node]] = []
    for match in re.finditer(UNIT_PRICE, state.text):
        counted = state.find(rf"{A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b")
        if counted and counted[1] != match[2]:
            found.append([state.at(counted[1]), state.at(match[2])])
    for match in re.finditer(PRICED, state.text):
        counts = re.findall(rf"{A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b", state.text)
        others = [count for count in counts if count != match[2]]
        found += [[state.at(count), state.at(match[2])] for count in others[:1]]
    return found


def _total(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else op("sum", *parts)


def _first(state: Rewriting, *patterns: str) -> list[Node]:
    found = next(filter(None, map(state.find, patterns)), None)
    return [state.at(mark) for mark in found.groups() if mark and mark.isdigit()] if found else []


def _asks(state: Rewriting, pattern: str) -> bool:
    parts = re.split(r"(?<=[.;])\s|\n", state.text)
    asking = [one for one in parts if re.search(r"\?|\bfind\b|determine|calculate|compute", one)]
    return re.search(pattern, " ".join(asking) or state.text) is not None


def _average(state: Rewriting) -> Node | None:
    """Return the sum of some numbers, if a text states how many they are and their average."""
    found = _first(state, rf"(?:average|mean) (?:\w+ )?of {A} [a-z]+ is {A}")
    return op("product", *found) if len(found) == 2 and _asks(state, r"sum|total|add") else None


_UP = r"buys?|bought|gets?|got|receiv\w+|finds?|found|adds?|added|picks?|picked|earns?|earned|wins?|won|collect\w*|board\w*|get on|gets on|got on|arrive\w*|join\w*|climbs?|rises?|rose|delivered|put|saves?|saved|deposit\w*|gains?|gained|enter\w*|more"
_DOWN = r"gives?|gave|given|sells?|sold|los[te]\w*|eats?|ate|eaten|spends?|spent|uses?|used|breaks?|broke|leaves?|left|get off|gets off|got off|removes?|removed|takes? away|took|withdr\w+|falls?|fell|drops?|dropped|donat\w+|throws?|threw|pays?|paid|borrow\w*|lent|lends"


def _stock(state: Rewriting) -> Node | None:
    """Return how much is left of a stock that a text states first and then adds to or reduces."""
    if not _asks(state, r"how (?:many|much)|what is"):
        return None
    has = r"(?:has|had|have|holds?|contains?|contained|there (?:are|were)|starts? with|started with|with|carries|carrying|owns?|owned|is|was|bakes?|baked)"
    start = state.find(rf"{has} (?:exactly )?(?:\$|€)?{A}")
    if start is None:
        return None
    total = state.at(start[1])
    way = rf"(?:(?P<up>{_UP})|(?P<down>{_DOWN}))"
    changed = rf"\b{way}\b(?: [a-z$€]+){{0,4}}? ?(?:\$|€)?#(?P<mark>\d+)"
    behind = rf"#(?P<mark>\d+)(?: [a-z]+)?? {way}\b"
    rest = state.text[start.end() :]
    changes = max(list(re.finditer(changed, rest)), list(re.finditer(behind, rest)), key=len)
    for change in changes:
        part = state.at(change["mark"])
        total = total + part if change["up"] else total - part
    return total if changes else None


def _pieces(state: Rewriting) -> Node | None:
    """Return the greatest common divisor of lengths or amounts that are cut into equal pieces."""
    marks = state.marks(state.text)
    if len(marks) > 2 and marks[0].value == len(marks) - 1:
        marks = marks[1:]
    if len(marks) not in (2, 3) or state.find(r"every #\d+|prime|digit|each costs?"):
        return None
    most = r"(?:longest|largest|greatest|biggest|most|maximum|highest)[^?]*(?:piece|length|square|tile|side|group|number of|size|bag|pack|basket|kit|team|row|bouquet|box|parcel|plate|long)|how long[^?]*(?:longest|greatest)"
    alike = r"equal|same|identical|without|no \w+ (?:left|waste|over)|exactly|evenly|nothing|none"
    if _asks(state, most) and state.find(alike):
        return op("common divisor", *marks)
    return None


def _legs(state: Rewriting) -> Node | None:
    speed = rf"{A} ?(?:km|kilomet(?:re|er)s?|miles?|m|met(?:re|er)s?) ?(?:per|an|each|a|/) ?(?:hour|h|second|s|minute)\b"
    speed_first = rf"{speed}[^#.?]{{0,30}}?\b(?:for|in|during) (?:the (?:first|next|last) |another |a further )?{A}"
    time_first = rf"{A} (?:hours|minutes|seconds) (?:at|with) (?:a |an )?(?:constant |average |steady )?(?:speed of )?{speed}"
    legs = re.findall(speed_first, state.text)
    legs += [(s, t) for t, s in re.findall(time_first, state.text)]
    asked = _asks(state, r"how (?:far|many|long)|distance|total")
    if not legs or not asked or _asks(state, r"average"):
        apart = re.findall(speed, state.text)
        length = r"(?:km|kilomet(?:re|er)s|miles|m|met(?:re|er)s)"
        gap = _first(state, rf"{A} {length} (?:apart|from each other|away)")
        if gap and len(apart) == 2 and state.find(r"towards?|meet"):
            return gap[0] / op("sum", *map(state.at, apart))
        return None
    return _total([state.at(s) * state.at(t) for s, t in legs])


def _jointly(state: Rewriting) -> Node | None:
    """Return the time that two workers need together, if a text states the time of each alone."""
    jointly = state.find(r"together|both|side by side|at the same time|jointly")
    if not jointly or not _asks(state, r"how (?:long|many)|time"):
        return None
    spent = rf"(?:in|takes?|needs?|requires?|alone in) (?:exactly )?{A} {_TIME}"
    times = [*map(state.at, re.findall(spent, state.text))]
    if len(times) != 2:
        times = _first(state, rf"in {A} {_TIME}[^#?]{{0,60}}in {A}")
    return times[0] * times[1] / (times[0] + times[1]) if len(times) == 2 else None


READERS = (_together, _crew, _sale, _average, _pieces, _legs, _jointly, _stock)
