"""What a run asks for: read, given its defaults, refused.

The same for `podium run`, its dry run and its doctor; nothing is called or written here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from harness.boxes import OpenBox
from harness.cassette import cassette_digests, refuse_unrecorded
from harness.errors import UserError, reasons_of
from harness.inspect_adapters import pick, refuse_no_epochs
from harness.judge import judged_among, refuse_judged_plans, refuse_unjudged
from harness.pool_config import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.records import Question
from harness.run.catalogue import ORACLE, Catalogue, RunRequest, select_suites
from harness.run.evaluate import Controls, Job
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
from harness.suite import OFFICIAL, Prompt, Suite, prompt_of, usual_epochs, with_prompt


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
    stored: Experiment | None
    """The experiment as its directory has it."""
    experiment: Experiment
    """The experiment that is asked for, without entries, box and images."""
    systems: Sequence[str] = ()
    left_out: Sequence[str] = ()
    """Who of a named group of systems does not fit, and why."""

    def questions(self, suite: Suite[Any]) -> Sequence[Question]:
        """Return the questions of a suite that the run covers."""
        return pick(suite, self.experiment.split, self.experiment.limit)

    def known_systems(self, suite: Suite[Any]) -> list[str]:
        """Return the systems that the experiment has had on a suite."""
        rows = self.stored.entries if self.stored else ()
        return [row.system for row in rows if row.suite == suite.name]


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
    asked: ResolvedRequest = field(init=False)
    """What was read; all of it once `reasons` has been gone through."""

    def reasons(self) -> Iterator[str]:
        """Yield why the request is refused; UserError where it cannot even be read."""
        spec = read_pool(self.request.pool)
        book = read_book(spec.prices)
        yield from self._unknown_suites()
        stored = read_experiment(self.request.log_dir)
        refuse_forgotten(stored, self.request.log_dir, self.catalogue)
        refuse_moved_suites(stored, self.request.log_dir, self.catalogue)
        self.asked = self._resolved(spec, book, stored)
        yield from self._unusable_systems()
        if self.ready:
            yield from missing_needs(spec, book, self.asked.systems, self.asked.catalogue)
        yield from _unlearnable(self.asked, self.request)
        for suite in self.asked.suites:
            yield from reasons_of(_refuse_questions, self.asked, suite)
        limit = self.request.selection_limit
        yield from reasons_of(_refuse_unrecorded_lessons, self.asked, limit)

    def _unknown_suites(self) -> Iterator[str]:
        """Yield what is wrong with names of suites; those that are known are read on."""
        for name in self.request.suites:
            yield from reasons_of(
                select_suites, replace(self.request, suites=(name,)), self.catalogue
            )
        known = tuple(name for name in self.request.suites if name in self.catalogue.suites)
        self.request = replace(self.request, suites=known)

    def _resolved(self, spec: PoolSpec, book: Book, stored: Experiment | None) -> ResolvedRequest:
        request, prompts = self.request, dict[str, Prompt](stored.prompts if stored else {})
        if request.prompt:
            named = select_suites(request, self.catalogue)
            prompts |= dict.fromkeys((suite.name for suite in named), request.prompt)
        suites = PromptedSuites(self.catalogue.suites, prompts)
        catalogue = replace(self.catalogue, suites=suites)
        asked = select_suites(request, catalogue)
        experiment = self._experiment(spec, book, stored, asked)
        return ResolvedRequest(spec, book, catalogue, asked, stored, experiment)

    def _experiment(
        self, spec: PoolSpec, book: Book, stored: Experiment | None, suites: Sequence[Suite[Any]]
    ) -> Experiment:
        """Return what a run covers: as asked, else as stored, else the defaults.

        Epochs and prompts belong to a suite: four epochs of one suite say nothing about another.
        UserError for numbers that leave nothing to ask or cannot be slept.
        """
        request = self.request

        def settled(name: str, usual: Any) -> Any:
            given = getattr(request, name)
            return getattr(stored, name, usual) if given is None else given

        refuse_no_epochs(request.epochs)
        if not 0 <= (scale := settled("time_scale", 0.01)) < inf:
            raise UserError(f"--time-scale must be 0 or a positive number, not {scale}.")
        before = dict(stored.epochs) if stored else dict[str, int]()
        epochs = {one.name: before.get(one.name) or usual_epochs(one) for one in suites}
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
            epochs=dict.fromkeys(epochs, request.epochs) if request.epochs else epochs,
            suite_versions={suite.name: suite.version for suite in suites},
            data_revisions={suite.name: suite.data_revision for suite in suites},
            prompts={suite.name: prompt_of(suite) for suite in suites},
            entries=(),
            train_calls=request.train_calls or (stored.train_calls if stored else None),
            train_on=tuple(dict.fromkeys(request.train_on)) or (stored.train_on if stored else ()),
        )

    def _unusable_systems(self) -> Iterator[str]:
        """Yield why systems cannot run; those that can are the ones that were asked for."""
        asked, named, left_out = self.asked, self.request.systems, list[str]()
        try:
            if {*named} & {*GROUPS}:
                named, left_out = _expanded_groups(asked, self.request)
        except UserError as error:
            yield str(error)
            named = [one for one in named if one not in GROUPS]
        if not self.request.systems:
            named = default_systems(asked.catalogue, asked.spec, asked.suites)
        fitting: list[str] = []
        for name in expand_singles(named, asked.spec):
            if reason := why_unusable(name, asked.catalogue, asked.spec, asked.suites):
                yield reason
            else:
                fitting.append(name)
        self.asked = replace(asked, systems=fitting, left_out=left_out)


def _expanded_groups(asked: ResolvedRequest, request: RunRequest) -> tuple[list[str], list[str]]:
    judged = any(judged_among(suite, asked.questions(suite)) for suite in asked.suites)
    sat = [{*asked.known_systems(suite)} for suite in asked.suites]
    known = sorted(set[str].intersection(*sat)) if sat else []

    def untaught(system: str) -> str | None:
        given = (asked.suites, [system], asked.experiment, asked.catalogue)
        return next(reasons_of(refuse_untaught, *given), None)

    fit = Requirements(
        asked.catalogue, asked.spec, asked.suites, untaught, request.match, known, judged
    )
    return expand_groups(request.systems, fit)


def _unlearnable(asked: ResolvedRequest, request: RunRequest) -> Iterator[str]:
    if request.train_calls is not None and request.train_calls < 1:
        yield f"--train-calls must be at least 1, not {request.train_calls}."
        return
    experiment, parts = asked.experiment, asked.catalogue
    sizes = (len(asked.spec.names), len(experiment.train_on))
    found = [*reasons_of(refuse_too_few, experiment.train_calls, *sizes)]
    for one in asked.systems:
        found += reasons_of(refuse_untaught, asked.suites, [one], experiment, parts)
    for suite in asked.suites:
        known = asked.known_systems(suite)
        found += reasons_of(refuse_unmatched, request.match, asked.systems, known, parts)
    yield from dict.fromkeys(found)


def _refuse_questions(asked: ResolvedRequest, suite: Suite[Any]) -> None:
    """Raise UserError where a suite's questions are not here, or nobody answers or grades them."""
    questions = asked.questions(suite)
    refuse_unrecorded(asked.spec, questions, asked.experiment.epochs[suite.name], suite)
    refuse_unjudged(suite, questions, asked.spec)
    if ORACLE in asked.systems:
        refuse_judged_plans(suite, questions)


def _refuse_unrecorded_lessons(asked: ResolvedRequest, selection_limit: int) -> None:
    """Raise UserError where recorded replies answer no train questions that are to be asked."""
    cards = [asked.catalogue.card(one) for one in asked.systems]
    if not asked.spec.replayed or not any(one.on_best or one.learns for one in cards):
        return
    workers = len(asked.spec.names)
    calls = calls_to_learn(asked.experiment, selection_limit, workers)
    for suite in asked.suites:
        taught = training_suites(suite, asked.experiment, asked.catalogue)
        for teacher in taught:
            questions = pick(teacher, TRAIN, questions_each(calls, workers, len(taught)))
            refuse_unrecorded(asked.spec, questions, 1, teacher)


def job_of(
    request: RunRequest, asked: ResolvedRequest, controls: Controls, box: OpenBox | None = None
) -> Job:
    """Return the job of a request that was read."""
    parts = (asked.catalogue, controls, asked.spec, asked.book)
    return Job(request, *parts, asked.suites, asked.systems, box)
