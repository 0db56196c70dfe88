# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Everyday words for questions about numbers, put into the words that `phrases` understands.

A thesaurus applied in order to a plain text (see reading.plain), then three kinds of small tale
that have to be turned round: a number thought of, groups that overlap, goods packed in equal parts.
"""

import re
from collections.abc import Callable
from functools import lru_cache

_N = r"(\d+)"
_INTO = r"(?:goes|go|fits?)(?: evenly| exactly| in)? into"
_NOUN = r"(?:(?:whole |natural |positive )*(?:numbers?|integers?)|value)"
_OVER = r"(?:is|are|will be|would be|remains?|stays?)?[^.?]{0,12}(?:left|over|remain)"

_THESAURUS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        # dividing
        (rf"\b(?:biggest|highest) ({_NOUN}|prime)", r"largest \1"),
        (rf"\b(?:tiniest|lowest) ({_NOUN}|prime)", r"smallest \1"),
        (rf"({_NOUN}) (?:that|which|into which) (?:both )?{_N} and {_N} (?:both )?(?:{_INTO}|go|fit|divide)", r"\1 divisible by \2 and \3"),
        (rf"({_NOUN}) (?:that|which|into which) (?:each of |all of )?{_N}, {_N},? and {_N} (?:all )?(?:{_INTO}|go|fit|divide)", r"\1 divisible by \2, \3 and \4"),
        (rf"prime (?:number )?(?:that|which) {_INTO}", "prime that divides"),
        (rf"(largest {_NOUN}) (?:that|which) {_INTO}", r"\1 that divides"),
        (r"\b(?:can be|could be) (?:evenly |exactly )?divided (?:evenly |exactly )?by", "are divisible by"),
        (rf"divisible by {_N} (or|and|nor) by {_N}", r"divisible by \1 \2 \3"),
        (r"(divisible by[^.?;]{1,40}?) without (?:a |any )?(?:remainder|rest)", r"\1"),
        (rf"\b(?:dividing|divid\w+) (?:it|the number|this number) by {_N} (?:gives|leaves) (?:a |the )?(?:rest|remainder) (?:of )?{_N}", r"leaves remainder \2 when divided by \1"),
        (rf"\b(?:when|if) (?:(?:a |the |this |some )?{_NOUN}|it|you|we|[a-z])? ?(?:is |divide (?:it |the number )?)?(?:divided )?by {_N},? (?:the |there is a |a |we get |you get )*(?:rest|remainder) (?:is |of |equals |left is |we get is )?{_N}", r"the number leaves remainder \2 when divided by \1"),
        (rf"\b(leaves?|leaving) (?:a rest of )?{_N} over\b", r"\1 remainder \2"),
        (rf"\b(?:leaves?|leaving) (?:a )?rest (?:of )?{_N}", r"leaves remainder \1"),
        (rf"\b(?:whether|when|if|no matter if) (?:you |we |one )?divid\w+ it by {_N}(?: or|,)? (?:by )?{_N},? (?:or|and) (?:by )?{_N}", r"when divided by each of \1, \2 and \3"),
        (rf"\b(?:whether|when|if|no matter if) (?:you |we |one )?divid\w+ it by {_N} (?:or|and) (?:by )?{_N}", r"when divided by each of \1 and \2"),
        (rf"sum of (?:all )?(?:the )?{_NOUN} (?:that|which) (?:divide|{_INTO})(?: evenly)? {_N}", r"sum of the divisors of \1"),
        (rf"\b(?:dealt|shared|divided|split) (?:out )?evenly (?:to|among|between|into) {_N}, (?:(?:to|among|between|into) )?{_N},? (?:or|and) (?:(?:to|among|between|into) )?{_N}", r"divisible by all of \1, \2 and \3"),
        # digits and bases
        (rf"\b(?:have|has|with|having) digits (?:that |which )?(?:add|sum) up to {_N}", r"have digit sum \1"),
        (rf"how many ({_NOUN}|primes|prime numbers|squares) (?:are there |there are )?(?:that |which |with |having )(?:have |has |consist of )?(?:exactly )?{_N} digits(?: exist)?", r"how many \2 digit \1 are there"),
        (r"\bread(?:s|ing)? the same (?:forwards?|backwards?|both ways|in both directions|from)[^.?,]*", "are palindromes"),
        (r"(?:what|which) digit does ([^.?]{3,60}?) end (?:in|with|on)\b", r"what is the last digit of \1"),
        (r"\bdigit (?:stands |is )?at the (?:very )?end of", "last digit of"),
        (rf"\b(?:what|how) does {_N} (?:look|read)(?: like)?(?: when (?:it is )?written)? in base {_N}", r"write \1 in base \2"),
        # ways
        (r"\b(?:next to|beside|alongside) (?:each other|one another)", "in a line"),
        (r"\b(?:everybody|everyone|each(?: of them| one| person| \w+)?)\b[^.?#]{0,40}?\b(?:once )?(?:with |to |against )?(?:everybody|everyone|all the|each of the|all) (?:else|others?)", "everyone shakes hands with each other"),
        (rf"{_N} (?:blocks?|squares?|units?|cells?|streets?|steps?) (?:wide|across|long) and {_N} (?:(?:blocks?|squares?|units?|cells?|streets?|steps?) )?(?:high|tall|down|up|deep)", r"\1 by \2 grid"),
        (rf"{_N} ([a-z]+)\b[^.?]{{0,30}}? (?:sends?|picks?|chooses?|takes?|nominates?|delegates?|needs?) {_N} of (?:them|its \w+|these)\b(?=.*\bways\b)[^?]*", r"in how many ways can \3 be chosen from \1 \2"),
        # running on
        (rf"\b(?:start|begin)\w* (?:with|at|from) {_N},? (?:and )?(?:keep|always|repeatedly|each time|go on|continue)\w*(?: on)?(?: \w+)? add(?:ing)? {_N}[^?]*?\b{_N}(?:th|st|nd|rd)\b", r"find the \3th term of an arithmetic sequence with first term \1 and common difference \2. this is the last"),
        (rf"\b(?:start|begin)\w* (?:with|at|from) {_N},? (?:and )?(?:keep|always|repeatedly|each time|go on|continue)\w*(?: on)?(?: \w+)? multiply(?:ing)? by {_N}[^?]*?\b{_N}(?:th|st|nd|rd)\b", r"find the \3th term of a geometric sequence with first term \1 and ratio \2. this is the last"),
        (rf"(squares|cubes) of (?:all |the |every |each )*(?:positive |whole |natural )*(?:numbers?|integers?) from 1 (?:up )?to {_N}", r"\1 of the first \2 integers"),
        # plain arithmetic
        (r"\bper cent\b", "percent"),
        (rf"\bsquare {_N}\b", r"\1 squared"),
        (rf"\b(?:and )?(?:then )?take away {_N}(?! from)", r"and then subtract \1"),
        (rf"\btake {_N} away from {_N}", r"subtract \1 from \2"),
        (r"\bhalve (?:what (?:remains|is left|you get|comes out)|it|the result|that|this)\b", "divide the result by 2"),
        (r"\btriple (?:what (?:remains|is left|you get|comes out)|the result|that|this)\b", "multiply the result by 3"),
        (r"\bdouble (?:what (?:remains|is left|you get|comes out)|the result|that|this)\b", "multiply the result by 2"),
    )
)  # fmt: skip
_SHARED = re.compile(
    rf"(?:shar|split|divid|deal|distribut|hand|giv)\w*(?: out)? {_N} [a-z ]+?(?:fairly |equally |evenly )?"
    rf"(?:among|between|amongst|to) {_N} [a-z]+"
)
_PACKED = re.compile(
    rf"{_N} [a-z]+ (?:[a-z]+ ){{0,4}}(?:in|into) (?:full )?(?:boxes|bags|packs|rows|groups|crates|teams|cartons|packets|bunches) of {_N}"
)
_EQUAL_PARTS = re.compile(
    rf"{_N} [a-z]+(?:, {_N} [a-z]+)? and {_N} [a-z]+[^?]*\b(?:equal|identical|alike|same)\b[^?]*"
    r"(?:nothing|none|no \w+|without)[^?]*(?:left|over|remain)"
)
_THOUGHT = re.compile(
    r"(?:think of|thinks of|thought of|pick|picks|chose|choose|take|have) a (?:certain |secret |whole )?number\b(?P<told>.*?)"
    rf"(?:arrives? at|gets?|got|ends? up (?:with|at|on)|(?:result|answer|outcome) is|obtains?|reach(?:es)?|have|is) {_N}\b",
    re.DOTALL,
)
_STEP = re.compile(
    r"\b(?P<what>triple|double|halve|add|subtract|take away|multiply|divide|multiplied|divided)\w*(?: it| that| this| the \w+)?"
    r"(?: by)?(?: (?P<by>\d+))?"
)
_TIMES = {"triple": "3", "double": "2", "halve": "2"}
_BOTH = re.compile(r"(\d+)(?=[^.,;?\d]*\bboth\b)|\bboth\b[^.,;?\d]*?(\d+)")


@lru_cache(maxsize=4096)
def usual_words(text: str) -> str:
    """Return a plain text with everyday words replaced by usual ones.

    >>> usual_words("which is the biggest prime that goes into 91?")
    'which is the largest prime that divides 91?'
    """
    for pattern, words in _THESAURUS:
        text = pattern.sub(words, text)
    for turn in TALES:
        told = turn(text)
        if told is not None:
            return told
    return text


def _parted(text: str) -> str | None:
    """Read what is left, or how many there are, when things are put in equal parts."""
    found = _SHARED.search(text) or _PACKED.search(text)
    if found and re.search(
        rf"how many[^.?]*(?:{_OVER}|not fill)|what {_OVER}", text[found.end() :]
    ):
        return f"what is the remainder when {found[1]} is divided by {found[2]}?"
    found = _EQUAL_PARTS.search(text)
    if found and re.search(r"\bmost\b|maximum|largest|greatest|biggest|highest", text):
        listed = ", ".join(number for number in found.groups()[:2] if number)
        return f"what is the greatest common divisor of {listed} and {found[3]}?"
    return None


def _thought_of(text: str) -> str | None:
    """Undo, last step first, what was done to a number that somebody thought of."""
    found = _THOUGHT.search(text)
    if found is None or not re.search(
        r"(?:which|what|find|my|the)[^.?]*number", text[found.end() :]
    ):
        return None
    undone = found[2]
    for step in reversed(list(_STEP.finditer(found["told"]))):
        what = step["what"]
        by = _TIMES.get(what) or step["by"]
        if not by:
            return None
        sign = {"add": "-", "subtract": "+", "take away": "+", "halve": "*"}.get(what, "/")
        sign = "*" if what.startswith("divide") else sign
        undone = f"({undone} {sign} {by})"
    return f"what is {undone}?" if "(" in undone else None


def _overlapping(text: str) -> str | None:
    """Count with two groups that share members: those in neither, in one or in either."""
    numbers = re.findall(r"\d+", text)
    both = _BOTH.search(text)
    if both is None or len(numbers) not in (3, 4):
        return None
    common = both[1] or both[2]
    rest = list(numbers)
    rest.remove(common)
    asked = text[text.rfind("how many") :] if "how many" in text else ""
    either = f"{rest[-2]} + {rest[-1]} - {common}"
    if len(rest) == 3 and re.search(r"neither|none|nothing|no \w+ at all", asked):
        return f"what is {rest[0]} - ({either})?"
    if re.search(r"at least (?:1|one)|either|altogether|in total", asked):
        return f"what is {either}?"
    if re.search(r"(?:exactly|only|just) (?:1|one|a item)", asked):
        return f"what is {either} - {common}?"
    return None


TALES: tuple[Callable[[str], str | None], ...] = (_parted, _thought_of, _overlapping)
