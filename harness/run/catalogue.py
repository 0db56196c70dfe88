"""Every suite and system by name, what a run may ask of them, and how they are listed.

Suites, systems and boxes come in a `Catalogue` that harness/cli/ fills: no spoke is imported here.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, get_args

from inspect_ai.solver import Solver

from harness.api_keys import shown
from harness.boxes import Boxes
from harness.errors import UserError
from harness.pool_config import PoolSpec, WorkerSpec
from harness.prices import Book
from harness.run.experiment import Entry
from harness.suite import Card, Prompt, Prompted, Split, Suite, prompt_of, usual_epochs
from harness.system import Group, Need, SystemCard
from harness.text import columns, format_range

SINGLE = "single"
ANY_SINGLE = "single:<worker>"
"""The one manifest of all single workers."""
BEST_SINGLE = "best-single"
ORACLE = "oracle"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every part that can be named on the command line, by name."""

    suites: Mapping[str, Suite[Any]]
    systems: Mapping[str, SystemCard]
    """Keyed by table name; one manifest, `single:<worker>`, serves all single workers."""
    solver: Callable[[str, Mapping[str, Any]], Solver]
    """Registry name and plain arguments -> solver."""
    parameters: Callable[[str], Collection[str]]
    """Registry name -> the arguments that solver takes."""
    boxes: Boxes

    def card(self, system: str) -> SystemCard:
        """Return the card of a system: one serves every `single:NAME`, one every `NAME@K`."""
        return self.systems[manifest_key(system)]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What `podium run` was asked for."""

    suites: tuple[str, ...]
    systems: tuple[str, ...]
    pool: str
    log_dir: Path
    limit: int | None = None
    """First questions of each suite. This and the next five: None is what the experiment has, or
    for a new one the default (harness/run/request.py)."""
    epochs: int | None = None
    seed: int | None = None
    split: Split | None = None
    prompt: Prompt | None = None
    time_scale: float | None = None
    max_usd: Decimal | None = None
    max_usd_per_query: Decimal | None = None
    box: str | None = None
    max_sandboxes: int | None = None
    """Programs that run at once; None is the number of cores."""
    selection_limit: int = 40
    """Train questions on which each worker is tried alone, unless `train_calls` says otherwise."""
    train_calls: int | None = None
    """Worker calls that every system may spend on learning (`selection_limit` times workers)."""
    train_on: tuple[str, ...] = ()
    """Suites whose train splits teach; none is the suite's own."""
    match: str | None = None
    """System that `compute-matched-*` are matched with; None is the conductor."""
    worker_cards: Literal["shown", "hidden"] | None = None
    """Whether models that choose workers read their role cards; None is shown."""
    display: str = "line"


def find_named(known: Mapping[str, Any], name: str, noun: str) -> Any:
    """Return what has a name; UserError lists the known ones."""
    if name not in known:
        raise UserError(f"There is no {noun} {name!r}; known {noun}s: {', '.join(sorted(known))}.")
    return known[name]


def select_suites(request: RunRequest, catalogue: Catalogue) -> list[Suite[Any]]:
    """Return the named suites; UserError lists the known ones."""
    return [find_named(catalogue.suites, name, "suite") for name in request.suites]


def split_k(system: str) -> tuple[str, str]:
    """Return the name of a system and what stands behind its `@`; empty where there is none.

    >>> split_k("self-consistency@8"), split_k("single:a@b")
    (('self-consistency', '8'), ('single:a@b', ''))
    """
    if system.startswith(f"{SINGLE}:"):
        return system, ""
    name, _, k = system.partition("@")
    return name, k


def manifest_key(system: str) -> str:
    """Return the key of a system's manifest: one serves every `single:NAME`, one every `NAME@K`."""
    return ANY_SINGLE if system.startswith(f"{SINGLE}:") else split_k(system)[0]


