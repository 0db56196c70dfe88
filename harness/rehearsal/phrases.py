# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Phrases that name an operation, rewritten until one calculation is left."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product

from harness.rehearsal.arithmetic import Node, NotInfix, number, parse

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
    """A text in the middle of being understood."""

    text: str
    atoms: list[Node] = field(default_factory=list[Node])

    def atom(self, node: Node) -> str:
        """Remember a part that is understood and return what stands for it in the text."""
        self.atoms.append(node)
        return f"#{len(self.atoms) - 1}"

    def at(self, mark: str) -> Node:
        """Return the part that a mark's number stands for."""
        return self.atoms[int(mark)]

    def find(self, pattern: str) -> re.Match[str] | None:
        """Return the first place in the text where a pattern is."""
        return re.search(pattern, self.text)

    def marks(self, text: str) -> list[Node]:
        """Return the parts whose marks stand in a text, in order."""
        return [self.atoms[int(mark)] for mark in re.findall(r"#(\d+)", text)]

    def replace(self, start: int, end: int, node: Node) -> None:
        """Put an atom in the place of the words it explains."""
        self.text = f"{self.text[:start]} {self.atom(node)} {self.text[end:]}"

    def best(self) -> Node | None:
        """Return the largest calculation left in the text, the last among equals."""
        largest = max(reversed(self.marks(self.text)), key=Node.size, default=None)
        return largest if largest and largest.size() else None


def atomised(text: str) -> Rewriting:
    """Return a plain text (see `plain_words`) with numbers, letters and infix runs as atoms."""
    text = text.replace("#", " ")  # the mark of atoms is ours alone
    state = Rewriting("")
    state.text = _NUMBER.sub(lambda found: state.atom(number(Fraction(found[0]))), text[:MAX_TEXT])
    _fold_series(state)
    fold_infix(state)
    return state


def _fold_series(state: Rewriting) -> None:
    """Replace "#0 + #1 + ... + #2" before the infix parser takes its beginning for the whole."""
    found = _SERIES.search(state.text)
    if found is None:
        return
    first, second, last = (state.at(found[group]) for group in (1, 3, 4))
    series = op("factorial", last) if found[2] == "*" else _series_to(first, second, last)
    state.replace(*found.span(), series)


def understand(state: Rewriting) -> Node | None:
    """Return the calculation that a question asks for, None when no part of it is understood."""
    for _ in range(MAX_ROUNDS):
        if not _rewrite_once(state) and not _resolve_pronoun(state):
            break
        fold_infix(state)
    return state.best()


def _resolve_pronoun(state: Rewriting) -> bool:
    """Put the last calculation in the place of "the result", "that product", "it"."""
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
    """Replace every complete infix expression in the text by an atom."""
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
    """Return the longest part of a run that is an operation, from its left end if possible."""
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
"""Takes the numbers of a phrase in the order in which they are written."""

_ATOM = r"(#\d+)"
_LIST = r"(#\d+(?:\s*(?:,\s*and|,|and|&|with|or)\s*#\d+)+)"
_GAP = r"[^#.?!]{0,70}?"
_DIV = (
    r"(?:distinct |different )?(?:positive |natural )?(?:integer |integral |whole[- ]number )?"
    r"(?:divisors|factors)"
)
_NUM = r"(?:(?:the )?(?:positive )?(?:integer|number|value|quantity|result)(?: of)? )?"


def rule(pattern: str, build: Build | str) -> tuple[re.Pattern[str], Build]:
    """Return a rule; a plain operation name takes its parts in the order they are written."""
    written = pattern.replace("NUM", _NUM).replace("DIVISORS", _DIV)
    written = written.replace(" ?", r"\s*").replace(" ", r"\s+")
    for letter, meaning in (("A", _ATOM), ("L", _LIST), ("G", _GAP)):
        written = written.replace(letter, meaning)
    return re.compile(written), partial(op, build) if isinstance(build, str) else build


def op(operation: str, *parts: Node) -> Node:
    """Return an operation on parts."""
    return Node(operation, parts)


def swapped(operation: str) -> Build:
    """Return an operation whose two operands are written in the other order."""
    return lambda left, right: op(operation, right, left)


def constant(operation: str, value: int) -> Build:
    """Return an operation whose second operand is a constant."""
    return lambda n: op(operation, n, number(value))


def _grid(wide: Node, high: Node) -> Node:
    return op("binomial", wide + high, wide)


