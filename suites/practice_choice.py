"""`practice-choice`: generated four-way science questions, shaped like GPQA questions."""

from random import Random

from inspect_ai import Task, task

from harness.answers import letter
from harness.records import Grade, Question
from harness.suite import Split
from harness.task import as_task
from sandbox import Box
from suites.practice import Draft, PracticeSuite
from suites.practice_choice_computed import COMPUTED
from suites.practice_choice_facts import FACTS
from suites.refusing import refusing

INSTRUCTION = (
    "Answer the following multiple choice question. The last line of your response should be of "
    "the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. "
    "Think step by step before answering."
)
"""The prompt of simple-evals for GPQA (github.com/openai/simple-evals @ee3b031)."""

LETTERS = "ABCD"


def choice_question(id: str, draft: Draft) -> Question:
    """Return the question with its options shuffled by a generator seeded with its id.

    The permutation in the metadata says which option, in alphabetical order, stands at each
    letter: a system may see it, and learns nothing about which is right.
    """
    options = sorted((draft.target, *draft.options))
    permutation = Random(f"{id}/choices").sample(range(4), 4)
    printed = [options[at] for at in permutation]
    lines = [f"{name}) {option}" for name, option in zip(LETTERS, printed, strict=True)]
    return Question(
        id=id,
        text="\n\n".join((INSTRUCTION, draft.text, "\n".join(lines))),
        kind="choice",
        target=LETTERS[printed.index(draft.target)],
        metadata={"choices": printed, "permutation": permutation},
    )


def grade_choice(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade by the letter; a reply without one is wrong and counted as unparsed."""
    found = letter(reply)
    if found is None:
        return Grade(value=0.0, extracted=None, explanation="no letter found")
    right = found == question.target
    verdict = "right" if right else f"expected {question.target}"
    return Grade(value=float(right), extracted=found, explanation=verdict)


SUITE = PracticeSuite(
    name="practice-choice",
    card=(
        "Generated four-way questions on elements, planets, units and short computations in "
        "physics and chemistry, in the answer format of GPQA. Practice for the pipeline, not a "
        "measure of a model's ability. Source: this repository, Apache-2.0. Chance is 25 %. No "
        "human baseline."
    ),
    topics={**FACTS, **COMPUTED},
    write=choice_question,
    judge=grade_choice,
)


@task
@refusing
def practice_choice(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated four-way science questions, GPQA-like; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
