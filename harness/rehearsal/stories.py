# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Word problems: prices, rates, ages, rows, parts of a whole."""

import re
from functools import reduce

from harness.rehearsal.arithmetic import Node, number
from harness.rehearsal.phrases import Rewriting, op, roles

A = r"#(\d+)"
_TIME = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
MANY = rf"{A}(?:(?:\s*,\s*|\s*,?\s*(?:and|or|nor|by|if|(?:but|and) not)\s+(?:(?:by|of)\s+)?)(?:both\s+)?{A})*"

BOUNDS = (
    (rf"(?:between|from|in the range|among|in the interval|numbers|integers)\s*\[?{A}\s*(?:,\s*#\d+\s*,\s*\.\.\.\s*,|and|to|through|up to|,)\s*{A}", 0, 0),
    (rf"{A}\s*(?:≤|<=)\s*[a-z]\s*(?:≤|<=)\s*{A}", 0, 0),
    (rf"{A}\s*<\s*[a-z]\s*<\s*{A}", 1, -1),
    (rf"{A}\s*,\s*#\d+\s*,(?:\s*#\d+\s*,)?\s*\.\.\.\s*,\s*{A}", 0, 0),
    (rf"{A} (?:to|through) {A}", 0, 0),
)  # fmt: skip

UPPER = (
    (rf"(?:less than|below|under|smaller than|fewer than|strictly less than|before|precedes|preceding|<)\s*{A}", -1),
    (rf"(?:at most|up to|not exceeding|no more than|no (?:larger|greater|bigger) than|not (?:greater|larger|more) than|less than or equal to|≤|do(?:es)? not exceed)\s*{A}", 0),
    (rf"first\s*{A}\s*(?:positive |natural |counting )*(?:integers|numbers|whole)", 0),
)  # fmt: skip

LOWER = (
    (rf"(?:greater than|above|(?<!not )exceeding|(?<!no )(?<!not )more than|(?<!no )(?<!not )larger than|bigger than|over|>|after|following|follows|beyond|exceeds)\s*{A}", 1),
    (rf"(?:at least|no less than|not less than|≥|greater than or equal to)\s*{A}", 0),
)  # fmt: skip

CONDITIONS: tuple[tuple[str, str], ...] = (
    ("divisor count", rf"(?:exactly|precisely|has|have|with|just)\s*{A}\s*(?:distinct |different )?(?:positive )?(?:integer )?(?:divisors|factors)"),
    ("digit sum", rf"(?:digit sum|digits sum|sum of (?:its |the |their |whose )?digits|digits (?:add up|add|sum|adding up))\s*(?:is|of|to|equal to|equals|that is|are)?\s*(?:equal to\s*)?(?:exactly\s*)?{A}"),
    ("remainder of", rf"(?:divided by|division by)\s*{A}\s*,?\s*(?:it |there is |the number )?(?:leaves|gives|has|yields)(?: a| the)?\s*(?:remainder)?(?: of)?\s*{A}"),
    ("remainder", rf"remainder(?: of)?\s*{A}[^#.]{{0,50}}(?:divided by|division by|dividing by|divide(?:s|d)? (?:it |them )?by|modulo|mod)\s*{A}"),
    ("remainder", rf"≡\s*{A}\s*\(?\s*mod\s*{A}"),
    ("remainder", rf"leav(?:es|e|ing)\s*{A}[^#.]{{0,40}}(?:divided by|division by|modulo|mod)\s*{A}"),
    ("remainder of", rf"(?:divided by|division by)\s*{A}[^#.]{{0,30}}(?:remainder(?: is| of)?|leaves?(?: a remainder of)?)\s*{A}"),
    ("remainder", rf"{A} more than a multiple of {A}"),
    ("coprime", rf"(?:relatively prime|coprime|co-prime)(?: to| with)\s*{A}"),
    ("coprime", rf"no (?:common )?(?:prime )?(?:divisor|factor)s?(?: greater than #\d+| other than #\d+)? (?:in common )?with\s*{A}"),
    ("remainder of", rf"(?:in|by|into)\s*(?:groups of|rows of|sets of|packs of|bags of)?\s*{A}s?\b[^#.]{{0,50}}?{A}\s*(?:[a-z]+ )?(?:is |are |were )?(?:left|remain)"),
    ("power over", rf"[a-z]\s*\^\s*\(?\s*{A}\)?[^#]{{0,30}}(?:exceeds|greater than|larger than|more than|>|bigger than)\s*{A}"),
    ("exponent over", rf"{A}\s*\^\s*\(?[a-z]\b\)?[^#]{{0,30}}(?:exceeds|greater than|larger than|more than|>|bigger than)\s*{A}"),
    ("square over", rf"(?<!perfect )square (?:is |exceeds)\s*(?:greater than|larger than|more than|bigger than)?\s*{A}"),
    ("cube over", rf"(?<!perfect )cube (?:is |exceeds)\s*(?:greater than|larger than|more than|bigger than)?\s*{A}"),
    ("contains", rf"(?:contain|contains|containing|include|includes|with) (?:at least one |the |a )?digit\s*{A}"),
)  # fmt: skip

