"""One run, from request to logs (read it from top to bottom), and the checks of `podium doctor`."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.harness.boxes import inspect_box
from podium.harness.budget import ShardLimits
from podium.harness.errors import PodiumError, UserError
from podium.harness.ledger.journal import mend
from podium.harness.model_judge import regrade_dir, retry_ungraded
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.prices import Book
from podium.harness.records import GRADER, Question
from podium.harness.reply_cache import ROOM, PaidReplies, is_nearly_full
from podium.harness.run import batching, entries, evaluate, lessons, preflight
from podium.harness.run.catalogue import ORACLE, Catalogue, RunRequest
from podium.harness.run.earlier_lessons import take_over
from podium.harness.run.estimate import duration_text, estimate, learning_text
from podium.harness.run.evaluate import Controls, Job, RunOutcome
from podium.harness.run.experiment import (
    POOL,
    differs,
    lock_experiment,
    manifested,
    open_experiment,
    set_aside,
)
from podium.harness.run.preflight import asked_slots, moved_graders, remarks_on
from podium.harness.run.run_request import (
    RequestReader,
    missing_needs,
    refuse_heard,
    unknown_prompt_note,
)
from podium.harness.shards.plan import refuse_sharded
from podium.harness.shutdown import graceful_shutdown
from podium.harness.suite import Suite, judged_among
from podium.harness.task_suite import TaskSuite
from podium.harness.text import pluralise, say

NEARLY_FULL = (
    f"The disk of {{}} has less than {ROOM >> 20} MiB left, and paid replies may need more. "
    "Free some space, then repeat the command to continue."
)
Runner = Callable[[RequestReader], RunOutcome]
Consent = Callable[[Job, Any], None]
"""Function of a live run's job and `Estimate`: UserError unless the user agrees to the cost."""


def podium_run(reader: RequestReader, agree: Consent, runner: Runner | None = None) -> int:
    """Run a request and print the outcome, as `podium run` does; return its exit code."""
    refuse_heard(reader.request, reader.catalogue)  # before questions are read
    job, request = reader.read(), reader.request
    say_who_runs(job)
    live = job.spec.label == "live"
    if live and (reason := next(iter(missing_needs(job)), "")):  # before a user is asked to agree
        raise UserError(reason)
    if live or request.max_usd or request.max_usd_per_query:
        # Runs without a limit or costs need no estimate.
        from podium.harness.run.estimate import estimate

        forecast = estimate(job)
        _say_limits(job, forecast)
        if live:
            for warning in preflight.unpinned_hosts(job.spec):
                say(f"podium: {warning}", file=sys.stderr)
            agree(job, forecast)
    outcome = (runner or run_job)(reader)
    for reason in outcome.trouble:
        say(f"podium: unanswered: {reason}", file=sys.stderr)
    if not outcome.finished:
        say(
            "podium: the answers are kept. The same command asks only the remaining questions.",
            file=sys.stderr,
        )
        return 1
    say(f"Logs are in {request.log_dir}; now: podium report {request.log_dir}")
    if outcome.unscored:
        say(
            f"podium: {outcome.unscored} answers have no verdict (the report says why). The same "
            "command grades them again and makes no other calls.",
            file=sys.stderr,
        )
    return 1 if outcome.unscored else 0


def say_who_runs(job: Job) -> None:
    """Print which systems a run leaves out and why, overridden prices, and remarks on systems."""
    if note := unknown_prompt_note(job.suites, job.request.prompt):
        say(note)
    for line in job.left_out:
        say(f"Left out: {line}")
    for line in preflight.overridden_prices(job.spec):
        say(line)
    if job.spec.label == "live":
        remarks = remarks_on(job.systems, job.catalogue, job.spec)
        for remark in (*remarks, *batching.batch_notes(job)):
            say(f"podium: {remark}", file=sys.stderr)


def _say_limits(job: Job, forecast: Any) -> None:
    """Print the effects of dollar limits on a run; UserError if a limit allows no call at all."""
    from podium.harness.run.estimate import limit_warning, refuse_too_little

    refuse_too_little(forecast, job.request)
    if warning := limit_warning(forecast, job.request):
        say(f"podium: {warning}", file=sys.stderr)
    for note in _limit_notes(job):
        say(f"podium: under a limit {note}", file=sys.stderr)


def _limit_notes(job: Job) -> list[str]:
    """Return a sentence for each worker that makes one call at a time because of a dollar limit."""
    if job.request.max_usd is None and job.request.max_usd_per_query is None:
        return []
    names = {*job.systems, *(row.system for row in job.experiment.entries)}
    slots = asked_slots(names, job.catalogue, job.spec)
    if any(judged_among(suite, job.questions(suite)) for suite in job.suites):
        slots.add(GRADER)
    return _one_at_a_time(job.spec, job.book, slots)


