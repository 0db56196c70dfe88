"""Equality of answers: what the first look decides, and the process that asks math-verify."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from suites import equality_process
from suites.equality import LONGEST, compare, contradicts_itself, first_look
from suites.equality_process import EqualityError, Worker, Workers, math_verify_says
from suites.latex import spelled
from suites.quantities import rational

TOWER = r"2003^{2002^{2001}}"

FIRST: dict[str, tuple[str, str, bool | None]] = {
    "same-text": ("p - q", "p-q", True),
    "same-integer": ("7", "007", True),
    "other-integer": ("7", "70", False),
    "fraction-and-decimal": (r"\frac{1}{2}", "0.5", True),
    "rounded-third": (r"\frac{1}{3}", "0.333333", True),
    "third-rounded-too-much": (r"\frac{1}{3}", "0.33", False),
    "six-places-of-another-number": (r"\frac{1}{3}", "0.333334", False),
    "no-rounding-of-a-decimal": ("1.25", "1.2500001", False),
    "division-by-zero": ("5", "5/0", None),
    "list-for-a-value": ("5", "5, 6", False),
    "list-for-a-list": ("1,-2", "-2,1", None),
    "no-letter-and-no-digit": ("5", r"\%", False),
    "another-base": ("52_8", "52_7", False),
    "base-ten": ("52", "52_{10}", True),
    "a-base-too-many": ("52", "52_8", False),
    "a-word": (r"\text{even}", "Even", True),
    "another-word": (r"\text{even}", "odd", False),
    "two-names": ("y=2", "x=2", None),
    "needs-algebra": ("2x", "x+x", None),
}


@pytest.mark.parametrize(("target", "answer", "said"), FIRST.values(), ids=FIRST.keys())
def test_the_first_look_decides_or_abstains(target: str, answer: str, said: bool | None) -> None:
    assert first_look(target, answer) is said


def test_a_number_is_read_exactly_and_nothing_else_is_a_number() -> None:
    assert rational(spelled(r"-1\tfrac{4}{5}")) == Fraction(-9, 5)
    assert rational(spelled(r"6.72 \times 10^{-5}")) == Fraction(672, 10_000_000)
    assert rational("1" * 5000) is rational("1e5") is rational("5/0") is rational("x") is None


def test_a_long_answer_equals_nothing_and_costs_no_time() -> None:
    started = time.monotonic()
    assert not compare("5", "5" + " " * LONGEST + "+0").equal
    assert time.monotonic() - started < 20


def test_a_comparison_without_an_end_is_not_equal_and_says_so() -> None:
    assert math_verify_says("5", "6+x", 6) is False  # started and warm
    started = time.monotonic()
    verdict = compare("5", TOWER)
    assert (verdict.equal, verdict.gave_up) == (False, True)
    assert time.monotonic() - started < 5 * equality_process.CPU_S  # a busy machine is slower
    assert compare("5", "x+5-x").equal


def test_a_verdict_is_kept() -> None:
    compare("5", TOWER)
    started = time.monotonic()
    assert compare("5", TOWER).gave_up
    assert time.monotonic() - started < 20


HOSTILE = (
    "__import__('os').system('touch {}')",
    r"\text{{__import__('os').system('touch {}')}}",
    r"\operatorname{{__import__('os').system}}(touch {})",
    r"\mathrm{{eval}}(open('{}','w'))",
    "(lambda: open('{}', 'w'))()",
    r"\boxed{{exec(\"open('{}','w')\")}}",
    r"\frac{{open('{}','w')}}{{1}}",
    r"x_{{open('{}','w')}}",
    r"f(open('{}','w'))",
    "[c for c in ().__class__.__base__.__subclasses__()][0]('{}')",
)


@pytest.mark.parametrize("attack", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_answer_leaves_no_trace(attack: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    assert math_verify_says("5", attack.format(trace), 6) is not True
    assert math_verify_says(attack.format(trace), "5", 6) is not True
    assert not trace.exists()


def test_the_process_has_no_environment_but_path_and_no_file_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        worker = Worker()
        process = Path(f"/proc/{worker.pid}")
        names = {entry.split(b"=")[0] for entry in (process / "environ").read_bytes().split(b"\0")}
        opened = {str(path.readlink()) for path in (process / "fd").iterdir()}
        limits = (process / "limits").read_text()
        worker.end()
    assert names - {b""} == {b"PATH"}
    assert {target.partition(":")[0] for target in opened} == {"pipe", os.devnull}
    assert "Max file size             0 " in limits


def test_a_process_that_was_killed_is_replaced() -> None:
    workers = Workers(1)
    line = b'{"pairs": [["5", "5", 6]]}\n'
    assert workers.ask(line) == {"equal": [True]}
    os.kill(workers.pids()[0], signal.SIGKILL)
    assert workers.ask(line) == {"equal": [True]}
    workers.end()


def test_threads_share_as_many_processes_as_are_allowed() -> None:
    workers = Workers(2)
    lines = [b'{"pairs": [["%d", "x+%d-x", 6]]}\n' % (n, n % 7) for n in range(40)]
    with ThreadPoolExecutor(8) as threads:
        said = [answer["equal"][0] for answer in threads.map(workers.ask, lines)]
    assert said == [n == n % 7 for n in range(40)]
    assert 1 <= len(workers.pids()) <= 2
    workers.end()
    assert workers.pids() == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_asks_a_process_of_its_own() -> None:
    assert math_verify_says("5", "x+5-x", 6)
    before = equality_process.WORKERS.pids()
    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the fork
        own = not equality_process.WORKERS.pids() and math_verify_says("7", "x+7-x", 6)
        os._exit(0 if own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert equality_process.WORKERS.pids() == before
    assert math_verify_says("8", "x+8-x", 6)


def test_a_process_that_cannot_start_is_our_failure_and_no_verdict(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such library')\n")
    with pytest.raises(EqualityError, match="no such library"):
        Worker([sys.executable, "-I", str(broken)])


GUARDED = """
import runpy, subprocess, socket, sys
worker = runpy.run_path(sys.argv[1])
sys.addaudithook(worker["_refuse"])
attempts = {
    "eval": lambda: eval("1 + 1"),
    "exec": lambda: exec("x = 1"),
    "write": lambda: open(sys.argv[2], "w"),
    "program": lambda: subprocess.run(["true"]),
    "socket": lambda: socket.socket(),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except PermissionError:
        print(name)
"""


def test_the_process_can_run_no_string_write_no_file_start_no_program_and_call_nobody(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", GUARDED, str(equality_process.PROGRAM), str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["eval", "exec", "write", "program", "socket"]