PLAIN = (
    ("prime", r"\bprimes?\b(?! (?:factor|divisor))"),
    ("composite", r"\bcomposite"),
    ("square", r"perfect squares?\b"),
    ("cube", r"perfect cubes?\b"),
    ("even", r"\beven (?:positive )?(?:integer|number|whole|n\b)|\b(?:is|are) even\b"),
    ("odd", r"\bodd (?:positive )?(?:integer|number|whole|n\b)|\b(?:is|are) odd\b"),
    ("palindrome", r"palindrom"),
)  # fmt: skip

MONEY = r"(?:[$€£]\s*)?"
SALE = rf"{A} [a-z ]{{2,40}}?(?: that cost| costing| priced| which cost| worth)?,?\s*(?:at|for|cost|costs|costing|worth)?\s*{MONEY}{A}\s*(?:dollars|euros|pounds|cents|coins|credits)?\s*(?:each|apiece|per|every)"
UNIT_PRICE = rf"\b(?:each|every|one|an?|per) (?:single )?(?!and\b|of\b|the\b|for\b)([a-z]+?)s?\b[^#.]{{0,30}}?(?:costs?|is|sells for|weighs|holds|has|contains|seats|for|gets|needs|uses)\s*{MONEY}{A}"
PRICED = rf"\b([a-z]{{3,}}?)(?:s|es)? (?:at|for|cost|costs|costing|priced at|are) {MONEY}{A}[a-z $€£]{{0,12}}(?:each|apiece|per)"
PRICE_FOR = (
    rf"{MONEY}{A}\s*(?:dollars |euros )?(?:for|per) (?:an? |each )?([a-z]{{3,}}?)(?:s|es|ren)?\b"
)
SPEED = rf"{A}\s*(?:km/h|kilomet(?:re|er)s (?:per|an|each) hour|miles (?:per|an|each) hour|mph|km per hour|kph|m/s|met(?:re|er)s (?:per|each) (?:second|minute)|pages (?:per|an|each) (?:hour|minute|day)|lit(?:re|er)s (?:per|a|each) (?:minute|hour)|[a-z]+ (?:per|an|each|every|a) (?:hour|minute|day|second|week))"
TIME = rf"{A}\s*(?:hours|minutes|seconds|days|weeks|hour|minute|day)"
CREW = rf"{A} [a-z]+ (?:can |could )?[a-z ]{{0,40}}?(?:in|take|takes|need|needs) {A} (?:hours|days|minutes|weeks)[^#]{{0,80}}{A}"
ROWS = rf"{A} (?:rows|boxes|bags|shelves|tables|packs|crates|baskets|classes|buses|teams|groups|cartons|trays|columns|floors)\b[^#.]{{0,50}}{A}"
LESS = re.compile(
    rf"(?:gives? away|gave away|sold|sells|lost|loses|broken|broke|are empty|eaten|eats|ate|removed|removes|uses|used|discount of|coupon for|minus|leave|left)\s*{MONEY}{A}|{A} (?:of them )?(?:are |were |is )?(?:broken|sold|lost|eaten|empty|removed|given away|damaged|missing|rotten)"
)
MORE = re.compile(
    rf"(?:plus a?|and a|adds?|added|finds?|found|more than that,?|another|fixed fee of|a fee of|delivery fee of|shipping of|entry fee of)\s*{MONEY}{A}(?: more)?"
)


def read_story(state: Rewriting) -> Node | None:
    """Return the calculation behind a word problem, None when it is not one of these."""
    nodes = (reader(state) for reader in READERS)
    return next((node for node in nodes if node is not None), None)


