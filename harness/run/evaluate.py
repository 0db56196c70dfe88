"""The entries of an experiment as tasks of one Inspect eval set, under which nothing is lost.

After an error, Ctrl-C or kill -9 the same command asks only what has no answer yet. Each setting
was tried on inspect-ai 0.3.285: with `fail_on_error=False` a set reports success and never asks a
failed question again; with `log_realtime=False` alone a killed run asks finished questions again.
"""

import errno
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from decimal import Decimal
from logging import LogRecord, getLogger
from pathlib import Path
from sys import maxsize
from typing import Any, cast

import anyio
from inspect_ai import Task
from inspect_ai import eval_set as inspect_eval_set  # pyright: ignore[reportUnknownVariableType]
from inspect_ai import task_with as _task_with  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.log import EvalLog, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import Model

from harness.boxes import OpenBox
from harness.budget import Spend
from harness.context import run_context
from harness.errors import UserError
from harness.inspect_adapters import public_tests_of
from harness.ledger.journal import Head
from harness.ledger.recorder import TaskJournal, sample_name
from harness.ledger.runs import newest_logs
from harness.ledger.totals import SpentSoFar, spent_so_far
from harness.parallel import ProgressLine, progress_line
from harness.pool import pool_models, slot_model
from harness.pool_config import PoolSpec, with_conductor
from harness.prices import Book
from harness.records import CONDUCTOR
from harness.reply_cache import PaidReplies
from harness.rewards.splits import BareText, whole_text
from harness.run.catalogue import Catalogue, HeaderFacts, RunRequest, conductor_override, task_of
from harness.run.experiment import Entry, Experiment, task_name
from harness.suite import Suite, publishable, redacted_message
from harness.text import pluralise

TICK_S = 0.1
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """How a set of tasks is run; nothing here changes what a system does."""

    log_dir: Path
    limit: int | None = None
    max_usd: Decimal | None = None
    max_usd_per_query: Decimal | None = None
    already: SpentSoFar = field(default_factory=SpentSoFar)
    """What earlier attempts of this experiment have spent."""
    display: str = "line"
    """`line` for podium's one line, or the name of one of Inspect's displays."""
    title: str = "run"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a set ended."""

    finished: bool
    logs: Sequence[EvalLog]
    """Headers of the newest log of each task."""
    trouble: tuple[str, ...]
    """Distinct reasons of unanswered questions, most frequent first."""

    @property
    def unscored(self) -> int:
        """Return how many answers have no verdict: we failed to grade them."""
        scores = [score for log in self.logs if log.results for score in log.results.scores]
        return sum(score.unscored_samples or 0 for score in scores)


def run_tasks(
    tasks: Sequence[Task], models: Mapping[str, Model], book: Book, settings: EvalOptions
) -> RunOutcome:
    """Run tasks over a pool's models, or finish what an earlier attempt left.

    Raises KeyboardInterrupt after Ctrl-C, once the logs are closed.
    """
    ours = settings.display == "line"
    shown = _progress(tasks, settings) if ours else nullcontext()
    try:
        with (
            shown as line,
            run_context(spend=_meter(book, settings), progress=line),
            _without_a_false_alarm(),
        ):
            # Inspect leaves a set's roles and settings behind in its caller's context.
            _, logs = copy_context().run(
                inspect_eval_set,  # pyright: ignore[reportUnknownArgumentType]
                list(tasks),
                log_dir=str(settings.log_dir),
                model=None,
                model_roles=dict(models),
                limit=settings.limit,
                display="none" if ours else cast(Any, settings.display),
                retry_attempts=0,
                continue_on_fail=True,
                retry_cleanup=False,
                log_buffer=1,
                log_dir_allow_dirty=True,  # experiment.json and selection/ live beside the logs
                log_model_api=True,  # a provider's own usage, of every call
                ctl_server=False,
                score_display=False,
            )
    except Exception as error:
        if why := _unwritten(error):
            raise UserError(
                f"{settings.log_dir} or Inspect's own files cannot be written ({why}): make room, "
                "and the same command finishes what is left."
            ) from error
        raise
    if len(logs) < len(tasks) or any(log.status == "cancelled" for log in logs):
        raise KeyboardInterrupt  # after Ctrl-C the set reports success, with no logs
    finished = all(log.status == "success" for log in logs)
    return RunOutcome(
        finished=finished, logs=logs, trouble=() if finished else failure_reasons(logs)
    )


def _unwritten(error: BaseException) -> str:
    """Return why a file could not be written, if that is what ended a run; else nothing."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return error.strerror or "no room"
    if isinstance(error, sqlite3.OperationalError) and "disk" in str(error):
        return str(error)
    behind = [error.__cause__ or error.__context__]
    if isinstance(error, BaseExceptionGroup):
        behind += cast(BaseExceptionGroup[BaseException], error).exceptions
    return next((why for one in behind if one and (why := _unwritten(one))), "")


