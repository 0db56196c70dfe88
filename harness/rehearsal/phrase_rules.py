# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""The phrases about numbers that rehearsal workers understand, each a pattern and what it means.

In a pattern `A` is one atom, `L` a list of at least two and `G` a short stretch of other words.
"""

import re
from collections.abc import Callable

from harness.rehearsal.trees import Node, number

Parts = list[list[Node]]
Build = Callable[[Parts], Node | None]

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
    if isinstance(build, str):
        return re.compile(written), lambda parts: op(build, *flat(parts))
    return re.compile(written), build


def op(operation: str, *parts: Node) -> Node:
    """Return an operation on parts."""
    return Node(operation, parts)


def flat(parts: Parts) -> list[Node]:
    """Return all atoms of all groups in order."""
    return [node for group in parts for node in group]


def swapped(operation: str) -> Build:
    """Return an operation whose two operands are written in the other order."""
    return lambda parts: op(operation, *reversed(flat(parts)))


def constant(operation: str, value: int) -> Build:
    """Return an operation whose second operand is a constant."""
    return lambda parts: op(operation, *flat(parts), number(value))


def _last_digits(digits: int) -> Build:
    return lambda parts: op("remainder", parts[0][0], number(10**digits))


def _paths(parts: Parts) -> Node:
    x0, y0, x1, y1 = flat(parts)
    dx, dy = op("difference", x1, x0), op("difference", y1, y0)
    return op("binomial", op("sum", dx, dy), dx)


def _grid(parts: Parts) -> Node:
    wide, high = flat(parts)
    return op("binomial", op("sum", wide, high), wide)


def _series_to(parts: Parts) -> Node:
    first, second, last = flat(parts)
    step = op("difference", second, first)
    terms = op("sum", op("quotient", op("difference", last, first), step), number(1))
    return op("arithmetic series", first, step, terms)


def consecutive(parts: Parts) -> Node:
    """Return the sum of the whole numbers from one to another."""
    first, last = flat(parts)
    return op(
        "arithmetic series", first, number(1), op("sum", op("difference", last, first), number(1))
    )


def _term(parts: Parts) -> Node:
    first, step, nth = flat(parts)
    return op("sum", first, op("product", step, op("difference", nth, number(1))))


def _geometric_term(parts: Parts) -> Node:
    first, ratio, nth = flat(parts)
    return op("product", first, op("power", ratio, op("difference", nth, number(1))))


def _nth_first(build: Build) -> Build:
    def reordered(parts: Parts) -> Node | None:
        nth, first, step = flat(parts)
        return build([[first, step, nth]])

    return reordered


def _listed_arithmetic(parts: Parts) -> Node:
    nth, first, second = flat(parts)[:3]
    return _term([[first, op("difference", second, first), nth]])


def _listed_geometric(parts: Parts) -> Node:
    nth, first, second = flat(parts)[:3]
    return _geometric_term([[first, op("quotient", second, first), nth]])


def _first_odd(parts: Parts) -> Node:
    return op("power", parts[0][0], number(2))


def _first_even(parts: Parts) -> Node:
    return op("product", parts[0][0], op("sum", parts[0][0], number(1)))


def squares(parts: Parts) -> Node:
    """Return the sum of so many squares."""
    n = parts[0][0]
    both = op(
        "product", n, op("sum", n, number(1)), op("sum", op("product", number(2), n), number(1))
    )
    return op("quotient", both, number(6))


def _first_cubes(parts: Parts) -> Node:
    return op("power", op("binomial", op("sum", parts[0][0], number(1)), number(2)), number(2))


def _diagonals(parts: Parts) -> Node:
    n = parts[0][0]
    return op("quotient", op("product", n, op("difference", n, number(3))), number(2))


def _proper(parts: Parts) -> Node:
    return op("difference", op("divisor sum", parts[0][0]), parts[0][0])


_PICK = r"(?:choos|select|pick|form|mak|appoint|elect|draw|tak)(?:e|es|ing|en|ed)?"
_POOL = r"(?:from|out of|among|of|available|in)"
_PROGRESSION = r"(?:progression|sequence|series)"

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
    rule(r"A factorial|(?:the )?factorial of A", lambda parts: op("factorial", *flat(parts))),
    # plain arithmetic in words
    rule(r"(?:the )?product of (?:the numbers? )?L", "product"),
    rule(r"(?:multiply|multiplying) (?:the )?(?:number )?A (?:by|and|with) A", "product"),
    rule(r"(?:add|adding) A (?:and|to) A(?! divis)", "sum"),
    rule(r"(?:subtract|subtracting) A from A", swapped("difference")),
    rule(r"(?:the )?difference (?:between|of) A and A", "difference"),
    rule(r"A (?:times|multiplied by) A", "product"),
    rule(r"(?:twice|double) A", constant("product", 2)),
    rule(r"A ?(?:%|percent) of A", lambda parts: op("quotient", op("product", *flat(parts)), number(100))),
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
    rule(r"sum of (?:all )?(?:of )?(?:the )?proper (?:positive )?(?:divisors|factors) of NUMA", _proper),
    rule(r"(?:sum|total) (?:of )?(?:all )?(?:of )?(?:the )?DIVISORS (?:of|for) NUMA", "divisor sum"),
    rule(r"(?:add|adding|sum)(?: up| together)?(?:(?!prime)[^#.?!]){0,70}? DIVISORS of NUMA", "divisor sum"),
    rule(r"(?:how many|number of|count(?: of)?) (?:the )?(?:distinct |different )prime (?:divisors|factors)G A(?: have| has)?", "prime factor count"),
    rule(r"sum of (?:the )?(?:distinct |different )?prime (?:divisors|factors) of NUMA", "prime factor sum"),
    rule(r"(?:largest|greatest|biggest) prime (?:divisor|factor) of NUMA", "largest prime factor"),
    rule(r"(?:smallest|least) prime (?:divisor|factor) of NUMA", "smallest prime factor"),
    rule(r"(?:how many|number of|count(?: of)?|counting|count up)(?: the| all| all the| of the)? DIVISORS(?: of| for| in| does| do| are there of| are there for| has)? NUMA(?: have| has| possess(?:es)?)?", "divisor count"),
    rule(r"how many (?:positive |natural |different |distinct )*(?:integers|whole numbers|numbers) (?:divide|go into|are (?:divisors|factors) of) NUMA(?: evenly| exactly)?", "divisor count"),
    rule(r"how many (?:positive )?(?:integers|whole numbers|numbers) G ?(?:less than|up to|below|not exceeding)G A G(?:coprime|relatively prime) to (?:A|it)", lambda parts: op("totient", parts[0][0])),
    rule(r"(?:how many|number of|count(?: of)?)(?: the| all| all the)?(?: positive)? even (?:positive )?(?:divisors|factors)G A(?: have| has)?", lambda parts: op("divisor count", op("quotient", parts[0][0], number(2)))),
    rule(r"(?:how many|number of|count(?: of)?)(?: the| all| all the)?(?: positive)? odd (?:positive )?(?:divisors|factors)G A(?: have| has)?", "odd divisor count"),
    rule(r"(?:how many|number of) (?:trailing |terminal |final )?(?:zeros|zeroes)G A", lambda parts: op("factorial zeros", *parts[0][0].parts) if parts[0][0].operation == "factorial" else None),
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
    rule(r"\(A,A\) to \(A,A\)|\( ?A ?, ?A ?\) to(?: the point)? \( ?A ?, ?A ?\)", _paths),
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
    rule(r"diagonals[^#?]{0,40}A[- ]?(?:sided|gon|sides|vertices)", _diagonals),
    rule(r"A[- ](?:sided|gon)[^#?]{0,60}diagonals", _diagonals),
    rule(r"A(?: ?\* ?| by | x |-by-)A (?:rectangular )?(?:grid|lattice)", _grid),
    rule(r"A (?:steps? |moves? |units? |blocks? )?(?:to the )?(?:right|east) and A (?:steps? |moves? |units? |blocks? )?(?:up|north)", _grid),
    # series
    rule(r"A ?\+ ?A ?\+ ?(?:A ?\+ ?)?\.\.\. ?\+ ?A", lambda parts: _series_to([flat(parts)[:2], flat(parts)[-1:]])),
    rule(r"(?:sum|total) of (?:all )?(?:the )?(?:positive )?(?:consecutive )?(?:integers|whole numbers|numbers|natural numbers) from A (?:to|through|up to) A(?! that| which| divis)", consecutive),
    rule(r"(?:sum|total|add)G first A (?:positive )?odd", _first_odd),
    rule(r"(?:sum|total|add)G first A (?:positive )?even", _first_even),
    rule(r"(?:sum|total|add)G (?:squares of the )first A", squares),
    rule(r"(?:sum|total|add)G first A (?:positive |perfect )*squares", squares),
    rule(r"(?:sum|total|add)G (?:cubes of the )first A", _first_cubes),
    rule(r"(?:sum|total|add)G first A (?:positive |natural |whole )*(?:integers|numbers|whole)", lambda parts: consecutive([[number(1)], parts[0]])),
    rule(r"A(?:th|st|nd|rd) term[^#]{0,40}geometric[^#]{0,40}A ?, ?A ?,(?: ?A ?,)*", _listed_geometric),
    rule(r"A(?:th|st|nd|rd) term[^#]{0,60}A ?, ?A ?,(?: ?A ?,)*", _listed_arithmetic),
    rule(rf"(?:arithmetic|linear) {_PROGRESSION}G A[^#?]{{0,70}}(?:difference|step|increas|rises?|grows?|add)[^#?]{{0,40}}A[^#]{{0,90}}(?:sum|total|add)[^#]{{0,40}}A", "arithmetic series"),
    rule(rf"(?:sum|total)G A terms[^#?]{{0,70}}arithmetic {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", lambda parts: op("arithmetic series", *flat(parts)[1:], flat(parts)[0])),
    rule(rf"(?:arithmetic|linear) {_PROGRESSION}[^#?]{{0,70}}A[^#?]{{0,70}}(?:difference|step|increas|rises?|grows?)[^#?]{{0,40}}A[^#]{{0,90}}A(?:th|st|nd|rd)? ?term", _term),
    rule(rf"A(?:th|st|nd|rd) term[^#?]{{0,50}}arithmetic {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", _nth_first(_term)),
    rule(rf"geometric {_PROGRESSION}[^#?]{{0,70}}A[^#?]{{0,70}}(?:ratio|multipl|times)[^#?]{{0,40}}A[^#]{{0,90}}(?:sum|total|add)[^#]{{0,40}}A", "geometric series"),
    rule(rf"(?:sum|total)G A terms[^#?]{{0,70}}geometric {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", lambda parts: op("geometric series", *flat(parts)[1:], flat(parts)[0])),
    rule(rf"geometric {_PROGRESSION}[^#?]{{0,70}}A[^#?]{{0,70}}(?:ratio|multipl)[^#?]{{0,40}}A[^#]{{0,90}}A(?:th|st|nd|rd)? ?term", _geometric_term),
    rule(rf"A(?:th|st|nd|rd) term[^#?]{{0,50}}geometric {_PROGRESSION}[^#?]{{0,60}}A[^#?]{{0,70}}A", _nth_first(_geometric_term)),
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
    rule(r"(?:units|unit|ones|last|final)(?:'s)? digit of A", _last_digits(1)),
    rule(r"(?:last|final) A digits of A", lambda parts: op("remainder", parts[1][0], op("power", number(10), parts[0][0]))),
    rule(r"A (?:is )?(?:exactly )?divided by A(?!G remainder)", "quotient"),
    rule(r"A\b[^#]{0,120}remainder[^#]{0,60}(?:divided|division|dividing|modulo|mod)(?: by)? A", "remainder"),
    rule(r"A\b[^#]{0,60}\b(?:modulo|mod) A", "remainder"),
]  # fmt: skip