def _one_at_a_time(spec: PoolSpec, book: Book, slots: set[str]) -> list[str]:
    reasons = preflight.one_at_a_time(spec, book)
    names = [name for name in reasons if name in slots]
    return [f"{name!r} is asked one call at a time: {reasons[name]}." for name in names]


LeaseOpener = Callable[[Path, Book], AbstractContextManager[ShardLimits]]
"""(a shard's directory, price book) -> the shard's lease (its dollars), valid within the block."""


def run(
    request: RunRequest,
    catalogue: Catalogue,
    controls: Controls,
    open_lease: LeaseOpener | None = None,
) -> RunOutcome:
    """Do a requested run, resumable if it stops; UserError, before any call or file, if refused."""
    return run_job(RequestReader(request, catalogue, controls), open_lease)


def run_job(reader: RequestReader, open_lease: LeaseOpener | None = None) -> RunOutcome:
    """Do the run of a reader's request, as `run` does; the reader may have read it before."""
    request = reader.request
    refuse_sharded(request.log_dir)
    with ExitStack() as stack:
        stack.enter_context(graceful_shutdown(request.grace_s))
        for reason in reader.all_reasons(stack):
            raise UserError(reason)
        job = reader.job
        _begin_anew(job)
        stack.enter_context(lock_experiment(request.log_dir))
        if is_nearly_full(request.log_dir):
            raise UserError(NEARLY_FULL.format(request.log_dir))
        stack.enter_context(manifested(request.log_dir))
        mend(request.log_dir)
        job = replace(job, experiment=open_experiment(request.log_dir, job.experiment))
        if open_lease:
            job = replace(job, lease=stack.enter_context(open_lease(request.log_dir, job.book)))
        with keep_until_logged(request.log_dir, request.group_dir) as replies, job.paced():
            outcome = _evaluate(job)
            if outcome.finished and not request.group_dir:
                replies.clear()  # even if the system clock changed
            return outcome


@contextmanager
def keep_until_logged(log_dir: Path, group_dir: Path | None = None) -> Generator[PaidReplies]:
    """Yield a run's store of paid replies; before and after, delete those that are in logs."""
    replies = PaidReplies(group_dir or log_dir)

    def tidy_up() -> None:
        if replies.path and replies.path.exists():
            replies.forget(evaluate.logged_samples(log_dir))

    tidy_up()
    try:
        yield replies
    finally:
        with suppress(PodiumError, OSError):  # the next run deletes them, too
            tidy_up()
        replies.close()


def _evaluate(job: Job) -> RunOutcome:
    """Choose workers, train, regrade, run entries (system on suite), then dependent entries."""
    log_dir = job.request.log_dir
    take_over(job)
    job = entries.with_entries(job)
    if any(log_dir.glob("*.eval")):
        regrade_dir(log_dir, job.catalogue.suites, job.box)  # answers whose grading failed
        retry_ungraded(log_dir, job.catalogue.suites, job.spec, job.meter())
    _note_openings(job)
    make_plans(job)
    outcome = evaluate.run_entries(job, log_dir)
    if not outcome.finished:
        missing = (name for suite in job.suites for name in job.missing(suite))
        if late := ", ".join(dict.fromkeys(missing)):
            waits = f"{late}: begun when all other questions are answered"
            outcome = replace(outcome, trouble=(*outcome.trouble, waits))
    elif chosen := entries.deferred_entries(job, outcome):
        outcome = evaluate.run_entries(entries.with_new(job, chosen), log_dir)
    return outcome


def _begin_anew(job: Job) -> None:
    """If the pool of a run without replies has changed, rename its directory and print a note."""
    stored, log_dir = job.stored, job.request.log_dir
    if stored and differs(stored, job.experiment, POOL):  # refused if something was answered
        with lock_experiment(log_dir):
            aside = set_aside(log_dir, job.experiment.pool_key)
        message = f"The pool changed before any question was answered: {log_dir} starts again"
        say(f"{message}; its old files are in {aside}.")


def make_plans(job: Job) -> None:
    """Make the oracle's missing plans outside any evaluation, so that no system pays for them."""
    for row in job.experiment.entries:
        if row.system != ORACLE:
            continue
        suite = job.catalogue.suites[row.suite]

        def grade(question: Question, reply: str, suite: Suite[Any] = suite) -> float:
            box = job.box_for(suite)
            return suite.grade(question, reply, box.box if box else None).value

        path = job.request.log_dir / entries.plans_of(suite.name)
        job.controls.make_plans(path, job.questions(suite), job.spec, grade)


