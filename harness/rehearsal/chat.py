"""What a worker sees: a chat taken apart, its words made plain, its tokens counted."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from inspect_ai.model import ChatMessage

# § What a worker sees, taken apart: the question, its own subtask, and what others said
# § before.
# §
# § The shapes are those of harness/execute.py: earlier steps as past turns, or numbered
# § replies in the
# § system message (Mixture-of-Agents). Anything else is read as one plain question.


AnswerKind = Literal["number", "choice", "program", "plan"]
_OPTION = re.compile(r"^\s*\(?([A-J])[).:]\s+(\S.*?)\s*$", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d{1,2})\. ", re.MULTILINE)
_PROGRAM = re.compile(
    r"class Solution|standard input|\bstdin\b|```python|(?:write|implement"
    r"|complete)\b[^.]{0,40}\b(?:program|function|method|code)"
    r"|first line (?:of (?:the )?input )?contains|\bpython (?:program|3)|input format"
    r"|\bpython\b|\bprint (?:the|its|yes|true|it|how|them|all|one|each|whether|out"
    r"|a single|every)\b",
    re.IGNORECASE,
)
_FORMAT_END = re.compile(
    r"boxed|answer: ?\$?[a-jx]|final answer|python block|code block|```", re.IGNORECASE
)
_BOXED = re.compile(r"\\boxed\s*\{\s*([^{}]*?)\s*\}")
_LETTER = re.compile(r"answer\s*(?:is)?\s*:?\s*\**\(?([A-J])\b", re.IGNORECASE)
_CODE = re.compile(r"```(?:python)?[ \t]*\n(.*?)```", re.DOTALL)
_PROSE = re.compile(
    r"(?:answer|result|it|that makes|total)\s*(?:is|=|:|equals)\s*\**(-?\d+)\b(?![.,]?\d)",
    re.IGNORECASE,
)
MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Chat:
    """One request as a worker understands it."""

    question: str
    subtask: str
    earlier: tuple[str, ...]
    """What other workers replied, in order."""
    system: str
    options: tuple[tuple[str, str], ...]
    """The choices, as (letter, text)."""
    asked: AnswerKind
    gathered: bool = False
    """Whether earlier replies came numbered, to be made one: this worker is to aggregate."""

    @property
    def everything(self) -> str:
        """The question with this worker's own subtask."""
        return f"{self.question}\n\n{self.subtask}".strip()


def read_chat(messages: Sequence[ChatMessage]) -> Chat:
    """Take a request apart; total: any sequence of messages is some chat."""
    system = _bounded("\n".join(m.text for m in messages if m.role == "system"))
    users = [_bounded(m.text) for m in messages if m.role == "user"]
    earlier = [_bounded(m.text) for m in messages if m.role == "assistant"]
    first = users[0] if users else ""
    question, subtask = _split(first)
    if len(users) > 1:
        subtask = "" if users[-1].strip() == "Continue." else users[-1]
    numbered = _numbered(system)
    options = tuple((m[1], m[2]) for m in _OPTION.finditer(question))
    options = options if len(options) >= 2 and options[0][0] == "A" else ()
    replies = (*earlier, *numbered)
    return Chat(
        question, subtask, replies, system, options, _answer_kind(first, options), bool(numbered)
    )


def _bounded(text: str) -> str:
    """Return a text of bounded length with bounded numbers, so that no reader is overwhelmed."""
    return re.sub(r"\d{400,}", lambda run: run[0][:400], text[:MAX_CHARS])


def _answer_kind(text: str, options: tuple[tuple[str, str], ...]) -> AnswerKind:
    if "USER QUESTION:" in text and "AVAILABLE LANGUAGE MODELS:" in text:
        return "plan"
    if _PROGRAM.search(text):
        return "program"
    return "choice" if options else "number"


def _split(text: str) -> tuple[str, str]:
    """Split a first turn into question and subtask: what follows the answer-format paragraph."""
    paragraphs = text.split("\n\n")
    for index in range(len(paragraphs) - 2, 0, -1):
        if _FORMAT_END.search(paragraphs[index]) and not _OPTION.search(paragraphs[-1]):
            return "\n\n".join(paragraphs[: index + 1]), "\n\n".join(paragraphs[index + 1 :])
    return text, ""