def runs_on_best(system: str, catalogue: Catalogue) -> bool:
    """Say whether a system's worker is the best single one of the train split."""
    return catalogue.card(system).on_best


def conductor_override(system: str, catalogue: Catalogue) -> WorkerSpec | None:
    """Return the conductor that a system brings along; None for systems that bring none."""
    manifest = catalogue.card(system)
    return manifest.override(split_k(system)[1]) if manifest.override else None


def make_entry(suite: str, system: str, catalogue: Catalogue, args: Mapping[str, Any]) -> Entry:
    """Return the entry of one system on one suite."""
    manifest = catalogue.card(system)
    return Entry(
        suite=suite,
        system=system,
        solver=manifest.solver,
        args=dict(args),
        uses_targets=manifest.uses_targets,
    )


WIDTH = 100
DESCRIBED = (
    "Also by name: livecodebench-v1 to -v6, livecodebench-train, and NAME@START..END for a window "
    "of contest dates."
)


def show_suites(
    suites: Mapping[str, Suite[Any]], name: str | None, sources: Sequence[str] = ()
) -> str:
    """Return the list of suites, or the card of one with what its data is pinned to.

    UserError for an unknown name.
    """
    if name is None:
        rows = [
            (
                one.name,
                one.version,
                "/".join(one.splits),
                "yes" if one.needs_box else "no",
                one.dates,
            )
            for one in suites.values()
        ]
        table = columns(("suite", "version", "splits", "box", "dates"), rows)
        return f"{table}\n\n{DESCRIBED}"
    suite: Suite[Any] = find_named(suites, name, "suite")
    facts = [*_of_the_card(suite.card), *_of_the_suite(suite)]
    facts += [("source", one) for one in sources]
    return _sheet(name, facts, suite.card.about)


def _sheet(name: str, facts: Iterable[tuple[str, str]], about: str) -> str:
    """Return facts under a name, a label and a text each, and a paragraph below them."""
    hanging: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    hanging["subsequent_indent"] = " " * 15
    lines = (fill(text, WIDTH, initial_indent=f"  {label:<13}", **hanging) for label, text in facts)
    return "\n".join((name, *lines, "", fill(about, WIDTH)))


def _of_the_card(card: Card) -> list[tuple[str, str]]:
    sizes = ", ".join(f"{split} {size}" for split, size in card.sizes.items())
    return [
        ("title", card.title),
        ("paper", card.paper),
        ("questions", sizes or "known when they are loaded"),
        ("licence", card.licence),
        ("people", card.human),
    ]


def _of_the_suite(suite: Suite[Any]) -> list[tuple[str, str]]:
    prompts = suite.prompts if isinstance(suite, Prompted) else (prompt_of(suite),)
    return [
        ("version", suite.version),
        *(("", change) for change in suite.card.changes),
        ("data", suite.data_revision),
        ("dates", suite.dates),
        ("splits", ", ".join(suite.splits)),
        ("prompts", ", ".join(prompts)),
        ("epochs", str(usual_epochs(suite))),
        ("box", f"needed, with image {suite.image}" if suite.needs_box else "not needed"),
        (
            "publishable",
            "yes" if suite.publishable else "no: its text stays in no report or export",
        ),
    ]


def show_workers(spec: PoolSpec, book: Book) -> str:
    """Return a pool's workers with what identifies and what prices them."""
    rows = [
        (slot.name, slot.model, _price(slot, book), slot.knowledge_cutoff, _settings(slot))
        for slot in spec.slots
    ]
    heads = ("worker", "model", "$/Mtok in, out", "knowledge cutoff", "settings")
    title = f"{spec.name} ({spec.label}), prices: {book.name} of {book.date}"
    cards = [f"{slot.name}: {' '.join(slot.card.split())}" for slot in spec.slots if slot.card]
    return "\n".join((title, "", columns(heads, rows), "", *cards))


