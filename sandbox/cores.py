"""One run per core at a time, across all boxes of this process, so that time limits are fair.

Sixteen programs on four cores turn right answers into time-outs. A run that came close to its limit
is repeated alone: `all` waits for the others and keeps new ones waiting.
"""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager


class Cores:
    """A gate with one place per core."""

    def __init__(self, count: int) -> None:
        """Let `count` runs through at a time."""
        self._count = count
        self._running = 0
        self._alone = False
        self._changed = threading.Condition()

    @contextmanager
    def one(self) -> Generator[None]:
        """Hold one core."""
        with self._changed:
            self._changed.wait_for(lambda: self._running < self._count and not self._alone)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def all(self) -> Generator[None]:
        """Hold every core: nothing else runs meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True
            self._changed.wait_for(lambda: self._running == 0)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


def available() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


CORES = Cores(available())
"""Shared by all boxes of this process; other processes on the machine are not counted."""
