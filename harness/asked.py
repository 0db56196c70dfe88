"""What a run is asked for, read and refused: the same for `podium run` and for its dry run.

Nothing is called or written here. Not here: boxes, and what an experiment's directory already has.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.compose import ORACLE, Catalogue, Request, chosen_suites, manifest_key
from harness.errors import UserError
from harness.experiment import Experiment, read_experiment
from harness.extent import Extent, InPrompts, extent, prompts
from harness.field import (
    GROUPS,
    default_systems,
    refuse_forgotten,
    refuse_moved_suites,
    refuse_unmatched,
    spelled_singles,
    unready,
    unusable,
)
from harness.groups import Fit, spelled_out
from harness.judges import judged_among, refuse_judged_plans, refuse_unjudged
from harness.learning.teaching import (
    TRAIN,
    calls_to_learn,
    questions_each,
    refuse_too_few,
    refuse_untaught,
    teachers,
)
from harness.pool_file import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.recordings import recordings, refuse_unrecorded
from harness.suite import Suite, prompt_of
from harness.task import pick


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with everything that it names."""

    spec: PoolSpec
    book: Book
    catalogue: Catalogue
    """With the suites' questions put as the experiment puts them."""
    suites: Sequence[Suite[Any]]
    systems: Sequence[str]
    scope: Extent
    stored: Experiment | None
    """The experiment as its directory has it."""
    train_calls: int | None = None
    train_on: tuple[str, ...] = ()
    """As asked, else as the experiment has it."""
    left_out: tuple[str, ...] = ()
    """Who of a named group of systems does not fit, and why."""

    @property
    def experiment(self) -> Experiment:
        """The experiment that is asked for, without entries, box and images."""
        return Experiment(
            pool=self.spec.name,
            pool_sha256=self.spec.sha256,
            recordings=recordings(self.spec),
            book_sha256=self.book.sha256,
            seed=self.scope.seed,
            split=self.scope.split,
            box=None,
            time_scale=self.scope.time_scale,
            limit=self.scope.limit,
            epochs=self.scope.epochs,
            suite_versions={suite.name: suite.version for suite in self.suites},
            data_revisions={suite.name: suite.data_revision for suite in self.suites},
            prompts={suite.name: prompt_of(suite) for suite in self.suites},
            entries=(),
            train_calls=self.train_calls,
            train_on=self.train_on,
        )


def read_request(request: Request, catalogue: Catalogue, *, ready: bool = True) -> Asked:
    """Return what a request names; UserError for what can be known to fail before a call.

    A missing key, server or price is refused only where the run is to be `ready`.
    """
    reader = RequestReader(request, catalogue, ready)
    for reason in reader.reasons():
        raise UserError(reason)
    return reader.asked


@dataclass(slots=True)
class RequestReader:
    """Reads a request, and says in turn all that speaks against it.

    Who wants to run stops at the first reason; who wants to know (`podium doctor`) hears them all,
    each of what is left when what was refused before is left out.
    """

    request: Request
    catalogue: Catalogue
    ready: bool = True
    _asked: Asked | None = None

    @property
    def asked(self) -> Asked:
        """What was read; all of it once `reasons` has been gone through."""
        assert self._asked is not None, "reasons() reads"
        return self._asked

    @property
    def is_read(self) -> bool:
        """Whether pool, suites and experiment could be read."""
        return self._asked is not None

    def reasons(self) -> Iterator[str]:
        """Yield why the request is refused; UserError where it cannot even be read."""
        request = self.request
        spec = read_pool(request.pool)
        book = read_book(spec.prices)
        yield from self._unknown_suites()
        named = chosen_suites(self.request, self.catalogue)
        stored = read_experiment(request.log_dir)
        refuse_forgotten(stored, request.log_dir, self.catalogue)
        refuse_moved_suites(stored, request.log_dir, self.catalogue)
        ways = prompts(request, stored, named)
        catalogue = replace(self.catalogue, suites=InPrompts(self.catalogue.suites, ways))
        suites = chosen_suites(self.request, catalogue)
        scope = extent(request, stored, suites)
        calls = request.train_calls or (stored.train_calls if stored else None)
        taught = tuple(dict.fromkeys(request.train_on)) or (stored.train_on if stored else ())
        self._asked = Asked(spec, book, catalogue, suites, (), scope, stored, calls, taught)
        yield from self._systems()
        if self.ready:
            yield from unready(spec, book, self.asked.systems, catalogue)
        yield from _unlearnable(self.asked, request)
        yield from _unanswerable(self.asked, request.selection_limit)

    def _unknown_suites(self) -> Iterator[str]:
        """Yield what is wrong with names of suites; those that are known are read on."""
        known: list[str] = []
        for name in self.request.suites:
            one = replace(self.request, suites=(name,))
            if reason := reason_of(lambda one=one: chosen_suites(one, self.catalogue)):
                yield reason
            else:
                known.append(name)
        self.request = replace(self.request, suites=tuple(known))

    def _systems(self) -> Iterator[str]:
        """Yield why systems cannot run; those that can are the ones that were asked for."""
        asked, request = self.asked, self.request
        try:
            names, left_out = _spelled_out(asked, request)
        except UserError as error:
            yield str(error)
            names, left_out = [one for one in request.systems if one not in GROUPS], ()
        fitting: list[str] = []
        for name in spelled_singles(names or self._default(), asked.spec):
            if reason := unusable(name, asked.catalogue, asked.spec, asked.suites):
                yield reason
            else:
                fitting.append(name)
        self._asked = replace(asked, systems=fitting, left_out=tuple(left_out))

    def _default(self) -> Sequence[str]:
        """Return every system that fits, where none was named."""
        if self.request.systems:
            return ()
        return default_systems(self.asked.catalogue, self.asked.spec, self.asked.suites)


