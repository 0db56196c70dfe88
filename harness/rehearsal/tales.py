# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""More small word problems: ages, two numbers, rectangles, stocks that rise and fall, rates.

One reader per kind of tale; each looks for the few numbers that it needs and leaves a question
alone when one of them is missing.
"""

import re

from harness.rehearsal.amounts import (
    asks,
    average,
    fee,
    first,
    lots,
    machines,
    percent,
    proportion,
    stock,
)
from harness.rehearsal.counting_rules import roles
from harness.rehearsal.phrase_rules import op
from harness.rehearsal.phrases import Rewriting
from harness.rehearsal.trees import Node, number

_A = r"#(\d+)"
_TIME = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_TWO = number(2)


def _years_on(state: Rewriting) -> Node | None:
    """In how many years one will be so many times as old as the other."""
    times = re.search(rf"(?:{_A} times|(twice)) as old", state.text)
    ages = re.findall(r"#(\d+)", state.text[: times.start()] if times else "")
    if times is None or len(ages) != 2 or not asks(state, r"how many years|when"):
        return None
    one, other = sorted((state.atoms[int(mark)] for mark in ages), key=lambda node: -node.value)
    ratio = _TWO if times[2] else state.atoms[int(times[1])]
    return op(
        "quotient",
        op("difference", one, op("product", ratio, other)),
        op("difference", ratio, number(1)),
    )


def _consecutive(state: Rewriting) -> Node | None:
    """So many numbers in a row, from their sum."""
    found = first(
        state,
        rf"{_A} consecutive (?:\w+ )?(?:integers|numbers|whole)[^#]{{0,50}}(?:sum|total|add)[^#]{{0,20}}{_A}",
        rf"sum of {_A} consecutive (?:\w+ )?(?:integers|numbers)[^#]{{0,30}}{_A}",
    )
    if len(found) != 2:
        return None
    step = _TWO if re.search(r"consecutive (?:\w+ )?(?:even|odd)", state.text) else number(1)
    middle = op("quotient", found[1], found[0])
    reach = op("quotient", op("product", step, op("difference", found[0], number(1))), _TWO)
    if asks(state, r"middle"):
        return middle
    return op("difference" if asks(state, r"smallest|least|first|lowest") else "sum", middle, reach)


def read_tale(state: Rewriting) -> Node | None:
    """Return the calculation behind a tale, None when it is none of these."""
    for reader in TALES:
        node = reader(state)
        if node is not None:
            return node
    return None


def _offices(state: Rewriting) -> Node | None:
    """Different offices or prizes filled from one pool: the order matters."""
    places = roles(state.text)
    pool = first(
        state,
        rf"{_A} (?:[a-z]+ )?(?:people|members|students|candidates|runners|players|athletes|pupils|swimmers|employees|children|friends|contestants|teams|horses|persons|[a-z]+s)\b",
    )
    if places < 2 or not pool or not asks(state, r"how many|number of"):
        return None
    k = number(places)
    return op("product", op("binomial", pool[0], k), op("factorial", k))


def _pieces(state: Rewriting) -> Node | None:
    """The greatest equal measure of several lengths or heaps, or the least common one."""
    marks = [state.atoms[int(mark)] for mark in re.findall(r"#(\d+)", state.text)]
    if len(marks) > 2 and marks[0].value == len(marks) - 1:
        marks = marks[1:]
    if len(marks) not in (2, 3) or re.search(r"every #\d+|prime|digit|each costs?", state.text):
        return None
    if asks(
        state,
        r"(?:longest|largest|greatest|biggest|most|maximum|highest)[^?]*(?:piece|length|square|tile|side|group|number of|size|bag|pack|basket|kit|team|row|bouquet|box|parcel|plate|long)|how long[^?]*(?:longest|greatest)",
    ) and re.search(
        r"equal|same|identical|without|no \w+ (?:left|waste|over)|exactly|evenly|nothing|none",
        state.text,
    ):
        return op("common divisor", *marks)
    fewest = asks(state, r"(?:smallest|least|fewest|minimum|shortest|lowest)[^?]*")
    packed = r"packs? of|boxes of|packets of|groups of|rows of|teams of|bags of|bundles of|sold in|batches of"
    even = r"same|equal|either|both|exactly|left over|evenly"
    if fewest and re.search(packed, state.text) and re.search(even, state.text):
        return op("common multiple", *marks)
    return None


def _legs(state: Rewriting) -> Node | None:
    speed = rf"{_A} ?(?:km|kilomet(?:re|er)s?|miles?|m|met(?:re|er)s?) ?(?:per|an|each|a|/) ?(?:hour|h|second|s|minute)\b"
    legs = re.findall(
        rf"{speed}[^#.?]{{0,30}}?\b(?:for|in|during) (?:the (?:first|next|last) |another |a further )?{_A}",
        state.text,
    )
    legs += [
        (s, t)
        for t, s in re.findall(
            rf"{_A} (?:hours|minutes|seconds) (?:at|with) (?:a |an )?(?:constant |average |steady )?(?:speed of )?{speed}",
            state.text,
        )
    ]
    if (
        not legs
        or not asks(state, r"how (?:far|many|long)|distance|total")
        or asks(state, r"average")
    ):
        apart = re.findall(speed, state.text)
        gap = first(
            state,
            rf"{_A} (?:km|kilomet(?:re|er)s|miles|m|met(?:re|er)s) (?:apart|from each other|away)",
        )
        if gap and len(apart) == 2 and re.search(r"towards?|meet", state.text):
            return op("quotient", gap[0], op("sum", *[state.atoms[int(s)] for s in apart]))
        hours = first(state, rf"after {_A} (?:hours|minutes|seconds)")
        if (
            len(apart) == 2
            and hours
            and re.search(r"opposite|towards|apart|away from each other", state.text)
        ):
            return op("product", op("sum", *[state.atoms[int(s)] for s in apart]), hours[0])
        return None
    trips = [op("product", state.atoms[int(s)], state.atoms[int(t)]) for s, t in legs]
    return trips[0] if len(trips) == 1 else op("sum", *trips)


def _ages(state: Rewriting) -> Node | None:
    """Two people's ages (or shares) from their sum and difference or ratio."""
    total = first(
        state,
        rf"(?:together|in total|combined|sum of their ages|their ages (?:add up to|sum to|total)|add(?:s)? up to|altogether)[^#.?]{{0,30}}{_A}",
        rf"{_A} (?:\w+ )?(?:together|altogether|in total|between them)",
        rf"\bshare {_A}",
    )
    apart = re.search(
        rf"([a-z]+)[^#.?]{{0,30}}? {_A} (?:[a-z]+ )?(more|older|fewer|less|younger|taller|heavier|longer)\b(?: than)? ?(?:her |his |the )?([a-z]+)?",
        state.text,
    )
    times = re.search(
        rf"([a-z]+)[^#.?]{{0,30}}? (?:{_A} times|(twice)) as (?:old|many|much|tall|heavy|long|large)[^#.?]{{0,24}} as (?:her |his |the )?([a-z]+)?",
        state.text,
    )
    asking = re.split(r"(?<=[.;])\s|\n", state.text)[-1]
    if not total:
        return None
    if times:
        ratio = _TWO if times[3] else state.atoms[int(times[2])]
        small = op("quotient", total[0], op("sum", ratio, number(1)))
        lesser = times[4] and re.search(rf"\b{times[4]}\b", asking)
        return (
            small
            if lesser or re.search("younger|smaller|less", asking)
            else op("product", small, ratio)
        )
    if apart:
        gap = state.atoms[int(apart[2])]
        upper = apart[3] not in ("fewer", "less", "younger")
        other = bool(apart[4] and re.search(rf"\b{apart[4]}\b", asking)) or bool(
            re.search("younger|smaller|less\b", asking)
        )
        wanted = "sum" if upper != other else "difference"
        return op("quotient", op(wanted, total[0], gap), _TWO)
    return None


