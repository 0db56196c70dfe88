# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""More phrases of counting, divisors and primes, asked about in other words than `phrase_rules`.

Data in the same notation: `A` is one atom, `L` a list and `G` a short stretch of other words.
"""

import re

from harness.rehearsal.phrase_rules import (
    Build,
    Parts,
    consecutive,
    constant,
    flat,
    op,
    rule,
    squares,
    swapped,
)
from harness.rehearsal.trees import Node, number

_THINGS = r"(?:people|persons|students|pupils|books|children|friends|runners|objects|letters|cars|flags|players|guests|cards|paintings|songs|items|swimmers|athletes|dogs|photos|beads|keys|marbles|vases|trophies|horses|candidates|members|digits)"
_PICK = r"(?:choos|select|pick|form|mak|appoint|elect|draw|tak|assembl|put together|compos)(?:e|es|ing|en|ed|n)?"
_ROLES = (
    "president",
    "vice",
    "secretary",
    "treasurer",
    "captain",
    "gold",
    "silver",
    "bronze",
    "chair",
    "deputy",
    "leader",
    "first prize",
    "goalkeeper",
)


def _falling(parts: Parts) -> Node:
    """N objects in k ordered places."""
    n, k = flat(parts)[:2]
    return op("product", op("binomial", n, k), op("factorial", k))


def _shared(parts: Parts) -> Node:
    """Identical things among k takers, none too few."""
    things, takers = flat(parts)[:2]
    fewer = op("difference", takers, number(1))
    return op("binomial", op("sum", things, fewer), fewer)


def _both_chosen(parts: Parts) -> Node:
    k, n, j, m = flat(parts)
    return op("product", op("binomial", n, k), op("binomial", m, j))


def _pools_first(parts: Parts) -> Node:
    n, m, k, j = flat(parts)
    return op("product", op("binomial", n, k), op("binomial", m, j))


def _round(parts: Parts) -> Node:
    return op("factorial", op("difference", flat(parts)[0], number(1)))


def _codes(parts: Parts) -> Node:
    length, symbols = flat(parts)[:2]
    return op("power", symbols, length)


def _common_count(parts: Parts) -> Node:
    return op("divisor count", op("common divisor", *flat(parts)))


def _up_to(parts: Parts) -> Node:
    return op(
        "common multiple", *[number(n) for n in range(1, min(60, int(flat(parts)[-1].value)) + 1)]
    )


def _halved(parts: Parts) -> Node:
    """Rectangles or factor pairs: every second divisor, rounded up."""
    count = op("divisor count", flat(parts)[0])
    return op("floor quotient", op("sum", count, number(1)), number(2))


_BOTH = r"(?:boys?|girls?|men|women|teachers?|students?|red|blue|green|white|black|adults?|children|novels?|[a-z]+)"

COUNTING: list[tuple[re.Pattern[str], Build]] = [
    # two pools at once
    rule(rf"A {_BOTH} (?:[a-z]+ )?(?:from|out of|among) (?:a group of |a set of )?A(?: [a-z]+)?,? and A {_BOTH} (?:[a-z]+ )?(?:from|out of|among) (?:a group of |a set of )?A", _both_chosen),
    rule(rf"A {_BOTH} and A {_BOTH}[^#]{{0,110}}(?:{_PICK}|team|committee|group|with|of|consist)[^#]{{0,60}}A {_BOTH}(?: [a-z]+)? and A {_BOTH}", _pools_first),
    # order matters
    rule(r"(?:different |distinct )?(?:ordered |ordered )?(?:permutations|arrangements|orderings) of A (?:[a-z]+ )?(?:objects |things |people )?(?:taken|chosen|selected) (?:from|out of|among) A", lambda parts: _falling([flat(parts)[::-1]])),
    rule(rf"A {_THINGS}? ?(?:sit|are seated|take (?:their )?(?:seats|places)|can be seated|stand|dance)?[^#?]{{0,40}}(?:round table|in a circle|circular|around a table|ring\b)", _round),
    rule(rf"(?:ways|orders?|arrangements|orderings|many)[^#?]{{0,60}}A (?:different |distinct |distinguishable )?{_THINGS}[^#?]{{0,60}}(?:round table|in a circle|circular|around a table|ring\b)", _round),
    rule(rf"A (?:different |distinct |distinguishable |labelled )?{_THINGS}[^#?]{{0,70}}(?:line|row|shelf|queue|order|arrang|stand|lined|sequence|finish)", "factorial"),
    rule(r"(?:arrange|line up|order|permute|queue|rank|seat) (?:the |all )?A (?:different |distinct |labelled )?[a-z]+", "factorial"),
    rule(r"permutations (?:are there )?(?:of|on) (?:a set (?:of|with) )?A", "factorial"),
    # subsets and codes
    rule(r"(?:how many|number of)(?: distinct| different)? subsets (?:does |do |has |of |can be formed from |are there of )?(?:a |the )?G(?:set|collection)[^#]{0,30} A(?! elements? (?:of|from))", lambda parts: op("power", number(2), flat(parts)[0])),
    rule(r"set (?:with|of|has|containing|that has) (?:exactly )?A (?:distinct |different )?(?:elements|members|objects|items)[^#?]{0,50}(?:how many )?subsets(?! (?:of|with|that|contain|has|have))", lambda parts: op("power", number(2), flat(parts)[0])),
    rule(r"coin (?:is )?(?:tossed|flipped|thrown) A times[^#]{0,100}(?:exactly|show|precisely|give|have|with|contain)[^#]{0,20} A (?:heads|tails|times)", "binomial"),
    rule(r"coin (?:is )?(?:tossed|flipped|thrown) A times[^#]{0,60}(?:sequences|outcomes|results)", lambda parts: op("power", number(2), flat(parts)[0])),
    rule(r"(?:strings|sequences|words|codes|numbers|passwords) of length A[^#]{0,60}(?:from|using|over|with|out of|alphabet)[^#]{0,40} A", _codes),
    rule(r"A[- ](?:letter|digit|character|symbol|place) (?:strings|codes|words|passwords|sequences|combinations)[^#]{0,80}(?:from|using|over|with|out of|alphabet)[^#]{0,40} A", _codes),
    rule(r"binary (?:strings|sequences|words|numbers)[^#]{0,20} (?:of )?length A[^#]{0,60}(?:exactly|contain|have|with) (?:exactly )?A (?:ones|1s|zeros|zeroes|#\d+s)", "binomial"),
    rule(r"(?:distribute|share|divide|give|hand out|split|place|put)[^#]{0,30} A (?:identical|indistinguishable|equal)[^#]{0,40}(?:among|between|to|into|in) (?:[a-z]+ )?A", _shared),
    rule(r"A (?:identical|indistinguishable|equal)[^#]{0,60}(?:among|between|to|into|in) (?:[a-z]+ )?A", _shared),
    # geometry of points
    rule(r"triangles[^#?]{0,100}A (?:points|vertices|dots)|A (?:points|vertices|dots)[^#?]{0,130}(?:triangles|three of them)", constant("binomial", 3)),
    rule(r"A (?:points|towns|cities|villages|stations|computers|houses|islands|dots|vertices)[^#?]{0,130}(?:segments|lines|chords|roads|cables|connect|bridges|direct|tickets?|straight)", constant("binomial", 2)),
    rule(r"(?:everyone|everybody|each|every)[^#?]{0,40}A (?:people|guests|friends|delegates|players|members|teams|students)[^#?]{0,120}(?:hand|each other|every other|once)", constant("binomial", 2)),
    rule(r"(?:round[- ]robin|league|tournament)[^#?]{0,60}A (?:teams|players|clubs|people|members)", constant("binomial", 2)),
    # divisors in other words
    rule(r"(?:common (?:positive )?(?:divisors|factors) (?:of|do|have|does|that)|(?:divide|divides|divisors of|factors of) (?:both|each of)(?: the numbers)?)(?: do| the numbers)? L", lambda parts: _common_count(parts)),
    rule(r"(?:how many|number of) (?:positive )?(?:divisors|factors)(?: do| are shared by| that) L (?:have in common|share)", _common_count),
    rule(r"L (?:have|share)[^#]{0,20}how many common", _common_count),
    rule(r"(?:largest|greatest|biggest) (?:positive )?(?:integer|number|whole number|value|divisor|factor)(?: that| which)?(?: is)?(?: a)? (?:divides?|common to|shared by|goes into|factor of|divisor of)(?: evenly into)?(?: both| each of)?(?: of)?(?: the numbers)? L", "common divisor"),
    rule(r"(?:least common multiple|lcm|smallest (?:positive )?(?:integer|number)[^#]{0,40}divisible by) (?:of )?(?:all (?:of )?)?(?:the )?(?:first A (?:positive )?(?:integers|numbers|whole numbers)|(?:every |each |the |positive )*(?:integers?|numbers?|whole numbers?) (?:from )?#\d+ (?:to|through|up to) A)", _up_to),
    rule(r"(?:ways|many)[^#?]{0,70}A (?:be |can be |as )?(?:written|expressed|factored|represented|split|arise)?[^#?]{0,40}product of (?:two|#\d+) (?:positive )?(?:integers|whole numbers|factors|numbers)", lambda parts: _halved(parts)),
    rule(r"rectangles[^#?]{0,80}area[^#?]{0,20}A", _halved),
    rule(r"(?:how many|number of|count of)(?: of)?(?: the)? proper (?:positive )?(?:divisors|factors)G A(?: have| has)?", lambda parts: op("difference", op("divisor count", flat(parts)[0]), number(1))),
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
    rule(r"(?:add|sum|total)[^#.?]{0,40}(?:integers|numbers)[^#.?]{0,12}(?:from|between) A (?:to|through|up to|and) A(?! that| which| divis)", consecutive),
    rule(r"sum of (?:the )?squares of (?:all |the )*(?:positive )?(?:integers|numbers|whole numbers) from #\d+ (?:to|through|up to) A", lambda parts: squares(parts)),
    rule(r"sum of (?:all )?(?:the )?(?:positive )?(?:integers|whole numbers|numbers|natural numbers) (?:up to|not exceeding|no larger than|less than or equal to)(?: and including)? A(?! that| which| divis)", lambda parts: consecutive([[number(1)], parts[0]])),
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
