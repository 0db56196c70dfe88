"""`practice-code`: generated programming problems judged on hidden tests, as on LiveCodeBench."""

from dataclasses import dataclass

from inspect_ai import Task, task

from harness.extract import extract_program
from harness.records import Grade, Question
from harness.suite import Split
from sandbox import IMAGE, Box
from suites.boxed import boxed_task
from suites.practice import Draft, PracticeSuite
from suites.practice_code_lists import LISTS
from suites.practice_code_numbers import NUMBERS
from suites.practice_code_texts import TEXTS
from suites.programs import judge, read_tests
from suites.refusing import refusing
from suites.shown_tests import tried


def code_question(id: str, draft: Draft) -> Question:
    """Return the question; its prompt already says how to answer."""
    return Question(
        id=id, text=draft.text, kind="program", target=draft.target, metadata=draft.metadata
    )


def grade_code(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade by running the reply's program on all tests in a box; raises what the box raises."""
    if box is None:
        raise ValueError("practice-code runs programs: name a sandbox with --box.")
    if question.target is None:
        raise ValueError(f"{question.id} is sealed, so it cannot be graded.")
    program = extract_program(reply)
    if program is None:
        return Grade(value=0.0, extracted=None, explanation="no program found")
    judgement = judge(program, read_tests(question.target), box)
    return Grade(
        value=float(judgement.passed),
        extracted=program,
        explanation=judgement.summary,
        metadata={"verdicts": list(judgement.verdicts), "cpu_s": round(judgement.cpu_s, 3)},
    )


@dataclass(frozen=True, slots=True)
class PracticeCode(PracticeSuite):
    """The practice suite whose questions show some of their tests."""

    def try_public(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Return the share of the examples that pass; SandboxError when the box fails."""
        return tried(question, extract_program(reply), box)


SUITE = PracticeCode(
    name="practice-code",
    topics={**LISTS, **TEXTS, **NUMBERS},
    write=code_question,
    judge=grade_code,
    version="2-A",
    needs_box=True,
    image=IMAGE,
)


@task
@refusing
def practice_code(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    box: str | None = None,
    max_sandboxes: int | None = None,
) -> Task:
    """Generated programming problems; splits train, validation and eval.

    Programs run in the sandbox that --sandbox names (docker if none does), or in one of podium's
    (-T box=docker); at most `max_sandboxes` run at once (all cores).
    """
    return boxed_task(
        SUITE, box, split=split, limit=limit, epochs=epochs, max_sandboxes=max_sandboxes
    )
