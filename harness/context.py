"""What is known around the code that runs: one record that tasks and threads of a run inherit.

Solvers, scorers and providers are made and called by Inspect, which hands on none of this. So it
stands in one context variable: `with run_context(spend=meter):` sets what is named and keeps the
rest. Nothing in a request that reaches a real provider may depend on it.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from harness.records import Grade, Question

if TYPE_CHECKING:  # who sets a field imports this module
    from harness.budget import Spend
    from harness.ledger.recorder import CallInFlight, Recorder, TaskJournal
    from harness.parallel import ProgressLine
    from harness.pool_config import PoolSpec
    from harness.request import SampleIndex

PublicTests = Callable[[Question, str], Awaitable[Grade]]
"""(sealed question, reply) -> the share of the tests shown in the question that it passes."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run, the task that is being made or answered, and the call in flight know.

    A solver's arguments identify a run that is resumed, so they are names; what the names mean (a
    pool file's content, a folder) comes from here, and a moved directory stays the same.
    """

    log_dir: Path = Path()
    """Relative file arguments are found below it."""
    spec: "PoolSpec | None" = None
    """The pool of the run; its name means this content."""
    journal: "TaskJournal | None" = None
    """Where the calls of the task that is being made will be written down."""
    public_tests: PublicTests | None = None
    """How the suite's public tests are run, where it has some and a box."""
    programs: anyio.CapacityLimiter | None = None
    """The places for programs that public tests and scorers of the whole run share."""
    spend: "Spend | None" = None
    """The meter of the run; None where nobody counts dollars."""
    progress: "ProgressLine | None" = None
    recorder: "Recorder | None" = None
    """Of the running sample; None where calls are not written down."""
    sample: "SampleIndex | None" = None
    """Which sample of a reply is asked for; None when a model is called outside a pool."""
    in_flight: "CallInFlight | None" = None
    """The call that is waited for."""
    watch: Callable[[str], Exception] | None = None
    """Makes the refusal of what a framework whose code runs tried; None while our own does."""


_CONTEXT: ContextVar[RunContext] = ContextVar("podium", default=RunContext())  # noqa: B039 - it is frozen


def current() -> RunContext:
    """Return what is known here."""
    return _CONTEXT.get()


@contextmanager
def run_context(**known: Any) -> Generator[None]:
    """Let what runs within know some fields of `RunContext` otherwise."""
    token = _CONTEXT.set(replace(_CONTEXT.get(), **known))
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def extend_context(**known: Any) -> None:
    """Set fields of `RunContext` for the rest of this task: for solvers that prepare a sample."""
    _CONTEXT.set(replace(_CONTEXT.get(), **known))
