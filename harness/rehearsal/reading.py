# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Turn a question as people write it into plain lower-case text with digits and plain operators.

LaTeX, superscripts, number words and answer-format instructions are what stands between a question
and a program; nothing here knows what a question asks.
"""

import re
from functools import lru_cache

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
def plain(text: str) -> str:
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
