# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""More small word problems: ages, two numbers, rectangles, stocks that rise and fall, rates.

One reader per kind of tale; each looks for the few numbers that it needs and leaves a question
alone when one of them is missing.
"""

import re

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
    if times is None or len(ages) != 2 or not _asks(state, r"how many years|when"):
        return None
    one, other = sorted((state.atoms[int(mark)] for mark in ages), key=lambda node: -node.value)
    ratio = _TWO if times[2] else state.atoms[int(times[1])]
    return op("quotient", op("difference", one, op("product", ratio, other)), op("difference", ratio, number(1)))


def _consecutive(state: Rewriting) -> Node | None:
    """So many numbers in a row, from their sum."""
    found = _first(state, rf"{_A} consecutive (?:\w+ )?(?:integers|numbers|whole)[^#]{{0,50}}(?:sum|total|add)[^#]{{0,20}}{_A}", rf"sum of {_A} consecutive (?:\w+ )?(?:integers|numbers)[^#]{{0,30}}{_A}")
    if len(found) != 2:
        return None
    step = _TWO if re.search(r"consecutive (?:\w+ )?(?:even|odd)", state.text) else number(1)
    middle = op("quotient", found[1], found[0])
    reach = op("quotient", op("product", step, op("difference", found[0], number(1))), _TWO)
    if _asks(state, r"middle"):
        return middle
    return op("difference" if _asks(state, r"smallest|least|first|lowest") else "sum", middle, reach)


def _average(state: Rewriting) -> Node | None:
    found = _first(state, rf"(?:average|mean) (?:\w+ )?of {_A} [a-z]+ is {_A}")
    return op("product", *found) if len(found) == 2 and _asks(state, r"sum|total|add") else None


def _fee(state: Rewriting) -> Node | None:
    """A fixed charge and so much for each."""
    fixed = rf"{_A} (?:[a-z]+ )?(?:plus|and|and then|then|with)(?: an additional| another| a further)? (?:\$|€)?{_A} (?:[a-z]+ )?(?:per|for each|for every|each|an?|every) (?:additional )?([a-z]+)"
    found = re.search(fixed, state.text)
    if found is None or not re.search(r"fee|charge|fixed|base|basic|deposit|flat|member|rent|hire", state.text):
        return None
    unit = re.sub(r"(?:re|er|s)$", "", found[3])
    count = re.search(rf"{_A} {unit}", state.text.replace(found[0], " ; "))
    return op("sum", state.atoms[int(found[1])], op("product", state.atoms[int(found[2])], state.atoms[int(count[1])])) if count else None


def _lots(state: Rewriting) -> Node | None:
    """So many of one thing at a price, so many of another."""
    lots = re.findall(rf"{_A} [a-z]+(?: [a-z]+)? (?:at|for|costing|priced at|worth) (?:\$|€)?{_A}", state.text)
    if not lots or not _asks(state, r"total|cost|pay|revenue|earn|spend|altogether|worth|how much|take in|bill"):
        return None
    sales = [op("product", state.atoms[int(n)], state.atoms[int(price)]) for n, price in lots]
    return sales[0] if len(sales) == 1 else op("sum", *sales)


def read_tale(state: Rewriting) -> Node | None:
    """Return the calculation behind a tale, None when it is none of these."""
    for reader in TALES:
        node = reader(state)
        if node is not None:
            return node
    return None


def _first(state: Rewriting, *patterns: str) -> list[Node]:
    """Return the atoms of the first pattern that is in the text."""
    for pattern in patterns:
        found = re.search(pattern, state.text)
        if found:
            return [state.atoms[int(mark)] for mark in found.groups() if mark and mark.isdigit()]
    return []


def _asks(state: Rewriting, pattern: str) -> bool:
    """Say whether the part that asks says something."""
    asking = [part for part in re.split(r"(?<=[.;])\s|\n", state.text) if "?" in part or re.search(r"\bfind\b|determine|calculate|compute", part)]
    return re.search(pattern, " ".join(asking) or state.text) is not None


def _offices(state: Rewriting) -> Node | None:
    """Different offices or prizes filled from one pool: the order matters."""
    places = roles(state.text)
    pool = _first(state, rf"{_A} (?:[a-z]+ )?(?:people|members|students|candidates|runners|players|athletes|pupils|swimmers|employees|children|friends|contestants|teams|horses|persons|[a-z]+s)\b")
    if places < 2 or not pool or not _asks(state, r"how many|number of"):
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
    if _asks(state, r"(?:longest|largest|greatest|biggest|most|maximum|highest)[^?]*(?:piece|length|square|tile|side|group|number of|size|bag|pack|basket|kit|team|row|bouquet|box|parcel|plate|long)|how long[^?]*(?:longest|greatest)"):
        if re.search(r"equal|same|identical|without|no \w+ (?:left|waste|over)|exactly|evenly|nothing|none", state.text):
            return op("common divisor", *marks)
    if _asks(state, r"(?:smallest|least|fewest|minimum|shortest|lowest)[^?]*") and re.search(r"packs? of|boxes of|packets of|groups of|rows of|teams of|bags of|bundles of|sold in|batches of", state.text):
        if re.search(r"same|equal|either|both|exactly|left over|evenly", state.text):
            return op("common multiple", *marks)
    return None


def _legs(state: Rewriting) -> Node | None:
    speed = rf"{_A} ?(?:km|kilomet(?:re|er)s?|miles?|m|met(?:re|er)s?) ?(?:per|an|each|a|/) ?(?:hour|h|second|s|minute)\b"
    legs = re.findall(rf"{speed}[^#.?]{{0,30}}?\b(?:for|in|during) (?:the (?:first|next|last) |another |a further )?{_A}", state.text)
    legs += [(s, t) for t, s in re.findall(rf"{_A} (?:hours|minutes|seconds) (?:at|with) (?:a |an )?(?:constant |average |steady )?(?:speed of )?{speed}", state.text)]
    if not legs or not _asks(state, r"how (?:far|many|long)|distance|total") or _asks(state, r"average"):
        apart = re.findall(speed, state.text)
        gap = _first(state, rf"{_A} (?:km|kilomet(?:re|er)s|miles|m|met(?:re|er)s) (?:apart|from each other|away)")
        if gap and len(apart) == 2 and re.search(r"towards?|meet", state.text):
            return op("quotient", gap[0], op("sum", *[state.atoms[int(s)] for s in apart]))
        hours = _first(state, rf"after {_A} (?:hours|minutes|seconds)")
        if len(apart) == 2 and hours and re.search(r"opposite|towards|apart|away from each other", state.text):
            return op("product", op("sum", *[state.atoms[int(s)] for s in apart]), hours[0])
        return None
    trips = [op("product", state.atoms[int(s)], state.atoms[int(t)]) for s, t in legs]
    return trips[0] if len(trips) == 1 else op("sum", *trips)


def _ages(state: Rewriting) -> Node | None:
    """Two people's ages (or shares) from their sum and difference or ratio."""
    total = _first(state, rf"(?:together|in total|combined|sum of their ages|their ages (?:add up to|sum to|total)|add(?:s)? up to|altogether)[^#.?]{{0,30}}{_A}", rf"{_A} (?:\w+ )?(?:together|altogether|in total|between them)", rf"\bshare {_A}")
    apart = re.search(rf"([a-z]+)[^#.?]{{0,30}}? {_A} (?:[a-z]+ )?(more|older|fewer|less|younger|taller|heavier|longer)\b(?: than)? ?(?:her |his |the )?([a-z]+)?", state.text)
    times = re.search(rf"([a-z]+)[^#.?]{{0,30}}? (?:{_A} times|(twice)) as (?:old|many|much|tall|heavy|long|large)[^#.?]{{0,24}} as (?:her |his |the )?([a-z]+)?", state.text)
    asking = re.split(r"(?<=[.;])\s|\n", state.text)[-1]
    if not total:
        return None
    if times:
        ratio = _TWO if times[3] else state.atoms[int(times[2])]
        small = op("quotient", total[0], op("sum", ratio, number(1)))
        lesser = times[4] and re.search(rf"\b{times[4]}\b", asking)
        return small if lesser or re.search("younger|smaller|less", asking) else op("product", small, ratio)
    if apart:
        gap = state.atoms[int(apart[2])]
        upper = apart[3] not in ("fewer", "less", "younger")
        other = bool(apart[4] and re.search(rf"\b{apart[4]}\b", asking)) or bool(re.search("younger|smaller|less\b", asking))
        wanted = "sum" if upper != other else "difference"
        return op("quotient", op(wanted, total[0], gap), _TWO)
    return None


