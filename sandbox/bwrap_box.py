"""A box made of Linux namespaces by bubblewrap, for machines without a container engine.

Each program has its own process, network, IPC, mount and host name namespaces; a read-only
root with /usr, the running Python and nothing else of the machine; two small tmpfs folders; no
capabilities; the seccomp filter of seccomp.py. Namespaces and tmpfs end with their processes.

If started by root, the judge (the box's supervisor process) is root with SETUID, SETGID and KILL
only, and each run gets its own user id, as in the docker box. There is no user namespace, because
in one, the box's root is the host's root for /proc/sys and for files that root owns (/dev/null).

If started by another user, judge and program share that user, in a user namespace that allows no
second one. The judge is process 1, which the kernel protects from signals. Programs cannot trace or
read the judge or its child that forks them (zygote); the filter refuses signals and limits to both.

Weaker than docker: memory and processes are watched and limited per process, not by a cgroup; each
tmpfs has a size limit, but empty files have no maximum number; /usr and Python are the host's and
can be read. Third-party packages are those of the basic docker image, if they were fetched
(sandbox/packages.py).
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from podium.sandbox.box import SandboxError
from podium.sandbox.cells import (
    ENVIRONMENT,
    PYTHON_FLAGS,
    CellBox,
    CellKind,
    SandboxCell,
    boot_message,
    spawn,
)
from podium.sandbox.packages import SITE, host_packages, promised_names
from podium.sandbox.seccomp import RULES, SAME_USER, filter_bytes

OLDEST = (0, 8)
"""Oldest usable bubblewrap (major, minor); older ones cannot forbid user namespaces."""
LAST_USER = 59_999  # the largest user id of programs (sandbox/inside/isolation.py)
CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN = 6, 7, 21
DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
FILES_BYTES = 64 << 20  # size of /tmp, and of /dev/shm
TRIAL_S = 20.0
MEMORY_NOTE = "bwrap has no cgroup: memory is limited per process, and watched for all together."

FORBIDDEN = {
    "user/max_user_namespaces": "0",
    "kernel/unprivileged_userns_clone": "0",
    "kernel/apparmor_restrict_unprivileged_userns": "1",
}
"""Setting under /proc/sys -> its value that forbids ordinary users to create namespaces."""


class BwrapBox(CellBox):
    """A box that gives each program its own Linux namespaces (details: this module's docstring)."""

    name = "bwrap"

    def __init__(
        self, max_sandboxes: int | None = None, packages: Callable[[], Path | None] = host_packages
    ) -> None:
        """Allow at most `max_sandboxes` supervisor processes in use (default one per core).

        `packages` returns the folder of packages that programs may import, or None if it is absent.
        """
        self._packages = packages
        # `--die-with-parent` means the parent *thread*, so threads that stay alive start the cells.
        self._starters = ThreadPoolExecutor(thread_name_prefix="bwrap")
        super().__init__(max_sandboxes)

    def start(self, kind: CellKind) -> SandboxCell:
        """Start a supervisor process in new namespaces; SandboxError, with a reason, on failure."""
        try:
            return self._starters.submit(self._start, kind).result()
        except SandboxError as error:
            raise SandboxError(why_unusable() or str(error)) from error
        except RuntimeError as error:  # the threads have ended: the box has been closed
            raise SandboxError("The bwrap sandbox has been closed.") from error

    def switches_users(self) -> bool:
        """Return whether every run of a program gets a separate user id."""
        return switches_users()

    def command(self, seccomp_fd: int) -> list[str]:
        """Return bubblewrap's command line for Python in this box; callers may add Python flags."""
        users = self.switches_users()
        return bwrap_argv(seccomp_fd, host_python(), users=users, packages=self._packages())

    def close(self) -> None:
        """Stop every supervisor process of the box, which cannot be used afterwards."""
        super().close()
        self._starters.shutdown()

    def _start(self, kind: CellKind) -> SandboxCell:
        users = self.switches_users()
        try:
            seccomp_fd = filter_file(users=users)
        except OSError as error:
            raise SandboxError(f"The bwrap sandbox could not open a file: {error}.") from error
        try:
            argv = [*self.command(seccomp_fd), *PYTHON_FLAGS]
            boot = boot_message("users" if users else "namespace", promised_names(kind.image))
            return spawn(argv, boot, (seccomp_fd,))
        finally:
            os.close(seccomp_fd)


def bwrap_argv(
    seccomp_fd: int, python: Path, *, users: bool, packages: Path | None = None
) -> list[str]:
    """Return bubblewrap's command line for Python as process 1 of a box; callers may add flags.

    Bubblewrap reads the seccomp filter from the inherited descriptor `seccomp_fd`. With `users`,
    the box keeps the capabilities to switch users, which the caller must have; without `users`, it
    gets a user namespace. The folder `packages` is mounted at `SITE` (/opt/podium/site).
    """
    argv = [_bwrap(), "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    argv += ["--unshare-cgroup-try", "--hostname", "podium", "--die-with-parent", "--new-session"]
    argv += ["--as-pid-1", "--cap-drop", "ALL"]
    if users:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
            argv += ["--cap-add", capability]
    else:
        # Not root in the box, because /proc files of unmapped users would belong to root.
        argv += ["--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    argv += _system(python)
    if packages:
        argv += _bind("--ro-bind", packages, SITE)
    argv += _places()
    argv += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin"]
    for name, value in ENVIRONMENT.items():
        argv += ["--setenv", name, value]
    return [*argv, "--chdir", "/tmp", "--seccomp", str(seccomp_fd), "--", str(python)]


def why_unusable() -> str | None:
    """Return why bubblewrap cannot be used on this machine, and the fix; None if it works."""
    if platform.machine() not in ("x86_64", "aarch64"):
        return f"The bwrap sandbox does not support {platform.machine()}. Choose another box."
    if os.geteuid() == 0 and not switches_users():
        return "The bwrap sandbox needs a user other than root, or root with all capabilities."
    try:
        bwrap = _bwrap()
    except SandboxError as error:
        return str(error)
    run = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"(\d+)\.(\d+)", run.stdout)
    if not version or (int(version[1]), int(version[2])) < OLDEST:
        this = run.stdout.strip()
        return f"The bwrap sandbox needs bubblewrap 0.8 or newer; this is {this!r}. Upgrade it."
    return _trial()


def switches_users() -> bool:
    """Return whether this process has the rights to give every program a separate user id."""
    status = Path("/proc/self/status").read_text()
    capabilities = int(re.findall(r"^CapEff:\s*(\w+)", status, re.MULTILINE)[0], 16)
    if any(not capabilities >> needed & 1 for needed in (CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN)):
        return False
    inside, _, count = map(int, Path("/proc/self/uid_map").read_text().split()[:3])
    return os.geteuid() == 0 and inside == 0 and count > LAST_USER


def filter_file(*, users: bool) -> int:
    """Return the descriptor of a memory file with the seccomp filter for one start of bubblewrap.

    Callers close it. Without `users`, all processes share one user id: then it refuses more calls.
    """
    file = os.memfd_create("seccomp")
    os.write(file, filter_bytes(RULES if users else {**RULES, **SAME_USER}))
    os.lseek(file, 0, os.SEEK_SET)
    return file


def host_python() -> Path:
    """Return the path of this Python outside any virtual environment, with links resolved."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = Path(sys.base_prefix, "bin", version)
    return (python if python.exists() else Path(sys.executable)).resolve()


def _bwrap() -> str:
    if path := shutil.which("bwrap"):
        return path
    raise SandboxError("The bwrap sandbox needs bubblewrap (Debian: apt-get install bubblewrap).")


def _trial() -> str | None:
    users = switches_users()
    seccomp_fd = filter_file(users=users)
    argv = bwrap_argv(seccomp_fd, host_python(), users=users)
    argv += ["-I", "-S", "-c", "import ctypes"]
    try:
        result = subprocess.run(
            argv, pass_fds=[seccomp_fd], capture_output=True, timeout=TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"The bwrap sandbox does not start: {error}. Choose another box."
    finally:
        os.close(seccomp_fd)
    if result.returncode == 0:
        return None
    lines = result.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
    reason = f"{lines[-1]}{_forbidden()}. Allow user namespaces or choose another box."
    return f"The bwrap sandbox does not start: {reason}"


def _forbidden() -> str:
    for name, value in FORBIDDEN.items():
        setting = Path("/proc/sys") / name
        if os.geteuid() and setting.exists() and setting.read_text().strip() == value:
            return f" (/proc/sys/{name} is {value})"
    return ""


def _system(python: Path) -> list[str]:
    """Return bubblewrap's options to mount /usr, the libraries and parts of Python's prefix."""
    argv = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), str(path)]
        else:
            argv += ["--ro-bind-try", str(path), str(path)]
    argv += _bind("--ro-bind-try", Path("/etc/ld.so.cache"))
    home = python.parent.parent  # mounted in parts: it may be a user's home
    if home != Path("/") and not home.is_relative_to("/usr"):
        argv += _bind("--ro-bind", python)
        for name in ("lib", "lib64"):
            argv += _bind("--ro-bind-try", home / name)
    return argv


def _bind(option: str, path: Path, place: str = "") -> list[str]:
    """Return bubblewrap's options for a bind mount and its parent folders, readable by all."""
    argv: list[str] = []
    for folder in reversed(Path(place or path).parents[:-1]):
        argv += ["--perms", "0755", "--dir", str(folder)]
    return [*argv, option, str(path), place or str(path)]


def _places() -> list[str]:
    """Return bubblewrap's options to mount /proc, five devices, two tmpfs; make / read-only."""
    argv = ["--proc", "/proc", "--perms", "0755", "--dir", "/dev"]
    for name, target in LINKS.items():
        argv += ["--symlink", f"/proc/self/{target}", f"/dev/{name}"]
    for name in DEVICES:
        argv += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for place in ("/tmp", "/dev/shm"):
        argv += ["--perms", "1777", "--size", str(FILES_BYTES), "--tmpfs", place]
    # A read-only /proc forbids writing sysctls and the settings of process 1.
    return [*argv, "--remount-ro", "/proc", "--remount-ro", "/"]
