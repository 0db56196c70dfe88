r"""Find the letter of a choice in a reply, or abstain.

Order of the rules: the last line "Answer: C" near the end, then the last `\boxed{C}`, then "the
answer is C", then a reply that is nothing but a letter. A statement that names several letters, or
one that was not offered, ends the search: nobody knows which was meant. `letter_among` also takes
an option's own text where a letter was asked for.
Letters are A to D, as the exams print them: a Cyrillic or Arabic letter is not read, because its
place in the alphabet and its looks point to different choices.
"""

import re
import unicodedata
from collections.abc import Sequence

from harness.reply_text import TAIL, answer_line, last_box, parted, without_markup

LABELS = (
    r"answer|option|choice",
    r"antwort|l\u00f6sung",  # German
    r"r\u00e9ponse|respuesta|risposta|resposta",  # French, Spanish, Italian, Portuguese
    r"\u043e\u0442\u0432\u0435\u0442",  # Russian
    r"jawaban|jibu|cevap",  # Indonesian, Swahili, Turkish
    r"\u0627\u0644[\u0625\u0627]\u062c\u0627\u0628\u0629",  # Arabic, with hamza and without
    r"\u0627\u0644\u062c\u0648\u0627\u0628",
    r"\u0909\u0924\u094d\u0924\u0930|\u0989\u09a4\u09cd\u09a4\u09b0",  # Hindi, Bengali
    r"(?:\u6b63\u786e)?\u7b54\u6848|\u7b54\u3048|\u6b63\u89e3|\u56de\u7b54",  # Chinese, Japanese
    r"\uc815\ub2f5|\ub2f5\ubcc0|\ub2f5",  # Korean
)
"""Words for "answer" before a colon: the languages into which MMLU was translated by its users."""

_LABEL = re.compile(
    r"[\s*_#>`'\"\u2018\u201c-]*(?:(?:so|thus|therefore|hence),?\s+)?(?:(?:the|my)\s+)?"
    rf"(?:(?:final|correct|best|right)\s+)?(?:{'|'.join(LABELS)})"
    r"[\s*_`]*(?:is[\s*_`]*)?(?:[:=]|$)[\s*_`]*"
    r"|[\s*_]*<answer>",
    re.I,
)
_ENDS = (
    r"(?=\s*$|[)\]}!]|[.;:](?![A-Za-z]\b)|\s*\(|\s*</?[|a-z]|\s+[-\u2013\u2014]\s+(?![A-Z]\b)"
    r"|,?\s+(?:because|since|as|which|not)\b)"
)
"""What may follow a letter that is an answer: not a word ("A function") and not a second letter."""
_TOO = (
    r"(?![)\]}]?\s*(?:[,/&]|\bor\b|\band\b)\s*(?:(?i:option|choice)\s+)?[(\[{]?[A-Z]\b)"
    r"(?![)\]}]?\s*[.;:]?\s*[(\[{]?[A-D]\s*(?:[.;)\]}]|$))"
)
"""A second letter: `A or B`, `(A)(B)`, `A; B; C`."""
_CHOICE = re.compile(rf"(?:(?i:option|choice)\s+)?[(\[{{]?([A-D]){_TOO}{_ENDS}")
_OTHERWISE = re.compile(
    r"(?:(?i:both|either|neither|options?|choices?)\s+)*[(\[{]?[A-Z][)\]}]?"
    r"(?:\s*$|[.?!]|\s*(?:[,/&]|\b(?:or|and|nor|to)\b)\s*[(\[{]?[A-Z]\b)"
)
"""Letters, but none that could be read: E, or A or B."""
_SAYS = re.compile(r"(?:answer|choice|option)[\s*_`]*(?:is|:)")
"""A quick look, at lower case, whether a line is worth reading."""
_ANSWER_IS = re.compile(
    r"\b(?i:answer|choice|option)(?:\s+is|\s*:)\s*:?\s*(?:(?i:option|choice)\s+)?[(\[]?([A-D])"
    rf"{_TOO}{_ENDS}"
)
_HAN = r"(?:\u7b54\u6848|\u6545\u9009|\u7b54\u3048|\u6b63\u89e3|\ub2f5)"
_SAYS_HAN = re.compile(_HAN)
_ANSWER_IS_HAN = re.compile(
    rf"{_HAN}"
    r"[\u662f\u4e3a\u306f\uc740\ub294\u5e94\u8be5]*\s*:?\s*[(\[]?([A-D])(?=[)\]]|\s*$|[.,\u3002]|\u3067\u3059|\uc785)"
)
"""The same in scripts that put no space between words: Chinese, Japanese, Korean."""
_TAKEN_BACK = re.compile(
    r"\b(?:wait|hmm|on second thoughts?|i made an? (?:mistake|error)"
    r"|let me (?:re-?\w+|think again|check again))\b",
    re.I,
)
_ONLY = re.compile(r"(?:(?i:option|choice)\s+)?[(\[{]?([A-Da-d])[)\]}]?[.:]?")
_BOLD = re.compile(r"\s*\*\*[(\[]?([A-D])[)\]]?[.:]?\*\*[.:]?\s*")
_PLEASANTRY = re.compile(r"\s*(?:I )?(?:hope (?:this|that|it)|let me know|feel free)\b", re.I)
_SEVERAL_BOXES = re.compile(
    r"\\boxed\s*\{([^{}]{0,40})\}(?:[\s$,;/&]|\bor\b|\band\b){0,20}\\boxed\s*\{"
)
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060\ufeff]")


