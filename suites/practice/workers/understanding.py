# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Read a text as a calculation: bind letters, find progressions and searches, read each clause."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce

from podium.suites.practice.workers import stories
from podium.suites.practice.workers.arithmetic import Node, number
from podium.suites.practice.workers.phrases import Rewriting, atomised, fold_infix, op, understand
from podium.suites.practice.workers.stories import A, read_story
from podium.suites.practice.workers.workers import plain_words, usual_words, without_format

_ENDS = re.compile(
    r"(?<=[^.\s])[.?!;](?=\s|$)\s*|\n+"
    r"|,?\s+and (?=multiply|add|subtract|divide|square|raise|double|reduce|take the)"
    r"|,?\s+(?:and )?then,? (?=add|subtract|multiply|divide|take|square|find|compute|what|double"
    r"|reduce|raise|triple|determine|increase|decrease|work)"
    r"|,\s+(?:and )?(?=add |subtract |square |cube |double |triple |reduce |multiply the |multiply it|divide the |divide it|what |find )"
)
_VALUE = (
    r"(?:result|product|sum|value|total|power|outcome|answer|number|quantity|difference|quotient"
    r"|remainder|count|figure|integer|multiple|divisor|factor|prime)"
)
_SEVERAL = re.compile(
    r"\b(?:the (?:two|three|2|3|#\d+) (?:resulting |new |obtained )?"
    rf"{_VALUE}s|(?:these|those|both)(?: (?:two|three|#\d+|of these|of those))?"
    rf"(?: (?:resulting |new )?{_VALUE}s)?|the (?:results|products|sums)\b(?! of)|them\b)"
)
_ONE = re.compile(
    rf"\b(?:the|this|that) (?:resulting |obtained |new |final |last |same |so obtained )*{_VALUE}"
    r"(?: obtained| just found| found| so obtained| you (?:get|obtain|found|find))?\b"
    r"(?! of| when| that| which| divis| greater| larger| smaller| \(|s\b)|\bit\b(?! is\b(?! divided))"
    r"|\bwhat (?:you get|comes out|results)\b"
)
_GO_ON = (
    (re.compile(r"^(?:and )?(?:add|plus|increase (?:it|this) by) (?:another )?(#\d+)$"), "sum"),
    (re.compile(r"^(?:and )?(?:divide|divided)(?: by)? (#\d+)$"), "quotient"),
)  # fmt: skip
_SIMPLE = (
    (re.compile(r"#(\d+)\s*,?\s*(?:times|multiplied by) (?:the number )?#(\d+)(?!\d)"), "product"),
)  # fmt: skip
_TWICE = re.compile(
    r"\b(multiply|add|divide|raise) #(\d+) (?:by|to|and) (?:the power )?#(\d+),? and (?:then )?"
    r"#(\d+) (?:by|to|and) (?:the power )?#(\d+)"
)
_LAST_DIGITS = re.compile(r"(?:last|final|units?|ones) (?:#(?P<many>\d+) )?digits?\b")
_MODULUS = re.compile(
    r"remainder[^#]{0,90}(?:by|modulo|mod) #(\d+)|(?:modulo|mod) #(\d+)"
    r"|(?:divided|dividing|division) by #(\d+)[^#]{0,60}remainder|remainder[^?]*(?:divided|divide|dividing|division)[^?#]* by #(\d+)"
)
_DIGITS = re.compile(
    r"(?:sum|add|total)\w*[^.?#]{0,40}\bdigits\b|\bdigits\b[^.?]{0,40}(?:sum|add|total)"
)


@lru_cache(maxsize=4096)
def read_calculation(text: str, stories: bool) -> Node | None:
    """Return the calculation that a text asks for, or None if no part of the text is understood."""
    state = atomised(usual_words(plain_words(without_format(text))))
    state = _bind(state, lambda part: _clause(part, [], stories))
    readings = [_whole(state, stories), _in_turn(state, stories)]
    found = [_finished(node, state) for node in readings if node is not None]
    return max(found, key=lambda node: len(_leaves(node)), default=None)


