"""Suites and systems by name, arguments of `podium run`, and listings, as of `podium suites`."""

import re
import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, cast, get_args

from inspect_ai._util.registry import is_registry_object
from inspect_ai.solver import Solver

from podium.harness.api_keys import shown
from podium.harness.boxes import Boxes
from podium.harness.errors import UserError, no_such
from podium.harness.knowledge_cutoff import cutoff_lines
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.prices import Book
from podium.harness.prices.cost import cost
from podium.harness.records import Usage
from podium.harness.request import service_tier
from podium.harness.shutdown import GRACE_S
from podium.harness.suite import Prompt, Prompted, Split, Suite, prompt_of, usual_epochs
from podium.harness.system import Acts, Calls, Group, Need, SystemCard
from podium.harness.task_suite import TaskSuite
from podium.harness.text import columns, folded, format_range, records, terminal_width

SINGLE = "single"
ANY_SINGLE = "single:<worker>"  # key of the card that all single workers share
BEST_SINGLE = "best-single"
ORACLE = "oracle"
Suites = Sequence[Suite[Any]]
SET_BY_RUN = {
    "pool": "--pool",
    "seed": "--seed",
    "cards": "--worker-cards",
    **dict.fromkeys(("learned", "sha256", "checkpoint_sha256"), "the run"),
}
"""Solver arguments that `-S` cannot set -> the option that sets them instead."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All suites, systems and sandboxes that a command line can name; podium/cli/ fills it."""

    suites: Mapping[str, Suite[Any]]
    systems: Mapping[str, SystemCard]
    """System name, as in tables -> card; the card `single:<worker>` is for all single workers."""
    solver: Callable[[str, Mapping[str, Any]], Solver]
    """(solver's name in Inspect's registry, its arguments as plain values) -> the solver."""
    parameters: Callable[[str], Mapping[str, Parameter]]  # registry name -> its solver's arguments
    boxes: Boxes
    draw_pools: Callable[[int], PoolSpec]
    """Number n -> one pool that joins n randomly drawn pools of practice workers, for training."""
    ours: Collection[str] = ()
    """Suites and systems that come with podium; group names such as `all` stand for these only."""
    package: Callable[[str], str] = lambda name: "podium"
    """Name of a suite, system or sandbox -> the package and version that provide it."""

    def card(self, system: str) -> SystemCard:
        """Return a system's card (description); all `single:NAME` share one, as do all `NAME@K`."""
        return self.systems[manifest_key(system)]

    def options(self, system: str) -> dict[str, Parameter]:
        """Return the arguments of a system that `-S` may set; the run sets all others."""
        card, key = self.card(system), manifest_key(system)
        if key in (ANY_SINGLE, BEST_SINGLE, ORACLE) or "match" in card.needs or card.explores:
            return {}  # a system trained by its own attempts always has its default options
        set_otherwise = {*SET_BY_RUN, *((card.k, "checkpoint") if card.takes_name else ())}
        parameters = self.parameters(card.solver).values()
        settable = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return {p.name: p for p in settable if p.name not in set_otherwise}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments of one `podium run`."""

    suites: tuple[str, ...]
    systems: tuple[str, ...]
    pool: str
    log_dir: Path
    limit: int | None = None
    """Number of first questions to ask of each suite. Here and in the next five fields, None means
    the stored value, or the default of a new experiment (harness/run/run_request.py)."""
    epochs: int | None = None
    seed: int | None = None
    split: Split | None = None
    prompt: Prompt | None = None
    time_scale: float | None = None
    max_usd: Decimal | None = None
    max_usd_per_query: Decimal | None = None
    rpm: Mapping[str, int] = field(default_factory=dict[str, int])
    """Provider -> maximum calls per minute; other providers have no limit."""
    suite_limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Suite -> its own number of first questions, in place of `limit`."""
    box: str | None = None
    max_sandboxes: int | None = None  # programs that run in parallel; None: number of cores
    selection_limit: int = 40
    """Number of train questions that each worker answers alone, unless `train_calls` is set."""
    train_calls: int | None = None
    """Maximum worker calls per system for learning (default `selection_limit` times workers)."""
    task_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments (`-T key=value`) of those suites that are Inspect tasks."""
    system_options: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    """System -> option -> value (`-S`); the system `""` is every system that has the option."""
    train_on: tuple[str, ...] = ()  # suites to learn from (train splits); empty: each suite's own
    profile: Path | None = None
    """Directory of a run whose single workers' answers to train questions are reused; or None."""
    match: str | None = None
    """System whose cost the `compute-matched-*` systems match; None: the conductor."""
    headline: str | None = None
    """System whose result is stated above the table, chosen before the run; None: the conductor."""
    gate: Path | None = None
    """File of rules that the run must meet (docs/gates.md); its digest goes into the logs."""
    worker_cards: Literal["shown", "hidden"] | None = None
    """Whether models that choose workers read the workers' role cards; None: they do."""
    equal: str | None = None
    """Budget of every system for one question, such as `calls=9`; None: no equal budget."""
    group_dir: Path | None = None
    """Directory of runs, one per budget size, that share replies and `max_usd`; None: one run."""
    fresh_draws: bool = False
    """Whether each system of a new run samples its own replies; False: equal calls share one."""
    batch: bool = False
    """Whether workers are asked by their providers' batch APIs: cheaper, answers within a day."""
    display: str = "line"
    grace_s: float = GRACE_S
    """Seconds to wait for calls in flight after a signal stops the run."""
    settled: bool = False
    """Whether to run only the entries in experiment.json; True in a shard of a larger run."""
    run_file: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """Digest of the run file (run.toml), and the command-line options given with it."""

    @property
    def whole_dir(self) -> Path:
        """Directory whose runs share replies and `max_usd`: `group_dir` if set, else `log_dir`."""
        return self.group_dir or self.log_dir


