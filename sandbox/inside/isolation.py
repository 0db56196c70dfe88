"""How a box keeps a program from its supervisor, sees its processes, and removes what it leaves.

- `users`: the supervisor is the container's root with the capabilities SETUID, SETGID and KILL
  only; every run gets a user of its own, who owns nothing and may signal nobody. One `kill(-1)` as
  that user ends all its processes in a single stroke that no fork can outrun.
- `namespace`: one user, but namespaces of its own for every program (bubblewrap). The supervisor
  is process 1, which signals from inside do not reach, and no process may trace it.
- `plain`: a child process and nothing else. It cleans up as far as it can see.
"""

import ctypes
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

OOM_COUNTERS = (
    "/sys/fs/cgroup/memory.events",  # cgroup v2
    "/sys/fs/cgroup/memory/memory.oom_control",  # cgroup v1
)
"""Files with a line `oom_kill N`: how many processes the kernel killed for want of memory."""

CPU_COUNTERS = (
    ("/sys/fs/cgroup/cpu.stat", b"usage_usec ", 1e-6),  # cgroup v2
    ("/sys/fs/cgroup/cpuacct/cpuacct.usage", b"", 1e-9),  # cgroup v1, and gVisor
)
"""Files that tell a cgroup's CPU time: the start of their line, and its unit in seconds."""


OPENED: dict[str, int] = {}
"""Descriptors of small files of the kernel's that every run reads: opening them costs more."""


class Process(NamedTuple):
    """One line of the process table."""

    pid: int
    parent: int
    cpu_s: float  # its own CPU time and that of the children it waited for
    threads: int
    memory_bytes: int  # resident; pages shared with others are counted in each


def process_table() -> list[Process]:
    """Return the processes that are alive; zombies use nothing and are left out.

    A process whose first thread has ended looks like a zombie while its other threads run on.
    """
    found: list[Process] = []
    for entry in os.listdir("/proc"):  # noqa: PTH208  (ten times faster than Path.iterdir here)
        if not entry.isdigit():
            continue
        with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123  (same)
            # pid (name) state ppid ... utime stime cutime cstime priority nice threads ... rss
            fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in b"ZX" or int(fields[17]) > 1:
                ticks = sum(int(field) for field in fields[11:15])
                memory = int(fields[21]) * PAGE
                found.append(
                    Process(int(entry), int(fields[1]), ticks / TICKS, int(fields[17]), memory)
                )
    return found


def children_of(root: int, without: set[int]) -> list[Process]:
    """Return the living descendants of a process, less those named; orphans are adopted by it."""
    everybody = process_table()
    if root == 1:  # no chain of parents has to be whole
        return [one for one in everybody if one.pid not in without and one.pid != root]
    family, grown = {root}, True
    while grown:
        more = {one.pid for one in everybody if one.parent in family} - family
        grown = bool(more)
        family |= more
    return [one for one in everybody if one.pid in family - without - {root}]


def reap(without: set[int]) -> float:
    """Collect adopted orphans that have ended; return the CPU time they used."""
    used_s = 0.0
    with suppress(ChildProcessError):
        while True:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0 or pid in without:
                break
            used_s += usage.ru_utime + usage.ru_stime
    return used_s


def newest() -> bytes:
    """Return the last id given to a process or thread here: while it stays, nobody has forked."""
    return reread("/proc/loadavg").split()[4]


