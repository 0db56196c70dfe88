"""Runs entries (a system on a suite) as tasks of one Inspect eval set, without losing answers.

Tried on inspect-ai 0.3.285: with `fail_on_error=False` an eval set reports success and never asks
a failed question again; with `log_realtime=False` alone, an eval set that was killed asks finished
questions again.
"""

import errno
import json
import os
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from decimal import Decimal
from html import escape
from logging import LogRecord, getLogger
from pathlib import Path
from sys import maxsize
from typing import Any, cast

import anyio
from inspect_ai import Task
from inspect_ai import eval_set as inspect_eval_set  # pyright: ignore[reportUnknownVariableType]
from inspect_ai import task_with as _task_with  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.log import EvalLog, EvalSampleSummary, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import (
    Model,
    _assistant_internal,  # pyright: ignore[reportMissingTypeStubs]
)
from rich import get_console

from podium.harness.api_keys import shown
from podium.harness.boxes import OpenBox
from podium.harness.budget import ShardLimits, Spend
from podium.harness.cassette import prompts_recorded
from podium.harness.context import run_context
from podium.harness.envelope import EqualBudget, single_budget
from podium.harness.environment import environment_model
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import (
    as_task,
    named_by_room,
    pick,
    public_tests_of,
    system_of,
)
from podium.harness.ledger.draws import sample_name
from podium.harness.ledger.journal import Head
from podium.harness.ledger.logs import newest_logs
from podium.harness.ledger.recorder import TaskJournal
from podium.harness.ledger.runs import NO_MODEL
from podium.harness.ledger.system_runs import spent_so_far
from podium.harness.ledger.totals import SpentSoFar
from podium.harness.parallel import ProgressLine, RateLimiter, progress_line
from podium.harness.pool import pool_models, slot_model
from podium.harness.pool_config import PoolSpec, WorkerSpec, with_conductor
from podium.harness.prices import Book
from podium.harness.records import CONDUCTOR, GRADER, SHARED, Question
from podium.harness.reply_cache import PaidReplies
from podium.harness.rewards.splits import BareText, whole_text
from podium.harness.run.catalogue import Catalogue, RunRequest, Suites, conductor_override
from podium.harness.run.experiment import Entry, Experiment, task_name
from podium.harness.shards.plan import outside_shards
from podium.harness.shutdown import cancellable
from podium.harness.suite import Suite, prompt_of, publishable, redacted_message
from podium.harness.system import System, card_header, sandbox_of
from podium.harness.system_api import SystemInPlay, let_play, system_model
from podium.harness.task_suite import TaskSuite, played
from podium.harness.text import columns, pluralise

TICK_S = 0.1
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
JOURNAL = 1
"""Value of `journal` in a log's header: its calls are in a journal, too; older logs lack it."""


