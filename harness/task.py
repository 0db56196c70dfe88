"""The adapter from a `Suite` to an Inspect task, and the one from a `Grade` to a `Score`.

Without a solver the task generates with the model Inspect was given, so `inspect eval
suites/aime25 --model openai/gpt-5` works as any Inspect user expects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import anyio
import anyio.to_thread
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Solver, TaskState, generate

from harness.at_once import cores
from harness.errors import UserError
from harness.ledger.asking import recording
from harness.ledger.texts import facts_digest
from harness.place import PLACE
from harness.private import keep_files_private
from harness.progress import tick
from harness.records import PODIUM, Grade, Question
from harness.solver import ask_differently, question_of, sample_ref
from harness.suite import Judged, Split, Suite, Varied, at_epoch, prompt_of, usual_epochs

SCHEMA = 1
"""Version of podium's log metadata."""


def as_task(
    suite: Suite[Any],
    *,
    split: Split = "eval",
    limit: int | None = None,
    only: Sequence[str] | None = None,
    epochs: int | None = None,
    box: Any | None = None,
    max_sandboxes: int | None = None,
    solver: Solver | None = None,
    name: str | None = None,
    sandbox: str | tuple[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Task:
    """Return the Inspect task of one suite.

    Of these questions `only` some are asked, by id and in that order (None: all), each of them
    `epochs` times (None: as often as the suite usually does). `metadata` is
    added to podium's facts in the log header. UserError for a split that does not
    exist, a limit below 1, or a suite that needs a box and was given none.
    """
    questions = pick(suite, split, limit)
    if only is not None:
        known = {question.id: question for question in questions}
        questions = [known[id] for id in only]
    if suite.needs_box and box is None:
        raise UserError(
            f"Suite {suite.name!r} runs programs: name a sandbox with --box, or under "
            "`inspect eval` with -T box=subprocess."
        )
    refuse_no_epochs(epochs)
    if not suite.publishable:
        keep_files_private()
    return Task(
        dataset=MemoryDataset([sample(question) for question in questions], name=suite.name),
        setup=ask_differently(suite.at_epoch) if isinstance(suite, Varied) else None,
        solver=solver or generate(),
        scorer=as_scorer(suite, box, max_sandboxes),
        epochs=epochs or usual_epochs(suite),
        name=name or suite.name,
        sandbox=sandbox,
        version=suite.version,
        metadata={PODIUM: {**suite_facts(suite, split), **(metadata or {})}},
    )


def pick(suite: Suite[Any], split: Split = "eval", limit: int | None = None) -> Sequence[Question]:
    """Return the first `limit` questions of a split; UserError names what does not exist."""
    if limit is not None and limit < 1:
        raise UserError(f"--limit must be at least 1, not {limit}; leave it out for all questions.")
    if split not in suite.splits:
        known = ", ".join(suite.splits)
        raise UserError(f"Suite {suite.name!r} has no {split!r} split; it has: {known} (--split).")
    return suite.load(split)[:limit]


def suite_facts(suite: Suite[Any], split: Split) -> dict[str, Any]:
    """Return what a log says about its exam."""
    return {
        "schema": SCHEMA,
        "suite": suite.name,
        "suite_version": suite.version,
        "data_revision": suite.data_revision,
        "dates": suite.dates,
        "publishable": suite.publishable,
        "split": split,
        "prompt": prompt_of(suite),
    }


def refuse_no_epochs(epochs: int | None) -> None:
    """Raise UserError for a number of epochs that asks nothing."""
    if epochs is not None and epochs < 1:
        raise UserError(f"--epochs must be at least 1, not {epochs}.")


def sample(question: Question) -> Sample:
    """Return a question as an Inspect sample; `harness.solver.question_of` is the inverse."""
    return Sample(
        id=question.id,
        input=question.text,
        target=question.target or "",
        metadata={
            "kind": question.kind,
            "topic": question.topic,
            "question": dict(question.metadata),
        },
    )


def as_scorer(
    suite: Suite[Any], box: Any | None = None, max_sandboxes: int | None = None
) -> Scorer:
    """Return the Inspect scorer of a suite; its box grades `max_sandboxes` replies at once.

    A grader that cannot grade (sandbox down, disk full) leaves the sample unscored with the reason;
    it never becomes a zero.
    """
    place = PLACE.get()
    at_once = place.at_once or anyio.CapacityLimiter(max_sandboxes or cores())
    journal = place.journal

    @scorer(metrics=[mean(), stderr()], name=PODIUM)
    def graded() -> Scorer:
        async def verdict(state: TaskState, target: Target) -> Score:
            question = replace(question_of(state), target=target.text)
            question = at_epoch(suite, question, state.epoch)
            reply = state.output.completion
            try:
                if isinstance(suite, Judged) and suite.needs_judge(question):
                    with recording(journal, "scoring", sample_ref(state)):
                        return as_score(await suite.judged(state, question))
                if box is None and question.kind != "text":  # quick: no program, no algebra
                    return as_score(suite.grade(question, reply))
                grade = await anyio.to_thread.run_sync(
                    suite.grade, question, reply, box, limiter=at_once
                )
            except Exception as error:
                return unscored(error)
            return as_score(grade)

        async def score(state: TaskState, target: Target) -> Score:
            tick()
            found = await verdict(state, target)
            if journal:
                journal.note("grade", _graded(state, target, found))
            return found

        return score

    return graded()


def _graded(state: TaskState, target: Target, score: Score) -> dict[str, Any]:
    """Return what a journal keeps of a verdict: the rest, which may be secret, as a digest."""
    value = score.value if isinstance(score.value, int | float) else None
    return {
        "sample": asdict(sample_ref(state)),
        "value": value if value == value else None,
        "graded_sha256": facts_digest(state.input_text, target.text, score.answer),
    }


def as_score(grade: Grade) -> Score:
    """Return a grade as Inspect's score; `parsed` tells "wrong" from "no answer found"."""
    return Score(
        value=grade.value,
        answer=grade.extracted,
        explanation=grade.explanation,
        metadata={**grade.metadata, "parsed": grade.extracted is not None},
    )


def unscored(error: Exception) -> Score:
    """Return the score of a reply that we failed to grade: excluded from means, with its reason."""
    said = f"{type(error).__name__}: {error}"
    return Score.unscored(reason="scoring_failed", explanation=said)
