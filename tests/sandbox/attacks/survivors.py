"""Attacks that leave something for the next program: processes, files, kernel objects, sockets."""

# It runs in the box as one file with inside.py, and does what no program of ours may.
# ruff: noqa: B023, F403, F405, I001, PTH123, RUF059, RUF100, SIM102, SIM115, T201

from tests.sandbox.attacks.inside import *

import threading


@attack()
def daemon_left() -> str | None:
    """Leaves an orphan in a session of its own, without descriptors."""
    daemon(lambda: time.sleep(60))
    return None


@attack()
def daemon_that_looks_dead() -> str | None:
    """Leaves a process whose first thread has ended: the process table calls it a zombie."""

    def hide() -> None:
        threading.Thread(target=time.sleep, args=(60,)).start()
        libc.syscall(60 if X86 else 93, 0)

    daemon(hide)
    time.sleep(0.1)
    return None


@attack("exited", "processes")
def daemon_that_moves() -> str | None:
    """Leaves a process that forks and exits for ever, so that a list never shows it."""

    def move() -> None:
        while os.fork() == 0:
            pass

    daemon(move)
    time.sleep(0.1)
    return None


@attack("exited", "processes", "memory", "time", "died")
def daemon_that_stops_others() -> str | None:
    """Leaves moving processes that stop whoever comes as their user to end them."""

    def move() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            with suppress(OSError):
                if os.fork():
                    os._exit(0)
                os.kill(-1, signal.SIGSTOP)

    for _ in range(4):
        daemon(move)
    time.sleep(0.1)
    return None


@attack("exited", "processes", "memory", "time", "died")
def full_house() -> str | None:
    """Fills the room for processes with sleepers that ignore signals: no sweeper can be forked."""

    def sleep() -> None:
        for number in range(1, 32):
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        time.sleep(60)

    with suppress(OSError):
        for _ in range(500):
            child(sleep)
    return None


@attack("time", "exited")
def traced_end() -> str | None:
    """Has a child trace it, so that its end stays hidden from the parent that waits for it."""
    libc.prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
    target, (reading, writing) = os.getpid(), os.pipe()
    done = child(lambda: (os.write(writing, b"%d" % libc.ptrace(0x4206, target, 0, 0)), wait()))
    os.read(reading, 9)
    os.write(1, b"held\n" if done else b"")
    os._exit(0)


def wait() -> None:
    """Sleep for a minute."""
    time.sleep(60)


@attack()
def late_writer() -> str | None:
    """Leaves a child that holds every descriptor and writes long after the end."""
    child(lambda: (time.sleep(1), os.write(1, b"late"), os.write(3, b"late"), time.sleep(60)))
    return None


@attack()
def death_signal_off() -> str | None:
    """Asks the kernel not to end its processes with their parent, and leaves some."""
    libc.prctl(1, 0)
    libc.prctl(36, 1)
    child(lambda: (libc.prctl(1, 0), wait()))
    return None


@attack()
def abstract_socket_left() -> str | None:
    """Leaves a process that listens on an abstract socket for the next program."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0left")
    listener.listen()
    child(wait)
    return None


@attack()
def socket_cycle_left() -> str | None:
    """Leaves a named socket in flight to itself: closed by nobody, reachable by name."""
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    named = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    named.bind("\0left-in-flight")
    socket.send_fds(one, [b"x"], [one.fileno(), two.fileno(), named.fileno()])
    return None


@attack()
def connection_left() -> str | None:
    """Leaves a closed connection, which the kernel shows for a minute."""
    listener = socket.create_server(("127.0.0.1", 4242))
    one = socket.create_connection(("127.0.0.1", 4242))
    listener.accept()[0].close()
    one.close()
    return None


@attack()
def files_left() -> str | None:
    """Leaves files with odd names and modes, closed directories, links, pipes and sockets."""
    for place in (b"/tmp/", b"/dev/shm/"):
        os.chdir(place)
        os.makedirs(b"\xff\n/a b/'\"*/ ")
        with open(b"\xff\n/a b/file", "wb") as file:
            file.write(b"left")
        os.mkdir(b"-rf")
        os.mkdir("x" * 255)
        os.symlink("/etc", "link")
        os.symlink("link2", "link2")
        os.symlink("/proc/1/root", b"\xff\n/root")
        os.mkfifo("pipe")
        socket.socket(socket.AF_UNIX).bind("socket")
        os.link("pipe", "shm 0")
        for name in (b"\xff\n/a b", b"\xff\n", b"-rf"):
            os.chmod(name, 0)
        os.chmod("pipe", 0o7777)
    return None


@attack("exited", "time")
def deep_folders_left() -> str | None:
    """Leaves folders nested 10,000 deep: deeper than any path, deeper than Python recurses."""
    os.chdir("/tmp")
    for _ in range(10_000):
        os.mkdir("d")
        os.chdir("d")
    return None


@attack()
def crowded_folder_left() -> str | None:
    """Leaves 10,000 names for one file."""
    os.chdir("/tmp")
    open("one", "w").close()
    for n in range(10_000):
        os.link("one", f"n{n}")
    return None


@attack()
def open_file_left() -> str | None:
    """Leaves a deleted file that an orphan keeps open and mapped."""
    file = os.open("/tmp/gone", os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(1 << 19))
    os.unlink("/tmp/gone")
    daemon(wait)
    child(wait)
    return None


@attack()
def segment_left() -> str | None:
    """Leaves a System V segment that all may read, owned by another user on paper."""
    segment = call("shmget", 77, 4096, 0o1666)
    record = (ctypes.c_char * 256)()
    libc.shmctl(segment, 2, record)
    ctypes.memmove(ctypes.addressof(record) + 4, b"\x39\x30\0\0", 4)
    libc.shmctl(segment, 1, record)
    return None


@attack()
def semaphore_left() -> str | None:
    """Leaves a System V set of semaphores."""
    call("semget", 77, 5, 0o1666)
    return None


@attack()
def message_left() -> str | None:
    """Leaves a System V queue with a message in it."""
    queue = call("msgget", 77, 0o1666)
    call("msgsnd", queue, (ctypes.c_char * 24)(1), 8, 0)
    return None


@attack()
def queue_left() -> str | None:
    """Leaves a POSIX message queue."""
    if rt.mq_open(b"/left", os.O_RDWR | os.O_CREAT, 0o666, None) < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    return None


@attack()
def key_left() -> str | None:
    """Leaves a key in the kernel's keyrings of its user, its session and its process."""
    added = [
        libc.syscall(248 if X86 else 217, b"user", b"left", b"x", 1, -n) for n in (1, 2, 3, 4, 5)
    ]
    return f"keys {added}" if max(added) > 0 else None


@attack()
def lock_left() -> str | None:
    """Leaves locks and a lease on files that all share, held by an orphan."""
    import fcntl

    file = os.open(sys.executable or "/usr/bin/python3", os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    child(wait)
    return None


@attack()
def settings_left() -> str | None:
    """Leaves its priority, its scheduler, its mask, its limits and its signals changed."""
    os.nice(19)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.umask(0o777)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
    resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))
    with suppress(OSError):
        open("/proc/self/oom_score_adj", "w").write("0")
    return None
