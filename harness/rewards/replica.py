"""Replicas: the N processes in which `podium reward serve --workers N` grades replies.

The service's own process answers HTTP, calls worker models, counts outcomes, and enforces the
dollar limit. It sends batches of replies to the least loaded replica. A lost replica is restarted,
and another replica grades its replies; a reply that was in two lost replicas has no value.
"""

import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.managers import BaseManager
from threading import Condition, Event, Thread
from typing import Any

from podium.harness.errors import UserError
from podium.harness.rewards.outcome import Status
from podium.harness.rewards.reward import GradingResult, GradingRow, RowGrader

TRIES = 2
"""Maximum tries to grade a reply: a reply that crashes its process must not crash all replicas."""
LONGEST_PAUSE_S = 30.0
LOST = "The process that graded it died twice. Another try may succeed."

OpenGrader = Callable[[], AbstractContextManager[RowGrader]]
"""Function that opens a replica's grader and sandbox; it is pickled, so no lambda or closure."""


class _Grading:
    """Grades replies inside a replica process; each calling thread has its own connection."""

    def __init__(self, open_grader: OpenGrader) -> None:
        self._open, self._stack, self._closed = open_grader, ExitStack(), Event()
        Thread(target=self._end_with_head, daemon=True).start()

    def open(self) -> None:
        self._grade = self._stack.enter_context(self._open())

    def grade(self, rows: Sequence[GradingRow]) -> list[GradingResult]:
        return self._grade(rows)

    def stay(self) -> None:
        self._closed.wait()

    def close(self) -> None:
        self._stack.close()
        self._closed.set()

    def _end_with_head(self) -> None:
        if head := parent_process():
            head.join()
        self.close()
        os._exit(0)


class _ReplicaManager(BaseManager):
    """Starts a replica process and connects to it."""


_ReplicaManager.register("Grading", _Grading)


def _own_session() -> None:
    """Shield a replica process from SIGINT and SIGTERM: only the service ends its replicas."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):  # not SIG_IGN, which programs would inherit
        signal.signal(number, lambda number, frame: None)


class _Replica:
    """A replica process that grades replies, and its load: the number of batches in it now."""

    def __init__(self, number: int, open_grader: OpenGrader) -> None:
        self.number, self.load = number, 0
        self.grading: Any = None
        """Connection to the grader in the process; None while the process is not ready."""
        self._open_grader = open_grader

    def start(self) -> None:
        """Start the replica's process and wait until it can grade; UserError if the start fails."""
        self._manager = _ReplicaManager(ctx=get_context("spawn"))
        try:
            self._manager.start(_own_session)
            make: Callable[[OpenGrader], Any] = getattr(self._manager, "Grading")  # noqa: B009 - a manager has it once it is registered
            grading = make(self._open_grader)
            grading.open()
        except (EOFError, OSError) as error:
            raise UserError(
                f"Replica {self.number} ended before it was ready. Read its output above, and "
                "check the free memory."
            ) from error
        self.grading = grading

    def stop(self) -> None:
        """Close the replica's sandbox and end its process."""
        with suppress(EOFError, OSError):
            if self.grading is not None:
                self.grading.close()
                self._manager.shutdown()


class Replicas:
    """Grades replies in several replica processes; any thread may call its methods."""

    def __init__(self, open_graders: Sequence[OpenGrader], say: Callable[[str], None]) -> None:
        """Take a function per replica, which opens its grader, and a function to print messages."""
        self._replicas = [_Replica(*pair) for pair in enumerate(open_graders, 1)]
        self._say, self._stopped = say, Event()
        self._changed = Condition()

    @contextmanager
    def run(self) -> Generator[RowGrader]:
        """Yield a function that grades replies in the replicas, which run during the block."""
        try:
            with ThreadPoolExecutor(len(self._replicas)) as pool:
                for _ in pool.map(_Replica.start, self._replicas):
                    pass  # raises the first refusal
            for replica in self._replicas:
                Thread(target=self._keep, args=[replica], daemon=True).start()
            yield self.grade
        finally:
            self._stopped.set()
            for replica in self._replicas:
                replica.stop()
            for process in active_children():  # stuck or starting replicas
                if process.name.startswith(_ReplicaManager.__name__):
                    process.kill()

    def grade(self, rows: Sequence[GradingRow]) -> list[GradingResult]:
        """Grade replies in the least busy replica; if that process dies, in another one."""
        for _ in range(TRIES):
            with self._changed:
                while not (ready := [r for r in self._replicas if r.grading is not None]):
                    self._changed.wait()
                replica = min(ready, key=lambda r: r.load)
                replica.load += 1
                grading = replica.grading
            try:
                return grading.grade(rows)
            except (EOFError, OSError):
                self._lose(replica, grading)
            finally:
                with self._changed:
                    replica.load -= 1
        return [GradingResult(Status.SCORER_ERROR, reason=LOST)] * len(rows)

    def _lose(self, replica: _Replica, grading: Any) -> None:
        with self._changed:
            if replica.grading is grading:
                replica.grading = None

    def _keep(self, replica: _Replica) -> None:
        """Restart a replica each time that its process dies."""
        while not self._stopped.is_set():
            grading = replica.grading  # None: a caller has noticed that the replica is lost
            if grading is not None:
                with suppress(EOFError, OSError):
                    grading.stay()
                if self._stopped.is_set():
                    return
                self._lose(replica, grading)
            self._say(
                f"Replica {replica.number} died; other replicas get its items, and it is started "
                "again."
            )
            self._restart(replica)

    def _restart(self, replica: _Replica) -> None:
        pause_s = 1.0
        while not self._stopped.is_set():
            try:
                replica.start()
                break
            except UserError as error:
                if self._stopped.is_set():  # all replicas were stopped while it started
                    break
                self._say(f"Replica {replica.number} cannot be started again: {error}")
                self._stopped.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        with self._changed:
            self._changed.notify_all()