def _parts(state: Rewriting, pattern: str) -> list[list[Node]]:
    return [state.marks(found[0]) for found in re.finditer(pattern, state.text)]


def _together(state: Rewriting) -> Node | None:
    """Things that happen every so often coincide after the least common multiple."""
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
    return _adjusted(state, reduce(Node.__add__, [op("product", *sale) for sale in sales]))


def _unit_prices(state: Rewriting) -> list[list[Node]]:
    """Return (how many, price) where a thing is priced in one place and counted in another."""
    found: list[list[Node]] = []
    for match in re.finditer(UNIT_PRICE, state.text):
        counted = state.find(rf"{A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b")
        if counted and counted[1] != match[2]:
            found.append([state.at(counted[1]), state.at(match[2])])
    for match in re.finditer(PRICED, state.text):
        counts = re.findall(rf"{A} (?:[a-z]+ )?{re.escape(match[1])}(?:s|es)?\b", state.text)
        others = [count for count in counts if count != match[2]]
        found += [[state.at(count), state.at(match[2])] for count in others[:1]]
    for match in re.finditer(PRICE_FOR, state.text):
        counted = state.find(rf"{A} {re.escape(match[2])}(?:s|es|ren)?\b")
        if counted and counted[1] != match[1] and not found[2:]:
            found.append([state.at(counted[1]), state.at(match[1])])
    return found


def _change(state: Rewriting) -> Node | None:
    given = r"(?:pays? with|paid with|hands over|gives the \w+|with a|from a|out of a)"
    paid = state.find(rf"{given}\s*{MONEY}{A}")
    if paid is None or "change" not in state.text:
        return None
    rest = Rewriting(state.text.replace(paid[0], " ; "), state.atoms)
    total = _sale(rest)
    return state.at(paid[1]) - total if total else None


def _travel(state: Rewriting) -> Node | None:
    speeds, times = _parts(state, SPEED), _parts(state, TIME)
    if not speeds:
        return None
    if times and state.find(r"how (?:far|many|much)|distance|total"):
        legs = [s[0] * t[0] for s, t in zip(speeds, times, strict=False)]
        if len(speeds) == 1 and len(times) > 1:
            legs = [speeds[0][0] * op("sum", *[t[0] for t in times])]
        return _total(legs)
    length = r"(?:km|kilomet|miles|met(?:re|er)s|lit(?:re|er)s|pages|[a-z]+)"
    far = state.find(rf"{A}\s*{length}\b(?! per| an| each)")
    if far and state.find(r"how (?:long|many (?:hours|minutes|seconds|days))|time"):
        return state.at(far[1]) / speeds[0][0]
    return None


def _rows(state: Rewriting) -> Node | None:
    rows = _parts(state, ROWS)
    if not rows or not state.find(r"how many|total|altogether"):
        return None
    return _adjusted(state, op("product", *rows[0][:2]))


def _adjusted(state: Rewriting, total: Node) -> Node:
    """Return a total after what the story takes away and adds."""
    for found in LESS.finditer(state.text):
        total = total - state.at(found[1] or found[2])
    for found in MORE.finditer(state.text):
        total = total + state.at(found[1])
    return total


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
    """Return the sum of so many numbers from their average."""
    found = _first(state, rf"(?:average|mean) (?:\w+ )?of {A} [a-z]+ is {A}")
    return op("product", *found) if len(found) == 2 and _asks(state, r"sum|total|add") else None


def _fee(state: Rewriting) -> Node | None:
    """A fixed charge and so much for each."""
    fixed = rf"{A} (?:[a-z]+ )?(?:plus|and|and then|then|with)(?: an additional| another| a further)? (?:\$|€)?{A} (?:[a-z]+ )?(?:per|for each|for every|each|an?|every) (?:additional )?([a-z]+)"
    found = state.find(fixed)
    charge = r"fee|charge|fixed|base|basic|deposit|flat|member|rent|hire"
    if found is None or not state.find(charge):
        return None
    unit = re.sub(r"(?:re|er|s)$", "", found[3])
    count = re.search(rf"{A} {unit}", state.text.replace(found[0], " ; "))
    return state.at(found[1]) + state.at(found[2]) * state.at(count[1]) if count else None


