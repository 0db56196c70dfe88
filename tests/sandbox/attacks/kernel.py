"""Attacks that try to get out: other users, capabilities, namespaces, devices, the network."""

# It runs in the box as one file with inside.py, and does what no program of ours may.
# ruff: noqa: B023, F403, F405, I001, PTH123, RUF059, RUF100, SIM102, SIM115, T201

from tests.sandbox.attacks.inside import *


@attack()
def become_root() -> str | None:
    """Changes its user and its groups by every call there is."""
    for name, count in (("setuid", 1), ("setreuid", 2), ("setresuid", 3), ("setgid", 1)):
        if getattr(libc, name)(*[0] * count) == 0:
            return name
    with suppress(OSError):
        os.setgroups([0])
        return "setgroups"
    return None


@attack()
def become_the_next_user() -> str | None:
    """Takes the user that the next run will have."""
    user = os.getuid() + 1
    return "setresuid" if libc.setresuid(user, user, user) == 0 else None


@attack()
def capabilities() -> str | None:
    """Has capabilities, or raises its own, also by executing a program that would bring some."""
    for line in open("/proc/self/status"):
        name, _, value = line.partition(":")
        if name in ("CapPrm", "CapEff", "CapAmb") and int(value, 16):
            return line.strip()
        if name == "NoNewPrivs" and value.strip() != "1":
            return "may gain privileges"
    header, data = (ctypes.c_uint * 2)(0x20080522, 0), (ctypes.c_uint * 6)(*[0xFFFFFFFF] * 6)
    if libc.capset(header, data) == 0:
        return "capset"
    return "ambient" if libc.prctl(47, 2, 7, 0, 0) == 0 else None


@attack()
def namespaces() -> str | None:
    """Makes namespaces of its own: user, mount, process, network, IPC, host name, cgroup, time."""
    for flag in (1 << 28, 1 << 17, 1 << 29, 1 << 30, 1 << 27, 1 << 26, 1 << 25, 1 << 7):
        if libc.unshare(flag) == 0:
            return f"unshare {flag:#x}"
    return None


@attack()
def namespaces_by_clone() -> str | None:
    """Makes a user namespace with clone and with clone3."""
    pid = libc.syscall(56 if X86 else 220, 17 | 1 << 28, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        return "clone"
    record = (ctypes.c_ulong * 11)(1 << 28, 0, 0, 0, 17)
    pid = libc.syscall(435, record, 88)
    if pid == 0:
        os._exit(0)
    return "clone3" if pid > 0 else None


@attack()
def enter_namespaces() -> str | None:
    """Enters the namespaces of the judge."""
    for name in ("user", "mnt", "net", "pid", "ipc", "uts"):
        with suppress(OSError):
            call("setns", os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0)
            return name
    return None


@attack()
def mounts() -> str | None:
    """Mounts, remounts, unmounts, and changes the root."""
    tries = (
        ("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        ("mount", None, b"/", None, 32, None),
        ("mount", b"proc", b"/tmp", b"proc", 0, None),
        ("umount2", b"/tmp", 2),
        ("chroot", b"/tmp"),
        ("syscall", 155 if X86 else 41, b"/tmp", b"/tmp"),
        ("syscall", 428, -100, b"/", 1),
        ("syscall", 430, b"tmpfs", 0),
    )
    for name, *arguments in tries:
        if getattr(libc, name)(*arguments) >= 0:
            return f"{name} {arguments}"
    return None


@attack()
def read_only_root() -> str | None:
    """Writes anywhere but to /tmp and the shared memory."""
    got: list[str] = []
    for folder, inner, _ in os.walk("/"):
        if folder.startswith(("/proc", "/sys", "/tmp", "/dev/shm", "/dev/mqueue", "/dev/fd")):
            inner.clear()
            continue
        # a host's /usr, which bubblewrap shows, is larger than what limits leave time to walk
        if folder.count("/") >= (2 if folder.startswith("/usr") else 4):
            inner.clear()
        with suppress(OSError):
            os.close(os.open(f"{folder}/left", os.O_CREAT | os.O_WRONLY, 0o600))
            got.append(folder)
    return ", ".join(got[:5]) or None


@attack()
def kernel_settings() -> str | None:
    """Writes to /proc/sys, sysrq, cgroups, and to the files of the judge."""
    for path in (
        *("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger"),
        *("/proc/sys/kernel/hostname", "/proc/sys/fs/mqueue/queues_max", "/proc/1/oom_score_adj"),
        *("/proc/sys/kernel/shmmax", "/proc/sys/kernel/ns_last_pid", "/proc/1/timerslack_ns"),
        *("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/cgroup.procs"),
        *("/sys/fs/cgroup/freezer/freezer.state", "/sys/fs/cgroup/memory/release_agent"),
        *("/sys/fs/cgroup/pids/pids.max", "/sys/kernel/uevent_helper", "/sys/power/state"),
    ):
        with suppress(OSError):
            file = os.open(path, os.O_WRONLY)
            if path.endswith("timerslack_ns"):  # anybody may open this one
                os.write(file, b"1000000000")
            return path
    return None


@attack()
def devices() -> str | None:
    """Makes device nodes, and opens devices other than the harmless five."""
    with suppress(OSError):
        os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0))
        os.open("/tmp/disk", os.O_RDONLY)
        return "a disk"
    harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout"}
    harmless |= {"stderr", "fuse"}  # gVisor's own, of use to whoever may mount
    for name in os.listdir("/dev"):
        if name not in harmless and not os.path.isdir(f"/dev/{name}"):
            with suppress(OSError):
                os.open(f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK)
                return name
    return None


