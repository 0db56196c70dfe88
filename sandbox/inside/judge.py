"""The supervisor of a box: receives a program and inputs, runs them within limits, and reports.

Each message on its standard input and output is a line of JSON, then the bytes that it announces.

    host -> {"program": n, "runner": ..., "entry": ...} + source
    host -> {"run": n, "cpu_s": ..., "wall_s": ..., "memory_bytes": ..., ...} + input
    host <- {"status": ..., "exit_code": ..., "stdout": n, "stderr": n, "result": n, ...} + bytes

A zygote, forked before the first order arrives, forks a process per run, so no program's process
descends from one that has read another input. If a program with a method cannot keep state
(purity.py), its process takes further inputs while they are fast and succeed; an input that fails
there runs again in a separate process. A `Mode` (isolation.py) is a way to isolate programs.
"""

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

from podium.sandbox.inside import isolation, zygote
from podium.sandbox.inside.isolation import MODES, Mode, Process
from podium.sandbox.inside.runners import LACKING, LACKS

TICK_S = 0.05
"""Seconds between two checks of a program's limits; a limit may be exceeded by this time."""
PATIENCE_S = 8.0
"""Timeout, in seconds, of steps that take milliseconds unless a program blocks them. It is shorter
than the host's timeout, so that the program counts as the cause, not a stuck engine."""


class Ended(Exception):
    """Raised to end the judge: the host closed the stream, the zygote ended, or cleanup failed."""


class _LoadedProgram(NamedTuple):
    """A program to run; `source` is the descriptor of an in-memory file with the program's code."""

    source: int
    runner: str
    entry: str | None


class _Keeper(NamedTuple):
    """Objects that all runs of a box share; process `pid`, the zygote, has no limits or cleanup."""

    mode: Mode
    zygote: socket.socket
    pid: int

    def processes(self) -> list[Process]:
        return isolation.children_of(os.getpid(), {self.pid})

    def zygote_says(self) -> bytes:
        try:
            said = self.zygote.recv(1 << 16)
        except TimeoutError:
            raise Ended from None
        if not said:
            raise Ended
        return said


