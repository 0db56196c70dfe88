# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Read a whole question about numbers: what its letters stand for, then its sentences in turn.

`phrases` understands one stretch of words; here a question is cut into stretches, letters and
references ("the two products", "that number", "its digits") are bound to what came before, and of
several readings the one that accounts for most of the numbers is taken.
"""

import re

from harness.rehearsal.definitions import bind
from harness.rehearsal.everyday import usual_words
from harness.rehearsal.phrase_rules import op
from harness.rehearsal.phrases import Rewriting, atomised, fold_infix, understand
from harness.rehearsal.progressions import find_progression
from harness.rehearsal.reading import plain, without_format
from harness.rehearsal.searching import find_search
from harness.rehearsal.stories import read_story
from harness.rehearsal.trees import Node, number

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
_THEIR = re.compile(r"\b(?:their|its)\b")
_ONE = re.compile(
    rf"\b(?:the|this|that) (?:resulting |obtained |new |final |last |same |so obtained )*{_VALUE}"
    r"(?: obtained| just found| found| so obtained| you (?:get|obtain|found|find))?\b"
    r"(?! of| when| that| which| divis| greater| larger| smaller| \(|s\b)|\bit\b(?! is\b(?! divided))"
    r"|\bwhat (?:you get|comes out|results)\b"
)
_NTH = re.compile(rf"\bthe (first|second|third|1th|2th|3th|latter|former|other) (?:{_VALUE})\b")
_GO_ON = (
    (re.compile(r"^(?:and )?(?:add|plus|increase (?:it|this) by) (?:another )?(#\d+)$"), "sum"),
    (re.compile(r"^(?:and )?(?:subtract|minus|take away|decrease (?:it|this) by) (#\d+)$"), "difference"),
    (re.compile(r"^(?:and )?(?:multiply|times|multiplied)(?: by)? (#\d+)$"), "product"),
    (re.compile(r"^(?:and )?(?:divide|divided)(?: by)? (#\d+)$"), "quotient"),
    (re.compile(r"^(?:and )?(?:raise|raised)(?: to)? the (#\d+)(?:th)? power$"), "power"),
    (re.compile(r"^(?:and )?reduce (?:modulo|mod) (#\d+)$"), "remainder"),
)  # fmt: skip
_SIMPLE = (
    (re.compile(r"#(\d+)\s*,?\s*(?:times|multiplied by) (?:the number )?#(\d+)(?!\d)"), "product"),
    (re.compile(r"\b(?:twice|double) #(\d+)(?!\d)"), "product"),
    (re.compile(r"\b(?:the )?square of #(\d+)(?!\d)"), "power"),
    (re.compile(r"\b(?:the )?(?:larger|greater|bigger) of (?:the numbers )?#(\d+) and #(\d+)"), "maximum"),
    (re.compile(r"\b(?:the )?(?:smaller|lesser) of (?:the numbers )?#(\d+) and #(\d+)"), "minimum"),
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
_REMAINDER = re.compile(
    r"(?:what (?:is|will be) |find |give |compute |determine )?(?:the )?remainder (?:that is left )?(?:when|if|after|on dividing|upon dividing|"
    r"obtained when|left when) (?P<what>.{8,}) (?:is |are |were |gets )?(?:divided|reduced)?\s*(?:by|modulo|mod) "
    r"(?P<by>#\d+)"
)


def read(text: str, stories: bool) -> Node | None:
    """Return the calculation a question asks for, None when no part of it is understood."""
    state = bind(
        atomised(usual_words(plain(without_format(text)))), lambda part: _clause(part, [], stories)
    )
    readings = [_whole(state, stories), _in_turn(state, stories)]
    found = [_finished(node, state) for node in readings if node is not None]
    return max(found, key=lambda node: len(_leaves(node)), default=None)


def _finished(node: Node, state: Rewriting) -> Node:
    """Return a calculation with the last step that its reading left out: a remainder, its digits."""
    last = _LAST_DIGITS.search(state.text)
    if last and node.operation != "remainder":
        many = int(state.atoms[int(last["many"])].value) if last["many"] else 1
        return op("remainder", node, number(10 ** min(9, many)))
    modulus = _MODULUS.search(state.text)
    if node.operation == "quotient" and re.search(r"\bremainder\b|left over", state.text):
        return op("remainder", *node.parts)
    if modulus and node.operation != "remainder":
        mark = next(mark for mark in modulus.groups() if mark)
        if id(state.atoms[int(mark)]) not in _leaves(node):
            return op("remainder", node, state.atoms[int(mark)])
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
    """Read a text in one go."""
    wrapped = _REMAINDER.search(state.text)
    if wrapped and len(re.findall(r"#\d+", wrapped["what"])) > 1:
        inner = _plainly(_copy(state, f"what is {wrapped['what']}?"), stories)
        if inner is not None and inner.operation in ("search", "arithmetic series", "sum"):
            return op("remainder", inner, state.atoms[int(wrapped["by"][1:])])
    return _plainly(state, stories)


def _plainly(state: Rewriting, stories: bool) -> Node | None:
    _simplify(state)
    readers = (find_progression, find_search)
    if re.search(r"multiples?\b|divisible|primes?\b", state.text):
        readers = (find_search, find_progression)
    for reader in readers:
        node = reader(state)
        if node is not None:
            return node
    abstract = re.search(r"remainder|divisor|prime|digit|raised|\bpower\b", state.text)
    story = read_story(state) if stories and not abstract else None
    node = understand(_copy(state, state.text))
    if story is not None and (node is None or len(_leaves(node)) <= len(_leaves(story))):
        return story
    return node


def _in_turn(state: Rewriting, stories: bool) -> Node | None:
    """Read a text clause by clause, each with what the clauses before it came to."""
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
            memory = [*memory, *found] if not _goes_on(clause) else [*memory[:-1], *found]
            last = found[-1]
    return last if last is not None and last.size() else None


def _goes_on(clause: str) -> bool:
    return any(pattern.match(clause) for pattern, _ in _GO_ON)


def _clause(part: Rewriting, memory: list[Node], stories: bool) -> list[Node]:
    for pattern, operation in _GO_ON:
        found = pattern.match(part.text)
        if found and memory:
            return [op(operation, memory[-1], part.atoms[int(found[1][1:])])]
    _simplify(part)
    part.text = _TWICE.sub(lambda m: _both(m, part), part.text)
    for reader in (find_progression, find_search):
        node = reader(part)
        if node is not None:
            return [node]
    understand(part)
    marks = [part.atoms[int(mark)] for mark in re.findall(r"#(\d+)", part.text)]
    known = {id(node) for node in memory}
    new = [node for node in marks if node.size() and id(node) not in known]
    story = read_story(part) if stories and not new else None
    return [story] if story else new or [node for node in marks if id(node) not in known]


def _simplify(part: Rewriting) -> None:
    """Write "3 times 10", "twice 10" and "the square of 10" as numbers of their own."""
    for pattern, operation in _SIMPLE:
        for _ in range(4):
            found = pattern.search(part.text)
            if found is None:
                break
            nodes = [part.atoms[int(mark)] for mark in found.groups() if mark]
            nodes = nodes if len(nodes) > 1 else [*nodes, number(2)]
            part.replace(*found.span(), op(operation, *nodes))


def _both(found: re.Match[str], part: Rewriting) -> str:
    """Write "multiply A by B and C by D" as two products."""
    first, second, third, fourth = (part.atoms[int(mark)] for mark in found.groups()[1:])
    name = {"multiply": "product", "add": "sum", "divide": "quotient", "raise": "power"}[found[1]]
    return f"{part.atom(op(name, first, second))} and {part.atom(op(name, third, fourth))}"


def _refer(part: Rewriting, memory: list[Node]) -> None:
    """Put results of earlier clauses in the place of the words that point at them."""
    if not memory:
        return
    if len(memory) > 1:
        listed = " and ".join(
            part.atom(node) for node in memory[-3 if "three" in part.text else -2 :]
        )
        part.text = _SEVERAL.sub(f" {listed} ", part.text, count=1)
        if re.search(r"\btheir\b", part.text) and not re.search(r"#\d+", part.text):
            part.text = re.sub(
                rf"(?:the )?\btheir\b ((?:[a-z]+ )*?(?:{_VALUE}|difference|gcd|lcm))",
                rf"the \1 of {listed} ",
                part.text,
            )
        part.text = _NTH.sub(lambda m: f" {part.atom(_nth(m[1], memory))} ", part.text)
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


def _nth(word: str, memory: list[Node]) -> Node:
    if word in ("second", "2th", "latter", "other"):
        return memory[1] if len(memory) == 2 else memory[-1]
    if word in ("third", "3th"):
        return memory[min(2, len(memory) - 1)]
    return memory[-2] if len(memory) > 1 else memory[0]
