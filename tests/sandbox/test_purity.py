"""Which programs may take several calls in one process: those with nothing to keep a state in."""

import pytest

from podium.sandbox.inside import runners
from podium.sandbox.inside.purity import is_pure
from tests.suites.recorded_programs import have, recorded

runners.load_header()

PURE = {
    "a method": "class Solution:\n def f(self, x): return x + 1",
    "helpers": "from typing import List\nimport heapq as hq\nMOD = 10**9 + 7\nINF = float('inf')\n"
    "def g(x: List[int], y=(1, 2)): hq.heapify(x); return x[0] % MOD\n"
    "class Solution:\n '''Text.'''\n @staticmethod\n def h(x): return g(x)\n"
    " def f(self, x): return self.h(x)",
    "a memo of one call": "from functools import lru_cache\nclass Solution:\n def f(self, n):\n"
    "  memo = {}\n  @lru_cache(None)\n  def go(i):\n   memo[i] = 1\n   return i and go(i - 1)\n"
    "  return go(n)",
    "a list made anew": "def f(x):\n best = [0]\n def add(i):\n  nonlocal best\n  best[0] += i\n"
    " for i in x: add(i)\n return best",
}

KEEPS = {
    "a global list": "seen = []\ndef f(x): seen.append(x); return len(seen)",
    "a global name": "n = 0\ndef f(x):\n global n\n n += 1\n return n",
    "a default": "def f(x, seen=[]): seen.append(x); return len(seen)",
    "a default of a name": "def f(x, *, seen={}): seen[x] = 1; return len(seen)",
    "a class attribute": "class Solution:\n memo = {}\n def f(self, x): return self.memo",
    "an attribute set": "class Solution:\n def f(self, x): Solution.n = x; return x",
    "an attribute of self": "class Solution:\n def f(self, x): self.n = x; return x",
    "an attribute in a loop": "class A: pass\ndef f(x):\n for A.n in x: pass",
    "a cached function": "from functools import cache\n@cache\ndef f(x): return x",
    "a decorator under a trusted name": "def staticmethod(g):\n memo = []\n return lambda x: memo\n"
    "class Solution:\n @staticmethod\n def f(x): return x",
    "a call under a trusted name": "def float(x): return []\nX = float(1)\ndef f(x): return X",
    "a base that holds": "class S(type('B', (), {'memo': {}})):\n def f(self, x): return self.memo",
    "a metaclass": "class M(type): pass\nclass S(metaclass=M): pass",
    "a name bound in an annotation": "def f(x: (seen := [])): seen.append(x); return seen",
    "a random number": "import random\ndef f(x): return random.random()",
    "a random number, imported for it": "def f(x): return randint(1, x)",
    "a module for the taking": "def f(x): sys.x = 1",
    "a module of a module": "import typing\ndef f(x): return typing.sys.modules",
    "a module under another name": "import typing as t\ndef f(x): return t.sys",
    "a module in a variable": "import typing\ndef f(x):\n m = typing\n return m.sys",
    "the names of the module": "def f(x): globals()['n'] = x",
    "a frame": "def f(x):\n g = (1 for _ in x)\n return g.gi_frame.f_globals",
    "a dictionary of a function": "def f(x): f.__dict__[x] = 1",
    "a cell": "class S:\n def f(self):\n  def g():\n   nonlocal __class__\n  return super()",
    "setattr": "def f(x): setattr(f, 'n', x)",
    "a copy that sets": "def f(x): return deepcopy(x)",
    "text that is run": "def f(x): return eval('1')",
    "a file": "def f(x): return open('/tmp/x', 'a')",
    "a print": "def f(x): print(x)",
    "a loop outside": "for i in range(3): pass\ndef f(x): return x",
    "a list outside": "class A:\n x = [1]\ndef f(x): return x",
    "a match": "def f(x):\n match x:\n  case int(__class__=c): return c",
    "another module": "import os\ndef f(x): return x",
    "a part of a module": "from functools import update_wrapper\ndef f(x): return x",
    "no Python": "def f(",
    "too deep": "x = " + "(" * 5000 + ")" * 5000,
    "NUL": "x = 1\0",
    "too long": "def f(x): return x\n" + "#" * 60_000,
}


@pytest.mark.parametrize("source", PURE.values(), ids=PURE)
def test_a_program_with_nothing_to_keep_a_state_in_is_pure(source: str) -> None:
    assert is_pure(source, runners.NAMES)


@pytest.mark.parametrize("source", KEEPS.values(), ids=KEEPS)
def test_a_program_that_could_keep_something_is_not_pure(source: str) -> None:
    assert not is_pure(source, runners.NAMES)


@pytest.mark.skipif(have() is not None, reason="the recorded programs are not there")
def test_most_methods_that_a_model_writes_are_pure() -> None:
    methods = [row for row in recorded(independent=True) if row.verdict]
    pure = [row for row in methods if is_pure(row.code, runners.NAMES)]
    assert len(pure) > 0.7 * len(methods), (len(pure), len(methods))
