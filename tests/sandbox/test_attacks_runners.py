"""Attacks on the ways a program is run: odd sources, odd values, and a process that is kept."""

import json
from dataclasses import replace
from typing import cast

import pytest

from podium.sandbox import Box, Program, ProgramOutcome
from podium.sandbox.box import decode
from tests.sandbox.boxes import TIGHT, run

pytestmark = pytest.mark.slow


def called(box: Box, source: str, *inputs: object) -> list[ProgramOutcome]:
    """Call `f` of a source once per list of arguments."""
    data = [json.dumps(one).encode() for one in inputs or ([],)]
    return list(box.run(Program(source, "call", "f"), data, TIGHT))


def kept(box: Box, source: str, count: int = 3) -> list[ProgramOutcome]:
    """Run a source the published way, on the inputs `0`, `1` and so on."""
    inputs = [f"{n}\n".encode() for n in range(count)]
    return list(box.run(Program(source, "official"), inputs, replace(TIGHT, wall_s=1.5)))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("print(1)\0", b""),
        ("print('\ud800')", b"?\n"),
        ("#" + "x" * (10 << 20) + "\nprint(2)", b"2\n"),
        ("print('''" + "y" * 500_000 + "''')", b"y" * 500_000 + b"\n"),
        ("# -*- coding: rot13 -*-\nprint(4)", b"4\n"),
        ("x = " + "(" * 5000 + ")" * 5000, b""),
        ("x = " + "-" * 1_000_000 + "1", b""),
    ],
    ids=["NUL", "half character", "10 MB", "long line", "codec", "nested", "unary"],
)
def test_an_odd_source_is_its_own_trouble(isolating: Box, source: str, said: bytes) -> None:
    (outcome,) = run(isolating, source)
    assert outcome.stdout == said
    assert run(isolating, "print(5)")[0].stdout == b"5\n"


LIES = """
class List(list):
    __eq__ = lambda *_: True
    __class__ = property(lambda self: list)
class Int(int):
    __eq__ = lambda *_: True
    __hash__ = int.__hash__
class Anything:
    __eq__ = lambda *_: True
    __class__ = int
    __reduce__ = lambda self: (print, ("pickled",))
"""


@pytest.mark.parametrize(
    "value",
    [
        *("List([1])", "[Int(1)]", "{Int(1): 2}", "Anything()", "type('str', (str,), {})('x')"),
        *("(n for n in range(3))", "open", "range(3)", "iter([])", "b''.join", "Ellipsis"),
    ],
)
def test_a_value_that_lies_about_itself_is_no_value(isolating: Box, value: str) -> None:
    (outcome,) = called(isolating, f"{LIES}\ndef f(): return {value}")
    assert outcome.exit_code == 1
    assert b"TypeError" in outcome.stderr
    with pytest.raises(ValueError, match=r"."):
        decode(outcome.result)


@pytest.mark.parametrize(
    "body",
    [
        "x = []\n for _ in range(10**6): x = [x]\n return x",
        "x = []\n x.append(x)\n return x",
        "return 'x' * (100 << 20)",
        "return [0] * (10 << 20)",
        "return 10 ** 200_000",
        "import os\n os.write(3, b'[' * 900_000)\n os._exit(0)",
        "import os\n os.write(3, b'{\"returned\": ' + b'9' * 900_000 + b'}')\n os._exit(0)",
        'import os\n os.write(3, b\'{"returned": {"list": 7}}\')\n os._exit(0)',
        "import os\n os.write(3, b'\\xff\\x00{}')\n os._exit(0)",
        "import os\n os._exit(0)",
        "raise SystemExit",
        "import builtins\n builtins.type = lambda _: int\n return object()",
        "import json\n json.dumps = lambda *_: 'YES'\n return 1 + 2j if 0 else object",
    ],
)
def test_a_result_that_cannot_be_read_is_no_result_and_breaks_nobody(
    isolating: Box, body: str
) -> None:
    (outcome,) = called(isolating, f"def f():\n {body}")
    with pytest.raises(ValueError, match=r"."):
        decode(outcome.result)
    assert decode(called(isolating, "def f(): return 7")[0].result) == 7


def test_arguments_changed_by_one_call_are_fresh_in_the_next(isolating: Box) -> None:
    outcomes = called(isolating, "def f(x):\n x.append(1)\n return len(x)", [[1]], [[1]])
    assert [decode(one.result) for one in outcomes] == [2, 2]