@dataclass(frozen=True, slots=True)
class Controls:
    """Functions that a run needs from other packages; podium/cli/ supplies them."""

    choose: Callable[[Mapping[str, float]], str]
    """Accuracy per worker, in pool order -> the best single worker."""
    make_plans: Callable[..., None]
    """(path, questions, pool, grade): write the oracle's plans that are still missing."""
    opened: Callable[[Path, Suite[Any], int], object]
    """(log directory, suite, number of questions): records that a run reads eval questions."""
    bare: BareText = whole_text
    """Question -> its text without its suite's instruction, to find equal questions elsewhere."""
    log_realtime: bool = True
    """Whether Inspect logs a call before its question is answered; False if calls cost nothing."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run's request, with its suites, systems and pool, all loaded and checked."""

    request: RunRequest
    catalogue: Catalogue  # its suites have the experiment's prompts
    controls: Controls
    spec: PoolSpec
    book: Book
    suites: Suites  # the requested suites
    stored: Experiment | None  # the experiment as read from its directory
    experiment: Experiment  # as requested; after the checks, joined with the stored one
    systems: Sequence[str] = ()
    left_out: Sequence[str] = ()  # members of a named group that do not fit, with the reason
    box: OpenBox | None = None
    lease: ShardLimits | None = None  # of a shard: its share of the run's limits
    _picked: dict[tuple[Any, ...], Sequence[Question]] = field(
        default_factory=dict[tuple[Any, ...], Sequence[Question]], repr=False, compare=False
    )

    def questions(self, suite: Suite[Any]) -> Sequence[Question]:
        """Return the questions of a suite that the run (or this shard of it) asks; cached."""
        experiment = self.experiment
        limit = experiment.limit_of(suite.name)
        key = (suite.name, prompt_of(suite), experiment.split, limit)
        if key not in self._picked:
            self._picked[key] = pick(suite, experiment.split, limit)
        picked = self._picked[key]
        rows = (row for row in experiment.entries if row.suite == suite.name)
        of_shard = {id for row in rows for id in row.questions}
        return [question for question in picked if question.id in of_shard] if of_shard else picked

    def known_systems(self, suite: Suite[Any]) -> list[str]:
        """Return the systems that have a stored entry for a suite."""
        rows = self.stored.entries if self.stored else ()
        return [row.system for row in rows if row.suite == suite.name]

    def missing(self, suite: Suite[Any]) -> list[str]:
        """Return the requested systems that have no entry for a suite yet."""
        if self.request.settled:
            return []
        stored = {row.name for row in self.experiment.entries}
        return [system for system in self.systems if task_name(suite.name, system) not in stored]

    def entry(self, suite: Suite[Any], system: str, args: Mapping[str, Any]) -> Entry:
        """Return the entry (settings of one Inspect task) of a system on a suite."""
        card = self.catalogue.card(system)
        return Entry(
            suite.name, system, card.solver, dict(args), uses_targets="sees targets" in card.traits
        )

    def box_for(self, suite: Suite[Any]) -> OpenBox | None:
        """Return the sandbox in which a suite runs programs; None if it runs none."""
        return self.box if suite.needs_box else None

    def meter(self, per_question: Decimal | None = None) -> Spend:
        """Return a counter of the run's dollars, which includes the spend of earlier attempts."""
        limit = self.request.max_usd
        if self.lease:
            limit = self.lease.granted
        is_limited = limit is not None
        already = spent_so_far(self.request.whole_dir, self.book) if is_limited else SpentSoFar()
        spent = Spend(self.book, limit, already.usd, per_question, unbounded=already.unbounded)
        spent.lease = self.lease
        return spent

    def paced(self) -> AbstractContextManager[None]:
        """Limit calls in the block by `--rpm`, and label them with the shard's lease, if any."""
        limiter = RateLimiter(self.request.rpm) if self.request.rpm else None
        lease = self.lease
        return run_context(turns=lease or limiter, generation=lease and lease.generation)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run's tasks: their logs, and why questions are unanswered."""

    finished: bool
    logs: Sequence[EvalLog]  # headers of the newest log of each task
    trouble: tuple[str, ...]  # distinct reasons of unanswered questions, most frequent first

    def __repr__(self) -> str:
        """Return this outcome as one short line."""
        state = "finished" if self.finished else "unfinished"
        return f"RunOutcome({state}, {pluralise(len(self.logs), 'log')}, {self.unscored} unscored)"

    def _repr_html_(self) -> str:
        rows = [(log.eval.task, log.status, str(log.eval.dataset.samples)) for log in self.logs]
        return f"<pre>{escape(columns(('task', 'status', 'questions'), rows))}</pre>"

    @property
    def unscored(self) -> int:
        """Return the number of answers whose grading failed."""
        results = (log.results.scores for log in self.logs if log.results)
        counts = ([score.unscored_samples or 0 for score in scores] for scores in results)
        # The scorers of a log grade the same answers.
        return sum(max(of_log, default=0) for of_log in counts)


