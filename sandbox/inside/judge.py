"""The supervisor of a box: takes a program and inputs, has them run within limits, reports.

It speaks frames on its standard input and output: a line of JSON, then the bytes the line counts.

    host -> {"program": n, "runner": ..., "entry": ...} + source
    host -> {"run": n, "cpu_s": ..., "wall_s": ..., "memory_bytes": ..., ...} + input
    host <- {"status": ..., "exit_code": ..., "stdout": n, "stderr": n, "result": n, ...} + bytes

A zygote, forked before the first order arrives, forks a process per run, so no process of a program
descends from one that held another's input. A method of a program that can keep nothing (purity.py)
takes further inputs in the process of its first one, while it is quick and does well; on whatever
else an input meets there it runs anew in a process of its own. Ways of isolating are a `Mode`
(isolation.py).
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
"""How often a running program's processes are counted; a limit may be passed by so much."""
PATIENCE_S = 8.0
"""How long to wait for what takes milliseconds, unless a program prevents it. Shorter than the
host's patience: such a program has ended its box, and the engine is not to blame."""


class Ended(Exception):
    """The host closed the stream, or the zygote is gone: there is nothing left to do."""


class _LoadedProgram(NamedTuple):
    """The program that the box was given; `source` is a descriptor of a file in memory."""

    source: int
    runner: str
    entry: str | None


