r"""Find the answer in a reply: an integer, a letter, or a program. Pure text in, value out.

Letters are read in letters.py, formulas in expressions.py, markup in reply_text.py.

For grading and for voting, so a suite and self-consistency read a reply in the same way. What is
found may be wrong, and an integer may lie outside 0-999; that is for the grader. Where no rule
applies the functions abstain with None: an arbitrary last number is never an answer.

Order of the rules: the last `\boxed{}` unless another box stands right before it on its line, then
"ANSWER: 70" lines near the end, then prose endings ("Therefore m+n = 70"). Text after `</think>`
comes first; inside a thinking block, closed or cut off, only the explicit markers count. Every rule
is linear in the length of the reply.
Not here: algebra (`\boxed{140/2}` is no integer) and judging (suites/).
"""

import re

from harness.expressions import expression
from harness.letters import letter
from harness.records import Kind
from harness.reply_text import (
    CONCLUDES,
    SENTENCE_ENDS,
    TAIL,
    after_thinking,
    answer_line,
    box_beside,
    last_box,
    nothing,
    without_markup,
)

__all__ = ["code", "integer", "letter", "normalised"]

_UNIT = re.compile(
    r"(?<=\d)\s*\\(?:text(?:rm)?|mathrm|mbox)\s*\{[^{}\d]*\}(?:\s*\^\s*\{?[23]\}?)?\s*\.?\s*$"
)

_NUMBER = r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,30}))(?:\.0{0,9}(?!\d))?"
_WHOLE = re.compile(rf"{_NUMBER}\.?")
_NOT_CONTINUED = (
    r"(?![A-Za-z\d]|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2150-\u215f]|\.\d|,\s*\d"
    r"|\s*[-+/^*<>%=?\u00d7\u00b7\u00f7\u221a\u03c0\d\\]"
    r"|\s+(?:or|and|to|mod|modulo|times|plus|minus|divided|over|squared|percent|sqrt|pi)\b"
    r"|\s*[,;]\s*[A-Za-z](?:_?\w)?\s*=)"
)
"""A number that goes on (`7,0`, `70/3`, `70 or 71`, `70, y = 3`) is not the answer 70."""
_LEADING = re.compile(rf"{_NUMBER}{_NOT_CONTINUED}")
_ANSWER_IS = re.compile(
    r"\banswer\s*(?:is|:|=|equals|must be|would be)\s*:?\s*(?:[^\s=\d]\S{0,40}\s*=\s*)?"
    rf"{_NUMBER}{_NOT_CONTINUED}",
    re.I,
)
_DIGIT = re.compile(r"\d")
_ENDS_IN_NUMBER = re.compile(
    rf"(?:=|\b(?:is|are|equals|gives|get|be)\b)\s*{_NUMBER}(?:\s+(?:square\s+)?(?:units?|degrees?))?[.!]?\s*$"
)
_ANOTHER_VALUE = re.compile(r"=[^,;=]{1,40}(?:[,;]|\band\b)\s*(?:and\s+)?[A-Za-z](?:_?\w)?\s*=\s*$")
"""What stands before the last number of `x = 70, y = 3`."""
_SECOND_THOUGHTS = re.compile(r"\b(?:wait|but|however|alternatively|hmm|check|verify)\b", re.I)


def integer(reply: str) -> int | None:
    r"""Return the integer that the reply gives as its answer, or None.

    A last box that holds something else hides every earlier statement, and so does a box that was
    cut off: the reply has changed its mind, and nobody knows to what.

    >>> integer(r"Hence \boxed{\text{070}}. There are 3 cases."), integer("ANSWER: 7,0")
    (70, None)
    """
    return after_thinking(reply, _explicit_integer, _prose_integer)


def code(reply: str) -> str | None:
    """Return the program in the reply: its last complete fenced block, Python preferred, or None.

    LiveCodeBench (lcb_runner/utils/extraction_utils.py) takes the text between the last two lines
    that contain a fence. We differ on purpose where that is not a program: a block tagged
    `output` after the program does not hide it, and the prose between two blocks of a cut-off
    reply is never run.
    """
    return after_thinking(reply, _fenced_program, nothing)


