"""Where a run stands while its solvers and scorers are made: what names in their arguments mean."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import anyio

from harness.ledger.asking import TaskJournal
from harness.pool import Trial
from harness.pool_file import PoolSpec


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands while its solvers are made.

    A solver's arguments are its identity when a run is resumed. So they hold names, and what the
    names mean (a pool file's content, a folder) comes from here: a moved directory stays the same.
    """

    log_dir: Path = Path()
    """Relative file arguments are found below it."""
    spec: PoolSpec | None = None
    """The pool of the run; its name means this content."""
    journal: TaskJournal | None = None
    """Where the calls of the task that is being made will be written down."""
    trial: Trial | None = None
    """How the exam's public tests are run, where it has some and a box."""
    at_once: anyio.CapacityLimiter | None = None
    """The places for programs that trials and scorers of the whole run share."""


PLACE: ContextVar[Place] = ContextVar("podium_place", default=Place())  # noqa: B039 - it is frozen


@contextmanager
def standing_at(place: Place) -> Generator[None]:
    """Let solvers and scorers that are made within know where the run stands."""
    token = PLACE.set(place)
    try:
        yield
    finally:
        PLACE.reset(token)
