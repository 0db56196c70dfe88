"""Small word problems: prices, speeds, rates, rows; read by what the numbers are counted in.

Deliberately shallow: one pattern of sale, travel, shared work or rows, then what is added and
taken away. Longer stories are where these workers fail.
"""

import re

from harness.rehearsal.phrase_rules import op
from harness.rehearsal.phrases import Rewriting
from harness.rehearsal.trees import Node

_A = r"#(\d+)"
_MONEY = r"(?:[$€£]\s*)?"
_SALE = (
    rf"{_A} [a-z ]{{2,40}}?(?: that cost| costing| priced| which cost| worth)?,?\s*(?:at|for|cost|costs|costing|worth)?\s*{_MONEY}{_A}\s*(?:dollars|euros|pounds|cents|coins|credits)?\s*(?:each|apiece|per|every)"
)
_UNIT_PRICE = rf"\b(?:each|every|one|an?|per) (?:single )?(?!and\b|of\b|the\b|for\b)([a-z]+?)s?\b[^#.]{{0,30}}?(?:costs?|is|sells for|weighs|holds|has|contains|seats|for|gets|needs|uses)\s*{_MONEY}{_A}"
_SPEED = rf"{_A}\s*(?:km/h|kilomet(?:re|er)s (?:per|an|each) hour|miles (?:per|an|each) hour|mph|km per hour|kph|m/s|met(?:re|er)s (?:per|each) (?:second|minute)|pages (?:per|an|each) (?:hour|minute|day)|lit(?:re|er)s (?:per|a|each) (?:minute|hour)|[a-z]+ (?:per|an|each|every|a) (?:hour|minute|day|second|week))"
_TIME = rf"{_A}\s*(?:hours|minutes|seconds|days|weeks|hour|minute|day)"
_CREW = rf"{_A} [a-z]+ (?:can |could )?[a-z ]{{0,40}}?(?:in|take|takes|need|needs) {_A} (?:hours|days|minutes|weeks)[^#]{{0,80}}{_A}"
_ROWS = rf"{_A} (?:rows|boxes|bags|shelves|tables|packs|crates|baskets|classes|buses|teams|groups|cartons|trays|columns|floors)\b[^#.]{{0,50}}{_A}"
_LESS = re.compile(rf"(?:gives? away|gave away|sold|sells|lost|loses|broken|broke|are empty|eaten|eats|ate|removed|removes|uses|used|discount of|coupon for|minus|leave|left)\s*{_MONEY}{_A}|{_A} (?:of them )?(?:are |were |is )?(?:broken|sold|lost|eaten|empty|removed|given away|damaged|missing|rotten)")
_MORE = re.compile(rf"(?:plus a?|and a|adds?|added|finds?|found|more than that,?|another|fixed fee of|a fee of|delivery fee of|shipping of|entry fee of)\s*{_MONEY}{_A}(?: more)?")


def read_story(state: Rewriting) -> Node | None:
    """Return the calculation behind a word problem, None when it is not one of these."""
    for reader in (_together, _crew, _change, _sale, _travel, _rows):
        node = reader(state)
        if node is not None:
            return node
    return None


def _parts(state: Rewriting, pattern: str) -> list[list[Node]]:
    return [
        [state.atoms[int(mark)] for mark in re.findall(r"#(\d+)", found[0])]
        for found in re.finditer(pattern, state.text)
    ]


def _together(state: Rewriting) -> Node | None:
    """Things that happen every so often coincide after the least common multiple."""
    if not re.search(r"together|same (?:time|moment|day|instant)|simultaneous|coincide|both", state.text):
        return None
    turns = [parts[0] for parts in _parts(state, rf"(?:every|each|once in|once every|after every|at intervals of)\s+{_A}")]
    several = _parts(state, rf"(?:every|intervals of)\s+{_A}(?:(?:,| and|, and)\s*{_A})+")
    turns = several[0] if several else turns
    return op("common multiple", *turns) if len(turns) > 1 else None


