"""What a question asks, without the instruction that its suite puts around it.

For finding one question in two suites, whatever the instruction around it.
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
_TESTS = mbpp.PROMPT.partition("{text}")[2].partition("{tests}")[0]
"""What stands between an MBPP problem and its tests, which are left out with it."""


def bare(question: Question) -> str:
    """Return the question itself; of a choice without its options, of MBPP without its tests."""
    text = rlpr_rows.asked(question)
    contest = _CONTEST.fullmatch(text)
    if contest:
        return contest.group(1).strip()
    for instruction in INSTRUCTIONS:
        text = text.strip().removeprefix(instruction).removesuffix(instruction)
    if question.kind == "choice" and _FIRST_OPTION in text:
        text = text.rpartition(_FIRST_OPTION)[0]
    return text.partition(_TESTS)[0].strip()
