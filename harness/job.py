"""What the steps of one run share, and the running of an experiment's entries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import anyio
from inspect_ai import Task
from inspect_ai import task_with as _task_with  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.model import Model

from harness.boxes import OpenBox
from harness.compose import Catalogue, Facts, Request, seat_of, task_of
from harness.eval_set import Outcome, Settings, run_tasks
from harness.experiment import Entry, Experiment, task_name
from harness.ledger.asking import TaskJournal
from harness.ledger.journal import Head
from harness.ledger.spending import Standing, standing
from harness.place import Place, standing_at
from harness.pool import pool_models, slot_model
from harness.pool_file import PoolSpec
from harness.prices import Book
from harness.records import CONDUCTOR
from harness.reply_cache import PaidReplies
from harness.rewards.exams import Bare, whole_text
from harness.seating import seated
from harness.suite import Split, Suite
from harness.trials import trial_of


@dataclass(frozen=True, slots=True)
class Controls:
    """The choices that need parts of several spokes; harness/cli/ supplies them."""

    choose: Callable[[Mapping[str, float]], str]
    """Accuracy per worker, in pool order -> the best single worker."""
    make_plans: Callable[..., None]
    """(path, questions, pool, grade): write the oracle's plans that are still missing."""
    opened: Callable[[Path, Suite[Any], int], object]
    """Called when questions of an `eval` split are about to be asked, to write it down."""
    bare: Bare = whole_text
    """What a question asks, without its suite's instruction: how a question is known again."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request with everything it named, found and checked."""

    request: Request
    catalogue: Catalogue
    controls: Controls
    spec: PoolSpec
    book: Book
    box: OpenBox | None

    def box_for(self, suite: Suite[Any]) -> Any | None:
        """Return the box a suite grades in; None for suites that run no programs."""
        return self.box.box if self.box and suite.needs_box else None


@dataclass(frozen=True, slots=True)
class Sat:
    """How entries are sat that are no part of a result: what they are for, and of what."""

    purpose: str = "eval"
    title: str = "answering"
    only: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Suite -> ids of the questions that are asked; others ask all of them."""


def run_entries(job: Job, experiment: Experiment, log_dir: Path, how: Sat = Sat()) -> Outcome:
    """Run all entries of an experiment, old and new: Inspect skips what is finished.

    They are begun in the experiment's order, ten at a time: Inspect's eval set keeps the order of
    its tasks, and takes new ones before those that it resumes.
    """
    entries = sorted(experiment.entries, key=lambda row: row.order or 0)
    facts = Facts(
        spec=job.spec,
        book=job.book,
        split=cast(Split, experiment.split),
        purpose=how.purpose,
        box=job.box,
        only=how.only,
    )
    models = pool_models(job.spec, experiment.seed, experiment.time_scale)
    roles = {name: models.pop(name) for name in (CONDUCTOR,) if name in models}
    journals = [_journal(job, row, how.purpose) for row in entries]
    places = anyio.CapacityLimiter(job.box.most) if job.box else None
    tasks: list[Task] = []
    for row, journal in zip(entries, journals, strict=True):
        with standing_at(_place(job, row, journal, places)):
            task = task_of(row, experiment, job.catalogue, facts)
        tasks.append(_task_with(task, model_roles=_conducted(job, row, roles)))
    limit = job.request.max_usd
    settings = Settings(
        log_dir=log_dir,
        limit=experiment.limit,
        max_usd=limit,
        max_usd_per_query=job.request.max_usd_per_query,
        already=standing(job.request.log_dir, job.book) if limit else Standing(),
        display=job.request.display,
        title=how.title,
    )
    try:
        return run_tasks(tasks, models, job.book, settings)
    finally:
        for journal in journals:
            journal.close()


def _place(
    job: Job, row: Entry, journal: TaskJournal, places: anyio.CapacityLimiter | None
) -> Place:
    """Return where one entry stands; what runs programs shares `places` with the other entries."""
    suite = job.catalogue.suites[row.suite]
    spec = seated(job.spec, seat_of(row.system, job.catalogue))
    known = Place(job.request.log_dir, spec, journal)
    box = job.box_for(suite)
    if box is None or places is None:
        return known
    return replace(known, trial=trial_of(suite, box, places), at_once=places)


def _conducted(job: Job, row: Entry, roles: Mapping[str, Model]) -> dict[str, Model]:
    """Return who conducts one entry: its own conductor, else the pool's, where there is one.

    What a whole eval set says of a role would come before what a task says, so the set names none.
    """
    seat = seat_of(row.system, job.catalogue)
    return {CONDUCTOR: slot_model(seat)} if seat else {**roles}


def _journal(job: Job, row: Entry, purpose: str) -> TaskJournal:
    """Return the journal of one entry: at the root of the run, whatever its logs' folder is."""
    head = Head(
        task=task_name(row.suite, row.system, purpose, row.part),
        suite=row.suite,
        system=row.system,
        label=job.spec.label,
        book=job.book.name,
        book_sha256=job.book.sha256,
        shown=job.catalogue.suites[row.suite].publishable,
    )
    return TaskJournal(job.request.log_dir, head, PaidReplies(job.request.log_dir))
