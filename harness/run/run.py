"""One run, from request to logs: read it from top to bottom.

An experiment can be resumed, extended by systems and suites, and killed at any moment: choices that
cost calls (the best single worker, the oracle's plans) are stored with it, and the eval set asks
only what has no answer yet.
"""

import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.boxes import OpenBox, open_run_box, select_box
from harness.errors import PodiumError, UserError, reasons_of
from harness.inspect_adapters import pick
from harness.judge import regrade_dir, retry_ungraded
from harness.ledger.journal import mend
from harness.ledger.manifest import manifested
from harness.pool_config import read_pool
from harness.records import Question
from harness.reply_cache import PaidReplies
from harness.run import entries, evaluate
from harness.run.catalogue import ORACLE, Catalogue, RunRequest, select_suites
from harness.run.evaluate import Controls, Job, RunOutcome
from harness.run.experiment import Experiment, check_experiment, lock_experiment, open_experiment
from harness.run.lessons import training_suites
from harness.run.preflight import one_at_a_time, refuse_listeners
from harness.run.request import RequestReader, read_request, unknown_prompt_note
from harness.run.systems import GROUPS, default_systems, moved_graders, why_unusable
from harness.suite import Suite
from harness.text import say


def podium_run(request: RunRequest, catalogue: Catalogue, controls: Controls) -> int:
    """Run a request and say what becomes of it, as `podium run` does; return its exit code."""
    moved = say_who_runs(request, catalogue)
    if request.max_usd or request.max_usd_per_query:
        _say_limits(request, catalogue, controls)
    for line in moved:
        say(line)
    outcome = run(request, catalogue, controls)
    for reason in outcome.trouble:
        say(f"podium: unanswered: {reason}", file=sys.stderr)
    if not outcome.finished:
        say("podium: what is answered is kept; a next run asks the rest only.", file=sys.stderr)
        return 1
    say(f"Logs are in {request.log_dir}; now: podium report {request.log_dir}")
    if outcome.unscored:
        say(
            f"podium: {outcome.unscored} answers have no verdict (the report says why); the same "
            "command tries again to grade them, and asks nobody else.",
            file=sys.stderr,
        )
    return 1 if outcome.unscored else 0


def say_who_runs(request: RunRequest, catalogue: Catalogue) -> list[str]:
    """Say which systems of a named group do not fit; return whose graders have moved since."""
    suites = select_suites(request, catalogue)
    if note := unknown_prompt_note(suites, request.prompt):
        say(note)
    spec = read_pool(request.pool)
    names = request.systems or default_systems(catalogue, spec, suites)
    if {*names} & {*GROUPS}:
        asked = read_request(request, catalogue, ready=False)
        names = asked.systems
        for line in asked.left_out:
            say(f"Left out: {line}")
    fitting = [name for name in names if not why_unusable(name, catalogue, spec, suites)]
    if moved := moved_graders(fitting, catalogue):
        read_request(request, catalogue, ready=False)  # what is refused is refused in one sentence
    return moved


def _say_limits(request: RunRequest, catalogue: Catalogue, controls: Controls) -> None:
    """Say what a limit does to a run, one line each; UserError where no call would be made."""
    # Few runs have a limit, and no other run needs an estimate.
    from harness.run.estimate import estimate, limit_warning, refuse_too_little

    found = estimate(request, catalogue, controls)
    refuse_too_little(found, request)
    if warning := limit_warning(found, request):
        say(f"podium: {warning}", file=sys.stderr)
    asked = read_request(request, catalogue, ready=False)
    for name, why in one_at_a_time(asked.spec, asked.book).items():
        note = f"under a limit {name!r} is asked one call at a time: {why}"
        say(f"podium: {note}.", file=sys.stderr)


def run(request: RunRequest, catalogue: Catalogue, controls: Controls) -> RunOutcome:
    """Run a request until it ends or can be resumed; UserError before any call and any file."""
    with ExitStack() as stack:
        made = Preparation(RequestReader(request, catalogue), controls, stack)
        for reason in made.reasons():
            raise UserError(reason)
        stack.enter_context(lock_experiment(request.log_dir))
        stack.enter_context(manifested(request.log_dir))
        mend(request.log_dir)
        experiment = open_experiment(request.log_dir, made.experiment)
        with keep_until_logged(request.log_dir) as replies:
            outcome = _evaluate(made.job, experiment)
            if outcome.finished:
                replies.clear()  # whatever a clock that was set makes of times
            return outcome