@dataclass(frozen=True, slots=True)
class EvalPurpose:
    """Purpose of a run's answers: results by default, else choosing workers or training."""

    purpose: str = "eval"  # `eval`, or `selection` for calls that only choose or teach
    title: str = "answering"
    only: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Suite -> ids of its questions to ask, in order; other suites ask all."""


def run_entries(job: Job, log_dir: Path, purpose: EvalPurpose = EvalPurpose()) -> RunOutcome:
    """Run all entries of a job's experiment, or finish an earlier attempt."""
    experiment = job.experiment
    entries = sorted(experiment.entries, key=lambda row: row.order or 0)
    models = pool_models(job.spec, experiment.seed, experiment.time_scale)
    # A role of the whole eval set would override the same role of a task.
    roles = {role: models.pop(role) for role, _ in job.spec.roles()}
    journals = [_journal(job, row, purpose.purpose) for row in entries]
    programs = anyio.CapacityLimiter(job.box.most) if job.box else None
    models_logged = _models_in(log_dir)
    tasks: list[Task] = []
    for row, journal in zip(entries, journals, strict=True):
        override = conductor_override(row.system, job.catalogue)
        task = _task(job, row, purpose, (journal, programs))
        task_roles = {**roles, **({CONDUCTOR: slot_model(override)} if override else {})}
        if task.model:
            task_roles |= _environment(job, journal)
        # Inspect identifies a task by its model, too: a task that began without a model gets none.
        if not task.model and models_logged.get(str(task.name)) != NO_MODEL:
            task = _task_with(task, model=system_model(row.system))
        tasks.append(_task_with(task, model_roles=task_roles))
    meter = job.meter(job.request.max_usd_per_query)
    ours = job.request.display == "line"
    line = _progress(tasks, purpose.title, experiment, log_dir) if ours else nullcontext()
    try:
        facts: dict[str, Any] = {"spend": meter, "overflows": experiment.overflows}
        facts["equal"] = _equal(job, purpose.purpose)
        with line as progress, run_context(progress=progress, **facts), cancellable():
            logs = _eval_set(job, tasks, models, log_dir, experiment.task_limit)
    finally:
        for journal in journals:
            journal.close()
    finished = all(log.status == "success" for log in logs)
    return RunOutcome(finished, logs, () if finished else failure_reasons(logs))


def _environment(job: Job, journal: TaskJournal) -> dict[str, Model]:
    """Return role -> model for models that a task's own code calls: simulated user, grader."""
    spec, experiment = job.spec, job.experiment
    slots = {**spec.environment, **({GRADER: spec.grader} if spec.grader else {})}
    seed, scale = experiment.seed, experiment.time_scale
    models = {role: slot_model(slot, seed, scale) for role, slot in slots.items()}
    return {
        role: environment_model(model, role, slots[role].price_ref, journal)
        for role, model in models.items()
    }


def _models_in(log_dir: Path) -> dict[str, str]:
    """Return task -> the name of the model in the task's newest log."""
    paths = newest_logs([log_dir], recursive=False) if any(log_dir.glob("*.eval")) else ()
    headers = [read_eval_log(str(path), header_only=True).eval for path in paths]
    return {header.task: header.model for header in headers}


_PROVIDERS = {
    "_HAS_OPENAI": "inspect_ai.model._openai_responses",
    "_HAS_ANTHROPIC": "inspect_ai.model._providers.anthropic",
}
"""Flag that Inspect checks for every sample -> provider module that Inspect then imports."""


