"""What every box promises of a run, tested on each box that this machine has."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from podium.sandbox import Box, Limits, Program, SandboxError, open_box
from tests.sandbox.boxes import TIGHT, run

SPIN = "while True: pass"
FORK_BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
BOMB = "b = bytearray(1 << 30)\nfor place in range(0, 1 << 30, 4096): b[place] = 1"
LATE = """
import threading, time
def late():
    time.sleep(0.2)
    print("late")
threading.Thread(target=late).start()
print("early")
"""
BIG_STACKS = """
import sys, threading
sys.setrecursionlimit(1 << 20)
threading.stack_size(256 << 20)
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
found = []
threads = [threading.Thread(target=lambda: found.append(depth(20_000))) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(sum(found))
"""
SLEEPERS = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        end = time.process_time() + 5
        while time.process_time() < end: pass
        os._exit(0)
time.sleep(60)
"""


def test_a_program_reads_standard_input_and_writes_standard_output(any_box: Box) -> None:
    first, second = run(any_box, "print(input()[::-1])", b"stressed\n", b"drawer\n")
    assert (first.status, first.exit_code, first.stdout) == ("exited", 0, b"desserts\n")
    assert second.stdout == b"reward\n"
    assert 0 < first.cpu_s <= first.wall_s + 0.05


@pytest.mark.parametrize(
    ("program", "status"),
    [
        (SPIN, "time"),
        ("import time; time.sleep(60)", "time"),
        (SLEEPERS, "time"),
        (BOMB, "memory"),
        ("b = bytearray(1 << 50)", "memory"),
        ("while True: print('x' * 1000)", "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "time"),
        (FORK_BOMB, "processes"),
    ],
    ids=["loop", "sleep", "children", "bomb", "request", "flood", "stderr", "fork bomb"],
)
def test_a_program_over_a_limit_ends_as_a_value(any_box: Box, program: str, status: str) -> None:
    [outcome] = run(any_box, program)
    if (any_box.name, program) == ("docker:runsc", FORK_BOMB):  # gVisor forks too slowly for more
        assert outcome.status in ("time", "processes")
    else:
        assert outcome.status == status
    assert max(len(outcome.stdout), len(outcome.stderr)) <= TIGHT.output_bytes


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("import sys; sys.exit(3)", 3),
        ("raise SystemExit", 0),
        ("quit()", 0),
        ("1 / 0", 1),
        ("def (", 1),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os._exit(7)", 7),
    ],
)
def test_a_program_that_ends_itself_reports_its_exit_code(
    any_box: Box, program: str, code: int
) -> None:
    [outcome] = run(any_box, program)
    assert (outcome.status, outcome.exit_code) == ("exited", code), outcome  # with its seconds


def test_the_last_line_of_an_exception_is_on_stderr_without_our_frames(any_box: Box) -> None:
    [outcome] = run(any_box, "def f():\n    1 / 0\nf()")
    said = outcome.stderr.decode().splitlines()
    assert said[-1] == "ZeroDivisionError: division by zero"
    assert [line for line in said if "File" in line] == [
        '  File "solution.py", line 3, in <module>',
        '  File "solution.py", line 2, in f',
    ]