def _note_openings(job: Job) -> None:
    """Record that eval questions will be read, for each suite with unanswered questions."""
    experiment = job.experiment
    if experiment.split != "eval" or job.request.settled:  # the whole run records these
        return
    answered = evaluate.answered_pairs(job.request.log_dir)
    for name in experiment.suite_versions:
        suite = job.catalogue.suites[name]
        size, epochs = len(job.questions(suite)), experiment.epochs[name]
        rows = [row for row in experiment.entries if row.suite == name]
        sizes = {row.name: (len(row.questions) or size) * epochs for row in rows}
        if any(len(answered.get(task, ())) < pairs for task, pairs in sizes.items()):
            job.controls.opened(job.request.log_dir, suite, size)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of `podium doctor`: problems, facts and notes of a pool or run."""

    what: str  # the pool or run that was checked
    problems: tuple[str, ...]
    """Reasons for which `podium run` would refuse, each a sentence with its fix."""
    facts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # remarks; a run is not refused for them


def examine(
    pool: str, box: str | None, catalogue: Catalogue, max_usd: Decimal | None = None
) -> Diagnosis:
    """Return the problems of a pool for any run; UserError if the pool cannot be read."""
    spec = read_pool(pool)
    book = spec.book()
    reasons = preflight.package_problems()
    reasons += [*batching.why_unbatched(spec), *preflight.problems(spec, book)]
    notes, facts = [*_notes(spec)], list[str]()
    slots = {slot.name for slot in spec.slots if max_usd}
    notes += [f"under --max-usd {note}" for note in _one_at_a_time(spec, book, slots)]
    if box:
        facts, missing = inspect_box(catalogue.boxes, box, catalogue.suites.values())
        reasons += missing
    return Diagnosis(_pool_words(spec), tuple(reasons), tuple(facts), tuple(notes))


def examine_run(request: RunRequest, catalogue: Catalogue, controls: Controls) -> Diagnosis:
    """Return all problems of a run, found by the checks that the run itself makes, and remarks."""
    reader = RequestReader(request, catalogue, controls)
    reasons = preflight.package_problems()
    with ExitStack() as stack:
        try:
            reasons.extend(reader.all_reasons(stack))
        except UserError as error:  # the later checks depend on this check
            reasons.append(str(error))
    problems = tuple(dict.fromkeys(reasons))
    if not hasattr(reader, "job"):
        return Diagnosis("This run", problems)
    job = reader.job
    subject = f"{_pool_words(job.spec)}, {pluralise(len(job.systems), 'system')}"
    return Diagnosis(subject, problems, (*_facts(job),), (*_oddities(job), *_notes(job.spec)))


def _pool_words(spec: PoolSpec) -> str:
    return f"Pool {spec.name!r} ({spec.label})"


def _facts(job: Job) -> Iterator[str]:
    for suite in job.suites:
        with suppress(UserError):  # this error is among the problems
            count, epochs = len(job.questions(suite)), job.experiment.epochs[suite.name]
            asks = f"{pluralise(count, 'question')}, {pluralise(epochs, 'time')} each"
            yield f"{suite.name}, version {suite.version} ({job.experiment.split}): {asks}."
    if job.systems:
        yield f"Systems: {', '.join(job.systems)}."
    if any(entries.is_chosen(job, name) or lessons.must_learn(job, name) for name in job.systems):
        with suppress(UserError):  # this error is among the problems
            yield from filter(None, [learning_text(job)])
    if job.systems and job.spec.tokens_per_second:
        with suppress(UserError):  # this error is among the problems
            yield from filter(None, [duration_text(estimate(job))])


def _oddities(job: Job) -> Iterator[str]:
    yield from (f"left out: {line}" for line in job.left_out)
    yield from (f"under --max-usd {note}" for note in _limit_notes(job))
    yield from moved_graders(job.systems, job.catalogue)
    yield from remarks_on(job.systems, job.catalogue, job.spec)
    yield from batching.batch_notes(job)
    speaking = [name for name in job.systems if job.catalogue.card(name).acts == "no"]
    if speaking and any(isinstance(suite, TaskSuite) for suite in job.suites):
        yield f"no tasks with tools for {', '.join(speaking)}: no support for tool calls."


def _notes(spec: PoolSpec) -> Iterator[str]:
    """Yield notes on a pool: unpriced workers, overridden prices, hosts, shadowing packages."""
    book = spec.book()
    excused = {slot.name for slot in spec.slots if slot.not_auditable}
    free = preflight.unpriced(spec, book)
    free = [name for name in free if spec.label != "live" or name in excused]
    if free:
        yield f"no dollars for {', '.join(free)}: book {book.name!r} has no price for them."
    yield from preflight.overridden_prices(spec)
    yield from preflight.unpinned_hosts(spec)
    yield from preflight.shadowing_notes()