def letter(reply: str) -> str | None:
    r"""Return the choice A-D that the reply gives as its answer, or None.

    >>> letter("**Answer: $B$**"), letter(r"So \boxed{\text{(C)}}"), letter("Answer: Because")
    ('B', 'C', None)
    """
    thinking, said, cut_off = parted(reply)
    box = last_box(said)
    found = _explicit(said)
    if found is None and not cut_off:
        found = _in_prose(said[box[1] :] if box else said)
    if found is None and thinking and box is None:
        found = _explicit(thinking)
    return found or None


def letter_among(reply: str, choices: Sequence[str]) -> str | None:
    """Return the letter that a reply gives, or that of the option whose text it gives instead."""
    found = letter(reply)
    if found is not None or not choices:
        return found
    _, said, _ = parted(reply)
    tail = _readable(said[-TAIL:])
    stated = answer_line(tail, str, _LABEL)
    if stated is None:
        box = last_box(said)
        stated = box[0] if box else None
    return letter_of_option(stated, choices) if stated else None


def letter_of_option(stated: str, choices: Sequence[str]) -> str | None:
    """Return the letter of the one option that this text is; None for none, or for several alike.

    >>> letter_of_option("$42$ m.", ["41 m", "42 m", "43 m", "44 m"])
    'B'
    """
    if len(stated) > TAIL:
        return None
    said = _as_option(stated)
    alike = [
        name
        for name, option in zip("ABCD", choices, strict=False)
        if said and said in (_as_option(option), _as_option(f"{name} {option}"))
    ]
    return alike[0] if len(alike) == 1 else None


def _as_option(text: str) -> str:
    plain = without_markup(_readable(text))
    return " ".join(plain.split()).rstrip(".").strip("'\"").casefold()


def _readable(text: str) -> str:
    """Fold full-width letters and take away marks of direction; ASCII needs neither."""
    if text.isascii():
        return text
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


# --- explicit statements ----------------------------------------------------------------------


def _explicit(said: str) -> str | None:
    """Return the letter of an answer line or a box; empty when either names no single letter."""
    tail = _readable(said[-TAIL:])
    stated = answer_line(tail, _stated, _LABEL)
    if stated is not None:
        return "" if _contradicted(tail, stated) else stated
    box = last_box(said)
    if box is None:
        return None
    if box[0] is None:
        return ""
    found = _stated(_readable(box[0]))
    return "" if _another_beside(said, box[1], found) else found


def _another_beside(said: str, end: int, found: str | None) -> bool:
    """Return whether the box right before the one that ends there holds another letter."""
    beside = _SEVERAL_BOXES.search(said[max(0, end - 200) : end])
    return bool(beside and _stated(beside.group(1)) != found)


def _stated(value: str) -> str | None:
    box = last_box(value)
    if box and _another_beside(value, box[1], _stated(box[0] or "")):
        return ""
    plain = without_markup((box[0] or "") if box else value[:TAIL]).strip(
        " _'\"\u2018\u2019\u201c\u201d"
    )
    if re.fullmatch(r"\(?[a-d]\)?\.?", plain):
        plain = plain.upper()
    choice = _CHOICE.match(plain)
    if choice:
        return choice.group(1)
    return "" if _OTHERWISE.match(plain) else None


def _contradicted(tail: str, stated: str) -> bool:
    """Return whether the line before the last answer line is an answer line with another letter.

    "Answer: A", and at once "Answer: B", is a list; with a thought between them it is a correction.
    """
    lines = [line for line in tail.splitlines() if line.strip()]
    labels = [at for at, line in enumerate(lines) if _LABEL.match(line)]
    if len(labels) < 2 or labels[-1] - labels[-2] != 1:
        return False
    label = _LABEL.match(lines[labels[-2]])
    before = _stated(lines[labels[-2]][label.end() :]) if label else None
    return before not in (None, stated)


# --- prose ------------------------------------------------------------------------------------


def _in_prose(said: str) -> str | None:
    tail = _readable(said[-TAIL:])
    if _worth_reading(tail):
        lines = tail.splitlines()
        for at in reversed(range(len(lines))):
            if _worth_reading(lines[at]):
                plain = without_markup(lines[at])
                stated = [*_ANSWER_IS.finditer(plain), *_ANSWER_IS_HAN.finditer(plain)]
                if stated:
                    rest = "\n".join((plain[stated[-1].end() :], *lines[at + 1 :]))
                    return "" if _TAKEN_BACK.search(rest) else stated[-1].group(1)
    return _nothing_else(tail)


def _worth_reading(text: str) -> bool:
    says = _SAYS.search(text.lower())
    return bool(says or (not text.isascii() and _SAYS_HAN.search(text)))


def _nothing_else(tail: str) -> str | None:
    """Read a reply that is a letter only, or that ends in the only line which is a bold letter."""
    lines = [line for line in tail.splitlines() if line.strip()]
    while lines and _PLEASANTRY.match(lines[-1]):
        lines.pop()
    whole = "\n".join(lines).strip()
    only = _ONLY.fullmatch(without_markup(whole)) if len(whole) < 40 else None
    if only:
        return only.group(1).upper()
    bold = [found for line in lines if (found := _BOLD.fullmatch(line))] if "**" in whole else []
    return bold[0].group(1) if len(bold) == 1 and _BOLD.fullmatch(lines[-1]) else None