def _two_numbers(state: Rewriting) -> Node | None:
    total = _first(state, rf"numbers (?:add(?:s|ing)? up to|add to|sum to|have (?:a|the) sum(?: of)?|whose sum is|total) {_A}", rf"sum of (?:the )?(?:two|#\d+) (?:\w+ )?(?:numbers|integers) is {_A}", rf"\bsum (?:is|of|equals) {_A}")
    gap = _first(state, rf"differ(?:ing)? by {_A}", rf"difference (?:is|of|equals|between them is) {_A}", rf"(?:is|one) {_A} (?:more|larger|greater) than the other")
    if not total or not gap:
        return None
    if _asks(state, r"product"):
        squares = op("difference", op("power", total[0], _TWO), op("power", gap[0], _TWO))
        return op("quotient", squares, number(4))
    lower = _asks(state, r"smaller|lesser|lower|least")
    return op("quotient", op("difference" if lower else "sum", total[0], gap[0]), _TWO)


def _heads(state: Rewriting) -> Node | None:
    heads = _first(state, rf"{_A} (?:heads|animals|vehicles)")
    legs = _first(state, rf"{_A} (?:legs|feet|wheels)")
    if not heads or not legs:
        return None
    four = op("quotient", op("difference", legs[0], op("product", _TWO, heads[0])), _TWO)
    if _asks(state, r"rabbits?|cows?|pigs?|sheep|horses?|dogs?|goats?|cats?|cars?"):
        return four
    return op("difference", heads[0], four)


