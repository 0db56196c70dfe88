"""One run per core at a time, and a repeated one alone."""

import threading
import time
from contextlib import AbstractContextManager

from podium.sandbox.cells import Cores


class Watch:
    """Counts how many are inside a gate at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self.lock = threading.Lock()

    def enter(self, gate: AbstractContextManager[None]) -> int:
        with gate:
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
                seen = self.inside
            time.sleep(0.02)
            with self.lock:
                self.inside -= 1
        return seen


def test_as_many_run_at_once_as_there_are_cores() -> None:
    cores, watch = Cores(2), Watch()
    threads = [threading.Thread(target=lambda: watch.enter(cores.one())) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert watch.most == 2


def test_whoever_asks_for_all_cores_is_alone() -> None:
    cores, watch, alone = Cores(2), Watch(), []
    ones = [threading.Thread(target=lambda: watch.enter(cores.one())) for _ in range(6)]
    alls = [threading.Thread(target=lambda: alone.append(watch.enter(cores.all()))) for _ in "ab"]
    for one in [*ones[:3], *alls, *ones[3:]]:
        one.start()
    for one in [*ones, *alls]:
        one.join()
    assert alone == [1, 1]
    assert watch.inside == 0