def reason_of(check: Callable[[], object]) -> str:
    """Return why a check refuses; empty where it does not."""
    try:
        check()
    except UserError as error:
        return str(error)
    return ""


def _spelled_out(asked: Asked, request: Request) -> tuple[Sequence[str], Sequence[str]]:
    """Return the systems that are named, one by one or by group, and who of a group is left out."""
    if not {*request.systems} & {*GROUPS}:
        return request.systems, ()
    limits = (asked.scope.split, asked.scope.limit)
    judged = any(judged_among(suite, pick(suite, *limits)) for suite in asked.suites)
    rows = asked.stored.entries if asked.stored else ()
    sat = [{row.system for row in rows if row.suite == suite.name} for suite in asked.suites]
    known = sorted(set[str].intersection(*sat)) if sat else []

    def untaught(system: str) -> str | None:
        try:
            refuse_untaught(asked.suites, [system], asked.experiment, asked.catalogue)
        except UserError as error:
            return str(error)
        return None

    fit = Fit(asked.catalogue, asked.spec, asked.suites, untaught, request.match, known, judged > 0)
    return spelled_out(request.systems, fit)


def _unlearnable(asked: Asked, request: Request) -> Iterator[str]:
    """Yield why systems lack what they learn from or are matched with."""
    calls = request.train_calls
    if calls is not None and calls < 1:
        yield f"--train-calls must be at least 1, not {calls}."
        return
    entries = asked.stored.entries if asked.stored else ()
    known = {
        suite.name: [row.system for row in entries if row.suite == suite.name]
        for suite in asked.suites
    }
    spec, all_ = asked.spec, asked.catalogue
    checks: list[Callable[[], object]] = [
        lambda: refuse_too_few(asked.train_calls, len(spec.names), len(asked.train_on)),
        *(
            lambda one=one: refuse_untaught(asked.suites, [one], asked.experiment, all_)
            for one in asked.systems
        ),
        *(
            lambda rows=rows: refuse_unmatched(request.match, asked.systems, rows, all_)
            for rows in known.values()
        ),
    ]
    found = [reason_of(check) for check in checks]
    yield from dict.fromkeys(one for one in found if one)


def _unanswerable(asked: Asked, selection_limit: int) -> Iterator[str]:
    """Yield why the pool cannot answer or grade a question that the run covers."""
    for suite in asked.suites:
        if reason := reason_of(lambda suite=suite: _refuse_questions(asked, suite)):
            yield reason
    lessons = reason_of(lambda: _refuse_unrecorded_lessons(asked, selection_limit))
    if lessons:
        yield lessons


def _refuse_questions(asked: Asked, suite: Suite[Any]) -> None:
    """Raise UserError where a suite's questions are not here, or nobody answers or grades them."""
    questions = pick(suite, asked.scope.split, asked.scope.limit)
    refuse_unrecorded(asked.spec, questions, asked.scope.epochs[suite.name], suite)
    refuse_unjudged(suite, questions, asked.spec)
    if ORACLE in asked.systems:
        refuse_judged_plans(suite, questions)


def _refuse_unrecorded_lessons(asked: Asked, selection_limit: int) -> None:
    """Raise UserError where recorded replies answer no train questions that are to be asked."""
    manifests = [asked.catalogue.systems[manifest_key(one)] for one in asked.systems]
    if not asked.spec.replayed or not any(one.on_best or one.learns for one in manifests):
        return
    workers = len(asked.spec.names)
    calls = calls_to_learn(asked.experiment, selection_limit, workers)
    for suite in asked.suites:
        taught = teachers(suite, asked.experiment, asked.catalogue)
        for teacher in taught:
            questions = pick(teacher, TRAIN, questions_each(calls, workers, len(taught)))
            refuse_unrecorded(asked.spec, questions, 1, teacher)
