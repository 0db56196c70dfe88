"""Runs work in threads and processes, limits the rate of calls, and shows a progress line."""

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
    """A run's progress: how many (question, epoch) pairs are answered."""

    title: str
    total: int
    bar: Progress
    done: int = 0

    def tick(self) -> None:
        """Count one answered (question, epoch) pair and update the line."""
        self.done += 1
        if self.bar.console.is_terminal:
            self.bar.advance(self.bar.task_ids[0])
        elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            self.bar.console.print(f"{self.title}: {self.done} of {self.total}", highlight=False)


@contextmanager
def progress_line(title: str, total: int, answered: int = 0) -> Generator[ProgressLine]:
    """Show a progress line in the `with` block; `answered` of the `total` pairs count as done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr))
    bar.add_task(escape_controls(title), total=total, completed=answered)
    try:
        if bar.console.is_terminal:
            bar.start()
        yield ProgressLine(escape_controls(title), total, bar, answered)
    finally:
        bar.stop()


Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


AHEAD = 2  # Items submitted per worker, so that no worker waits for the next item


def map_concurrently(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result]:
    """Yield `function(item)` for every item as it finishes, in up to `workers` threads.

    Items are taken as workers become free. If the caller stops early (Ctrl-C), nothing new is
    started, and running items are not waited for. Exceptions of `function` are raised here.

    >>> sorted(map_concurrently(lambda n: n * n, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    pool = ThreadPoolExecutor(workers)
    running: set[Any] = set()  # futures
    try:
        for item in items:
            running.add(pool.submit(function, item))
            if len(running) >= AHEAD * workers:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in finished)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


MOST_PROCESSES = 8  # Maximum: each process takes some 150 MiB before it reads anything
LARGE = 32 << 20  # Minimum total size of files, in bytes, to read them in other processes


BEGIN = "import signal, podium; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""Code that a worker process runs first: it ignores Ctrl-C, which the parent handles. It is a text,
because a function of podium cannot be imported before `import podium` has registered its names."""


def map_over_processes(
    work: Callable[[Item], Result], items: Sequence[Item], *, many: bool, cap: int = MOST_PROCESSES
) -> Iterator[Result]:
    """Yield `work(item)` for each item, in order; if `many`, use up to `cap` other processes."""
    workers = min(cores(), len(items), cap)
    if not many or workers < 2 or parent_process():
        yield from map(work, items)
        return
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    # Not `fork`: threads, e.g. Arrow's, do not survive it.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=exec, initargs=(BEGIN,))
    try:
        with bar:
            line = bar.add_task("reading", total=len(items))
            remaining = iter(items)
            waiting = deque(pool.submit(work, item) for item in islice(remaining, workers * AHEAD))
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(remaining, 1))
                bar.advance(line)
                yield result
    except BrokenProcessPool:
        raise UserError(
            "A helper process for reading files ended too early. If your script lacks `if __name__ "
            '== "__main__":` above the lines that do something, add it, because helpers import '
            "the script. Else free some memory."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def without_collector() -> Generator[None]:
    """Pause Python's garbage collector, which takes a quarter of the time when making many rows."""
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
    """Spaces this process's calls to a maximum rate; tests replace `clock` and `sleep`."""

    per_minute: Mapping[str, float]
    """Provider or worker -> its maximum calls per minute; missing keys have no limit."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    next: dict[str, float] = field(default_factory=dict[str, float])
    """Provider or worker -> the earliest time of its next call, by `clock`."""

    async def turn(self, who: str) -> None:
        """Wait until a call of `who`, a provider or worker, is allowed by the rate limit."""
        for wait_s in self.reserve(who):
            if wait_s > 0:
                await self.sleep(wait_s)

    def reserve(self, key: str, calls: int = 1, within_s: float = math.inf) -> list[float]:
        """Reserve up to `calls` calls within `within_s` seconds; return their waits, in seconds."""
        if key not in self.per_minute:
            return [0.0] * calls
        now, apart = self.clock(), MINUTE_S / self.per_minute[key]
        start = max(now, self.next.get(key, now))
        waits = [start - now + number * apart for number in range(calls)]
        granted = [wait_s for wait_s in waits if wait_s <= within_s]
        self.next[key] = start + len(granted) * apart
        return granted
