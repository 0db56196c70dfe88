# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Find the calculation in a text: phrases for operations are replaced by marks, from inside out."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product

from podium.suites.practice.workers.arithmetic import Node, NotInfix, number, parse

_NUMBER = re.compile(r"(?<![\w#.])\d+(?:\.\d+)?(?![\d])")
_RUN = re.compile(r"[(\-]*\s*#\d+[#\d()+*/^!\s\-]*")
_SERIES = re.compile(r"#(\d+)\s*([+*])\s*#(\d+)\s*(?:[+*]\s*#\d+\s*)*[+*]\s*\.\.\.\s*[+*]\s*#(\d+)")
_PRONOUN = re.compile(
    r"\b(?:the|this|that|its) (?:resulting |obtained )?(?:result|product|sum|value"
    r"|total|power|outcome|answer"
    r"|number obtained|resulting number|number|quantity|difference)\b(?! of| when| "
    r"obtained| you)|\bit\b(?! is)"
)
MAX_ROUNDS = 40
MAX_TEXT = 3000


@dataclass(slots=True)
class Rewriting:
    """A half-understood text: a mark such as `#0` stands for each part that is understood."""

    text: str
    atoms: list[Node] = field(default_factory=list[Node])

    def atom(self, node: Node) -> str:
        """Store a calculation that is understood; return the mark, such as `#0`, for the text."""
        self.atoms.append(node)
        return f"#{len(self.atoms) - 1}"

    def at(self, mark: str) -> Node:
        """Return the calculation for which a mark's number stands."""
        return self.atoms[int(mark)]

    def find(self, pattern: str) -> re.Match[str] | None:
        """Return the first match of a pattern in the text, or None."""
        return re.search(pattern, self.text)

    def marks(self, text: str) -> list[Node]:
        """Return the calculations whose marks (`#0`) are in a text, in their order there."""
        return [self.atoms[int(mark)] for mark in re.findall(r"#(\d+)", text)]

    def replace(self, start: int, end: int, node: Node) -> None:
        """Replace the words from `start` to `end` by the mark of the calculation they mean."""
        self.text = f"{self.text[:start]} {self.atom(node)} {self.text[end:]}"

    def best(self) -> Node | None:
        """Return the largest calculation in the text (of equal ones the last), or None."""
        largest = max(reversed(self.marks(self.text)), key=Node.size, default=None)
        return largest if largest and largest.size() else None


def atomised(text: str) -> Rewriting:
    """Return a plain text with marks (`#0`) in place of numbers, series and infix expressions."""
    text = text.replace("#", " ")  # the mark of atoms is ours alone
    state = Rewriting("")
    state.text = _NUMBER.sub(lambda found: state.atom(number(Fraction(found[0]))), text[:MAX_TEXT])
    _fold_series(state)
    fold_infix(state)
    return state


def _fold_series(state: Rewriting) -> None:
    """Replace a series "#0 + #1 + ... + #2" by a mark, before its beginning is read as a sum."""
    found = _SERIES.search(state.text)
    if found is None:
        return
    first, second, last = (state.at(found[group]) for group in (1, 3, 4))
    series = op("factorial", last) if found[2] == "*" else _series_to(first, second, last)
    state.replace(*found.span(), series)


def understand(state: Rewriting) -> Node | None:
    """Return the calculation that a text asks for, or None if no part of the text is understood."""
    for _ in range(MAX_ROUNDS):
        if not _rewrite_once(state) and not _resolve_pronoun(state):
            break
        fold_infix(state)
    return state.best()


def _resolve_pronoun(state: Rewriting) -> bool:
    """Replace "the result", "that product" or "it" by the last calculation; return if it did."""
    for found in _PRONOUN.finditer(state.text):
        before, after = state.text[: found.start()], state.text[found.end() :]
        known = [m for m in re.finditer(r"#(\d+)", before) if state.at(m[1]).size()]
        if known:
            start, end = known[-1].span()
            moved = state.atom(state.at(known[-1][1]))
            state.text = f"{before[:start]}{before[end:]}{moved} {after}"
            return True
    return False


def _rewrite_once(state: Rewriting) -> bool:
    for pattern, build in RULES:
        found = pattern.search(state.text)
        node = build(*state.marks(" ".join(filter(None, found.groups())))) if found else None
        if found and node:
            state.replace(*found.span(), node)
            return True
    return False