@dataclass(slots=True)
class Preparation:
    """All that a run needs, and all that speaks against it; nothing is asked or written here."""

    reader: RequestReader
    controls: Controls
    stack: ExitStack
    job: Job = field(init=False)  # this and the next are there once `reasons` has been gone through
    experiment: Experiment = field(init=False)

    def reasons(self) -> Iterator[str]:
        """Yield why the run cannot begin; UserError where the request cannot even be read."""
        known, request = self.reader.catalogue.suites, self.reader.request
        named = [known[name] for name in request.suites if name in known]
        heard = [*reasons_of(refuse_listeners, named)]
        yield from heard  # before anybody reads a question or sets a provider up
        yield from self.reader.reasons()
        if not heard:
            yield from reasons_of(refuse_listeners, self._suites())
        box: OpenBox | None = None
        try:
            box = self._open_box()
        except UserError as error:
            yield str(error)
        asked, request = self.reader.asked, self.reader.request
        name, images = (box.name, box.image_ids) if box else (None, {})
        self.experiment = replace(asked.experiment, box=name, images=images)
        known = (asked.spec, asked.book, asked.suites, asked.systems)
        self.job = Job(request, asked.catalogue, self.controls, *known, box)
        checked = check_experiment(request.log_dir, self.experiment)
        yield from reasons_of(entries.refuse_other_cards, self.job, checked)
        yield from entries.why_taught(self.job, checked)
        yield from entries.why_unlearnable(self.job, checked)

    def _suites(self) -> list[Suite[Any]]:
        """Return the suites that are asked now, and those before them: their gaps are graded."""
        asked, known = self.reader.asked, self.reader.asked.catalogue.suites
        before = {*asked.stored.suite_versions} if asked.stored else set[str]()
        names = before - {suite.name for suite in asked.suites}
        return [*asked.suites, *(known[name] for name in sorted(names) if name in known)]

    def _open_box(self) -> OpenBox | None:
        asked, request, boxes = self.reader.asked, self.reader.request, self.reader.catalogue.boxes
        suites = {suite.name: suite for suite in self._suites()}
        for suite in asked.suites:
            teaching = training_suites(suite, asked.experiment, asked.catalogue)
            suites |= {one.name: one for one in teaching if one.name not in suites}
        name = request.box or (asked.stored.box if asked.stored else None)
        if any(suite.needs_box for suite in suites.values()):
            name = select_box(name, boxes, ours=asked.spec.label == "rehearsal")
        opened = open_run_box(boxes, name, suites.values(), request.max_sandboxes)
        return self.stack.enter_context(opened)


@contextmanager
def keep_until_logged(log_dir: Path) -> Generator[PaidReplies]:
    """Let go of the replies of samples that are in their logs, before and after what is within.

    A judge's reply is in no log before a newer one is written, so what came since is kept.
    """
    replies = PaidReplies(log_dir)

    def tidy_up() -> None:
        if replies.path and replies.path.exists():
            replies.forget(evaluate.logged_samples(log_dir))

    tidy_up()
    try:
        yield replies
    finally:
        with suppress(PodiumError, OSError):  # the next run tidies up as well
            tidy_up()
        replies.close()


def _evaluate(job: Job, experiment: Experiment) -> RunOutcome:
    """Choose and learn, grade what was left ungraded, ask; then what depends on others' results."""
    log_dir = job.request.log_dir
    experiment = entries.with_entries(job, experiment)
    if any(log_dir.glob("*.eval")):
        regrade_dir(log_dir, job.catalogue.suites, job.box)  # what we failed to grade last time
        retry_ungraded(log_dir, job.catalogue.suites, job.spec, job.meter())
    _note_openings(job, experiment)
    _make_plans(job, experiment)
    outcome = evaluate.run_entries(job, experiment, log_dir)
    if outcome.finished and (chosen := entries.deferred_entries(job, experiment, outcome)):
        experiment = open_experiment(log_dir, replace(experiment, entries=chosen))
        outcome = evaluate.run_entries(job, experiment, log_dir)
    return outcome


def _make_plans(job: Job, experiment: Experiment) -> None:
    """Make the oracle's missing plans, outside the eval: they are no spend of any system."""
    for row in experiment.entries:
        if row.system != ORACLE:
            continue
        suite = job.catalogue.suites[row.suite]

        def grade(question: Question, reply: str, suite: Suite[Any] = suite) -> float:
            box = job.box_for(suite)
            return suite.grade(question, reply, box.box if box else None).value

        questions = pick(suite, experiment.split, experiment.limit)
        path = job.request.log_dir / entries.plans_of(suite.name)
        job.controls.make_plans(path, questions, job.spec, grade)


def _note_openings(job: Job, experiment: Experiment) -> None:
    """Write down which eval questions are about to be asked; a run with nothing left opens none."""
    if experiment.split != "eval":
        return
    done = evaluate.answered_pairs(job.request.log_dir)
    for name in experiment.suite_versions:
        suite = job.catalogue.suites[name]
        size = len(pick(suite, "eval", experiment.limit))
        rows = [row for row in experiment.entries if row.suite == name]
        if any(len(done.get(row.name, ())) < size * experiment.epochs[name] for row in rows):
            job.controls.opened(job.request.log_dir, suite, size)
