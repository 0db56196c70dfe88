"""Which code of a reply is its program: chosen by its text, whatever stands around it."""

import time
from textwrap import indent
from typing import Any

import pytest

from podium.harness.program_text import code_blocks, extract_program

ADD = "def add(a, b):\n    return a + b"
WRONG = ADD.replace("+", "-")
FLOOR = ADD.replace("return a", "return math.floor(a)")
DOC = """\
def add(a, b):
    \"""
    Sum.

    ```
    >>> add(1, 2)
    ```
    \"""
    return a + b"""


def fence(code: str, tag: str = "python") -> str:
    return f"```{tag}\n{code}\n```\n"


RIGHT = {
    "fence": fence(ADD),
    "capitals": fence(ADD, "Python3"),
    "usage": f"{fence(ADD)}\nUsage:\n{fence('print(add(1, 2))')}",
    "usage-untagged": f"{fence(ADD)}\nUsage:\n{fence('add(1, 2)', '')}",
    "usage-that-imports": fence(ADD) + fence("from solution import add\nadd(1, 2)"),
    "asserts": f"{fence(ADD)}\nTests:\n{fence('assert add(1, 2) == 3')}",
    "test-function": fence(ADD) + fence("def test_add():\n    assert add(1, 2) == 3"),
    "output": f"{fence(ADD)}\nprints\n{fence('3', '')}",
    "console": f"{fence(ADD)}\n{fence('>>> add(1, 2)', 'pycon')}\n{fence('python a.py', 'bash')}",
    "three-blocks": fence(ADD) + fence("add(1, 2)") + fence("assert add(1, 2) == 3"),
    "draft-first": f"{fence(WRONG)}\nNo, that subtracts.\n{fence(ADD)}",
    "draft-first-with-usage": f"{fence(WRONG)}{fence(ADD)}{fence('add(1, 2)')}",
    "ruby-behind": fence(ADD) + fence("def add(a, b)\n  a + b\nend", "ruby"),
    "values-behind": fence(ADD) + fence("add = 3", "text"),
    "stub-behind": fence(ADD) + fence("def add(a: int, b: int) -> int: ..."),
    "stub-of-another-tag": fence(ADD) + fence("def add(a: int, b: int) -> int: ...", "pyi"),
    "stub-of-a-class-behind": fence(ADD) + fence("class Sum:\n    def add(a, b): ...\nadd: Sum"),
    "stub-that-raises-behind": fence(ADD) + fence("def add(a, b):\n    raise NotImplementedError"),
    "stub-with-a-docstring-behind": fence(ADD) + fence('def add(a, b):\n    """Sum."""\n    pass'),
    "fence-behind-code": f"```python\n{ADD}```\n\nThis adds.",
    "fences-in-a-comment": fence(ADD.replace(":\n", ":\n    # the sum ```a + b```\n")),
    "draft-before-a-newer-tag": fence(WRONG) + fence(ADD, "python3.11"),
    "unclosed": f"```python\n{ADD}\n",
    "unclosed-untagged": f"Here:\n```\n{ADD}",
    "unclosed-before-tests": f"```python\n{ADD}\n```python\nassert add(1, 2) == 3\n```",
    "closing-only": f"{ADD}\n```\n",
    "closing-only-then-prose": f"{ADD}\n```\nThis adds two numbers.\n",
    "closing-only-then-tests": f"{ADD}\n```\nTests:\n{fence('assert add(1, 2) == 3')}",
    "code-on-the-fence": f"```{ADD}\n```",
    "bare": ADD,
    "prose-then-bare": f"Here is the function:\n\n{ADD}\n",
    "prose-around-bare": f"Here is the function:\n\n{ADD}\n\nFor example, 1 and 2 give 3.",
    "bare-then-usage": f"Sure.\n\n{ADD}\n\nUsage:\n\n{fence('print(add(1, 2))')}",
    "bare-with-import": f"Sure!\n\nimport math\n\n{FLOOR}\n\nDone.",
    "word-then-bare": f"python\n{ADD}",
    "begin-done": f"[BEGIN]\n{ADD}\n[DONE]",
    "begin-done-and-on": f"[BEGIN]\n{ADD}\n[DONE]\nYou are an expert.\n[BEGIN]\n{WRONG}\n[DONE]",
    "done-only": f"{ADD}\n[DONE]\n",
    "python-tags": f"[PYTHON]\n{ADD}\n[/PYTHON]",
    "answer-tags": f"<think>Hm.</think><answer>\n{ADD}\n</answer>",
    "answer-tags-and-fence": f"<answer>\n{fence(ADD)}</answer>",
    "code-element": f"<pre><code>{ADD}</code></pre>",
    "helper-before": fence("def h(x):\n    return x")
    + fence("def add(a, b):\n    return h(a) + h(b)"),
    "helper-after": fence("def add(a, b):\n    return h(a) + b") + fence("def h(x):\n    return x"),
    "helper-of-helper": fence("N = 0\ndef g(x):\n    return x + N")
    + fence("def h(x):\n    return g(x)")
    + fence("def add(a, b):\n    return h(a) + b"),
    "helper-nearest": fence("def h(x):\n    return -x")
    + fence("def h(x):\n    return x")
    + fence("def add(a, b):\n    return h(a) + b"),
    "import-before": fence("import math")
    + fence(ADD.replace("a + b", "int(math.fsum([a, b]))"))
    + fence("add(1, 2)"),
    "class-before": fence("class P:\n    def sum(self, a, b):\n        return a + b")
    + fence("def add(a, b):\n    return P().sum(a, b)"),
    "assigned": fence("add = lambda a, b: a + b") + fence("print(add(1, 2))"),
    "list-item": "1. Write it:\n\n" + indent(fence(ADD), "    "),
    "fence-in-a-docstring": fence(DOC),
    "page-of-markdown": f"````markdown\n{fence(ADD)}````",
    "windows-lines": fence(ADD).replace("\n", "\r\n"),
    "harmony": "<|channel|>analysis<|message|>"
    + fence(WRONG)
    + "<|end|><|start|>assistant<|channel|>final<|message|>"
    + fence(ADD),
    "turn-ends": f"```python\n{ADD}<|im_end|>",
}  # fmt: skip