def fold_infix(state: Rewriting) -> None:
    """Replace each complete infix expression in the text, such as `#0 + #1`, by a mark."""
    at = 0
    for _ in range(MAX_ROUNDS):
        found = _RUN.search(state.text, at)
        if found is None:
            return
        span = _longest_expression(found[0], state.atoms)
        if span is None:
            at = state.text.index("#", found.start()) + 1
            continue
        start, end, node = span
        state.replace(found.start() + start, found.start() + end, node)
        at = found.start() + start + len(f" #{len(state.atoms) - 1}")


def _longest_expression(run: str, atoms: list[Node]) -> tuple[int, int, Node] | None:
    """Return start, end and calculation of the longest infix expression in `run`, or None."""
    ends = [m.end() for m in re.finditer(r"#\d+|[)!]", run)][:40]
    starts = [m.start() for m in re.finditer(r"[(\-]|#\d+", run)][:4]
    for start, end in product(starts, reversed(ends)):
        if end > start and re.search(r"[-+*/^!()]", run[start:end]):
            with suppress(NotInfix):
                return start, end, parse(run[start:end], atoms)
    return None


Build = (
    Callable[[Node], Node | None]
    | Callable[[Node, Node], Node]
    | Callable[[Node, Node, Node], Node]
    | Callable[[Node, Node, Node, Node], Node]
)
"""A function that makes a calculation of the numbers in a phrase, taken in their written order."""

_ATOM = r"(#\d+)"
_LIST = r"(#\d+(?:\s*(?:,\s*and|,|and|&|with|or)\s*#\d+)+)"
_GAP = r"[^#.?!]{0,70}?"
_DIV = (
    r"(?:distinct |different )?(?:positive |natural )?(?:integer |integral |whole[- ]number )?"
    r"(?:divisors|factors)"
)
_NUM = r"(?:(?:the )?(?:positive )?(?:integer|number|value|quantity|result)(?: of)? )?"


def rule(pattern: str, build: Build | str) -> tuple[re.Pattern[str], Build]:
    """Return a rule: the pattern of a phrase, and the function (or operation) for its numbers."""
    written = pattern.replace("NUM", _NUM).replace("DIVISORS", _DIV)
    written = written.replace(" ?", r"\s*").replace(" ", r"\s+")
    for letter, meaning in (("A", _ATOM), ("L", _LIST), ("G", _GAP)):
        written = written.replace(letter, meaning)
    return re.compile(written), partial(op, build) if isinstance(build, str) else build


def op(operation: str, *parts: Node) -> Node:
    """Return a calculation: an operation on parts, which are calculations."""
    return Node(operation, parts)


def swapped(operation: str) -> Build:
    """Return a function for an operation whose second operand is written before the first."""
    return lambda left, right: op(operation, right, left)


def constant(operation: str, value: int) -> Build:
    """Return a function for an operation whose second operand is the constant `value`."""
    return lambda n: op(operation, n, number(value))


def _grid(wide: Node, high: Node) -> Node:
    return op("binomial", wide + high, wide)


def _series_to(first: Node, second: Node, *further: Node) -> Node:
    step = second - first
    return op("arithmetic series", first, step, (further[-1] - first) / step + 1)


def _consecutive(first: Node, last: Node) -> Node:
    return op("arithmetic series", first, number(1), last - first + 1)


_POOL = r"(?:from|out of|among|of|available|in)"
_THINGS = r"(?:people|persons|students|pupils|books|children|friends|runners|objects|letters|cars|flags|players|guests|cards|paintings|songs|items|swimmers|athletes|dogs|photos|beads|keys|marbles|vases|trophies|horses|candidates|members|digits)"
_ROLES = (
    "president", "vice", "secretary", "treasurer", "captain", "gold", "silver", "bronze", "chair",
    "deputy", "leader", "first prize", "goalkeeper",
)  # fmt: skip
_BOTH = r"(?:boys?|girls?|men|women|teachers?|students?|red|blue|green|white|black|adults?|children|novels?|[a-z]+)"

