"""What a run asks for: read, given its defaults, refused. Nothing is called or written here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from harness.cassette import cassette_digests, refuse_unrecorded
from harness.errors import UserError, reasons_of
from harness.inspect_adapters import pick, refuse_no_epochs
from harness.judge import judged_among, refuse_judged_plans, refuse_unjudged
from harness.pool_config import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.records import Question
from harness.run import lessons, systems
from harness.run.catalogue import (
    ANY_SINGLE,
    ORACLE,
    SINGLE,
    Catalogue,
    RunRequest,
    Suites,
    find_named,
    manifest_key,
    select_suites,
)
from harness.run.experiment import Experiment, read_experiment
from harness.suite import OFFICIAL, Prompt, Suite, prompt_of, usual_epochs, with_prompt


def unknown_prompt_note(suites: Suites, prompt: Prompt | None) -> str:
    """Return the sentence on suites that do not know a prompt; empty when all do."""
    asked = suites if prompt else ()
    names = [one.name for one in asked if prompt_of(with_prompt(one, prompt or OFFICIAL)) != prompt]
    said = f"No {prompt} prompt is known for {', '.join(names)}: asked with the {OFFICIAL} one."
    return said if names else ""


class PromptedSuites(Mapping[str, Suite[Any]]):
    """Suites by name, those named in `prompts` with their questions put so where that is known."""

    def __init__(self, suites: Mapping[str, Suite[Any]], prompts: Mapping[str, Prompt]) -> None:
        """Keep both: a suite is made when it is asked for."""
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
    catalogue: Catalogue  # with the suites' questions put as the experiment puts them
    suites: Suites
    stored: Experiment | None  # the experiment as its directory has it
    experiment: Experiment  # the experiment that is asked for, without entries, box and images
    systems: Sequence[str] = ()
    left_out: Sequence[str] = ()  # who of a named group of systems does not fit, and why

    def questions(self, suite: Suite[Any]) -> Sequence[Question]:
        """Return the questions of a suite that the run covers."""
        return pick(suite, self.experiment.split, self.experiment.limit)

    def known_systems(self, suite: Suite[Any]) -> list[str]:
        """Return the systems that the experiment has had on a suite."""
        rows = self.stored.entries if self.stored else ()
        return [row.system for row in rows if row.suite == suite.name]


def read_request(request: RunRequest, catalogue: Catalogue, ready: bool = True) -> ResolvedRequest:
    """Return what a request names; UserError for what must fail, if `ready` for keys and prices."""
    reader = RequestReader(request, catalogue, ready)
    for reason in reader.reasons():
        raise UserError(reason)
    return reader.asked


@dataclass(slots=True)
class RequestReader:
    """Reads a request, and says in turn all that speaks against it.

    A run stops at the first reason; a doctor hears all, without what was refused before.
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
        systems.refuse_moved(stored, self.request.log_dir, self.catalogue)
        self.asked = self._resolved(spec, book, stored)
        yield from self._unusable_systems()
        if self.ready:
            yield from systems.missing_needs(spec, book, self.asked.systems, self.asked.catalogue)
        yield from _unlearnable(self.asked, self.request)
        for suite in self.asked.suites:
            yield from reasons_of(_refuse_questions, self.asked, suite)
        limit = self.request.selection_limit
        yield from reasons_of(_refuse_unrecorded_lessons, self.asked, limit)

    def _unknown_suites(self) -> Iterator[str]:
        for name in self.request.suites:
            yield from reasons_of(find_named, self.catalogue.suites, name, "suite")
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
        self, spec: PoolSpec, book: Book, stored: Experiment | None, suites: Suites
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
        """Yield why systems cannot run; the others are asked for."""
        asked, left_out = self.asked, list[str]()
        parts = (asked.catalogue, asked.spec, asked.suites)
        named = self.request.systems or systems.default_systems(*parts)
        try:
            if {*named} & {*systems.GROUPS}:
                named, left_out = _expanded_groups(asked, self.request)
        except UserError as error:
            yield str(error)
            named = [one for one in named if one not in systems.GROUPS]
        fitting: list[str] = []
        for name in systems.expand_singles(named, asked.spec):
            if reason := systems.why_unusable(name, *parts):
                yield reason
            else:
                fitting.append(name)
        self.asked = replace(asked, systems=fitting, left_out=left_out)