class _Imported:
    """An object whose truth value is whether a module has been imported."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __bool__(self) -> bool:
        return self._module in sys.modules


def _import_only_what_is_asked() -> None:
    """Make Inspect start samples without importing the clients of unused providers.

    Inspect keeps state of OpenAI's and Anthropic's replies for each sample, and imports both
    providers for it, at 1.5 s of CPU time per start. A provider that is not imported has sent no
    reply. If Inspect renames these flags, the imports are back, and nothing breaks.
    """
    for name, module in _PROVIDERS.items():
        setattr(_assistant_internal, name, _Imported(module))


def _eval_set(
    job: Job, tasks: list[Task], models: dict[str, Model], log_dir: Path, limit: int | None
) -> Sequence[EvalLog]:
    _import_only_what_is_asked()
    display = job.request.display
    getLogger("inspect_ai._eval.evalset").addFilter(_matters)  # adding it again changes nothing
    console, still = get_console(), display in ("line", "none")
    quiet, console.quiet = console.quiet, still  # podium prints the result itself
    try:
        # Inspect would leave the eval set's roles and settings in this context.
        _, logs = copy_context().run(
            inspect_eval_set,  # pyright: ignore[reportUnknownArgumentType]
            tasks,
            log_dir=str(log_dir),
            model=None,
            model_roles=models,
            limit=limit,
            max_samples=_samples_at_once(job),
            max_tasks=len(tasks) if _in_batches(job) else None,  # so that all tasks share batches
            display="none" if still else cast(Any, display),
            retry_attempts=0,
            continue_on_fail=True,
            retry_cleanup=False,
            log_buffer=1,
            log_realtime=job.controls.log_realtime,
            log_dir_allow_dirty=True,  # experiment.json and selection/ live beside the logs
            log_model_api=True,  # a provider's own usage, of every call
            ctl_server=False,
            score_display=False,
        )
    except Exception as error:
        if reason := _unwritten(error):
            raise UserError(
                f"{log_dir} or Inspect's own files cannot be written ({reason}). Free some "
                "space, then repeat the command to finish."
            ) from error
        raise
    finally:
        console.quiet = quiet
    if len(logs) < len(tasks) or any(log.status == "cancelled" for log in logs):
        raise KeyboardInterrupt  # after Ctrl-C the set reports success, with no logs
    return logs


def _in_batches(job: Job) -> bool:
    return any(slot.config.batch for slot in job.spec.workers)


IN_BATCHES = 10_000
"""Samples in parallel if calls are batched: as many requests as Inspect collects for a batch."""
SAMPLES = 4
"""Samples of an Inspect task in parallel; each holds the task's state in memory."""


def _samples_at_once(job: Job) -> int | None:
    """Return the maximum number of parallel samples; None leaves the choice to Inspect."""
    names = {row.suite for row in job.experiment.entries}
    if not any(isinstance(job.catalogue.suites[name], TaskSuite) for name in names):
        return IN_BATCHES if _in_batches(job) else None
    setting = os.environ.get("INSPECT_EVAL_MAX_SAMPLES", "")
    return int(setting) if setting.isdecimal() and int(setting) else SAMPLES


def _unwritten(error: BaseException, visited: frozenset[int] = frozenset()) -> str:
    """Return why a file could not be written, if that caused the error; else an empty text."""
    # An error that is raised again in its own handler is its own cause: `visited` prevents a loop.
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return error.strerror or "no room"
    if isinstance(error, sqlite3.OperationalError) and "disk" in str(error):
        return str(error)
    visited = visited | {id(error)}
    behind: list[BaseException | None] = [error.__cause__ or error.__context__]
    if isinstance(error, BaseExceptionGroup):
        behind += cast(BaseExceptionGroup[BaseException], error).exceptions
    reasons = (_unwritten(cause, visited) for cause in behind if cause and id(cause) not in visited)
    return next(filter(None, reasons), "")


def answered_pairs(log_dir: Path) -> dict[str, frozenset[tuple[str, int]]]:
    """Return the answered (question, epoch) pairs of each task's newest log."""
    return {
        name: frozenset((str(sample.id), sample.epoch) for sample in samples)
        for _, name, samples in _done(log_dir, recursive=False)
    }


def logged_samples(log_dir: Path) -> dict[str, float]:
    """Return answered sample's name -> its log's modification time + `TICK_S`, in Unix seconds."""
    return {
        sample_name(name, str(sample.id), sample.epoch): path.stat().st_mtime + TICK_S
        for path, name, samples in _done(log_dir, recursive=True)
        for sample in samples
    }