OWN = ".py@"
"""Marks a user's own suite or system in a name, as in `./mine.py@majority`."""


def find_named(registry: Mapping[str, Any], name: str, noun: str) -> Any:
    """Return a suite or system: registered, an Inspect task or in a file; UserError if unknown."""
    if name in registry:
        return registry[name]
    if OWN in name:
        return load_own(name, noun)
    if noun == "suite" and "/" in name:
        return TaskSuite(name)
    raise no_such(noun, name, sorted(registry))


def find_graders(
    registry: Mapping[str, Any], names: Sequence[str], arguments: Mapping[str, Any]
) -> list[Suite[Any]]:
    """Return suites that can grade single replies; UserError for an Inspect task that cannot.

    `arguments`: arguments of suites that are Inspect tasks.
    """
    named = (find_named(registry, name, "suite") for name in names)
    suites = [_with_arguments(suite, arguments) for suite in named]
    refuse_unused(suites, arguments)
    return [suite.for_training() if isinstance(suite, TaskSuite) else suite for suite in suites]


def find_grader(
    registry: Mapping[str, Any], name: str, arguments: Mapping[str, Any] | None = None
) -> Suite[Any]:
    """Return a suite as `find_graders` does."""
    return find_graders(registry, [name], arguments or {})[0]


def load_own(name: str, noun: str) -> Any:
    """Return the user's own suite or system FILE.py@NAME; UserError if the file has none."""
    file, _, attribute = name.rpartition("@")
    spec = spec_from_file_location(Path(file).stem, Path(file).absolute())
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise UserError(f"There is no file {file}. Name your own {noun} as FILE.py@NAME.")
    module = module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        problem = f"{file} cannot be imported ({type(error).__name__}: {error}). Correct it."
        raise UserError(problem) from error
    target = getattr(module, attribute, None)
    if noun == "suite" and is_registry_object(target, "task"):
        return TaskSuite(f"{Path(file).name}@{attribute}", path=name)
    if not (isinstance(target, SystemCard) if noun == "system" else hasattr(target, "grade")):
        raise UserError(
            f"{file} has no {noun} called {attribute!r}. Define it there, or correct the name "
            "after the @."
        )
    return target


def with_own(
    request: RunRequest, catalogue: Catalogue, extras: Sequence[Suite[Any] | SystemCard] = ()
) -> tuple[RunRequest, Catalogue]:
    """Return a request and catalogue with the user's suites and systems, and `extras`, added."""
    named = (*request.suites, *request.train_on)
    suites = {name: load_own(name, "suite") for name in named if OWN in name}
    suites |= {name: TaskSuite(name) for name in request.suites if is_task_name(name, catalogue)}
    suites = {name: _with_arguments(suite, request.task_args) for name, suite in suites.items()}
    _refuse_namesakes(suites)
    cards = {name: load_own(name, "system") for name in request.systems if OWN in name}
    _refuse_namesakes(cards)
    names, options = {name: card.name for name, card in cards.items()}, request.system_options
    request = replace(
        request,
        suites=tuple(suites[name].name if name in suites else name for name in request.suites),
        train_on=tuple(suites[name].name if name in suites else name for name in request.train_on),
        systems=tuple(names.get(name, name) for name in request.systems),
        system_options={names.get(name, name): values for name, values in options.items()},
    )
    items = {item.name: item for item in (*suites.values(), *cards.values(), *extras)}
    own_systems = {name: item for name, item in items.items() if isinstance(item, SystemCard)}
    own_suites = {name: item for name, item in items.items() if name not in own_systems}
    every = ChainMap[str, Any](own_suites, cast(Any, catalogue.suites))  # lazy: makes dated suites
    systems = ChainMap[str, SystemCard](own_systems, cast(Any, catalogue.systems))
    return request, replace(catalogue, suites=every, systems=systems)


