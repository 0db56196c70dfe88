"""Reads a run's request, fills in defaults and checks it. Nothing is called or written here."""

from collections import ChainMap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from typing import Any, cast

from podium.harness.boxes import open_run_box, select_box
from podium.harness.cassette import cassette_digests, refuse_unrecorded
from podium.harness.envelope import single_budget
from podium.harness.errors import UserError, reasons_of
from podium.harness.inspect_adapters import pick, refuse_no_epochs
from podium.harness.ledger.manifest import file_digest
from podium.harness.pool_config import (
    PoolSpec,
    WorkerSpec,
    in_batches,
    provider_of,
    read_pool,
    with_conductor,
)
from podium.harness.prices import Book
from podium.harness.records import FRESH, SHARED, WRONG
from podium.harness.run import batching, entries, lessons, preflight
from podium.harness.run.catalogue import (
    ANY_SINGLE,
    ORACLE,
    SINGLE,
    Catalogue,
    RunRequest,
    Suites,
    conductor_override,
    find_named,
    manifest_key,
    refuse_unused,
    select_suites,
    variants_named,
)
from podium.harness.run.earlier_lessons import earlier_answers
from podium.harness.run.equal_budgets import fitting_systems, why_unbounded
from podium.harness.run.evaluate import Controls, Job, worker_facts
from podium.harness.run.experiment import (
    POOL,
    Experiment,
    check_experiment,
    differs,
    is_unanswered,
    pool_changes,
    read_experiment,
)
from podium.harness.run.preflight import problems, refuse_listeners
from podium.harness.run.system_options import why_options_refused
from podium.harness.suite import (
    OFFICIAL,
    Prompt,
    Suite,
    judged_among,
    prompt_of,
    refuse_judged_plans,
    refuse_unjudged,
    usual_epochs,
    with_prompt,
)

UNNAMED = (
    "Pool {0!r} is live, so name the systems that run on it: --system single, moa-lite, "
    "conductor-prompted, any other of `podium systems`, or a group of them ({1})."
)


def unknown_prompt_note(suites: Suites, prompt: Prompt | None) -> str:
    """Return a sentence on the suites without the requested prompt; empty if all suites have it."""
    candidates = suites if prompt else ()
    names = [s.name for s in candidates if prompt_of(with_prompt(s, prompt or OFFICIAL)) != prompt]
    note = f"No {prompt} prompt is known for {', '.join(names)}. The {OFFICIAL} one is used."
    return note if names else ""


def refuse_heard(request: RunRequest, catalogue: Catalogue) -> None:
    """Raise UserError if a requested suite is unpublishable, but an Inspect hook gets its logs."""
    suites = catalogue.suites
    refuse_listeners(suites[name] for name in request.suites if name in suites)


