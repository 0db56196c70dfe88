"""The published evaluator's way of running programs, the correct ones it fails included."""

import pytest

from podium.sandbox import Box, Limits
from podium.suites.code_grading import ProgramCase, ProgramTests, Rules, judge_program

SUM = ProgramTests(
    (ProgramCase("4\n5\n", "9\n"), ProgramCase("1\n2\n", "3"), ProgramCase("0\n0\n", "0\n"))
)
JOIN = ProgramTests((ProgramCase("[1, 2]\n3", "[1, 2, 3]"), ProgramCase("[]\n1", "[1]")), "join")
QUICK = Limits(memory_bytes=512 << 20)
ADD = "print(int(input()) + int(input()))"

FAILED_THERE = {
    "iterates": "import sys\nprint(sum(int(line) for line in sys.stdin))",
    "reads lines as bytes": "import sys\nline = sys.stdin.buffer.readline\n"
    "print(int(line()) + int(line()))",
    "a line, then the rest": "import sys\na = int(sys.stdin.readline())\n"
    "print(a + int(sys.stdin.read()))",
    "opens 0": "print(sum(map(int, open(0).read().split())))",
    "opens 0 to iterate": "print(sum(int(line) for line in open(0)))",
    "reads descriptor 0": "import os\nprint(sum(map(int, os.read(0, 99).split())))",
    "writes bytes": f"import sys\nsys.stdout.buffer.write(b'%d' % ({ADD[6:-1]}))",
    "imports stdout": f"from sys import stdout\nstdout.write(str({ADD[6:-1]}))",
    "global": f"n = 0\ndef f():\n    global n\n    n += {ADD[6:-1]}\nf()\nprint(n)",
    "quit": f"{ADD}\nquit()",
    "os._exit": f"import os, sys\n{ADD}\nsys.stdout.flush()\nos._exit(0)",
    "guard in the middle": f"if __name__ == '__main__':\n    {ADD}\nx = 1",
    "guard the other way round": f"if '__main__' == __name__:\n    {ADD}",
    "ends before its thread": "import threading, time\ndef f():\n    time.sleep(0.3)\n    "
    f"{ADD}\nthreading.Thread(target=f).start()",
    "resource": f"import resource\n{ADD}",
    "environment": f"import os\nos.environ['A'] = '1'\n{ADD}",
    "class Solution": f"class Solution:\n    def f(self):\n        {ADD}\nSolution().f()",
    "future": f"from __future__ import annotations\n{ADD}",
}
"""Correct programs that a real process runs and the published evaluator fails."""

PASSED_THERE = {
    "input": ADD,
    "guard at the end": f"def main():\n    {ADD}\nif __name__ == '__main__':\n    main()",
    "read": "import sys\nprint(sum(map(int, sys.stdin.read().split())))",
    "read bytes": "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
    "lines": "import sys\nprint(sum(int(one) for one in sys.stdin.readlines() if one))",
    "readline": "import sys\ninput = sys.stdin.readline\nprint(int(input()) + int(input()))",
    "imported stdin": "from sys import stdin\nprint(int(stdin.readline()) + int(stdin.readline()))",
    "fileinput": "import fileinput\nprint(sum(int(line) for line in fileinput.input()))",
    "until the end": "total = 0\nwhile True:\n    try:\n        total += int(input())\n"
    "    except EOFError:\n        break\nprint(total)",
    "exit": f"{ADD}\nexit()",
    "sys.exit": f"import sys\n{ADD}\nsys.exit(0)",
    "joined thread": f"import threading\ndef f():\n    {ADD}\n"
    "t = threading.Thread(target=f)\nt.start()\nt.join()",
    "recursion": "import sys\nsys.setrecursionlimit(10**6)\ndef f(n):\n"
    f"    return 0 if n == 0 else f(n - 1)\nf(40_000)\n{ADD}",
    "star names": f"assert gcd(4, 6) == 2 and deque([1]) and Counter('a')\n{ADD}",
}


def passes(program: str, tests: ProgramTests, box: Box, rules: Rules = "official") -> bool:
    return judge_program(program, tests, box, QUICK, rules=rules).passed


@pytest.mark.parametrize("name", FAILED_THERE)
def test_correct_programs_that_the_published_evaluator_fails_fail_by_its_rules_only(
    name: str, subprocess_box: Box
) -> None:
    assert passes(FAILED_THERE[name], SUM, subprocess_box, "real")
    assert not passes(FAILED_THERE[name], SUM, subprocess_box)