def _expanded_groups(asked: ResolvedRequest, request: RunRequest) -> tuple[list[str], list[str]]:
    """Return names with groups spelled out, and who is left out; UserError if no member fits."""
    names, known = request.systems, asked.catalogue.systems
    judged = any(judged_among(suite, asked.questions(suite)) for suite in asked.suites)
    late = {name for name, card in known.items() if "match" in card.needs}
    members = [(name, one) for name in names for one in _members(name, asked.catalogue)]
    found: dict[str, None] = {}
    left: dict[str, list[str]] = {}
    for name, one in sorted(members, key=lambda member: manifest_key(member[1]) in late):
        grouped = name in systems.GROUPS
        why = _unfit(one, asked, request, [*found, *names], judged) if grouped else None
        if why is None:
            found[one] = None
        else:
            left.setdefault(why.removeprefix(one).lstrip(": "), []).append(one)
    for group in names:
        if not any(one in found for name, one in members if name == group):
            why, them = next(iter(left.items()))
            raise UserError(f"None of the {group} can run: {them[0]} {why}")
    return [*found], [f"{', '.join(dict.fromkeys(them))}: {why}" for why, them in left.items()]


def _members(name: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield the systems of a group, a system being its own; `all` is without frameworks."""
    if name not in systems.GROUPS:
        yield name
        return
    for one, card in catalogue.systems.items():
        if card.group == name or (name == systems.ALL and card.group != "frameworks"):
            yield SINGLE if one == ANY_SINGLE else one


def _unfit(
    name: str, asked: ResolvedRequest, request: RunRequest, others: Sequence[str], judged: bool
) -> str | None:
    """Return why a member of a group cannot run with others, or where a model grades, or at all."""
    if name == SINGLE:
        return None
    if "match" in asked.catalogue.card(name).needs:
        stored = [{*asked.known_systems(suite)} for suite in asked.suites]  # on every suite
        known = sorted(set[str].intersection(*stored)) if stored else []
        if systems.match_target(request.match, [*others, *known]) is None:
            whom = request.match or "a conductor"
            return f"{name} is matched with {whom}, which is not in this run."
    if name == ORACLE and judged:
        return f"{name} tries many plans, and a model would have to judge each."
    taught = (asked.suites, name, asked.experiment, asked.catalogue)
    why = systems.why_unfit(name, asked.catalogue, asked.spec)
    why = why or next(reasons_of(lessons.refuse_untaught, *taught), None)
    return why or systems.why_untested(name, asked.catalogue, asked.suites)


def _unlearnable(asked: ResolvedRequest, request: RunRequest) -> Iterator[str]:
    if request.train_calls is not None and request.train_calls < 1:
        yield f"--train-calls must be at least 1, not {request.train_calls}."
        return
    experiment, parts = asked.experiment, asked.catalogue
    sizes = (len(asked.spec.names), len(experiment.train_on))
    found = [*reasons_of(lessons.refuse_too_few, experiment.train_calls, *sizes)]
    for one in asked.systems:
        found += reasons_of(lessons.refuse_untaught, asked.suites, one, experiment, parts)
    for suite in asked.suites:
        known = asked.known_systems(suite)
        found += reasons_of(systems.refuse_unmatched, request.match, asked.systems, known, parts)
    yield from dict.fromkeys(found)


def _refuse_questions(asked: ResolvedRequest, suite: Suite[Any]) -> None:
    questions = asked.questions(suite)
    refuse_unrecorded(asked.spec, questions, asked.experiment.epochs[suite.name], suite)
    refuse_unjudged(suite, questions, asked.spec)
    if ORACLE in asked.systems:
        refuse_judged_plans(suite, questions)


def _refuse_unrecorded_lessons(asked: ResolvedRequest, selection_limit: int) -> None:
    cards = [asked.catalogue.card(one) for one in asked.systems]
    if not asked.spec.replayed or not any(one.on_best or one.learns for one in cards):
        return
    workers = len(asked.spec.names)
    calls = lessons.calls_to_learn(asked.experiment, selection_limit, workers)
    for suite in asked.suites:
        taught = lessons.training_suites(suite, asked.experiment, asked.catalogue)
        each = lessons.questions_each(calls, workers, len(taught))
        for teacher in taught:
            questions = pick(teacher, lessons.TRAIN, each)
            refuse_unrecorded(asked.spec, questions, 1, teacher)
