r"""What every reader of a reply needs: what was said after thinking, its last box, plain text.

Belongs here: markup and where in a reply to look, in time linear in its length. Does not belong
here: what an answer looks like (answers.py for integers and programs, letters.py for choices).
"""

import re
from collections.abc import Callable
from typing import TypeVar

SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
CONCLUDES = re.compile(
    r"(?:and |so |then )?(?:therefore|thus|hence|so|consequently|finally)\b", re.I
)
"""How a sentence begins that gives the answer, where no word calls it so."""
TAIL = 4000
"""Characters at the end of a reply in which answer lines and prose endings are looked for."""
TAIL_LINES = 20

ValueT = TypeVar("ValueT")

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s*")
_BARE = re.compile(r"[^\s$}]*")
_BRACE = re.compile(r"\\.|[{}]")
_FONT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|it|sf|tt)?|mbox|bm)\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^? ?\{? ?(?:\\circ|\u00b0|\\degree) ?\}?")
_SPACING = re.compile(r"\\(?:[;: ]|(?:q?quad|displaystyle|left|right)\b)")
_DIGITS_APART = re.compile(r"(?<=\d)\\,(?=\d)")
_MATHS_SIGN = re.compile(r"\\[()\[\]]")
_BOX_BESIDE = re.compile(
    r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]{0,40}\}){0,40})\}"
    r"((?:[\s$,;/&]|\bor\b|\band\b){0,20})\\(?:boxed|fbox)\s*\{"
)
_STARS = re.compile(r"(?<![0-9A-Za-z])\*+|\*+(?![0-9A-Za-z])")
ANSWER_LINE = re.compile(
    r"[\s*_#>`]*(?:the\s+)?(?:final\s+)?answer[\s*_`]*(?:is[\s*_`]*)?(?:[:=\uff1a]|$)[\s*_`]*", re.I
)


def parted(reply: str) -> tuple[str, str, bool]:
    """Return what was thought, what was said after it, and whether that is thinking cut off."""
    thinking, said = _split(reply)
    return thinking, said, _cut_off(said)


def _split(reply: str) -> tuple[str, str]:
    closed = max(reply.rfind("</think>"), reply.rfind("</thinking>"))
    return (reply[:closed], reply[closed:].partition(">")[2]) if closed >= 0 else ("", reply)


def _cut_off(said: str) -> bool:
    return "<think>" in said or "<thinking>" in said


def after_thinking(
    reply: str, explicit: Callable[[str], ValueT | None], prose: Callable[[str], ValueT | None]
) -> ValueT | None:
    """Look behind the last closed thinking block first, then for explicit markers inside it."""
    thinking, said = _split(reply)
    found = explicit(said)
    if found is not None or last_box(said) is not None:
        return found
    if not _cut_off(said):
        found = prose(said)
    return explicit(thinking) if found is None and thinking else found


def nothing(said: str) -> None:
    """Find nothing: programs have no prose form."""


def last_box(said: str) -> tuple[str | None, int] | None:
    r"""Return the content of the last box (None when it was cut off) and its end; None: no box.

    Empty boxes are skipped: they quote the instruction ("put your answer within \boxed{}").
    """
    end = len(said)
    while (end := said.rfind("box", 0, end)) >= 0:  # from the end: most replies are long
        start = said.rfind("\\", max(0, end - len("\\frame")), end)
        box = _BOX.match(said, start) if start >= 0 else None
        if box:
            content, stop = _braced(said, box.end())
            if content is None or content.strip():
                return content, stop
    return None


def box_beside(said: str, end: int) -> tuple[str, str] | None:
    r"""Return the content of the box right before the one that ends at `end`, and what parts them.

    Only signs and "and" or "or" may stand between; with other words there it is a correction.

    >>> box_beside(r"\boxed{7}, \boxed{8}", 20), box_beside(r"\boxed{7}, no: \boxed{8}", 24)
    (('7', ', '), None)
    """
    found = _BOX_BESIDE.search(said[max(0, end - 200) : end])
    return (found.group(1), found.group(2)) if found else None


def _braced(said: str, at: int) -> tuple[str | None, int]:
    """Return what the balanced braces at `at` enclose, and where that ends."""
    if at < len(said) and said[at] != "{":
        bare = _BARE.match(said, at)
        return (bare.group(), bare.end()) if bare else (None, at)
    depth = 0
    for brace in _BRACE.finditer(said, at):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            return said[at + 1 : brace.start()], brace.end()
    return None, len(said)


def without_markup(text: str) -> str:
    """Take away markup that does not change a number: fonts, maths signs, degrees, thin spaces."""
    plain = " ".join(text.split()).replace("{,}", ",").replace("\u2212", "-")
    plain = _without_latex(plain) if "\\" in plain or "\u00b0" in plain else plain
    plain = plain.replace("~", " ").replace("$", "").replace("`", "").replace("__", "")
    return (_STARS.sub("", plain) if "*" in plain else plain).strip()


def _without_latex(text: str) -> str:
    plain = _DIGITS_APART.sub(",", text).replace("\\!", "").replace("\\,", " ")
    if "circ" in plain or "\u00b0" in plain or "degree" in plain:
        plain = _DEGREES.sub("", plain)
    plain = _SPACING.sub(" ", plain)
    for _ in range(4 if "{" in plain else 0):
        plain = _FONT.sub(r"\1", plain)
    return _MATHS_SIGN.sub("", plain)


def answer_line(
    said: str, read: Callable[[str], ValueT | None], label: re.Pattern[str] = ANSWER_LINE
) -> ValueT | None:
    """Return what the last line of the form "ANSWER: ..." says, its value perhaps one line on."""
    lines = [line for line in said[-TAIL:].splitlines() if line.strip()][-TAIL_LINES:]
    for at in reversed(range(len(lines))):
        found = label.match(lines[at])
        if found and found.end() < len(lines[at]):
            return read(lines[at][found.end() :])
        if found and at + 1 < len(lines):
            return read(lines[at + 1])
    return None