def _crew(state: Rewriting) -> Node | None:
    found = _parts(state, _CREW)
    if not found or not re.search(r"how (?:long|many (?:hours|days|minutes|weeks))", state.text):
        return None
    workers, days, others = found[0][:3]
    return op("quotient", op("product", workers, days), others)


def _sale(state: Rewriting) -> Node | None:
    sales = _unit_prices(state)
    sales = sales or [parts[:2] for parts in _parts(state, _SALE) if len(parts) >= 2]
    if not sales or not re.search(r"how much|total|cost|pay|spend|price|bill|altogether|how many", state.text):
        return None
    total = op("product", *sales[0])
    for sale in sales[1:]:
        total = op("sum", total, op("product", *sale))
    return _adjusted(state, total)


def _unit_prices(state: Rewriting) -> list[list[Node]]:
    """Return (how many, price) where a thing is priced in one place and counted in another."""
    found: list[list[Node]] = []
    for match in re.finditer(_UNIT_PRICE, state.text):
        counted = re.search(rf"{_A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b", state.text)
        if counted and counted[1] != match[2]:
            found.append([state.atoms[int(counted[1])], state.atoms[int(match[2])]])
    for match in re.finditer(rf"\b([a-z]{{3,}}?)(?:s|es)? (?:at|for|cost|costs|costing|priced at|are) {_MONEY}{_A}[a-z $€£]{{0,12}}(?:each|apiece|per)", state.text):
        for counted in re.finditer(rf"{_A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b", state.text):
            if counted[1] != match[2]:
                found.append([state.atoms[int(counted[1])], state.atoms[int(match[2])]])
                break
    for match in re.finditer(rf"{_MONEY}{_A}\s*(?:dollars |euros )?(?:for|per) (?:an? |each )?([a-z]{{3,}}?)(?:s|es|ren)?\b", state.text):
        counted = re.search(rf"{_A} {re.escape(match[2])}(?:s|es|ren)?\b", state.text)
        if counted and counted[1] != match[1] and not found[2:]:
            found.append([state.atoms[int(counted[1])], state.atoms[int(match[1])]])
    return found


def _change(state: Rewriting) -> Node | None:
    paid = re.search(
        rf"(?:pays? with|paid with|hands over|gives the \w+|with a|from a|out of a)\s*{_MONEY}{_A}", state.text
    )
    if paid is None or "change" not in state.text:
        return None
    rest = Rewriting(state.text.replace(paid[0], " ; "), state.atoms)
    total = _sale(rest)
    return op("difference", state.atoms[int(paid[1])], total) if total else None


def _travel(state: Rewriting) -> Node | None:
    speeds, times = _parts(state, _SPEED), _parts(state, _TIME)
    if not speeds:
        return None
    if times and re.search(r"how (?:far|many|much)|distance|total", state.text):
        legs = [op("product", s[0], t[0]) for s, t in zip(speeds, times, strict=False)]
        if len(speeds) == 1 and len(times) > 1:
            legs = [op("product", speeds[0][0], op("sum", *[t[0] for t in times]))]
        return legs[0] if len(legs) == 1 else op("sum", *legs)
    far = re.search(rf"{_A}\s*(?:km|kilomet|miles|met(?:re|er)s|lit(?:re|er)s|pages|[a-z]+)\b(?! per| an| each)", state.text)
    if far and re.search(r"how (?:long|many (?:hours|minutes|seconds|days))|time", state.text):
        return op("quotient", state.atoms[int(far[1])], speeds[0][0])
    return None


def _rows(state: Rewriting) -> Node | None:
    rows = _parts(state, _ROWS)
    if not rows or not re.search(r"how many|total|altogether", state.text):
        return None
    return _adjusted(state, op("product", *rows[0][:2]))


def _adjusted(state: Rewriting, total: Node) -> Node:
    """Return a total after what the story takes away and adds."""
    for found in _LESS.finditer(state.text):
        mark = next(mark for mark in found.groups() if mark)
        total = op("difference", total, state.atoms[int(mark)])
    for found in _MORE.finditer(state.text):
        total = op("sum", total, state.atoms[int(found[1])])
    return total