def lots(state: Rewriting) -> Node | None:
    """So many of one thing at a price, so many of another."""
    priced = rf"{A} [a-z]+(?: [a-z]+)? (?:at|for|costing|priced at|worth) (?:\$|€)?{A}"
    lots = re.findall(priced, state.text)
    asked = r"total|cost|pay|revenue|earn|spend|altogether|worth|how much|take in|bill"
    if not lots or not _asks(state, asked):
        return None
    return _total([state.at(n) * state.at(price) for n, price in lots])


def _percent(state: Rewriting) -> Node | None:
    """Return a share, or what is left or there after it."""
    sign = r"(?: ?%| per ?cent)"
    share = _first(state, rf"{A}{sign}")
    whole = _first(state, rf"{A}(?! ?%| per ?cent)(?=[^#]{{0,160}}#\d+{sign})")
    if not share or not whole:
        return None
    part = whole[0] * share[0] / 100
    text = state.text
    saved = r"(?:how much|what) (?:is the discount|do(?:es)? \w+ save|is saved)|sav"
    less = re.search(r"reduc|discount|off\b|lower|cheaper|decreas|fall|sale|drop", text)
    if less and not _asks(state, saved):
        return whole[0] - part
    more = re.search(r"increas|rais|rise|rose|grow|grew|interest|tip|tax", text)
    if more and not _asks(state, r"how much interest|by how much"):
        return whole[0] + part
    return whole[0] - part if _asks(state, r"not\b|remain|left|rest\b|other") else part


def _machines(state: Rewriting) -> Node | None:
    """So many makers, so much each in an hour, so many hours."""
    rate = state.find(rf"{A} (?:\w+ ){{0,3}}?(?:per|an|each|every|a) (?:single )?({_TIME})")
    if rate is None or not _asks(state, r"how (?:many|much|far|long)|total|what"):
        return None
    made = state.at(rate[1])
    rest = state.text[: rate.start()] + " ; " + state.text[rate.end() :]
    unit = rate[2].rstrip("s")
    span = re.search(rf"{A} {unit}s?\b", rest)
    if span:
        makers = re.findall(rf"{A} [a-z]+", rest.replace(span[0], " ; ", 1))
        return op("product", made, *map(state.at, makers[:1]), state.at(span[1]))
    amount = re.search(rf"{A} [a-z]+", rest)
    if amount and _asks(state, rf"how (?:long|many {unit}s)|in how many"):
        return state.at(amount[1]) / made
    return None


def _proportion(state: Rewriting) -> Node | None:
    """So much for so many, hence how much for another number."""
    per = r"(?:(?:per|for|every|for every|to|cost|costs|weigh|make|makes|needs?|is enough for|are needed for|yields?|on)\s+)+"
    found = state.find(rf"{A} ([a-z]+)(?: of [a-z]+)? {per}(?:\$|€)?{A}(?: ([a-z]+))?")
    if found is None:
        return None
    rest = state.text[found.end() :]
    other = re.search(rf"{A}(?: ([a-z]+))?", rest)
    if other is None or len(re.findall(r"#\d+", rest)) != 1:
        return None
    left, right, new = map(state.at, (found[1], found[3], other[1]))
    if other[2] and other[2].rstrip("s") == (found[4] or "").rstrip("s"):
        return left * new / right
    return right * new / left


_UP = r"buys?|bought|gets?|got|receiv\w+|finds?|found|adds?|added|picks?|picked|earns?|earned|wins?|won|collect\w*|board\w*|get on|gets on|got on|arrive\w*|join\w*|climbs?|rises?|rose|delivered|put|saves?|saved|deposit\w*|gains?|gained|enter\w*|more"
_DOWN = r"gives?|gave|given|sells?|sold|los[te]\w*|eats?|ate|eaten|spends?|spent|uses?|used|breaks?|broke|leaves?|left|get off|gets off|got off|removes?|removed|takes? away|took|withdr\w+|falls?|fell|drops?|dropped|donat\w+|throws?|threw|pays?|paid|borrow\w*|lent|lends"


def _stock(state: Rewriting) -> Node | None:
    """Something there at first, then more and less of it."""
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