def _numbered(system: str) -> list[str]:
    marks = list(_NUMBERED.finditer(system))
    ends = [*[mark.start() for mark in marks[1:]], len(system)]
    return [system[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)]


def final_answer(reply: str, asked: AnswerKind) -> str | None:
    """Return the answer that an earlier reply ends with, None when it commits to none."""
    if asked == "program":
        blocks = _CODE.findall(reply)
        return str(blocks[-1]).strip("\n") if blocks else None
    if asked == "choice":
        letters = _LETTER.findall(reply)
        return str(letters[-1]).upper() if letters else None
    boxed = _BOXED.findall(reply) or _PROSE.findall(reply)
    return str(boxed[-1]).strip() if boxed and re.fullmatch(r"-?\d+", boxed[-1].strip()) else None


# § Turn a question as people write it into plain lower-case text with digits and plain
# § operators.
# §
# § LaTeX, superscripts, number words and answer-format instructions are what stands between a
# § question
# § and a program; nothing here knows what a question asks.


# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them


UNITS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
TENS = {
    word: 10 * value
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
ORDINALS = {
    word: value
    for value, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        start=1,
    )
}
_WORD = "|".join([*UNITS, *TENS])
_NUMBER_WORDS = re.compile(
    rf"\b(?:a hundred|a thousand|(?:{_WORD}|hundred|thousand)(?![a-z]))"
    rf"(?:(?:[ -]| and )(?:{_WORD}|hundred|thousand)(?![a-z]))*"
)
_TENTHS = {word.removesuffix("y") + "ieth": value for word, value in TENS.items()}
_TEENTH = {f"{word}th": value for word, value in UNITS.items() if value > 12}
_PLACES = {**{w: v for w, v in ORDINALS.items() if v > 2}, **_TEENTH, **_TENTHS, "hundredth": 100}
_ORDINAL = re.compile(rf"\b(?:({'|'.join(TENS)})-)?({'|'.join([*ORDINALS, *_PLACES])})\b")
_LATEX = [
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\\left|\\right|\\displaystyle|\\,|\\;|\\!|\\\(|\\\)|\\\[|\\\]|\$", " "),
        (r"\\(?:text|mathrm|operatorname|mathbf)\s*\{([^{}]*)\}", r" \1 "),
        (r"\\d?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
        (r"\\d?t?binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"binom(\1,\2)"),
        (r"\\(?:times|cdot|ast)\b|[×·⋅∗]", "*"),
        (r"\\div\b|÷", "/"),
        (r"\\pmod\s*\{([^{}]*)\}", r"(mod \1)"),
        (r"\\b?mod\b|\\bmod\b", " mod "),
        (r"\\equiv\b", "≡"),
        (r"\\(gcd|lcm|binom|max|min|log|phi|tau|sigma)\b", r"\1"),
        (r"\\(?:leq?|le)\b", "≤"),
        (r"\\(?:geq?|ge)\b", "≥"),
        (r"\\(?:dots|ldots|cdots)\b|…", "..."),
        (r"[−–—]", "-"),
        (r"\*\*", "^"),
    )
]
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_PRONOUN_ONE = re.compile(
    r"\b(the|each|every|this|that|another|any|only|other|last|next|previous|than|which|no) one\b"
    r"|\bone (?=(?:choose|select|form|pick|make|arrange|write|find|get|obtain|by|another|after|before|who|that|which|can|way|or more)\b)"
)
_FORMAT = re.compile(
    r"boxed|final answer|answer:|between 0 and 999|from 0 to 999|0-999|last line|four options"
    r"|answer is (?:always )?an integer|reply with|step by step|your answer|show "
    r"your (?:work|reasoning)",
    re.IGNORECASE,
)


def spell_out(text: str) -> str:
    """Return the text with number words replaced by digits.

    >>> spell_out("twenty-three apples and one hundred and five pears")
    '23 apples and 105 pears'
    """
    return _NUMBER_WORDS.sub(lambda found: _as_digits(found[0]), text)


def _in_order(found: re.Match[str]) -> str:
    """Return an ordinal in digits; first and second stay words, they have other uses."""
    tens, last = TENS.get(found[1] or "", 0), found[2]
    if not tens and last not in _PLACES:
        return found[0]
    return f"{tens + {**ORDINALS, **_PLACES}[last]}th"


def _as_digits(words: str) -> str:
    total, group, said = 0, 0, ""
    numbers: list[str] = []
    for word in re.split(r"[ -]+", words):
        if word == "and" and said in ("hundred", "thousand"):
            continue
        if word == "and" or (said in UNITS and word in {**UNITS, **TENS}):
            numbers.append(str(total + group))
            total, group, said = 0, 0, ""
            if word == "and":
                continue
        if word == "hundred":
            group = max(group, 1) * 100
        elif word == "thousand":
            total, group = total + max(group, 1) * 1000, 0
        else:
            group += 1 if word == "a" else UNITS.get(word, TENS.get(word, 0))
            if word == "a":
                group = 1
        said = word
    numbers.append(str(total + group))
    return (" and " if " and " in words and len(numbers) > 1 else " ").join(numbers)


@lru_cache(maxsize=8192)
def plain_words(text: str) -> str:
    r"""Return lower-case text with digits for number words and + - * / ^ for operators.

    >>> plain(r"Find $7^{13} \times 2$, then add Twelve.")
    'find 7^(13) * 2 , then add 12.'
    """
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda run: "^" + run[0].translate(_SUPERSCRIPTS), text)
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    text = text.replace("{", "(").replace("}", ")").replace("’", "'").lower()
    text = re.sub(r"(?<![\d,])(\d{1,3}(?:,\d{3})+)(?![\d,])", lambda n: n[0].replace(",", ""), text)
    text = re.sub(r"(\d)\s+x\s+(\d)", r"\1 * \2", text)
    text = re.sub(r"(\d)\s?_\s?\(?(\d+)\)?", r"\1 base \2", text)
    text = _ORDINAL.sub(_in_order, text)
    text = _PRONOUN_ONE.sub(lambda found: f"{found[1] or 'a'} item ", text)
    text = re.sub(r"(?<=[a-z])-(?=\d)|(?<=\d)-(?=[a-z]{2})", " ", spell_out(text))
    return re.sub(r"[ \t]+", " ", text).strip()


