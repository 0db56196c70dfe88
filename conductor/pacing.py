"""How fast workers are asked in training: so many calls at once, so many a minute each.

Not here: dollars (harness/budget.py) and which calls are not made at all (harness/reply_cache.py).
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import RunVar

from harness.errors import UserError

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Limits on worker calls; None is no limit of ours."""

    at_once: int | None = None
    """Calls of all workers in flight in one event loop, so per process."""
    per_minute: float | None = None
    """Calls of one worker that are begun in a minute, evenly spread; per process, so that a
    process of many may have less than one."""

    def __post_init__(self) -> None:
        for name, limit in (("calls at once", self.at_once), ("per minute", self.per_minute)):
            if limit is not None and limit <= 0:
                raise UserError(f"A limit of {limit} {name} asks nobody: it must be above 0.")

    def slowest_s(self, calls: int) -> float:
        """Return the seconds that so many calls of one worker may wait for their turn."""
        return calls * MINUTE_S / self.per_minute if self.per_minute else 0.0


@dataclass(slots=True)
class Pace:
    """Lets calls begin when their turn comes; `clock` and `sleep` are the machine's own."""

    rates: Rates
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    _next: dict[str, float] = field(default_factory=dict[str, float])
    """By worker: when its next call may begin."""
    _limiters: RunVar[anyio.CapacityLimiter] = field(
        default_factory=lambda: RunVar[anyio.CapacityLimiter]("podium calls at once")
    )

    @asynccontextmanager
    async def turn(self, worker: str) -> AsyncGenerator[None]:
        """Wait for a worker's turn, then for a place among the calls in flight; hold the place."""
        await self._spaced(worker)
        limiter = self._limiter()
        if limiter is None:
            yield
            return
        async with limiter:
            yield

    async def _spaced(self, worker: str) -> None:
        if self.rates.per_minute is None:
            return
        now = self.clock()
        begins = max(now, self._next.get(worker, now))
        self._next[worker] = begins + MINUTE_S / self.rates.per_minute
        if begins > now:
            await self.sleep(begins - now)

    def _limiter(self) -> anyio.CapacityLimiter | None:
        """Return the running event loop's limiter."""
        if self.rates.at_once is None:
            return None
        limiter = self._limiters.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(self.rates.at_once)
            self._limiters.set(limiter)
        return limiter
