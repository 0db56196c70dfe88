r"""Find the letter of a choice in a reply, or abstain.

Order of the rules: the last line "Answer: C" near the end, then the last `\boxed{C}`, then "the
answer is C" or "option C is correct", then a reply that is only a letter. A statement that names
several letters, or one that was not offered, ends the search: nobody knows which was meant. In
prose, a clause that denies, supposes or quotes does not count, and of two letters the last one only
where a word decides. `letter_among` also takes an option's text where a letter was asked for.
Letters are A to D, as the exams print them: a Cyrillic or Arabic letter is not read, because its
place in the alphabet and its looks point to different choices.
"""

import re
import unicodedata
from collections.abc import Sequence

from harness.reply_text import TAIL, answer_line, box_beside, last_box, parted, without_markup

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
    r"[\s*_`\"']*(?:is[\s*_`]*)?(?:[:=]|$)[\s*_`]*"
    r"|[\s*_]*<answer>|\s*\{.*[\"']answer[\"']\s*:",
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
_I_CHOOSE = (
    r"(?:I(?:['\u2019](?:d|ll)|\s+would|\s+will)?\s+(?:go\s+with|choose|pick|select|say)\s+)?"
)
_CHOICE = re.compile(rf"{_I_CHOOSE}(?:(?i:option|choice)\s+)?[(\[{{]?([A-D]){_TOO}{_ENDS}")
_OTHERWISE = re.compile(
    r"(?:(?i:both|either|neither|options?|choices?)\s+)*[(\[{]?[A-Z][)\]}]?"
    r"(?:\s*$|[.?!]|\s*(?:[,/&]|\b(?:or|and|nor|to)\b)\s*[(\[{]?[A-Z]\b)"
)
"""Letters, but none that could be read: E, or A or B."""
_IS = r"(?:is|(?:must|should|has\s+to)\s+be)"
_QUOTE = "['\"\u2018\u2019\u201c\u201d]"
_ANSWER_IS = re.compile(
    rf"\b(?i:answer|choice|option)(?:\s+{_IS}|\s*:)\s*:?\s*(?:(?i:option|choice)\s+)?"
    rf"{_QUOTE}?[(\[]?([A-D])(?:{_QUOTE}(?!\w))?{_TOO}{_ENDS}"
)
_IS_CORRECT = re.compile(
    r"(?<!\bor )(?<!\bnor )(?<!\band )(?:\b(?i:option|choice|answer)\s+[(\[]?|[(\[])([A-D])[)\]]?"
    r"\s+is\s+(?:the\s+)?(?:correct|right|best)(?:\s+(?:answer|choice|option|one))?"
    r"(?=\s*$|[.!;]|,?\s+(?:because|since|as)\b)"
)
_LETTER_FOLLOWS = (
    rf"[\W_]{{0,9}}(?:\b{_IS}\b|:)[\W_]{{0,9}}(?:(?:option|choice)\b[\W_]{{0,9}})?"
    r"(?:(?:text|math|boxed)\w{0,2}\{|[\W_]){0,20}[a-d](?![a-z])"
)
_QUICK = (
    *(re.compile(word + _LETTER_FOLLOWS) for word in ("answer", "choice", "option")),
    re.compile(r"is[\W_]{1,9}(?:the[\W_]{1,9})?(?:correct|right|best)\b"),
)
"""A quick look, at lower case, for lines that are worth reading: each begins with a plain word."""
_SENTENCE = re.compile(r".*(?:[.!?]\s|\b(?:so|thus|therefore|hence)\b)", re.I)
_CLAUSE = re.compile(r".*(?:[,;:]|\b(?:and|but|because)\b)", re.I)
_SUPPOSED = re.compile(r"(?<!even )\b(?:if|suppose|assum(?:e|ing)|unless)\b", re.I)
_NOT_SAID = re.compile(
    r"\b(?:not|never|cannot|wrong|incorrect|false|might|may|could|would\s+be|whether|doubt|unlikely"
    r"|thinks|thought|says|said|claims?|claimed|believes|to\s+say|(?<!\bI )(?<!\bwe )think)\b"
    r"|\b(?:some|many|most|people|others|they)\s+(?:say|argue|believe)\b|\bno\s+way\b"
    r"|n['\u2019]t\b",
    re.I,
)
"""Before a statement in its clause: it is denied, only possible, or somebody else's."""
_DECIDES = re.compile(
    r"\b(?:wait|actually|no|but|however|instead|rather|mistake|error|wrong|incorrect|forgot|check\w*"
    r"|correct(?:ed|ing|ion)|re-?(?:consider|check|examin|evaluat|calculat|read)\w*"
    r"|so|thus|therefore|hence|final|finally|overall)\b",
    re.I,
)
"""Between two statements: the second one replaces the first."""
_HAN = ("\u7b54\u6848", "\u6545\u9009", "\u7b54\u3048", "\u6b63\u89e3", "\ub2f5")
_ANSWER_IS_HAN = re.compile(
    rf"(?:{'|'.join(_HAN)})"
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
_INVISIBLE = (
    "\u200b\u200c\u200d\u200e\u200f"  # spaces, joiners and marks without width
    "\u202a\u202b\u202c\u202d\u202e"  # embedded directions
    "\u2060\ufeff"
)


def letter(reply: str) -> str | None:
    r"""Return the choice A-D that the reply gives as its answer, or None.

    >>> letter("**Answer: $B$**"), letter(r"So \boxed{\text{(C)}}"), letter("Answer: Because")
    ('B', 'C', None)
    """
    return _read(reply)[0]


def letter_among(reply: str, choices: Sequence[str]) -> str | None:
    """Return the letter that a reply gives, or that of the option whose text it gives instead."""
    found, stated = _read(reply)
    if found is not None or not stated or not choices:
        return found
    return letter_of_option(stated, choices)


def _read(reply: str) -> tuple[str | None, str | None]:
    """Return the letter that a reply gives, and what it states where a letter is due."""
    thinking, said, cut_off = parted(reply)
    tail = _readable(said[-TAIL:])
    line, box = answer_line(tail, str, _LABEL), last_box(said)
    found = _explicit(said, tail, line)
    if found is None and not cut_off:
        found = _in_prose(_readable(said[box[1] :][-TAIL:]) if box else tail)
    if found is None and thinking and box is None:
        thought = _readable(thinking[-TAIL:])
        found = _explicit(thinking, thought, answer_line(thought, str, _LABEL))
    stated = line if line is not None or box is None else box[0]
    return found or None, stated


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
    folded = unicodedata.normalize("NFKC", text)
    for mark in _INVISIBLE:
        folded = folded.replace(mark, "")
    return folded


# --- explicit statements ----------------------------------------------------------------------


def _explicit(said: str, tail: str, line: str | None) -> str | None:
    """Return the letter of an answer line or a box; empty when either names no single letter."""
    stated = None if line is None else _stated(line)
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
    beside = box_beside(said, end)
    return bool(beside and _stated(beside[0]) != found)


def _stated(value: str) -> str | None:
    box = last_box(value)
    if box and _another_beside(value, box[1], _stated(box[0] or "")):
        return ""
    plain = without_markup((box[0] or "") if box else value[:TAIL]).strip(
        " _'\"\u2018\u2019\u201c\u201d{},"
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


def _in_prose(tail: str) -> str | None:
    """Return the letter last stated as the answer; empty when it is taken back or not decided."""
    plain, stated = _statements("\n".join(tail.splitlines()) + "\n")
    if not stated:
        return _nothing_else(tail)
    last = stated[-1]
    if _TAKEN_BACK.search(plain, last.end()):
        return ""
    others = [other.end() for other in stated if other.group(1) != last.group(1)]
    decided = not others or _DECIDES.search(plain, others[-1], last.start())
    return last.group(1) if decided else ""


def _statements(text: str) -> tuple[str, list[re.Match[str]]]:
    """Return the text, plain where a letter is said to be the answer, and where that is in it."""
    plain, done, spans = "", 0, list[tuple[int, int]]()
    for start in sorted(_lines_worth_reading(text)):
        end = text.index("\n", start)
        plain += text[done:start]
        at, done = len(plain), end
        plain += without_markup(text[start:end])
        spans.append((at, len(plain)))
    plain += text[done:]
    return plain, [match for span in spans for match in _stated_in(plain, *span)]


def _stated_in(plain: str, start: int, end: int) -> list[re.Match[str]]:
    """Return the statements of the line that begins and ends there, but denials and hearsay."""
    found = [
        match
        for says in (_ANSWER_IS, _ANSWER_IS_HAN, _IS_CORRECT)
        for match in says.finditer(plain, start, end)
        if not _doubted(plain[max(start, match.start() - 200) : match.start()])
    ]
    return sorted(found, key=lambda match: match.start())


def _lines_worth_reading(text: str) -> set[int]:
    """Return where the lines begin that may say which letter is the answer."""
    lower = text.encode("ascii", "replace").decode().lower()  # as long as the text; lower() is not
    found = [match.start() for quick in _QUICK for match in quick.finditer(lower)]
    if not text.isascii():
        said = [word for word in _HAN if word in text]
        found += [match.start() for word in said for match in re.finditer(word, text)]
    return {text.rfind("\n", 0, at) + 1 for at in found}


def _doubted(before: str) -> bool:
    """Return whether the words before a statement make it a condition, a denial or hearsay."""
    sentence = _SENTENCE.sub("", before, count=1)
    return bool(_SUPPOSED.search(sentence) or _NOT_SAID.search(_CLAUSE.sub("", sentence, count=1)))


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
