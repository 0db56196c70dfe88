# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Arithmetic and geometric progressions: each quantity is looked for on its own, in any order.

First term, difference or ratio, listed terms, which term, how many, the last one; then what is
asked. Rows of seats and daily savings are progressions in other clothes.
"""

import re
from dataclasses import dataclass, field

from harness.rehearsal.phrase_rules import op
from harness.rehearsal.phrases import Rewriting
from harness.rehearsal.trees import Node, number

_A = r"#(\d+)"
_THING = r"(?:terms?|numbers?|members?|entries|entry|elements?|rows?|days?|weeks?|months?|years?|hours?|layers?|levels?|steps?|rounds?|one|shelf|shelves|minutes?|lengths?|values?)"
_KIND = re.compile(
    r"arithmetic (?:progression|sequence|series)|geometric (?:progression|sequence|series)|common (?:difference|ratio)"
    rf"|\b(?:sequence|progression|series)\b|(?:each|every) (?:\w+ ){{0,4}}(?:{_THING} )?(?:\w+ ){{0,4}}(?:{_A}|twice|double|triple|three times) (?:\w+ )?(?:more|fewer|less|times|as many|larger|greater|smaller)?"
    r"|double|triple|(?:more|fewer|less|larger|greater|as many|as much)\b[^.?]{0,25} (?:than|as) (?:the|in the|on the) (?:\w+ )?(?:before|previous|preceding|one|row|day|week)"
    r"|(?:increas|rais|grow|ris)\w* (?:\w+ ){0,3}by #\d+ (?:\w+ ){0,2}(?:each|every|per)"
)
_SLOTS: tuple[tuple[str, str], ...] = (
    ("terms", rf"(?:first|initial|1th)\s*{_A}\s*(?:{_THING})|(?:after|for|over|in) (?:the )?{_A} (?:{_THING})|{_A} (?:terms|rows|layers|shelves|levels) (?:in all|in total|altogether)|(?:has|of|with|and|have|are|contains|over|in|for|after) (?:exactly |the )?{_A} (?:terms|rows|days|weeks|months|years|layers|shelves|levels|hours)|terms? n\s*=\s*{_A}"),
    ("difference", rf"(?:common )?difference(?: between (?:\w+ )*terms| d)?(?: is| of| equal to| equals|\s*=|:)*\s*{_A}"),
    ("difference", rf"(?:increas|grow|ris|go(?:es|ing)? up|rais)\w*(?: \w+){{0,4}} by(?: a constant| exactly)?\s*{_A}"),
    ("difference", rf"{_A}\s*(?:\w+ ){{0,2}}?(?:more|greater|larger|bigger|higher|above|longer|further)\b[^.?#]{{0,40}}(?:than|the (?:one|term)|before|previous|preceding|each|every)"),
    ("difference", rf"(?:in )?steps? of\s*{_A}|adding\s*{_A}|adds?\s*{_A} (?:\w+ ){{0,2}}(?:each|every|to (?:the|each))|{_A} is added|step(?: size)? is\s*{_A}|{_A} apart|{_A} extra|{_A} additional"),
    ("fall", rf"(?:decreas|fall|drop|go(?:es|ing)? down|shrink)\w*(?: \w+){{0,4}} by\s*{_A}|{_A}\s*(?:\w+ ){{0,2}}?(?:less|fewer|smaller|lower)\b[^.?#]{{0,30}}(?:than|before|previous|each)|subtract\w*\s*{_A}"),
    ("ratio", rf"(?:common )?ratio(?: r)?(?: is| of| equal to| equals|\s*=|:)*\s*{_A}"),
    ("ratio", rf"multipl(?:ied|ying|ies|y)(?: \w+){{0,4}} by\s*{_A}|{_A}\s*times (?:the (?:one|term|number|previous|preceding)|as (?:many|much|large|big)|its predecessor|that|what|larger)|{_A} fold|times\s*{_A} each"),
    ("first", rf"(?:first|initial|starting|opening) (?:{_THING})?(?:\s*a)?(?: of (?:an?|the|this) [a-z ]{{0,30}}(?:sequence|progression|series))?(?: (?:is|of|equal to|equals|has|have|holds|contains|was|there are|counts|seats|he|she|saves?|puts?|runs?|reads?|uses))*\s*(?:=|:|\$|€)?\s*{_A}"),
    ("first", rf"(?:start|begin)(?:s|ning|ing)?(?: \w+)? (?:with|at|from|by \w+ing)(?: the (?:number|term|value))?\s*\$?{_A}|a_\(?#\d+\)?\s*=\s*{_A}|{_A} (?:\w+ ){{1,3}}(?:in|on|for) the (?:first|1th) "),
    ("first", rf"(?:first|1th) (?:day|week|month|year|hour|row|minute)\b[^.?#]{{0,40}}{_A}"),
    ("nth", rf"{_A}(?:th|st|nd|rd) {_THING}|(?:term|row|entry|member|day|number in position|week|month|level|layer) (?:number |no\. )?{_A}\b|position {_A}"),
    ("last", rf"last (?:term )?(?:is|of|equals|=)?\s*{_A}|(?:up to|ends? (?:with|at|in)|ending (?:with|at|in)|finishing (?:with|at))(?: and including)?\s*{_A}|\.\.\.\s*[,+]?\s*{_A}"),
)  # fmt: skip
_GIVEN = re.compile(
    rf"(?:{_A}(?:th|st|nd|rd) (?:term|member|entry)(?: of (?:an?|the) [a-z ]{{3,40}})?|a_\(?{_A}\)?)(?: (?:is|equals|of))?\s*=?\s*{_A}(?!th|st|nd|rd)"
)
_LISTED = re.compile(rf"{_A}\s*,\s*{_A}\s*,\s*(?:and\s*)?{_A}((?:\s*,\s*(?:and\s*)?#\d+)*)")
_SUM = r"\bsum\b|total|altogether|in all\b|add(?:ed|ing)? (?:up|together|the)|how (?:many|much) (?:\w+ ){1,4}(?:in all|altogether|in total|does|did|will|are|has|can|do)"


@dataclass(slots=True)
class _Found:
    """What a text says about a progression."""

    slots: dict[str, Node] = field(default_factory=dict[str, Node])
    given: list[tuple[Node, Node]] = field(default_factory=list[tuple[Node, Node]])
    listed: list[Node] = field(default_factory=list[Node])


def find_progression(state: Rewriting) -> Node | None:
    """Return the calculation behind a question about a progression, None for other questions."""
    text = state.text
    listed = _LISTED.search(text)
    if re.search(r"fibonacci", text):
        return None
    if not _KIND.search(text) and not (listed and re.search(r"\.\.\.|pattern", text)):
        return None
    found = _fill(text, state.atoms)
    _settle(found, re.search(r"geometric|ratio\b", text) is not None, text)
    node = _asked(found, text)
    return node


def _fill(text: str, atoms: list[Node]) -> _Found:
    found = _Found()
    for given in _GIVEN.finditer(text):
        marks = [mark for mark in given.groups() if mark]
        found.given.append((atoms[int(marks[0])], atoms[int(marks[1])]))
    rest = _GIVEN.sub(" ; ", text) if len(found.given) > 1 or found.given else text
    listed = _LISTED.search(rest)
    if listed:
        found.listed = [atoms[int(mark)] for mark in re.findall(r"#(\d+)", listed[0])]
        rest = rest.replace(listed[0], " listed ", 1)
    for name, pattern in _SLOTS:
        if name in found.slots:
            continue
        match = re.search(pattern, rest)
        if match:
            found.slots[name] = atoms[int(next(mark for mark in match.groups() if mark))]
            if name != "last":
                rest = rest.replace(match[0], " ; ", 1)
    return found


def _settle(found: _Found, geometric: bool, text: str) -> None:
    """Work the first term and the step out from what is given."""
    slots = found.slots
    if re.search(r"\b(?:doubl(?:es?|ed|ing)|twice)\b", text):
        slots.setdefault("ratio", number(2))
    if re.search(r"\b(?:tripl(?:es?|ed|ing)|three times|3 times)\b", text):
        slots.setdefault("ratio", number(3))
    if "fall" in slots and "difference" not in slots:
        slots["difference"] = op("difference", number(0), slots["fall"])
    if len(found.listed) >= 2:
        first, second = found.listed[:2]
        values = [node.value for node in found.listed[:3]]
        plain = all(node.operation == "number" for node in found.listed[:3]) and len(values) == 3
        geometric = geometric or (
            plain and values[0] != 0 and values[1] - values[0] != values[2] - values[1]
        )
        slots["first"] = first
        slots["ratio" if geometric else "difference"] = op(
            "quotient" if geometric else "difference", second, first
        )
    if len(found.given) == 2 and not geometric:
        (i, x), (j, y) = found.given
        slots["difference"] = op("quotient", op("difference", y, x), op("difference", j, i))
    if found.given and "difference" in slots and "first" not in slots and not geometric:
        i, x = found.given[0]
        slots["first"] = op(
            "difference", x, op("product", op("difference", i, number(1)), slots["difference"])
        )
    if geometric or ("ratio" in slots and "difference" not in slots):
        slots.pop("difference", None)


def _asked(found: _Found, text: str) -> Node | None:
    slots = found.slots
    first, step, ratio = slots.get("first"), slots.get("difference"), slots.get("ratio")
    wanted = re.search(
        r"(?:what|find|determine)[^.?]{0,30} (?:the )?(first term|common difference)", text
    )
    if wanted and wanted[1] == "first term" and found.given and first:
        return first
    if wanted and wanted[1] == "common difference" and step and step.size():
        return step
    if first is None or (step is None and ratio is None):
        return None
    return _further(slots, (first, step, ratio), text)


def _further(
    slots: dict[str, Node], known: tuple[Node, Node | None, Node | None], text: str
) -> Node | None:
    """Return what is asked of a progression whose first term and step or ratio are known."""
    first, step, ratio = known
    last, nth = slots.get("last"), slots.get("nth")
    count = slots.get("terms")
    if last is not None and step is not None and count is None:
        count = op("sum", op("quotient", op("difference", last, first), step), number(1))
        if re.search(r"how many (?:terms|numbers|members|entries)|number of terms", text):
            return count
    adding = re.search(_SUM, text) is not None
    if nth is not None and not (adding and count is not None):
        return _term(first, step, ratio, nth)
    if count is None:
        return None
    return _counted((first, step, ratio, count), adding, text)


def _counted(
    terms: tuple[Node, Node | None, Node | None, Node], adding: bool, text: str
) -> Node | None:
    """Return the sum of so many terms, or the last of them."""
    first, step, ratio, count = terms
    if adding:
        if step is not None:
            return op("arithmetic series", first, step, count)
        return op("geometric series", first, ratio or number(1), count)
    if step is None and re.search(r"\bafter\b", text) and "term" not in text:
        return op("product", first, op("power", ratio or number(1), count))
    return _term(first, step, ratio, count)


def _term(first: Node, step: Node | None, ratio: Node | None, nth: Node) -> Node:
    before = op("difference", nth, number(1))
    if step is not None:
        return op("sum", first, op("product", step, before))
    return op("product", first, op("power", ratio or number(1), before))
