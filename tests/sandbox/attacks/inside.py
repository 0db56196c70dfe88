"""The frame of every attack: how it is called in the box, and what an innocent program sees there.

It runs in the box ahead of a module of attacks, with nothing but the standard library.
"""

# ruff: noqa: F401, PTH109, PTH110, PTH115, PTH123, PTH208, SIM115, T201

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress

Attack = Callable[[], str | None]
ATTACKS: dict[str, Attack] = {}
STATUSES: dict[str, tuple[str, ...]] = {}

libc = ctypes.CDLL(None, use_errno=True)
rt = ctypes.CDLL("librt.so.1", use_errno=True)
X86 = os.uname().machine == "x86_64"


def attack(*statuses: str) -> Callable[[Attack], Attack]:
    """Register an attack, and the statuses that its own run may end with."""

    def register(function: Attack) -> Attack:
        ATTACKS[function.__name__] = function
        STATUSES[function.__name__] = statuses or ("exited",)
        return function

    return register


def main() -> None:
    """Do what the first word of standard input says."""
    word = sys.stdin.readline().split()[0]
    if word == "look":
        print(json.dumps(look()))
        return
    try:
        got = ATTACKS[word]()
        print("held" if not got else f"BROKEN: {got}", flush=True)
    except OSError as error:
        print(f"held: {os.strerror(error.errno) if error.errno else error}", flush=True)


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library; OSError when it fails."""
    ctypes.set_errno(0)
    done = getattr(libc, name)(*arguments)
    if done < 0:
        raise OSError(ctypes.get_errno(), name)
    return done


def others() -> list[int]:
    """Return the processes that can be seen, this one left out."""
    return [int(one) for one in os.listdir("/proc") if one.isdigit() and int(one) != os.getpid()]


def running(pid: int) -> str:
    """Return a process's name, or nothing when it has ended, reaped or not.

    One whose first thread alone has ended has others, and runs.
    """
    with suppress(OSError):
        name, _, rest = open(f"/proc/{pid}/stat").read().rpartition(")")
        state = rest.split()[0]
        if state not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1:
            return name.partition("(")[2] or "no name"
    return ""


def child(action: Callable[[], object]) -> int:
    """Run an action in a forked process, and exit there."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    return pid


def daemon(action: Callable[[], object]) -> None:
    """Run an action in an orphan with a session of its own and no descriptors."""

    def middle() -> None:
        os.setsid()
        child(lambda: (os.closerange(0, 512), action()))

    os.waitpid(child(middle), 0)


# --- what an innocent program sees ---------------------------------------------------------------


def look() -> dict[str, object]:
    """Return all that could tell a program of the one before it, and the cell it runs in."""
    return {"cell": cell(), "state": {**places(), **itself(), "kernel": objects()}}


def cell() -> str:
    """Return what names this cell: its host name, namespace, and the start of process 1."""
    started = open("/proc/1/stat").read().rpartition(")")[2].split()[19]
    return f"{os.uname().nodename} {os.readlink('/proc/self/ns/pid')} {started}"


def places() -> dict[str, object]:
    """Return what lies where programs can write, and how much room there is."""
    found: dict[str, object] = {}
    for place in ("/tmp", "/dev/shm", "/dev/mqueue"):
        with suppress(OSError):
            room = os.statvfs(place)
            found[place] = [sorted(os.listdir(place)), room.f_bfree, room.f_ffree]
    with suppress(OSError):
        found["traffic"] = open("/proc/net/dev").read()
    with suppress(OSError):
        found["sockets"] = [line for line in open("/proc/net/unix") if "@" in line]
    return found


def itself() -> dict[str, object]:
    """Return the settings of this process, which it inherited."""
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    limits = {name: list(resource.getrlimit(getattr(resource, name))) for name in names}
    return {
        "others": sorted(filter(None, map(running, others()))),
        "descriptors": [fd for fd in range(256) if os.path.exists(f"/proc/self/fd/{fd}")],
        "environment": dict(os.environ),
        "where": [os.getcwd(), oct(os.umask(0o22)), os.getgroups(), os.getppid() > 1],
        "priority": [os.nice(0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
        "signals": [
            [int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
            [n for n in range(1, 32) if signal.getsignal(n) == signal.SIG_IGN],
        ],
        "limits": limits,
        "oom": open("/proc/self/oom_score_adj").read(),
        "written": [os.lseek(1, 0, os.SEEK_END), waiting(2)],
    }


def waiting(pipe: int) -> int:
    """Return how many bytes nobody has read from a pipe."""
    count = ctypes.c_int()
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count.value


def objects() -> list[int]:
    """Return how many System V objects there are, whether a queue is left, and what keys are."""
    numbers = (ctypes.c_int * 64)()
    found: list[int] = []
    for name, arguments, place in (
        ("shm", (0, 14), 0),
        ("msg", (0, 12), 0),
        ("sem", (0, 0, 19), 7),
    ):
        getattr(libc, f"{name}ctl")(*arguments, numbers)
        found.append(numbers[place])
    found.append(rt.mq_open(b"/left", os.O_RDWR))
    found.append(libc.syscall(250 if X86 else 219, 10, -4, b"user", b"left", 0))
    return found
