"""Run math-verify in separate processes, because it can hang, crash or run out of memory.

Each process runs math_verify_worker.py, with only PATH in its environment and no inherited file.
A process is started on first use and ends with its parent. After a fork, the child starts its own.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from podium.harness.errors import PodiumError
from podium.harness.parallel import cores

CPU_S = 1.0
"""Maximum CPU seconds per comparison; the slowest of 487 real answers to MATH-500 took 0.44."""
WALL_S = 60.0
"""Seconds without reply after which a math-verify process counts as broken (EqualityError)."""

AGAIN = "Run the same command again."
PROGRAM = Path(__file__).with_name("math_verify_worker.py")
Pair = tuple[str, str, int]
"""The target, an answer, and the decimal places to which decimals are compared."""


class EqualityError(PodiumError):
    """An error of podium, not of the answer: math-verify cannot be started or does not reply."""


@lru_cache(maxsize=4096)
def math_verify_all(pairs: tuple[Pair, ...]) -> tuple[bool, ...] | None:
    """Return math-verify's verdict on each pair of answers, or None if the pairs took too long."""
    reply = POOL.ask(json.dumps({"pairs": pairs}).encode() + b"\n")
    return tuple(map(bool, reply["equal"])) if "equal" in reply else None


class MathVerifyProcess:
    """One math-verify process, used by one thread at a time."""

    def __init__(self, command: Sequence[str] = ()) -> None:
        """Start the process and wait until it is ready; raises EqualityError if that fails."""
        folders = [path for path in sys.path if Path(path).is_absolute()]
        self._process = subprocess.Popen(
            command or [sys.executable, "-I", str(PROGRAM), str(CPU_S), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            cwd="/",
            start_new_session=True,  # Ctrl-C must not reach the process
            bufsize=0,
        )
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        self._asks, self._says, self._errors = (cast(BinaryIO, pipe) for pipe in pipes)
        try:
            self._read()
        except BaseException:
            self.end()
            raise

    def ask(self, line: bytes) -> dict[str, Any]:
        """Send one line of JSON and return the reply; raises EqualityError if there is none."""
        if self._spoke(0):
            raise EqualityError(f"The process comparing answers sent an unexpected line. {AGAIN}")
        try:
            self._asks.write(line)
        except OSError as error:
            raise EqualityError(f"The process comparing answers ended: {error}. {AGAIN}") from error
        return self._read()

    def _read(self) -> dict[str, Any]:
        reply, until = b"", time.monotonic() + WALL_S
        while not reply.endswith(b"\n"):
            ready = self._spoke(max(0.0, until - time.monotonic()))
            chunk = os.read(self._says.fileno(), 65536) if ready else b""
            if not chunk:
                raise EqualityError(self._last_words(ready))
            reply += chunk
        return json.loads(reply)

    def _spoke(self, wait_s: float) -> bool:
        poll = select.poll()  # select() fails on file descriptors above 1,023
        poll.register(self._says, select.POLLIN)
        return bool(poll.poll(wait_s * 1000))

    def _last_words(self, eof: bool) -> str:
        if not eof:
            return f"The process that compares answers did not answer for {WALL_S:.0f} s. {AGAIN}"
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        detail = words[-1] if words else f"exit status {self._process.wait()}"
        return f"The process that compares answers ended ({detail}). Is math-verify installed?"

    def end(self) -> None:
        """End the process; its child ends because the pipe that it reads is closed."""
        self.forget()
        self._process.terminate()
        self._process.wait()

    def forget(self) -> None:
        """Close this end of the pipes only: after a fork, the parent still uses the process."""
        for pipe in (self._asks, self._says, self._errors):
            pipe.close()

    @property
    def pid(self) -> int:
        """Process id of the math-verify process, which forks a child that compares answers."""
        return self._process.pid


class MathVerifyPool:
    """Math-verify processes shared by several threads, started on demand."""

    def __init__(self, limit: int) -> None:
        """Start no process yet; at most `limit` processes will run simultaneously."""
        self._most, self._places = limit, threading.BoundedSemaphore(limit)
        self._free = list[MathVerifyProcess]()

    def ask(self, line: bytes) -> dict[str, Any]:
        """Send a line to a process and return the reply; if it breaks, retry once with another."""
        try:
            return self._ask(line)
        except EqualityError:
            return self._ask(line)

    def _ask(self, line: bytes) -> dict[str, Any]:
        with self._places:
            try:
                worker = self._free.pop()
            except IndexError:
                worker = MathVerifyProcess()
            try:
                reply = worker.ask(line)
            except BaseException:
                worker.end()
                raise
            self._free.append(worker)
            return reply

    def pids(self) -> list[int]:
        """Return the process ids of the idle processes."""
        return [worker.pid for worker in self._free]

    def end(self) -> None:
        """End the idle processes."""
        while self._free:
            self._free.pop().end()

    def forget(self) -> None:
        """In the child after a fork, drop the parent's processes, which the parent keeps using."""
        for worker in self._free:
            worker.forget()
        self.__init__(self._most)


POOL = MathVerifyPool(cores())
atexit.register(POOL.end)
os.register_at_fork(after_in_child=POOL.forget)