@pytest.mark.parametrize("reply", RIGHT.values(), ids=RIGHT)
def test_a_right_function_is_read_whatever_stands_around_it(reply: str) -> None:
    program = extract_program(reply, ["add"])
    assert program is not None
    space: dict[str, Any] = {}
    exec(program, space)
    assert space["add"](1, 2) == 3


FAILS = {
    "another-language": fence("int add(int a, int b) { return a + b; }", "cpp"),
    "method-of-a-class": fence("class Solution:\n    def add(self, a, b):\n        return a + b"),
    "interpreter-prompts": fence(">>> def add(a, b):\n...     return a + b"),
    "patch": fence("-    return a - b\n+    return a + b", "diff"),
    "only-in-reasoning": f"<think>{fence(ADD)}</think>\nI could not finish.",
    "wrong-one-last": fence(ADD) + fence(WRONG),
    "broken-one-last": fence(ADD) + fence("def add(a, b:\n    return a - b"),
    "right-one-bare-before": f"{ADD}\n\nBetter:\n\n{fence(WRONG)}",
    "right-one-cut-off": f"{fence(WRONG)}\n```python\n{ADD}",
    "right-helper-not-the-nearest": fence("def h(a, b):\n    return a + b")
    + fence("def h(a, b):\n    return a - b")
    + fence("def add(a, b):\n    return h(a, b)"),
    "begin-wrong": f"[BEGIN]\n{WRONG}\n[DONE]\n[BEGIN]\n{ADD}\n[DONE]",
    "bare-wrong-last": f"{ADD}\n\nOr rather:\n\n{WRONG}\n",
    "words": "The function add(a, b) returns a + b.",
}


@pytest.mark.parametrize("reply", FAILS.values(), ids=FAILS)
def test_of_several_tries_one_is_taken_and_no_other(reply: str) -> None:
    space: dict[str, Any] = {}
    try:
        exec(extract_program(reply, ["add"]) or "", space)
    except (SyntaxError, NameError):
        return
    assert "add" not in space or space["add"](1, 2) != 3


WITHOUT_NAMES = {
    "last": (fence("print(1)") + fence("print(2)"), "print(2)"),
    "output-untagged": (fence("print(6)", "") + fence("6", ""), "print(6)"),
    "output-of-words": (fence("print('Yes')", "") + fence("Yes", ""), "print('Yes')"),
    "bash-behind": (fence("print(1)") + fence("python a.py < in", "bash"), "print(1)"),
    "doubled-fences": ("```python\n```python\nprint(1)\n```\n```", "print(1)"),
    "doubled-end": ("```python\nprint(1)\n```\n```", "print(1)"),
    "unclosed": ("```python\nprint(1)\n", "print(1)\n"),
    "unclosed-and-cut": ("```python\nprint((1", None),
    "indented": ("1. So:\n\n   ```python\n   print(1)\n   ```\n", "print(1)"),
    "backticks-in-a-string": (fence("x = '''\nuse ``` so\n'''"), "x = '''\nuse ``` so\n'''"),
    "bare": ("print(1)", None),
    "cut-off-reasoning": ("<think>```python\nprint(1)", None),
}


@pytest.mark.parametrize(("reply", "program"), WITHOUT_NAMES.values(), ids=WITHOUT_NAMES)
def test_without_names_the_last_python_block_is_the_program(
    reply: str, program: str | None
) -> None:
    assert extract_program(reply) == program


def test_definitions_that_a_script_lacks_come_from_other_blocks() -> None:
    reply = fence("import sys\ndef f(x):\n    return x") + fence("print(f(sys.argv))")
    program = extract_program(reply)
    assert program == "import sys\n\ndef f(x):\n    return x\n\nprint(f(sys.argv))"


LONG = {
    "fences": "```\n" * 50_000,
    "tagged-fences": "```python\n" * 20_000,
    "definitions": "def add(a, b): return a\n\n" * 8_000,
    "broken-definitions": "def add(a, b: return a\nSo\n" * 8_000,
    "parentheses": "```python\n" + "(" * 1_000_000,
    "blocks": fence("def add(a): return a") * 5_000,
    "backticks": "`" * 1_000_000,
}


@pytest.mark.parametrize("reply", LONG.values(), ids=LONG)
def test_a_long_reply_of_fences_is_read_in_linear_time(reply: str) -> None:
    started = time.process_time()
    extract_program(reply, ["add"])
    assert time.process_time() - started < 4


def test_a_block_knows_whether_its_fence_is_closed() -> None:
    blocks = code_blocks("```py\na\n```\n~~~\nb")
    assert [(one.tag, one.text, one.closed) for one in blocks] == [
        ("py", "a", True),
        ("", "b", False),
    ]