def _meter(book: Book, settings: EvalOptions) -> Spend:
    return Spend(
        book=book,
        limit=settings.max_usd,
        spent=settings.already.usd,
        per_question=settings.max_usd_per_query,
        unbounded=Counter(settings.already.unbounded),
    )


def answered_counts(log_dir: Path) -> Counter[str]:
    """Return how many (question, epoch) pairs of each task a directory's logs have answered."""
    done: Counter[str] = Counter()
    for path in newest_logs([log_dir], recursive=False) if any(log_dir.glob("*.eval")) else ():
        name = read_eval_log(str(path), header_only=True).eval.task
        summaries = read_eval_log_sample_summaries(str(path))
        done[name] = sum(one.completed and not one.error for one in summaries)
    return done


def answered_pairs(log_dir: Path) -> dict[str, frozenset[tuple[str, int]]]:
    """Return the (question, epoch) pairs that each task's newest log has answered."""
    done: dict[str, frozenset[tuple[str, int]]] = {}
    for path in newest_logs([log_dir], recursive=False) if any(log_dir.glob("*.eval")) else ():
        name = read_eval_log(str(path), header_only=True).eval.task
        summaries = read_eval_log_sample_summaries(str(path))
        pairs = ((str(one.id), one.epoch) for one in summaries if one.completed and not one.error)
        done[name] = frozenset(pairs)
    return done


def logged_samples(log_dir: Path) -> dict[str, float]:
    """Return the samples that the newest logs below a directory have answered, by their names.

    With each goes the time when its log was written last: all that came before is in there. The
    time of a file may lag behind the clock by a tick.
    """
    done: dict[str, float] = {}
    for path in newest_logs([log_dir]) if any(log_dir.rglob("*.eval")) else ():
        written, name = (
            path.stat().st_mtime + TICK_S,
            read_eval_log(str(path), header_only=True).eval.task,
        )
        for one in read_eval_log_sample_summaries(str(path)):
            if one.completed and not one.error:
                done[sample_name(name, str(one.id), one.epoch)] = written
    return done


def _progress(tasks: Sequence[Task], settings: EvalOptions) -> AbstractContextManager[ProgressLine]:
    """Return a line over all pairs of a run, those of earlier attempts already counted."""
    sizes = {
        str(task.name): min(len(task.dataset), settings.limit or maxsize) * (task.epochs or 1)
        for task in tasks
    }
    before = answered_counts(settings.log_dir)
    done = sum(min(before[name], size) for name, size in sizes.items())
    return progress_line(settings.title, sum(sizes.values()), done)


@contextmanager
def _without_a_false_alarm() -> Generator[None]:
    """Drop Inspect's warning that its default for `retry_immediate` does nothing here."""
    logger = getLogger("inspect_ai._eval.evalset")

    def matters(record: LogRecord) -> bool:
        return not record.getMessage().startswith("retry_immediate=True has no effect")

    logger.addFilter(matters)
    try:
        yield
    finally:
        logger.removeFilter(matters)


def failure_reasons(logs: Sequence[EvalLog]) -> tuple[str, ...]:
    """Return why questions have no answer: each distinct error once, with its count."""
    reasons: Counter[str] = Counter()
    for log in logs:
        if log.status == "success":
            continue
        summaries = read_eval_log_sample_summaries(log.location) if log.location else []
        reasons.update(
            redacted_message(_sentence(summary.error), publishable(log.eval.metadata))
            for summary in summaries
            if summary.error
        )
        if log.error and not any(summary.error for summary in summaries):
            reasons[
                redacted_message(_sentence(log.error.message), publishable(log.eval.metadata))
            ] += 1
    return tuple(
        f"{reason} ({pluralise(count, 'question')})" for reason, count in reasons.most_common()
    )