TROUBLES = {
    "raises": "raise ValueError(x)",
    "ends itself": "raise SystemExit(3)",
    "loops": "while True: pass",
    "returns no value": "return object()",
    "returns too much": "return 'x' * (2 << 20)",
    "holds too much": "return len('x' * (900 << 20))",
    "calls itself for ever": "return (lambda g: g(g))(lambda g: g(g) + 1)",
    "computes for a while": "return sum(range(x * 4_000_000))",
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_trouble_after_quick_calls_ends_as_in_a_process_of_its_own(
    isolating: Box, trouble: str
) -> None:
    source = f"def f(x):\n if x == 3:\n  {trouble}\n return x"
    together = called(isolating, source, *([n] for n in range(6)))
    [by_itself] = called(isolating, source, [3])
    assert [one.result for one in together[:3]] == [b'{"returned": %d}' % n for n in range(3)]
    assert [decode(one.result) for one in together[4:]] == [4, 5]
    for one in (together[3], by_itself):
        assert one.status == by_itself.status
        assert (one.exit_code, one.result) == (by_itself.exit_code, by_itself.result)
        assert one.stderr[-200:] == by_itself.stderr[-200:]


STATEFUL = {
    "a global list": "seen = []\ndef f(x): seen.append(x); return len(seen)",
    "a default": "def f(x, seen=[]): seen.append(x); return len(seen)",
    "a function's attribute": "def f(x): f.n = getattr(f, 'n', 0) + 1; return f.n",
    "a builtin": "import builtins\ndef f(x):\n n = getattr(builtins, 'n', 0) + 1\n"
    " builtins.n = n\n return n",
    "a file": "import os\ndef f(x):\n open('left', 'a').write('x')\n"
    " return os.path.getsize('left')",
    "a thread": "import threading, time\nn = 1\ndef count():\n global n\n"
    " while True: time.sleep(0.001); n = 2\ndef f(x):\n"
    " threading.Thread(target=count, daemon=True).start()\n return n and 1",
    "a random state": "import random\nfirst = random.getstate()\ndef f(x):\n"
    " random.random()\n return 1 + (first != random.getstate() and first is None)",
    "a limit": "import sys\ndef f(x):\n n = sys.getrecursionlimit()\n"
    " sys.setrecursionlimit(n + 1)\n return n - 49_999",
}


@pytest.mark.parametrize("source", STATEFUL.values(), ids=STATEFUL)
def test_no_state_goes_from_one_call_to_the_next(isolating: Box, source: str) -> None:
    outcomes = called(isolating, source, *([n] for n in range(4)))
    assert [decode(one.result) for one in outcomes] == [1, 1, 1, 1]


def test_a_method_that_is_not_pure_finds_no_channel_and_a_new_process_each_time(
    isolating: Box,
) -> None:
    source = (
        "import os, socket\ndef f(x):\n for fd in range(4, 200):\n  try: os.write(fd, b'done')\n"
        "  except OSError: continue\n  return fd\n return [os.getpid(), os.getuid()]"
    )
    outcomes = called(isolating, source, *([n] for n in range(3)))
    seen = [cast("list[int]", decode(one.result)) for one in outcomes]
    assert len({pid for pid, _ in seen}) == 3


def test_a_process_that_stayed_is_gone_for_the_next_program(isolating: Box) -> None:
    look = "import os\nprint(len([1 for name in os.listdir('/proc') if name.isdigit()]))"
    [before] = run(isolating, look)
    called(isolating, "def f(x): return x", *([n] for n in range(4)))
    [after] = run(isolating, look)
    assert after.stdout == before.stdout


KEPT = {
    "answers before it is asked": "import socket\n"
    "channel = socket.socket(fileno=4)\n"
    "for _ in range(100): channel.send(b'done')\n"
    "print('early')",
    "answers with nothing": "import socket\nsocket.socket(fileno=4).send(b'')\nprint('empty')",
    "closes the channel": "import _posixsubprocess, socket\nsocket.close(4)\nprint('closed')",
    "shuts the channel": "import socket\nsocket.socket(fileno=4).shutdown(2)\nprint('shut')",
    "sends descriptors": "import socket\n"
    "channel = socket.socket(fileno=4)\n"
    "for _ in range(20): socket.send_fds(channel, [b'done'], [1] * 100)\nprint('sent')",
    "kills its parent": "import ctypes\nctypes.CDLL(None).kill(-1, 9)\nprint('killed')",
    "stops itself": "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.kill(libc.getpid(), 19)",
    "exits": "import ctypes\nprint(1)\nctypes.CDLL(None)._exit(0)",
    "leaves a loop": "import threading\n"
    "def loop():\n  while True: pass\nthreading.Thread(target=loop).start()\nprint('on')",
    "writes into results": "import threading, ctypes, time\n"
    "def loop():\n"
    "  while True:\n"
    '    for fd in range(3, 40): ctypes.CDLL(None).pwrite(fd, b\'{"output": "9"}\', 15, 0)\n'
    "    time.sleep(0.001)\n"
    "threading.Thread(target=loop, daemon=True).start()\nprint('on')",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_a_kept_process_can_only_spoil_its_own_results(isolating: Box, source: str) -> None:
    outcomes = kept(isolating, source)
    assert len(outcomes) == 3
    assert b"0\n" in kept(isolating, "print(input())")[0].result.replace(b"\\n", b"\n")


def test_a_kept_process_that_reads_none_of_its_inputs_fails_and_is_no_outage(
    isolating: Box,
) -> None:
    source = (
        "import signal, socket, time\nsignal.alarm(0)\nchannel = socket.socket(fileno=4)\n"
        "while True:\n  channel.send(b'done')\n  time.sleep(0.0002)"
    )
    outcomes = kept(isolating, source, 400)
    assert len(outcomes) == 400
    assert {one.result for one in outcomes} == {b""}


def test_a_kept_process_cannot_read_the_inputs_to_come(isolating: Box) -> None:
    source = (
        "import gc, os, re\nfound = set()\nfor fd in range(5, 100):\n  try: "
        "found.add(os.pread(fd, 9, 0))\n  except OSError: pass\nprint(found, input())"
    )
    outcomes = kept(isolating, source)
    for n, outcome in enumerate(outcomes):
        assert not any(f"b'{later}" in outcome.result.decode() for later in range(n + 1, 3))


def test_state_of_one_kept_process_is_gone_for_the_next_program(isolating: Box) -> None:
    kept(isolating, "import sys\nsys.secret = 1\nopen('/tmp/left', 'w')")
    source = "import sys, glob\nprint(hasattr(sys, 'secret'), glob.glob('/tmp/*'))"
    assert b"False []" in kept(isolating, source, 1)[0].result
