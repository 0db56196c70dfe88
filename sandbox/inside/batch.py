"""Run a program on a batch of inputs in one command, for sandboxes that only execute commands.

A command in an Inspect sandbox gets its whole standard input at once. So all messages for the judge
(judge.py) come together, after a line with the stop conditions. The output is one line of JSON,
then the answers, compressed and in base64.
"""

import base64
import json
import os
import sys
import time
import zlib
from contextlib import suppress
from typing import Any

from podium.sandbox.inside import isolation
from podium.sandbox.inside.isolation import FIRST_USER, LAST_USER, MODES, Mode, Users
from podium.sandbox.inside.judge import SITE, Ended, Judge, Run, write_all

MEMORY_LIMITS = (
    "/sys/fs/cgroup/memory.max",  # cgroup v2
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",  # cgroup v1
)


class BatchJudge(Judge):
    """A judge (supervisor) that buffers its answers and ends the batch early, e.g. at a failure."""

    def __init__(self, mode: Mode, source: int, refused: bytes) -> None:
        """Read messages from descriptor `source`; `refused` is the seccomp filter of programs."""
        super().__init__(mode, source, os.memfd_create("answers"), refused)
        self.order: dict[str, Any] = self.read_line()
        self.until = time.monotonic() + self.order["seconds"]
        if isinstance(mode, Users) and _memory_limit() > self.order["memory_bytes"]:
            mode.counted = False  # the cgroup allows too much: add up the processes' memory

    def write_outcome(self, run: Run) -> None:
        """Buffer a run's outcome; raise Ended if the batch ends after this run."""
        failed = bool(run.status) or run.exit_code != 0
        super().write_outcome(run)
        size = os.lseek(self.sink, 0, os.SEEK_CUR)
        if (
            not run.clean
            or (failed and not self.order["past_failures"])
            or size >= self.order["most_bytes"]
            or time.monotonic() >= self.until
        ):
            raise Ended

    def finish(self) -> bytes:
        """Kill a program's process that waits for more inputs, and return the buffered answers."""
        with suppress(Ended):
            self.end_lasting()
        return os.pread(self.sink, os.lseek(self.sink, 0, os.SEEK_CUR), 0)


def _refusal() -> str:
    """Return why the judge cannot work in this sandbox; empty if the judge can.

    The check switches users and signals a process: a list of capabilities does not show that a
    user namespace lacks user ids.
    """
    hold, release = os.pipe()
    hear, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(release)
        os.write(tell, _switch_user().encode())
        os.read(hold, 1)
        os._exit(0)
    os.close(tell)
    problem = os.read(hear, 1000).decode().strip()
    try:
        os.kill(pid, 0)
    except OSError as error:
        problem = problem or f"it may not signal another user's process ({error.strerror})"
    os.close(release)
    os.waitpid(pid, 0)
    if not problem and _has_strays():
        return "a process of a program that ran before cannot be ended"
    return problem


def _has_strays() -> bool:
    for entry in os.listdir("/proc"):  # noqa: PTH208
        with suppress(OSError, ValueError), open(f"/proc/{entry}/status", "rb") as file:  # noqa: PTH123
            fields = dict(line.split(b":", 1) for line in file.read().splitlines())
            user, state = int(fields[b"Uid"].split()[0]), fields[b"State"].split()[0]
            if FIRST_USER <= user <= LAST_USER and state not in b"ZX":
                return True
    return False


def _switch_user() -> str:
    """Switch to the user id of a program; return why that failed, or a space if it worked."""
    try:
        os.setgroups([])
        os.setresgid(FIRST_USER, FIRST_USER, FIRST_USER)
        os.setresuid(FIRST_USER, FIRST_USER, FIRST_USER)
    except OSError as error:
        return f"as user {os.getuid()} it may not switch users ({error.strerror})"
    return " "


def _memory_limit() -> float:
    for path in MEMORY_LIMITS:
        with suppress(OSError, ValueError), open(path, "rb") as file:  # noqa: PTH123
            return float(file.read())
    return float("inf")


def main(mode: str, source: int, sink: int, refused: bytes, promised: list[str]) -> None:
    """Carry out the host's orders from `source` until the batch ends; write all answers to `sink`.

    `promised` is ignored: the host refuses a sandbox that lacks packages.
    """
    if os.path.isdir(SITE):  # noqa: PTH112
        sys.path.append(SITE)
    # Ignore network traces: this sandbox serves one program, and others may use its network.
    isolation.TRAFFIC = isolation.SOCKETS = os.devnull
    problem = _refusal()
    answers = b""
    if not problem:
        judge = BatchJudge(MODES[mode](), source, refused)
        most = _memory_limit()
        if most < judge.order["program_bytes"]:
            problem = f"it has {most / 2**20:.0f} MiB of memory, less than one program may use"
        else:
            with suppress(Ended, BrokenPipeError):
                judge.serve()
        answers = judge.finish()
    while os.read(source, 1 << 20):
        pass  # read to the end, or a host that still writes would fail
    head = {"podium": "batch", "problem": problem, "bytes": len(answers)}
    write_all(sink, json.dumps(head).encode() + b"\n")
    write_all(sink, base64.encodebytes(zlib.compress(answers, 1)))  # logs show the first line