def _years_on(state: Rewriting) -> Node | None:
    """In how many years one will be so many times as old as the other."""
    times = state.find(rf"(?:{A} times|(twice)) as old")
    ages = re.findall(r"#(\d+)", state.text[: times.start()] if times else "")
    if times is None or len(ages) != 2 or not _asks(state, r"how many years|when"):
        return None
    one, other = sorted(map(state.at, ages), key=lambda node: -node.value)
    ratio = number(2) if times[2] else state.at(times[1])
    return (one - ratio * other) / (ratio - 1)


def _consecutive(state: Rewriting) -> Node | None:
    """So many numbers in a row, from their sum."""
    found = _first(
        state,
        rf"{A} consecutive (?:\w+ )?(?:integers|numbers|whole)[^#]{{0,50}}(?:sum|total|add)[^#]{{0,20}}{A}",
        rf"sum of {A} consecutive (?:\w+ )?(?:integers|numbers)[^#]{{0,30}}{A}",
    )
    if len(found) != 2:
        return None
    step = number(2 if state.find(r"consecutive (?:\w+ )?(?:even|odd)") else 1)
    middle, reach = found[1] / found[0], step * (found[0] - 1) / 2
    if _asks(state, r"middle"):
        return middle
    return middle - reach if _asks(state, r"smallest|least|first|lowest") else middle + reach


def _offices(state: Rewriting) -> Node | None:
    """Different offices or prizes filled from one pool: the order matters."""
    places = roles(state.text)
    pool = _first(state, rf"{A} (?:[a-z]+ )?(?:people|children|[a-z]+s)\b")
    if places < 2 or not pool or not _asks(state, r"how many|number of"):
        return None
    k = number(places)
    return op("binomial", pool[0], k) * op("factorial", k)


def _pieces(state: Rewriting) -> Node | None:
    """The greatest equal measure of several lengths or heaps, or the least common one."""
    marks = state.marks(state.text)
    if len(marks) > 2 and marks[0].value == len(marks) - 1:
        marks = marks[1:]
    if len(marks) not in (2, 3) or state.find(r"every #\d+|prime|digit|each costs?"):
        return None
    most = r"(?:longest|largest|greatest|biggest|most|maximum|highest)[^?]*(?:piece|length|square|tile|side|group|number of|size|bag|pack|basket|kit|team|row|bouquet|box|parcel|plate|long)|how long[^?]*(?:longest|greatest)"
    alike = r"equal|same|identical|without|no \w+ (?:left|waste|over)|exactly|evenly|nothing|none"
    if _asks(state, most) and state.find(alike):
        return op("common divisor", *marks)
    fewest = _asks(state, r"(?:smallest|least|fewest|minimum|shortest|lowest)[^?]*")
    packed = r"packs? of|boxes of|packets of|groups of|rows of|teams of|bags of|bundles of|sold in|batches of"
    even = r"same|equal|either|both|exactly|left over|evenly"
    if fewest and state.find(packed) and state.find(even):
        return op("common multiple", *marks)
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
        hours = _first(state, rf"after {A} (?:hours|minutes|seconds)")
        if len(apart) == 2 and hours and state.find(r"opposite|towards|apart|away from each other"):
            return op("sum", *map(state.at, apart)) * hours[0]
        return None
    return _total([state.at(s) * state.at(t) for s, t in legs])


def _ages(state: Rewriting) -> Node | None:
    """Two people's ages (or shares) from their sum and difference or ratio."""
    total = _first(
        state,
        rf"(?:together|in total|combined|sum of their ages|their ages (?:add up to|sum to|total)|add(?:s)? up to|altogether)[^#.?]{{0,30}}{A}",
        rf"{A} (?:\w+ )?(?:together|altogether|in total|between them)",
        rf"\bshare {A}",
    )
    apart = state.find(
        rf"([a-z]+)[^#.?]{{0,30}}? {A} (?:[a-z]+ )?(more|older|fewer|less|younger|taller|heavier|longer)\b(?: than)? ?(?:her |his |the )?([a-z]+)?"
    )
    times = state.find(
        rf"([a-z]+)[^#.?]{{0,30}}? (?:{A} times|(twice)) as (?:old|many|much|tall|heavy|long|large)[^#.?]{{0,24}} as (?:her |his |the )?([a-z]+)?"
    )
    asking = re.split(r"(?<=[.;])\s|\n", state.text)[-1]
    if not total:
        return None
    if times:
        ratio = number(2) if times[3] else state.at(times[2])
        small = total[0] / (ratio + 1)
        lesser = times[4] and re.search(rf"\b{times[4]}\b", asking)
        return small if lesser or re.search("younger|smaller|less", asking) else small * ratio
    if apart:
        gap = state.at(apart[2])
        upper = apart[3] not in ("fewer", "less", "younger")
        named = apart[4] and re.search(rf"\b{apart[4]}\b", asking)
        other = bool(named or re.search("younger|smaller|less\b", asking))
        return (total[0] + gap if upper != other else total[0] - gap) / 2
    return None


