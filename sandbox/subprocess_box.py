"""A box made of a plain child process with limits. It limits; it does not isolate.

Covered
- CPU time, real time, address space, core dumps, size of stdout, stderr and of any file;
- the number of processes: watched, so a fork bomb lives for about a tenth of a second;
- everything the program started in its session is killed when the program ends;
- a fresh working directory, removed afterwards; an empty environment; no inherited descriptors;
- Python in isolated mode when the command says so; results travel by value only.

Not covered
- the network, and every file the current user may read or write;
- killing or tracing other processes of the same user;
- a process that starts a session of its own (`setsid`) outlives the program, within its limits;
- many small files: the disk is limited per file, not in total; memory is limited per process.

So it serves programs that we wrote ourselves (the rehearsal workers), and others only where the
user asked for it by name. Linux only: it needs prlimit, pidfd and /proc.
"""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import IO

from sandbox.box import PYTHON, Limits, Outcome, SandboxError, Status

GATE = 'kill -STOP $$; exec "$@"'
"""The child stops itself until its limits are set. `preexec_fn` would do it in the forked copy of a
process with threads, which may deadlock."""

WATCH_S = 0.1
"""How often the processes of a running program are counted."""


@dataclass(frozen=True, slots=True)
class _Streams:
    """Files instead of pipes: no reader threads, and the size limit is the kernel's."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class SubprocessBox:
    """A child process under rlimits; see the module's two lists before you trust it."""

    @property
    def name(self) -> str:
        """`subprocess`."""
        return "subprocess"

    def run(
        self, files: Mapping[str, bytes], command: Sequence[str], stdin: bytes, limits: Limits
    ) -> Outcome:
        """Run a command within limits in a fresh directory; raise SandboxError if we cannot."""
        try:
            with _workplace(files) as folder, _streams(stdin) as streams:
                return _run(_argv(command), folder, streams, limits)
        except OSError as error:
            raise SandboxError(f"The subprocess box could not run a program: {error}.") from error


def _argv(command: Sequence[str]) -> list[str]:
    """Return the command with the interpreter spelled out, outside any virtual environment."""
    if not command:
        raise SandboxError("The subprocess box was given an empty command.")
    first = str(Path(sys.executable).resolve()) if command[0] == PYTHON else command[0]
    return [first, *command[1:]]


@contextmanager
def _workplace(files: Mapping[str, bytes]) -> Generator[Path]:
    """Yield a new directory that holds `files`, and remove it whatever was done to it."""
    folder = Path(tempfile.mkdtemp(prefix="podium-box-"))
    try:
        for name, content in files.items():
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()):
                raise SandboxError(f"File name {name!r} leaves the box's directory.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield folder
    finally:
        shutil.rmtree(folder, onerror=_force)


def _force(remove: Callable[[str], object], path: str, _: object) -> None:
    """Remove what the program made unreadable; what still resists is left to the system."""
    with suppress(OSError):
        Path(path).parent.chmod(0o700)
        Path(path).chmod(0o700)
        remove(path)


@contextmanager
def _streams(stdin: bytes) -> Generator[_Streams]:
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        yield _Streams(given, out, err)


def _run(argv: list[str], folder: Path, streams: _Streams, limits: Limits) -> Outcome:
    process = subprocess.Popen(
        ["/bin/sh", "-c", GATE, "sh", *argv],
        stdin=streams.stdin,
        stdout=streams.stdout,
        stderr=streams.stderr,
        cwd=folder,
        env={},
        start_new_session=True,
    )
    _wait_for_gate(process)
    try:
        _limit(process.pid, limits)
        started = time.monotonic()
        os.kill(process.pid, signal.SIGCONT)
        killed = _watch(process.pid, started + limits.wall_s, limits.processes)
    finally:
        _kill_session(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = usage.ru_utime + usage.ru_stime
    stdout = _read(streams.stdout, limits.output_bytes)
    stderr = _read(streams.stderr, limits.output_bytes)
    over = killed or _over_limit(process.returncode, cpu_s, limits)
    flooded = max(len(stdout), len(stderr)) >= limits.output_bytes
    starved = process.returncode != 0 and b"MemoryError" in stderr[-500:]
    return Outcome(
        status=over or ("output" if flooded else "memory" if starved else "exited"),
        exit_code=process.returncode,
        stdout=stdout,
        stderr=stderr,
        cpu_s=cpu_s,
        wall_s=time.monotonic() - started,
    )


def _wait_for_gate(process: subprocess.Popen[bytes]) -> None:
    """Wait until the child has stopped itself."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        process.returncode = os.waitstatus_to_exitcode(status)
        raise SandboxError(f"The shell of the subprocess box ended with {process.returncode}.")


def _limit(pid: int, limits: Limits) -> None:
    """Set the limits of a stopped child; its program inherits them."""
    cpu_s = max(1, ceil(limits.cpu_s))
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.output_bytes, limits.output_bytes),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, most = resource.prlimit(pid, kind)
        most = hard if most == resource.RLIM_INFINITY else most
        resource.prlimit(pid, kind, (min(soft, most), min(hard, most)))


def _watch(pid: int, deadline: float, processes: int) -> Status | None:
    """Wait for a process to end; return the limit it passed first, None when it ended by itself."""
    handle = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        while not ended.poll(1000 * min(WATCH_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return "timeout"
            if len(_session(pid)) > processes:
                return "processes"
        return None
    finally:
        os.close(handle)


def _session(leader: int) -> list[int]:
    """Return the processes of a session, from /proc: `pid (name) state ppid pgrp session ...`."""
    found: list[int] = []
    for entry in os.listdir("/proc"):  # noqa: PTH208  (ten times faster than Path.iterdir here)
        if not entry.isdigit():
            continue
        with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123  (same)
            if int(file.read().rpartition(b")")[2].split()[3]) == leader:
                found.append(int(entry))
    return found


def _kill_session(leader: int) -> None:
    """Kill what is left of a session; the group first, in one stroke that no fork can outrun."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    for pid in _session(leader):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _over_limit(exit_code: int, cpu_s: float, limits: Limits) -> Status | None:
    if exit_code in (-signal.SIGXCPU, -signal.SIGPROF) or cpu_s >= max(1.0, limits.cpu_s):
        return "timeout"
    if exit_code == -signal.SIGXFSZ:
        return "output"
    return None


def _read(stream: IO[bytes], most: int) -> bytes:
    stream.seek(0)
    return stream.read(most)