def refuse_unused(suites: Suites, arguments: Iterable[str]) -> None:
    """Raise UserError for an argument that no Inspect task among the suites has."""
    tasks = [suite for suite in suites if isinstance(suite, TaskSuite)]
    for name in arguments:
        if not tasks:
            raise UserError(
                f"-T {name} is an argument of an Inspect task, and no --suite is one. Leave -T out."
            )
        if all(name in task.unused for task in tasks):
            names = ", ".join(task.name for task in tasks)
            raise UserError(
                f"{names} has no argument {name!r}: correct -T {name}, or leave it out."
            )


def _refuse_namesakes(own: Mapping[str, Suite[Any] | SystemCard]) -> None:
    """Raise UserError if two files (FILE.py@NAME) have a suite or a system of the same name."""
    places: dict[str, str] = {}
    for place, item in own.items():
        first = places.setdefault(item.name, place)
        if OWN in place and Path(first).resolve() != Path(place).resolve():
            raise UserError(
                f"{first} and {place} are both called {item.name!r}, so their results would be "
                "mixed: rename one."
            )


def is_task_name(name: str, catalogue: Catalogue) -> bool:
    """Return whether a name is a package's Inspect task, such as `inspect_evals/tau2_airline`."""
    return "/" in name and OWN not in name and name not in catalogue.suites


def _with_arguments(suite: Any, arguments: Mapping[str, Any]) -> Any:
    return replace(suite, arguments=arguments) if isinstance(suite, TaskSuite) else suite


def select_suites(request: RunRequest, catalogue: Catalogue) -> list[Suite[Any]]:
    """Return the requested suites; UserError for an unknown name."""
    return [find_named(catalogue.suites, name, "suite") for name in request.suites]


def split_k(system: str) -> tuple[str, str]:
    """Return the name of a system, and the text after its `@`, which may be empty.

    >>> split_k("self-consistency@8"), split_k("single:a@b")
    (('self-consistency', '8'), ('single:a@b', ''))
    """
    if system.startswith(f"{SINGLE}:"):
        return system, ""
    name, _, k = system.partition("@")
    return name, k


def variants_named(system: str) -> list[str]:
    """Return the systems that a name stands for: one for each listed variant of a worker.

    >>> variants_named("single:atlas@low,high")
    ['single:atlas@low', 'single:atlas@high']
    """
    worker, sign, names = system.partition("@")
    varied = sign and system.startswith(f"{SINGLE}:")
    return [f"{worker}@{name}" for name in names.split(",")] if varied else [system]


def manifest_key(system: str) -> str:
    """Return the key of a system's card: one for all `single:NAME`, one for all `NAME@K`."""
    return ANY_SINGLE if system.startswith(f"{SINGLE}:") else split_k(system)[0]


def conductor_override(system: str, catalogue: Catalogue) -> WorkerSpec | None:
    """Return the conductor model that a system brings itself; None if it uses the pool's."""
    return catalogue.card(system).methods.conductor(split_k(system)[1])


WIDTH = 100
FROM = "from"  # label of the package that provides a suite or system
YES = {True: "yes", False: "no"}
DESCRIBED = (
    "Also by name: livecodebench-v1 to -v6, livecodebench-train, and NAME@START..END for a window "
    "of contest dates."
)


Shown = tuple[Any, str]
"""A listing as JSON values (for `--json`), and the same listing as text."""


def show_suites(
    catalogue: Catalogue,
    name: str | None,
    sources: Sequence[str] = (),
    cutoffs: Mapping[str, str] = {},
) -> Shown:
    """Return a listing of all suites, or of the suite `name`; UserError for an unknown name.

    `cutoffs`: worker -> knowledge cutoff, to compare with the dates of the suite's questions.
    """
    if name is None:
        heads = ("suite", "version", "splits", "box", "dates", FROM)
        listed, broken = _usable(catalogue.suites)
        rows = [
            (s.name, s.version, s.splits, s.needs_box, s.dates, catalogue.package(s.name))
            for s in listed
        ]
        texts = [(*row[:2], "/".join(row[2]), YES[row[3]], *row[4:]) for row in rows]
        text = "\n".join((columns(heads, texts), "", DESCRIBED, *broken))
        return records(heads, rows), text
    suite: Suite[Any] = find_named(catalogue.suites, name, "suite")
    facts = [*_suite_facts(suite), *(("source", source) for source in sources)]
    facts += zip(("models", "", ""), cutoff_lines(suite.dates, cutoffs), strict=False)
    return _sheet(name, [*facts, (FROM, catalogue.package(name))], suite.card.about)


