"""All runs of a program in one go, for sandboxes that can execute a command and nothing else.

A command in an Inspect sandbox is given its standard input at once. So the frames of judge.py come
together, after a line that says when to stop, and the answers go out as one line of JSON, then text
that survives any terminal.
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
    """A judge that keeps its answers and stops where its host would probably ask no further."""

    def __init__(self, mode: Mode, source: int, refused: bytes) -> None:
        """Take frames from `source`; `refused` is the filter of system calls for programs."""
        super().__init__(mode, source, os.memfd_create("answers"), refused)
        self.order: dict[str, Any] = self.read_line()
        self.until = time.monotonic() + self.order["seconds"]
        if isinstance(mode, Users) and _memory_limit() > self.order["memory_bytes"]:
            mode.counted = False  # no cgroup stops the program in time: add up what it holds

    def write_outcome(self, run: Run) -> None:
        """Keep how a run ended; Ended when that is enough for now."""
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
        """End what still runs; return the answers."""
        with suppress(Ended):
            self.end_lasting()
        return os.pread(self.sink, os.lseek(self.sink, 0, os.SEEK_CUR), 0)


def _refusal() -> str:
    """Return what keeps the judge from its work in this sandbox; empty when nothing does.

    What it may do is tried, not read off a list of capabilities: a user namespace may lack users.
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
    """Become the user of a program; return why that failed, a blank when it did not."""
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
    """Run what `source` orders until the batch ends, then say everything to `sink`.

    Nothing is `promised`: whoever names a sandbox without the packages is refused.
    """
    if os.path.isdir(SITE):  # noqa: PTH112
        sys.path.append(SITE)
    # This sandbox serves one program, and may have a busy network.
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
        pass  # whoever still writes to us would fail if we ended first
    head = {"podium": "batch", "problem": problem, "bytes": len(answers)}
    write_all(sink, json.dumps(head).encode() + b"\n")
    write_all(sink, base64.encodebytes(zlib.compress(answers, 1)))  # in lines: logs show the first
