"""Judging programs: official comparison, early stop, and expected outputs that stay outside."""

import json

import pytest

from sandbox import Limits, SubprocessBox
from suites.programs import Case, ProgramTests, judge, read_tests, same_output

QUICK = Limits(cpu_s=1, wall_s=2, memory_bytes=256 << 20, output_bytes=200_000, processes=12)
DOUBLE = ProgramTests((Case("4\n", "8\n"), Case("5\n", "10\n"), Case("0\n", "0\n")))
JOIN = ProgramTests((Case("[1, 2]\n3", "[1, 2, 3]"), Case("[]\n1", "[1]")), "join")
SECRET = "8675309"
HUNT = ProgramTests((Case("1\n", SECRET),))
HUNT_METHOD = ProgramTests((Case("1", SECRET),), "join")

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


def verdicts(program: str, tests: ProgramTests) -> list[str]:
    return list(judge(program, tests, SubprocessBox(), QUICK).verdicts)


def test_a_right_program_passes_every_test() -> None:
    judgement = judge("print(2 * int(input()))", DOUBLE, SubprocessBox(), QUICK)
    assert judgement.passed
    assert judgement.summary == "all 3 tests passed"


def test_no_tests_at_all_is_no_pass() -> None:
    assert not judge("print(1)", ProgramTests(()), SubprocessBox(), QUICK).passed


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("print(int(input()) + 3)", "wrong answer"),
        ("", "wrong answer"),
        ("print(", "runtime error"),
        ("1 / 0", "runtime error"),
        ("print(2 * int(input())); import sys; sys.exit(1)", "runtime error"),
        ("while True: pass", "time limit"),
        ("block = bytearray(1 << 30)", "memory limit"),
        ("while True: print('x' * 1000)", "runtime error"),
        ("\ud800", "runtime error"),
    ],
    ids=["wrong", "empty", "syntax", "exception", "exit", "loop", "memory", "flood", "surrogate"],
)
def test_a_wrong_program_fails_with_its_own_verdict_and_stops_early(
    program: str, verdict: str
) -> None:
    found = verdicts(program, DOUBLE)
    assert verdict in found
    assert found[found.index(verdict) + 1 :] == ["not run"] * (2 - found.index(verdict))


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
def test_programs_that_the_official_mocks_fail_pass_in_a_real_process(program: str) -> None:
    assert set(verdicts(program, DOUBLE)) == {"pass"}


@pytest.mark.parametrize(
    "program",
    [
        "class Solution:\n    def join(self, xs: List[int], x: int):\n        return xs + [x]",
        "class Solution:\n    def join(self, xs, x):\n        print(xs)\n        return (*xs, x)",
        "def join(xs, x):\n    xs.append(x)\n    return xs",
    ],
    ids=["typed", "noisy tuple", "plain function"],
)
def test_a_right_method_passes_whatever_it_prints(program: str) -> None:
    assert verdicts(program, JOIN) == ["pass", "pass"]


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("class Solution:\n    def join(self, xs, x): return xs", "wrong answer"),
        ("class Solution:\n    def other(self): pass", "runtime error"),
        ("class Solution:\n    def join(self, xs, x): return {x}", "runtime error"),
        ("class Solution:\n    def join(self, xs, x): return 1 / 0", "runtime error"),
        ("import os\nos._exit(0)", "runtime error"),
        ("class Solution:\n    def join(self, xs, x):\n        while True: pass", "time limit"),
        ("print('[1, 2, 3]')", "runtime error"),
        ("", "runtime error"),
    ],
    ids=["wrong", "no method", "not JSON", "exception", "exit", "loop", "prints", "empty"],
)
def test_a_wrong_method_fails_with_its_own_verdict(program: str, verdict: str) -> None:
    assert verdicts(program, JOIN) == [verdict, "not run"]


def test_a_slow_test_after_a_fast_one_is_the_one_that_fails() -> None:
    program = "def join(xs, x):\n    while not xs: pass\n    return xs + [x]"
    assert verdicts(program, JOIN) == ["pass", "time limit"]


def test_a_program_that_searches_for_the_expected_output_finds_nothing() -> None:
    assert verdicts(SEARCH + "print(found)", HUNT) == ["wrong answer"]
    method = SEARCH + "def join(x):\n    return int(found) if found.isdigit() else found"
    assert verdicts(method, HUNT_METHOD) == ["wrong answer"]
    honest = SEARCH.replace('"nothing"', "needle") + "print(found)"
    assert verdicts(honest, HUNT) == ["pass"], "the search itself runs to its end"


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ("3\n", "3", True),
        ("  3 \n", "3", True),
        ("1.0", "1.00", True),
        ("1  2", "1 2", True),
        ("1e2", "100", True),
        ("a  b", "a b", False),
        ("1 2", "1\n2", False),
        ("Yes", "YES", False),
        ("0.3000001", "0.3", False),
        ("1\n\n2", "1\n2", False),
        ("", "0", False),
        ("sNaN", "1", False),
    ],
)
def test_outputs_are_compared_by_the_official_rule(got: str, expected: str, same: bool) -> None:
    assert same_output(got, expected) is same


def test_tests_survive_the_way_through_a_target() -> None:
    assert read_tests(JOIN.as_json()) == JOIN
    assert read_tests(json.dumps(json.loads(DOUBLE.as_json()))) == DOUBLE