class _Keeper(NamedTuple):
    """What every run of a box shares; `pid` is the zygote's, which no limit or sweep concerns."""

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
    """A process's standard error, read as it comes: no amount of it stops a program."""

    def __init__(self) -> None:
        self.reader, self.writer = _open_pipe()  # the writer stays open here: no end is ever read
        self.end = b""
        """The latest bytes, up to `KEPT`."""

    def drain(self) -> None:
        """Take what is there, but no more than a pipe holds: a child may write for ever."""
        if self.reader < 0:
            return
        with suppress(BlockingIOError):
            for _ in range(LARGEST_PIPE // PIECE):
                self.end = (self.end + os.read(self.reader, PIECE))[-KEPT:]

    def close(self) -> None:
        """Take what is there and close both ends; again changes nothing."""
        self.drain()
        for end in (self.reader, self.writer):
            if end >= 0:
                os.close(end)
        self.reader = self.writer = -1


def _open_pipe() -> tuple[int, int]:
    """Return the ends of a pipe whose writer another user may open again, as /dev/stderr."""
    path = f"/tmp/.stderr-{os.urandom(8).hex()}"  # nameless pipes keep their mode under gVisor
    os.mkfifo(path)
    try:
        os.chmod(path, 0o666)  # noqa: PTH101  (pathlib costs 10 ms of every start)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return reader, os.open(path, os.O_WRONLY)
    finally:
        os.unlink(path)  # noqa: PTH108  (same)


class Run:
    """One run of the program: its files, its process and how it ended."""

    def __init__(
        self,
        keeper: _Keeper,
        program: _LoadedProgram,
        limits: dict[str, Any],
        errors: _ErrorStream | None = None,
    ) -> None:
        """Open the files that will hold what the program writes.

        `errors` is the stderr of the process that takes the input, if it has taken one before.
        """
        self.keeper, self.program, self.limits = keeper, program, limits
        self.files = {name: os.memfd_create(name) for name in ("stdout", "result")}
        self.errors = errors or _ErrorStream()
        self.errors.end = b""
        self.keeps_errors = errors is not None
        """Whether a process goes on writing to stderr when this run has ended."""
        self.user = keeper.mode.next_user()
        self.status, self.clean = "", True
        self.exit_code = self.pid = 0
        self.cpu_s = self.orphans_s = self.group_s = self.wall_s = 0.0
        self.started = time.monotonic()
        self.kills = self.memory_kills()

    def start(self, given: int, *more: int) -> int:
        """Have the zygote fork the program's process; return its id."""
        order = {"runner": self.program.runner, "entry": self.program.entry, **self.limits}
        order |= {"user": self.user, "folder": self.keeper.mode.folder()}
        written = [self.files["stdout"], self.errors.writer, self.files["result"]]
        files = [self.program.source, given, *written, *more]
        socket.send_fds(self.keeper.zygote, [json.dumps(order).encode()], files)
        self.pid = int(self.keeper.zygote_says())
        self.started = time.monotonic()  # a zygote that is new has been loading until now
        self.group_s = _others_cpu_s()
        return self.pid

    def fork(self, given: int) -> None:
        """Run a fresh process on one input until it ends or passes a limit."""
        self.await_end(self.start(given))

    def await_end(self, pid: int) -> None:
        """Wait until the process ends or passes a limit."""
        if not self.status:
            self.watch(pid, [self.keeper.zygote])
        self.finish(json.loads(self.keeper.zygote_says()))

    def fork_lasting(self, given: int) -> "_Lasting | None":
        """Run a fresh process as `fork` does; return it where it answered and waits for more."""
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
        """Return whether the runner has reported anything, and no limit is passed."""
        return not self.status and os.fstat(self.files["result"]).st_size > 0

    def pass_on(self, lasting: "_Lasting", given: int) -> None:
        """Give a lasting process one more input and wait for its answer, or for its end."""
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
        """Wait until one of the sources speaks; kill the process when it passes a limit."""
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
        """Return which sources speak within a tick; what comes on stderr meanwhile is read."""
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
        """Return the limit that these processes have passed together; empty when none."""
        if self.cpu_s >= self.limits["cpu_s"]:
            return "time"
        if sum(one.threads for one in found) > self.limits["processes"]:
            return "processes"
        memory = 0 if self.keeper.mode.counted else sum(one.memory_bytes for one in found)
        if memory > self.limits["memory_bytes"]:
            return "memory"
        return "time" if self.wall_s >= self.limits["wall_s"] else ""

    def stop(self, pid: int, sources: list[socket.socket]) -> list[Any]:
        """Kill the process, and all others when it does not end for that: one may be tracing it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.keeper.mode.kill(pid)
            if ready := self.await_source(sources):
                return ready
            for one in self.keeper.processes():
                self.keeper.mode.kill(one.pid)
        raise Ended

    def count(self, found_s: float) -> None:
        """Take over CPU time: of processes found, of orphans that ended, or of the whole cgroup."""
        self.orphans_s += isolation.reap({self.keeper.pid})
        self.cpu_s = max(self.cpu_s, found_s + self.orphans_s, _others_cpu_s() - self.group_s)

    def finish(self, ended: dict[str, Any]) -> None:
        """Take over how the process ended."""
        self.exit_code = ended["exit_code"]
        self.count(ended["cpu_s"])
        if self.memory_kills() > self.kills:
            self.status = "memory"
        if not self.status and self.cpu_s >= self.limits["cpu_s"]:
            self.status = "time"

    def memory_kills(self) -> int:
        """Return how many processes the box's cgroup has lost for want of memory."""
        return isolation.memory_kills() if self.keeper.mode.own_cgroup else 0

    def read(self, name: str) -> bytes:
        """Return what a file of the run holds, up to the output limit; of stderr, the end."""
        if name == "stderr":
            self.errors.drain()
            return self.errors.end
        return os.pread(self.files[name], self.limits["output_bytes"], 0)

    def header(self, sizes: list[int]) -> dict[str, Any]:
        """Return the line that reports the run."""
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
        """Close the files, and stderr unless a process that stays still writes to it."""
        while self.files:
            os.close(self.files.popitem()[1])
        if not self.keeps_errors:
            self.errors.close()


class _Lasting:
    """A process that answers one input after another and keeps its state."""

    def __init__(self, run: Run, given: int) -> None:
        self.keeper, self.run = run.keeper, run
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = run.start(given, other.fileno())
        other.close()
        self.channel.setblocking(False)
        self.stopped = False
        self.latest_s = 0.0
        """CPU time that the latest input took."""

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
    """Return the CPU time of all the box but this process; 0 where the box is not a container."""
    return isolation.group_cpu_s() - time.process_time() if os.getpid() == 1 else 0.0


PIECE, CHUNK = 1 << 16, 1 << 20
KEPT = 1 << 16
"""Bytes of standard error that are kept, from its end."""
LARGEST_PIPE = 1 << 20
"""What a program may enlarge a pipe to, unless the kernel is set otherwise."""
SITE = "/opt/podium/site"  # where the image keeps the third-party packages that programs may import
LASTING = "official"  # the one runner that keeps its process from one input to the next
STAYING = "call"  # the one whose process stays for more where the program can keep nothing
QUICK_S = 0.5
"""CPU time of an input after which a fork counts for nothing: the next one gets a process anew."""
TRIAL_S = 1.0
"""What an input may take in a process that has stayed, before it begins anew in one of its own."""


class Judge:
    """One supervisor, its zygote and the program it was given."""

    def __init__(self, mode: Mode, source: int, sink: int, refused: bytes = b"") -> None:
        """Take frames from `source` and write answers to `sink`; starts the zygote.

        `refused` is a filter of system calls (sandbox/seccomp.py) for the zygote and its forks.
        """
        self.source, self.sink = source, sink
        self.ahead = bytearray()
        self.keeper = _Keeper(mode, *zygote.start(refused))
        self.keeper.zygote.settimeout(PATIENCE_S)
        mode.begin()
        self.program: _LoadedProgram | None = None
        self.lasting: _Lasting | None = None
        self.stays = False
        """Whether a process of this program may still take one input after another."""

    def serve(self) -> None:
        """Answer orders until the host closes the stream."""
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
        """Keep a program; whatever the last one left is swept away."""
        if not self.end_lasting():
            raise Ended  # the host sees a cell that died, and throws it away
        if self.program:
            os.close(self.program.source)
        source = self.read_file(order["program"])
        os.fchmod(source, 0)  # gVisor lets anybody open our files, and later runs read this one
        self.program = _LoadedProgram(source, order["runner"], order["entry"])
        self.stays = self.program.runner == STAYING

    def run(self, order: dict[str, Any]) -> Run:
        """Run the program on one input, within limits; what it leaves is killed and removed."""
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
        """Have a process that stayed take the input; where there is none, or it fails, a new one.

        So an input that meets any trouble has met it in a process that saw no other.
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
        """Kill the process that keeps its state between inputs; return whether all is clean."""
        if self.lasting is None:
            return True
        lasting, self.lasting = self.lasting, None
        return self.sweep(lasting.stop())

    def sweep(self, run: Run) -> bool:
        """Kill and remove what a run left; False when something resists: the box is then sick."""
        mode = self.keeper.mode
        if isolation.newest() == b"%d" % run.pid and mode.tidy():
            return True  # it never forked; a list of processes could miss one that always forks
        for _ in range(2):
            mode.sweep(self.keeper.zygote, run.user, {self.keeper.pid})
            if not self.keeper.processes() and mode.tidy():
                return True
        return False

    # --- frames -------------------------------------------------------------------------------

    def read_line(self) -> dict[str, Any]:
        """Read one line of JSON."""
        while (end := self.ahead.find(b"\n")) < 0:
            self.ahead += self.read(PIECE)
        line = bytes(self.ahead[:end])
        del self.ahead[: end + 1]
        return json.loads(line)

    def read(self, most: int) -> bytes:
        """Read some bytes of the stream."""
        data = os.read(self.source, most)
        if not data:
            raise Ended
        return data

    def read_file(self, size: int) -> int:
        """Move `size` bytes of the stream into a new file in memory; return its descriptor."""
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
        """Write one line of JSON."""
        write_all(self.sink, json.dumps(header).encode() + b"\n")

    def write_outcome(self, run: Run) -> None:
        """Write how a run ended and what it wrote, cut at the output limit."""
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
    """Write all of the data, however little each call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def facts(mode: Mode) -> dict[str, Any]:
    """Return what programs run on: the Python, and the packages beside its standard library."""
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
    """Serve until the host closes the stream; `mode` is a key of modes.MODES.

    Of the `promised` packages, those that are not here end the programs that import them.
    """
    if os.path.isdir(SITE):  # noqa: PTH112  (pathlib costs 10 ms of every start)
        sys.path.append(SITE)
    LACKING.extend(name for name in promised if find_spec(name) is None)
    judge = Judge(MODES[mode](), source, sink, refused)
    for step in (judge.serve, judge.end_lasting):  # at the end, what the last program left
        with suppress(Ended, OSError):
            step()
