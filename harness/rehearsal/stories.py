"""Small word problems: prices, speeds, rates, rows; read by what the numbers are counted in.

Deliberately shallow: one pattern of sale, travel, shared work or rows, then what is added and
taken away. Longer stories are where these workers fail.
"""

import re

from harness.rehearsal import patterns
from harness.rehearsal.phrase_rules import op
from harness.rehearsal.phrases import Rewriting
from harness.rehearsal.tales import read_tale
from harness.rehearsal.trees import Node


def read_story(state: Rewriting) -> Node | None:
    """Return the calculation behind a word problem, None when it is not one of these."""
    for reader in (_together, _crew, _change, _sale, read_tale, _travel, _rows):
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
    if not re.search(
        r"together|same (?:time|moment|day|instant)|simultaneous|coincide|both", state.text
    ):
        return None
    turns = [
        parts[0]
        for parts in _parts(
            state, rf"(?:every|each|once in|once every|after every|at intervals of)\s+{patterns.A}"
        )
    ]
    several = _parts(
        state, rf"(?:every|intervals of)\s+{patterns.A}(?:(?:,| and|, and)\s*{patterns.A})+"
    )
    turns = several[0] if several else turns
    return op("common multiple", *turns) if len(turns) > 1 else None


def _crew(state: Rewriting) -> Node | None:
    found = _parts(state, patterns.CREW)
    if not found or not re.search(r"how (?:long|many (?:hours|days|minutes|weeks))", state.text):
        return None
    workers, days, others = found[0][:3]
    return op("quotient", op("product", workers, days), others)


def _sale(state: Rewriting) -> Node | None:
    if re.search(r"\b(?:km|kilomet|mph|miles|legs|per ?cent|older|younger)|%", state.text):
        return None
    sales = _unit_prices(state)
    sales = sales or [parts[:2] for parts in _parts(state, patterns.SALE) if len(parts) >= 2]
    if not sales or not re.search(
        r"how much|total|cost|pay|spend|price|bill|altogether|how many", state.text
    ):
        return None
    total = op("product", *sales[0])
    for sale in sales[1:]:
        total = op("sum", total, op("product", *sale))
    return _adjusted(state, total)


def _unit_prices(state: Rewriting) -> list[list[Node]]:
    """Return (how many, price) where a thing is priced in one place and counted in another."""
    found: list[list[Node]] = []
    for match in re.finditer(patterns.UNIT_PRICE, state.text):
        counted = re.search(
            rf"{patterns.A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b", state.text
        )
        if counted and counted[1] != match[2]:
            found.append([state.atoms[int(counted[1])], state.atoms[int(match[2])]])
    for match in re.finditer(
        rf"\b([a-z]{{3,}}?)(?:s|es)? (?:at|for|cost|costs|costing|priced at|are) "
        rf"{patterns.MONEY}{patterns.A}[a-z $€£]{{0,12}}(?:each|apiece|per)",
        state.text,
    ):
        for counted in re.finditer(
            rf"{patterns.A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b", state.text
        ):
            if counted[1] != match[2]:
                found.append([state.atoms[int(counted[1])], state.atoms[int(match[2])]])
                break
    for match in re.finditer(
        rf"{patterns.MONEY}{patterns.A}\s*(?:dollars |euros )?(?:for|per) (?:an? |each "
        rf")?([a-z]{{3,}}?)(?:s|es|ren)?\b",
        state.text,
    ):
        counted = re.search(rf"{patterns.A} {re.escape(match[2])}(?:s|es|ren)?\b", state.text)
        if counted and counted[1] != match[1] and not found[2:]:
            found.append([state.atoms[int(counted[1])], state.atoms[int(match[1])]])
    return found


def _change(state: Rewriting) -> Node | None:
    paid = re.search(
        rf"(?:pays? with|paid with|hands over|gives the \w+|with a|from a|out of "
        rf"a)\s*{patterns.MONEY}{patterns.A}",
        state.text,
    )
    if paid is None or "change" not in state.text:
        return None
    rest = Rewriting(state.text.replace(paid[0], " ; "), state.atoms)
    total = _sale(rest)
    return op("difference", state.atoms[int(paid[1])], total) if total else None


def _travel(state: Rewriting) -> Node | None:
    speeds, times = _parts(state, patterns.SPEED), _parts(state, patterns.TIME)
    if not speeds:
        return None
    if times and re.search(r"how (?:far|many|much)|distance|total", state.text):
        legs = [op("product", s[0], t[0]) for s, t in zip(speeds, times, strict=False)]
        if len(speeds) == 1 and len(times) > 1:
            legs = [op("product", speeds[0][0], op("sum", *[t[0] for t in times]))]
        return legs[0] if len(legs) == 1 else op("sum", *legs)
    far = re.search(
        rf"{patterns.A}\s*(?:km|kilomet|miles|met(?:re|er)s|lit(?:re|er)s|pages"
        rf"|[a-z]+)\b(?! per| an| each)",
        state.text,
    )
    if far and re.search(r"how (?:long|many (?:hours|minutes|seconds|days))|time", state.text):
        return op("quotient", state.atoms[int(far[1])], speeds[0][0])
    return None


def _rows(state: Rewriting) -> Node | None:
    rows = _parts(state, patterns.ROWS)
    if not rows or not re.search(r"how many|total|altogether", state.text):
        return None
    return _adjusted(state, op("product", *rows[0][:2]))


def _adjusted(state: Rewriting, total: Node) -> Node:
    """Return a total after what the story takes away and adds."""
    for found in patterns.LESS.finditer(state.text):
        mark = next(mark for mark in found.groups() if mark)
        total = op("difference", total, state.atoms[int(mark)])
    for found in patterns.MORE.finditer(state.text):
        total = op("sum", total, state.atoms[int(found[1])])
    return total
