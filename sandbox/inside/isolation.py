"""Isolate a program from its supervisor, list its processes, remove what it leaves: three modes.

- `users`: the supervisor is the container's root with the capabilities SETUID, SETGID and KILL
  only; every run gets its own user id, which owns nothing and may signal no other user. One
  `kill(-1)` as that user ends all its processes at once, so that none can fork in between.
- `namespace`: one user id, but separate namespaces for every program (bubblewrap). The supervisor
  is process 1, which signals from inside do not reach, and no process may trace it.
- `plain`: only a child process, without isolation; cleanup removes only what it can see.
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
"""Files with a line `oom_kill N`: how many processes the kernel killed because memory ran out."""

CPU_COUNTERS = (
    ("/sys/fs/cgroup/cpu.stat", b"usage_usec ", 1e-6),  # cgroup v2
    ("/sys/fs/cgroup/cpuacct/cpuacct.usage", b"", 1e-9),  # cgroup v1, and gVisor
)
"""Files with a cgroup's CPU time: path, start of its line, and its unit in seconds."""


OPENED: dict[str, int] = {}
"""Path -> open descriptor of a small kernel file that every run reads: opening it is slow."""


class Process(NamedTuple):
    """One process in the kernel's process table."""

    pid: int
    parent: int
    cpu_s: float  # its own CPU time and that of the children it waited for
    threads: int
    memory_bytes: int  # resident; pages shared with others are counted in each


def process_table() -> list[Process]:
    """Return the living processes, without zombies.

    A process in state zombie whose other threads still run is included.
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
    """Return living descendants of process `root`, which adopts orphans, except pids `without`."""
    everybody = process_table()
    if root == 1:  # all other processes of the box are its descendants
        return [one for one in everybody if one.pid not in without and one.pid != root]
    family, grown = {root}, True
    while grown:
        more = {one.pid for one in everybody if one.parent in family} - family
        grown = bool(more)
        family |= more
    return [one for one in everybody if one.pid in family - without - {root}]


def reap(without: set[int]) -> float:
    """Collect adopted orphans that have ended (not pids `without`); return their CPU seconds."""
    used_s = 0.0
    with suppress(ChildProcessError):
        while True:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0 or pid in without:
                break
            used_s += usage.ru_utime + usage.ru_stime
    return used_s


def newest() -> bytes:
    """Return the id of the newest process or thread; if unchanged, no process has forked."""
    return reread("/proc/loadavg").split()[4]


def reread(path: str) -> bytes:
    """Return the current content of a small kernel file; OSError if it does not exist."""
    if path not in OPENED:
        try:
            OPENED[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            OPENED[path] = -1
    return os.pread(OPENED[path], 1 << 13, 0)


def group_cpu_s() -> float:
    """Return the CPU seconds of all processes of the cgroup; 0 if no kernel file states them."""
    for path, start, unit_s in CPU_COUNTERS:
        with suppress(OSError):
            for line in reread(path).splitlines():
                if line.startswith(start):
                    return int(line.removeprefix(start)) * unit_s
    return 0.0


def clock_s(pid: int) -> float:
    """Return the CPU seconds of all threads of a process; 0 if its clock cannot be read."""
    with suppress(OSError):
        return time.clock_gettime(~pid << 3 | 2)  # the kernel's CPUCLOCK_SCHED
    return 0.0


def memory_kills() -> int:
    """Return how many processes of the cgroup the kernel killed to free memory; -1 if unknown."""
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in reread(path).splitlines():
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    return -1


FIRST_USER, LAST_USER = 20_000, 59_999
"""Range of user ids for programs: above real accounts, below the limit of id-remapping engines."""
PLACES = ("/tmp", "/dev/shm", "/dev/mqueue")  # every place in a box where a program can write
KINDS = {"shm": ("shmctl", (0, None)), "sem": ("semctl", (0, 0)), "msg": ("msgctl", (0, None))}
"""Kind of System V object -> libc call that removes an object, and its arguments after the id."""
COUNTS = {"shm": ((0, 14), 0), "sem": ((0, 0, 19), 7), "msg": ((0, 12), 0)}
"""Kind of System V object -> arguments with which its call in `KINDS` writes statistics to an
array, and the index of the number of objects there."""
SOCKETS = "/proc/net/unix"
"""Kernel file that lists Unix sockets, even those in unread messages of ended processes."""
TRAFFIC = "/proc/net/dev"
"""Kernel file that counts bytes per network interface: traces that no cleanup can remove."""
SWEEPER = FIRST_USER - 1
"""Real user id of the cleanup process: programs could stop a process with their own id."""
SWEEP_S = 1.0
"""Maximum seconds of a cleanup (sweep). A box that needs more is discarded, which is fast."""
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
libc = ctypes.CDLL(None, use_errno=True)


class Plain:
    """Mode without isolation: a child process with limits; `SubprocessBox` lists the risks."""

    places: Sequence[str] = ()
    counted = False
    """Whether a cgroup limits memory; if not, the supervisor adds up the processes' memory."""
    own_cgroup = False
    """Whether the readable cgroup belongs only to this box, not to the whole machine."""

    def begin(self) -> None:
        """Adopt orphans, forbid tracing of this supervisor, record the clean state as baseline."""
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        libc.prctl(PR_SET_DUMPABLE, 0)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        self.folders: list[str] = []
        self.baseline = snapshot(self.places)

    def next_user(self) -> int:
        """Return the user id for the next run of a program; 0: the supervisor's own user id."""
        return 0

    def folder(self) -> str:
        """Create an empty directory, in which the next run starts, and return its path."""
        folder = f"/tmp/podium-box-{os.urandom(8).hex()}"
        os.mkdir(folder, 0o700)  # noqa: PTH102  (pathlib costs 10 ms of every start)
        self.folders.append(folder)
        return folder

    def kill(self, pid: int) -> None:
        """Kill one process."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def tidy(self) -> bool:
        """Return whether no run has left files or other objects; ignores processes."""
        return not self.folders and snapshot(self.places) == self.baseline

    def sweep(self, zygote: socket.socket, user: int, own: set[int]) -> None:
        """Kill every process of a run (all but the pids `own`), then remove the run's files."""
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
    """Mode with separate namespaces for every program, which can write only inside its box."""

    places = PLACES

    def folder(self) -> str:
        """Return the directory in which every run starts."""
        return self.places[0]