def _finished(node: Node, state: Rewriting) -> Node:
    """Return a calculation with the last step that was left out: a remainder, or a digit sum."""
    last = _LAST_DIGITS.search(state.text)
    if last and node.operation != "remainder":
        many = int(state.at(last["many"]).value) if last["many"] else 1
        return op("remainder", node, number(10 ** min(9, many)))
    modulus = _MODULUS.search(state.text)
    if node.operation == "quotient" and state.find(r"\bremainder\b|left over"):
        return op("remainder", *node.parts)
    if modulus and node.operation != "remainder":
        mark = next(mark for mark in modulus.groups() if mark)
        if id(state.at(mark)) not in _leaves(node):
            return op("remainder", node, state.at(mark))
    if _DIGITS.search(state.text) and not re.search(r"digit|search", node.show()):
        return op("digit sum", node)
    return node


def _leaves(node: Node) -> set[int]:
    """Return the identities of the numbers that a calculation accounts for."""
    own = {id(node)} if node.operation == "number" else set[int]()
    return own.union(*[_leaves(part) for part in node.parts])


def _copy(state: Rewriting, text: str) -> Rewriting:
    return Rewriting(text, state.atoms)


def _whole(state: Rewriting, stories: bool) -> Node | None:
    """Return the calculation of a text read as a whole, or None if nothing is understood."""
    _simplify(state)
    readers = (_find_progression, _find_search)
    if state.find(r"multiples?\b|divisible|primes?\b"):
        readers = (_find_search, _find_progression)
    node = next((node for reader in readers if (node := reader(state))), None)
    if node is not None:
        return node
    abstract = state.find(r"remainder|divisor|prime|digit|raised|\bpower\b")
    story = read_story(state) if stories and not abstract else None
    node = understand(_copy(state, state.text))
    if story is not None and (node is None or len(_leaves(node)) <= len(_leaves(story))):
        return story
    return node


def _in_turn(state: Rewriting, stories: bool) -> Node | None:
    """Return the calculation of a text read clause by clause, with earlier results, or None."""
    clauses = [part.strip(" ,") for part in _ENDS.split(state.text) if part.strip(" ,")]
    if len(clauses) < 2:
        return None
    memory: list[Node] = []
    last: Node | None = None
    for clause in clauses:
        part = _copy(state, clause)
        _refer(part, memory)
        found = _clause(part, memory, stories)
        if found:
            goes_on = any(pattern.match(clause) for pattern, _ in _GO_ON)
            memory = [*(memory[:-1] if goes_on else memory), *found]
            last = found[-1]
    return last if last is not None and last.size() else None


def _clause(part: Rewriting, memory: list[Node], stories: bool) -> list[Node]:
    for pattern, operation in _GO_ON:
        found = pattern.match(part.text)
        if found and memory:
            return [op(operation, memory[-1], part.at(found[1][1:]))]
    _simplify(part)
    part.text = _TWICE.sub(lambda m: _both(m, part), part.text)
    node = _find_progression(part) or _find_search(part)
    if node is not None:
        return [node]
    understand(part)
    marks = part.marks(part.text)
    known = {id(node) for node in memory}
    new = [node for node in marks if node.size() and id(node) not in known]
    story = read_story(part) if stories and not new else None
    return [story] if story else new or [node for node in marks if id(node) not in known]


def _simplify(part: Rewriting) -> None:
    """Replace phrases such as "3 times 10" by the marks of their calculations."""
    for pattern, operation in _SIMPLE:
        for _ in range(4):
            found = pattern.search(part.text)
            if found is None:
                break
            nodes = [part.at(mark) for mark in found.groups() if mark]
            part.replace(*found.span(), op(operation, *[*nodes, number(2)][:2]))


def _both(found: re.Match[str], part: Rewriting) -> str:
    """Return "multiply A by B and C by D" as the marks of two products."""
    first, second, third, fourth = map(part.at, found.groups()[1:])
    name = {"multiply": "product", "add": "sum", "divide": "quotient", "raise": "power"}[found[1]]
    return f"{part.atom(op(name, first, second))} and {part.atom(op(name, third, fourth))}"


