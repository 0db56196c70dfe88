"""MBPP: short Python functions described in a sentence, judged by the three assertions shown.

The prompt is that of the MBPP paper, without examples (google-research/mbpp, README). The paper's
splits: tasks 11-510 are `eval`, 511-600 `validation`, 601-974 `train`; 1-10 were its examples.
"""

import ast
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from inspect_ai import Task, task

from podium.harness.errors import UserError
from podium.harness.program_text import extract_program, unbound_names
from podium.harness.python_syntax import parse_python, read_literal
from podium.harness.reasoning import spoken
from podium.harness.records import Question
from podium.harness.suite import Split
from podium.suites.base import unsealed, user_errors
from podium.suites.code_checks import CheckCode, UnitTestedSuite, compiles, refuse_untold

PROMPT = (
    "You are an expert Python programmer, and here is your task: {text} "
    "Your code should pass these tests:\n\n{tests}\n"
)

SPLITS: Mapping[Split, range] = {
    "eval": range(11, 511),
    "validation": range(511, 601),
    "train": range(601, 975),
}

BY_TEXT: Mapping[int, str] = {
    367: "its tests build trees of the program's own class Node",
    601: "its tests make pairs of the program's own class Pair",
    927: "its tests build trees of the program's own class Node",
}
"""Task id -> why only the program's own process can create the arguments in the task's tests."""

SETUP: Mapping[int, str] = {596: "import sys"}
"""Task id -> imports that the tests need, but that only the published solution contains."""


@dataclass(frozen=True, slots=True)
class Mbpp(UnitTestedSuite):
    """The MBPP suite: short Python functions, judged by the assertions that the prompt shows."""

    name: str = "mbpp"
    version: str = "4-A"
    dates: str = "2021-08"
    splits: tuple[Split, ...] = ("train", "validation", "eval")
    source = "mbpp"

    def questions(self, split: Split) -> Sequence[Question]:
        """Return the questions of a split in the order of the task ids."""
        rows = {int(row["task_id"]): row for row in self.rows()}
        return [self.question(rows[number], self.name) for number in SPLITS[split]]

    def question(self, row: Mapping[str, Any], where: str) -> Question:
        """Return the question of a row of MBPP's published file; UserError if it is malformed."""
        task = str(row.get("task_id"))
        if not (task.isascii() and task.isdigit()):
            wrong = f"{where} is not a raw MBPP row: its task_id {task!r} is not a number"
            raise UserError(f"{wrong}. Correct the row.")
        refuse_untold(row, ["text"], f"{where} is not a raw MBPP row")
        number, tests = int(task), _tests(row, where)
        setup = f"{row.get('test_setup_code') or ''}\n{SETUP.get(number, '')}".strip()
        text = "\n".join(tests)
        if not (compiles(text) and compiles(setup)):
            raise UserError(
                f"{where}: task {number} cannot be used: its tests are not Python code. "
                "Correct or delete the row."
            )
        check = CheckCode(text, names_called(text, setup), setup, by_text=number in BY_TEXT)
        return Question(
            id=f"mbpp-{number}",
            text=PROMPT.format(text=str(row["text"]).strip(), tests=text),
            kind="program",
            target=check.as_json(),
            metadata={"tests": tests},
        )

    def program(self, question: Question, reply: str) -> str | None:
        """Return a reply's code with the tested functions, else an all-Python reply, else None."""
        program = extract_program(reply, json.loads(unsealed(question))["names"])
        text = spoken(reply)[0]
        return program or (text if text.strip() and compiles(text) else None)


MBPP = Mbpp()


@task
@user_errors
def mbpp(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    box: str | None = None,
    data: str | None = None,
) -> Task:
    """MBPP: 500 short functions, judged in the sandbox of --sandbox or -T box=docker."""
    from podium.suites.inspect_box import boxed_task  # imports all sandboxes; only for Inspect

    return boxed_task(Mbpp(data), box, split=split, limit=limit, epochs=epochs)


def names_called(tests: str, setup: str) -> tuple[str, ...]:
    """Return the program's functions that tests call: names that neither tests nor setup define.

    If there are none, the program's function has the name of a builtin, such as `sum`: then it is
    the first function that the tests call.

    >>> names_called("assert set(f(1)) == {1}", ""), names_called("assert sum(10, 15) == 6", "")
    (('f',), ('sum',))
    """
    trees = [parse_python(text) for text in (setup, tests)]
    unknown = unbound_names(*trees)
    nodes = [node for tree in trees for node in ast.walk(tree)]
    callees = [node.func for node in nodes if isinstance(node, ast.Call)]
    return unknown or tuple(callee.id for callee in callees[:1] if isinstance(callee, ast.Name))


def _tests(row: Mapping[str, Any], place: str) -> list[str]:
    """Return a data row's assertions; in a CSV file they are the text of a Python list."""
    tests = row.get("test_list")
    if isinstance(tests, str):
        with suppress(SyntaxError, ValueError):
            tests = read_literal(tests)
    if not isinstance(tests, list) or not tests:
        raise UserError(
            f"{place} is not a raw MBPP row: test_list is missing or not a list of tests. "
            "Correct the row."
        )
    return [str(test).replace("\r\n", "\n") for test in cast(list[object], tests)]
