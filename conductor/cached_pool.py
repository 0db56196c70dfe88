"""The pool of a training: rate limits, and replies that were paid for before."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import RunVar

from harness.errors import UserError
from harness.pool import Pool
from harness.pool_config import PoolSpec
from harness.records import Reply
from harness.reply_cache import PaidReplies, key_of
from harness.request import Request, SampleIndex, request_digest

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits on worker calls; None is no limit of ours."""

    at_once: int | None = None  # calls of all workers in flight in one event loop, so per process
    per_minute: float | None = None  # begun in a minute by one worker, evenly; may be less than 1

    def __post_init__(self) -> None:
        for name, limit in (("calls at once", self.at_once), ("per minute", self.per_minute)):
            if limit is not None and limit <= 0:
                raise UserError(f"A limit of {limit} {name} asks nobody: it must be above 0.")

    def slowest_s(self, calls: int) -> float:
        """Return the seconds that so many calls of one worker may wait for their turn."""
        return calls * MINUTE_S / self.per_minute if self.per_minute else 0.0


@dataclass(slots=True)
class RateLimiter:
    """Lets calls begin when their turn comes; `clock` and `sleep` are the machine's own."""

    rates: PoolLimits
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
        async with self._limiter() or nullcontext():
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
        if self.rates.at_once is None:
            return None
        limiter = self._limiters.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(self.rates.at_once)
            self._limiters.set(limiter)
        return limiter


@dataclass(frozen=True, slots=True)
class WorkerAccess:
    """How the workers of a training are asked; all its items share one."""

    identities: dict[str, str]  # by worker: all that its replies depend on beside the request
    pace: RateLimiter
    paid: PaidReplies | None  # None: nothing is kept, and every request is a call


def worker_identities(spec: PoolSpec, seed: int) -> dict[str, str]:
    """Return what tells the replies of one worker from another's: model, settings, seed."""
    parts = {"model", "config", "args"}
    return {slot.name: f"{seed} {slot.model_dump_json(include=parts)}" for slot in spec.slots}


@dataclass(slots=True)
class CachedPool(Pool):
    """A pool that keeps the replies it gave: they are paid for, whatever becomes of the rest."""

    asking: WorkerAccess | None = None
    lasting: bool = True  # whether its replies may be written to a file
    replies: list[Reply] = field(default_factory=list[Reply])
    cached: int = 0  # replies that were not asked for: they had been paid for

    async def _reply(self, request: Request, number: SampleIndex) -> Reply:
        asking = self.asking
        assert asking is not None, "PlanAnswerer gives every pool the same"

        async def ask() -> Reply:
            async with asking.pace.turn(request.role):
                return await Pool._reply(self, request, number)

        if asking.paid is None:
            reply, known = await ask(), False
        else:
            role, said = request.role, request_digest(request.messages)
            who = asking.identities.get(role, role)
            prescribed = request.config.model_dump_json(exclude_none=True)
            key = key_of(role, who, said, prescribed, number.epoch, number.occurrence)
            reply, known = await asking.paid.reply(key, ask, lasting=self.lasting)
        self.cached += known
        self.replies.append(reply)
        return reply