def _shape(state: Rewriting) -> Node | None:
    if not re.search(r"rectang|garden|field|room|floor|plot|square|playground|yard|pool|sheet", state.text):
        return None
    sides = _first(state, rf"{_A} (?:\w+ )?(?:long|in length)[^#]{{0,30}}{_A} (?:\w+ )?(?:wide|in width|broad)", rf"(?:length|long side)[^#]{{0,20}}{_A}[^#]{{0,40}}(?:width|breadth|wide)[^#]{{0,20}}{_A}", rf"(?:width|wide)[^#]{{0,20}}{_A}[^#]{{0,40}}(?:length|long)[^#]{{0,20}}{_A}", rf"{_A} (?:\w+ )?(?:by|wide and|x|times) {_A}", rf"sides (?:of |of length |measuring )?{_A}(?: \w+)? and {_A}")
    if len(sides) == 2 and _asks(state, r"perimeter|around|fence|border|edge"):
        return op("product", _TWO, op("sum", *sides))
    if len(sides) == 2 and _asks(state, r"area|square (?:met|cent|feet)|cover|tiles?"):
        return op("product", *sides)
    area = _first(state, rf"area (?:is|of) {_A}")
    side = _first(state, rf"(?:length|width|side|long|wide)[^#.]{{0,20}}{_A}", rf"{_A} (?:\w+ )?(?:long|wide)")
    if area and side and area != side and _asks(state, r"width|length|side|wide|long"):
        return op("quotient", area[0], side[0])
    return None


def _jointly(state: Rewriting) -> Node | None:
    """Two who need so long each, working side by side."""
    if not re.search(r"together|both|side by side|at the same time|jointly", state.text) or not _asks(state, r"how (?:long|many)|time"):
        return None
    times = re.findall(rf"(?:in|takes?|needs?|requires?|alone in) (?:exactly )?{_A} {_TIME}", state.text)
    if len(times) != 2:
        times = _first(state, rf"in {_A} {_TIME}[^#?]{{0,60}}in {_A}")
        if len(times) != 2:
            return None
        one, other = times
    else:
        one, other = (state.atoms[int(mark)] for mark in times)
    return op("quotient", op("product", one, other), op("sum", one, other))


def _percent(state: Rewriting) -> Node | None:
    percent = r"(?: ?%| per ?cent)"
    share = _first(state, rf"{_A}{percent}")
    whole = _first(state, rf"{_A}(?! ?%| per ?cent)(?=[^#]{{0,160}}#\d+{percent})")
    if not share or not whole:
        return None
    part = op("quotient", op("product", whole[0], share[0]), number(100))
    text = state.text
    if re.search(r"reduc|discount|off\b|lower|cheaper|decreas|fall|sale|drop", text) and not _asks(state, r"(?:how much|what) (?:is the discount|do(?:es)? \w+ save|is saved)|sav"):
        return op("difference", whole[0], part)
    if re.search(r"increas|rais|rise|rose|grow|grew|interest|tip|tax", text) and not _asks(state, r"how much interest|by how much"):
        return op("sum", whole[0], part)
    if _asks(state, r"not\b|remain|left|rest\b|other"):
        return op("difference", whole[0], part)
    return part


