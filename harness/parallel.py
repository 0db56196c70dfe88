"""Work in threads and in processes, turns of calls, and one line that says how far it is."""

import gc
import math
import os
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from podium.harness.errors import UserError
from podium.harness.text import escape_controls


@dataclass(slots=True)
class ProgressLine:
    """How far a run is, in (question, epoch) pairs."""

    title: str
    total: int
    bar: Progress
    done: int = 0

    def tick(self) -> None:
        """Count one answer and show it."""
        self.done += 1
        if self.bar.console.is_terminal:
            self.bar.advance(self.bar.task_ids[0])
        elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            self.bar.console.print(f"{self.title}: {self.done} of {self.total}", highlight=False)


@contextmanager
def progress_line(title: str, total: int, done: int = 0) -> Generator[ProgressLine]:
    """Show one line while Inspect works; `done` is what earlier attempts have answered."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr))
    bar.add_task(escape_controls(title), total=total, completed=done)
    try:
        if bar.console.is_terminal:
            bar.start()
        yield ProgressLine(escape_controls(title), total, bar, done)
    finally:
        bar.stop()


Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return the number of cores that this process may use, as the sandbox counts them."""
    return len(os.sched_getaffinity(0))


AHEAD = 2  # Items handed out per worker, so that none waits for the next one to be read


def map_concurrently(
    function: Callable[[Item], Result], items: Iterable[Item], most: int
) -> Generator[Result]:
    """Yield `function(item)` for every item as it comes, `most` at a time; raise what it raises.

    Items are taken when there is room. When the caller stops early (Ctrl-C), nothing new is begun
    and what runs is not waited for.

    >>> sorted(map_concurrently(lambda n: n * n, range(5), most=2))
    [0, 1, 4, 9, 16]
    """
    pool = ThreadPoolExecutor(most)
    running: set[Any] = set()  # futures
    try:
        for item in items:
            running.add(pool.submit(function, item))
            if len(running) >= AHEAD * most:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (one.result() for one in done)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


MOST_PROCESSES = 8  # Processes, each of which takes some 150 MiB before it reads anything
LARGE = 32 << 20  # Bytes of files from which on other processes are started


BEGIN = "import signal, podium; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""What a worker process does first: Ctrl-C reaches the whole group, and its parent answers it. A
function of ours would be looked for before podium has taken its names."""


def map_over_processes(
    work: Callable[[Item], Result], items: Sequence[Item], *, many: bool, most: int = MOST_PROCESSES
) -> Iterator[Result]:
    """Yield what `work` makes of each item, in order; in other processes where it is `many`."""
    workers = min(cores(), len(items), most)
    if not many or workers < 2 or parent_process():
        yield from map(work, items)
        return
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    # Threads, of Arrow say, do not survive a fork.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=exec, initargs=(BEGIN,))
    try:
        with bar:
            line = bar.add_task("reading", total=len(items))
            rest = iter(items)
            waiting = deque(pool.submit(work, item) for item in islice(rest, workers * AHEAD))
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(rest, 1))
                bar.advance(line)
                yield result
    except BrokenProcessPool:
        raise UserError(
            "A process that helps with reading ended before its work was done: it ran out of "
            'memory, or a script of yours, which it reads, lacks `if __name__ == "__main__":` '
            "above the lines that do something."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def without_collector() -> Generator[None]:
    """Hold Python's collector of cycles: a quarter of the time of making rows, which have none."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


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
