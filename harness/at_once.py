"""Several gradings at once in threads, without holding more than a few of them in memory."""

import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")


def cores() -> int:
    """Return the number of cores that this process may use, as the sandbox counts them."""
    return len(os.sched_getaffinity(0))


AHEAD = 2
"""Items handed out per thread, so that no thread waits for the next one to be read."""


def as_done(
    function: Callable[[ItemT], DoneT], items: Iterable[ItemT], most: int
) -> Generator[DoneT]:
    """Yield `function(item)` for every item as it comes, `most` at a time.

    Items are taken when there is room for them. What a function raises is raised here. When the
    caller stops early (Ctrl-C), nothing new is begun and what runs is not waited for.

    >>> sorted(as_done(lambda n: n * n, range(5), most=2))
    [0, 1, 4, 9, 16]
    """
    pool = ThreadPoolExecutor(most)
    running: set[Future[Any]] = set()
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
