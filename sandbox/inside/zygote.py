"""The zygote: a process that reads no program and no input, and forks one process per run.

A fork of the supervisor would inherit all data in the supervisor's memory. The zygote has only one
order (a message for one run) in memory; source and input arrive as file descriptors, which are read
after the fork.
"""

import ctypes
import gc
import importlib
import io
import json
import os
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any, ClassVar, NoReturn, cast

from podium.sandbox.inside import isolation
from podium.sandbox.inside.isolation import PLACES, libc
from podium.sandbox.inside.runners import LACKING, RUNNERS, LackingFinder, load_header

PRELOADED = (
    *("__future__", "abc", "array", "ast", "atexit", "base64", "bisect", "cmath", "collections"),
    *("collections.abc", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "heapq", "io", "itertools", "json", "math", "operator"),
    *("os", "random", "re", "signal", "statistics", "string", "struct", "sys"),
    *("time", "traceback", "typing", "types"),
)
"""Modules that programs often import, loaded before the fork. Without threading, whose hook would
cost 0.3 ms per fork."""

PLACE = {"HOME": PLACES[0], "TMPDIR": PLACES[0]}
"""Environment variables with the folder in which programs start in most boxes."""
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
CHANNEL = 100  # descriptor of the zygote's socket to the judge, above those that orders bring
STACK_BYTES = 120 << 20
"""Maximum stack of the main thread, in bytes: the kernel keeps at least this much space free."""
ADDRESS_SLACK = 4 << 30
"""Bytes of address space beyond the memory limit: thread stacks are mapped but hardly used."""
FORKS = 200


def start(refused: bytes = b"") -> tuple[socket.socket, int]:
    """Fork the zygote; return the socket to it and its process id.

    `refused` is a seccomp filter (sandbox/seccomp.py) for the zygote and its forks; empty: none.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            _install_filter(refused)
            serve(theirs)
        os._exit(1)
    theirs.close()
    return ours, pid


class _Filter(ctypes.Structure):
    """The kernel's `struct sock_fprog`: the instructions of a seccomp filter and their number."""

    _fields_: ClassVar = [("instructions", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def _install_filter(calls: bytes) -> None:
    """Install a seccomp filter for this process and its forks, only on 64-bit x86 and ARM."""
    if calls and os.uname().machine in ("x86_64", "aarch64") and sys.maxsize > 1 << 32:
        code = _Filter(len(calls) // 8, calls)
        libc.prctl(isolation.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(code), 0, 0):
            raise OSError(ctypes.get_errno(), "the filter of system calls")


def serve(channel: socket.socket) -> None:
    """Import modules `PRELOADED`, then fork a process per order until the supervisor has ended."""
    os.dup2(channel.fileno(), CHANNEL)
    channel.detach()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    os.closerange(3, CHANNEL)
    os.closerange(CHANNEL + 1, 1 << 16)
    libc.prctl(isolation.PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(isolation.PR_SET_DUMPABLE, 0)
    for name in PRELOADED:
        importlib.import_module(name)
    load_header()
    baseline, modules = isolation.snapshot(PLACES), _look_new()
    gc.collect()
    gc.freeze()
    channel = socket.socket(fileno=CHANNEL)
    while True:
        message, files, *_ = socket.recv_fds(channel, 1 << 16, 8)
        if not message:
            os._exit(0)
        order = json.loads(message)
        pid = fork()
        if pid == 0:
            if "sweep" in order:
                isolation.sweep_as(order["sweep"], baseline)
            begin(order, files, modules)
        for file in files:
            os.close(file)
        _report(channel, pid, "sweep" in order)


def fork() -> int:
    """Fork; retry while a fork bomb, which is being killed, leaves no process slot free."""
    for _ in range(FORKS):
        with suppress(BlockingIOError):
            return os.fork()
        time.sleep(0.005)
    return os.fork()


def _report(channel: socket.socket, pid: int, sweep: bool) -> None:
    """Send the supervisor a forked process's pid (unless for cleanup), and later how it ended."""
    if not sweep:
        channel.send(b"%d" % pid)
    _, status, usage = os.wait4(pid, 0)
    ended = {
        "exit_code": os.waitstatus_to_exitcode(status),
        "cpu_s": usage.ru_utime + usage.ru_stime,
    }
    channel.send(b"swept" if sweep else json.dumps(ended).encode())


def begin(order: dict[str, Any], files: list[int], modules: tuple[str, ...]) -> NoReturn:
    """Turn this fork into the program's process (descriptors, limits, user), then run the program.

    `modules` are podium's own modules, which are unloaded so that no program can use them.
    """
    try:
        # pread: other processes that read this file at the same time share its offset.
        source = os.pread(files[0], os.fstat(files[0]).st_size, 0).decode("utf-8", errors="replace")
        for standard, file in enumerate(files[1:]):
            os.dup2(file, standard)
        os.closerange(len(files) - 1, 1 << 16)
        os.setsid()
        limit(order)
        if order["user"]:
            os.setgroups([])
            os.setresgid(order["user"], order["user"], order["user"])
            os.setresuid(order["user"], order["user"], order["user"])
        libc.prctl(isolation.PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(isolation.PR_SET_DUMPABLE, 1)
        os.chdir(order["folder"])
        if order["folder"] != PLACE["HOME"]:
            os.environ.update(HOME=order["folder"], TMPDIR=order["folder"])
        for name in modules:
            del sys.modules[name]
    except BaseException as error:
        os.write(2, f"The box could not prepare this run: {error!r}\n".encode())
        os._exit(120)
    RUNNERS[order["runner"]](source, order["entry"])
    os._exit(121)


def limit(order: dict[str, Any]) -> None:
    """Set this process's resource limits as the order states; child processes inherit them."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:  # noqa: PTH123
        file.write(b"1000")  # if memory runs out, the kernel kills the program, not its box
    cpu_s = int(order["cpu_s"]) + 2
    most = order["memory_bytes"] + ADDRESS_SLACK
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_AS, most, most),
        (resource.RLIMIT_FSIZE, order["output_bytes"], order["output_bytes"]),
        (resource.RLIMIT_NOFILE, 512, 512),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_STACK, STACK_BYTES, resource.RLIM_INFINITY),
    ):
        _lower(kind, soft, hard)
    if order["user"]:  # processes are counted per user, and this user has no others
        _lower(resource.RLIMIT_NPROC, 2 * order["processes"], 2 * order["processes"])


def _lower(kind: int, soft: int, hard: int) -> None:
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), most if hard == resource.RLIM_INFINITY else min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _look_new() -> tuple[str, ...]:
    """Make this process and all forks look like a new Python; return podium's module names."""
    os.environ.clear()
    os.environ.update(PLACE, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    os.umask(0o022)
    sys.argv = ["solution.py"]
    if LACKING:
        sys.meta_path.append(LackingFinder)
    sys.stdin = sys.__stdin__ = stream(0, "r")
    sys.stdout = sys.__stdout__ = stream(1, "w")
    sys.stderr = sys.__stderr__ = stream(2, "w", errors="backslashreplace")
    return tuple(name for name in sys.modules if name.split(".")[0] == "podium")


def stream(file: int, mode: str, errors: str = "surrogateescape") -> io.TextIOWrapper:
    """Return a text stream over the descriptor `file`, as Python opens standard streams."""
    opened = open(file, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    return cast(io.TextIOWrapper, opened)
