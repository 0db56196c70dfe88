"""The entries of an experiment as tasks of one Inspect eval set, under which nothing is lost.

Tried on inspect-ai 0.3.285: with `fail_on_error=False` a set reports success and never asks a
failed question again; with `log_realtime=False` alone a killed run asks finished questions again.
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
"""In a log's header: every call of this log is in a journal too; older logs do not say it."""


@dataclass(frozen=True, slots=True)
class Controls:
    """The choices that need parts of several spokes; podium/cli/ supplies them."""

    choose: Callable[[Mapping[str, float]], str]
    """Accuracy per worker, in pool order -> the best single worker."""
    make_plans: Callable[..., None]
    """(path, questions, pool, grade): write the oracle's plans that are still missing."""
    opened: Callable[[Path, Suite[Any], int], object]
    """Called when questions of an `eval` split are about to be asked, to write it down."""
    bare: BareText = whole_text
    """What a question asks, without its suite's instruction: how a question is known again."""
    log_realtime: bool = True
    """Whether Inspect's log has a call before its question is answered; free replies need not."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request with everything it named, found and checked."""

    request: RunRequest
    catalogue: Catalogue  # with the suites' questions put as the experiment puts them
    controls: Controls
    spec: PoolSpec
    book: Book
    suites: Suites  # those that are asked for now, as are the systems
    stored: Experiment | None  # the experiment as its directory had it
    experiment: Experiment  # as it is asked for, and once it is checked, with what was stored
    systems: Sequence[str] = ()
    left_out: Sequence[str] = ()  # who of a named group of systems does not fit, and why
    box: OpenBox | None = None
    lease: ShardLimits | None = None  # of a shard: its part of the run's limits
    _picked: dict[tuple[Any, ...], Sequence[Question]] = field(
        default_factory=dict[tuple[Any, ...], Sequence[Question]], repr=False, compare=False
    )

    def questions(self, suite: Suite[Any]) -> Sequence[Question]:
        """Return the questions of a suite that the run covers; they are drawn and checked once."""
        experiment = self.experiment
        limit = experiment.limit_of(suite.name)
        key = (suite.name, prompt_of(suite), experiment.split, limit)
        if key not in self._picked:
            self._picked[key] = pick(suite, experiment.split, limit)
        picked = self._picked[key]
        rows = (row for row in experiment.entries if row.suite == suite.name)
        of_shard = {id for row in rows for id in row.questions}
        return [one for one in picked if one.id in of_shard] if of_shard else picked

    def known_systems(self, suite: Suite[Any]) -> list[str]:
        """Return the systems that the experiment has had on a suite."""
        rows = self.stored.entries if self.stored else ()
        return [row.system for row in rows if row.suite == suite.name]

    def missing(self, suite: Suite[Any]) -> list[str]:
        """Return the systems that are asked for and have no entry of a suite yet."""
        if self.request.settled:
            return []
        stored = {row.name for row in self.experiment.entries}
        return [one for one in self.systems if task_name(suite.name, one) not in stored]

    def entry(self, suite: Suite[Any], system: str, args: Mapping[str, Any]) -> Entry:
        """Return the entry of one system on one suite."""
        card = self.catalogue.card(system)
        return Entry(
            suite.name, system, card.solver, dict(args), uses_targets="sees targets" in card.traits
        )

    def box_for(self, suite: Suite[Any]) -> OpenBox | None:
        """Return where a suite runs programs; None for suites that run none."""
        return self.box if suite.needs_box else None

    def meter(self, per_question: Decimal | None = None) -> Spend:
        """Return a meter of dollars that knows what earlier attempts have spent."""
        limit = self.request.max_usd
        if self.lease:
            limit = self.lease.granted
        known = limit is not None
        already = spent_so_far(self.request.whole_dir, self.book) if known else SpentSoFar()
        spent = Spend(self.book, limit, already.usd, per_question, unbounded=already.unbounded)
        spent.lease = self.lease
        return spent

    def paced(self) -> AbstractContextManager[None]:
        """Let calls that are made within wait for their turns, under the lease that they name."""
        limiter = RateLimiter(self.request.rpm) if self.request.rpm else None
        lease = self.lease
        return run_context(turns=lease or limiter, generation=lease and lease.generation)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a set ended."""

    finished: bool
    logs: Sequence[EvalLog]  # headers of the newest log of each task
    trouble: tuple[str, ...]  # distinct reasons of unanswered questions, most frequent first

    def __repr__(self) -> str:
        """Return it in one short line."""
        state = "finished" if self.finished else "unfinished"
        return f"RunOutcome({state}, {pluralise(len(self.logs), 'log')}, {self.unscored} unscored)"

    def _repr_html_(self) -> str:
        rows = [(log.eval.task, log.status, str(log.eval.dataset.samples)) for log in self.logs]
        return f"<pre>{escape(columns(('task', 'status', 'questions'), rows))}</pre>"

    @property
    def unscored(self) -> int:
        """Return how many answers have no verdict: we failed to grade them."""
        scores = [score for log in self.logs if log.results for score in log.results.scores]
        return sum(score.unscored_samples or 0 for score in scores)


@dataclass(frozen=True, slots=True)
class EvalPurpose:
    """What entries are answered for; the default is a result."""

    purpose: str = "eval"  # `eval`, or `selection` for calls that only choose or teach
    title: str = "answering"
    only: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Suite -> ids of the questions that are asked, in order; others ask all of them."""


