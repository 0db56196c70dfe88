"""What a question asks, without the instruction that its suite puts around it.

For finding one question in two suites, whatever the instruction, and whatever the order of options.
"""

import re

from harness.records import Question
from suites import aime25, bigcodebench, choices, humaneval, mbpp, practice_integer, rlpr_rows

INSTRUCTIONS = (
    choices.INSTRUCTION,
    aime25.SUFFIX,
    aime25.PREFIX,  # Lighteval's, which MATH-500 has too
    practice_integer.INSTRUCTION,
    humaneval.INSTRUCTION.strip(),
    bigcodebench.INSTRUCTION,
    mbpp.PROMPT.partition("{text}")[0].strip(),
)
"""What suites put before or after all their questions."""

_CONTEST = re.compile(r".*### Question:\n(.*)\n\n### Format: .*", re.S)
_FIRST_OPTION = "\n\nA) "


def bare(question: Question) -> str:
    """Return the question itself; a choice's options follow it in alphabetical order.

    Options belong to the question: "Which of these is true?" is asked with many.
    """
    text = rlpr_rows.asked(question)
    contest = _CONTEST.fullmatch(text)
    if contest:
        return contest.group(1).strip()
    for instruction in INSTRUCTIONS:
        text = text.strip().removeprefix(instruction).removesuffix(instruction)
    printed = question.metadata.get("choices", ())
    if question.kind == "choice" and printed:
        text = "\n".join((text.rpartition(_FIRST_OPTION)[0], *sorted(map(str, printed))))
    return text.strip()