def reread(path: str) -> bytes:
    """Return what a file of the kernel's says now; OSError where there is none."""
    if path not in OPENED:
        try:
            OPENED[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            OPENED[path] = -1
    return os.pread(OPENED[path], 1 << 13, 0)


def group_cpu_s() -> float:
    """Return the CPU time of the cgroup, children whom nobody waits for included; else 0."""
    for path, start, unit_s in CPU_COUNTERS:
        with suppress(OSError):
            for line in reread(path).splitlines():
                if line.startswith(start):
                    return int(line.removeprefix(start)) * unit_s
    return 0.0


def clock_s(pid: int) -> float:
    """Return the CPU time of a process, all its threads together; 0 where no clock tells."""
    with suppress(OSError):
        return time.clock_gettime(~pid << 3 | 2)  # the kernel's CPUCLOCK_SCHED
    return 0.0


def memory_kills() -> int:
    """Return the cgroup's count of processes killed for memory; -1 where no cgroup tells."""
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in reread(path).splitlines():
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    return -1


FIRST_USER, LAST_USER = 20_000, 59_999
"""User ids for programs: above those of real accounts, below what a remapped engine can map."""
PLACES = ("/tmp", "/dev/shm", "/dev/mqueue")  # every place in a box where a program can write
KINDS = {"shm": ("shmctl", (0, None)), "sem": ("semctl", (0, 0)), "msg": ("msgctl", (0, None))}
"""By file in /proc/sysvipc: the call that removes an object, and its arguments (IPC_RMID is 0)."""
COUNTS = {"shm": ((0, 14), 0), "sem": ((0, 0, 19), 7), "msg": ((0, 12), 0)}
"""Arguments for the same calls to fill in numbers (SHM_INFO ...), and the place of the count."""
SOCKETS = "/proc/net/unix"
"""Shows sockets that outlive their processes: those that were sent, and never received."""
TRAFFIC = "/proc/net/dev"
"""Counts what went over the loopback interface: connections leave traces that nobody can remove."""
SWEEPER = FIRST_USER - 1
"""Real user of the process that ends a run: programs could stop one that is wholly theirs."""
SWEEP_S = 1.0
"""What a sweep may take; a box with more to remove is thrown away: the kernel does it at once."""
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
libc = ctypes.CDLL(None, use_errno=True)


class Plain:
    """A child process with limits; see `SubprocessBox` for what that does not cover."""

    places: Sequence[str] = ()
    counted = False
    """Whether a cgroup limits memory; else the supervisor adds up what processes hold."""
    own_cgroup = False
    """Whether the cgroup that can be read is the box's alone, not a whole machine's."""

    def begin(self) -> None:
        """Become the parent of orphans, refuse to be traced, remember how things look when tidy."""
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        libc.prctl(PR_SET_DUMPABLE, 0)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        self.folders: list[str] = []
        self.baseline = snapshot(self.places)

    def next_user(self) -> int:
        """Return the user of the next run; 0 for no change."""
        return 0

    def folder(self) -> str:
        """Return the directory in which the next run starts: new, and empty."""
        folder = f"/tmp/podium-box-{os.urandom(8).hex()}"
        os.mkdir(folder, 0o700)  # noqa: PTH102  (pathlib costs 10 ms of every start)
        self.folders.append(folder)
        return folder

    def kill(self, pid: int) -> None:
        """Kill one process."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def tidy(self) -> bool:
        """Return whether nothing is left of any run but, perhaps, processes."""
        return not self.folders and snapshot(self.places) == self.baseline

    def sweep(self, zygote: socket.socket, user: int, own: set[int]) -> None:
        """Kill every process of a run, then remove what it wrote."""
        deadline = time.monotonic() + SWEEP_S
        while time.monotonic() < deadline:
            before = newest()
            found = children_of(os.getpid(), own)
            for one in found:
                self.kill(one.pid)
            reap(own)
            if not found and (os.getpid() != 1 or newest() == before):
                break
            time.sleep(0.002)
        deadline = time.monotonic() + SWEEP_S
        while self.folders:
            remove(self.folders.pop(), deadline)
        remove_new(self.places, self.baseline, deadline)


class Namespace(Plain):
    """Namespaces of its own for every program: all it can write to is the box's alone."""

    places = PLACES

    def folder(self) -> str:
        """Return the directory in which every run starts."""
        return self.places[0]


class Users(Namespace):
    """A user of its own for every run."""

    own_cgroup = True

    def begin(self) -> None:
        """Also drop what switching users does not need, and find out whether memory is counted."""
        super().begin()
        self.user = random.randint(FIRST_USER, LAST_USER)  # boxes share limits that count per user
        self.counted = memory_kills() >= 0  # gVisor shows none

    def next_user(self) -> int:
        """Return a user whom no earlier run of this box had, until they have all been used."""
        self.user = self.user + 1 if self.user < LAST_USER else FIRST_USER
        return self.user

    def sweep(self, zygote: socket.socket, user: int, own: set[int]) -> None:
        """Have a process of the run's own user end its processes and remove what it wrote."""
        for one in children_of(os.getpid(), own):  # a fork bomb leaves no room for that process
            self.kill(one.pid)
        reap(own)
        zygote.send(b'{"sweep": %d}' % user)
        zygote.recv(16)
        deadline = time.monotonic() + SWEEP_S
        while time.monotonic() < deadline:  # what was killed takes a moment to end
            reap(own)
            if not children_of(os.getpid(), own):
                break
            time.sleep(0.002)


MODES: dict[str, Callable[[], Plain]] = {"plain": Plain, "namespace": Namespace, "users": Users}
Mode = Plain


def snapshot(places: Sequence[str]) -> frozenset[str]:
    """Return the state between two runs: files, System V objects, names of sockets, traffic."""
    found: set[str] = set()
    for place in places:
        with suppress(OSError):
            found.update(f"{place}/{name}" for name in os.listdir(place))  # noqa: PTH208
    if places:
        found.update(f"{kind} {id}" for kind in KINDS for id in objects(kind))
        with suppress(OSError), open(SOCKETS, "rb") as file:  # noqa: PTH123
            found.update(f"socket {line}" for line in file.read().splitlines() if b" @" in line)
        with suppress(OSError), open(TRAFFIC, "rb") as file:  # noqa: PTH123
            found.add(f"traffic {file.read()}")
    return frozenset(found)


def objects(kind: str) -> list[int]:
    """Return the ids of System V objects; the table names the key first, then the id.

    gVisor has no table: -1 stands for all there are, which then cannot be removed.
    """
    with suppress(OSError), open(f"/proc/sysvipc/{kind}", "rb") as file:  # noqa: PTH123
        return [int(line.split()[1]) for line in file.read().splitlines()[1:]]
    arguments, place = COUNTS[kind]
    numbers = (ctypes.c_int * 64)()
    getattr(libc, KINDS[kind][0])(*arguments, numbers)
    return [-1] if numbers[place] else []


def remove_new(places: Sequence[str], baseline: frozenset[str], deadline: float) -> None:
    """Remove what was not there at first; what belongs to somebody else stays."""
    for name in snapshot(places) - baseline:
        kind, _, id = name.partition(" ")
        if kind in KINDS:
            call, arguments = KINDS[kind]
            getattr(libc, call)(int(id), *arguments)
        elif name.startswith("/"):
            remove(name, deadline)


def remove(path: str, deadline: float) -> None:
    """Remove a file or a tree, whatever modes the program gave it; stops at the deadline."""
    left, opened = [path], set[str]()
    while left and time.monotonic() < deadline:
        last = left[-1]
        if unlinked(last) or last in opened:
            left.pop()
            continue
        opened.add(last)
        with suppress(OSError):
            os.chmod(last, 0o700)  # noqa: PTH101  (a directory: a link would be gone)
            left += [f"{last}/{name}" for name in os.listdir(last)]  # noqa: PTH208


def unlinked(path: str) -> bool:
    """Remove a file, a link or an empty directory; return whether that worked."""
    for call in (os.unlink, os.rmdir):
        with suppress(OSError):
            call(path)
            return True
    return False


def sweep_as(user: int, baseline: frozenset[str]) -> None:
    """Become `user`, end its every process and remove what it wrote; never returns.

    It may signal whom its effective user may; who may signal it, its real and saved users decide.
    """
    os.setgroups([])
    os.setresgid(SWEEPER, user, SWEEPER)
    os.setresuid(SWEEPER, user, SWEEPER)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    remove_new(PLACES, baseline, time.monotonic() + SWEEP_S)
    os._exit(0)
