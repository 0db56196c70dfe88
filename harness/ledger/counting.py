"""What Inspect's own hooks see of our calls: when an attempt goes out, retries, tokens.

Inspect announces a call in the context of who asked, after it has waited for a connection and right
before it is dispatched: the moment for its allowance and its intent. So each retry over HTTP is
announced, when it fails and when it goes out again, and needs an allowance of its own. The
sums are independent of our lines: they come from Inspect's hook for every finished call,
whoever made it, so a call that escaped the journal shows as a difference. A cache read is none of
them, and an attempt that failed has no usage to count.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from inspect_ai.hooks import BeforeModelGenerate, Hooks, ModelRetry, ModelUsageData, hooks

from harness.errors import SpendLimit


class Announced(Protocol):
    """A call of which Inspect announces what happens: an `InFlight` of harness/ledger/asking.py."""

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


PAYING: ContextVar[Paying | None] = ContextVar("podium_paying", default=None)
"""What pays for the call that this context waits for; None where nobody counts dollars."""

WAITING: ContextVar[Announced | None] = ContextVar("podium_waiting", default=None)
"""The call that this context waits for."""


class Unwritten(BaseException):
    """The journal of a call cannot be written; its cause says why.

    No `Exception`: Inspect goes on with a call when a hook raises one.
    """


class NotAllowed(BaseException):
    """An attempt may not be paid for; its cause is the `SpendLimit` that says why.

    No `Exception`, for the same reason.
    """


FIELDS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "input_tokens_cache_read",
    "input_tokens_cache_write",
    "reasoning_tokens",
)
"""Of Inspect's `ModelUsage`, which says None for what a provider does not report."""


@dataclass(slots=True)
class Counted:
    """Sums per task and model, of the tasks that have an open journal."""

    _tasks: dict[str, dict[str, Counter[str]]] = field(
        default_factory=dict[str, dict[str, Counter[str]]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def on(self) -> bool:
        """Say whether any journal is open."""
        return bool(self._tasks)

    def begin(self, task: str) -> None:
        """Start to count a task's calls from 0."""
        with self._lock:
            listen()
            self._tasks[task] = {}

    def add(self, data: ModelUsageData) -> None:
        """Count one finished call; one of a task without a journal is nobody's."""
        with self._lock:
            models = self._tasks.get(data.task_name or "")
            if models is not None:
                sums = models.setdefault(data.model_name, Counter())
                sums["calls"] += 1
                for name in FIELDS:
                    sums[name] += getattr(data.usage, name) or 0

    def end(self, task: str) -> Iterator[dict[str, Any]]:
        """Stop counting a task; yield one record per model, by name."""
        with self._lock:
            models = self._tasks.pop(task, {})
        for model in sorted(models):
            yield {"model": model, **{name: models[model][name] for name in ("calls", *FIELDS)}}


class LedgerHooks(Hooks):
    """Pays and counts; on while a journal is open, and for a call that is to be in one or paid."""

    def enabled(self) -> bool:
        """Say whether there is anything to do: other evals of the process are not slowed."""
        return COUNTED.on or PAYING.get() is not None or WAITING.get() is not None

    async def on_model_usage(self, data: ModelUsageData) -> None:
        """Count a finished call."""
        COUNTED.add(data)

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        """Let an attempt of the call in flight go out, once it is paid for and written down."""
        paying = PAYING.get()
        if paying:
            try:
                await paying.take()
            except SpendLimit as stop:
                raise NotAllowed from stop
        flight = WAITING.get()
        if flight:
            try:
                flight.goes_out()
            except OSError as error:
                raise Unwritten from error

    async def on_model_retry(self, data: ModelRetry) -> None:
        """Count and write down that an attempt of the call in flight failed and another follows."""
        paying = PAYING.get()
        if paying:
            paying.failed(data.status_code)
        flight = WAITING.get()
        if flight:
            flight.retried(data.attempt, data.exception_type, data.status_code)


COUNTED = Counted()
"""Of this process, as Inspect has one instance of each hooks class per process."""


@cache
def listen() -> None:
    """Make the hooks known to Inspect, once, when the first call needs them.

    Not through an entry point: Inspect would then greet every command of a user with a count of
    hooks, podium's own included, where nothing is counted.
    """
    register = hooks("podium_ledger", "Pays for calls and counts them while podium asks.")
    register(LedgerHooks)
