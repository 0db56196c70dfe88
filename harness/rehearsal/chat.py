"""What a worker sees, taken apart: the question, its own subtask, and what others said before.

The shapes are those of harness/execute.py: earlier steps as past turns, or numbered replies in the
system message (Mixture-of-Agents). Anything else is read as one plain question.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inspect_ai.model import ChatMessage

Asked = Literal["number", "choice", "program", "plan"]
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
    asked: Asked
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
    return Chat(question, subtask, replies, system, options, _asked(first, options), bool(numbered))


def _bounded(text: str) -> str:
    """Return a text of bounded length with bounded numbers, so that no reader is overwhelmed."""
    return re.sub(r"\d{400,}", lambda run: run[0][:400], text[:MAX_CHARS])


def _asked(text: str, options: tuple[tuple[str, str], ...]) -> Asked:
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


def final_answer(reply: str, asked: Asked) -> str | None:
    """Return the answer that an earlier reply ends with, None when it commits to none."""
    if asked == "program":
        blocks = _CODE.findall(reply)
        return str(blocks[-1]).strip("\n") if blocks else None
    if asked == "choice":
        letters = _LETTER.findall(reply)
        return str(letters[-1]).upper() if letters else None
    boxed = _BOXED.findall(reply) or _PROSE.findall(reply)
    return str(boxed[-1]).strip() if boxed and re.fullmatch(r"-?\d+", boxed[-1].strip()) else None