class Users(Namespace):
    """Mode with a separate user id for every run."""

    own_cgroup = True

    def begin(self) -> None:
        """Begin as in `Plain`, draw a first user id, check if a cgroup counts killed processes."""
        super().begin()
        self.user = random.randint(FIRST_USER, LAST_USER)  # boxes share limits that count per user
        self.counted = memory_kills() >= 0  # gVisor has no counter

    def next_user(self) -> int:
        """Return the next user id for a run; an id is reused only after all others of the range."""
        self.user = self.user + 1 if self.user < LAST_USER else FIRST_USER
        return self.user

    def sweep(self, zygote: socket.socket, user: int, own: set[int]) -> None:
        """Let a process with the user id `user` kill the run's processes and remove its files."""
        for one in children_of(os.getpid(), own):  # a fork bomb could block that process
            self.kill(one.pid)
        reap(own)
        zygote.send(b'{"sweep": %d}' % user)
        zygote.recv(16)
        deadline = time.monotonic() + SWEEP_S
        while time.monotonic() < deadline:  # killed processes take a moment to end
            reap(own)
            if not children_of(os.getpid(), own):
                break
            time.sleep(0.002)


MODES: dict[str, Callable[[], Plain]] = {"plain": Plain, "namespace": Namespace, "users": Users}
Mode = Plain


def snapshot(places: Sequence[str]) -> frozenset[str]:
    """Return what runs can leave in a box: names of files, System V objects, sockets; traffic."""
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
    """Return the ids of System V objects of a kind, the second column of the kernel's table.

    gVisor has no table: then [-1] means that objects exist, which cannot be removed.
    """
    with suppress(OSError), open(f"/proc/sysvipc/{kind}", "rb") as file:  # noqa: PTH123
        return [int(line.split()[1]) for line in file.read().splitlines()[1:]]
    arguments, place = COUNTS[kind]
    numbers = (ctypes.c_int * 64)()
    getattr(libc, KINDS[kind][0])(*arguments, numbers)
    return [-1] if numbers[place] else []


def remove_new(places: Sequence[str], baseline: frozenset[str], deadline: float) -> None:
    """Remove this user's files and System V objects that `baseline`, an older snapshot, lacks."""
    for name in snapshot(places) - baseline:
        kind, _, id = name.partition(" ")
        if kind in KINDS:
            call, arguments = KINDS[kind]
            getattr(libc, call)(int(id), *arguments)
        elif name.startswith("/"):
            remove(name, deadline)


def remove(path: str, deadline: float) -> None:
    """Remove a file or a tree, even if file modes forbid that; stop at the deadline."""
    left, opened = [path], set[str]()
    while left and time.monotonic() < deadline:
        last = left[-1]
        if unlinked(last) or last in opened:
            left.pop()
            continue
        opened.add(last)
        with suppress(OSError):
            os.chmod(last, 0o700)  # noqa: PTH101  (a directory: links were unlinked above)
            left += [f"{last}/{name}" for name in os.listdir(last)]  # noqa: PTH208


def unlinked(path: str) -> bool:
    """Try to remove a file, a link or an empty directory; return whether that worked."""
    for call in (os.unlink, os.rmdir):
        with suppress(OSError):
            call(path)
            return True
    return False


def sweep_as(user: int, baseline: frozenset[str]) -> None:
    """Kill all processes of `user` and remove the files that they wrote; never return.

    Only the effective user id of this process becomes `user`, so that it can signal the processes
    of `user`. They cannot signal this process, whose real and saved ids are not `user`.
    """
    os.setgroups([])
    os.setresgid(SWEEPER, user, SWEEPER)
    os.setresuid(SWEEPER, user, SWEEPER)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    remove_new(PLACES, baseline, time.monotonic() + SWEEP_S)
    os._exit(0)