def normalised(kind: Kind, reply: str) -> str | None:
    """Return the answer in the form in which two replies agree, or None; used for voting."""
    if kind == "integer":
        number = integer(reply)
        return None if number is None else str(number)
    if kind == "choice":
        return letter(reply)
    if kind == "program":
        program = code(reply)
        return None if program is None else program.rstrip()
    return expression(reply) or reply.strip() or None


# --- integers ---------------------------------------------------------------------------------


def _explicit_integer(said: str) -> int | None:
    box = last_box(said)
    if box is None:
        return answer_line(said, _stated_integer)
    content, end = box
    if content is None:
        return None
    boxed = _whole_integer(content)
    beside = box_beside(said, end)
    if beside and "\n" not in beside[1] and _whole_integer(beside[0]) != boxed:
        boxed = None
    return answer_line(said[end:], _stated_integer) if boxed is None else boxed


def _whole_integer(text: str) -> int | None:
    """Return the integer that a piece of LaTeX or markdown is, or None when it is more or less."""
    if len(text) > TAIL:
        return None
    plain = without_markup(_UNIT.sub("", " ".join(text.split()))).strip(" {}()[]_`")
    if "=" in plain and "," not in plain:
        plain = plain.rpartition("=")[2].strip(" {}()")
    whole = _WHOLE.fullmatch(plain)
    return int(whole.group(1).replace(",", "")) if whole else None


def _stated_integer(value: str) -> int | None:
    whole = _whole_integer(value)
    if whole is not None:
        return whole
    leading = _LEADING.match(without_markup(value))
    return int(leading.group(1).replace(",", "")) if leading else None


def _prose_integer(said: str) -> int | None:
    """Read "the answer is 70" or a last sentence such as "Therefore m+n = 70", not taken back."""
    lines = [line for line in said[-TAIL:].splitlines() if line.strip()][-3:]
    if not any(_DIGIT.search(line) for line in lines):
        return None
    tail = "\n".join(without_markup(line[-1000:]) for line in lines)
    stated = list(_ANSWER_IS.finditer(tail)) if "answer" in tail.lower() else []
    if stated:
        taken_back = _SECOND_THOUGHTS.search(tail, stated[-1].end())
        return None if taken_back else int(stated[-1].group(1).replace(",", ""))
    for sentence in reversed(SENTENCE_ENDS.split(tail)):
        if _DIGIT.search(sentence):
            return _concluded(sentence)
        if _SECOND_THOUGHTS.search(sentence):
            return None
    return None


def _concluded(sentence: str) -> int | None:
    """Return the number in which a sentence such as "Therefore m+n = 70" ends."""
    ending = _ENDS_IN_NUMBER.search(sentence) if CONCLUDES.match(sentence) else None
    if ending is None or _SECOND_THOUGHTS.search(sentence):
        return None
    if _ANOTHER_VALUE.search(sentence, max(0, ending.start() - 60), ending.start(1)):
        return None
    return int(ending.group(1).replace(",", ""))


# --- programs ---------------------------------------------------------------------------------

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)[^\n`]*$")


def _fenced_program(said: str) -> str | None:
    blocks = _fenced_blocks(said)
    python = [text for tag, text in blocks if tag.lower() in ("python", "py", "python3")]
    return (python or [text for _, text in blocks] or [None])[-1]


def _fenced_blocks(said: str) -> list[tuple[str, str]]:
    """Return (tag, text) of every complete fenced block that is not blank, in order."""
    blocks: list[tuple[str, str]] = []
    fence, tag, indent, lines = "", "", 0, list[str]()
    for line in said.splitlines():
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, tag, lines = mark.group(1), mark.group(2), []
            indent = mark.start(1)
        elif mark and mark.group(1).startswith(fence) and not mark.group(2):
            if any(text.strip() for text in lines):
                blocks.append((tag, "\n".join(lines)))
            fence = ""
        elif fence:
            margin = len(line) - len(line.lstrip(" \t"))
            lines.append(line[min(indent, margin) :])
    return blocks
