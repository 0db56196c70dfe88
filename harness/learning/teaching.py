"""What may teach the systems of a run: declared train questions, and how many calls they may take.

An exam's systems learn from its own train split, or from those that `--train-on` names. A question
that an exam of the run asks teaches nothing: it is left out. Not here: asking the questions
(harness/selection.py, harness/learning/tuning.py), and learning (baselines/).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from harness.compose import Catalogue, manifest_key
from harness.errors import UserError
from harness.experiment import Experiment
from harness.records import Question
from harness.rewards.exams import Bare, Exam, exam_of, overlaps
from harness.suite import Split, Suite

TRAIN: Split = "train"


@dataclass(frozen=True, slots=True)
class Lessons:
    """What teaches for one exam."""

    suites: tuple[Suite[Any], ...]
    questions: Mapping[str, tuple[Question, ...]]
    """Suite -> its questions that no exam of the run asks, in the suite's order."""
    shared: int = 0
    """Questions that were left out, because an exam of the run asks them."""

    def first(self, each: int) -> dict[str, tuple[str, ...]]:
        """Return the ids of the first `each` questions of every suite."""
        return {name: tuple(one.id for one in all_[:each]) for name, all_ in self.questions.items()}

    def in_turn(self) -> tuple[tuple[str, Question], ...]:
        """Return suites and questions, one of each suite after the other, so that a few are of all.

        Questions are sealed.
        """
        longest = max((len(all_) for all_ in self.questions.values()), default=0)
        return tuple(
            (name, all_[at].sealed())
            for at in range(longest)
            for name, all_ in self.questions.items()
            if at < len(all_)
        )


def teachers(suite: Suite[Any], experiment: Experiment, catalogue: Catalogue) -> list[Suite[Any]]:
    """Return the suites whose train splits teach for an exam; empty when there is none.

    UserError for a name of `--train-on` that is no suite, or that has no train split.
    """
    found: list[Suite[Any]] = []
    for name in experiment.train_on or (suite.name,):
        if name not in catalogue.suites:
            known = ", ".join(sorted(catalogue.suites))
            raise UserError(f"--train-on: there is no suite {name!r}; known suites: {known}.")
        teacher = catalogue.suites[name]
        if TRAIN in teacher.splits:
            found.append(teacher)
        elif experiment.train_on:
            raise UserError(f"--train-on: suite {name!r} has no train split to learn from.")
    if experiment.split == TRAIN and suite.name in {one.name for one in found}:
        return []  # what is learnt on the exam itself is learnt in hindsight
    return found


def must_learn(system: str, catalogue: Catalogue) -> bool:
    """Say whether a system cannot run without a train split."""
    manifest = catalogue.systems[manifest_key(system)]
    return manifest.learns or "train" in manifest.needs


def refuse_untaught(
    suites: Sequence[Suite[Any]],
    systems: Sequence[str],
    experiment: Experiment,
    catalogue: Catalogue,
) -> None:
    """Raise UserError for a system that has nothing to learn from on some exam."""
    learners = [name for name in systems if must_learn(name, catalogue)]
    for suite in suites:
        if not teachers(suite, experiment, catalogue) and learners:
            other = "other " if suite.name in experiment.train_on else ""
            raise UserError(
                f"{learners[0]} must learn before it can sit {suite.name!r}, and there is no train "
                f"split of it apart from the exam: name {other}suites to learn from with "
                "--train-on SUITE."
            )


def calls_to_learn(experiment: Experiment, selection_limit: int, workers: int) -> int:
    """Return the worker calls that each system of a run may spend on learning."""
    return experiment.train_calls or selection_limit * workers


def questions_each(calls: int, workers: int, suites: int) -> int:
    """Return how many questions of each train split every worker is asked alone.

    >>> questions_each(320, 8, 1), questions_each(320, 8, 3)
    (40, 13)
    """
    return calls // workers // max(suites, 1)


def refuse_too_few(calls: int | None, workers: int, suites: int) -> None:
    """Raise UserError for a budget that does not ask every worker once."""
    if calls is not None and questions_each(calls, workers, suites) < 1:
        least = workers * max(suites, 1)
        raise UserError(
            f"--train-calls {calls} does not ask each of {workers} workers once on every suite "
            f"that teaches: make it at least {least}."
        )


def lessons(
    taught: Sequence[Suite[Any]], exams: Sequence[Suite[Any]], experiment: Experiment, bare: Bare
) -> Lessons:
    """Return the questions that teach, without those that an exam asks.

    The same question is known by its id within a suite, and by its text's digest across suites
    (harness/rewards/exams.py). UserError when nothing is left of a train split.
    """
    split = cast(Split, experiment.split)
    asked = [exam_of(suite, split if split in suite.splits else "eval") for suite in exams]
    left: dict[str, tuple[Question, ...]] = {}
    shared = 0
    for teacher in taught:
        whole = exam_of(teacher, TRAIN)
        gone = {one.question for one in overlaps([whole], asked, bare)} | _same_ids(whole, asked)
        shared += len(gone)
        left[teacher.name] = tuple(q for id, q in whole.questions.items() if id not in gone)
        if not left[teacher.name]:
            raise UserError(
                f"Every train question of {teacher.name!r} is asked by an exam of this run: name "
                "other suites with --train-on."
            )
    return Lessons(tuple(taught), left, shared)


def _same_ids(training: Exam, exams: Sequence[Exam]) -> set[str]:
    same = [exam for exam in exams if exam.suite.name == training.suite.name]
    return {id for exam in same for id in exam.questions} & training.questions.keys()