def _two_numbers(state: Rewriting) -> Node | None:
    total = _first(
        state,
        rf"numbers (?:add(?:s|ing)? up to|add to|sum to|have (?:a|the) sum(?: of)?|whose sum is|total) {A}",
        rf"sum of (?:the )?(?:two|#\d+) (?:\w+ )?(?:numbers|integers) is {A}",
        rf"\bsum (?:is|of|equals) {A}",
    )
    gap = _first(
        state,
        rf"differ(?:ing)? by {A}",
        rf"difference (?:is|of|equals|between them is) {A}",
        rf"(?:is|one) {A} (?:more|larger|greater) than the other",
    )
    if not total or not gap:
        return None
    if _asks(state, r"product"):
        return (total[0] ** 2 - gap[0] ** 2) / 4
    lower = _asks(state, r"smaller|lesser|lower|least")
    return (total[0] - gap[0] if lower else total[0] + gap[0]) / 2


def _heads(state: Rewriting) -> Node | None:
    heads = _first(state, rf"{A} (?:heads|animals|vehicles)")
    legs = _first(state, rf"{A} (?:legs|feet|wheels)")
    if not heads or not legs:
        return None
    four = (legs[0] - number(2) * heads[0]) / 2
    if _asks(state, r"rabbits?|cows?|pigs?|sheep|horses?|dogs?|goats?|cats?|cars?"):
        return four
    return heads[0] - four


def _shape(state: Rewriting) -> Node | None:
    if not state.find(r"rectang|garden|field|room|floor|plot|square|playground|yard|pool|sheet"):
        return None
    sides = _first(
        state,
        rf"{A} (?:\w+ )?(?:long|in length)[^#]{{0,30}}{A} (?:\w+ )?(?:wide|in width|broad)",
        rf"(?:length|long side)[^#]{{0,20}}{A}[^#]{{0,40}}(?:width|breadth|wide)[^#]{{0,20}}{A}",
        rf"(?:width|wide)[^#]{{0,20}}{A}[^#]{{0,40}}(?:length|long)[^#]{{0,20}}{A}",
        rf"{A} (?:\w+ )?(?:by|wide and|x|times) {A}",
        rf"sides (?:of |of length |measuring )?{A}(?: \w+)? and {A}",
    )
    if len(sides) == 2 and _asks(state, r"perimeter|around|fence|border|edge"):
        return number(2) * op("sum", *sides)
    if len(sides) == 2 and _asks(state, r"area|square (?:met|cent|feet)|cover|tiles?"):
        return op("product", *sides)
    area = _first(state, rf"area (?:is|of) {A}")
    behind = rf"{A} (?:\w+ )?(?:long|wide)"
    side = _first(state, rf"(?:length|width|side|long|wide)[^#.]{{0,20}}{A}", behind)
    if area and side and area != side and _asks(state, r"width|length|side|wide|long"):
        return area[0] / side[0]
    return None


def _jointly(state: Rewriting) -> Node | None:
    """Two who need so long each, working side by side."""
    jointly = state.find(r"together|both|side by side|at the same time|jointly")
    if not jointly or not _asks(state, r"how (?:long|many)|time"):
        return None
    spent = rf"(?:in|takes?|needs?|requires?|alone in) (?:exactly )?{A} {_TIME}"
    times = [*map(state.at, re.findall(spent, state.text))]
    if len(times) != 2:
        times = _first(state, rf"in {A} {_TIME}[^#?]{{0,60}}in {A}")
    return times[0] * times[1] / (times[0] + times[1]) if len(times) == 2 else None


READERS = (
    _together, _crew, _change, _sale,
    _fee, _years_on, _consecutive, _average, _offices, _pieces,
    _legs, _ages, _two_numbers, _heads, _shape, _jointly, _percent, lots, _machines, _proportion, _stock,
    _travel, _rows,
)  # fmt: skip
