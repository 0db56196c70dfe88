"""What a run is asked for, read and refused: the same for `podium run` and for its dry run.

Nothing is called or written here. Not here: boxes, and what an experiment's directory already has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.compose import (
    ORACLE,
    Catalogue,
    Request,
    chosen_suites,
    manifest_key,
)
from harness.errors import UserError
from harness.experiment import Experiment, read_experiment
from harness.extent import Extent, InPrompts, extent, prompts
from harness.field import (
    GROUPS,
    chosen_systems,
    refuse_forgotten,
    refuse_unmatched,
    refuse_unready,
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
    spec = read_pool(request.pool)
    book = read_book(spec.prices)
    named = chosen_suites(request, catalogue)
    stored = read_experiment(request.log_dir)
    refuse_forgotten(stored, request.log_dir, catalogue)
    ways = prompts(request, stored, named)
    catalogue = replace(catalogue, suites=InPrompts(catalogue.suites, ways))
    suites = chosen_suites(request, catalogue)
    scope = extent(request, stored, suites)
    calls = request.train_calls or (stored.train_calls if stored else None)
    taught = tuple(dict.fromkeys(request.train_on)) or (stored.train_on if stored else ())
    asked = Asked(spec, book, catalogue, suites, (), scope, stored, calls, taught)
    names, left_out = _spelled_out(asked, request)
    systems = chosen_systems(names, catalogue, spec, suites)
    asked = replace(asked, systems=systems, left_out=tuple(left_out))
    if ready:
        refuse_unready(spec, book, systems, catalogue)
    _refuse_unlearnable(asked, request)
    _refuse_questions(asked, request.selection_limit)
    return asked


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


def _refuse_unlearnable(asked: Asked, request: Request) -> None:
    """Raise UserError for systems that lack what they learn from or are matched with."""
    calls = request.train_calls
    if calls is not None and calls < 1:
        raise UserError(f"--train-calls must be at least 1, not {calls}.")
    refuse_too_few(asked.train_calls, len(asked.spec.names), len(asked.train_on))
    refuse_untaught(asked.suites, asked.systems, asked.experiment, asked.catalogue)
    entries = asked.stored.entries if asked.stored else ()
    for suite in asked.suites:
        known = [row.system for row in entries if row.suite == suite.name]
        refuse_unmatched(request.match, asked.systems, known, asked.catalogue)


def _refuse_questions(asked: Asked, selection_limit: int) -> None:
    """Raise UserError where the pool cannot answer or grade a question that the run covers."""
    for suite in asked.suites:
        questions = pick(suite, asked.scope.split, asked.scope.limit)
        refuse_unrecorded(asked.spec, questions, asked.scope.epochs[suite.name], suite)
        refuse_unjudged(suite, questions, asked.spec)
        if ORACLE in asked.systems:
            refuse_judged_plans(suite, questions)
    if asked.spec.replayed:
        _refuse_unrecorded_lessons(asked, selection_limit)


def _refuse_unrecorded_lessons(asked: Asked, selection_limit: int) -> None:
    """Raise UserError where recorded replies answer no train questions that are to be asked."""
    manifests = [asked.catalogue.systems[manifest_key(one)] for one in asked.systems]
    if not any(one.on_best or one.learns for one in manifests):
        return
    workers = len(asked.spec.names)
    calls = calls_to_learn(asked.experiment, selection_limit, workers)
    for suite in asked.suites:
        taught = teachers(suite, asked.experiment, asked.catalogue)
        for teacher in taught:
            questions = pick(teacher, TRAIN, questions_each(calls, workers, len(taught)))
            refuse_unrecorded(asked.spec, questions, 1, teacher)
