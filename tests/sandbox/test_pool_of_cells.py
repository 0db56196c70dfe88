"""The warm pool, over real cells of the subprocess box."""

import threading
import time

import pytest

from podium.sandbox.box import Limits, Program, SandboxError
from podium.sandbox.cells import CellKind, CellPool, SandboxCell, SubprocessBox

KIND = CellKind("image", 1 << 28, 32)
OTHER = CellKind("another", 1 << 28, 32)
SECOND = Limits(cpu_s=1, wall_s=2)


class Starts:
    """Starts cells as the subprocess box does, and remembers for whom."""

    def __init__(self, fail: int = 0) -> None:
        self.kinds: list[CellKind] = []
        self.fail = fail
        self.box = SubprocessBox()

    def __call__(self, kind: CellKind) -> SandboxCell:
        self.kinds.append(kind)
        if len(self.kinds) <= self.fail:
            raise SandboxError("no room")
        return self.box.start(kind)


def until(true: object, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.01)
    return bool(true())  # type: ignore[operator]


def test_a_clean_cell_serves_the_next_program() -> None:
    starts = Starts()
    pool = CellPool(starts, limit=1, reuse=True)
    first = pool.take(KIND)
    pool.give_back(KIND, first)
    assert pool.take(KIND) is first
    assert len(starts.kinds) == 1
    pool.close()


def test_cells_are_started_ahead_up_to_the_bound() -> None:
    starts = Starts()
    pool = CellPool(starts, limit=2, reuse=True)
    held = pool.take(KIND)
    assert until(lambda: pool.alive == 2)
    assert pool.take(KIND) is not held
    assert len(starts.kinds) == 2
    pool.close()


def test_no_more_cells_are_handed_out_than_the_bound_allows() -> None:
    pool = CellPool(Starts(), limit=1, reuse=True)
    held = pool.take(KIND)
    waiting = threading.Thread(target=lambda: pool.give_back(KIND, pool.take(KIND)))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    pool.give_back(KIND, held)
    waiting.join(5)
    assert not waiting.is_alive()
    pool.close()


def test_a_dropped_cell_is_dead_and_replaced() -> None:
    pool = CellPool(Starts(), limit=1, reuse=True)
    sick = pool.take(KIND)
    pool.drop(sick)
    pool.drop(sick)  # whoever else finds it sick does no harm
    fresh = pool.take(KIND)
    assert fresh is not sick
    fresh.load(Program("print(1)"))
    outcome, clean = fresh.run(b"", SECOND)
    assert clean
    assert outcome.stdout == b"1\n"
    assert pool.alive == 1
    pool.close()


def test_an_idle_cell_of_another_kind_makes_room() -> None:
    starts = Starts()
    pool = CellPool(starts, limit=1, reuse=True)
    pool.give_back(KIND, pool.take(KIND))
    pool.give_back(OTHER, pool.take(OTHER))
    assert starts.kinds == [KIND, OTHER]
    assert pool.alive == 1
    pool.close()


def test_a_cell_without_reuse_serves_once_and_another_waits_already() -> None:
    starts = Starts()
    pool = CellPool(starts, limit=1, reuse=False)
    first = pool.take(KIND)
    assert until(lambda: pool.alive == 2)
    pool.give_back(KIND, first)
    assert pool.take(KIND) is not first
    pool.close()


def test_a_cell_that_does_not_start_leaves_its_place_free() -> None:
    pool = CellPool(Starts(fail=1), limit=1, reuse=True)
    with pytest.raises(SandboxError, match="no room"):
        pool.take(KIND)
    pool.give_back(KIND, pool.take(KIND))
    pool.close()


def test_a_closed_pool_has_no_cells_and_gives_none() -> None:
    pool = CellPool(Starts(), limit=1, reuse=True)
    cell = pool.take(KIND)
    waiting: list[str] = []

    def wait() -> None:
        try:
            pool.take(KIND)
        except SandboxError as error:
            waiting.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    pool.close()
    thread.join(5)
    pool.give_back(KIND, cell)
    assert waiting == ["The sandbox has been closed."]
    assert pool.alive == 0


def test_a_fresh_cell_is_no_idle_one() -> None:
    pool = CellPool(Starts(), limit=1, reuse=True)
    idle = pool.take(KIND)
    pool.give_back(KIND, idle)
    fresh = pool.take(KIND, fresh=True)
    assert fresh is not idle
    assert pool.alive == 1
    pool.close()