def run_entries(job: Job, log_dir: Path, how: EvalPurpose = EvalPurpose()) -> RunOutcome:
    """Run all entries of a job's experiment, or finish what an earlier attempt left."""
    experiment = job.experiment
    entries = sorted(experiment.entries, key=lambda row: row.order or 0)
    models = pool_models(job.spec, experiment.seed, experiment.time_scale)
    # What a whole eval set says of a role would come before what a task says.
    roles = {role: models.pop(role) for role, _ in job.spec.roles()}
    journals = [_journal(job, row, how.purpose) for row in entries]
    programs = anyio.CapacityLimiter(job.box.most) if job.box else None
    models_logged = _models_in(log_dir)
    tasks: list[Task] = []
    for row, journal in zip(entries, journals, strict=True):
        override = conductor_override(row.system, job.catalogue)
        task = _task(job, row, how, (journal, programs))
        own = {**roles, **({CONDUCTOR: slot_model(override)} if override else {})}
        if task.model:
            own |= _environment(job, journal)
        # Inspect knows a task again by its model, too: one that was begun without goes on without.
        if not task.model and models_logged.get(str(task.name)) != NO_MODEL:
            task = _task_with(task, model=system_model(row.system))
        tasks.append(_task_with(task, model_roles=own))
    meter = job.meter(job.request.max_usd_per_query)
    ours = job.request.display == "line"
    line = _progress(tasks, how.title, experiment, log_dir) if ours else nullcontext()
    try:
        facts: dict[str, Any] = {"spend": meter, "overflows": experiment.overflows}
        facts["equal"] = _equal(job, how.purpose)
        with line as progress, run_context(progress=progress, **facts), cancellable():
            limit = None if experiment.suite_limits else experiment.limit  # else tasks are cut
            logs = _eval_set(job, tasks, models, log_dir, limit)
    finally:
        for journal in journals:
            journal.close()
    finished = all(log.status == "success" for log in logs)
    return RunOutcome(finished, logs, () if finished else failure_reasons(logs))


def _environment(job: Job, journal: TaskJournal) -> dict[str, Model]:
    """Return the models that a task's own code asks, by role: its user, its grader."""
    spec, experiment = job.spec, job.experiment
    slots = {**spec.environment, **({GRADER: spec.grader} if spec.grader else {})}
    made = {
        role: slot_model(slot, experiment.seed, experiment.time_scale)
        for role, slot in slots.items()
    }
    prices = {role: slot.price_ref for role, slot in slots.items()}
    return {
        role: environment_model(model, role, prices[role], journal) for role, model in made.items()
    }


def _models_in(log_dir: Path) -> dict[str, str]:
    """Return the model that each task's newest log names."""
    paths = newest_logs([log_dir], recursive=False) if any(log_dir.glob("*.eval")) else ()
    headers = [read_eval_log(str(path), header_only=True).eval for path in paths]
    return {header.task: header.model for header in headers}


_PROVIDERS = {
    "_HAS_OPENAI": "inspect_ai.model._openai_responses",
    "_HAS_ANTHROPIC": "inspect_ai.model._providers.anthropic",
}
"""What Inspect imports for every sample, by the name under which it knows whether it can."""