class _ErrorStream:
    """A program's stderr, read continuously, so that no amount of output blocks the program."""

    def __init__(self) -> None:
        self.reader, self.writer = _open_pipe()  # an open writer: reads never see EOF
        self.end = b""
        """The last bytes that were read from stderr, at most `KEPT` (64 KiB)."""

    def drain(self) -> None:
        """Read the available bytes, at most a full pipe, since a process may write for ever."""
        if self.reader < 0:
            return
        with suppress(BlockingIOError):
            for _ in range(LARGEST_PIPE // PIECE):
                self.end = (self.end + os.read(self.reader, PIECE))[-KEPT:]

    def close(self) -> None:
        """Read the available bytes and close both ends; a second call has no effect."""
        self.drain()
        for end in (self.reader, self.writer):
            if end >= 0:
                os.close(end)
        self.reader = self.writer = -1


def _open_pipe() -> tuple[int, int]:
    """Return descriptors (reader, writer) of a pipe that any user may reopen as /dev/stderr."""
    path = f"/tmp/.stderr-{os.urandom(8).hex()}"  # gVisor: no chmod of unnamed pipes
    os.mkfifo(path)
    try:
        os.chmod(path, 0o666)  # noqa: PTH101  (pathlib costs 10 ms of every start)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return reader, os.open(path, os.O_WRONLY)
    finally:
        os.unlink(path)  # noqa: PTH108  (same)


class Run:
    """One run of a program on one input: its output files, its process and how the run ended."""

    def __init__(
        self,
        keeper: _Keeper,
        program: _LoadedProgram,
        limits: dict[str, Any],
        errors: _ErrorStream | None = None,
    ) -> None:
        """Open in-memory files for the program's stdout and result.

        `errors` is the stderr of the process that takes the input, if the process already exists.
        """
        self.keeper, self.program, self.limits = keeper, program, limits
        self.files = {name: os.memfd_create(name) for name in ("stdout", "result")}
        self.errors = errors or _ErrorStream()
        self.errors.end = b""
        self.keeps_errors = errors is not None
        """Whether a process may still write to stderr after this run."""
        self.user = keeper.mode.next_user()
        self.status, self.clean = "", True
        self.exit_code = self.pid = 0
        self.cpu_s = self.orphans_s = self.group_s = self.wall_s = 0.0
        self.started = time.monotonic()
        self.kills = self.memory_kills()

    def start(self, given: int, *more: int) -> int:
        """Let the zygote fork a process for the input descriptor `given`; return the pid."""
        order = {"runner": self.program.runner, "entry": self.program.entry, **self.limits}
        order |= {"user": self.user, "folder": self.keeper.mode.folder()}
        written = [self.files["stdout"], self.errors.writer, self.files["result"]]
        files = [self.program.source, given, *written, *more]
        socket.send_fds(self.keeper.zygote, [json.dumps(order).encode()], files)
        self.pid = int(self.keeper.zygote_says())
        self.started = time.monotonic()  # until now a new zygote was importing modules
        self.group_s = _others_cpu_s()
        return self.pid

    def fork(self, given: int) -> None:
        """Run a fresh process on the input descriptor `given` until the process has ended."""
        self.await_end(self.start(given))

    def await_end(self, pid: int) -> None:
        """Wait until process `pid` ends, or kill it at a limit; record how the process ended."""
        if not self.status:
            self.watch(pid, [self.keeper.zygote])
        self.finish(json.loads(self.keeper.zygote_says()))

    def fork_lasting(self, given: int) -> "_Lasting | None":
        """Run a process as in `fork`; return the process if it takes more inputs, else None."""
        lasting = _Lasting(self, given)
        sources = [lasting.channel, self.keeper.zygote]
        ready = self.watch(lasting.pid, sources)
        if self.keeper.zygote not in ready and lasting.heard() and self.has_result():
            self.count(lasting.cpu_s())
            self.wall_s = time.monotonic() - self.started
            lasting.latest_s = self.cpu_s
            self.keeps_errors = True
            return lasting
        lasting.channel.close()
        self.await_end(lasting.pid)
        return None

    def has_result(self) -> bool:
        """Return whether the program's runner has reported a result and no limit was exceeded."""
        return not self.status and os.fstat(self.files["result"]).st_size > 0

    def pass_on(self, lasting: "_Lasting", given: int) -> None:
        """Send one more input to a lasting (reused) process; wait for its answer or its end."""
        before, self.group_s = lasting.cpu_s(), _others_cpu_s()
        sources = [lasting.channel, self.keeper.zygote]
        taken = lasting.send([given, self.files["result"]])
        ready = self.watch(lasting.pid, sources, before) if taken else []
        if lasting.channel in ready and lasting.heard():
            self.cpu_s = max(self.cpu_s, lasting.cpu_s() - before)
            self.wall_s = time.monotonic() - self.started
            lasting.latest_s = self.cpu_s
            return
        self.status = self.status or ("memory" if self.memory_kills() > self.kills else "exited")
        self.exit_code = lasting.stop().exit_code
        self.wall_s = time.monotonic() - self.started

    def watch(self, pid: int, sources: list[socket.socket], before_s: float = 0.0) -> list[Any]:
        """Wait for data in `sources`; return the sockets that have some. Kill `pid` at a limit.

        `before_s`: CPU seconds that the process had used before this run.
        """
        while True:
            ready = self.await_source(sources)
            self.wall_s = time.monotonic() - self.started
            if ready:
                return ready
            found = self.keeper.processes()
            self.count(sum(one.cpu_s for one in found) - before_s)
            self.status = self.limit_passed(found)
            if self.status:
                return self.stop(pid, sources)

    def await_source(self, sources: list[socket.socket]) -> list[Any]:
        """Return the sockets of `sources` with data within `TICK_S` seconds; also read stderr."""
        deadline = time.monotonic() + TICK_S
        while (left_s := deadline - time.monotonic()) > 0:
            ready: list[Any] = select.select([*sources, self.errors.reader], [], [], left_s)[0]
            if self.errors.reader in ready:
                self.errors.drain()
                ready.remove(self.errors.reader)
            if ready:
                return ready
        return []

    def limit_passed(self, found: list[Process]) -> str:
        """Return the name of the limit that the processes `found` exceed together; else empty."""
        if self.cpu_s >= self.limits["cpu_s"]:
            return "time"
        if sum(one.threads for one in found) > self.limits["processes"]:
            return "processes"
        memory = 0 if self.keeper.mode.counted else sum(one.memory_bytes for one in found)
        if memory > self.limits["memory_bytes"]:
            return "memory"
        return "time" if self.wall_s >= self.limits["wall_s"] else ""

    def stop(self, pid: int, sources: list[socket.socket]) -> list[Any]:
        """Kill process `pid`; if it does not end, kill all, since one may be tracing it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.keeper.mode.kill(pid)
            if ready := self.await_source(sources):
                return ready
            for one in self.keeper.processes():
                self.keeper.mode.kill(one.pid)
        raise Ended

    def count(self, found_s: float) -> None:
        """Update the run's CPU time: `found_s` plus ended orphans', or the cgroup's if larger."""
        self.orphans_s += isolation.reap({self.keeper.pid})
        self.cpu_s = max(self.cpu_s, found_s + self.orphans_s, _others_cpu_s() - self.group_s)

    def finish(self, ended: dict[str, Any]) -> None:
        """Record how the run's process ended; `ended` is the zygote's report on the process."""
        self.exit_code = ended["exit_code"]
        self.count(ended["cpu_s"])
        if self.memory_kills() > self.kills:
            self.status = "memory"
        if not self.status and self.cpu_s >= self.limits["cpu_s"]:
            self.status = "time"

    def memory_kills(self) -> int:
        """Return how many processes of the box's own cgroup the kernel killed to free memory."""
        return isolation.memory_kills() if self.keeper.mode.own_cgroup else 0

    def read(self, name: str) -> bytes:
        """Return an output of the run: stdout or result, up to its limit, or the end of stderr."""
        if name == "stderr":
            self.errors.drain()
            return self.errors.end
        return os.pread(self.files[name], self.limits["output_bytes"], 0)

    def header(self, sizes: list[int]) -> dict[str, Any]:
        """Return the header of the run's report; `sizes`: bytes of stdout, stderr and result."""
        status = self.status
        stdout, _, result = sizes
        if not status and max(stdout, result) >= self.limits["output_bytes"]:
            status = "output"
        if not status and self.exit_code and b"MemoryError" in self.read("stderr")[-300:]:
            status = "memory"
        return {
            "status": status or "exited",
            "exit_code": self.exit_code,
            "cpu_s": round(self.cpu_s, 6),
            "wall_s": round(self.wall_s, 6),
            "clean": self.clean,
            **dict(zip(("stdout", "stderr", "result"), sizes, strict=True)),
            **({"lacks": LACKING} if LACKING and self.exit_code == LACKS else {}),
        }

    def close(self) -> None:
        """Close the run's files, and stderr unless a reused process may still write to it."""
        while self.files:
            os.close(self.files.popitem()[1])
        if not self.keeps_errors:
            self.errors.close()


class _Lasting:
    """A program's process that takes one input after another and keeps its state."""

    def __init__(self, run: Run, given: int) -> None:
        self.keeper, self.run = run.keeper, run
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = run.start(given, other.fileno())
        other.close()
        self.channel.setblocking(False)
        self.stopped = False
        self.latest_s = 0.0
        """CPU seconds that the process used for its latest input."""

    def send(self, files: list[int]) -> bool:
        try:
            socket.send_fds(self.channel, [b"run"], files)
        except OSError:
            return False
        return True

    def heard(self) -> bool:
        try:
            return bool(self.channel.recv(16))
        except OSError:
            return False

    def cpu_s(self) -> float:
        return isolation.clock_s(self.pid) or sum(one.cpu_s for one in self.keeper.processes())

    def stop(self) -> Run:
        if not self.stopped:
            self.stopped = True
            self.keeper.mode.kill(self.pid)
            self.run.finish(json.loads(self.keeper.zygote_says()))
            self.channel.close()
            self.run.keeps_errors = False
            self.run.close()
        return self.run


def _others_cpu_s() -> float:
    """Return the CPU seconds of the box's other processes; 0 if this process is not process 1."""
    return isolation.group_cpu_s() - time.process_time() if os.getpid() == 1 else 0.0


PIECE, CHUNK = 1 << 16, 1 << 20
KEPT = 1 << 16
"""Bytes of standard error that are kept, from its end."""
LARGEST_PIPE = 1 << 20
"""Maximum bytes to which a program may enlarge a pipe, by the kernel's default setting."""
SITE = "/opt/podium/site"  # where the image keeps the third-party packages that programs may import
LASTING = "official"  # the only runner that always keeps its process for the next input
STAYING = "call"  # the runner that keeps its process if the program can keep no state
QUICK_S = 0.5
"""If an input took this many CPU seconds, the next input gets a new process: a fork is cheaper."""
TRIAL_S = 1.0
"""Maximum CPU and real seconds of an input in a reused process; then a new process repeats the
input."""


class Judge:
    """A box's supervisor, with the zygote (which forks processes) and the current program."""

    def __init__(self, mode: Mode, source: int, sink: int, refused: bytes = b"") -> None:
        """Start the zygote; messages will be read from `source`, answers written to `sink`.

        `refused` is a seccomp filter (sandbox/seccomp.py) for the zygote and its forks.
        """
        self.source, self.sink = source, sink
        self.ahead = bytearray()
        self.keeper = _Keeper(mode, *zygote.start(refused))
        self.keeper.zygote.settimeout(PATIENCE_S)
        mode.begin()
        self.program: _LoadedProgram | None = None
        self.lasting: _Lasting | None = None
        self.stays = False
        """Whether a process of the current program may still take one input after another."""

    def serve(self) -> None:
        """Carry out the host's orders until it closes the stream; answer all but new programs."""
        self.write({"ready": True})
        while True:
            order = self.read_line()
            if "facts" in order:
                self.write(facts(self.keeper.mode))
            elif "program" in order:
                self.load(order)
            else:
                self.write_outcome(self.run(order))

    def load(self, order: dict[str, Any]) -> None:
        """Receive a new program, and clean up what the last one left."""
        if not self.end_lasting():
            raise Ended  # the host sees a cell that died, and discards it
        if self.program:
            os.close(self.program.source)
        source = self.read_file(order["program"])
        os.fchmod(source, 0)  # under gVisor any user can open our files; runs reuse this one
        self.program = _LoadedProgram(source, order["runner"], order["entry"])
        self.stays = self.program.runner == STAYING

    def run(self, order: dict[str, Any]) -> Run:
        """Run the current program on the input of an order; clean up after an ended process."""
        given = self.read_file(order["run"])
        program = self.program
        if program is None:
            raise Ended
        try:
            if program.runner == STAYING:
                return self.pass_or_fork(program, order, given)
            if program.runner != LASTING:
                run = Run(self.keeper, program, order)
                run.fork(given)
                run.clean = self.sweep(run)
                return run
            if self.lasting is None:
                nothing = os.open(os.devnull, os.O_RDONLY)
                self.lasting = _Lasting(Run(self.keeper, program, order), nothing)
                os.close(nothing)
            run = Run(self.keeper, program, order, self.lasting.run.errors)
            run.pass_on(self.lasting, given)
            if run.status:
                run.clean = self.end_lasting()
            return run
        finally:
            os.close(given)

    def pass_or_fork(self, program: _LoadedProgram, order: dict[str, Any], given: int) -> Run:
        """Run an input in the reused process; if there is none or the run fails, in a new process.

        So a failure counts only in a process that has read no other input.
        """
        if self.lasting and self.lasting.latest_s < QUICK_S:
            most = {name: min(order[name], TRIAL_S) for name in ("cpu_s", "wall_s")}
            run = Run(self.keeper, program, order | most, self.lasting.run.errors)
            run.pass_on(self.lasting, given)
            if run.has_result():
                return run
            run.close()
            self.stays = False
        clean = self.end_lasting()
        run = Run(self.keeper, program, order)
        if self.stays:
            self.lasting = run.fork_lasting(given)
            self.stays = self.lasting is not None
        else:
            run.fork(given)
        run.clean = clean and (self.stays or self.sweep(run))
        return run

    def end_lasting(self) -> bool:
        """Kill the process that takes several inputs, if any; return whether the box is clean."""
        if self.lasting is None:
            return True
        lasting, self.lasting = self.lasting, None
        return self.sweep(lasting.stop())

    def sweep(self, run: Run) -> bool:
        """Kill the processes and remove the files of a run; return False if anything remains."""
        mode = self.keeper.mode
        if isolation.newest() == b"%d" % run.pid and mode.tidy():
            return True  # nothing forked; a process list could miss one that forks constantly
        for _ in range(2):
            mode.sweep(self.keeper.zygote, run.user, {self.keeper.pid})
            if not self.keeper.processes() and mode.tidy():
                return True
        return False

    # --- frames -------------------------------------------------------------------------------

    def read_line(self) -> dict[str, Any]:
        """Read one line of JSON from the host."""
        while (end := self.ahead.find(b"\n")) < 0:
            self.ahead += self.read(PIECE)
        line = bytes(self.ahead[:end])
        del self.ahead[: end + 1]
        return json.loads(line)

    def read(self, most: int) -> bytes:
        """Read at most `most` bytes from the host; raise Ended if the host closed the stream."""
        data = os.read(self.source, most)
        if not data:
            raise Ended
        return data

    def read_file(self, size: int) -> int:
        """Move `size` bytes from the host into a new file in memory; return its descriptor."""
        file = os.memfd_create("input")
        write_all(file, self.ahead[:size])
        left = size - len(self.ahead[:size])
        del self.ahead[:size]
        while left:
            data = self.read(min(left, CHUNK))
            left -= len(data)
            write_all(file, data)
        os.lseek(file, 0, os.SEEK_SET)
        return file

    def write(self, header: dict[str, Any]) -> None:
        """Send the host one line of JSON."""
        write_all(self.sink, json.dumps(header).encode() + b"\n")

    def write_outcome(self, run: Run) -> None:
        """Send the host how a run ended and what its program wrote, cut at the output limit."""
        parts = [run.read(name) for name in ("stdout", "stderr", "result")]
        header = json.dumps(run.header([len(part) for part in parts])).encode() + b"\n"
        if sum(map(len, parts)) < PIECE:
            parts = [b"".join((header, *parts))]  # one message passes the engine faster than four
        else:
            parts.insert(0, header)
        for part in parts:
            write_all(self.sink, part)
        run.close()


def write_all(file: int, data: bytes | bytearray) -> None:
    """Write all of `data` to a descriptor, in as many system calls as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def facts(mode: Mode) -> dict[str, Any]:
    """Return the Python version, third-party packages, and whether memory is limited in total."""
    import sysconfig  # both are slow to load, and a cell that serves one program needs neither
    from importlib import metadata

    places = [path for path in sys.path if path.rstrip("/") != sysconfig.get_path("stdlib")]
    found = {f"{one.name}=={one.version}" for one in metadata.distributions(path=places)}
    return {
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "packages": sorted(found),
        "memory": "together" if mode.counted else "each",
    }


def main(mode: str, source: int, sink: int, refused: bytes, promised: list[str]) -> None:
    """Run a judge until the host closes the stream; `mode` is a key of isolation.MODES.

    Programs that import a `promised` package that this box lacks are ended and not graded.
    """
    if os.path.isdir(SITE):  # noqa: PTH112  (pathlib costs 10 ms of every start)
        sys.path.append(SITE)
    LACKING.extend(name for name in promised if find_spec(name) is None)
    judge = Judge(MODES[mode](), source, sink, refused)
    for step in (judge.serve, judge.end_lasting):  # then remove what the last program left
        with suppress(Ended, OSError):
            step()
