"""Calls a minute: whoever asks a provider waits for its turn, and turns are spread evenly."""

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio

MINUTE_S = 60.0


@dataclass(slots=True)
class RateLimiter:
    """Turns of one process; `clock` and `sleep` are the machine's own."""

    per_minute: Mapping[str, float]
    """By who is asked: a provider, a worker. Who is not there is asked at once."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    next: dict[str, float] = field(default_factory=dict[str, float])
    """By who is asked: when the next turn is."""

    async def turn(self, who: str) -> None:
        """Return when it is a call's turn."""
        for wait_s in self.reserve(who):
            if wait_s > 0:
                await self.sleep(wait_s)

    def reserve(self, who: str, calls: int = 1, within_s: float = math.inf) -> list[float]:
        """Take up to so many turns that come within so many seconds; return how far off each is."""
        if who not in self.per_minute:
            return [0.0] * calls
        now, apart = self.clock(), MINUTE_S / self.per_minute[who]
        first = max(now, self.next.get(who, now))
        waits = [first - now + number * apart for number in range(calls)]
        taken = [wait_s for wait_s in waits if wait_s <= within_s]
        self.next[who] = first + len(taken) * apart
        return taken