def _two_numbers(state: Rewriting) -> Node | None:
    total = first(
        state,
        rf"numbers (?:add(?:s|ing)? up to|add to|sum to|have (?:a|the) sum(?: of)?|whose sum is|total) {_A}",
        rf"sum of (?:the )?(?:two|#\d+) (?:\w+ )?(?:numbers|integers) is {_A}",
        rf"\bsum (?:is|of|equals) {_A}",
    )
    gap = first(
        state,
        rf"differ(?:ing)? by {_A}",
        rf"difference (?:is|of|equals|between them is) {_A}",
        rf"(?:is|one) {_A} (?:more|larger|greater) than the other",
    )
    if not total or not gap:
        return None
    if asks(state, r"product"):
        squares = op("difference", op("power", total[0], _TWO), op("power", gap[0], _TWO))
        return op("quotient", squares, number(4))
    lower = asks(state, r"smaller|lesser|lower|least")
    return op("quotient", op("difference" if lower else "sum", total[0], gap[0]), _TWO)


def _heads(state: Rewriting) -> Node | None:
    heads = first(state, rf"{_A} (?:heads|animals|vehicles)")
    legs = first(state, rf"{_A} (?:legs|feet|wheels)")
    if not heads or not legs:
        return None
    four = op("quotient", op("difference", legs[0], op("product", _TWO, heads[0])), _TWO)
    if asks(state, r"rabbits?|cows?|pigs?|sheep|horses?|dogs?|goats?|cats?|cars?"):
        return four
    return op("difference", heads[0], four)