@dataclass(slots=True)
class RequestReader:
    """Reads a request, once, and yields every reason to refuse it; writes nothing.

    `podium run` stops at the first reason. `doctor` drops refused suites and systems, and lists all
    reasons. The run's notes, its estimate and the run itself use the same job.
    """

    request: RunRequest
    catalogue: Catalogue
    controls: Controls
    job: Job = field(init=False)
    """The checked run; it is complete once all reasons to refuse it have been yielded."""
    _is_read: bool = False

    def read(self) -> Job:
        """Return the request's job; UserError if refused (keys and sandboxes are not checked)."""
        for reason in () if self._is_read else self.reasons():
            raise UserError(reason)
        return self.job

    def reasons(self, ready: bool = False) -> Iterator[str]:
        """Yield why the request is refused; if `ready`, also missing keys and prices."""
        yield from preflight.why_unusable(self.request.log_dir)
        spec = read_pool(self.request.pool)
        spec = in_batches(spec) if self.request.batch else spec
        yield from batching.why_unbatched(spec)
        book = spec.book()
        yield from self._unknown_suites()
        stored = read_experiment(self.request.log_dir)
        preflight.refuse_moved(stored, self.request.log_dir, self.catalogue)
        self.job = self._named(spec, book, stored)
        yield from reasons_of(refuse_unused, self.job.suites, self.request.task_args)
        yield from _changed_pool(self.job)
        yield from self._unusable_systems()
        options = self.request.system_options
        yield from why_options_refused(options, self.job.systems, self.job.catalogue)
        yield from reasons_of(entries.refuse_other_options, self.job)
        yield from batching.why_unpredictable(self.job)
        if ready:
            yield from missing_needs(self.job)
        if not self.request.settled:
            yield from _unlearnable(self.job)
        yield from _unasked_providers(self.job)
        yield from _unasked_suites(self.job)
        for suite in self.job.suites:
            yield from reasons_of(_refuse_questions, self.job, suite)
        yield from reasons_of(_refuse_unrecorded_lessons, self.job)
        for name in self.job.systems:
            yield from reasons_of(entries.refuse_options, self.job, name)
        self._is_read = True

    def all_reasons(self, stack: ExitStack) -> Iterator[str]:
        """Yield all reasons against starting the run; open its sandbox until `stack` is closed."""
        refusals = [*reasons_of(refuse_heard, self.request, self.catalogue)]
        yield from refusals  # before questions are read or a provider is set up
        yield from missing_needs(self.job) if self._is_read else self.reasons(ready=True)
        if not refusals:
            yield from reasons_of(refuse_listeners, self._suites())
        yield from reasons_of(self._open_box, stack)
        experiment = check_experiment(self.request.log_dir, self.job.experiment)
        self.job = job = replace(self.job, experiment=experiment)
        yield from reasons_of(entries.refuse_other_cards, job)
        yield from entries.why_taught(job)
        yield from entries.why_unlearnable(job)

    def _unknown_suites(self) -> Iterator[str]:
        for name in self.request.suites:
            yield from reasons_of(find_named, self.catalogue.suites, name, "suite")
        names = tuple(name for name in self.request.suites if name in self.catalogue.suites)
        self.request = replace(self.request, suites=names)

    def _named(self, spec: PoolSpec, book: Book, stored: Experiment | None) -> Job:
        request, base = self.request, self.catalogue.suites
        prompts = dict[str, Prompt](stored.prompts if stored else {})
        if request.prompt:
            targets = select_suites(request, self.catalogue)
            prompts |= dict.fromkeys((suite.name for suite in targets), request.prompt)
        prompted = {
            name: with_prompt(base[name], prompts[base[name].name])
            for name in {*request.suites, *prompts}
            if name in base and base[name].name in prompts
        }
        catalogue = replace(self.catalogue, suites=ChainMap[str, Any](prompted, cast(Any, base)))
        suites = select_suites(request, catalogue)
        experiment = self._experiment(spec, book, stored, suites)
        return Job(request, catalogue, self.controls, spec, book, suites, stored, experiment)

    def _experiment(
        self, spec: PoolSpec, book: Book, stored: Experiment | None, suites: Suites
    ) -> Experiment:
        """Return the experiment: each setting from the request, else as stored, else a default."""
        request = self.request

        def settled(name: str, usual: Any) -> Any:
            value = getattr(request, name)
            return getattr(stored, name, usual) if value is None else value

        refuse_no_epochs(request.epochs)
        if not 0 <= (scale := settled("time_scale", 0.01)) < inf:
            raise UserError(f"--time-scale must be 0 or a positive number, not {scale}.")
        budget = single_budget(request.equal)
        gate = file_digest(request.gate) if request.gate else ""
        earlier = dict(stored.epochs) if stored else dict[str, int]()
        epochs = {suite.name: earlier.get(suite.name) or usual_epochs(suite) for suite in suites}
        return Experiment(
            pool=spec.name,
            pool_sha256=spec.sha256,
            recordings=cassette_digests(spec),
            book_sha256=book.sha256,
            seed=settled("seed", 0),
            split=settled("split", "eval"),
            box=None,
            time_scale=scale,
            limit=settled("limit", None),
            suite_limits={**(stored.suite_limits if stored else {}), **request.suite_limits},
            epochs=dict.fromkeys(epochs, request.epochs) if request.epochs else epochs,
            suite_versions={suite.name: suite.version for suite in suites},
            data_revisions={suite.name: suite.data_revision for suite in suites},
            prompts={suite.name: prompt_of(suite) for suite in suites},
            entries=(),
            overflows=WRONG,
            equal=str(budget) if budget else stored.equal if stored else "",
            draws=FRESH if request.fresh_draws else stored.draws if stored else SHARED,
            train_calls=request.train_calls or (stored.train_calls if stored else None),
            train_on=tuple(dict.fromkeys(request.train_on)) or (stored.train_on if stored else ()),
            gate_sha256=gate or (stored.gate_sha256 if stored else ""),
            run_file=request.run_file,
        )

    def _unusable_systems(self) -> Iterator[str]:
        """Yield why some requested systems cannot run; keep the other systems in the job."""
        job, left_out = self.job, list[str]()
        names = self.request.systems
        if self.request.settled and job.stored:
            names = tuple({row.system: None for row in job.stored.entries})
        elif not names and job.spec.label == "live":
            yield UNNAMED.format(job.spec.name, ", ".join(preflight.GROUPS))
            return
        names = names or preflight.default_systems(job.catalogue, job.spec, job.suites)
        try:
            if {*names} & {*preflight.GROUPS}:
                names, left_out = _expanded_groups(job)
        except UserError as error:
            yield str(error)
            names = [name for name in names if name not in preflight.GROUPS]
        fitting: list[str] = []
        alone = [f"{SINGLE}:{worker}" for worker in job.spec.names]
        several = (alone if name == SINGLE else variants_named(name) for name in names)
        for name in dict.fromkeys(chain.from_iterable(several)):
            fault = preflight.why_unfit(name, job.catalogue, job.spec)
            fault = fault or preflight.why_unsuited(name, job.catalogue, job.suites)
            if fault := fault or preflight.why_not_live(name, job.catalogue, job.spec, job.stored):
                yield fault
            else:
                fitting.append(name)
        candidates = fitting
        fitting, apart = fitting_systems(job, candidates)
        left_out += apart
        if candidates and not fitting:
            limit = job.experiment.equal
            yield f"No system can answer within {limit}. {apart[0]} Name another system or budget."
        yield from why_unbounded(job, fitting)
        yield from self._undeclared(fitting)
        experiment = replace(job.experiment, headline=self._headline(fitting))
        self.job = replace(job, systems=fitting, left_out=left_out, experiment=experiment)

    def _headline(self, fitting: Sequence[str]) -> str:
        """Return the system whose result is stated above the tables; a stored run keeps its own."""
        if self.request.headline:
            return self.request.headline
        stored = self.job.stored
        return stored.headline if stored else preflight.match_target(None, fitting) or ""

    def _undeclared(self, fitting: Sequence[str]) -> Iterator[str]:
        name, stored = self.request.headline, self.job.stored
        there = {*fitting, *(row.system for row in stored.entries)} if stored else {*fitting}
        if name and name not in there:
            yield f"--headline: {name} is not in this run: add --system {name}, or name another."

    def _suites(self) -> list[Suite[Any]]:
        """Return the requested suites, then other stored ones, to grade ungraded answers again."""
        job, available = self.job, self.job.catalogue.suites
        earlier = {*job.stored.suite_versions} if job.stored else set[str]()
        names = earlier - {suite.name for suite in job.suites}
        return [*job.suites, *(available[name] for name in sorted(names) if name in available)]

    def _open_box(self, stack: ExitStack) -> None:
        job, request, boxes = self.job, self.request, self.catalogue.boxes
        suites = {suite.name: suite for suite in self._suites()}
        for suite in job.suites:
            teaching = lessons.training_suites(job, suite)
            suites |= {teacher.name: teacher for teacher in teaching if teacher.name not in suites}
        name = request.box or (job.stored.box if job.stored else None)
        if any(suite.needs_box for suite in suites.values()):
            name = select_box(name, boxes, ours=job.spec.label == "rehearsal")
        box = stack.enter_context(open_run_box(boxes, name, suites.values(), request.max_sandboxes))
        if box:
            experiment = replace(job.experiment, box=box.name, images=box.image_ids)
            self.job = replace(job, experiment=experiment, box=box)


