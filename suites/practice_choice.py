"""`practice-choice`: generated four-way science questions, shaped like GPQA questions."""

from random import Random

from inspect_ai import Task, task

from harness.inspect_adapters import as_task
from harness.records import Question
from harness.suite import Split
from suites.choices import LETTERS, choice_metadata, choice_text, grade_choice
from suites.practice import Draft, PracticeSuite
from suites.practice_choice_computed import COMPUTED
from suites.practice_choice_facts import FACTS
from suites.refusing import refusing


def choice_question(id: str, draft: Draft) -> Question:
    """Return the question with its options shuffled by a generator seeded with its id."""
    options = sorted((draft.target, *draft.options))
    printed = [options[at] for at in Random(f"{id}/choices").sample(range(4), 4)]
    return Question(
        id=id,
        text=choice_text(draft.text, printed),
        kind="choice",
        target=LETTERS[printed.index(draft.target)],
        metadata=choice_metadata(printed),
    )


SUITE = PracticeSuite(
    name="practice-choice",
    version="3-A",
    topics={**FACTS, **COMPUTED},
    write=choice_question,
    judge=grade_choice,
)


@task
@refusing
def practice_choice(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated four-way science questions, GPQA-like; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