def _machines(state: Rewriting) -> Node | None:
    """So many makers, so much each in an hour, so many hours."""
    rate = re.search(rf"{_A} (?:\w+ ){{0,3}}?(?:per|an|each|every|a) (?:single )?({_TIME})", state.text)
    if rate is None or not _asks(state, r"how (?:many|much|far|long)|total|what"):
        return None
    made = state.atoms[int(rate[1])]
    rest = state.text[: rate.start()] + " ; " + state.text[rate.end() :]
    unit = rate[2].rstrip("s")
    span = re.search(rf"{_A} {unit}s?\b", rest)
    if span:
        makers = [m for m in re.findall(rf"{_A} [a-z]+", rest.replace(span[0], " ; ", 1))]
        nodes = [made, *[state.atoms[int(mark)] for mark in makers[:1]], state.atoms[int(span[1])]]
        return op("product", *nodes)
    amount = re.search(rf"{_A} [a-z]+", rest)
    if amount and _asks(state, rf"how (?:long|many {unit}s)|in how many"):
        return op("quotient", state.atoms[int(amount[1])], made)
    return None


def _proportion(state: Rewriting) -> Node | None:
    """So much for so many, hence how much for another number."""
    found = re.search(rf"{_A} ([a-z]+)(?: of [a-z]+)? (?:(?:per|for|every|for every|to|cost|costs|weigh|make|makes|needs?|is enough for|are needed for|yields?|on)\s+)+(?:\$|€)?{_A}(?: ([a-z]+))?", state.text)
    if found is None:
        return None
    rest = state.text[found.end() :]
    other = re.search(rf"{_A}(?: ([a-z]+))?", rest)
    if other is None or len(re.findall(r"#\d+", rest)) != 1:
        return None
    left, right, new = (state.atoms[int(mark)] for mark in (found[1], found[3], other[1]))
    if other[2] and other[2].rstrip("s") == (found[4] or "").rstrip("s"):
        return op("quotient", op("product", left, new), right)
    return op("quotient", op("product", right, new), left)


_UP = r"buys?|bought|gets?|got|receiv\w+|finds?|found|adds?|added|picks?|picked|earns?|earned|wins?|won|collect\w*|board\w*|get on|gets on|got on|arrive\w*|join\w*|climbs?|rises?|rose|delivered|put|saves?|saved|deposit\w*|gains?|gained|enter\w*|more"
_DOWN = r"gives?|gave|given|sells?|sold|los[te]\w*|eats?|ate|eaten|spends?|spent|uses?|used|breaks?|broke|leaves?|left|get off|gets off|got off|removes?|removed|takes? away|took|withdr\w+|falls?|fell|drops?|dropped|donat\w+|throws?|threw|pays?|paid|borrow\w*|lent|lends"


def _stock(state: Rewriting) -> Node | None:
    """Something there at first, then more and less of it."""
    if not _asks(state, r"how (?:many|much)|what is"):
        return None
    start = re.search(rf"(?:has|had|have|holds?|contains?|contained|there (?:are|were)|starts? with|started with|with|carries|carrying|owns?|owned|is|was|bakes?|baked) (?:exactly )?(?:\$|€)?{_A}", state.text)
    if start is None:
        return None
    total = state.atoms[int(start[1])]
    changed = rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN}))\b(?: [a-z$€]+){{0,4}}? ?(?:\$|€)?#(?P<mark>\d+)"
    behind = rf"#(?P<mark>\d+)(?: [a-z]+)?? (?:(?P<up>{_UP})|(?P<down>{_DOWN}))\b"
    rest = state.text[start.end() :]
    changes = max(list(re.finditer(changed, rest)), list(re.finditer(behind, rest)), key=len)
    for change in changes:
        total = op("sum" if change["up"] else "difference", total, state.atoms[int(change["mark"])])
    return total if changes else None


TALES = (_fee, _years_on, _consecutive, _average, _offices, _pieces, _legs, _ages, _two_numbers, _heads, _shape, _jointly, _percent, _lots, _machines, _proportion, _stock)  # fmt: skip
