"""Attacks that look for what a program must not know: other inputs, other programs, the judge."""

# It runs in the box as one file with inside.py, and does what no program of ours may.
# ruff: noqa: B023, F403, F405, I001, PTH123, RUF059, RUF100, SIM102, SIM115, T201

from tests.sandbox.attacks.inside import *

import gc
import re

MARK = re.compile(rb"SECRET-[0-9a-f]{16}")


def found_in(data: bytes) -> str | None:
    """Return the first secret in some bytes."""
    found = MARK.search(data)
    return found[0].decode() if found else None


def memory(pid: int | str) -> list[bytes]:
    """Return what can be read of a process's memory."""
    pieces: list[bytes] = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as file:
        for line in maps:
            start, end = (int(one, 16) for one in line.split()[0].split("-"))
            if line.split()[1].startswith("r") and end - start < 1 << 28:
                with suppress(OSError, OverflowError, ValueError):
                    file.seek(start)
                    pieces.append(file.read(end - start))
    return pieces


@attack()
def own_memory() -> str | None:
    """Searches every page of its own process for earlier inputs and other programs."""
    planted = "".join(("find", "-", "me", str(os.getpid()))).encode()
    pieces = memory("self")
    if not any(planted in piece for piece in pieces):
        return "the search finds nothing, not even what is there"
    return next((one for one in map(found_in, pieces) if one), None)


@attack()
def own_objects() -> str | None:
    """Searches every Python object, frozen ones too, for earlier inputs and other programs."""
    gc.unfreeze()
    return found_in(repr(gc.get_objects()).encode("utf-8", "replace"))


@attack()
def own_frames() -> str | None:
    """Climbs its own stack and its modules for the box's files, orders and descriptors."""
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(repr(frame.f_locals) + repr(sorted(frame.f_globals)))
        frame = frame.f_back
    seen += [repr(vars(module)) for module in list(sys.modules.values()) if module]
    return found_in("".join(seen).encode("utf-8", "replace"))


@attack()
def environment() -> str | None:
    """Reads its environment, and the one that its process began with."""
    started = open("/proc/self/environ", "rb").read()
    return found_in(repr(os.environ).encode() + started) or (
        "names of the box" if b"podium" in started.lower() else None
    )


@attack()
def disk() -> str | None:
    """Reads every small file outside the packages, for inputs and programs."""
    for folder, inner, names in os.walk("/"):
        if folder.startswith(("/proc", "/usr", "/sys", "/lib", "/opt/podium/site", sys.prefix)):
            inner.clear()
            continue
        for name in names:
            path = os.path.join(folder, name)
            with suppress(OSError):
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                    if got := found_in(open(path, "rb").read()):
                        return f"{got} in {path}"
    return None


@attack()
def proc_of_others() -> str | None:
    """Reads memory, stack, root, environment and command line of the judge and the zygote."""
    got: list[str] = []
    for pid in others():
        for name in ("mem", "stack", "syscall"):
            with suppress(OSError), open(f"/proc/{pid}/{name}", "rb", 0) as file:
                got += [f"{pid}/{name}"] if file.read(1) else []
        for name in ("environ", "cmdline", "maps", "auxv", "mountinfo", "sched", "comm", "status"):
            with suppress(OSError), open(f"/proc/{pid}/{name}", "rb", 0) as file:
                got += [one for one in [found_in(file.read())] if one]
        with suppress(OSError):
            got += [f"{pid}/root"] if os.listdir(f"/proc/{pid}/root/") else []
    return ", ".join(got) or None


@attack()
def descriptors_of_others() -> str | None:
    """Opens descriptors 0 to 200 of the judge and the zygote, for inputs and programs."""
    for pid in others():
        for fd in range(200):
            with suppress(OSError):
                file = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
                held = os.pread(file, 1 << 20, 0)
                if not own(file) and (found_in(held) or b"def look" in held):
                    return f"descriptor {fd} of process {pid}: {held[:50]!r}"
    return None


def own(file: int) -> bool:
    """Return whether a descriptor is one of the files that this process was given."""
    return any(os.path.sameopenfile(file, mine) for mine in range(4))


@attack()
def own_descriptors() -> str | None:
    """Reads all descriptors it was given, from their beginnings."""
    for fd in range(1024):
        with suppress(OSError):
            if got := found_in(os.pread(fd, 1 << 20, 0)):
                return f"{got} in descriptor {fd}"
    open_now = [fd for fd in range(4, 1024) if os.path.exists(f"/proc/self/fd/{fd}")]
    return f"descriptors {open_now}" if open_now else None


@attack()
def tracing() -> str | None:
    """Attaches to the judge and the zygote as a debugger does."""
    for pid in others():
        for request in (16, 0x4206):
            if libc.ptrace(request, pid, 0, 0) == 0:
                return f"traces {pid}"
    return None


@attack()
def memory_of_others() -> str | None:
    """Reads and writes memory of the judge and the zygote with process_vm_readv and writev."""
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    for pid in others():
        for name in ("process_vm_readv", "process_vm_writev"):
            if getattr(libc, name)(pid, vector, 1, vector, 1, 0) > 0:
                return f"{name} {pid}"
    return None


@attack()
def stolen_descriptors() -> str | None:
    """Copies descriptors of the judge and the zygote with pidfd_getfd."""
    for pid in others():
        pidfd = libc.syscall(434, pid, 0)
        for fd in range(110):
            if pidfd >= 0 and libc.syscall(438, pidfd, fd, 0) >= 0:
                return f"descriptor {fd} of {pid}"
    return None


@attack()
def host_processes() -> str | None:
    """Lists processes, to find others than the judge and the zygote."""
    return f"{others()}" if len(others()) > 2 else None


@attack()
def host_files() -> str | None:
    """Opens what a host has and a box must not: engine sockets, shadow, home, keys."""
    for path in (
        *("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"),
        *("/etc/shadow", "/etc/sudoers", "/proc/kcore", "/proc/kmsg", "/proc/1/root/etc/shadow"),
        *("/dev/mem", "/dev/sda", "/dev/vda", "/dev/kmsg", "/dev/kvm"),
        *("/var/lib/docker", "/sys/kernel/debug", "/sys/firmware/efi", "/root/.ssh", "/boot"),
    ):
        with suppress(OSError):
            os.listdir(path) if os.path.isdir(path) else os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            if not os.path.isdir(path) or os.listdir(path):
                return path
    return None


@attack()
def links() -> str | None:
    """Reads the same through symbolic links in /tmp."""
    for n, path in enumerate(("/etc/shadow", "/proc/1/root/tmp", "/proc/1/mem", "/proc/1/fd/3")):
        os.symlink(path, f"/tmp/link{n}")
        with suppress(OSError):
            return f"{path}: {open(f'/tmp/link{n}', 'rb').read(10)!r}"
    return None
