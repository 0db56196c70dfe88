"""What a run asks for: read, given its defaults, refused.

The same for `podium run`, its dry run and its doctor; nothing is called or written here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, cast

from harness.cassette import cassette_digests, refuse_unrecorded
from harness.errors import UserError
from harness.inspect_adapters import pick, refuse_no_epochs
from harness.judge import judged_among, refuse_judged_plans, refuse_unjudged
from harness.pool_config import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.run.catalogue import ORACLE, Catalogue, RunRequest, manifest_key, select_suites
from harness.run.experiment import Experiment, read_experiment
from harness.run.lessons import (
    TRAIN,
    calls_to_learn,
    questions_each,
    refuse_too_few,
    refuse_untaught,
    training_suites,
)
from harness.run.systems import (
    GROUPS,
    Requirements,
    default_systems,
    expand_groups,
    expand_singles,
    missing_needs,
    refuse_forgotten,
    refuse_moved_suites,
    refuse_unmatched,
    why_unusable,
)
from harness.suite import OFFICIAL, Prompt, Split, Suite, prompt_of, usual_epochs, with_prompt


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run covers."""

    limit: int | None = None
    seed: int = 0
    split: Split = "eval"
    time_scale: float = 0.01
    epochs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Suite -> how often each of its questions is asked."""


def run_scope(
    asked: RunRequest, stored: Experiment | None, suites: Sequence[Suite[Any]]
) -> RunScope:
    """Return what a run of some suites covers: as asked, else as stored, else the defaults.

    UserError for numbers that leave nothing to ask or cannot be slept.
    """
    refuse_no_epochs(asked.epochs)
    old = RunScope()
    if stored:
        old = RunScope(stored.limit, stored.seed, cast(Split, stored.split), stored.time_scale)
    scale = old.time_scale if asked.time_scale is None else asked.time_scale
    if not 0 <= scale < inf:
        raise UserError(f"--time-scale must be 0 or a positive number, not {scale}.")
    return RunScope(
        limit=old.limit if asked.limit is None else asked.limit,
        seed=old.seed if asked.seed is None else asked.seed,
        split=asked.split or old.split,
        time_scale=scale,
        epochs={suite.name: _epochs(asked, stored, suite) for suite in suites},
    )


def _epochs(asked: RunRequest, stored: Experiment | None, suite: Suite[Any]) -> int:
    if asked.epochs is not None:
        return asked.epochs
    known = stored.epochs.get(suite.name) if stored else None
    return known or usual_epochs(suite)


def suite_prompts(
    asked: RunRequest, stored: Experiment | None, suites: Sequence[Suite[Any]]
) -> dict[str, Prompt]:
    """Return suite -> prompt for the requested suites and for those of the experiment."""
    known = dict[str, Prompt](stored.prompts if stored else {})
    if asked.prompt:
        known.update(dict.fromkeys((suite.name for suite in suites), asked.prompt))
    return known


def unknown_prompt_note(suites: Sequence[Suite[Any]], prompt: Prompt | None) -> str:
    """Return the sentence on suites that do not know a prompt; empty when all do."""
    if prompt is None:
        return ""
    names = [suite.name for suite in suites if prompt_of(with_prompt(suite, prompt)) != prompt]
    if not names:
        return ""
    return f"No {prompt} prompt is known for {', '.join(names)}: asked with the {OFFICIAL} one."


class PromptedSuites(Mapping[str, Suite[Any]]):
    """Suites by name, each with its questions put as one experiment puts them."""

    def __init__(self, suites: Mapping[str, Suite[Any]], prompts: Mapping[str, Prompt]) -> None:
        """Put the suites named in `prompts` so, where that way is known, and others as they are."""
        self._suites = suites
        self._prompts = prompts

    def __getitem__(self, name: str) -> Suite[Any]:
        suite = self._suites[name]
        prompt = self._prompts.get(suite.name)
        return with_prompt(suite, prompt) if prompt else suite

    def __iter__(self) -> Iterator[str]:
        return iter(self._suites)

    def __len__(self) -> int:
        return len(self._suites)


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """A request with everything that it names."""

    spec: PoolSpec
    book: Book
    catalogue: Catalogue
    """With the suites' questions put as the experiment puts them."""
    suites: Sequence[Suite[Any]]
    systems: Sequence[str]
    scope: RunScope
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
            recordings=cassette_digests(self.spec),
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


