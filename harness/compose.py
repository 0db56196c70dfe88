"""From a request (suites, systems, a pool) to the entries of an experiment, refusals included.

Pure composition: the suites, systems and boxes come in a `Catalogue` that harness/cli/ fills, so
this file imports no spoke. Everything that can be refused is refused here, before the first call.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from inspect_ai import Task
from inspect_ai.solver import Solver

from harness.api_keys import shown
from harness.boxes import Boxes, OpenBox
from harness.bridging.inspect_sandbox import sandbox_of
from harness.declared import declared
from harness.errors import UserError
from harness.experiment import Entry, Experiment, task_name
from harness.pool_file import PoolSpec, WorkerSpec
from harness.prices import Book
from harness.recordings import prompts_recorded
from harness.seating import seated
from harness.suite import Prompt, Split, Suite
from harness.system import Manifest
from harness.task import as_task

SINGLE = "single"
ANY_SINGLE = "single:<worker>"
"""The one manifest of all single workers."""
BEST_SINGLE = "best-single"
ORACLE = "oracle"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every part that can be named on the command line, by name."""

    suites: Mapping[str, Suite[Any]]
    systems: Mapping[str, Manifest]
    """Keyed by table name; one manifest, `single:<worker>`, serves all single workers."""
    solver: Callable[[str, Mapping[str, Any]], Solver]
    """Registry name and plain arguments -> solver."""
    parameters: Callable[[str], Collection[str]]
    """Registry name -> the arguments that solver takes."""
    boxes: Boxes


@dataclass(frozen=True, slots=True)
class Request:
    """What `podium run` was asked for."""

    suites: tuple[str, ...]
    systems: tuple[str, ...]
    pool: str
    log_dir: Path
    limit: int | None = None
    """First questions of each suite. This and the next five: None is what the experiment has, or
    for a new one the default (harness/extent.py)."""
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
    """Suites whose train splits teach; none is the exam's own."""
    match: str | None = None
    """System that `compute-matched-*` are matched with; None is the conductor."""
    worker_cards: Literal["shown", "hidden"] | None = None
    """Whether models that choose workers read their role cards; None is shown."""
    display: str = "line"


def chosen_suites(request: Request, catalogue: Catalogue) -> list[Suite[Any]]:
    """Return the named suites; UserError lists the known ones."""
    suites: list[Suite[Any]] = []
    for name in request.suites:
        if name not in catalogue.suites:
            known = ", ".join(sorted(catalogue.suites))
            raise UserError(f"There is no suite {name!r}; known suites: {known}.")
        suites.append(catalogue.suites[name])
    return suites


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
    return catalogue.systems[manifest_key(system)].on_best


def seat_of(system: str, catalogue: Catalogue) -> WorkerSpec | None:
    """Return the conductor that a system brings along; None for systems that bring none."""
    manifest = catalogue.systems[manifest_key(system)]
    return manifest.seat(split_k(system)[1]) if manifest.seat else None


def entry(suite: str, system: str, catalogue: Catalogue, args: Mapping[str, Any]) -> Entry:
    """Return the entry of one system on one suite."""
    manifest = catalogue.systems[manifest_key(system)]
    return Entry(
        suite=suite,
        system=system,
        solver=manifest.solver,
        args=dict(args),
        uses_targets=manifest.uses_targets,
    )


def task_of(row: Entry, experiment: Experiment, catalogue: Catalogue, facts: "Facts") -> Task:
    """Return the Inspect task of one entry, with everything a report needs in its header."""
    suite = catalogue.suites[row.suite]
    box = facts.box if suite.needs_box else None
    manifest = catalogue.systems[manifest_key(row.system)]
    promised = declared(manifest, len(facts.spec.names), row.args)
    said = tuple(note for note in row.notes if note not in manifest.deviations)  # as older ones are
    spec = seated(facts.spec, seat_of(row.system, catalogue))
    notes = (*facts.notes, *_label_notes(manifest, spec))
    facts = replace(facts, box=box, spec=spec, notes=notes)
    return as_task(
        suite,
        split=facts.split,
        epochs=experiment.epochs[row.suite],
        box=box.box if box else None,
        max_sandboxes=box.most if box else None,
        solver=catalogue.solver(row.solver, {**row.args, "pool": facts.spec.name}),
        name=task_name(row.suite, row.system, facts.purpose, row.part),
        sandbox=sandbox_of(manifest),
        only=facts.only.get(row.suite),
        metadata={**header(replace(row, notes=said), experiment, facts), **promised},
    )


@dataclass(frozen=True, slots=True)
class Facts:
    """What every header of a run says alike."""

    spec: PoolSpec
    book: Book
    split: Split = "eval"
    purpose: str = "eval"
    """`eval`, or `selection` for calls that only choose the best single worker."""
    box: OpenBox | None = None
    notes: tuple[str, ...] = ()
    only: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Suite -> the ids of those questions that are asked, in order; others ask all of them."""


def _without_folders(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return model arguments without folders and keys, which a log tells nobody."""
    named = {name: Path(value).name for name, value in args.items() if name == "cassette"}
    return shown({**args, **named})


def _label_notes(manifest: Manifest, spec: PoolSpec) -> list[str]:
    """Return the footnotes that depend on where replies come from."""
    notes = [manifest.on_label[spec.label]] if spec.label in manifest.on_label else []
    replayed = spec.replayed and not prompts_recorded(spec)
    return [*notes, "prompt not recorded"] if replayed else notes


JOURNAL = 1
"""In a log's header: every call of this log is in a journal too; older logs do not say it."""


def header(row: Entry, experiment: Experiment, facts: Facts) -> dict[str, Any]:
    """Return podium's facts for a log header: enough to rebuild a table from the log alone."""
    box = facts.box
    return {
        "system": row.system,
        "args": dict(row.args),
        "notes": [*row.notes, *facts.notes],
        "uses_targets": row.uses_targets,
        "reference_allowed": row.reference_allowed,
        "purpose": facts.purpose,
        "learnt": dict(row.learnt),
        "order": row.order,
        "journal": JOURNAL,
        "pool": facts.spec.name,
        "pool_sha256": facts.spec.sha256,
        "label": facts.spec.label,
        "prices": facts.book.as_json(),
        "workers": {
            slot.name: {
                "model": slot.model,
                "price": slot.price_ref,
                "card": slot.card,
                "knowledge_cutoff": slot.knowledge_cutoff,
                "config": slot.config.model_dump(exclude_none=True),
                "args": _without_folders(slot.args),
                **({"not_auditable": slot.not_auditable} if slot.not_auditable else {}),
            }
            for slot in facts.spec.slots
        },
        "box": box.name if box else None,
        "box_facts": box.facts[row.suite].model_dump(mode="json") if box else None,
        "seed": experiment.seed,
        "time_scale": experiment.time_scale,
    }
