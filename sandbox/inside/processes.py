"""What the supervisor sees of processes: who descends from whom, and what they use together."""

import os
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
    cpu_s: float
    """Its own CPU time and that of the children it waited for."""
    threads: int
    memory_bytes: int
    """Resident memory; pages shared with others are counted in each."""


def table() -> list[Process]:
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
    everybody = table()
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
    """Return the last id given to a process or thread: while it stays, nobody has forked.

    Of this pid namespace; gVisor always says 0.
    """
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
    """Return the CPU time of the cgroup, in which children whom nobody waits for count too.

    0 where no cgroup tells.
    """
    for path, start, unit_s in CPU_COUNTERS:
        with suppress(OSError):
            for line in reread(path).splitlines():
                if line.startswith(start):
                    return int(line.removeprefix(start)) * unit_s
    return 0.0


def memory_kills() -> int:
    """Return the cgroup's count of processes killed for memory; -1 where no cgroup tells."""
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in reread(path).splitlines():
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    return -1
