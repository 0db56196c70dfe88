"""What a run has left to ask: the pairs of each entry that is there, and of those it will make.

The same order and the same choices as harness/run.py makes, without making them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from harness.compose import BEST_SINGLE, entry, manifest_key
from harness.entries import arguments_of, is_chosen, is_given_best, is_late, refuse_untriable
from harness.eval_set import answered_pairs
from harness.experiment import Entry, Experiment, task_name
from harness.job import Job
from harness.learning.teaching import Lessons
from harness.learning.tuning import Training
from harness.records import Question
from harness.selection import SELECTION, each_of, lessons_of, single_entries
from harness.suite import Split, Suite, at_epoch
from harness.task import pick

Pair = tuple[Question, int]
"""A sealed question as an epoch asks it, and the epoch."""
CHOOSING = "choosing best-single"
TRAINING = "training"


@dataclass(frozen=True, slots=True)
class Work:
    """Pairs to ask, by one entry; several entries are alternatives, of which nobody knows which."""

    suite: Suite[Any]
    title: str
    pairs: tuple[Pair, ...]
    entries: tuple[Entry, ...]
    purpose: str = "eval"
    budget: int | None = None
    """Worker calls, where what is tried with them is not known beforehand; `pairs` are then some
    of the questions."""
    steps: int | None = None
    """The most worker calls of a question, of a system that has not learnt yet what it will ask."""


@dataclass(frozen=True, slots=True)
class _Run:
    """The run that is estimated."""

    job: Job
    experiment: Experiment
    """As its directory has it, else as it will begin."""


def works(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> Iterator[Work]:
    """Yield what is to be asked: the entries that are there, then new ones, as the run makes them.

    A run finishes every entry of its directory, whatever it was asked for.
    """
    run = _Run(job, experiment)
    rows = {row.name: row for row in experiment.entries}
    known = {name: job.catalogue.suites[name] for name in experiment.suite_versions}
    for row in rows.values():
        if row.suite in known:
            yield _entry_work(run, known[row.suite], (row,))
    for suite in suites:
        new = [one for one in systems if task_name(suite.name, one) not in rows]
        yield from _new_works(run, suite, new)


def _new_works(run: _Run, suite: Suite[Any], systems: Sequence[str]) -> Iterator[Work]:
    experiment, parts = run.experiment, run.job.catalogue
    lessons = lessons_of(run.job, suite, experiment)
    choosing = any(is_chosen(run.job, name) for name in systems)
    if choosing and lessons:
        yield from _selection(run, lessons)
    for system in systems:
        manifest = parts.systems[manifest_key(system)]
        if manifest.explorer is not None and lessons:
            yield _training(run, suite, system, lessons)
        pending = choosing and lessons is not None
        made = _entry_work(run, suite, _choices(run, suite, system, pending=pending))
        if manifest.learns and manifest.expected is not None:
            made = replace(made, steps=manifest.expected(len(run.job.spec.names), {})[1])
        yield made
    late = [one for one in systems if one == BEST_SINGLE or is_late(one, run.job)]
    if late and lessons is None:  # chosen in hindsight, among all of them
        known = {*systems, *(row.system for row in experiment.entries if row.suite == suite.name)}
        for row in single_entries(run.job, suite):
            if row.system not in known:
                yield _entry_work(run, suite, (row,))


def _choices(run: _Run, suite: Suite[Any], system: str, *, pending: bool) -> tuple[Entry, ...]:
    """Return the entry of a new system: one per worker where the best one is not known yet."""
    job, seed = run.job, run.experiment.seed
    best: list[dict[str, Any]] = [{}]
    if system == BEST_SINGLE or (pending and is_given_best(job, system)):
        facts = {"chosen_on": "train", "n": 1}
        best = [{"worker": name, **facts} for name in job.spec.names]
    made = (arguments_of(job, suite, system, one, seed) for one in best)
    return tuple(entry(suite.name, system, job.catalogue, args) for args in made)


def _entry_work(run: _Run, suite: Suite[Any], entries: tuple[Entry, ...]) -> Work:
    experiment = run.experiment
    questions = pick(suite, cast(Split, experiment.split), experiment.limit)
    done = answered_pairs(run.job.request.log_dir).get(entries[0].name, frozenset())
    pairs = tuple(
        (at_epoch(suite, one, epoch).sealed(), epoch)
        for epoch in range(1, experiment.epochs[suite.name] + 1)
        for one in questions
        if (one.id, epoch) not in done
    )
    return Work(suite, entries[0].system, pairs, entries)


def _selection(run: _Run, lessons: Lessons) -> Iterator[Work]:
    """Yield, per worker, the train questions on which the best single will be chosen."""
    done = answered_pairs(run.job.request.log_dir / SELECTION)
    each = each_of(run.job, run.experiment, lessons)
    for suite in lessons.suites:
        questions = lessons.questions[suite.name][:each]
        for row in single_entries(run.job, suite):
            asked = done.get(task_name(suite.name, row.system, SELECTION), frozenset())
            pairs = tuple((one.sealed(), 1) for one in questions if (one.id, 1) not in asked)
            yield Work(suite, f"{CHOOSING}: {row.system}", pairs, (row,), SELECTION)


def _training(run: _Run, suite: Suite[Any], system: str, lessons: Lessons) -> Work:
    """Return the tries by which a system will learn: their number is known, and no more."""
    training = Training(run.job, run.experiment, suite, system, lessons)
    refuse_untriable(training)
    task = training.given
    left = max(0, task.calls - training.spent)
    pairs = tuple((question, 1) for question in task.questions[: left or 0])
    made = entry(suite.name, system, run.job.catalogue, {})
    return Work(suite, f"{TRAINING} {system}", pairs, (made,), SELECTION, left)
