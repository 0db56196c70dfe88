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
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from harness.records import Grade, Question

if TYPE_CHECKING:  # who sets a field imports this module
    from harness.budget import Spend
    from harness.ledger.recorder import Recorder, TaskJournal
    from harness.parallel import ProgressLine
    from harness.pool_config import PoolSpec
    from harness.request import SampleIndex

PublicTests = Callable[[Question, str], Awaitable[Grade]]
"""(sealed question, reply) -> how the reply does on the tests that the question itself shows.

It costs no call. `Grade.value` is the share of public tests passed."""


class Announced(Protocol):
    """A call of which Inspect announces what happens, as harness/ledger/recorder.py has one."""

    def goes_out(self) -> None:
        """Write down that an attempt is about to be dispatched; OSError when it cannot be."""
        ...

    def retried(self, attempt: int, error: str | None, status: int | None) -> None:
        """Write down that an attempt over HTTP has failed and another is to follow."""
        ...


class Paying(Protocol):
    """A call that needs an allowance for each of its attempts."""

    async def take(self) -> None:
        """Wait for what the next attempt can cost; SpendLimit where it may not be paid for."""
        ...

    def failed(self, status: int | None) -> None:
        """Count an attempt that failed and is to be made again, and give back what it held."""
        ...


class Watch(Protocol):
    """A framework at work, whose connections are refused (harness/bridge.py)."""

    @property
    def framework(self) -> str:
        """Its name."""
        ...

    def note(self, error: Exception) -> Exception:
        """Keep an error if it is the first one; return it."""
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run, the task that is being made or answered, and the call in flight know.

    A solver's arguments are its identity when a run is resumed. So they hold names, and what the
    names mean (a pool file's content, a folder) comes from here: a moved directory stays the same.
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
    paying: Paying | None = None
    """What pays for the call that is waited for."""
    announced: Announced | None = None
    """The call that is waited for, where it is written down."""
    watch: Watch | None = None
    """The framework whose code runs; None while our own does."""


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
