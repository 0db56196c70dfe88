"""Ask math-verify in processes of its own, which may hang, crash or run out of memory.

Each is a math_verify_worker.py with no environment but PATH and no open file of ours, started
when it is first needed. A fork of this process starts its own; all end with who started them.
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
"""Seconds of CPU for one comparison; of 487 real answers to MATH-500 the slowest took 0.44."""
WALL_S = 60.0
"""Seconds without any word after which a process counts as broken: ours to repair, no verdict."""

PROGRAM = Path(__file__).with_name("math_verify_worker.py")
Pair = tuple[str, str, int]
"""The target, an answer, and the decimal places to which decimals are compared."""


class EqualityError(PodiumError):
    """We failed: the process that compares cannot be started or says nothing."""


@lru_cache(maxsize=4096)
def math_verify_all(pairs: tuple[Pair, ...]) -> tuple[bool, ...] | None:
    """Return what math-verify says of each pair; None where all together took too long."""
    said = POOL.ask(json.dumps({"pairs": pairs}).encode() + b"\n")
    return tuple(map(bool, said["equal"])) if "equal" in said else None


class MathVerifyProcess:
    """One process, used by one thread at a time."""

    def __init__(self, command: Sequence[str] = ()) -> None:
        """Start it and wait until it is ready; EqualityError when it is not."""
        folders = [path for path in sys.path if Path(path).is_absolute()]
        self._process = subprocess.Popen(
            command or [sys.executable, "-I", str(PROGRAM), str(CPU_S), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            cwd="/",
            start_new_session=True,  # Ctrl-C is for us
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
        """Return the answer to one line; EqualityError when there is none."""
        if self._spoke(0):
            raise EqualityError("The process that compares answers spoke without being asked.")
        try:
            self._asks.write(line)
        except OSError as error:
            raise EqualityError(f"The process that compares answers is gone: {error}.") from error
        return self._read()

    def _read(self) -> dict[str, Any]:
        said, until = b"", time.monotonic() + WALL_S
        while not said.endswith(b"\n"):
            ready = self._spoke(max(0.0, until - time.monotonic()))
            part = os.read(self._says.fileno(), 65536) if ready else b""
            if not part:
                raise EqualityError(self._last_words(ready))
            said += part
        return json.loads(said)

    def _spoke(self, wait_s: float) -> bool:
        poll = select.poll()  # select() cannot take a file number above 1,023
        poll.register(self._says, select.POLLIN)
        return bool(poll.poll(wait_s * 1000))

    def _last_words(self, ended: bool) -> str:
        if not ended:
            return f"The process that compares answers said nothing for {WALL_S:.0f} s."
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        said = words[-1] if words else f"exit status {self._process.wait()}"
        return f"The process that compares answers ended ({said}); is math-verify installed?"

    def end(self) -> None:
        """End the process and its child, which both read a pipe that is now closed."""
        self.forget()
        self._process.terminate()
        self._process.wait()

    def forget(self) -> None:
        """Close our ends of the pipes, so that only another owner can use the process."""
        for pipe in (self._asks, self._says, self._errors):
            pipe.close()

    @property
    def pid(self) -> int:
        """The process that forks the one at work."""
        return self._process.pid


class MathVerifyPool:
    """Processes for several threads: as many as there are cores, started when they are needed."""

    def __init__(self, most: int) -> None:
        """Start none yet; `most` bounds how many there will be."""
        self._most, self._places = most, threading.BoundedSemaphore(most)
        self._free = list[MathVerifyProcess]()

    def ask(self, line: bytes) -> dict[str, Any]:
        """Return the answer of any process; one that broke is replaced, once."""
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
                said = worker.ask(line)
            except BaseException:
                worker.end()
                raise
            self._free.append(worker)
            return said

    def pids(self) -> list[int]:
        """Return the processes that are waiting for work."""
        return [worker.pid for worker in self._free]

    def end(self) -> None:
        """End the processes that nobody is using."""
        while self._free:
            self._free.pop().end()

    def forget(self) -> None:
        """Forget the processes of the parent after a fork; they are its own."""
        for worker in self._free:
            worker.forget()
        self.__init__(self._most)


POOL = MathVerifyPool(cores())
atexit.register(POOL.end)
os.register_at_fork(after_in_child=POOL.forget)