def _shape(state: Rewriting) -> Node | None:
    if not re.search(
        r"rectang|garden|field|room|floor|plot|square|playground|yard|pool|sheet", state.text
    ):
        return None
    sides = first(
        state,
        rf"{_A} (?:\w+ )?(?:long|in length)[^#]{{0,30}}{_A} (?:\w+ )?(?:wide|in width|broad)",
        rf"(?:length|long side)[^#]{{0,20}}{_A}[^#]{{0,40}}(?:width|breadth|wide)[^#]{{0,20}}{_A}",
        rf"(?:width|wide)[^#]{{0,20}}{_A}[^#]{{0,40}}(?:length|long)[^#]{{0,20}}{_A}",
        rf"{_A} (?:\w+ )?(?:by|wide and|x|times) {_A}",
        rf"sides (?:of |of length |measuring )?{_A}(?: \w+)? and {_A}",
    )
    if len(sides) == 2 and asks(state, r"perimeter|around|fence|border|edge"):
        return op("product", _TWO, op("sum", *sides))
    if len(sides) == 2 and asks(state, r"area|square (?:met|cent|feet)|cover|tiles?"):
        return op("product", *sides)
    area = first(state, rf"area (?:is|of) {_A}")
    side = first(
        state, rf"(?:length|width|side|long|wide)[^#.]{{0,20}}{_A}", rf"{_A} (?:\w+ )?(?:long|wide)"
    )
    if area and side and area != side and asks(state, r"width|length|side|wide|long"):
        return op("quotient", area[0], side[0])
    return None


def _jointly(state: Rewriting) -> Node | None:
    """Two who need so long each, working side by side."""
    if not re.search(
        r"together|both|side by side|at the same time|jointly", state.text
    ) or not asks(state, r"how (?:long|many)|time"):
        return None
    times = re.findall(
        rf"(?:in|takes?|needs?|requires?|alone in) (?:exactly )?{_A} {_TIME}", state.text
    )
    if len(times) != 2:
        times = first(state, rf"in {_A} {_TIME}[^#?]{{0,60}}in {_A}")
        if len(times) != 2:
            return None
        one, other = times
    else:
        one, other = (state.atoms[int(mark)] for mark in times)
    return op("quotient", op("product", one, other), op("sum", one, other))


TALES = (fee, _years_on, _consecutive, average, _offices, _pieces, _legs, _ages, _two_numbers, _heads, _shape, _jointly, percent, lots, machines, proportion, stock)  # fmt: skip
