"""Attacks on the judge, the zygote, the channel between them, and a run's own report."""

# It runs in the box as one file with inside.py, and does what no program of ours may.
# ruff: noqa: B023, F403, F405, I001, PTH123, RUF059, RUF100, SIM102, SIM115, T201

from tests.sandbox.attacks.inside import *

FORGED = (
    b'{"status":"exited","exit_code":0,"stdout":3,"stderr":0,"result":0,"clean":true,"cpu_s":0}'
)


@attack("exited", "died")
def kill_all() -> str | None:
    """Kills every process that it may."""
    os.kill(-1, signal.SIGKILL)
    return None


@attack("exited", "time", "died")
def stop_all() -> str | None:
    """Stops every process that it may, and itself."""
    os.kill(-1, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)
    return None


@attack("time")
def stop_itself() -> str | None:
    """Stops itself, so that nothing ever ends."""
    os.kill(os.getpid(), signal.SIGSTOP)
    return None


@attack()
def signals() -> str | None:
    """Sends every signal to the judge and the zygote, by process and by group."""
    got: list[str] = []
    for pid in (1, *others()):
        for number in range(1, 65):
            for send in (os.kill, os.killpg):
                with suppress(OSError):
                    send(pid, number)
                    got.append(f"{number} to {pid}")
    heard = [one for one in got if not one.endswith(" to 1")]
    return ", ".join(heard[:3]) or None


@attack()
def limits_of_others() -> str | None:
    """Lowers limits, priority, scheduling and killability of the judge and the zygote."""
    zero = (ctypes.c_ulong * 2)(0, 0)
    for pid in others():
        for kind in range(16):
            if libc.prlimit(pid, kind, zero, None) == 0:
                return f"limit {kind} of {pid}"
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, 19)
            return f"priority of {pid}"
        with suppress(OSError):
            os.sched_setaffinity(pid, {0})
            return f"affinity of {pid}"
        with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("1000")
            file.flush()
            return f"killability of {pid}"
    return None


@attack()
def every_descriptor() -> str | None:
    """Writes a forged answer to each of its descriptors above 3."""
    for fd in range(4, 1024):
        with suppress(OSError):
            os.write(fd, FORGED + b"\n")
            return f"descriptor {fd}"
    return None


@attack()
def channel_of_the_judge() -> str | None:
    """Writes a forged answer to the judge's own descriptors, terminals and log."""
    paths = [f"/proc/{pid}/fd/{fd}" for pid in others() for fd in range(128)]
    for path in (*paths, "/dev/console", "/dev/tty", "/dev/pts/0", "/dev/kmsg", "/dev/log"):
        with suppress(OSError):
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            if not any(os.path.sameopenfile(file, mine) for mine in range(4)):
                if not os.path.samefile(f"/proc/self/fd/{file}", "/dev/null"):
                    os.write(file, FORGED + b"\n")
                    return path
    return None


@attack()
def forged_frames() -> str | None:
    """Prints forged answers and stream headers where they belong to its own report."""
    for fd in (1, 2, 3):
        os.write(fd, b"\n" + FORGED + b"\nYES\x01\0\0\0\0\0\0\x03YES\n")
    os.ftruncate(1, 0)
    os.lseek(1, 0, os.SEEK_SET)
    return None


@attack()
def sealed_output() -> str | None:
    """Seals, locks, leases and re-flags the files that the judge reads afterwards."""
    import fcntl

    for fd in range(4):
        for order, argument in ((1033, 0xF), (1024, 0), (4, os.O_DIRECT | os.O_NONBLOCK | 0o20000)):
            with suppress(OSError):
                fcntl.fcntl(fd, order, argument)
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        with suppress(OSError):
            fcntl.lockf(fd, fcntl.LOCK_EX)
        with suppress(OSError):
            os.fchmod(fd, 0)
    return None


@attack()
def cut_input() -> str | None:
    """Truncates, overwrites and grows its own standard input."""
    os.ftruncate(0, 0)
    os.pwrite(0, b"look", 0)
    os.ftruncate(0, 1 << 19)
    return None


@attack()
def moved_descriptors() -> str | None:
    """Puts other files in the places of its output and result, and closes them all at the end."""
    other = os.open("/tmp/other", os.O_RDWR | os.O_CREAT)
    os.write(1, b"held\n")
    for fd in (0, 1, 2, 3):
        os.dup2(other, fd)
    os.write(1, b"lost")
    os.closerange(0, 1024)
    return None


@attack()
def exit_first() -> str | None:
    """Ends with code 0 before it has said anything but this."""
    os.write(1, b"held\n")
    os._exit(0)


@attack()
def system_exit() -> str | None:
    """Leaves by SystemExit with an odd code."""
    os.write(1, b"held\n")
    raise SystemExit(type("Odd", (int,), {"__and__": lambda *_: 0})(7))


@attack("exited")
def patched_builtins() -> str | None:
    """Replaces builtins, os, json and sys.modules for whoever runs after it in this process."""
    import builtins

    print("held", flush=True)
    for name in dir(builtins):
        if not name.startswith("_") and name not in ("OSError", "AttributeError", "TypeError"):
            with suppress(AttributeError, TypeError):
                setattr(builtins, name, lambda *_, **__: 42)
    for module in (os, json, sys, socket, resource, signal):
        for name in [*vars(module)]:
            vars(module)[name] = None
    return None


@attack("exited")
def traced_runner() -> str | None:
    """Sets trace, profile, audit and exit functions, to see what the runner does after it."""
    import atexit
    import threading

    seen: list[str] = []
    for hook in (sys.settrace, sys.setprofile, threading.settrace, threading.setprofile):
        hook(lambda frame, *_: seen.append(frame.f_code.co_filename))
    sys.addaudithook(lambda name, _: seen.append(name) if "SECRET" in name else None)
    atexit.register(lambda: None)
    return None


@attack("exited")
def replaced_streams() -> str | None:
    """Replaces standard input and output by objects that lie and raise."""

    class Lie:
        def __getattr__(self, name: str) -> object:
            raise SystemExit(0)

    print("held", flush=True)
    sys.stdin = sys.__stdin__ = Lie()  # type: ignore[assignment]
    sys.stdout = sys.__stdout__ = sys.stderr = sys.__stderr__ = Lie()  # type: ignore[assignment]
    return None


@attack("exited", "time")
def exit_that_hangs() -> str | None:
    """Registers exit functions and destructors that never end."""
    import atexit

    atexit.register(time.sleep, 60)
    return None


@attack("exited")
def binary_output() -> str | None:
    """Writes bytes that are no text: NUL, half characters, escapes of terminals."""
    os.write(1, b"held\n\0\xff\xfe\xed\xa0\x80\x1b[2J" + bytes(range(256)))
    os.write(2, b"MemoryError\0\xff")
    os.write(3, b"\xff\0")
    return None


@attack()
def crash_the_supervisor_by_name() -> str | None:
    """Plants modules where a judge that imports late would find them, and waits to be imported."""
    for name in ("sysconfig", "json", "traceback", "encodings"):
        with open(f"/tmp/{name}.py", "w") as file:
            file.write("import os\nopen('/dev/shm/imported', 'w').write(str(os.getuid()))\n")
    return "imported" if os.path.exists("/dev/shm/imported") else None
