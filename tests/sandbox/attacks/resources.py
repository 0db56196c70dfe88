"""Attacks that use up what the machine has: processes, memory, files, output, time."""

# It runs in the box as one file with inside.py, and does what no program of ours may.
# ruff: noqa: B023, F403, F405, I001, PTH123, RUF059, RUF100, SIM102, SIM115, T201

from tests.sandbox.attacks.inside import *

import threading


@attack("processes", "memory", "time")
def fork_bomb() -> str | None:
    """Every process forks for ever."""
    while True:
        with suppress(OSError):
            os.fork()


@attack("processes", "time", "exited")
def thread_bomb() -> str | None:
    """Starts threads that never end, until no more can be started."""
    with suppress(RuntimeError):
        for _ in range(5000):
            threading.Thread(target=time.sleep, args=(60,)).start()
    return None


@attack("memory", "died", "time")
def memory_bomb() -> str | None:
    """Takes memory and touches it, for ever."""
    held = []
    while True:
        held.append(bytearray(1 << 24))


@attack("memory", "processes", "died", "time")
def memory_of_children() -> str | None:
    """Has eight children take 100 MB each, every one below the limit."""
    for _ in range(8):
        child(lambda: (bytearray(b"x") * (100 << 20), time.sleep(9)))
    time.sleep(9)


@attack("memory", "exited", "died", "time")
def memory_in_anonymous_files() -> str | None:
    """Hides memory in files without a name, which no process has mapped."""
    held = 0
    for _ in range(480):
        file = os.memfd_create("hoard")
        held += os.write(file, bytes(1 << 20))
    return f"{held >> 20} MB" if held > 400 << 20 else None


@attack("memory", "exited", "died")
def memory_in_pipes() -> str | None:
    """Hides memory in pipes and sockets that nobody reads."""
    held = 0
    with suppress(OSError):
        for _ in range(120):
            one, two = socket.socketpair()
            one.setblocking(False)
            reading, writing = os.pipe()
            os.set_blocking(writing, False)
            with suppress(BlockingIOError):
                while True:
                    held += one.send(bytes(1 << 16))
            with suppress(BlockingIOError):
                while True:
                    held += os.write(writing, bytes(1 << 16))
            one.detach()
            two.detach()
    return f"{held >> 20} MB" if held > 256 << 20 else None


@attack("memory", "exited", "died", "time")
def memory_in_segments() -> str | None:
    """Hides memory in System V segments that are written and detached."""
    held = []
    libc.shmat.restype = ctypes.c_void_p
    for _ in range(16):
        segment = call("shmget", 0, 40 << 20, 0o1600)
        at = ctypes.c_void_p(libc.shmat(segment, None, 0))
        ctypes.memset(at, 1, 40 << 20)
        libc.shmdt(at)
        held.append(segment)
    time.sleep(0.2)
    return f"{len(held) * 40} MB"


@attack("exited", "memory", "died")
def disk_fill() -> str | None:
    """Writes files to /tmp and /dev/shm until no more fit."""
    written = 0
    for place in ("/tmp", "/dev/shm"):
        with suppress(OSError):
            for n in range(1000):
                with open(f"{place}/{n}", "wb") as file:
                    written += file.write(bytes(1 << 20))
    return f"{written >> 20} MB" if written > 140 << 20 else None


@attack("exited", "memory", "time", "died")
def inode_fill() -> str | None:
    """Makes empty files in /tmp as fast as four processes can, to keep the sweeper busy."""

    def fill(which: int) -> None:
        os.chdir("/tmp")
        with suppress(OSError):
            for n in range(1 << 20):
                os.close(os.open(f"{which}-{n}", os.O_CREAT))

    for which in range(4):
        child(lambda: fill(which))
    for _ in range(4):
        os.wait()
    return None


@attack("output")
def output_flood() -> str | None:
    """Writes to standard output for ever."""
    while True:
        os.write(1, bytes(1 << 16))


@attack("output", "exited")
def error_flood() -> str | None:
    """Writes to standard error and to the result's descriptor at once, for ever."""
    while True:
        os.write(2, bytes(1 << 16))
        os.write(3, bytes(1 << 16))


@attack("output", "exited")
def sparse_output() -> str | None:
    """Makes its output a gigabyte long without writing it."""
    for fd in (1, 2, 3):
        with suppress(OSError):
            os.ftruncate(fd, 1 << 30)
    return "a gigabyte" if os.fstat(1).st_size >= 1 << 30 else None


@attack("time")
def endless_loop() -> str | None:
    """Loops for ever."""
    while True:
        pass


@attack("time")
def deaf_loop() -> str | None:
    """Loops for ever, ignoring SIGTERM, SIGXCPU and every other signal it can."""
    for number in range(1, 65):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        pass


@attack("time")
def endless_sleep() -> str | None:
    """Sleeps for ever, using no CPU time."""
    while True:
        time.sleep(60)


@attack("time")
def time_in_children() -> str | None:
    """Spends its CPU time in many children that it waits for."""
    spend(lambda: os.wait())


@attack("time")
def time_in_ignored_children() -> str | None:
    """Spends its CPU time in short-lived children whose times the kernel adds to nobody's."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    spend(lambda: os.wait())


@attack("time", "processes")
def time_in_orphans() -> str | None:
    """Spends its CPU time in grandchildren that somebody else collects."""

    def orphan() -> None:
        child(burn)
        time.sleep(0.002)

    end = time.monotonic() + 20
    while time.monotonic() < end:
        os.waitpid(child(orphan), 0)
        burn()


def burn() -> None:
    """Use 20 ms of CPU time."""
    start = time.process_time()
    while time.process_time() < start + 0.02:
        pass


def spend(wait: Callable[[], object]) -> None:
    """Use 20 ms in each of many children."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        child(burn)
        with suppress(ChildProcessError):
            wait()


@attack("exited", "memory", "time")
def deep_recursion() -> str | None:
    """Recurses in Python, and then in C, until the stack is gone."""
    sys.setrecursionlimit(1 << 30)
    value: list[object] = []
    for _ in range(1 << 20):
        value = [value]
    repr(value)
    return "the stack held"


@attack()
def native_crash() -> str | None:
    """Reads address 0."""
    return str(ctypes.string_at(0))


@attack("exited")
def timers_left() -> str | None:
    """Leaves interval timers, queued input and a watch on /tmp behind."""
    signal.setitimer(signal.ITIMER_REAL, 5, 5)
    call("inotify_add_watch", call("inotify_init"), b"/tmp", 0xFFF)
    call("timerfd_create", 1, 0)
    return None


@attack("exited")
def descriptor_bomb() -> str | None:
    """Sends descriptors over a socket that nobody reads, each message holding 200 more."""
    sockets = [socket.socketpair() for _ in range(20)]
    for one, _ in sockets:
        one.setblocking(False)
        with suppress(BlockingIOError):
            for _ in range(50):
                socket.send_fds(one, [b"x"], [0] * 200)
    return None
