# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Patterns of questions that range over numbers and of small word problems, over atoms `#0`, `#1`.

Data for `searching` and `stories`: in each pattern `A` is one atom.
"""

import re

A = r"#(\d+)"
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
