"""Replies that answer a practice question right, for tests."""

import json

from podium.harness.records import Question
from podium.harness.suite import Split
from podium.suites.code_grading import read_tests
from podium.suites.practice import PracticeSuite

THOUSANDS: dict[Split, int] = {"train": 1200, "validation": 600, "eval": 600}
HUNDREDS: dict[Split, int] = {"train": 440, "validation": 240, "eval": 240}


def sizes_of(suite: PracticeSuite) -> dict[Split, int]:
    """Thousands, except for programs, whose tests take a moment to make."""
    return HUNDREDS if suite.needs_box else THOUSANDS


def oracle_program(question: Question) -> str:
    """Return a program that knows this question's tests: the gold answer of a code question."""
    tests = read_tests(question.target or "")
    if tests.method:
        values = {case.input: json.loads(case.output) for case in tests.cases}
        table = {json.dumps(list(map(json.loads, k.split("\n")))): v for k, v in values.items()}
        body = f"import json\n        return {table!r}[json.dumps(list(given))]"
        return f"class Solution:\n    def {tests.method}(self, *given):\n        {body}\n"
    table = {case.input: case.output for case in tests.cases}
    return f"import sys\nprint({table!r}[sys.stdin.read()], end='')\n"


def gold_reply(question: Question) -> str:
    if question.kind == "choice":
        return f"I thought about it.\nAnswer: {question.target}"
    if question.kind == "program":
        return f"Here it is.\n```python\n{oracle_program(question)}```\n"
    return f"So the answer is \\boxed{{{question.target}}}."
