"""One run, from request to logs."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from harness.boxes import Boxes, OpenBox, open_run_box, select_box
from harness.budget import Spend
from harness.errors import PodiumError, UserError
from harness.inspect_adapters import pick
from harness.ledger.journal import mend
from harness.ledger.manifest import manifested
from harness.ledger.system_runs import spent_so_far
from harness.ledger.totals import SpentSoFar
from harness.pool_config import PoolSpec
from harness.records import Question
from harness.regrade import regrade_dir, retry_ungraded
from harness.reply_cache import PaidReplies
from harness.run.catalogue import ORACLE, Catalogue, RunRequest
from harness.run.entries import (
    deferred_entries,
    has_deferred,
    plans_of,
    refuse_other_cards,
    why_taught,
    why_unlearnable,
    with_entries,
)
from harness.run.evaluate import (
    Controls,
    Job,
    RunOutcome,
    answered_counts,
    logged_samples,
    run_entries,
)
from harness.run.experiment import Experiment, check_experiment, lock_experiment, open_experiment
from harness.run.lessons import training_suites
from harness.run.preflight import refuse_listeners
from harness.run.request import RequestReader, ResolvedRequest, reason_of
from harness.suite import Suite

# § One run, from request to logs: refuse, choose the controls, run the eval set, say what is
# § left.
# §
# § An experiment can be resumed, extended by systems and suites, and killed at any moment:
# § choices that
# § cost calls (the best single worker, the oracle's plans) are stored with it, and the eval
# § set asks
# § only what has no answer yet.


def run(request: RunRequest, catalogue: Catalogue, controls: Controls) -> RunOutcome:
    """Run a request to its end or to the point where it can be resumed.

    Raises UserError, before the first call and before anything is written, for everything that can
    be known to fail.
    """
    with prepare_run(request, catalogue, controls) as made:
        for reason in made.reasons():
            raise UserError(reason)
        with lock_experiment(request.log_dir), manifested(request.log_dir):
            mend(request.log_dir)
            experiment = open_experiment(request.log_dir, made.experiment)
            with keep_until_logged(request.log_dir) as replies:
                outcome = _run(made.job, made.asked.suites, made.asked.systems, experiment)
                if outcome.finished:
                    replies.clear()  # whatever a clock that was set makes of times
                return outcome


@contextmanager
def keep_until_logged(log_dir: Path) -> Generator[PaidReplies]:
    """Let go of the replies of samples that are in their logs, before and after what is within.

    A judge's reply is in no log before a newer one is written, so what came since is kept.
    """
    replies = PaidReplies(log_dir)
    if replies.path and replies.path.exists():
        replies.forget(logged_samples(log_dir))
    try:
        yield replies
    finally:
        with suppress(PodiumError, OSError):  # the next sitting tidies up as well
            if replies.path and replies.path.exists():
                replies.forget(logged_samples(log_dir))
        replies.close()


@contextmanager
def prepare_run(
    request: RunRequest, catalogue: Catalogue, controls: Controls
) -> Generator["Preparation"]:
    """Yield the preparation of a run; its box stays open within."""
    with ExitStack() as stack:
        yield Preparation(RequestReader(request, catalogue), controls, stack)


@dataclass(slots=True)
class Preparation:
    """All that a run needs, and all that speaks against it: `podium run` and `podium doctor` alike.

    Nothing is asked or written here.
    """

    reader: RequestReader
    controls: Controls
    stack: ExitStack
    _job: Job | None = None
    _experiment: Experiment | None = None

    @property
    def asked(self) -> ResolvedRequest:
        """The request as it was read."""
        return self.reader.asked

    @property
    def job(self) -> Job:
        """The job; there once `reasons` has been gone through."""
        assert self._job is not None, "reasons() prepares"
        return self._job

    @property
    def experiment(self) -> Experiment:
        """The experiment that is asked for, its box and images named."""
        assert self._experiment is not None, "reasons() prepares"
        return self._experiment

    def reasons(self) -> Iterator[str]:
        """Yield why the run cannot begin; UserError where the request cannot even be read."""
        reader = self.reader
        known = reader.catalogue.suites
        named = [known[name] for name in reader.request.suites if name in known]
        if reason := reason_of(lambda: refuse_listeners(named)):
            yield reason  # before anybody reads a question or sets a provider up
        yield from reader.reasons()
        if not reason and (reason := reason_of(lambda: refuse_listeners(self._exams()))):
            yield reason
        box: OpenBox | None = None
        try:
            box = self._opened()
        except UserError as error:
            yield str(error)
        asked, request = self.asked, self.reader.request
        images = box.image_ids if box else {}
        self._experiment = replace(asked.experiment, box=box.name if box else None, images=images)
        self._job = Job(request, asked.catalogue, self.controls, asked.spec, asked.book, box)
        yield from self._unfit(check_experiment(request.log_dir, self._experiment))

    def _exams(self) -> list[Suite[Any]]:
        """Return the suites that are asked now, and those that the experiment had before."""
        asked = self.asked
        return [*asked.suites, *_earlier(asked.stored, asked.suites, asked.catalogue)]

    def _opened(self) -> OpenBox | None:
        """Return the box that the suites need, those that teach included."""
        asked, request, boxes = self.asked, self.reader.request, self.reader.catalogue.boxes
        exams = self._exams()
        taught = (
            training_suites(suite, asked.experiment, asked.catalogue) for suite in asked.suites
        )
        more = {one.name: one for each in taught for one in each if one not in exams}
        exams.extend(more.values())
        wanted = request.box or (asked.stored.box if asked.stored else None)
        name = _box_name(wanted, exams, boxes, asked.spec)
        return self.stack.enter_context(open_run_box(boxes, name, exams, request.max_sandboxes))

    def _unfit(self, checked: Experiment) -> Iterator[str]:
        """Yield who was taught what is asked, or has nothing to learn from."""
        if reason := reason_of(lambda: refuse_other_cards(self.job, checked)):
            yield reason
        yield from why_taught(self.job, self.asked.suites, self.asked.systems, checked)
        yield from why_unlearnable(self.job, self.asked.suites, self.asked.systems, checked)


def _run(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> RunOutcome:
    log_dir = job.request.log_dir
    experiment = with_entries(job, suites, systems, experiment)
    if any(log_dir.glob("*.eval")):
        regrade_dir(log_dir, job.catalogue.suites, job.box)  # what we failed to grade last time
        retry_ungraded(log_dir, job.catalogue.suites, job.spec, _meter(job))
    _note_openings(job, experiment)
    _make_plans(job, experiment)
    outcome = run_entries(job, experiment, log_dir)
    if outcome.finished and has_deferred(job, suites, systems, experiment):
        chosen = deferred_entries(job, suites, systems, experiment, outcome)
        experiment = open_experiment(log_dir, replace(experiment, entries=chosen))
        outcome = run_entries(job, experiment, log_dir)
    return outcome


def _meter(job: Job) -> Spend:
    """Return a meter for what is asked before the eval set has its own."""
    limit = job.request.max_usd
    already = spent_so_far(job.request.log_dir, job.book) if limit else SpentSoFar()
    return Spend(job.book, limit, already.usd, unbounded=already.unbounded)


def _earlier(
    stored: Experiment | None, suites: Sequence[Suite[Any]], catalogue: Catalogue
) -> list[Suite[Any]]:
    """Return the experiment's suites beside the requested ones: their gaps are graded as well."""
    names = set(stored.suite_versions if stored else ()) - {suite.name for suite in suites}
    return [catalogue.suites[name] for name in sorted(names) if name in catalogue.suites]