def _series_to(first: Node, second: Node, *further: Node) -> Node:
    step = second - first
    return op("arithmetic series", first, step, (further[-1] - first) / step + 1)


def _consecutive(first: Node, last: Node) -> Node:
    return op("arithmetic series", first, number(1), last - first + 1)


def _listed_arithmetic(nth: Node, first: Node, second: Node, *_: Node) -> Node:
    return first + (second - first) * (nth - 1)


def _listed_geometric(nth: Node, first: Node, second: Node, *_: Node) -> Node:
    return first * (second / first) ** (nth - 1)


def _totient(n: Node, *_: Node) -> Node:
    return op("totient", n)


def _squares(n: Node) -> Node:
    return op("product", n, n + 1, number(2) * n + 1) / 6


def _shared(things: Node, takers: Node) -> Node:
    """Identical things among k takers, none too few."""
    return op("binomial", things + (takers - 1), takers - 1)


def _halved(n: Node) -> Node:
    """Rectangles or factor pairs: every second divisor, rounded up."""
    return op("floor quotient", op("divisor count", n) + 1, number(2))


def _common_count(*parts: Node) -> Node:
    return op("divisor count", op("common divisor", *parts))


_PICK = r"(?:choos|select|pick|form|mak|appoint|elect|draw|tak)(?:e|es|ing|en|ed)?"
_POOL = r"(?:from|out of|among|of|available|in)"
_PROGRESSION = r"(?:progression|sequence|series)"
_THINGS = r"(?:people|persons|students|pupils|books|children|friends|runners|objects|letters|cars|flags|players|guests|cards|paintings|songs|items|swimmers|athletes|dogs|photos|beads|keys|marbles|vases|trophies|horses|candidates|members|digits)"
_PICKED = r"(?:choos|select|pick|form|mak|appoint|elect|draw|tak|assembl|put together|compos)(?:e|es|ing|en|ed|n)?"
_ROLES = (
    "president", "vice", "secretary", "treasurer", "captain", "gold", "silver", "bronze", "chair",
    "deputy", "leader", "first prize", "goalkeeper",
)  # fmt: skip
_BOTH = r"(?:boys?|girls?|men|women|teachers?|students?|red|blue|green|white|black|adults?|children|novels?|[a-z]+)"