def read_request(
    request: RunRequest, catalogue: Catalogue, *, ready: bool = True
) -> ResolvedRequest:
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

    request: RunRequest
    catalogue: Catalogue
    ready: bool = True
    _asked: ResolvedRequest | None = None

    @property
    def asked(self) -> ResolvedRequest:
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
        named = select_suites(self.request, self.catalogue)
        stored = read_experiment(request.log_dir)
        refuse_forgotten(stored, request.log_dir, self.catalogue)
        refuse_moved_suites(stored, request.log_dir, self.catalogue)
        ways = suite_prompts(request, stored, named)
        catalogue = replace(self.catalogue, suites=PromptedSuites(self.catalogue.suites, ways))
        suites = select_suites(self.request, catalogue)
        scope = run_scope(request, stored, suites)
        calls = request.train_calls or (stored.train_calls if stored else None)
        taught = tuple(dict.fromkeys(request.train_on)) or (stored.train_on if stored else ())
        self._asked = ResolvedRequest(
            spec, book, catalogue, suites, (), scope, stored, calls, taught
        )
        yield from self._systems()
        if self.ready:
            yield from missing_needs(spec, book, self.asked.systems, catalogue)
        yield from _unlearnable(self.asked, request)
        yield from _unanswerable(self.asked, request.selection_limit)

    def _unknown_suites(self) -> Iterator[str]:
        """Yield what is wrong with names of suites; those that are known are read on."""
        known: list[str] = []
        for name in self.request.suites:
            one = replace(self.request, suites=(name,))
            if reason := reason_of(lambda one=one: select_suites(one, self.catalogue)):
                yield reason
            else:
                known.append(name)
        self.request = replace(self.request, suites=tuple(known))

    def _systems(self) -> Iterator[str]:
        """Yield why systems cannot run; those that can are the ones that were asked for."""
        asked, request = self.asked, self.request
        try:
            names, left_out = _expanded_systems(asked, request)
        except UserError as error:
            yield str(error)
            names, left_out = [one for one in request.systems if one not in GROUPS], ()
        fitting: list[str] = []
        for name in expand_singles(names or self._default(), asked.spec):
            if reason := why_unusable(name, asked.catalogue, asked.spec, asked.suites):
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


def _expanded_systems(
    asked: ResolvedRequest, request: RunRequest
) -> tuple[Sequence[str], Sequence[str]]:
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

    fit = Requirements(
        asked.catalogue, asked.spec, asked.suites, untaught, request.match, known, judged > 0
    )
    return expand_groups(request.systems, fit)


def _unlearnable(asked: ResolvedRequest, request: RunRequest) -> Iterator[str]:
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


def _unanswerable(asked: ResolvedRequest, selection_limit: int) -> Iterator[str]:
    """Yield why the pool cannot answer or grade a question that the run covers."""
    for suite in asked.suites:
        if reason := reason_of(lambda suite=suite: _refuse_questions(asked, suite)):
            yield reason
    lessons = reason_of(lambda: _refuse_unrecorded_lessons(asked, selection_limit))
    if lessons:
        yield lessons


def _refuse_questions(asked: ResolvedRequest, suite: Suite[Any]) -> None:
    """Raise UserError where a suite's questions are not here, or nobody answers or grades them."""
    questions = pick(suite, asked.scope.split, asked.scope.limit)
    refuse_unrecorded(asked.spec, questions, asked.scope.epochs[suite.name], suite)
    refuse_unjudged(suite, questions, asked.spec)
    if ORACLE in asked.systems:
        refuse_judged_plans(suite, questions)


def _refuse_unrecorded_lessons(asked: ResolvedRequest, selection_limit: int) -> None:
    """Raise UserError where recorded replies answer no train questions that are to be asked."""
    manifests = [asked.catalogue.systems[manifest_key(one)] for one in asked.systems]
    if not asked.spec.replayed or not any(one.on_best or one.learns for one in manifests):
        return
    workers = len(asked.spec.names)
    calls = calls_to_learn(asked.experiment, selection_limit, workers)
    for suite in asked.suites:
        taught = training_suites(suite, asked.experiment, asked.catalogue)
        for teacher in taught:
            questions = pick(teacher, TRAIN, questions_each(calls, workers, len(taught)))
            refuse_unrecorded(asked.spec, questions, 1, teacher)
