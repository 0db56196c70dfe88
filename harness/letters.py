"""Find the letter of a choice in a reply, or abstain."""

import re

from harness.reply_text import TAIL, after_thinking, answer_line, last_box, without_markup

_CHOICE = re.compile(
    r"(?:(?:option|choice)\s+)?[(\[{]?([A-D])[)\]}]?(?=\s*$|[).:;]|\s*[(]|,?\s+(?:because|since|as)\b)"
)
_ANSWER_IS_CHOICE = re.compile(
    r"\b(?:answer|choice|option)\s+is\s*:?\s*(?:(?:option|choice)\s+)?[(\[]?([A-D])"
    r"(?=[)\]]|\s*$|[.:;](?!\w)|,?\s+(?:because|since|as)\b)",
    re.M,
)


def letter(reply: str) -> str | None:
    r"""Return the choice A-D that the reply gives as its answer, or None.

    >>> letter("**Answer: $B$**"), letter(r"So \boxed{\text{(C)}}"), letter("Answer: Because")
    ('B', 'C', None)
    """
    return after_thinking(reply, _explicit_letter, _prose_letter)


def _explicit_letter(said: str) -> str | None:
    stated = answer_line(said, _stated_letter)
    if stated is not None:
        return stated
    box = last_box(said)
    return _stated_letter(box[0]) if box and box[0] else None


def _stated_letter(value: str) -> str | None:
    box = last_box(value)
    plain = without_markup((box[0] or "") if box else value[:TAIL]).strip(" _")
    if re.fullmatch(r"\(?[a-d]\)?\.?", plain):
        plain = plain.upper()
    choice = _CHOICE.match(plain)
    return choice.group(1) if choice else None


def _prose_letter(said: str) -> str | None:
    tail = "\n".join(without_markup(line) for line in said[-TAIL:].splitlines())
    stated = _ANSWER_IS_CHOICE.findall(tail)
    return stated[-1] if stated else None