@attack()
def tunnel() -> str | None:
    """Makes a network interface of its own."""
    import fcntl

    file = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(file, 0x400454CA, b"left".ljust(16, b"\0") + b"\x02\x10" + bytes(22))
    return "a tunnel"


@attack()
def internet() -> str | None:
    """Connects to the internet, by IPv4, by IPv6 and by name."""
    for family, address in ((socket.AF_INET, "1.1.1.1"), (socket.AF_INET6, "2606:4700::1111")):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with suppress(OSError), socket.socket(family, kind) as one:
                one.settimeout(0.3)
                one.connect((address, 53))
                return address
    with suppress(OSError):
        return str(socket.getaddrinfo("example.org", 80))
    return None


@attack()
def loopback_of_the_host() -> str | None:
    """Connects to what listens on the host's loopback interface, or on its gateway's."""
    names = open("/proc/net/dev").read()
    if any(one in names for one in ("eth0", "ens", "veth", "docker")):
        return names
    for port in (22, 53, 80, 443, 2375, 2376, 5000, 8000, 8080, 8888):
        with suppress(OSError), socket.socket() as one:
            one.settimeout(0.1)
            one.connect(("127.0.0.1", port))
            return f"port {port}"
    return None


@attack()
def odd_sockets() -> str | None:
    """Opens raw, packet, netlink-route, hypervisor and crypto sockets."""
    for family, kind, protocol in ((2, 3, 1), (17, 3, 768), (40, 1, 0), (38, 5, 0), (31, 3, 0)):
        with suppress(OSError), socket.socket(family, kind, protocol):
            return f"family {family}"
    return None


@attack()
def sockets_of_the_host() -> str | None:
    """Connects to abstract sockets that a host usually has, and lists those it sees."""
    for name in ("\0/tmp/.X11-unix/X0", "\0/containerd-shim", "\0dbus", "\0left", "\0probe"):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as one:
            one.connect(name)
            return name[1:]
    return None


@attack()
def execute_files() -> str | None:
    """Becomes another user by executing a copy of the shell in /tmp that has every mode."""
    for place in ("/tmp", "/dev/shm"):
        path = f"{place}/sh"
        with suppress(OSError):
            data = open("/bin/sh", "rb").read()
            open(path, "wb").write(data)
            os.chmod(path, 0o6755)
            if os.spawnv(os.P_WAIT, path, [path, "-c", f'test "$(id -u)" = {os.getuid()}']) == 1:
                return path
    return None


@attack()
def setuid_programs() -> str | None:
    """Becomes root through a shell, su, mount and every setuid program."""
    for argv in (
        ["sh", "-c", "id -u"],
        ["su", "-c", "id -u"],
        ["newgrp"],
        ["unshare", "-r", "id", "-u"],
    ):
        reading, writing = os.pipe()
        # Spawned, not forked: in gVisor four copies of Python cost more seconds than there are.
        places = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", 0, 0), (os.POSIX_SPAWN_DUP2, writing, 1)]
        with suppress(FileNotFoundError):
            os.waitpid(os.posix_spawnp(argv[0], argv, os.environ, file_actions=places), 0)
        os.close(writing)
        if os.read(reading, 10).strip() == b"0":
            return " ".join(argv)
    return None


@attack()
def rare_calls() -> str | None:
    """Calls what contest programs never need: bpf, io_uring, userfaultfd, perf, modules, clocks."""
    record = (ctypes.c_char * 128)()
    numbers = (321, 298, 175, 246, 169, 163, 167) if X86 else (280, 241, 105, 104, 142, 89, 224)
    for number in numbers:
        if libc.syscall(number, 0, record, 128, 0, 0) >= 0:
            return f"system call {number}"
    if libc.syscall(425, 8, record) >= 0:
        return "io_uring"
    if libc.syscall(227 if X86 else 112, 0, record) >= 0:
        return "clock_settime"
    return None


@attack()
def priority() -> str | None:
    """Becomes real-time."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        return "real-time"
    return None


@attack()
def raised_limits() -> str | None:
    """Raises the limits it was given."""
    for kind in (
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_NPROC,
        resource.RLIMIT_CPU,
        resource.RLIMIT_AS,
    ):
        soft, hard = resource.getrlimit(kind)
        with suppress(OSError, ValueError):
            if hard != resource.RLIM_INFINITY:
                resource.setrlimit(kind, (hard, hard + 1))
                return f"limit {kind}"
    return None
