"""What a run has left to ask: the pairs of each entry that is there, and of those it will make.

The same order and the same choices as harness/run.py makes, without making them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from harness.compose import BEST_SINGLE, entry, runs_on_best
from harness.entries import arguments_of
from harness.eval_set import answered_pairs
from harness.experiment import Entry, Experiment, task_name
from harness.job import Job
from harness.records import Question
from harness.selection import SELECTION, single_entries
from harness.suite import Split, Suite, at_epoch
from harness.task import pick

Pair = tuple[Question, int]
"""A sealed question as an epoch asks it, and the epoch."""
CHOOSING = "choosing best-single"


@dataclass(frozen=True, slots=True)
class Work:
    """Pairs to ask, by one entry; several entries are alternatives, of which nobody knows which."""

    suite: Suite[Any]
    title: str
    pairs: tuple[Pair, ...]
    entries: tuple[Entry, ...]
    purpose: str = "eval"


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
    experiment = run.experiment
    teachable = "train" in suite.splits and experiment.split != "train"
    choosing = teachable and any(runs_on_best(name, run.job.catalogue) for name in systems)
    if choosing:
        yield from _selection(run.job, suite)
    for system in systems:
        yield _entry_work(run, suite, _choices(run, suite, system, pending=choosing))
    if BEST_SINGLE in systems and not teachable:  # it is chosen in hindsight, among all of them
        known = {*systems, *(row.system for row in experiment.entries if row.suite == suite.name)}
        for row in single_entries(run.job, suite):
            if row.system not in known:
                yield _entry_work(run, suite, (row,))


def _choices(run: _Run, suite: Suite[Any], system: str, *, pending: bool) -> tuple[Entry, ...]:
    """Return the entry of a new system: one per worker where the best one is not known yet."""
    job, seed = run.job, run.experiment.seed
    best: list[dict[str, Any]] = [{}]
    if system == BEST_SINGLE or (pending and runs_on_best(system, job.catalogue)):
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


def _selection(job: Job, suite: Suite[Any]) -> Iterator[Work]:
    """Yield, per worker, the train questions on which the best single will be chosen."""
    done = answered_pairs(job.request.log_dir / SELECTION)
    questions = pick(suite, "train", job.request.selection_limit)
    for row in single_entries(job, suite):
        asked = done.get(task_name(suite.name, row.system, SELECTION), frozenset())
        pairs = tuple((one.sealed(), 1) for one in questions if (one.id, 1) not in asked)
        yield Work(suite, f"{CHOOSING}: {row.system}", pairs, (row,), SELECTION)