def _price(slot: WorkerSpec, book: Book) -> str:
    price = book.price(slot.price_ref)
    if price is None:
        return "unpriced"
    said = {"carried-back": " (carried back)", "built in": " (built in)"}
    return f"{price.input}, {price.output}{said.get(book.evidence(slot.price_ref), '')}"


def _settings(slot: WorkerSpec) -> str:
    settings = shown({**slot.config.model_dump(exclude_none=True), **slot.args})
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "provider's defaults"


NEEDS: Mapping[Need, str] = {
    "conductor": "a [conductor] table in the pool file",
    "public tests": "a suite whose questions show tests",
    "train": "a train split to learn from",
    "match": "a conductor's row in the same run",
    "sandbox": "a sandbox of Inspect's for programs of its own",
}
POOLS = (1, 7)
"""Sizes of pool for which expected calls are spelled out: the least, and the Conductor paper's."""


def show_systems(systems: Mapping[str, SystemCard], name: str | None) -> str:
    """Return the list of systems, or the manifest of one; UserError for an unknown name."""
    if name is None:
        return _listed(systems.values())
    key = manifest_key(name)
    card: SystemCard = find_named(systems, key if key in systems else name, "system")
    return _sheet(card.name, _facts(card), card.summary)


def _listed(manifests: Collection[SystemCard]) -> str:
    order = get_args(Group)
    ranked = sorted(manifests, key=lambda one: order.index(one.group))
    heads = ("system", "calls", "what it does")
    rows = [(one.name, re.split("[,;:]", one.calls)[0].strip(), one.summary) for one in ranked]
    first, *lines = columns(heads, rows).splitlines()
    found = [f"  {first}"]
    pairs = zip(ranked, lines, strict=True)
    for group, members in groupby(pairs, key=lambda pair: pair[0].group):
        found += ["", group, *(f"  {line}" for _, line in members)]
    return "\n".join(found)


def _facts(manifest: SystemCard) -> Iterator[tuple[str, str]]:
    """Yield everything a manifest says but its name and summary, as label and text."""
    yield "group", manifest.group
    yield "solver", manifest.solver
    yield "source", manifest.source
    yield "calls", manifest.calls
    if (said := _expected(manifest)) != manifest.calls:
        yield "", said
    yield "prompts", _prompts(manifest)
    if manifest.on_best:
        yield "worker", "the best single one of the train split, where there is one"
    yield "learns", _learning(manifest)
    yield "needs", "; ".join(NEEDS[one] for one in sorted(manifest.needs)) or "workers only"
    yield "extra", f"pip install '.[{manifest.extra}]'" if manifest.extra else "none"
    yield "@K", _behind(manifest)
    yield "recorded", f"{'runs' if manifest.recorded else 'cannot run'} on recorded replies"
    yield "targets", "seen: a labelled control" if manifest.uses_targets else "never seen"
    for deviation in manifest.deviations:
        yield "deviation", deviation
    yield from manifest.on_label.items()


def _behind(manifest: SystemCard) -> str:
    if not manifest.k:
        return "sets nothing"
    sets = f"sets {manifest.k}: {manifest.name}"
    return f"{sets}@{'3' if manifest.brings is None else 'FOLDER'}"


def _expected(manifest: SystemCard) -> str:
    if manifest.expected is None:
        return "cannot be said beforehand, so the audit does not check them"
    one, seven = (format_range(manifest.expected(n, {})) for n in POOLS)
    return one if one == seven else f"{one} with one worker, {seven} with seven"


def _prompts(manifest: SystemCard) -> str:
    if not manifest.prompts:
        return "none of its own: workers get the question alone"
    return f"{len(manifest.prompts)}, sha256 {manifest.prompt_sha256}"


def _learning(manifest: SystemCard) -> str:
    """Return how a system learns; what has two ways says both."""
    ways: list[str] = []
    if manifest.learn is not None:
        ways.append("from single workers' results on a train split")
    if manifest.explorer is not None:
        ways.append("by trying on a train split")
    return " and ".join(ways) or "nothing"