def _refer(part: Rewriting, memory: list[Node]) -> None:
    """Replace words such as "it" or "both numbers" by the results of earlier clauses."""
    if not memory:
        return
    if len(memory) > 1:
        latest = memory[-3 if "three" in part.text else -2 :]
        listed = " and ".join(map(part.atom, latest))
        part.text = _SEVERAL.sub(f" {listed} ", part.text, count=1)
        if part.find(r"\btheir\b") and not part.find(r"#\d+"):
            part.text = re.sub(
                rf"(?:the )?\btheir\b ((?:[a-z]+ )*?(?:{_VALUE}|difference|gcd|lcm))",
                rf"the \1 of {listed} ",
                part.text,
            )
    one = part.atom(memory[-1])
    part.text = re.sub(
        r"\bits ((?:decimal |positive |prime |distinct |different |proper |binary )*"
        r"(?:digits|divisors|factors|prime factors|square|cube|digit sum|representation))",
        rf"the \1 of {one} ",
        part.text,
    )
    part.text = re.sub(r"(does|do|has|have) (?:it|that|this)\b", rf"\1 {one}", part.text)
    part.text = _ONE.sub(f" {one} ", part.text)
    fold_infix(part)


Reader = Callable[[Rewriting], list[Node]]
_IS = r"(?:(?<=\s)(?:be|is|denotes?|stands? for|represents?|equals?)\b|=|:=)"
_STOP = (
    r"(?=\s*(?:[.;?!:](?:\s|$)|\n|$|,?\s*(?:and\s+)?(?:let\s+)?\b[a-z]\s+(?:be|is|denotes?|stands? for)\b|,?\s*(?:and\s+)?(?:let\s+)?\b[a-z]\s*(?:=|:=)"
    r"|,?\s+(?:and\s+)?(?:then\s+)?(?:what|find|compute|determine|where|how many|evaluate|calculate|give)\b|\)\s*[.,;?]))"
)
_NOT = r"(?!\s*(?:divided|divisible|even\b|odd\b|prime\b|an?\b|greater|less|not\b|congruent|at least|at most|multiplied|positive|relatively|coprime|raised|in\b|to\b|such|what|how))"
_PAIR = re.compile(
    rf"\b(?:let|with|where|if|suppose(?: that)?|and)\s+([a-z])(?:\s*,\s*([a-z]))?\s*,?\s*and\s+([a-z])\s+(?:{_IS}|are)\s+(.{{2,240}}?){_STOP}"
)
_SINGLE = re.compile(
    rf"(?:\b(?:let|suppose(?: that)?|put|set|write|take|define|if|where|with|say|assume(?: that)?|given(?: that)?|and(?: let)?|for|when)|[,;:.(]|^)\s*([a-z])\s*{_IS}(?:\s*equal to)?{_NOT}\s*(.{{2,240}}?){_STOP}"
)
_CALLED = re.compile(
    r"(?P<what>[^.?!;\n]{3,240}?)[.;,]?\s*\(?\b(?:call|denote|name|label|write)\s+(?:this|that|it|the (?:result|answer|outcome|number|product|sum))(?:\s+(?:number|value|result|product|sum|count|remainder|power|total))?(?:\s+obtained)?\s+(?:by\s+|as\s+)?(?P<name>[a-z])\b\)?(?=\s*(?:[.,;)]|$|and\b))"
)
_DENOTE = re.compile(
    r"\b(?:denote|call|name|label)\s+(?:by\s+(?P<early>[a-z])\s+)?(?P<what>[^.?!;\n]{3,200}?)(?:\s*,?\s+(?:by\s+|as\s+)?(?P<name>[a-z]))?\s*(?=[.;\n]|$|,?\s+and\b)"
)
_WORD_AFTER = r"(?!\s+(?!(?:and|is|be|to|or|by|divided|when|raised|plus|minus|times|mod|modulo|multiplied|but|both|does|has|then|in base|inclusive|through|squared|cubed|leaves?|exceeds)\b)[a-z#])"


def _bind(state: Rewriting, reader: Reader) -> Rewriting:
    """Replace letters by their defined meanings, as far as these are understood; return `state`."""
    for _ in range(8):
        fold_infix(state)
        if not any(way(state, reader) for way in _WAYS):
            break
    return state


def _pair(state: Rewriting, reader: Reader) -> bool:
    found = _PAIR.search(state.text)
    if found is None:
        return False
    names = [name for name in found.groups()[:3] if name]
    nodes = state.marks(found[4])
    if len(nodes) != len(names):
        nodes = reader(_copy(state, found[4]))
    return len(nodes) == len(names) and _bound(state, found, dict(zip(names, nodes, strict=True)))


