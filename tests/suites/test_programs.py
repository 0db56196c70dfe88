"""Judging programs as true processes: their verdicts, and expected outputs that stay outside."""

import json

import pytest

from podium.sandbox import Box, Limits
from podium.suites.code_grading import ProgramCase, ProgramTests, judge_program, read_tests

QUICK = Limits(cpu_s=0.5, wall_s=5, memory_bytes=256 << 20, output_bytes=200_000, processes=12)
DOUBLE = ProgramTests(
    (ProgramCase("4\n", "8\n"), ProgramCase("5\n", "10\n"), ProgramCase("0\n", "0\n"))
)
JOIN = ProgramTests((ProgramCase("[1, 2]\n3", "[1, 2, 3]"), ProgramCase("[]\n1", "[1]")), "join")
SECRET = "8675309"
HUNT = ProgramTests((ProgramCase("1\n", SECRET),))
HUNT_METHOD = ProgramTests((ProgramCase("1", SECRET),), "join")

# Looks for the expected output where a careless grader would leave it: files, environment,
# descriptors, the memory of the program's own process, its parent's command line.
SEARCH = f"""
import gc, os, sys
seen = []
for folder, _, names in os.walk("."):
    for name in names:
        seen.append(open(os.path.join(folder, name), errors="replace").read())
seen += [str(dict(os.environ)), str(sys.argv)]
for place in ("cmdline", "environ"):
    for pid in ("self", str(os.getppid())):
        try:
            seen.append(open(f"/proc/{{pid}}/{{place}}", errors="replace").read())
        except OSError:
            pass
seen += [thing for thing in gc.get_objects() if isinstance(thing, str)]
frame = sys._getframe()
while frame:
    seen.append(str(frame.f_locals) + str(frame.f_globals))
    frame = frame.f_back
needle = "".join({list(SECRET)!r})
found = needle if any(needle in text for text in seen) else "nothing"
"""


def verdicts(box: Box, program: str, tests: ProgramTests) -> list[str]:
    return list(judge_program(program, tests, box, QUICK).verdicts)


def test_a_right_program_passes_every_test(any_box: Box) -> None:
    judgement = judge_program("print(2 * int(input()))", DOUBLE, any_box, QUICK)
    assert judgement.passed
    assert judgement.summary() == "all 3 tests passed"
    assert 0 < judgement.margin < 0.8
    assert not judgement.fragile
    assert (judgement.reruns, judgement.rerun_s) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "summary"),
    [
        ("print(int(input()) + 4)", "test 2 of 3: wrong answer"),
        ("", "test 1 of 3: wrong answer"),
        ("print(", "test 1 of 3: runtime error (SyntaxError: '(' was never closed)"),
        ("1 / 0", "test 1 of 3: runtime error (ZeroDivisionError: division by zero)"),
        ("print(8); exit(3)", "test 1 of 3: runtime error (exit code 3)"),
        ("import os; os.kill(os.getpid(), 11)", "test 1 of 3: runtime error (killed by SIGSEGV)"),
        ("while True: pass", "test 1 of 3: time limit"),
        ("import time; time.sleep(60)", "test 1 of 3: time limit"),
        ("block = bytearray(1 << 50)", "test 1 of 3: memory limit"),
        ("raise MemoryError", "test 1 of 3: memory limit"),
        ("while True: print('x' * 1000)", "test 1 of 3: output limit"),
        ("raise ValueError('x' * 500)", "test 1 of 3: runtime error (ValueError: "),
        ("\ud800", "test 1 of 3: runtime error (SyntaxError: "),
    ],
)
def test_a_wrong_program_fails_with_its_own_verdict_and_stops_early(
    program: str, summary: str, subprocess_box: Box
) -> None:
    found = judge_program(program, DOUBLE, subprocess_box, QUICK)
    assert found.summary().startswith(summary)
    assert len(found.summary()) < 250
    assert found.verdicts[2] == "not run"
    assert not found.passed


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nfor line in sys.stdin: print(2 * int(line))",
        "import sys\nprint(2 * int(sys.stdin.buffer.readline()))",
        "print(2 * int(open(0).read()))",
        "import os\nos.write(1, str(2 * int(os.read(0, 99))).encode())",
        "n = int(input())\ndef f():\n    global n\n    n *= 2\nf()\nprint(n)\nquit()",
        "if __name__ == '__main__':\n    print(2 * int(input()))\nx = 1",
        "import threading\nthreading.Thread(target=lambda: print(2 * int(input()))).start()",
    ],
    ids=["iterate", "buffer", "open 0", "os.read", "global and quit", "main guard", "thread"],
)
def test_programs_that_the_official_mocks_fail_pass_in_a_real_process(
    program: str, subprocess_box: Box
) -> None:
    assert set(verdicts(subprocess_box, program, DOUBLE)) == {"pass"}


@pytest.mark.parametrize(
    "program",
    [
        "class Solution:\n    def join(self, xs: List[int], x: int):\n        return xs + [x]",
        "class Solution:\n    def join(self, xs, x):\n        print(xs)\n        return (*xs, x)",
        "def join(xs, x):\n    xs.append(x)\n    return xs",
    ],
    ids=["typed", "noisy tuple", "plain function"],
)
def test_a_right_method_passes_whatever_it_prints(program: str, subprocess_box: Box) -> None:
    assert verdicts(subprocess_box, program, JOIN) == ["pass", "pass"]


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("class Solution:\n    def join(self, xs, x): return xs", "wrong answer"),
        ("class Solution:\n    def other(self): pass", "runtime error"),
        ("class Solution:\n    def join(self, xs, x): return {x}", "wrong answer"),
        ("class Solution:\n    def join(self, xs, x): return [range(3)]", "runtime error"),
        ("class Solution:\n    def join(self, xs, x): return 1 / 0", "runtime error"),
        ("import os\nos._exit(0)", "runtime error"),
        ("class Solution:\n    def join(self, xs, x):\n        while True: pass", "time limit"),
        ("print('[1, 2, 3]')", "runtime error"),
        ("", "runtime error"),
        ('import os\nos.write(3, b\'{"returned": {"set": [\')\nos._exit(0)', "wrong answer"),
    ],
)
def test_a_wrong_method_fails_with_its_own_verdict(
    program: str, verdict: str, subprocess_box: Box
) -> None:
    assert verdicts(subprocess_box, program, JOIN) == [verdict, "not run"]


def test_methods_run_in_fresh_processes_so_no_state_carries_over(subprocess_box: Box) -> None:
    program = "seen = []\ndef join(xs, x):\n    seen.append(x)\n    return [*xs, len(seen) * x]"
    assert verdicts(subprocess_box, program, JOIN) == ["pass", "pass"]


def test_a_program_that_searches_for_the_expected_output_finds_nothing(any_box: Box) -> None:
    assert verdicts(any_box, SEARCH + "print(found)", HUNT) == ["wrong answer"]
    method = SEARCH + "def join(x):\n    return int(found) if found.isdigit() else found"
    assert verdicts(any_box, method, HUNT_METHOD) == ["wrong answer"]
    honest = SEARCH.replace('"nothing"', "needle") + "print(found)"
    assert verdicts(any_box, honest, HUNT) == ["pass"], "the search itself runs to its end"


def test_tests_survive_the_way_through_a_target() -> None:
    assert read_tests(JOIN.as_json()) == JOIN
    assert read_tests(json.dumps(json.loads(DOUBLE.as_json()))) == DOUBLE
