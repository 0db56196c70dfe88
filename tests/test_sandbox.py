"""The subprocess box: everything a program does wrong comes back as a value."""

import time
from pathlib import Path

import pytest

from sandbox import PYTHON, Box, Limits, Outcome, SandboxError, SubprocessBox, open_box

TIGHT = Limits(cpu_s=1, wall_s=1.5, memory_bytes=256 << 20, output_bytes=100_000, processes=12)
FORK_BOMB = (
    "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
)
ORPHAN = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
print(child.pid)
"""


def run(program: str, stdin: bytes = b"", limits: Limits = TIGHT) -> Outcome:
    command = (PYTHON, "-I", "-S", "main.py")
    return SubprocessBox().run({"main.py": program.encode()}, command, stdin, limits)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_reads_standard_input_and_writes_standard_output() -> None:
    outcome = run("print(input()[::-1])", b"stressed\n")
    assert (outcome.status, outcome.exit_code, outcome.stdout) == ("exited", 0, b"desserts\n")
    assert 0 < outcome.cpu_s < 1


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("while True: pass", "timeout"),
        ("import time; time.sleep(60)", "timeout"),
        ("block = bytearray(1 << 30)", "memory"),
        ("while True: print('x' * 1000)", "output"),
        ("open('big', 'wb').write(b'x' * 1_000_000)", "exited"),
        (FORK_BOMB, "processes"),
    ],
    ids=["endless loop", "sleep", "memory bomb", "output flood", "large file", "fork bomb"],
)
def test_a_program_over_a_limit_ends_as_a_value(program: str, status: str) -> None:
    started = time.monotonic()
    outcome = run(program)
    assert outcome.status == status
    assert outcome.exit_code != 0
    assert len(outcome.stdout) <= TIGHT.output_bytes
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("program", "code"),
    [("import sys; sys.exit(3)", 3), ("1 / 0", 1), ("import os; os.kill(os.getpid(), 9)", -9)],
    ids=["exit", "exception", "signal"],
)
def test_a_program_that_ends_itself_reports_its_exit_code(program: str, code: int) -> None:
    outcome = run(program)
    assert (outcome.status, outcome.exit_code) == ("exited", code)


def test_a_program_that_ignores_the_signal_of_the_cpu_limit_is_killed() -> None:
    program = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert run(program).status == "timeout"


def test_what_a_program_left_running_is_killed() -> None:
    pid = int(run(ORPHAN).stdout)
    deadline = time.monotonic() + 2
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


def test_the_working_directory_is_gone_afterwards() -> None:
    program = "import os; os.mkdir('d'); os.chmod('d', 0); os.chmod('.', 0o500); print(os.getcwd())"
    folder = Path(run(program).stdout.decode().strip())
    assert folder.is_absolute()
    assert not folder.exists()


def test_a_program_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    assert b"hunter2" not in run("import os; print(dict(os.environ))").stdout


def test_a_program_inherits_no_open_file(tmp_path: Path) -> None:
    secret = tmp_path / "expected.json"
    secret.write_text("42")
    with secret.open() as held:
        found = run(
            "import os; print([os.readlink('/proc/self/fd/' + n) for n in '3456789' "
            "if os.path.exists('/proc/self/fd/' + n)])"
        ).stdout
        assert held.name not in found.decode()


def test_the_boxs_own_failure_is_an_exception() -> None:
    with pytest.raises(SandboxError, match="empty command"):
        SubprocessBox().run({}, (), b"", TIGHT)
    with pytest.raises(SandboxError, match="leaves the box"):
        SubprocessBox().run({"../escape.py": b""}, (PYTHON, "x.py"), b"", TIGHT)


def test_an_unknown_box_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SandboxError, match="known boxes: subprocess"):
        open_box("cardboard")


def test_a_box_opened_by_name_keeps_its_name() -> None:
    box: Box = open_box("subprocess")
    assert box.name == "subprocess"