class _Imported:
    """True as soon as a module is imported."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __bool__(self) -> bool:
        return self._module in sys.modules


def _import_only_what_is_asked() -> None:
    """Let samples begin without the clients of providers that none of the workers has.

    Inspect keeps for each sample what only OpenAI's or Anthropic's own replies hold, and imports
    both providers for that: a second and a half of processor time at each start. What is not
    imported has replied nothing. Where Inspect has other names for this, the second is back.
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
    quiet, console.quiet = console.quiet, still  # how it ended is said by us
    try:
        # Inspect leaves a set's roles and settings behind in its caller's context.
        _, logs = copy_context().run(
            inspect_eval_set,  # pyright: ignore[reportUnknownArgumentType]
            tasks,
            log_dir=str(log_dir),
            model=None,
            model_roles=models,
            limit=limit,
            max_samples=_samples_at_once(job),
            max_tasks=len(tasks) if _in_batches(job) else None,  # else one waits for another's
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
        if why := _unwritten(error):
            raise UserError(
                f"{log_dir} or Inspect's own files cannot be written ({why}): make room, "
                "and the same command finishes what is left."
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
"""Samples at once in batches; Inspect lets as many requests wait for one."""
SAMPLES = 4
"""Of an Inspect task that a system has in hand at once: each holds the task's state in memory."""


def _samples_at_once(job: Job) -> int | None:
    """Return how many samples of tasks a system has in hand, by Inspect's own variable if set."""
    names = {row.suite for row in job.experiment.entries}
    if not any(isinstance(job.catalogue.suites[name], TaskSuite) for name in names):
        return IN_BATCHES if _in_batches(job) else None
    named = os.environ.get("INSPECT_EVAL_MAX_SAMPLES", "")
    return int(named) if named.isdecimal() and int(named) else SAMPLES


def _unwritten(error: BaseException, seen: frozenset[int] = frozenset()) -> str:
    """Return why a file could not be written, if that ended a run; else nothing."""
    # An error that is raised again while it is handled stands behind itself: `seen`.
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return error.strerror or "no room"
    if isinstance(error, sqlite3.OperationalError) and "disk" in str(error):
        return str(error)
    seen = seen | {id(error)}
    behind: list[BaseException | None] = [error.__cause__ or error.__context__]
    if isinstance(error, BaseExceptionGroup):
        behind += cast(BaseExceptionGroup[BaseException], error).exceptions
    found = (_unwritten(one, seen) for one in behind if one and id(one) not in seen)
    return next(filter(None, found), "")


def answered_pairs(log_dir: Path) -> dict[str, frozenset[tuple[str, int]]]:
    """Return the (question, epoch) pairs that each task's newest log has answered."""
    return {
        name: frozenset((str(one.id), one.epoch) for one in done)
        for _, name, done in _done(log_dir, recursive=False)
    }


def logged_samples(log_dir: Path) -> dict[str, float]:
    """Return the samples that the newest logs below a directory have answered, by their names."""
    return {
        sample_name(name, str(one.id), one.epoch): path.stat().st_mtime + TICK_S
        for path, name, done in _done(log_dir, recursive=True)
        for one in done
    }


def _done(log_dir: Path, *, recursive: bool) -> Iterator[tuple[Path, str, list[EvalSampleSummary]]]:
    # A shard's own run lets go of its replies, and knows its pairs.
    there = outside_shards(log_dir, log_dir.glob("**/*.eval" if recursive else "*.eval"))
    for path in newest_logs(there) if there else ():
        name = read_eval_log(str(path), header_only=True).eval.task
        summaries = read_eval_log_sample_summaries(str(path))
        yield path, name, [one for one in summaries if one.completed and not one.error]


def _progress(
    tasks: Sequence[Task], title: str, experiment: Experiment, log_dir: Path
) -> AbstractContextManager[ProgressLine]:
    """Return a line over all pairs of a run, earlier attempts' included."""
    most = (not experiment.suite_limits and experiment.limit) or maxsize
    sizes = {str(one.name): min(len(one.dataset), most) * (one.epochs or 1) for one in tasks}
    before = answered_pairs(log_dir)
    done = sum(min(len(before.get(name, ())), size) for name, size in sizes.items())
    return progress_line(title, sum(sizes.values()), done)


def _matters(record: LogRecord) -> bool:
    """Say whether a warning is none that Inspect's default for `retry_immediate` does nothing."""
    return not record.getMessage().startswith("retry_immediate=True has no effect")


def failure_reasons(logs: Sequence[EvalLog]) -> tuple[str, ...]:
    """Return why questions have no answer: each distinct error once, with its count."""
    reasons: Counter[str] = Counter()
    for log in logs:
        if log.status == "success":
            continue
        summaries = read_eval_log_sample_summaries(log.location) if log.location else []
        errors = [one.error for one in summaries if one.error]
        if log.error and not errors:
            errors = [log.error.message]
        may = publishable(log.eval.metadata)
        reasons.update(redacted_message(_sentence(one), may) for one in errors)
    return tuple(
        f"{reason} ({pluralise(count, 'question')})" for reason, count in reasons.most_common()
    )


def _sentence(error: str) -> str:
    """Return what an exception said: Inspect keeps its repr, `WorkerError('...')`."""
    said = re.fullmatch(r"\w+\((['\"])(.*)\1\)", error, re.DOTALL)
    return said.group(2) if said else error


def mean_score(log: EvalLog) -> tuple[float, int]:
    """Return a log's mean grade and how many questions it is of."""
    header = log if log.results else read_eval_log(log.location, header_only=True)
    scores = header.results.scores if header.results else []
    metric = scores[0].metrics.get("mean") if scores else None
    return (0.0, 0) if metric is None else (float(metric.value), scores[0].scored_samples or 0)


Shared = tuple[TaskJournal, anyio.CapacityLimiter | None]  # the places of programs are all entries'


def _task(job: Job, row: Entry, how: EvalPurpose, shared: Shared) -> Task:
    suite, (journal, programs) = job.catalogue.suites[row.suite], shared
    spec = with_conductor(job.spec, conductor_override(row.system, job.catalogue))
    box, card = job.box_for(suite), job.catalogue.card(row.system)
    name = task_name(row.suite, row.system, how.purpose, row.part)
    only = row.questions or how.only.get(row.suite)
    if only is None and job.experiment.suite_limits:  # Inspect has one limit for all tasks
        only = [question.id for question in job.questions(suite)]
    metadata = {**_header(job, row, spec, how.purpose), "purpose": how.purpose}
    known: dict[str, Any] = {"log_dir": job.request.log_dir, "spec": spec, "journal": journal}
    if box and programs:
        tests = public_tests_of(suite, box.box, programs)
        known |= {"public_tests": tests, "programs": programs}
    made = job.catalogue.solver
    with run_context(**known):
        if isinstance(suite, TaskSuite):
            system = system_of(made(row.solver, {**row.args, "pool": spec.name}))
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
            solver=made(row.solver, {**row.args, "pool": spec.name}),
            name=name,
            sandbox=sandbox_of(card),
            only=only,
            metadata=metadata,
        )
    return named_by_room(task, row.solver)


def _equal(job: Job, purpose: str) -> EqualBudget | None:
    # What systems learn from stands apart from what they may use for a question.
    return single_budget(job.experiment.equal) if purpose == "eval" else None


def planned_system(job: Job, solver: str, args: Mapping[str, Any], spec: PoolSpec) -> System:
    """Return the system of a solver as a run would make it: for counting what it will ask."""
    with run_context(log_dir=job.request.log_dir, spec=spec):
        return system_of(job.catalogue.solver(solver, {**args, "pool": spec.name}))


def _header(job: Job, row: Entry, spec: PoolSpec, purpose: str) -> dict[str, Any]:
    """Return what a log says of its entry and its pool: enough for a table."""
    card = job.catalogue.card(row.system)
    box = job.box_for(job.catalogue.suites[row.suite])
    equal = _equal(job, purpose)
    notes = [note for note in row.notes if note not in card.deviations]  # as older entries are
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
    """Return what a log says of a worker; nobody is told folders and keys."""
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
    # Train draws are never those of an eval: the purpose is part of the name.
    draws = json.dumps([row.suite, purpose]) if job.experiment.draws == SHARED else ""
    return TaskJournal(job.request.log_dir, head, PaidReplies(job.request.whole_dir), draws)