def without_format(text: str) -> str:
    """Return the text without the sentences that only say how to write the answer."""
    kept = [part for part in re.split(r"(?<=[.!?:])\s+|\n+", text) if not _FORMAT.search(part)]
    return "\n".join(kept)


def sentences(text: str) -> list[str]:
    """Split a text into sentences, keeping decimals and ellipses whole."""
    return [part.strip() for part in re.split(r"(?<=[a-z0-9)][.!?;])\s+|\n+", text) if part.strip()]


# § Everyday words for questions about numbers, put into the words that `phrases` understands.
# §
# § A thesaurus applied in order to a plain text (see reading.plain), then three kinds of
# § small tale
# § that have to be turned round: a number thought of, groups that overlap, goods packed in
# § equal parts.


# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them


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


# § A deterministic tokenizer for rehearsal workers: words in pieces, numbers by threes, marks
# § alone.
# §
# § It is nobody's real tokenizer; it exists so that usage is counted offline and the same
# § everywhere.


_PIECES = re.compile(r"[^\W\d_]{1,6}|\d{1,3}|\n+|[^\w\s]|_")


def pieces(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a text as matches, so that a reply can be cut after the n-th."""
    return _PIECES.finditer(text)


def count_tokens(text: str) -> int:
    """Return the number of tokens.

    >>> count("The answer is 1234.")
    6
    """
    return sum(1 for _ in pieces(text))


def cut_tokens(text: str, limit: int) -> str:
    """Return the text up to and including its `limit`-th token."""
    if limit <= 0:
        return ""
    for number, piece in enumerate(pieces(text), start=1):
        if number == limit:
            return text[: piece.end()]
    return text