def _box_name(
    named: str | None, suites: Sequence[Suite[Any]], boxes: Boxes, spec: PoolSpec
) -> str | None:
    """Return the box to grade in, `named` or chosen by the pool; None when no suite wants one."""
    if not any(suite.needs_box for suite in suites):
        return named
    return select_box(named, boxes, ours=spec.label == "rehearsal")


def _make_plans(job: Job, experiment: Experiment) -> None:
    """Make the oracle's missing plans, outside the eval: they are no spend of any system."""
    for row in experiment.entries:
        if row.system != ORACLE:
            continue
        suite = job.catalogue.suites[row.suite]

        def grade(question: Question, reply: str, suite: Suite[Any] = suite) -> float:
            return suite.grade(question, reply, job.box_for(suite)).value

        questions = pick(suite, cast(Any, experiment.split), experiment.limit)
        path = job.request.log_dir / plans_of(suite.name)
        job.controls.make_plans(path, questions, job.spec, grade)


def _note_openings(job: Job, experiment: Experiment) -> None:
    """Write down which eval questions are about to be asked; a run with nothing left opens none."""
    if experiment.split != "eval":
        return
    done = answered_counts(job.request.log_dir)
    for name in experiment.suite_versions:
        suite = job.catalogue.suites[name]
        size = len(pick(suite, "eval", experiment.limit))
        rows = [row for row in experiment.entries if row.suite == name]
        if any(done[row.name] < size * experiment.epochs[name] for row in rows):
            job.controls.opened(job.request.log_dir, suite, size)
