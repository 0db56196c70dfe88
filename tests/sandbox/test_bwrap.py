"""The bubblewrap box, started by root and by an ordinary user; skipped where it cannot run."""

import os
import platform
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from podium.sandbox import Limits, Program, ProgramOutcome
from podium.sandbox.bwrap_box import BwrapBox, bwrap_argv, host_python, why_unusable

REASON = why_unusable()
pytestmark = pytest.mark.skipif(bool(REASON), reason=str(REASON))

TIGHT = Limits(cpu_s=2, wall_s=4, memory_bytes=256 << 20, output_bytes=1 << 20, processes=24)
ROOT = os.geteuid() == 0
SOMEBODY = ("setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "env")
"""The start of a command that another user runs; what follows `env` is looked up as that user."""
MQ_OPEN = 240 if platform.machine() == "x86_64" else 180

ATTEMPTS = """
import ctypes, os, resource, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def trace(pid):
    if libc.ptrace(16, pid, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def write(path):
    os.close(os.open(path, os.O_WRONLY))
def attempt(name, action):
    try:
        action()
        print(name)
    except OSError:
        pass
"""


def attempts(*actions: str) -> str:
    """Return a program that prints those of the actions that succeed, by their source."""
    return ATTEMPTS + "".join(f"attempt({one!r}, lambda: {one})\n" for one in actions)


class OrdinaryBox(BwrapBox):
    """The box as an ordinary user gets it, in tests that root runs."""

    def switches_users(self) -> bool:
        return False

    def command(self, seccomp_fd: int) -> list[str]:
        return [*SOMEBODY, *bwrap_argv(seccomp_fd, python_for_somebody(), users=False)]


def python_for_somebody() -> Path:
    """Return a Python that an ordinary user may run: ours may lie in root's home."""
    for python in (host_python(), Path("/usr/bin/python3").resolve()):
        check = "import sys; sys.exit(sys.version_info < (3, 11))"
        command = [*SOMEBODY, str(python), "-I", "-S", "-c", check]
        if subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip("an ordinary user finds no Python 3.11 on this machine")


@pytest.fixture(scope="module", params=["root", "ordinary user"])
def box(request: pytest.FixtureRequest) -> Generator[BwrapBox]:
    if request.param == "root" and not ROOT:
        pytest.skip("these tests were not started by root")
    if request.param == "ordinary user" and ROOT:
        python_for_somebody()
        opened: BwrapBox = OrdinaryBox()
    else:
        opened = BwrapBox()
    with closing(opened):
        yield opened


def run(box: BwrapBox, source: str, *inputs: bytes) -> list[ProgramOutcome]:
    return list(box.run(Program(source), inputs or (b"",), TIGHT))


def printed(box: BwrapBox, source: str) -> list[str]:
    outcome = run(box, source)[0]
    assert (outcome.status, outcome.exit_code, outcome.stderr) == ("exited", 0, b"")
    return outcome.stdout.decode().splitlines()


def test_a_program_reads_its_inputs_and_prints(box: BwrapBox) -> None:
    outcomes = run(box, "print(input()[::-1])", b"stressed\n", b"drawer\n")
    assert [outcome.stdout for outcome in outcomes] == [b"desserts\n", b"reward\n"]


def test_cells_that_were_started_ahead_outlive_the_thread_that_asked_for_them(
    box: BwrapBox,
) -> None:
    for _ in range(3):
        assert printed(box, "print(1)") == ["1"]
        time.sleep(0.3)  # by now the next cell is warm, and the pool's thread is gone


def test_honest_programs_notice_nothing(box: BwrapBox) -> None:
    source = """
import asyncio, fcntl, mmap, multiprocessing, os, socket, subprocess, sys, tempfile, threading
thread = threading.Thread(target=print, args=("thread",)); thread.start(); thread.join()
print(subprocess.run([sys.executable, "-c", "print(2)"], capture_output=True, text=True).stdout[0])
with multiprocessing.get_context("fork").Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])))
print(asyncio.run(asyncio.sleep(0, "loop")))
with tempfile.TemporaryFile() as file: print(file.write(b"four"))
print(len(os.urandom(5)), open("/dev/stdin").read(), open("/dev/fd/0").read())
print(os.kill(os.getpid(), 0), open(os.devnull, "w").write("gone"))
"""
    assert sorted(printed(box, source)) == sorted(
        ["thread", "2", "3", "loop", "4", "5  ", "None 4"]
    )


def test_nothing_of_the_machine_is_there_but_python(box: BwrapBox) -> None:
    source = (
        "import os\nfor path in ('/', '/etc', '/dev', '/tmp'): print(*sorted(os.listdir(path)))"
    )
    top, etc, devices, tmp = printed(box, source)
    own = host_python().relative_to("/").parts[0]
    allowed = {"bin", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "tmp", "usr", own}
    assert set(top.split()) <= allowed
    assert (etc, tmp) == ("ld.so.cache", "")
    assert devices == "fd full null random shm stderr stdin stdout urandom zero"
    beside = {one.name for one in Path(host_python()).parents[1].iterdir()} - {
        "bin",
        "lib",
        "lib64",
    }
    if not host_python().is_relative_to("/usr"):
        home = host_python().parents[1]
        assert printed(box, attempts(*(f"os.stat({str(home / one)!r})" for one in beside))) == []
    outside = [
        f"os.listdir({path!r})" for path in ("/var", "/run", "/home", "/sys", "/proc/1/root")
    ]
    assert printed(box, attempts(*outside, "os.stat('/var/run/docker.sock')")) == []


def test_the_machine_cannot_be_written_to(box: BwrapBox) -> None:
    folders = ("/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", str(host_python().parent))
    files = [f"open({folder + '/mine'!r}, 'w')" for folder in folders]
    settings = [
        f"write({path!r})"
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/1/comm")
    ]
    others = ["os.chmod('/dev/null', 0o600)", "os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0))"]
    assert printed(box, attempts(*files, *settings, *others)) == []
    assert Path("/dev/null").stat().st_mode & 0o777 == 0o666


def test_the_judge_and_the_zygote_cannot_be_looked_into_or_changed(box: BwrapBox) -> None:
    names = ("mem", "environ", "maps", "fd/0", "fd/1", "fd/3", "io", "stack", "syscall")
    actions = [f"open('/proc/{pid}/{name}', 'rb').read(1)" for pid in (1, 2) for name in names]
    for pid in (1, 2):
        actions += [
            f"write('/proc/{pid}/fd/1')",
            f"write('/proc/{pid}/oom_score_adj')",
            f"trace({pid})",
            f"resource.prlimit({pid}, resource.RLIMIT_NOFILE, (3, 3))",
            f"os.setpriority(os.PRIO_PROCESS, {pid}, 19)",
            f"os.sched_setaffinity({pid}, {{0}})",
            f"os.sched_setscheduler({pid}, os.SCHED_IDLE, os.sched_param(0))",
            f"signal.pidfd_send_signal(os.pidfd_open({pid}), 19)",
            f"os.kill({pid}, 9)",
        ]
    assert printed(box, attempts(*actions)) == []


@pytest.mark.parametrize("target", ["1", "2", "-1", "-2", "0"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGINT])
def test_a_program_can_signal_only_itself(
    box: BwrapBox, target: str, number: signal.Signals
) -> None:
    source = f"import os\nif input() == 'go': os.kill({target}, {int(number)})\nprint('here')"
    brief = replace(TIGHT, wall_s=1.0)
    attacked, after = box.run(Program(source), (b"go\n", b"rest\n"), brief)
    assert attacked.status in ("exited", "time")
    assert (after.status, after.stdout) == ("exited", b"here\n")


def test_there_is_no_network_and_no_way_to_the_hypervisor(box: BwrapBox) -> None:
    families = [f"socket.socket({family}, socket.SOCK_RAW)" for family in (16, 17, 40)]
    stream = "socket.socket(40, socket.SOCK_STREAM)"
    alg = "socket.socket(38, socket.SOCK_SEQPACKET)"
    away = "socket.create_connection(('192.0.2.1', 80), 1)"
    assert printed(box, attempts(*families, stream, alg, away)) == []


def test_what_one_program_leaves_the_next_does_not_find(box: BwrapBox) -> None:
    leave = f"""
for path in ("/tmp/left", "/dev/shm/left"): open(path, "w").write("hello")
call({MQ_OPEN}, b"left", os.O_CREAT | os.O_RDWR, 0o666, 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: signal.pause()
"""
    find = attempts("os.stat('/tmp/left')", "os.stat('/dev/shm/left')")
    find += f"attempt('queue', lambda: call({MQ_OPEN}, b'left', os.O_RDWR, 0, 0))\n"
    find += "print([pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) > 3])"
    run(box, ATTEMPTS + leave)
    assert printed(box, find) == ["[]"]


@pytest.mark.parametrize(
    ("source", "statuses"),
    [
        (
            "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
            {"processes"},
        ),
        ("blocks = [bytearray(1 << 24) for _ in range(1000)]", {"memory"}),
        (
            "for i in range(200): open(f'/dev/shm/{i}', 'wb').write(bytes(1 << 19))",
            {"exited", "memory"},
        ),
    ],
    ids=["fork bomb", "memory bomb", "disk fill"],
)
def test_a_bomb_ends_as_a_value(box: BwrapBox, source: str, statuses: set[str]) -> None:
    # Room for many more processes than are allowed, so that it is no race which limit comes first.
    limits = replace(TIGHT, memory_bytes=2 << 30) if "fork" in source else TIGHT
    [outcome] = box.run(Program(source), [b""], limits)
    assert outcome.status in statuses
    assert outcome.exit_code != 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="i386 calls are made on x86_64")
def test_a_call_of_another_architecture_kills(box: BwrapBox) -> None:
    source = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")  # getpid through int 0x80
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
"""
    assert run(box, source)[0].exit_code == -signal.SIGSYS
