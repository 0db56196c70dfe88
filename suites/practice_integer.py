r"""`practice-integer`: generated questions with an integer answer, shaped like AIME questions."""

from inspect_ai import Task, task

from harness.extract import extract_integer
from harness.inspect_adapters import as_task
from harness.records import Grade, Question
from harness.suite import Split
from sandbox import Box
from suites.practice import Draft, PracticeSuite
from suites.practice_integer_counting import COUNTING
from suites.practice_integer_numbers import NUMBERS
from suites.refusing import refusing

INSTRUCTION = (
    "Put your final answer within \\boxed{}.\nThe answer is an integer between 0 and 999 inclusive."
)
"""MathArena's suffix for AIME 2025 (github.com/eth-sri/matharena @e927660), as in `aime25`."""


def integer_question(id: str, draft: Draft) -> Question:
    """Return the question with its answer-format instruction."""
    return Question(
        id=id, text=f"{draft.text}\n\n{INSTRUCTION}", kind="integer", target=draft.target
    )


def grade_integer(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade by equality of integers; a reply without one is wrong and counted as unparsed."""
    found = extract_integer(reply)
    if found is None:
        return Grade(value=0.0, extracted=None, explanation="no integer answer found")
    right = str(found) == question.target
    verdict = "right" if right else f"expected {question.target}"
    return Grade(value=float(right), extracted=str(found), explanation=verdict)


SUITE = PracticeSuite(
    name="practice-integer",
    version="3-A",
    topics={**NUMBERS, **COUNTING},
    write=integer_question,
    judge=grade_integer,
)


@task
@refusing
def practice_integer(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated integer-answer questions, AIME-like; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
