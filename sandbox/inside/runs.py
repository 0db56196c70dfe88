"""One run of a program: its files, its process, its limits, and how it ended."""

import json
import os
import select
import socket
import time
from typing import Any, NamedTuple

from sandbox.inside.modes import Mode
from sandbox.inside.processes import Process, children_of, group_cpu_s, memory_kills, reap

TICK_S = 0.05
"""How often a running program's processes are counted; a limit may be passed by so much."""

PATIENCE_S = 8.0
"""How long the supervisor waits for what takes milliseconds, unless a program prevents it. Shorter
than the host's patience: such a program has ended its box, and the engine is not to blame."""


class Ended(Exception):
    """The host closed the stream, or the zygote is gone: there is nothing left to do."""


class Program(NamedTuple):
    """The program that the box was given."""

    source: int
    """Descriptor of a file in memory."""
    runner: str
    entry: str | None


class Keeper(NamedTuple):
    """What every run of a box shares."""

    mode: Mode
    zygote: socket.socket
    pid: int
    """The zygote's process id: the one child of ours that no limit and no sweep concerns."""

    def processes(self) -> list[Process]:
        """Return the program's processes, orphans included."""
        return children_of(os.getpid(), {self.pid})

    def zygote_says(self) -> bytes:
        """Return the zygote's next message; without a zygote there is no box."""
        try:
            said = self.zygote.recv(1 << 16)
        except TimeoutError:
            raise Ended from None
        if not said:
            raise Ended
        return said


class Run:
    """One run of the program: its files, its process and how it ended."""

    def __init__(self, keeper: Keeper, program: Program, limits: dict[str, Any]) -> None:
        """Open the files that will hold what the program writes."""
        self.keeper, self.program, self.limits = keeper, program, limits
        self.files = {name: os.memfd_create(name) for name in ("stdout", "stderr", "result")}
        self.user = keeper.mode.next_user()
        self.status = ""
        self.exit_code = 0
        self.pid = 0
        self.cpu_s = 0.0
        self.orphans_s = 0.0
        self.group_s = 0.0
        self.started = time.monotonic()
        self.wall_s = 0.0
        self.clean = True
        self.kills = self.memory_kills()

    def start(self, given: int, *more: int) -> int:
        """Have the zygote fork the program's process; return its id."""
        order = {"runner": self.program.runner, "entry": self.program.entry, **self.limits}
        order |= {"user": self.user, "folder": self.keeper.mode.folder()}
        files = [self.program.source, given, *self.files.values(), *more]
        socket.send_fds(self.keeper.zygote, [json.dumps(order).encode()], files)
        self.pid = int(self.keeper.zygote_says())
        self.started = time.monotonic()  # a zygote that is new has been loading until now
        return self.pid

    def fork(self, given: int) -> None:
        """Run a fresh process on one input until it ends or passes a limit."""
        pid = self.start(given)
        self.watch(pid, [self.keeper.zygote])
        self.finish(json.loads(self.keeper.zygote_says()))

    def pass_on(self, lasting: "Lasting", given: int) -> None:
        """Give a lasting process one more input and wait for its answer, or for its end."""
        before = lasting.cpu_s()
        sources = [lasting.channel, self.keeper.zygote]
        taken = lasting.send([given, self.files["result"]])
        ready = self.watch(lasting.pid, sources, before) if taken else []
        if lasting.channel in ready and lasting.heard():
            self.cpu_s = max(self.cpu_s, lasting.cpu_s() - before)
            self.wall_s = time.monotonic() - self.started
            return
        self.status = self.status or ("memory" if self.memory_kills() > self.kills else "exited")
        self.exit_code = lasting.stop().exit_code
        self.wall_s = time.monotonic() - self.started

    def watch(self, pid: int, sources: list[socket.socket], before_s: float = 0.0) -> list[Any]:
        """Wait until one of the sources speaks; kill the process when it passes a limit."""
        self.group_s = others_cpu_s()
        while True:
            ready, _, _ = select.select(sources, [], [], TICK_S)
            self.wall_s = time.monotonic() - self.started
            if ready:
                return ready
            found = self.keeper.processes()
            self.count(sum(one.cpu_s for one in found) - before_s)
            self.status = over(self.cpu_s, found, self.limits, self.keeper.mode.memory_is_counted)
            if self.wall_s >= self.limits["wall_s"]:
                self.status = self.status or "time"
            if self.status:
                return self.stop(pid, sources)

    def stop(self, pid: int, sources: list[socket.socket]) -> list[Any]:
        """Kill the process, and all others when it does not end for that: one may be tracing it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.keeper.mode.kill(pid)
            if ready := select.select(sources, [], [], TICK_S)[0]:
                return ready
            for one in self.keeper.processes():
                self.keeper.mode.kill(one.pid)
        raise Ended

    def count(self, found_s: float) -> None:
        """Take over CPU time: of processes found, of orphans that ended, or of the whole cgroup."""
        self.orphans_s += reap({self.keeper.pid})
        self.cpu_s = max(self.cpu_s, found_s + self.orphans_s, others_cpu_s() - self.group_s)

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
        return memory_kills() if self.keeper.mode.own_cgroup else 0

    def read(self, name: str) -> bytes:
        """Return what a file of the run holds, up to the output limit."""
        return os.pread(self.files[name], self.limits["output_bytes"], 0)

    def header(self, sizes: list[int]) -> dict[str, Any]:
        """Return the line that reports the run."""
        status = self.status
        if not status and max(sizes) >= self.limits["output_bytes"]:
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
        }

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            os.close(file)


class Lasting:
    """A process that answers one input after another and keeps its state."""

    def __init__(self, keeper: Keeper, program: Program, limits: dict[str, Any]) -> None:
        """Have the process forked, with a channel on which inputs will come."""
        self.keeper = keeper
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.run = Run(keeper, program, limits)
        nothing = os.open(os.devnull, os.O_RDONLY)
        self.pid = self.run.start(nothing, other.fileno())
        os.close(nothing)
        other.close()
        self.channel.setblocking(False)
        self.stopped = False

    def send(self, files: list[int]) -> bool:
        """Pass on the files of a run; False when the process has ended or takes no more."""
        try:
            socket.send_fds(self.channel, [b"run"], files)
        except OSError:
            return False
        return True

    def heard(self) -> bool:
        """Return whether the process said something, and not that it has closed the channel."""
        try:
            return bool(self.channel.recv(16))
        except OSError:
            return False

    def cpu_s(self) -> float:
        """CPU time so far."""
        return sum(one.cpu_s for one in self.keeper.processes())

    def stop(self) -> Run:
        """Kill the process, once, and return its run."""
        if not self.stopped:
            self.stopped = True
            self.keeper.mode.kill(self.pid)
            self.run.finish(json.loads(self.keeper.zygote_says()))
            self.channel.close()
            self.run.close()
        return self.run


def others_cpu_s() -> float:
    """Return the CPU time of all the box but this process; 0 where the box is not a container."""
    return group_cpu_s() - time.process_time() if os.getpid() == 1 else 0.0


def over(cpu_s: float, found: list[Process], limits: dict[str, Any], counted: bool) -> str:
    """Return the limit that these processes have passed together; empty when none."""
    if cpu_s >= limits["cpu_s"]:
        return "time"
    if sum(one.threads for one in found) > limits["processes"]:
        return "processes"
    if not counted and sum(one.memory_bytes for one in found) > limits["memory_bytes"]:
        return "memory"
    return ""
