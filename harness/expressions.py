r"""Find the mathematical expression that a reply gives as its answer, or abstain.

The rules are those of answers.py: the last `\boxed{}`, then the last "ANSWER: ..." line near the
end, then, outside thinking, "the answer is ..." or a last sentence that concludes with a formula.
Nothing is decided about it here: equality is suites/equality.py.
"""

import re

from harness.reply_text import (
    CONCLUDES,
    SENTENCE_ENDS,
    TAIL,
    after_thinking,
    answer_line,
    box_beside,
    last_box,
    nothing,
)

_MATHS = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.S)
_ANSWER_IS = re.compile(r"\banswer[\s*_]*(?:is|equals|must be|would be|[:=])[\s*_:]*", re.I)
_SECOND_THOUGHTS = re.compile(r"\b(?:wait|but|however|alternatively|hmm|check|verify|not)\b", re.I)
_REMARK = re.compile(r"\s+\([A-Za-z][^()]*\s[^()]*\)\s*$|[.!]?\s+(?:I\s+hope|Hope)\b.*$", re.S)
_BETWEEN_BOXES = re.compile(
    r"(?:[\s$,;&]|\\[(),; ]|\\text\{\s*(?:and|or)\s*\}|and\b|or\b|[a-z](?:_\w)?\s*=){1,40}"
)


MOST_BOXES = 10


def boxed(reply: str) -> str | None:
    r"""Return what the reply's last box encloses, or None where there is none or it was cut off.

    None, too, where another box with other content stands right before it on its line.

    >>> boxed(r"\boxed{\frac{1}{2}}, so <think> \boxed{3}</think> \fbox{\text{(C)}}.")
    '\\text{(C)}'
    """
    return after_thinking(reply, _only_box, nothing)


def expression(reply: str) -> str | None:
    r"""Return the LaTeX or text that the reply gives as its answer, or None.

    >>> expression(r"Hence $\boxed{x = \frac12}$. Hope this helps"), expression("ANSWER: $3\\pi$")
    ('x = \\frac12', '3\\pi')
    >>> expression("The answer is $7$. Wait, that is wrong.")
    """
    return after_thinking(reply, _explicit, _prose)


def boxed_side_by_side(reply: str) -> tuple[str, ...]:
    r"""Return what the last boxes enclose where commas or words alone part them, in order.

    Empty where there is one box, or all say the same.

    >>> boxed_side_by_side(r"Not \boxed{3}. So $x=\boxed{1}$ or $x=\boxed{-2}$.")
    ('1', '-2')
    """
    return after_thinking(reply, _boxes, nothing) or ()


def _boxes(said: str) -> tuple[str, ...] | None:
    found = list[str]()
    box = last_box(said)
    while box and box[0] and len(found) < MOST_BOXES:
        found.append(box[0].strip())
        said = said[: said.rfind(box[0], 0, box[1])]
        said = said[: max(said.rfind("\\boxed"), said.rfind("\\fbox"))]
        box = last_box(said)
        if not box or not _BETWEEN_BOXES.fullmatch(said, box[1]):
            break
    values = tuple(dict.fromkeys(reversed(found)))
    return values if len(values) > 1 else None


def _box(said: str) -> str | None:
    box = last_box(said)
    return box[0].strip() if box and box[0] else None


def _only_box(said: str) -> str | None:
    content, box = _box(said), last_box(said)
    beside = box_beside(said, box[1]) if box else None
    differs = beside and "\n" not in beside[1] and beside[0].strip() != content
    return None if differs else content


def _explicit(said: str) -> str | None:
    return _box(said) if last_box(said) else answer_line(said, _value)


def _value(text: str) -> str | None:
    """Return the formula that a text begins with, or all of it without emphasis and remarks."""
    box = last_box(text)
    if box:
        return box[0]
    maths = _MATHS.match(text.strip(" *_`"))
    if maths:
        return next(group for group in maths.groups() if group is not None).strip()
    plain = _REMARK.sub("", text.strip(" *_`")).strip(" *_`").removesuffix(".").strip()
    return plain or None


def _prose(said: str) -> str | None:
    """Read "the answer is $x$" or "Therefore the sum is $x$." in the last lines, not taken back."""
    tail = "\n".join([line for line in said[-TAIL:].splitlines() if line.strip()][-3:])
    stated = list(_ANSWER_IS.finditer(tail))
    if stated:
        value = tail[stated[-1].end() :]
        return None if _SECOND_THOUGHTS.search(value) else _value(_first_sentence(value))
    for sentence in reversed(SENTENCE_ENDS.split(tail)):
        if _SECOND_THOUGHTS.search(sentence):
            return None
        maths = list(_MATHS.finditer(sentence))
        if maths:
            ends = not sentence[maths[-1].end() :].strip(" .!*")
            concludes = ends and CONCLUDES.match(sentence.lstrip(" *"))
            return _value(maths[-1].group()) if concludes else None
    return None


def _first_sentence(text: str) -> str:
    """Return the formula that the text begins with, or what comes before its first full stop."""
    maths = _MATHS.match(text)
    return maths.group() if maths else SENTENCE_ENDS.split(text, maxsplit=1)[0]