def _sentence(error: str) -> str:
    """Return what an exception said: Inspect keeps its repr, `WorkerError('...')`."""
    said = re.fullmatch(r"\w+\((['\"])(.*)\1\)", error, re.DOTALL)
    return said.group(2) if said else error


def mean_score(log: EvalLog) -> float | None:
    """Return a log's mean grade, None when nothing was graded."""
    header = log if log.results else read_eval_log(log.location, header_only=True)
    if not header.results or not header.results.scores:
        return None
    metric = header.results.scores[0].metrics.get("mean")
    return None if metric is None else float(metric.value)


@dataclass(frozen=True, slots=True)
class Controls:
    """The choices that need parts of several spokes; harness/cli/ supplies them."""

    choose: Callable[[Mapping[str, float]], str]
    """Accuracy per worker, in pool order -> the best single worker."""
    make_plans: Callable[..., None]
    """(path, questions, pool, grade): write the oracle's plans that are still missing."""
    opened: Callable[[Path, Suite[Any], int], object]
    """Called when questions of an `eval` split are about to be asked, to write it down."""
    bare: BareText = whole_text
    """What a question asks, without its suite's instruction: how a question is known again."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request with everything it named, found and checked."""

    request: RunRequest
    catalogue: Catalogue
    controls: Controls
    spec: PoolSpec
    book: Book
    box: OpenBox | None

    def box_for(self, suite: Suite[Any]) -> Any | None:
        """Return the box a suite grades in; None for suites that run no programs."""
        return self.box.box if self.box and suite.needs_box else None


@dataclass(frozen=True, slots=True)
class EvalPurpose:
    """How entries are sat that are no part of a result: what they are for, and of what."""

    purpose: str = "eval"
    title: str = "answering"
    only: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Suite -> ids of the questions that are asked; others ask all of them."""


def run_entries(
    job: Job, experiment: Experiment, log_dir: Path, how: EvalPurpose = EvalPurpose()
) -> RunOutcome:
    """Run all entries of an experiment, old and new: Inspect skips what is finished.

    They are begun in the experiment's order, ten at a time: Inspect's eval set keeps the order of
    its tasks, and takes new ones before those that it resumes.
    """
    entries = sorted(experiment.entries, key=lambda row: row.order or 0)
    facts = HeaderFacts(
        spec=job.spec,
        book=job.book,
        split=experiment.split,
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
        with run_context(**_known(job, row, journal, places)):
            task = task_of(row, experiment, job.catalogue, facts)
        tasks.append(_task_with(task, model_roles=_conducted(job, row, roles)))
    limit = job.request.max_usd
    settings = EvalOptions(
        log_dir=log_dir,
        limit=experiment.limit,
        max_usd=limit,
        max_usd_per_query=job.request.max_usd_per_query,
        already=spent_so_far(job.request.log_dir, job.book) if limit else SpentSoFar(),
        display=job.request.display,
        title=how.title,
    )
    try:
        return run_tasks(tasks, models, job.book, settings)
    finally:
        for journal in journals:
            journal.close()


def _known(
    job: Job, row: Entry, journal: TaskJournal, places: anyio.CapacityLimiter | None
) -> dict[str, Any]:
    """Return what one entry's solver and scorer know; entries share the `places` of programs."""
    suite = job.catalogue.suites[row.suite]
    spec = with_conductor(job.spec, conductor_override(row.system, job.catalogue))
    known = {"log_dir": job.request.log_dir, "spec": spec, "journal": journal}
    box = job.box_for(suite)
    if box is None or places is None:
        return known
    tests = public_tests_of(suite, box, places)
    return {**known, "public_tests": tests, "programs": places}


def _conducted(job: Job, row: Entry, roles: Mapping[str, Model]) -> dict[str, Model]:
    """Return who conducts one entry: its own conductor, else the pool's, where there is one.

    What a whole eval set says of a role would come before what a task says, so the set names none.
    """
    seat = conductor_override(row.system, job.catalogue)
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