@pytest.mark.parametrize("name", PASSED_THERE)
def test_what_the_published_evaluator_passes_passes_by_its_rules(
    name: str, subprocess_box: Box
) -> None:
    assert passes(PASSED_THERE[name], SUM, subprocess_box)


def test_both_rules_hold_in_every_box(any_box: Box) -> None:
    assert not passes(FAILED_THERE["iterates"], SUM, any_box)
    assert passes(FAILED_THERE["iterates"], SUM, any_box, "real")
    assert passes(PASSED_THERE["fileinput"], SUM, any_box)
    assert passes(METHODS["typed"], JOIN, any_box)


@pytest.mark.docker
def test_a_program_finds_numpy_where_the_image_has_it(docker_box: Box) -> None:
    program = f"import numpy as np\n{ADD[:-1]} + np.zeros(1, int)[0])"
    assert passes(program, SUM, docker_box)
    assert passes(
        "import numpy as np\ndef join(xs, x): return [*xs, np.int64(x)]", JOIN, docker_box
    )


METHODS = {
    "typed": "class Solution:\n    def join(self, xs: List[int], x: int) -> List[int]:\n"
    "        return xs + [x]",
    "noisy tuple": "class Solution:\n    def join(self, xs, x):\n        print(xs)\n"
    "        return (*xs, x)",
    "function": "def join(xs, x):\n    xs.append(x)\n    return xs",
    "subclass": "class Row(list): pass\ndef join(xs, x): return Row([*xs, Fraction(x)])\n"
    "from fractions import Fraction",
}


@pytest.mark.parametrize("name", METHODS)
def test_a_right_method_passes_by_the_published_rules(name: str, subprocess_box: Box) -> None:
    assert passes(METHODS[name], JOIN, subprocess_box)


@pytest.mark.parametrize(
    ("program", "summary"),
    [
        ("def join(xs, x): return xs", "test 1 of 2: wrong answer"),
        ("def join(xs, x): return {x}", "test 1 of 2: wrong answer (returned a value that is"),
        ("def join(xs, x): return [xs, {x}]", "test 1 of 2: wrong answer (returned a value that"),
        ("def join(xs, x): return 1 / 0", "test 1 of 2: runtime error (ZeroDivisionError("),
        ("def join(xs, x): exit()", "test 1 of 2: runtime error (SystemExit("),
        ("exit()\ndef join(xs, x): return xs + [x]", "test 1 of 2: runtime error (SystemExit("),
        ("def other(xs, x): return xs + [x]", "test 1 of 2: runtime error (AttributeError("),
        ("def join(xs, x", "test 1 of 2: runtime error (SyntaxError("),
        ("def join(xs, x):\n    import os\n    os._exit(0)", "test 1 of 2: runtime error (the pr"),
    ],
)
def test_a_wrong_method_fails_by_the_published_rules(
    program: str, summary: str, subprocess_box: Box
) -> None:
    found = judge_program(program, JOIN, subprocess_box, QUICK, rules="official")
    assert found.summary().startswith(summary)
    assert found.verdicts[1:] == ("not run",)


def test_by_the_published_rules_state_carries_over_from_test_to_test(subprocess_box: Box) -> None:
    program = (
        "class Solution:\n    calls = 0\n    def join(self, xs, x):\n        self.calls += 1\n"
        "        return xs + [x] if self.calls == 1 else self.calls"
    )
    found = judge_program(program, JOIN, subprocess_box, QUICK, rules="official")
    assert found.verdicts == ("pass", "wrong answer")
    assert passes("seen = []\ndef join(xs, x): return seen or [*xs, x]", JOIN, subprocess_box)


@pytest.mark.slow
def test_the_alarm_ends_a_slow_test_and_a_program_may_swallow_it(subprocess_box: Box) -> None:
    sleeps = "import time\ntime.sleep(60)"
    found = judge_program(sleeps, SUM, subprocess_box, QUICK, rules="official")
    assert found.summary() == "test 1 of 3: time limit (TimeoutException())"
    assert 5.9 < found.results[0].wall_s < 9
    assert 0.98 < found.margin < 1.5
    swallows = f"import time\ntry:\n    time.sleep(60)\nexcept Exception:\n    {ADD}"
    found = judge_program(swallows, SUM, subprocess_box, QUICK, rules="official")
    assert found.summary() == "test 1 of 3: wrong answer", "the alarm prints a line of its own"
