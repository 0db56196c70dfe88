# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Tales of amounts: fees, percentages, rates, lots at a price, and stocks that rise and fall."""

import re

from harness.rehearsal.phrase_rules import op
from harness.rehearsal.phrases import Rewriting
from harness.rehearsal.trees import Node, number

_A = r"#(\d+)"
_TIME = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"


def first(state: Rewriting, *patterns: str) -> list[Node]:
    """Return the atoms of the first pattern that is in the text."""
    for pattern in patterns:
        found = re.search(pattern, state.text)
        if found:
            return [state.atoms[int(mark)] for mark in found.groups() if mark and mark.isdigit()]
    return []


def asks(state: Rewriting, pattern: str) -> bool:
    """Say whether the part that asks says something."""
    asking = [
        part
        for part in re.split(r"(?<=[.;])\s|\n", state.text)
        if "?" in part or re.search(r"\bfind\b|determine|calculate|compute", part)
    ]
    return re.search(pattern, " ".join(asking) or state.text) is not None


def average(state: Rewriting) -> Node | None:
    """Return the sum of so many numbers from their average."""
    found = first(state, rf"(?:average|mean) (?:\w+ )?of {_A} [a-z]+ is {_A}")
    return op("product", *found) if len(found) == 2 and asks(state, r"sum|total|add") else None


def fee(state: Rewriting) -> Node | None:
    """A fixed charge and so much for each."""
    fixed = rf"{_A} (?:[a-z]+ )?(?:plus|and|and then|then|with)(?: an additional| another| a further)? (?:\$|€)?{_A} (?:[a-z]+ )?(?:per|for each|for every|each|an?|every) (?:additional )?([a-z]+)"
    found = re.search(fixed, state.text)
    if found is None or not re.search(
        r"fee|charge|fixed|base|basic|deposit|flat|member|rent|hire", state.text
    ):
        return None
    unit = re.sub(r"(?:re|er|s)$", "", found[3])
    count = re.search(rf"{_A} {unit}", state.text.replace(found[0], " ; "))
    return (
        op(
            "sum",
            state.atoms[int(found[1])],
            op("product", state.atoms[int(found[2])], state.atoms[int(count[1])]),
        )
        if count
        else None
    )


def lots(state: Rewriting) -> Node | None:
    """So many of one thing at a price, so many of another."""
    lots = re.findall(
        rf"{_A} [a-z]+(?: [a-z]+)? (?:at|for|costing|priced at|worth) (?:\$|€)?{_A}", state.text
    )
    if not lots or not asks(
        state, r"total|cost|pay|revenue|earn|spend|altogether|worth|how much|take in|bill"
    ):
        return None
    sales = [op("product", state.atoms[int(n)], state.atoms[int(price)]) for n, price in lots]
    return sales[0] if len(sales) == 1 else op("sum", *sales)


def percent(state: Rewriting) -> Node | None:
    """Return a share, or what is left or there after it."""
    sign = r"(?: ?%| per ?cent)"
    share = first(state, rf"{_A}{sign}")
    whole = first(state, rf"{_A}(?! ?%| per ?cent)(?=[^#]{{0,160}}#\d+{sign})")
    if not share or not whole:
        return None
    part = op("quotient", op("product", whole[0], share[0]), number(100))
    text = state.text
    if re.search(r"reduc|discount|off\b|lower|cheaper|decreas|fall|sale|drop", text) and not asks(
        state, r"(?:how much|what) (?:is the discount|do(?:es)? \w+ save|is saved)|sav"
    ):
        return op("difference", whole[0], part)
    if re.search(r"increas|rais|rise|rose|grow|grew|interest|tip|tax", text) and not asks(
        state, r"how much interest|by how much"
    ):
        return op("sum", whole[0], part)
    if asks(state, r"not\b|remain|left|rest\b|other"):
        return op("difference", whole[0], part)
    return part


def machines(state: Rewriting) -> Node | None:
    """So many makers, so much each in an hour, so many hours."""
    rate = re.search(
        rf"{_A} (?:\w+ ){{0,3}}?(?:per|an|each|every|a) (?:single )?({_TIME})", state.text
    )
    if rate is None or not asks(state, r"how (?:many|much|far|long)|total|what"):
        return None
    made = state.atoms[int(rate[1])]
    rest = state.text[: rate.start()] + " ; " + state.text[rate.end() :]
    unit = rate[2].rstrip("s")
    span = re.search(rf"{_A} {unit}s?\b", rest)
    if span:
        makers = re.findall(rf"{_A} [a-z]+", rest.replace(span[0], " ; ", 1))
        nodes = [made, *[state.atoms[int(mark)] for mark in makers[:1]], state.atoms[int(span[1])]]
        return op("product", *nodes)
    amount = re.search(rf"{_A} [a-z]+", rest)
    if amount and asks(state, rf"how (?:long|many {unit}s)|in how many"):
        return op("quotient", state.atoms[int(amount[1])], made)
    return None


def proportion(state: Rewriting) -> Node | None:
    """So much for so many, hence how much for another number."""
    found = re.search(
        rf"{_A} ([a-z]+)(?: of [a-z]+)? (?:(?:per|for|every|for every|to|cost|costs|weigh|make|makes|needs?|is enough for|are needed for|yields?|on)\s+)+(?:\$|€)?{_A}(?: ([a-z]+))?",
        state.text,
    )
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


def stock(state: Rewriting) -> Node | None:
    """Something there at first, then more and less of it."""
    if not asks(state, r"how (?:many|much)|what is"):
        return None
    start = re.search(
        rf"(?:has|had|have|holds?|contains?|contained|there (?:are|were)|starts? with|started with|with|carries|carrying|owns?|owned|is|was|bakes?|baked) (?:exactly )?(?:\$|€)?{_A}",
        state.text,
    )
    if start is None:
        return None
    total = state.atoms[int(start[1])]
    changed = (
        rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN}))\b(?: [a-z$€]+){{0,4}}? ?(?:\$|€)?#(?P<mark>\d+)"
    )
    behind = rf"#(?P<mark>\d+)(?: [a-z]+)?? (?:(?P<up>{_UP})|(?P<down>{_DOWN}))\b"
    rest = state.text[start.end() :]
    changes = max(list(re.finditer(changed, rest)), list(re.finditer(behind, rest)), key=len)
    for change in changes:
        total = op("sum" if change["up"] else "difference", total, state.atoms[int(change["mark"])])
    return total if changes else None