def _single(state: Rewriting, reader: Reader) -> bool:
    for found in _SINGLE.finditer(state.text):
        node = _meaning(found[2], state, reader)
        if node is not None:
            return _bound(state, found, {found[1]: node})
    return False


def _named(pattern: re.Pattern[str], state: Rewriting, reader: Reader) -> bool:
    found = pattern.search(state.text)
    groups = found.groupdict() if found else {}
    name = groups.get("early") or groups.get("name")
    node = _meaning(groups["what"], state, reader) if name else None
    return found is not None and node is not None and _bound(state, found, {str(name): node})


_WAYS = (_pair, partial(_named, _CALLED), _single, partial(_named, _DENOTE))


def _meaning(words: str, state: Rewriting, reader: Reader) -> Node | None:
    nodes = reader(_copy(state, words.strip())) if re.search(r"#\d+", words) else []
    return nodes[-1] if nodes else None


def _bound(state: Rewriting, found: re.Match[str], meanings: dict[str, Node]) -> bool:
    """Remove a definition from the text and replace its letters by their meanings; return True."""
    state.text = f"{state.text[: found.start()]} . {state.text[found.end() :]}"
    for name, node in meanings.items():
        _put(state, name, node)
    return True


def _put(state: Rewriting, name: str, node: Node) -> None:
    """Replace a letter by a calculation's mark; the letters `a` and `i` not if they are words."""
    mark = state.atom(node)
    text = re.sub(rf"(#\d+)\s?{name}(?![a-z'])", rf"\1 * {mark}", state.text)
    for one, other in ((name, r"([bcknqxyz])"), (r"([akmnpxy])", name)):
        pair = rf"(?<![\w#'])(?!by|my|an|as|at|is|in|no|pi){one}{other}(?![\w'])"
        text = re.sub(pair, lambda m: " * ".join(m[0]).replace(name, mark), text)
    text = re.sub(rf"(?<![\w#']){name}\s?-?\s?th\b", f" {mark}th", text)
    after = _WORD_AFTER if name in "ai" else ""
    state.text = re.sub(rf"(?<![\w#'\\]){name}(?![\w'’]){after}", f" {mark} ", text)


_THING = r"(?:terms?|numbers?|members?|entries|entry|elements?|rows?|days?|weeks?|months?|years?|hours?|layers?|levels?|steps?|rounds?|one|shelf|shelves|minutes?|lengths?|values?)"
_KIND = re.compile(
    r"arithmetic (?:progression|sequence|series)|geometric (?:progression|sequence|series)|common (?:difference|ratio)"
    rf"|\b(?:sequence|progression|series)\b|(?:each|every) (?:\w+ ){{0,4}}(?:{_THING} )?(?:\w+ ){{0,4}}(?:{A}|twice|double|triple|three times) (?:\w+ )?(?:more|fewer|less|times|as many|larger|greater|smaller)?"
    r"|double|triple|(?:more|fewer|less|larger|greater|as many|as much)\b[^.?]{0,25} (?:than|as) (?:the|in the|on the) (?:\w+ )?(?:before|previous|preceding|one|row|day|week)"
    r"|(?:increas|rais|grow|ris)\w* (?:\w+ ){0,3}by #\d+ (?:\w+ ){0,2}(?:each|every|per)"
)
_SLOTS: tuple[tuple[str, str], ...] = (
    ("terms", rf"(?:first|initial|1th)\s*{A}\s*(?:{_THING})|(?:after|for|over|in) (?:the )?{A} (?:{_THING})|{A} (?:terms|rows|layers|shelves|levels) (?:in all|in total|altogether)|(?:has|of|with|and|have|are|contains|over|in|for|after) (?:exactly |the )?{A} (?:terms|rows|days|weeks|months|years|layers|shelves|levels|hours)|terms? n\s*=\s*{A}"),
    ("difference", rf"(?:in )?steps? of\s*{A}|adding\s*{A}|adds?\s*{A} (?:\w+ ){{0,2}}(?:each|every|to (?:the|each))|{A} is added|step(?: size)? is\s*{A}|{A} apart|{A} extra|{A} additional"),
    ("ratio", rf"(?:common )?ratio(?: r)?(?: is| of| equal to| equals|\s*=|:)*\s*{A}"),
    ("first", rf"(?:first|initial|starting|opening) (?:{_THING})?(?:\s*a)?(?: of (?:an?|the|this) [a-z ]{{0,30}}(?:sequence|progression|series))?(?: (?:is|of|equal to|equals|has|have|holds|contains|was|there are|counts|seats|he|she|saves?|puts?|runs?|reads?|uses))*\s*(?:=|:|\$|€)?\s*{A}"),
    ("first", rf"(?:start|begin)(?:s|ning|ing)?(?: \w+)? (?:with|at|from|by \w+ing)(?: the (?:number|term|value))?\s*\$?{A}|a_\(?#\d+\)?\s*=\s*{A}|{A} (?:\w+ ){{1,3}}(?:in|on|for) the (?:first|1th) "),
    ("nth", rf"{A}(?:th|st|nd|rd) {_THING}|(?:term|row|entry|member|day|number in position|week|month|level|layer) (?:number |no\. )?{A}\b|position {A}"),
)  # fmt: skip
_LISTED = re.compile(rf"{A}\s*,\s*{A}\s*,\s*(?:and\s*)?{A}((?:\s*,\s*(?:and\s*)?#\d+)*)")
_SUM = r"\bsum\b|total|altogether|in all\b|add(?:ed|ing)? (?:up|together|the)|how (?:many|much) (?:\w+ ){1,4}(?:in all|altogether|in total|does|did|will|are|has|can|do)"


