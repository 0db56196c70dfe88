"""`podium doctor`: what is missing before anything is spent, all of it at once.

A run goes through the very checks of `podium run`: what it would refuse is a problem here, and so
is every later reason that the run would never have come to. What is odd and not refused is a note.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from harness.boxes import inspect_box
from harness.errors import UserError
from harness.pool_config import PoolSpec, read_pool
from harness.prices import read_book
from harness.run.catalogue import Catalogue, RunRequest, split_k
from harness.run.evaluate import Controls
from harness.run.preflight import (
    one_at_a_time,
    package_problems,
    problems,
    shadowing_notes,
    unpriced,
)
from harness.run.request import RequestReader, ResolvedRequest
from harness.run.run import Preparation
from harness.run.systems import moved_graders
from harness.text import pluralise


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a doctor has found."""

    what: str  # what was looked at
    problems: tuple[str, ...]
    """A sentence each, with the fix: `podium run` would refuse any of them."""
    facts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what is odd or good to know, and refused by nobody


def examine(pool: str, box: str | None, catalogue: Catalogue) -> Diagnosis:
    """Return what a pool lacks for any run; UserError where it cannot be read."""
    spec = read_pool(pool)
    found = [*package_problems(), *problems(spec, read_book(spec.prices))]
    facts: list[str] = []
    if box:
        facts, missing = inspect_box(catalogue.boxes, box, catalogue.suites.values())
        found += missing
    what = f"Pool {spec.name!r} ({spec.label})"
    notes = (*_money_notes(spec), *shadowing_notes())
    return Diagnosis(what, tuple(found), tuple(facts), notes)


def examine_run(request: RunRequest, catalogue: Catalogue, controls: Controls) -> Diagnosis:
    """Return all that speaks against a run, and what will be odd about it."""
    with ExitStack() as stack:
        made = Preparation(RequestReader(request, catalogue), controls, stack)
        found = package_problems()
        try:
            found.extend(made.reasons())
        except UserError as error:  # the reason that ends a preparation
            found.append(str(error))
        problems = tuple(dict.fromkeys(found))
        if not hasattr(made.reader, "asked"):
            return Diagnosis("This run", problems)
        asked = made.reader.asked
        pool = f"Pool {asked.spec.name!r} ({asked.spec.label})"
        what = f"{pool}, {pluralise(len(asked.systems), 'system')}"
        notes = (*_notes(asked), *_money_notes(asked.spec), *shadowing_notes())
        return Diagnosis(what, problems, tuple(_facts(asked)), notes)


def _facts(asked: ResolvedRequest) -> Iterator[str]:
    for suite in asked.suites:
        try:
            count = len(asked.questions(suite))
        except UserError:
            continue  # a problem says so
        epochs = asked.experiment.epochs[suite.name]
        asks = f"{pluralise(count, 'question')}, {pluralise(epochs, 'time')} each"
        yield f"{suite.name} {suite.version} ({asked.experiment.split}): {asks}."
    if asked.systems:
        yield f"Systems: {', '.join(asked.systems)}."


def _notes(asked: ResolvedRequest) -> Iterator[str]:
    yield from (f"left out: {line}" for line in asked.left_out)
    yield from moved_graders(asked.systems, asked.catalogue)
    for name in asked.systems:
        remarks = asked.catalogue.card(name).remarks
        if remarks is not None:
            yield from (f"{name} {said}" for said in remarks(split_k(name)[1], asked.spec))


def _money_notes(spec: PoolSpec) -> Iterator[str]:
    """Yield whose calls will have no dollars, without a problem, and who is asked singly."""
    book = read_book(spec.prices)
    excused = {slot.name for slot in spec.slots if slot.not_auditable}
    free = [one for one in unpriced(spec, book) if spec.label != "live" or one in excused]
    if free:
        yield f"no dollars for {', '.join(free)}: book {book.name!r} has no price for them."
    for name, why in one_at_a_time(spec, book).items():
        yield f"under --max-usd {name!r} is asked one call at a time: {why}."