RULES: list[tuple[re.Pattern[str], Build]] = [
    # powers in words
    rule(r"A (?:is )?squared", constant("power", 2)),
    rule(r"A (?:is )?cubed", constant("power", 3)),
    rule(r"A (?:is )?(?:raised )?to the (?:power|exponent)(?: of)?(?: the number)? A", "power"),
    rule(r"A (?:is )?(?:raised )?to the A(?:th|st|nd|rd)?(?: power)?\b", "power"),
    rule(r"A raised to A", "power"),
    rule(r"(?:raise|raising|take|taking) (?:the number )?A to (?:the )?(?:power|exponent)?(?: of)? ?A(?:th power)?", "power"),
    rule(r"A(?:th|st|nd|rd) power of A", swapped("power")),
    rule(r"(?:the )?square of A", constant("power", 2)),
    rule(r"(?:the )?cube of A", constant("power", 3)),
    rule(r"A factorial|(?:the )?factorial of A", "factorial"),
    # plain arithmetic in words
    rule(r"(?:the )?product of (?:the numbers? )?L", "product"),
    rule(r"(?:multiply|multiplying) (?:the )?(?:number )?A (?:by|and|with) A", "product"),
    rule(r"(?:add|adding) A (?:and|to) A(?! divis)", "sum"),
    rule(r"(?:subtract|subtracting) A from A", swapped("difference")),
    rule(r"(?:the )?difference (?:between|of) A and A", "difference"),
    rule(r"A (?:times|multiplied by) A", "product"),
    rule(r"(?:twice|double) A", constant("product", 2)),
    rule(r"A ?(?:%|percent) of A", lambda share, n: share * n / 100),
    rule(r"A plus A", "sum"),
    rule(r"A minus A", "difference"),
    # common divisors and multiples
    rule(r"(?:gcd|hcf|gcf) ?\(? ?(?:of )?L ?\)?", "common divisor"),
    rule(r"(?:greatest|highest|largest|biggest) common (?:positive )?(?:divisor|factor|measure)G L", "common divisor"),
    rule(r"(?:greatest|largest|biggest) (?:positive )?(?:integer|number|whole number)G (?:divides?|dividing|goes into)G L", "common divisor"),
    rule(r"lcm ?\(? ?(?:of )?L ?\)?", "common multiple"),
    rule(r"(?:least|lowest|smallest) common (?:positive )?multipleG L", "common multiple"),
    rule(r"(?:smallest|least) (?:positive )?(?:integer|number|whole number)G (?:divisible by|multiple of)(?: both| all| each)?(?: of)?(?: the numbers)? L(?! (?:leav|with|greater))", "common multiple"),
    # divisors
    rule(r"sum of (?:all )?(?:of )?(?:the )?proper (?:positive )?(?:divisors|factors) of NUMA", lambda n: op("divisor sum", n) - n),
    rule(r"(?:sum|total) (?:of )?(?:all )?(?:of )?(?:the )?DIVISORS (?:of|for) NUMA", "divisor sum"),
    rule(r"(?:add|adding|sum)(?: up| together)?(?:(?!prime)[^#.?!]){0,70}? DIVISORS of NUMA", "divisor sum"),
    rule(r"(?:how many|number of|count(?: of)?) (?:the )?(?:distinct |different )prime (?:divisors|factors)G A(?: have| has)?", "prime factor count"),
    rule(r"sum of (?:the )?(?:distinct |different )?prime (?:divisors|factors) of NUMA", "prime factor sum"),
    rule(r"(?:largest|greatest|biggest) prime (?:divisor|factor) of NUMA", "largest prime factor"),
    rule(r"(?:smallest|least) prime (?:divisor|factor) of NUMA", "smallest prime factor"),
    rule(r"(?:how many|number of|count(?: of)?|counting|count up)(?: the| all| all the| of the)? DIVISORS(?: of| for| in| does| do| are there of| are there for| has)? NUMA(?: have| has| possess(?:es)?)?", "divisor count"),
    rule(r"how many (?:positive |natural |different |distinct )*(?:integers|whole numbers|numbers) (?:divide|go into|are (?:divisors|factors) of) NUMA(?: evenly| exactly)?", "divisor count"),
    rule(r"how many (?:positive )?(?:integers|whole numbers|numbers) G ?(?:less than|up to|below|not exceeding)G A G(?:coprime|relatively prime) to (?:A|it)", _totient),
    rule(r"(?:how many|number of|count(?: of)?)(?: the| all| all the)?(?: positive)? even (?:positive )?(?:divisors|factors)G A(?: have| has)?", lambda n: op("divisor count", n / 2)),
    rule(r"(?:how many|number of|count(?: of)?)(?: the| all| all the)?(?: positive)? odd (?:positive )?(?:divisors|factors)G A(?: have| has)?", "odd divisor count"),
    rule(r"(?:how many|number of) (?:trailing |terminal |final )?(?:zeros|zeroes)G A", lambda n: op("factorial zeros", *n.parts) if n.operation == "factorial" else None),
    rule(r"(?:sum|total|add|adding)G first A prime(?: numbers?|s)?", "prime series"),
    rule(r"A(?:th|st|nd|rd) (?:smallest )?prime(?: number)?", "nth prime"),
    # digits and bases
    rule(r"(?:decimal|base #\d+) (?:value|form|equivalent)[^#]{0,30} A (?:in |written in |, |given in )?base A", "base reading"),
    rule(r"A base A", "base reading"),
    rule(r"(?:the )?binary (?:number|numeral|string) A", constant("base reading", 2)),
    rule(r"product of (?:all )?(?:of )?(?:the )?(?:decimal )?digits (?:of|in) A", "digit product"),
    rule(r"A (?:is )?(?:written|expressed|converted|represented|rewritten) (?:in|to|into) base A[^#]{0,60}(?:sum of (?:its|the|all|those)[^#]{0,12} digits|digit sum|digits (?:add|sum))", "digit sum"),
    rule(r"A (?:in|to|into) base A[^#]{0,60} digits?", "digit sum"),
    rule(r"(?:sum of (?:all )?(?:of )?(?:the )?digits|digit sum) (?:of|in) A,? (?:when )?(?:it is )?(?:written |expressed |represented )?in base A", "digit sum"),
    rule(r"(?:sum of (?:all )?(?:of )?(?:the )?digits|digit sum) (?:of|in) the base A (?:representation|expansion|form) of A", swapped("digit sum")),
    rule(r"(?:how many|number of) (?:ones|1s|1's|#\d+s|#\d+'s) G binary G A", constant("digit sum", 2)),
    rule(r"(?:base[- ]A|A[- ]base) (?:representation|expansion|form|notation) of A", swapped("base conversion")),
    rule(r"binary (?:representation|expansion|form|notation) of A", constant("base conversion", 2)),
    rule(r"A (?:is )?(?:written|expressed|converted|represented|rewritten) (?:in|to|into|as) (?:base|radix)[- ]?A", "base conversion"),
    rule(r"A (?:is )?(?:written|expressed|converted|represented|rewritten) (?:in|to|into|as)(?: a)? binary", constant("base conversion", 2)),
    rule(r"(?:convert|write|express|rewrite) (?:the )?(?:decimal )?(?:number |integer )?A (?:in|to|into|as)(?: a)? (?:base|radix)[- ]?A(?! number G(?:decimal|base))", "base conversion"),
    rule(r"A_\(?A\)?", "base reading"),
    rule(r"base[- ]A (?:number|numeral|integer) A", swapped("base reading")),
    rule(r"A (?:in|is in|written in|read in|interpreted in|as a)? ?base[- ]?A(?: number| numeral)?G (?:decimal|base #?\d*(?:10|ten))", "base reading"),
    rule(r"A (?:in|to) base[- ]A", "base conversion"),
    rule(r"(?:digit sum|sum of (?:all )?(?:of )?(?:the )?(?:its )?(?:decimal |base-#\d+ |binary )?digits)(?: of| in| when| obtained when| you get when| that appear in)?(?: the)?(?: decimal)?(?: number| integer| value| expansion of| representation of)? A", "digit sum"),
    rule(r"(?:add|adding|sum)(?: up| together)? (?:all )?(?:of )?(?:the )?(?:decimal )?digits (?:of|in) A", "digit sum"),
    rule(r"(?:how many|number of) (?:decimal )?digits (?:does|are in|are there in|in|of|has)(?: the number| the decimal expansion of)? A", "digit count"),
    # choices
    rule(r"A choose A", "binomial"),
    rule(r"(?:binom|c|ncr|comb) ?\( ?A ?, ?A ?\)", "binomial"),
    rule(r"\(A,A\) to \(A,A\)|\( ?A ?, ?A ?\) to(?: the point)? \( ?A ?, ?A ?\)", lambda x0, y0, x1, y1: _grid(x1 - x0, y1 - y0)),
    rule(rf"{_PICK}(?: a| an)?(?: committee| team| group| set| subset| panel| hand)?(?: of)?(?: exactly)? A {_GAP} {_POOL} {_GAP} A", swapped("binomial")),
    rule(rf"(?:committees?|teams?|groups?|subsets?|panels?|hands?|combinations?|pairs?)(?: of| with| containing)(?: size| exactly)? A {_GAP} {_POOL} {_GAP}A", swapped("binomial")),
    rule(rf"from (?:a |an )?{_GAP}A {_GAP} {_PICK} {_GAP}A", "binomial"),
    rule(rf"from (?:a |an )?{_GAP}A {_GAP}(?:committee|team|group|subset|panel|jury|hand|selection|pair)s? of (?:exactly )?A", "binomial"),
    rule(rf"A {_GAP}(?:chosen|selected|picked|drawn|taken|elected) (?:from|out of|among) {_GAP}A", swapped("binomial")),
    rule(rf"subsets? (?:of|with|containing) (?:size |exactly )?A {_GAP}(?:set|collection|group) (?:with|of|containing|that has) {_GAP}A", swapped("binomial")),
    rule(r"A (?:people|students|children|players|friends|elements|items|objects)[^#]{0,80} pairs", constant("binomial", 2)),
    rule(r"(?:orders|ways|arrangements)[^#]{0,60}A (?:different |distinct )?(?:people|students|books|children|friends|runners|objects|letters|persons)[^#]{0,40}(?:line|row|shelf|queue|order|arranged|stand)", "factorial"),
    rule(r"A (?:people|guests|friends|persons|delegates|students|players|members|participants|colleagues|teams)[^#?]{0,160}(?:handshake|shakes? hands|shook hands|exchange|every other|each other|plays? (?:each|every))", constant("binomial", 2)),
    rule(r"(?:handshakes|games|matches|line segments|chords|lines)[^#?]{0,120}A (?:people|guests|friends|persons|delegates|students|players|teams|points|members)", constant("binomial", 2)),
    rule(r"diagonals[^#?]{0,40}A[- ]?(?:sided|gon|sides|vertices)", lambda n: n * (n - 3) / 2),
    rule(r"A[- ](?:sided|gon)[^#?]{0,60}diagonals", lambda n: n * (n - 3) / 2),
    rule(r"A(?: ?\* ?| by | x |-by-)A (?:rectangular )?(?:grid|lattice)", _grid),
    rule(r"A (?:steps? |moves? |units? |blocks? )?(?:to the )?(?:right|east) and A (?:steps? |moves? |units? |blocks? )?(?:up|north)", _grid),
    # series
    rule(r"A ?\+ ?A ?\+ ?(?:A ?\+ ?)?\.\.\. ?\+ ?A", _series_to),
    rule(r"(?:sum|total) of (?:all )?(?:the )?(?:positive )?(?:consecutive )?(?:integers|whole numbers|numbers|natural numbers) from A (?:to|through|up to) A(?! that| which| divis)", _consecutive),
    rule(r"(?:sum|total|add)G first A (?:positive )?odd", lambda n: n**2),
    rule(r"(?:sum|total|add)G first A (?:positive )?even", lambda n: n * (n + 1)),
    rule(r"(?:sum|total|add)G (?:squares of the )first A", _squares),
    rule(r"(?:sum|total|add)G first A (?:positive |perfect )*squares", _squares),
    rule(r"(?:sum|total|add)G (?:cubes of the )first A", lambda n: op("binomial", n + 1, number(2)) ** 2),
    rule(r"(?:sum|total|add)G first A (?:positive |natural |whole )*(?:integers|numbers|whole)", lambda n: _consecutive(number(1), n)),
    rule(r"A(?:th|st|nd|rd) term[^#]{0,40}geometric[^#]{0,40}A ?, ?A ?,(?: ?A ?,)*", _listed_geometric),
    rule(r"A(?:th|st|nd|rd) term[^#]{0,60}A ?, ?A ?,(?: ?A ?,)*", _listed_arithmetic),
    rule(rf"(?:arithmetic|linear) {_PROGRESSION}G A[^#?]{{0,70}}(?:difference|step|increas|rises?|grows?|add)[^#?]{{0,40}}A[^#]{{0,90}}(?:sum|total|add)[^#]{{0,40}}A", "arithmetic series"),
    rule(rf"(?:sum|total)G A terms[^#?]{{0,70}}arithmetic {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", lambda terms, first, step: op("arithmetic series", first, step, terms)),
    rule(rf"(?:arithmetic|linear) {_PROGRESSION}[^#?]{{0,70}}A[^#?]{{0,70}}(?:difference|step|increas|rises?|grows?)[^#?]{{0,40}}A[^#]{{0,90}}A(?:th|st|nd|rd)? ?term", lambda first, step, nth: first + step * (nth - 1)),
    rule(rf"A(?:th|st|nd|rd) term[^#?]{{0,50}}arithmetic {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", lambda nth, first, step: first + step * (nth - 1)),
    rule(rf"geometric {_PROGRESSION}[^#?]{{0,70}}A[^#?]{{0,70}}(?:ratio|multipl|times)[^#?]{{0,40}}A[^#]{{0,90}}(?:sum|total|add)[^#]{{0,40}}A", "geometric series"),
    rule(rf"(?:sum|total)G A terms[^#?]{{0,70}}geometric {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", lambda terms, first, ratio: op("geometric series", first, ratio, terms)),
    rule(rf"geometric {_PROGRESSION}[^#?]{{0,70}}A[^#?]{{0,70}}(?:ratio|multipl)[^#?]{{0,40}}A[^#]{{0,90}}A(?:th|st|nd|rd)? ?term", lambda first, ratio, nth: first * ratio ** (nth - 1)),
    rule(rf"A(?:th|st|nd|rd) term[^#?]{{0,50}}geometric {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", lambda nth, first, ratio: first * ratio ** (nth - 1)),
    rule(r"(?:the )?sum of (?:the numbers? )?L", "sum"),
    rule(r"A\b[^#]{0,60}(?:sum of (?:all )?(?:of )?its (?:decimal )?digits|its digit sum|its digits (?:add|sum))", "digit sum"),
    rule(r"A\b[^#]{0,60}(?:number of|how many) (?:positive )?(?:divisors|factors) (?:of it|does it have|it has|does this number have)", "divisor count"),
    # remainders, last of all because what is divided has to be understood first
    rule(r"remainder (?:that remains |left |left over |obtained |you get |we get |remaining )?(?:when|if|of|on|upon|after) (?:dividing |you divide |we divide |NUM)?A (?:is |gets )?(?:divided |division )?by A", "remainder"),
    rule(r"remainder of NUMA (?:on|upon|after|when|under|if) (?:division|divided|dividing)(?: it)? by A", "remainder"),
    rule(r"(?:divide|dividing) NUMA by A[^#]{0,60}(?:remainder|left over|remains|what is left)", "remainder"),
    rule(r"A (?:is )?(?:divided by|by) A[^#.]{0,50}(?:remainder|left over)", "remainder"),
    rule(r"remainder[^#.?]{0,50}(?:when|if) [^#.?]{0,40}A (?:is )?divided by A", "remainder"),
    rule(r"A,? ?(?:is )?(?:taken |reduced )?\(? ?(?:mod|modulo) A ?\)?", "remainder"),
    rule(r"(?:units|unit|ones|last|final)(?:'s)? digit of A", constant("remainder", 10)),
    rule(r"(?:last|final) A digits of A", lambda many, n: op("remainder", n, number(10) ** many)),
    rule(r"A (?:is )?(?:exactly )?divided by A(?!G remainder)", "quotient"),
    rule(r"A\b[^#]{0,120}remainder[^#]{0,60}(?:divided|division|dividing|modulo|mod)(?: by)? A", "remainder"),
    rule(r"A\b[^#]{0,60}\b(?:modulo|mod) A", "remainder"),
    # two pools at once
    rule(rf"A {_BOTH} (?:[a-z]+ )?(?:from|out of|among) (?:a group of |a set of )?A(?: [a-z]+)?,? and A {_BOTH} (?:[a-z]+ )?(?:from|out of|among) (?:a group of |a set of )?A", lambda k, n, j, m: op("binomial", n, k) * op("binomial", m, j)),
    rule(rf"A {_BOTH} and A {_BOTH}[^#]{{0,110}}(?:{_PICKED}|team|committee|group|with|of|consist)[^#]{{0,60}}A {_BOTH}(?: [a-z]+)? and A {_BOTH}", lambda n, m, k, j: op("binomial", n, k) * op("binomial", m, j)),
    # order matters
    rule(r"(?:different |distinct )?(?:ordered |ordered )?(?:permutations|arrangements|orderings) of A (?:[a-z]+ )?(?:objects |things |people )?(?:taken|chosen|selected) (?:from|out of|among) A", lambda k, n: op("binomial", n, k) * op("factorial", k)),
    rule(rf"A {_THINGS}? ?(?:sit|are seated|take (?:their )?(?:seats|places)|can be seated|stand|dance)?[^#?]{{0,40}}(?:round table|in a circle|circular|around a table|ring\b)", lambda n: op("factorial", n - 1)),
    rule(rf"(?:ways|orders?|arrangements|orderings|many)[^#?]{{0,60}}A (?:different |distinct |distinguishable )?{_THINGS}[^#?]{{0,60}}(?:round table|in a circle|circular|around a table|ring\b)", lambda n: op("factorial", n - 1)),
    rule(rf"A (?:different |distinct |distinguishable |labelled )?{_THINGS}[^#?]{{0,70}}(?:line|row|shelf|queue|order|arrang|stand|lined|sequence|finish)", "factorial"),
    rule(r"(?:arrange|line up|order|permute|queue|rank|seat) (?:the |all )?A (?:different |distinct |labelled )?[a-z]+", "factorial"),
    rule(r"permutations (?:are there )?(?:of|on) (?:a set (?:of|with) )?A", "factorial"),
    # subsets and codes
    rule(r"(?:how many|number of)(?: distinct| different)? subsets (?:does |do |has |of |can be formed from |are there of )?(?:a |the )?G(?:set|collection)[^#]{0,30} A(?! elements? (?:of|from))", lambda n: number(2) ** n),
    rule(r"set (?:with|of|has|containing|that has) (?:exactly )?A (?:distinct |different )?(?:elements|members|objects|items)[^#?]{0,50}(?:how many )?subsets(?! (?:of|with|that|contain|has|have))", lambda n: number(2) ** n),
    rule(r"coin (?:is )?(?:tossed|flipped|thrown) A times[^#]{0,100}(?:exactly|show|precisely|give|have|with|contain)[^#]{0,20} A (?:heads|tails|times)", "binomial"),
    rule(r"coin (?:is )?(?:tossed|flipped|thrown) A times[^#]{0,60}(?:sequences|outcomes|results)", lambda n: number(2) ** n),
    rule(r"(?:strings|sequences|words|codes|numbers|passwords) of length A[^#]{0,60}(?:from|using|over|with|out of|alphabet)[^#]{0,40} A", lambda length, symbols: symbols**length),
    rule(r"A[- ](?:letter|digit|character|symbol|place) (?:strings|codes|words|passwords|sequences|combinations)[^#]{0,80}(?:from|using|over|with|out of|alphabet)[^#]{0,40} A", lambda length, symbols: symbols**length),
    rule(r"binary (?:strings|sequences|words|numbers)[^#]{0,20} (?:of )?length A[^#]{0,60}(?:exactly|contain|have|with) (?:exactly )?A (?:ones|1s|zeros|zeroes|#\d+s)", "binomial"),
    rule(r"(?:distribute|share|divide|give|hand out|split|place|put)[^#]{0,30} A (?:identical|indistinguishable|equal)[^#]{0,40}(?:among|between|to|into|in) (?:[a-z]+ )?A", _shared),
    rule(r"A (?:identical|indistinguishable|equal)[^#]{0,60}(?:among|between|to|into|in) (?:[a-z]+ )?A", _shared),
    # geometry of points
    rule(r"triangles[^#?]{0,100}A (?:points|vertices|dots)|A (?:points|vertices|dots)[^#?]{0,130}(?:triangles|three of them)", constant("binomial", 3)),
    rule(r"A (?:points|towns|cities|villages|stations|computers|houses|islands|dots|vertices)[^#?]{0,130}(?:segments|lines|chords|roads|cables|connect|bridges|direct|tickets?|straight)", constant("binomial", 2)),
    rule(r"(?:everyone|everybody|each|every)[^#?]{0,40}A (?:people|guests|friends|delegates|players|members|teams|students)[^#?]{0,120}(?:hand|each other|every other|once)", constant("binomial", 2)),
    rule(r"(?:round[- ]robin|league|tournament)[^#?]{0,60}A (?:teams|players|clubs|people|members)", constant("binomial", 2)),
    # divisors in other words
    rule(r"(?:common (?:positive )?(?:divisors|factors) (?:of|do|have|does|that)|(?:divide|divides|divisors of|factors of) (?:both|each of)(?: the numbers)?)(?: do| the numbers)? L", _common_count),
    rule(r"(?:how many|number of) (?:positive )?(?:divisors|factors)(?: do| are shared by| that) L (?:have in common|share)", _common_count),
    rule(r"L (?:have|share)[^#]{0,20}how many common", _common_count),
    rule(r"(?:largest|greatest|biggest) (?:positive )?(?:integer|number|whole number|value|divisor|factor)(?: that| which)?(?: is)?(?: a)? (?:divides?|common to|shared by|goes into|factor of|divisor of)(?: evenly into)?(?: both| each of)?(?: of)?(?: the numbers)? L", "common divisor"),
    rule(r"(?:least common multiple|lcm|smallest (?:positive )?(?:integer|number)[^#]{0,40}divisible by) (?:of )?(?:all (?:of )?)?(?:the )?(?:first A (?:positive )?(?:integers|numbers|whole numbers)|(?:every |each |the |positive )*(?:integers?|numbers?|whole numbers?) (?:from )?#\d+ (?:to|through|up to) A)", lambda n: op("common multiple", *map(number, range(1, min(60, int(n.value)) + 1)))),
    rule(r"(?:ways|many)[^#?]{0,70}A (?:be |can be |as )?(?:written|expressed|factored|represented|split|arise)?[^#?]{0,40}product of (?:two|#\d+) (?:positive )?(?:integers|whole numbers|factors|numbers)", _halved),
    rule(r"rectangles[^#?]{0,80}area[^#?]{0,20}A", _halved),
    rule(r"(?:how many|number of|count of)(?: of)?(?: the)? proper (?:positive )?(?:divisors|factors)G A(?: have| has)?", lambda n: op("divisor count", n) - 1),
    rule(r"(?:how many|number of)(?: different| distinct| positive)* (?:integers|whole numbers|numbers|natural numbers|values) (?:[a-z]+ )?(?:are )?(?:divide|divisors of|factors of|go into|that divide|which divide|exactly divide|evenly divide|that are (?:divisors|factors) of) A", "divisor count"),
    rule(r"(?:divisors|factors) (?:does|do|has|are there of|will|can)[^#?]{0,40} A", "divisor count"),
    rule(r"A (?:has|have|possesses) how many(?: different| distinct| positive| integer| whole number)* (?:divisors|factors)", "divisor count"),
    rule(r"(?:list|write down|consider|take)[^#?]{0,30}(?:divisors|factors) of A[^#?]{0,80}(?:how many|number of|count)", "divisor count"),
    rule(r"(?:list|write down|consider|take)[^#?]{0,30}(?:divisors|factors) of A[^#?]{0,80}(?:sum|total|add)", "divisor sum"),
    rule(r"(?:all |every |the )(?:positive )?(?:whole[- ]number |integer )?(?:divisors|factors) of A[^#?]{0,50}(?:add(?:ed)?|sum|total)", "divisor sum"),
    rule(r"every (?:positive )?(?:divisor|factor|(?:whole )?(?:number|integer) that divides) (?:of )?A[^#?]{0,60}(?:sum|total|add)|(?:add|sum|total)[^#?]{0,40}every (?:positive )?(?:divisor|factor|(?:whole )?(?:number|integer) that divides) (?:of )?A", "divisor sum"),
    rule(r"(?:how many|number of)(?: different| distinct)+ primes (?:divide|are (?:factors|divisors) of|appear in[^#]{0,40}|occur in[^#]{0,40}) A", "prime factor count"),
    rule(r"(?:how many|number of) primes (?:divide|that divide) A", "prime factor count"),
    rule(r"(?:largest|greatest|biggest) prime (?:number )?(?:that divides|dividing|which divides|in the (?:prime )?factori[sz]ation of|factor of)G A", "largest prime factor"),
    # digits in other words
    rule(r"(?:digits of|digits in) A[^#?.]{0,40}(?:add(?:ed)?|sum|total)", "digit sum"),
    rule(r"(?:sum|total|add)[^#?.]{0,40}digits[^#?.]{0,60}? A(?! base)", "digit sum"),
    rule(r"how many (?:decimal )?digits[^#?]{0,60}A", "digit count"),
    rule(r"A (?:has|have|is written with) how many (?:decimal )?digits", "digit count"),
    rule(r"(?:digits of A (?:are )?(?:written )?(?:in )?revers(?:ed|e order)|revers(?:al|ing) (?:of )?(?:the )?(?:digits of |order of the digits of )?A|A (?:written |read )?(?:backwards?|in reverse))", "reversal"),
    rule(r"(?:add|sum|total)[^#.?]{0,40}(?:integers|numbers)[^#.?]{0,12}(?:from|between) A (?:to|through|up to|and) A(?! that| which| divis)", _consecutive),
    rule(r"sum of (?:the )?squares of (?:all |the )*(?:positive )?(?:integers|numbers|whole numbers) from #\d+ (?:to|through|up to) A", _squares),
    rule(r"sum of (?:all )?(?:the )?(?:positive )?(?:integers|whole numbers|numbers|natural numbers) (?:up to|not exceeding|no larger than|less than or equal to)(?: and including)? A(?! that| which| divis)", lambda n: _consecutive(number(1), n)),
    rule(r"A as (?:the )?base and A as (?:the )?exponent", "power"),
    # remainders in other words
    rule(r"(?:what|how (?:many|much)) (?:is|are|remains|will be)? ?(?:left|remains?|left over|remaining|over) (?:over )?(?:when|if|after|on)(?: you divide| we divide| dividing)? A (?:is divided |divided )?by A", "remainder"),
    rule(r"(?:last|final|rightmost) (?:two|#2) digits of A", constant("remainder", 100)),
    rule(r"A (?:upon|on|after|under) (?:division|dividing) by A", "remainder"),
    rule(r"reduce A (?:modulo|mod|by) A", "remainder"),
    rule(r"A is congruent[^#]{0,60} (?:modulo|mod) A", "remainder"),
    rule(r"(?:combinations?|selections?) of A (?:[a-z]+ )?(?:from|out of|among|of) A", swapped("binomial")),
]  # fmt: skip


def roles(text: str) -> int:
    """Return how many different offices a text wants filled from one pool."""
    return sum(role in text for role in _ROLES)