@dataclass(slots=True)
class _Found:
    """What a text says about a progression: first term, step, number of terms, listed terms."""

    slots: dict[str, Node] = field(default_factory=dict[str, Node])
    listed: list[Node] = field(default_factory=list[Node])


def _find_progression(state: Rewriting) -> Node | None:
    text = state.text
    listed = _LISTED.search(text)
    if re.search(r"fibonacci", text):
        return None
    if not _KIND.search(text) and not (listed and re.search(r"\.\.\.|pattern", text)):
        return None
    found = _fill(state)
    _settle(found, re.search(r"geometric|ratio\b", text) is not None, text)
    return _asked(found, text)


def _fill(state: Rewriting) -> _Found:
    found, text = _Found(), state.text
    rest, listed = text, _LISTED.search(text)
    if listed:
        found.listed = state.marks(listed[0])
        rest = rest.replace(listed[0], " listed ", 1)
    for name, pattern in _SLOTS:
        if name in found.slots:
            continue
        match = re.search(pattern, rest)
        if match:
            found.slots[name] = state.at(next(mark for mark in match.groups() if mark))
            if name != "last":
                rest = rest.replace(match[0], " ; ", 1)
    return found


def _settle(found: _Found, geometric: bool, text: str) -> None:
    """Fill in a progression's first term and its difference or ratio from the terms listed."""
    slots = found.slots
    if len(found.listed) >= 2:
        first, second = found.listed[:2]
        values = [node.value for node in found.listed[:3] if node.operation == "number"]
        even = len(values) < 3 or values[0] == 0 or values[1] - values[0] == values[2] - values[1]
        geometric = geometric or not even
        slots["first"] = first
        slots |= {"ratio": second / first} if geometric else {"difference": second - first}
    if geometric or ("ratio" in slots and "difference" not in slots):
        slots.pop("difference", None)


def _asked(found: _Found, text: str) -> Node | None:
    slots = found.slots
    first, step, ratio = slots.get("first"), slots.get("difference"), slots.get("ratio")
    return _further(slots, first, text) if first and (step or ratio) else None


def _further(slots: dict[str, Node], first: Node, text: str) -> Node | None:
    """Return the calculation asked of a progression with known first term and step, or None."""
    step, nth, count = (slots.get(key) for key in ("difference", "nth", "terms"))
    ratio = slots.get("ratio", number(1))
    adding = re.search(_SUM, text) is not None
    if nth is not None and not (adding and count is not None):
        return _term(first, step, ratio, nth)
    if count is None:
        return None
    if adding:
        kind = "arithmetic series" if step else "geometric series"
        return op(kind, first, step or ratio, count)
    if step is None and re.search(r"\bafter\b", text) and "term" not in text:
        return first * ratio**count
    return _term(first, step, ratio, count)