def _usable(registry: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """Return the suites or systems that can be loaded, and an error for each that cannot."""
    usable, broken = list[Any](), list[str]()
    for name in registry:
        try:
            usable.append(registry[name])
        except UserError as error:
            broken.append(str(error))
    return usable, broken


def _sheet(name: str, facts: Collection[tuple[str, str]], about: str) -> Shown:
    """Return a listing of a suite or system: `name`, (label, text) rows, and the text `about`."""
    by_label: dict[str, list[str]] = {}
    above = ""
    for label, text in facts:
        above = label or above
        by_label.setdefault(above, []).append(text)
    hanging: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    hanging["subsequent_indent"] = " " * 15
    width = min(terminal_width() or WIDTH, WIDTH)
    lines = (fill(text, width, initial_indent=f"  {label:<13}", **hanging) for label, text in facts)
    text = "\n".join((name, *lines, "", fill(about, width)))
    return {"name": name, **by_label, "about": about}, text


def _suite_facts(suite: Suite[Any]) -> Iterator[tuple[str, str]]:
    card = suite.card
    sizes = ", ".join(f"{split} {size}" for split, size in card.sizes.items())
    yield "title", card.title
    yield "paper", card.paper
    yield "questions", sizes or "known when they are loaded"
    yield "licence", card.licence
    yield "people", card.human
    if card.saturated:
        yield "saturated", card.saturated
    if card.teacher:
        yield "taught by", f"{card.teacher}, for systems that learn (--train-on {card.teacher})"
    yield "version", suite.version
    yield from (("", change) for change in card.changes)
    yield "data", suite.data_revision
    yield "dates", suite.dates
    if card.public:
        yield "public", card.public
    yield "splits", ", ".join(suite.splits)
    prompts = suite.prompts if isinstance(suite, Prompted) else (prompt_of(suite),)
    yield "prompts", ", ".join(prompts)
    yield "epochs", str(usual_epochs(suite))
    yield "box", f"needed, with image {suite.image}" if suite.needs_box else "not needed"
    answer = "yes" if suite.publishable else "no: reports and exports omit its texts"
    yield "publishable", answer


def show_workers(spec: PoolSpec, book: Book) -> Shown:
    """Return a listing of a pool's workers with their models, prices and settings."""
    rows = [
        (
            *(slot.name, slot.model, _price(slot, book), _thousands(slot, book)),
            *(slot.cutoff, _settings(slot)),
        )
        for slot in spec.slots
    ]
    heads = (
        "worker",
        "model",
        "$/Mtok in, out",
        "$ for 1,000 + 1,000",
        "knowledge cutoff",
        "settings",
    )
    cards = [(*row, slot.card) for row, slot in zip(rows, spec.slots, strict=True)]
    workers = records(
        (*heads[:2], "usd_per_mtok_in_out", "usd_1000_in_1000_out", *heads[4:], "card"), cards
    )
    pool = {"pool": spec.name, "label": spec.label, "prices": book.name, "prices_of": book.date}
    title = f"{spec.name} ({spec.label}), prices: {book.name} of {book.date}"
    lines = [
        f"{slot.name}: {' '.join(slot.card.split())}"
        for slot in spec.slots
        if slot.card and "@" not in slot.name
    ]
    return {**pool, "workers": workers}, "\n".join((title, "", columns(heads, rows), "", *lines))


def _price(slot: WorkerSpec, book: Book) -> str:
    price = book.price(slot.price_ref)
    if price is None:
        return "unpriced"
    notes = {"carried-back": " (carried back)", "built in": " (built in)"}
    return f"{price.input}, {price.output}{notes.get(book.evidence(slot.price_ref), '')}"


def _thousands(slot: WorkerSpec, book: Book) -> str:
    """Return the dollars, as text, of one call of a worker with 1,000 tokens in and 1,000 out."""
    price = book.price(slot.price_ref)
    if price is None:
        return "unknown"
    usd = cost(Usage(input=1000, output=1000), price, service_tier(slot.config, slot.args))
    return "unknown" if usd is None else f"{usd.normalize():f}"


def _settings(slot: WorkerSpec) -> str:
    settings = shown({**slot.config.model_dump(exclude_none=True), **slot.args})
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "provider's defaults"


NEEDS: Mapping[Need, str] = {
    "conductor": "a [conductor] table in the pool file",
    "public tests": "a suite whose questions show tests",
    "train": "a train split to learn from",
    "match": "a conductor's row in the same run",
    "sandbox": "an Inspect sandbox for its own programs",
}
TOOLS: Mapping[Acts, str] = {
    "passes": "hands them to the worker that answers",
    "last step acts": "its last step's worker calls them",
    "votes": "votes over its workers' calls, or picks one",
    "no": "answers in words only",
}
POOLS = (1, 7)
"""Pool sizes for which expected calls are listed: the smallest, and the Conductor paper's."""


def show_systems(catalogue: Catalogue, name: str | None) -> Shown:
    """Return a listing of all systems, or of the system `name`; UserError for an unknown name."""
    if name is None:
        return _listed(catalogue)
    key = manifest_key(name)
    card_name = key if key in catalogue.systems else name
    card: SystemCard = find_named(catalogue.systems, card_name, "system")
    options = replace(catalogue, systems={card.name: card}).options(card.name).values()
    texts = (f"{x.name}{'' if x.default is x.empty else f'={x.default}'}" for x in options)
    facts = [*_facts(card), ("options", ", ".join(texts) or "none")]
    return _sheet(card.name, [*facts, (FROM, catalogue.package(card.name))], card.summary)


def _listed(catalogue: Catalogue) -> Shown:
    cards, broken = _usable(catalogue.systems)
    ranked = sorted(cards, key=lambda card: get_args(Group).index(card.group))
    heads = ("system", "calls", FROM, "what it does")
    first_words = [re.split("[,;:]", card.calls.words)[0].strip() for card in ranked]
    rows = [
        (card.name, calls, catalogue.package(card.name), card.summary)
        for card, calls in zip(ranked, first_words, strict=True)
    ]
    head, *lines = folded((heads, *rows), indent=2)
    listed = [f"  {line}" for line in head]
    pairs = zip(ranked, lines, strict=True)
    for group, members in groupby(pairs, key=lambda pair: pair[0].group):
        listed += ["", group, *(f"  {line}" for _, lines in members for line in lines)]
    grouped = [(card.group, *row) for card, row in zip(ranked, rows, strict=True)]
    return records(("group", *heads), grouped), "\n".join((*listed, *broken))


def _facts(manifest: SystemCard) -> Iterator[tuple[str, str]]:
    yield "group", manifest.group
    yield "solver", manifest.solver
    yield "source", manifest.source
    yield "calls", manifest.calls.words
    if (expected := _expected(manifest.calls)) != manifest.calls.words:
        yield "", expected
    count, none = len(manifest.prompts), "none of its own: workers get the question alone"
    yield "prompts", f"{count}, sha256 {manifest.prompt_sha256}" if count else none
    if "best worker" in manifest.traits:
        yield "worker", "the best single one of the train split, if there is one"
    ways = (
        ["from single workers' results on a train split"]
        if manifest.methods.replaces("learn")
        else []
    )
    ways += ["by trying on a train split"] if manifest.explores else []
    yield "learns", " and ".join(ways) or "nothing"
    yield "needs", "; ".join(NEEDS[need] for need in sorted(manifest.needs)) or "workers only"
    yield "tools", TOOLS[manifest.acts]
    within = (
        f"answers with {manifest.spent}" if manifest.fits_budgets else "cannot answer within one"
    )
    yield "equal budget", within
    extra = manifest.methods.extra
    yield "extra", f"pip install '.[{extra.name}]'" if extra else "none"
    example = f"{manifest.name}@{manifest.k.upper() if manifest.takes_name else '3'}"
    yield "@K", f"sets {manifest.k}: {example}" if manifest.k else "sets nothing"
    yield (
        "recorded",
        f"{'runs' if 'recorded' in manifest.traits else 'cannot run'} on recorded replies",
    )
    yield (
        "targets",
        "seen: a labelled control" if "sees targets" in manifest.traits else "never seen",
    )
    for deviation in manifest.deviations:
        yield "deviation", deviation
    for label in ("rehearsal", "recorded", "live"):
        if footnote := manifest.methods.footnote(label):
            yield label, footnote


def _expected(calls: Calls) -> str:
    if calls.expected is None:
        return "not known beforehand, so the audit does not check them"
    single, seven = (format_range(calls.span(n, {})) for n in POOLS)
    return single if single == seven else f"{single} with one worker, {seven} with seven"