def _changed_pool(job: Job) -> Iterator[str]:
    """Yield the changes to the pool, if the run already holds replies of the unchanged pool."""
    stored, log_dir = job.stored, job.request.log_dir
    changed = differs(stored, job.experiment, POOL) if stored else ""
    if not changed or changed == "pool" or is_unanswered(log_dir):
        return
    workers = {slot.name: worker_facts(slot) for slot in job.spec.slots}
    changes = [*pool_changes(log_dir, workers, job.book)]
    if changes:
        yield (
            f"{log_dir} holds a run with other settings: its {changed} changed: "
            f"{'; '.join(changes)}. Undo the change, or name another --log-dir."
        )


def _expanded_groups(job: Job) -> tuple[list[str], list[str]]:
    """Return systems, groups expanded, and why members are left out; UserError if none fits."""
    names, cards = job.request.systems, preflight.ours(job.catalogue)
    judged = any(judged_among(suite, job.questions(suite)) for suite in job.suites)
    late = {name for name, card in cards.items() if "match" in card.needs}
    members = [(name, system) for name in names for system in _members(name, job.catalogue)]
    fitting: dict[str, None] = {}
    refusals: dict[str, list[str]] = {}
    for name, system in sorted(members, key=lambda member: manifest_key(member[1]) in late):
        grouped = name in preflight.GROUPS
        reason = _unfit(system, job, [*fitting, *names], judged) if grouped else None
        if reason is None:
            fitting[system] = None
        else:
            refusals.setdefault(reason.removeprefix(system).lstrip(": "), []).append(system)
    for group in names:
        if not any(system in fitting for name, system in members if name == group):
            reason, systems = next(iter(refusals.items()))
            raise UserError(f"None of the {group} can run: {systems[0]} {reason}")
    notes = (f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in refusals.items())
    return [*fitting], [*notes]


