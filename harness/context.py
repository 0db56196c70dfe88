"""The context of running code: one record that all tasks and threads of a run inherit.

Inspect calls solvers, scorers and providers without these facts, so they are read from here.
Nothing in a request that reaches a real provider may depend on them.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from podium.harness.records import WRONG, Grade, Overflows, Question
from podium.harness.request import SampleIndex

if TYPE_CHECKING:
    from podium.harness.budget import Spend, Turns
    from podium.harness.parallel import ProgressLine
    from podium.harness.pool_config import PoolSpec

PublicTests = Callable[[Question, str], Awaitable[Grade]]
"""(question without its target, reply) -> the grade of the reply by the question's public tests."""


class RunContext(NamedTuple):
    """Facts about a run, its current task, and the call in flight, which running code can read."""

    log_dir: Path = Path()  # relative file arguments are resolved against it
    spec: "PoolSpec | None" = None  # the run's pool, used wherever its name is given
    journal: object = None  # `current_journal`: records calls of the task being built
    public_tests: PublicTests | None = None  # None: the suite has no public tests, or no box
    programs: anyio.CapacityLimiter | None = None  # limits the run's parallel programs
    spend: "Spend | None" = None  # The meter of the run; None if dollars are not counted
    turns: "Turns | None" = None  # when a provider's call may begin; None: immediately
    generation: int | None = None  # `ShardLimits.generation`, in a shard
    progress: "ProgressLine | None" = None
    recorder: object = None  # `current_recorder`: records calls of the running sample
    equal: object = None  # `EqualBudget`: what every system may use for one question
    begins_s: float | None = None  # when a call begins on its answer's critical path
    keeps: int = 0  # calls of an equal budget reserved for a judge or an aggregator
    sample: SampleIndex | None = None  # epoch and repetition of the reply that a pool requests
    in_flight: object = None  # `call_in_flight`: the call whose reply is awaited
    overflows: Overflows = WRONG  # the result of a request that is longer than a model's context
    shutdown: object = None  # `current_shutdown`: lets no new call begin once a signal has come
    watch: Callable[[str], Exception] | None = None  # the error if a framework bypasses podium


_CONTEXT: ContextVar[RunContext] = ContextVar("podium", default=RunContext())  # noqa: B039 - it is frozen


def current() -> RunContext:
    """Return the `RunContext` of the running task or thread."""
    return _CONTEXT.get()


@contextmanager
def run_context(**fields: Any) -> Generator[None]:
    """Set some fields of `RunContext` for the code in the `with` block."""
    token = _CONTEXT.set(_CONTEXT.get()._replace(**fields))
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def extend_context(**fields: Any) -> None:
    """Set fields of `RunContext` until the current task ends; for solvers that prepare a sample."""
    _CONTEXT.set(_CONTEXT.get()._replace(**fields))


def sample_index(digest: str, counts: Counter[str]) -> SampleIndex:
    """Return the epoch and repetition of a request, as the pool stored them in the run context.

    Without a pool the epoch is 1, and the repetition is counted in `counts`, by request digest.
    """
    if sample := current().sample:
        return sample
    counts[digest] += 1
    return SampleIndex(epoch=1, occurrence=counts[digest] - 1)