FLOODS = {
    "one process": "for _ in range(3200): os.write(2, bytes(1 << 16))",
    "print": "for _ in range(3200): print('x' * 65535, file=sys.stderr)",
    "opened anew": "with open('/dev/stderr', 'w') as file:\n"
    "    for _ in range(3200): file.write('x' * 65536)",
    "a child that stays": "if os.fork() == 0:\n    while True: os.write(2, bytes(1 << 16))\n"
    "time.sleep(0.2)",
    "threads": "def flood():\n    for _ in range(800): os.write(2, bytes(1 << 16))\n"
    "many = [threading.Thread(target=flood) for _ in range(4)]\n"
    "for one in many: one.start()\nfor one in many: one.join()",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_right_program_may_write_any_amount_to_stderr(any_box: Box, flood: str) -> None:
    source = f"import os, sys, threading, time\n{FLOODS[flood]}\nprint(input()[::-1])"
    [outcome] = run(any_box, source, b"stressed\n", limits=Limits())
    assert (outcome.status, outcome.exit_code, outcome.stdout) == ("exited", 0, b"desserts\n")


@pytest.mark.parametrize("runner", ["call", "official"])
def test_a_method_may_write_any_amount_to_stderr_on_every_input(any_box: Box, runner: str) -> None:
    source = (
        "import os\ndef f(x):\n    for _ in range(300): os.write(2, bytes(1 << 16))\n    return x"
    )
    pure = "import sys\ndef f(x):\n    print('x' * (9 << 20), file=sys.stderr)\n    return x"
    for program in (source, pure):
        outcomes = list(any_box.run(Program(program, runner, "f"), [b"[1]", b"[2]"], Limits()))  # type: ignore[arg-type]
        assert [json.loads(one.result) for one in outcomes] == [{"returned": 1}, {"returned": 2}]


def test_the_end_of_a_flood_is_kept(any_box: Box) -> None:
    source = "import os\nfor _ in range(300): os.write(2, bytes(1 << 16))\n1 / 0"
    [outcome] = run(any_box, source, limits=Limits())
    assert (outcome.status, outcome.exit_code) == ("exited", 1)
    assert outcome.stderr.endswith(b"ZeroDivisionError: division by zero\n")


def test_a_byte_order_mark_is_no_syntax_error(any_box: Box) -> None:
    assert run(any_box, "\ufeffprint(1)")[0].stdout == b"1\n"


def test_threads_are_joined_and_open_files_flushed(any_box: Box) -> None:
    [joined] = run(any_box, LATE)
    [flushed] = run(any_box, "file = open(1, 'w', closefd=False)\nfile.write('kept back')")
    [registered] = run(any_box, "import atexit; atexit.register(print, 'bye')")
    assert joined.stdout == b"early\nlate\n"
    assert flushed.stdout == b"kept back"
    assert registered.stdout == b"bye\n"


def test_threads_with_large_stacks_pass_although_memory_is_limited(any_box: Box) -> None:
    [outcome] = run(any_box, BIG_STACKS, limits=replace(TIGHT, cpu_s=20.0, wall_s=60.0))
    assert (outcome.stdout, outcome.status) == (b"160000\n", "exited"), outcome.stderr


def test_standard_input_is_a_true_descriptor(any_box: Box) -> None:
    read = (
        "import os, sys\nprint(os.read(0, 2), sys.stdin.readline(), next(iter(sys.stdin)), end='')"
    )
    opened = "print(open('/dev/stdin').read() + open(0, closefd=False).read(), open(0).read())"
    [mixed] = run(any_box, read, b"ab" + b"cd\nef\n")
    assert mixed.stdout == b"b'ab' cd\n ef\n"
    [both] = run(any_box, opened, b"gh")
    assert (both.stdout, both.stderr) == (b"ghgh \n", b"")


def test_a_method_is_called_in_a_fresh_process_each_time(any_box: Box) -> None:
    source = "seen = []\nclass Solution:\n    def f(self, x): seen.append(x); return (seen, {1: x})"
    outcomes = list(any_box.run(Program(source, "call", "f"), [b"[1]", b'["a"]'], TIGHT))
    assert [json.loads(outcome.result)["returned"] for outcome in outcomes] == [
        {"tuple": [{"list": [given]}, {"dict": [[1, given]]}]} for given in (1, "a")
    ]


def test_what_is_no_plain_builtin_is_not_returned(any_box: Box) -> None:
    source = "class Same(list):\n    def __eq__(self, other): return True\ndef f(): return Same()"
    [outcome] = list(any_box.run(Program(source, "call", "f"), [b"[]"], TIGHT))
    assert outcome.result == b""
    assert outcome.stderr.splitlines()[-1] == b"TypeError: a Same is no plain builtin value"


def test_nothing_of_one_run_is_there_for_the_next(any_box: Box) -> None:
    leave = "import os\nopen('left', 'w').write('x')\nos.mkdir('d'); os.chmod('d', 0)"
    look = "import os; print(os.listdir('.'))"
    run(any_box, leave)
    assert run(any_box, look)[0].stdout == b"[]\n"


def test_inputs_are_taken_one_at_a_time_and_the_rest_not_at_all(any_box: Box) -> None:
    taken: list[int] = []

    def inputs() -> object:
        for number in range(5):
            taken.append(number)
            yield b"%d" % number

    with closing(any_box.run(Program("print(input())"), inputs(), TIGHT)) as outcomes:  # type: ignore[arg-type]
        assert next(outcomes).stdout == b"0\n"
        assert next(outcomes).stdout == b"1\n"
    assert taken == [0, 1]


def test_large_inputs_and_outputs_pass_whole(any_box: Box) -> None:
    data = bytes(range(256)) * (40 << 12)  # 40 MiB, no valid text
    roomy = Limits(cpu_s=4, wall_s=10, memory_bytes=256 << 20, output_bytes=64 << 20)
    source = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
    [outcome] = run(any_box, source, data, limits=roomy)
    assert outcome.stdout == data[::-1]


def test_facts_name_the_box_and_its_python(any_box: Box) -> None:
    facts = any_box.facts()
    assert facts.box == any_box.name
    assert facts.python.startswith("3.")
    assert (facts.image_id is None) == (not any_box.name.startswith("docker"))


def test_an_unknown_box_is_refused_with_the_known_ones() -> None:
    known = "bwrap, docker, docker:runsc, subprocess"
    with pytest.raises(SandboxError, match=f"Known boxes: {known}"):
        open_box("cardboard")


def test_long_integers_are_printed_and_returned(any_box: Box) -> None:
    assert len(run(any_box, "print(10**9_000)")[0].stdout) == 9_002
    [outcome] = any_box.run(Program("def f(): return 10**9_000", "call", "f"), [b"[]"], TIGHT)
    assert len(outcome.result) > 9_000


@pytest.mark.slow
def test_what_other_processes_use_is_not_counted(any_box: Box) -> None:
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(3)]
    try:
        [outcome] = run(any_box, "import time; time.sleep(0.8)")
    finally:
        for one in others:
            one.kill()
            one.wait()
    assert outcome.status == "exited"
    assert outcome.cpu_s < 0.5


def test_the_subprocess_box_leaves_no_folder() -> None:
    before = set(Path("/tmp").glob("podium-box-*"))
    box = open_box("subprocess", 1)
    list(box.run(Program("x = input()", "official"), [b"1", b"2"], TIGHT))
    box.close()
    assert not set(Path("/tmp").glob("podium-box-*")) - before


def test_a_closed_box_runs_nothing_more() -> None:
    box = open_box("subprocess")
    assert run(box, "print(1)")[0].stdout == b"1\n"
    box.close()
    with pytest.raises(SandboxError, match="closed"):
        run(box, "print(1)")