def _members(name: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield the members of a group of systems, or the system itself; `all` excludes frameworks."""
    if name not in preflight.GROUPS:
        yield name
        return
    for system, card in preflight.ours(catalogue).items():
        if card.group == name or (name == preflight.ALL and card.group != "frameworks"):
            yield SINGLE if system == ANY_SINGLE else system


def _unfit(name: str, job: Job, systems: Sequence[str], judged: bool) -> str | None:
    """Return why a system of a group cannot run; `judged`: a model grades some questions."""
    if name == SINGLE:
        return None
    if "match" in job.catalogue.card(name).needs:
        stored = [{*job.known_systems(suite)} for suite in job.suites]  # on every suite
        everywhere = sorted(set[str].intersection(*stored)) if stored else []
        if preflight.match_target(job.request.match, [*systems, *everywhere]) is None:
            whom = job.request.match or "a conductor"
            return f"{name} is matched with {whom}, which is not in this run."
    if name == ORACLE and judged:
        return f"{name} tries many plans, and a model would have to judge each."
    reason = preflight.why_unfit(name, job.catalogue, job.spec)
    reason = reason or next(reasons_of(lessons.refuse_untaught, job, name), None)
    reason = reason or preflight.why_unsuited(name, job.catalogue, job.suites)
    reason = reason or next(batching.why_unpredictable(replace(job, systems=(name,))), None)
    return reason or preflight.why_not_live(name, job.catalogue, job.spec, job.stored)


def _unlearnable(job: Job) -> Iterator[str]:
    calls = job.request.train_calls
    if calls is not None and calls < 1:
        yield f"--train-calls must be at least 1, not {calls}."
        return
    reasons = [*reasons_of(lessons.refuse_too_few, job), *reasons_of(earlier_answers, job)]
    for system in job.systems:
        reasons += reasons_of(lessons.refuse_untaught, job, system)
    for suite in job.suites:
        reasons += reasons_of(_refuse_unmatched, job, suite)
    yield from dict.fromkeys(reasons)


def missing_needs(job: Job) -> Iterator[str]:
    """Yield every key, server and price that the pool or a system's own conductor lacks."""
    conducted = any("conductor" in job.catalogue.card(name).needs for name in job.systems)
    reasons = problems(job.spec, job.book, conductor=conducted)
    for override in _conductors(job):
        reasons += problems(with_conductor(job.spec, override), job.book)
    yield from dict.fromkeys(reasons)


def _refuse_unmatched(job: Job, suite: Suite[Any]) -> None:
    """Raise UserError if the run lacks the system whose cost a compute-matched control matches."""
    match = job.request.match
    late = [name for name in job.systems if "match" in job.catalogue.card(name).needs]
    if late and match and manifest_key(match) not in job.catalogue.systems:
        raise UserError(f"--match: {preflight.unknown_system(match, job.catalogue)}")
    if late and match in late:
        raise UserError(f"--match: {match} is itself matched with another system. Name another.")
    if late and preflight.match_target(match, [*job.systems, *job.known_systems(suite)]) is None:
        raise UserError(
            f"{late[0]} is matched with {match or 'a conductor'}, which is not in this run: add "
            f"--system {match or preflight.CONDUCTORS[1]}"
            f"{'' if match else ', or name another system with --match'}."
        )


def _unasked_suites(job: Job) -> Iterator[str]:
    """Yield errors in `--suite-limit`: a suite that is not asked, or a number below 1."""
    for suite, number in job.request.suite_limits.items():
        if suite not in job.experiment.suite_versions:
            known = ", ".join(job.experiment.suite_versions)
            yield f"--suite-limit {suite}={number}: the run asks {known} only. Name one of these."
        elif number < 1:
            yield f"--suite-limit {suite}={number}: it must be at least 1."


def _unasked_providers(job: Job) -> Iterator[str]:
    """Yield errors in `--rpm` (calls per minute): a mistyped provider would limit nothing."""
    specs = [job.spec, *(with_conductor(job.spec, override) for override in _conductors(job))]
    names = sorted({provider_of(slot.model) for spec in specs for slot in spec.slots})
    for provider, calls in job.request.rpm.items():
        if provider not in names:
            known = f"pool {job.spec.name!r} asks {', '.join(names)} only"
            yield f"--rpm {provider}={calls}: {known}. Name one of these."
        elif calls < 1:
            yield f"--rpm {provider}={calls}: it must be at least 1."


def _conductors(job: Job) -> Iterator[WorkerSpec]:
    for name in job.systems:
        if override := conductor_override(name, job.catalogue):
            yield override


def _refuse_questions(job: Job, suite: Suite[Any]) -> None:
    questions = job.questions(suite)
    refuse_unrecorded(job.spec, questions, job.experiment.epochs[suite.name], suite)
    refuse_unjudged(suite, questions, job.spec)
    if ORACLE in job.systems:
        refuse_judged_plans(suite, questions)


def _refuse_unrecorded_lessons(job: Job) -> None:
    card = job.catalogue.card
    learn = (entries.is_chosen(job, name) or card(name).learns for name in job.systems)
    if not job.spec.replayed or not any(learn):
        return
    for suite in job.suites:
        taught = lessons.training_suites(job, suite)
        for teacher in taught:
            each = lessons.questions_per_worker(job, len(taught))
            refuse_unrecorded(job.spec, pick(teacher, lessons.TRAIN, each), 1, teacher)
