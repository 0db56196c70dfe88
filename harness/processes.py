"""Work on many files in as many processes as there are cores, with a line that says how far it is.

Small work is done in this process: starting another one takes longer than to read some logs.
"""

import gc
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness.at_once import cores

MOST = 8
"""Processes, each of which takes some 150 MiB before it reads anything."""
LARGE = 32 << 20
"""Bytes of files from which on other processes are started."""


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(
    work: Callable[[Sequence[Path]], Result], groups: Sequence[Sequence[Path]]
) -> list[Result]:
    """Return what `work` makes of each group of files, in order; raises what it raises.

    `work` must be a function that another process can import, and its results such as can be sent.
    """
    return list(each_in_processes(work, groups))


def each_in_processes(
    work: Callable[[Sequence[Path]], Result], groups: Sequence[Sequence[Path]], large: int = LARGE
) -> Iterator[Result]:
    """Yield what `in_processes` returns, one by one; in other processes from `large` bytes on."""
    size = sum(path.stat().st_size for group in groups for path in group)
    yield from each_of(work, groups, many=size >= large)


def each_of(
    work: Callable[[Item], Result], items: Sequence[Item], *, many: bool
) -> Iterator[Result]:
    """Yield what `work` makes of each item, in order; in other processes where it is `many`."""
    workers = min(cores(), len(items), MOST)
    if not many or workers < 2 or parent_process():
        yield from map(work, items)
        return
    with worker_pool(workers) as pool:
        yield from _shown(pool.map(work, items, chunksize=_chunk(len(items), workers)), len(items))


def _chunk(groups: int, workers: int) -> int:
    """Return how many groups are handed out at once: few, so that no process waits for another."""
    return max(1, min(8, groups // (workers * 8)))


@contextmanager
def without_collector() -> Generator[None]:
    """Hold Python's collector of cycles: a ledger's rows have none, and it walks them all again.

    That takes a quarter of the time of making them.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@contextmanager
def worker_pool(workers: int) -> Generator[ProcessPoolExecutor]:
    """Open worker processes; when the work is stopped, theirs is given up.

    Each is started afresh: threads, of Arrow say, do not survive a fork.
    """
    # Ctrl-C reaches the whole group; this process alone answers it, and lets the others go.
    silent = (signal.SIGINT, signal.SIG_IGN)
    context = get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=signal.signal, initargs=silent)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _shown(results: Iterable[Result], total: int) -> Iterator[Result]:
    """Yield results, and on a terminal show how many there are."""
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        line = bar.add_task("reading", total=total)
        for result in results:
            bar.advance(line)
            yield result
