"""Remove a reply's reasoning: the text between the reasoning marks of any known model.

The marks (`<think>`, `</think>`) are data, in reasoning_marks.toml, each with its source and an
example. The text outside reasoning is the reply; an answer only in closed reasoning does not count.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MARKS_FILE = Path(__file__).parent / "reasoning_marks.toml"

INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\ufe0f\ufeff]")
"""Characters without width: spaces, joiners, direction marks and a variation selector."""

_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|endoftext|eom_id|return|END_OF_TURN_TOKEN)\|>|<end_of_turn>|<turn\|>"
    r"|</s>\s*$|<\uff5c[^>]{1,30}\uff5c>"
    r"|<\|end\|>(?!\s*(?:<\|start\|>|<\|channel\|>))"  # harmony ends a message with it, not a turn
)
_BOX_MARKS = (("<|begin_of_box|>", "\\boxed{"), ("<|end_of_box|>", "}"))
_SPECIALS_STRIPPED = re.compile(r"\s*(?:(analysis|commentary)|final)(?=[A-Z\d\\$*#`\[{(])")
"""The start of a reply in OpenAI's harmony format whose special tokens were removed."""

_SIGNS = ("<", "\u25c1", "THINK]", "assistantfinal")
"""A reply without any of these texts can have reasoning marks only at its very start."""


def spoken(reply: str) -> tuple[str, bool]:
    r"""Return a reply's text outside reasoning, and whether the reply ends within reasoning.

    A closing mark (`</think>`) without an opening mark ends reasoning that began in the prompt. If
    a reply ends within reasoning, it was cut off: all that follows the last closing mark is
    returned, but no text if a whole message of harmony's analysis or commentary ends the reply.

    >>> spoken("<think>7?</think>8"), spoken("analysis7?assistantfinal8"), spoken("[THINK]7")
    (('8', False), ('8', False), ('[THINK]7', True))
    """
    ended = "<|channel|>" in reply and reply.rstrip().endswith("<|end|>")
    reply = _first_turn(reply if reply.isascii() else INVISIBLE.sub("", reply))
    reply, began = _behind_first(reply)
    if not any(sign in reply for sign in _SIGNS):
        return reply, began
    outside, cut_off = _outside(reply, began)
    if cut_off and ended:
        return "", True
    for mark, text in _BOX_MARKS:
        outside = outside.replace(mark, text)
    return _pattern(False, "answer").sub("", outside), cut_off


@dataclass(frozen=True, slots=True)
class ReasoningMark:
    """A model's marks around reasoning, e.g. `<think>`; the fields: see reasoning_marks.toml."""

    name: str
    source: str
    open: tuple[str, ...]
    close: tuple[str, ...]
    answer: tuple[str, ...]
    example: str
    first: bool = False


@cache
def reasoning_marks() -> tuple[ReasoningMark, ...]:
    """Return the marks that begin and end reasoning, e.g. `<think>`, from reasoning_marks.toml."""
    rows = tomllib.loads(MARKS_FILE.read_text(encoding="utf-8"))["mark"]
    lists = ("open", "close", "answer")
    return tuple(ReasoningMark(**row | {key: tuple(row[key]) for key in lists}) for row in rows)


def _first_turn(reply: str) -> str:
    end = _TURN_ENDS.search(reply) if "<" in reply else None
    return reply[: end.start()] if end and reply[: end.start()].strip() else reply


def _behind_first(reply: str) -> tuple[str, bool]:
    """Return a reply without the reasoning marks at its start, and whether they begin reasoning."""
    if stripped := _SPECIALS_STRIPPED.match(reply):
        return reply[stripped.end() :], bool(stripped[1])
    start = reply[:80].lstrip()
    for mark in reasoning_marks():
        if mark.first and start.startswith(mark.open):
            ends = [place + len(text) for text in mark.close if (place := reply.rfind(text)) >= 0]
            return (reply[max(ends) :], False) if ends else (reply, True)
    return reply, False


def _outside(reply: str, began: bool) -> tuple[str, bool]:
    pieces, start, opened = list[str](), 0, 0 if began else None
    words = "assistant" in reply
    for mark in _pattern(words, "open", "close").finditer(reply):
        if mark[0].lower() in _texts("open"):
            opened = mark.start() if opened is None else opened
        elif opened is None:
            pieces, start = [], mark.end()
        else:
            pieces.append(reply[start:opened])
            start, opened = mark.end(), None
    tail = reply[start:]
    if opened is not None:
        return "".join([*pieces, tail]), True
    return "\n\n".join(piece for piece in (*pieces, tail) if piece.strip()), False


@cache
def _texts(field: str) -> frozenset[str]:
    """Return the texts of reasoning marks in a field (`open`, `close`, `answer`), in lower case.

    Marks that count only at the start of a reply (`first = true`) are left out.
    """
    marks = [mark for mark in reasoning_marks() if not mark.first]
    return frozenset(text.lower() for mark in marks for text in getattr(mark, field))


@cache
def _pattern(words: bool, *fields: str) -> re.Pattern[str]:
    """Return a pattern of all reasoning marks in `fields`, e.g. `open`.

    Marks that start with a letter (`assistantfinal`) are in it only if `words`.
    """
    texts = sorted({text for name in fields for text in _texts(name)}, key=len, reverse=True)
    symbols = "|".join(re.escape(text[1:]) for text in texts if not text[0].isalpha())
    letters = "".join(f"|{text}" for text in texts if words and text[0].isalpha())
    return re.compile(rf"[<\[\u25c1](?:{symbols}){letters}", re.IGNORECASE)