RULES: list[tuple[re.Pattern[str], Build]] = [
    # powers in words
    rule(r"A (?:is )?(?:raised )?to the (?:power|exponent)(?: of)?(?: the number)? A", "power"),
    rule(r"A (?:is )?(?:raised )?to the A(?:th|st|nd|rd)?(?: power)?\b", "power"),
    rule(r"(?:raise|raising|take|taking) (?:the number )?A to (?:the )?(?:power|exponent)?(?: of)? ?A(?:th power)?", "power"),
    rule(r"(?:the )?cube of A", constant("power", 3)),
    rule(r"A factorial|(?:the )?factorial of A", "factorial"),
    # plain arithmetic in words
    rule(r"(?:the )?product of (?:the numbers? )?L", "product"),
    rule(r"(?:multiply|multiplying) (?:the )?(?:number )?A (?:by|and|with) A", "product"),
    rule(r"(?:add|adding) A (?:and|to) A(?! divis)", "sum"),
    rule(r"(?:subtract|subtracting) A from A", swapped("difference")),
    # common divisors and multiples
    rule(r"(?:gcd|hcf|gcf) ?\(? ?(?:of )?L ?\)?", "common divisor"),
    rule(r"(?:greatest|highest|largest|biggest) common (?:positive )?(?:divisor|factor|measure)G L", "common divisor"),
    rule(r"(?:greatest|largest|biggest) (?:positive )?(?:integer|number|whole number)G (?:divides?|dividing|goes into)G L", "common divisor"),
    rule(r"(?:least|lowest|smallest) common (?:positive )?multipleG L", "common multiple"),
    # divisors
    rule(r"(?:sum|total) (?:of )?(?:all )?(?:of )?(?:the )?DIVISORS (?:of|for) NUMA", "divisor sum"),
    rule(r"sum of (?:the )?(?:distinct |different )?prime (?:divisors|factors) of NUMA", "prime factor sum"),
    rule(r"(?:how many|number of|count(?: of)?|counting|count up)(?: the| all| all the| of the)? DIVISORS(?: of| for| in| does| do| are there of| are there for| has)? NUMA(?: have| has| possess(?:es)?)?", "divisor count"),
    rule(r"how many (?:positive |natural |different |distinct )*(?:integers|whole numbers|numbers) (?:divide|go into|are (?:divisors|factors) of) NUMA(?: evenly| exactly)?", "divisor count"),
    rule(r"(?:how many|number of|count(?: of)?)(?: the| all| all the)?(?: positive)? even (?:positive )?(?:divisors|factors)G A(?: have| has)?", lambda n: op("divisor count", n / 2)),
    rule(r"(?:how many|number of|count(?: of)?)(?: the| all| all the)?(?: positive)? odd (?:positive )?(?:divisors|factors)G A(?: have| has)?", "odd divisor count"),
    rule(r"(?:how many|number of) (?:trailing |terminal |final )?(?:zeros|zeroes)G A", lambda n: op("factorial zeros", *n.parts) if n.operation == "factorial" else None),
    # digits and bases
    rule(r"A base A", "base reading"),
    rule(r"(?:the )?binary (?:number|numeral|string) A", constant("base reading", 2)),
    rule(r"A (?:in|to|into) base A[^#]{0,60} digits?", "digit sum"),
    rule(r"(?:sum of (?:all )?(?:of )?(?:the )?digits|digit sum) (?:of|in) A,? (?:when )?(?:it is )?(?:written |expressed |represented )?in base A", "digit sum"),
    rule(r"A (?:is )?(?:written|expressed|converted|represented|rewritten) (?:in|to|into|as) (?:base|radix)[- ]?A", "base conversion"),
    rule(r"(?:convert|write|express|rewrite) (?:the )?(?:decimal )?(?:number |integer )?A (?:in|to|into|as)(?: a)? (?:base|radix)[- ]?A(?! number G(?:decimal|base))", "base conversion"),
    rule(r"A (?:in|to) base[- ]A", "base conversion"),
    rule(r"(?:digit sum|sum of (?:all )?(?:of )?(?:the )?(?:its )?(?:decimal |base-#\d+ |binary )?digits)(?: of| in| when| obtained when| you get when| that appear in)?(?: the)?(?: decimal)?(?: number| integer| value| expansion of| representation of)? A", "digit sum"),
    rule(r"(?:add|adding|sum)(?: up| together)? (?:all )?(?:of )?(?:the )?(?:decimal )?digits (?:of|in) A", "digit sum"),
    # choices
    rule(r"(?:binom|c|ncr|comb) ?\( ?A ?, ?A ?\)", "binomial"),
    rule(r"\(A,A\) to \(A,A\)|\( ?A ?, ?A ?\) to(?: the point)? \( ?A ?, ?A ?\)", lambda x0, y0, x1, y1: _grid(x1 - x0, y1 - y0)),
    rule(rf"(?:committees?|teams?|groups?|subsets?|panels?|hands?|combinations?|pairs?)(?: of| with| containing)(?: size| exactly)? A {_GAP} {_POOL} {_GAP}A", swapped("binomial")),
    rule(r"A (?:people|guests|friends|persons|delegates|students|players|members|participants|colleagues|teams)[^#?]{0,160}(?:handshake|shakes? hands|shook hands|exchange|every other|each other|plays? (?:each|every))", constant("binomial", 2)),
    rule(r"diagonals[^#?]{0,40}A[- ]?(?:sided|gon|sides|vertices)", lambda n: n * (n - 3) / 2),
    # series
    rule(r"(?:the )?sum of (?:the numbers? )?L", "sum"),
    # remainders, last of all because what is divided has to be understood first
    rule(r"remainder (?:that remains |left |left over |obtained |you get |we get |remaining )?(?:when|if|of|on|upon|after) (?:dividing |you divide |we divide |NUM)?A (?:is |gets )?(?:divided |division )?by A", "remainder"),
    rule(r"remainder[^#.?]{0,50}(?:when|if) [^#.?]{0,40}A (?:is )?divided by A", "remainder"),
    rule(r"A,? ?(?:is )?(?:taken |reduced )?\(? ?(?:mod|modulo) A ?\)?", "remainder"),
    rule(r"(?:units|unit|ones|last|final)(?:'s)? digit of A", constant("remainder", 10)),
    rule(r"A (?:is )?(?:exactly )?divided by A(?!G remainder)", "quotient"),
    rule(r"A\b[^#]{0,120}remainder[^#]{0,60}(?:divided|division|dividing|modulo|mod)(?: by)? A", "remainder"),
    rule(r"A\b[^#]{0,60}\b(?:modulo|mod) A", "remainder"),
    # two pools at once
    rule(rf"A {_BOTH} (?:[a-z]+ )?(?:from|out of|among) (?:a group of |a set of )?A(?: [a-z]+)?,? and A {_BOTH} (?:[a-z]+ )?(?:from|out of|among) (?:a group of |a set of )?A", lambda k, n, j, m: op("binomial", n, k) * op("binomial", m, j)),
    # order matters
    rule(rf"A {_THINGS}? ?(?:sit|are seated|take (?:their )?(?:seats|places)|can be seated|stand|dance)?[^#?]{{0,40}}(?:round table|in a circle|circular|around a table|ring\b)", lambda n: op("factorial", n - 1)),
    rule(rf"A (?:different |distinct |distinguishable |labelled )?{_THINGS}[^#?]{{0,70}}(?:line|row|shelf|queue|order|arrang|stand|lined|sequence|finish)", "factorial"),
    # subsets and codes
    # geometry of points
    # divisors in other words
    rule(r"(?:how many|number of)(?: different| distinct| positive)* (?:integers|whole numbers|numbers|natural numbers|values) (?:[a-z]+ )?(?:are )?(?:divide|divisors of|factors of|go into|that divide|which divide|exactly divide|evenly divide|that are (?:divisors|factors) of) A", "divisor count"),
    rule(r"every (?:positive )?(?:divisor|factor|(?:whole )?(?:number|integer) that divides) (?:of )?A[^#?]{0,60}(?:sum|total|add)|(?:add|sum|total)[^#?]{0,40}every (?:positive )?(?:divisor|factor|(?:whole )?(?:number|integer) that divides) (?:of )?A", "divisor sum"),
    rule(r"(?:largest|greatest|biggest) prime (?:number )?(?:that divides|dividing|which divides|in the (?:prime )?factori[sz]ation of|factor of)G A", "largest prime factor"),
    # digits in other words
    rule(r"(?:add|sum|total)[^#.?]{0,40}(?:integers|numbers)[^#.?]{0,12}(?:from|between) A (?:to|through|up to|and) A(?! that| which| divis)", _consecutive),
    # remainders in other words
]  # fmt: skip


def roles(text: str) -> int:
    """Return how many different offices (president, treasurer ...) a text mentions."""
    return sum(role in text for role in _ROLES)