def _done(log_dir: Path, *, recursive: bool) -> Iterator[tuple[Path, str, list[EvalSampleSummary]]]:
    # Shards are excluded: each shard's process drops its own replies and counts its own pairs.
    there = outside_shards(log_dir, log_dir.glob("**/*.eval" if recursive else "*.eval"))
    for path in newest_logs(there) if there else ():
        name = read_eval_log(str(path), header_only=True).eval.task
        summaries = read_eval_log_sample_summaries(str(path))
        yield path, name, [row for row in summaries if row.completed and not row.error]


def _progress(
    tasks: Sequence[Task], title: str, experiment: Experiment, log_dir: Path
) -> AbstractContextManager[ProgressLine]:
    """Return a progress line over all (question, epoch) pairs, also those of earlier attempts."""
    limit = experiment.task_limit or maxsize
    sizes = {str(task.name): min(len(task.dataset), limit) * (task.epochs or 1) for task in tasks}
    answered = answered_pairs(log_dir)
    finished = sum(min(len(answered.get(name, ())), size) for name, size in sizes.items())
    return progress_line(title, sum(sizes.values()), finished)


def _matters(record: LogRecord) -> bool:
    """Log filter: drop the warning that Inspect's default of `retry_immediate` has no effect."""
    return not record.getMessage().startswith("retry_immediate=True has no effect")


def failure_reasons(logs: Sequence[EvalLog]) -> tuple[str, ...]:
    """Return why questions are unanswered: each distinct error once, with its count."""
    reasons: Counter[str] = Counter()
    for log in logs:
        if log.status == "success":
            continue
        summaries = read_eval_log_sample_summaries(log.location) if log.location else []
        errors = [summary.error for summary in summaries if summary.error]
        if log.error and not errors:
            errors = [log.error.message]
        may = publishable(log.eval.metadata)
        reasons.update(_sentence(redacted_message(error, may)) for error in errors)
    return tuple(
        f"{reason} ({pluralise(count, 'question')})" for reason, count in reasons.most_common()
    )


def _sentence(error: str) -> str:
    """Return the message in an error that Inspect stored as a repr, `WorkerError('...')`."""
    match = re.fullmatch(r"\w+\((['\"])(.*)\1\)", error, re.DOTALL)
    return match.group(2) if match else error


def mean_score(log: EvalLog) -> tuple[float, int]:
    """Return a log's mean grade and the number of graded questions."""
    header = log if log.results else read_eval_log(log.location, header_only=True)
    scores = header.results.scores if header.results else []
    metric = scores[0].metrics.get("mean") if scores else None
    return (0.0, 0) if metric is None else (float(metric.value), scores[0].scored_samples or 0)


Shared = tuple[TaskJournal, anyio.CapacityLimiter | None]  # all entries share the program limiter


def _task(job: Job, row: Entry, purpose: EvalPurpose, shared: Shared) -> Task:
    suite, (journal, programs) = job.catalogue.suites[row.suite], shared
    spec = with_conductor(job.spec, conductor_override(row.system, job.catalogue))
    box, card = job.box_for(suite), job.catalogue.card(row.system)
    name = task_name(row.suite, row.system, purpose.purpose, row.part)
    only = row.questions or purpose.only.get(row.suite)
    if only is None and job.experiment.suite_limits:  # Inspect has one limit for all tasks
        only = [question.id for question in job.questions(suite)]
    metadata = {**_header(job, row, spec, purpose.purpose), "purpose": purpose.purpose}
    facts: dict[str, Any] = {"log_dir": job.request.log_dir, "spec": spec, "journal": journal}
    if box and programs:
        tests = public_tests_of(suite, box.box, programs)
        facts |= {"public_tests": tests, "programs": programs}
    make_solver = job.catalogue.solver
    with run_context(**facts):
        if isinstance(suite, TaskSuite):
            system = system_of(make_solver(row.solver, {**row.args, "pool": spec.name}))
            acts, override = card.acts, conductor_override(row.system, job.catalogue)
            plays = SystemInPlay(system, acts, spec, override, journal)
            return played(
                suite,
                let_play(system_model(row.system), plays),
                journal,
                name=name,
                epochs=job.experiment.epochs[row.suite],
                only=only,
                metadata=metadata,
            )
        task = as_task(
            suite,
            split=job.experiment.split,
            epochs=job.experiment.epochs[row.suite],
            box=box.box if box else None,
            max_sandboxes=box.most if box else None,
            solver=make_solver(row.solver, {**row.args, "pool": spec.name}),
            name=name,
            sandbox=sandbox_of(card),
            only=only,
            metadata=metadata,
        )
    return named_by_room(task, row.solver)


