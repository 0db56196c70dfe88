"""What multiple-choice exams share: the instruction, how options are printed, and the grade.

Not here: where questions come from, and in which order an exam puts its options.
"""

from collections.abc import Sequence
from typing import Any

from harness.extract import extract_choice
from harness.records import Grade, Question
from sandbox import Box

LETTERS = "ABCD"

INSTRUCTION = (
    "Answer the following multiple choice question. The last line of your response should be of "
    "the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. "
    "Think step by step before answering."
)
"""QUERY_TEMPLATE_MULTICHOICE of github.com/openai/simple-evals @ ee3b031, its first paragraph."""


def choice_text(asked: str, printed: Sequence[str], instruction: str = INSTRUCTION) -> str:
    """Return what a worker is sent: instruction, question and the options in this order."""
    return "\n\n".join((instruction, asked, option_lines(printed)))


def option_lines(printed: Sequence[str]) -> str:
    r"""Return four options in this order, one after another, each behind its letter.

    >>> option_lines(["1", "2", "4", "8"])
    'A) 1\nB) 2\nC) 4\nD) 8'
    """
    return "\n".join(f"{name}) {option}" for name, option in zip(LETTERS, printed, strict=True))


def choice_metadata(printed: Sequence[str]) -> dict[str, Any]:
    """Return what a system may see: the options as printed, and their permutation.

    The permutation says which option, in alphabetical order, stands at each letter. It is a
    function of what is printed, so it says nothing about which is right.
    """
    places = sorted(range(len(printed)), key=lambda place: printed[place])
    ranks = {place: rank for rank, place in enumerate(places)}
    return {"choices": list(printed), "permutation": [ranks[at] for at in range(len(printed))]}


def grade_choice(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade by the letter, or by the one option whose own text is stated where a letter was due.

    A reply without either is wrong and counted as unparsed. ValueError for a sealed question.
    """
    if question.target is None:
        raise ValueError(f"{question.id} is sealed: it cannot be graded")
    found = extract_choice(reply, question.metadata.get("choices", ()))
    if found is None:
        return Grade(value=0.0, extracted=None, explanation="no letter found")
    right = found == question.target
    verdict = "right" if right else f"expected {question.target}"
    return Grade(value=float(right), extracted=found, explanation=verdict)