def _term(first: Node, step: Node | None, ratio: Node, nth: Node) -> Node:
    return first * ratio ** (nth - 1) if step is None else first + step * (nth - 1)


OPEN = Node("open")  # the upper end of a search without one


def _find_search(state: Rewriting) -> Node | None:
    text = state.text
    wanted = next((wanted for wanted, pattern in _WANTED if re.search(pattern, text)), None)
    if wanted is None:
        return None
    conditions, rest = _conditions(text, state)
    divisors, joined, rest = _divisors(rest, state)
    if divisors:
        conditions.append(("divisible", divisors))
    low, high = _range(rest, state)
    unbounded = high is None and wanted in ("count", "sum", "greatest")
    if not conditions or unbounded:
        return None
    parts = [Node("values", values) for _, values in conditions]
    names = (wanted, joined, *[name for name, _ in conditions])
    return Node("search", (low or number(1), high or OPEN, *parts), names=names)


_WANTED = (
    ("count", r"how many|number of|count (?:the|how|all|up)|\bcount\b|in how many"),
    ("sum", r"\bsum of (?:all |the |every )|add (?:up )?all|total of all|their (?:sum|total)|add them"),
    ("least", r"(?:next|which) prime[^#]{0,40}(?:after|follow|beyond)|smallest|least (?:positive|integer|number|whole|natural|such|n\b)|lowest|minimum|first positive"),
    ("greatest", r"prime[^#]{0,30}(?:before|preced)|largest|greatest (?:integer|number|whole|prime|multiple|n\b|#\d+ digit)|biggest|highest"),
    ("least", r"(?:what|which|find|determine) (?:is )?(?:the )?(?:positive )?(?:integer|number)\b"),
)  # fmt: skip


def _conditions(text: str, state: Rewriting) -> tuple[list[tuple[str, tuple[Node, ...]]], str]:
    found: list[tuple[str, tuple[Node, ...]]] = []
    for name, pattern in stories.CONDITIONS:
        for match in list(re.finditer(pattern, text)):
            parts = tuple(state.at(mark) for mark in match.groups() if mark)
            found.append((name, parts))
            text = text.replace(match[0], " ; ", 1)
    found += [(name, ()) for name, pattern in stories.PLAIN if re.search(pattern, text)]
    return found, text


_DIVISIBLE = rf"(?:divisible|multiples?|divided evenly|evenly divisible)\s+(?:by|of)\s+(?:both|either|neither|any of|all of|each of|at least #?\w+ of|exactly \S+ of)?\s*({stories.MANY})"


def _divisors(text: str, state: Rewriting) -> tuple[tuple[Node, ...], str, str]:
    spans = list(re.finditer(_DIVISIBLE, text))
    divisors = tuple(node for span in spans for node in state.marks(span[1]))
    rest = reduce(lambda left, span: left.replace(span[0], " ; ", 1), spans, text)
    return divisors, _joined(text, state) if spans else "all", rest


_JOINED = (
    ("none", r"neither|\bnor\b|not (?:\w+ )?(?:divisible by|(?:a )?multiples? of)(?: either)?[^.]*\bor\b|by none"),
    ("any", rf"(?:by|of)\s+(?:either|at least \S+ of)|{A} or\b|,\s*or\b"),
)  # fmt: skip


def _joined(text: str, state: Rewriting) -> str:
    exactly = re.search(r"exactly #(\d+) of", text)
    if (exactly and state.at(exactly[1]).value == 1) or "but not both" in text:
        return "one"
    return next((joined for joined, pattern in _JOINED if re.search(pattern, text)), "all")


def _range(text: str, state: Rewriting) -> tuple[Node | None, Node | None]:
    for pattern, up, down in stories.BOUNDS:
        found = re.search(pattern, text)
        if found:
            strict = bool(re.search(r"strictly between|exclusive", text))
            low, high = state.at(found[1]), state.at(found[2])
            return _shifted(low, up + strict), _shifted(high, down - strict)
    low, high = (
        next((_shifted(state.at(m[1]), by) for p, by in ends if (m := re.search(p, text))), None)
        for ends in (stories.LOWER, stories.UPPER)
    )
    return low, high


def _shifted(node: Node, by: int) -> Node:
    return node + by if by else node