def _equal(job: Job, purpose: str) -> EqualBudget | None:
    # An equal budget does not cover learning.
    return single_budget(job.experiment.equal) if purpose == "eval" else None


def planned_system(job: Job, solver: str, args: Mapping[str, Any], spec: PoolSpec) -> System:
    """Return the system that a solver makes in a run, so that its calls can be counted."""
    with run_context(log_dir=job.request.log_dir, spec=spec):
        return system_of(job.catalogue.solver(solver, {**args, "pool": spec.name}))


def _header(job: Job, row: Entry, spec: PoolSpec, purpose: str) -> dict[str, Any]:
    """Return a log's metadata on its entry (system on suite) and pool, which reports read."""
    card = job.catalogue.card(row.system)
    box = job.box_for(job.catalogue.suites[row.suite])
    equal = _equal(job, purpose)
    notes = [note for note in row.notes if note not in card.deviations]  # older logs have both
    if footnote := card.methods.footnote(spec.label):
        notes.append(footnote)
    if spec.replayed and not prompts_recorded(spec):
        notes.append("prompt not recorded")
    return {
        "system": row.system,
        "args": dict(row.args),
        "notes": notes,
        "uses_targets": row.uses_targets,
        "reference_allowed": row.reference_allowed,
        "learnt": dict(row.learnt),
        "order": row.order,
        "headline": job.experiment.headline,
        "journal": JOURNAL,
        **({"equal": str(equal)} if equal else {}),
        **({"draws": SHARED} if job.experiment.draws == SHARED else {}),
        "overflows": job.experiment.overflows,
        **({"gate_sha256": gate} if (gate := job.experiment.gate_sha256) else {}),
        **({"run_file": dict(job.request.run_file)} if job.request.run_file else {}),
        "pool": spec.name,
        "pool_sha256": spec.sha256,
        "label": spec.label,
        "prices": job.book.for_log(spec.price_keys).as_json(),
        "workers": {slot.name: worker_facts(slot) for slot in spec.slots},
        "box": box.name if box else None,
        "box_facts": box.facts[row.suite].model_dump(mode="json") if box else None,
        "seed": job.experiment.seed,
        "time_scale": job.experiment.time_scale,
        **card_header(card, len(spec.names), row.args, equal),
    }


def worker_facts(slot: WorkerSpec) -> dict[str, Any]:
    """Return the settings of a worker for a log's metadata, without folders and API keys."""
    files = {name: Path(value).name for name, value in slot.args.items() if name == "cassette"}
    return {
        "model": slot.model,
        "price": slot.price_ref,
        "card": slot.card,
        "knowledge_cutoff": slot.cutoff,
        "config": slot.config.model_dump(exclude_none=True),
        "args": shown({**slot.args, **files}),
        **({"not_auditable": slot.not_auditable} if slot.not_auditable else {}),
    }


def _journal(job: Job, row: Entry, purpose: str) -> TaskJournal:
    head = Head(
        task=task_name(row.suite, row.system, purpose, row.part),
        suite=row.suite,
        system=row.system,
        label=job.spec.label,
        book=job.book.name,
        book_sha256=job.book.sha256,
        shown=job.catalogue.suites[row.suite].publishable,
    )
    # Train and eval calls never share replies: the purpose is part of the name.
    draws = json.dumps([row.suite, purpose]) if job.experiment.draws == SHARED else ""
    return TaskJournal(job.request.log_dir, head, PaidReplies(job.request.whole_dir), draws)
