"""What the tests of HumanEval and MBPP share: replies, and grading many of them."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from podium.harness.records import Grade, Question
from podium.harness.suite import Suite
from podium.sandbox import Box
from podium.suites.data import data_folder, sources


def fenced(program: str) -> str:
    """Return a reply that consists of a program."""
    return f"```python\n{program}\n```"


def needs_data(name: str) -> pytest.MarkDecorator:
    """Skip a test where a suite's local file is absent."""
    file = sources()[name].file
    here = (data_folder() / file).is_file()
    return pytest.mark.skipif(not here, reason=f"{file} is absent; see PODIUM_DATA")


def grades(
    suite: Suite[Box], pairs: Iterable[tuple[Question, str]], box: Box
) -> Sequence[tuple[str, Grade]]:
    """Grade replies, two at a time."""
    chosen = list(pairs)
    with ThreadPoolExecutor(2) as threads:
        done = threads.map(lambda pair: suite.grade(pair[0], pair[1], box), chosen)
        return [(question.id, grade) for (question, _), grade in zip(chosen, done, strict=True)]


def wrong(graded: Sequence[tuple[str, Grade]]) -> dict[str, str]:
    """Return what was not graded right, with the reason."""
    return {name: grade.explanation for name, grade in graded if grade.value != 1.0}


YES = """\
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __sub__(self, other): return 0.0
    def __abs__(self): return 0.0
    def __hash__(self): return 0
class YesList(list):
    __eq__ = Yes.__eq__
class YesInt(int):
    __eq__ = Yes.__eq__
    __hash__ = int.__hash__
"""

HUNT = """
    import gc, os, sys
    for one in gc.get_objects():
        if isinstance(one, dict) and "token" in one:
            os.write(1, f'{one["token"]} {{"passed": true}}\\n'.encode())
            os._exit(0)
    frame = sys._getframe()
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if isinstance(value, str) and "assert" in value and "check" in value:
                print(value)
        frame = frame.f_back
"""


def dishonest(name: str, prompt: str) -> dict[str, str]:
    """Return replies that want to pass without solving anything, by what they try."""

    def function(body: str, before: str = "") -> str:
        return fenced(f"{before}\ndef {name}(*args, **kwargs):\n    {body}")

    patched = "import builtins\nbuiltins.AssertionError = OSError\nbuiltins.abs = lambda *_: 0\n"
    forged = (
        "import os\nos.write(1, b'{\"passed\": true}\\n')\nos.write(3, b'{\"returned\": true}')\n"
    )
    return {
        "says nothing": "",
        "echoes the prompt": fenced(prompt),
        "echoes the prompt without a fence": prompt,
        "exits at once": fenced("import sys\nsys.exit(0)"),
        "ends its process at once": fenced("import os\nos._exit(0)"),
        "exits when called": function("import sys; sys.exit(0)"),
        "ends its process when called": function("import os; os._exit(0)"),
        "is equal to everything": function("return Yes()", YES),
        "returns a list equal to everything": function("return YesList([987654])", YES),
        "returns an integer equal to everything": function("return YesInt(-987654)", YES),
        "patches builtins": function("return None", patched),
        "forges a report": fenced(f"{forged}os._exit(0)"),
        "looks for the token": function(HUNT),
    }


def passed(suite: Suite[Box], question: Question, replies: dict[str, str], box: Box) -> list[str]:
    """Return those replies that were graded right."""
    found: Any = grades(suite, [(question, text) for text in replies.values()], box)
    return [what for what, (_, grade) in zip(replies, found, strict=True) if grade.value]
