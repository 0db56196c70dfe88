"""HumanEval: 164 functions to write from a signature and a docstring."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from inspect_ai import Task, task

from harness.errors import UserError
from harness.extract import extract_program
from harness.files import read_questions
from harness.records import Grade, Question
from harness.suite import Card, Split
from sandbox import IMAGE, Box
from suites.base import card, user_errors
from suites.code_checks import CheckCode, CheckResult, judge_by_check, read_check
from suites.data import data_revision, fetch_rows
from suites.inspect_box import boxed_task

# § HumanEval: 164 functions to write from a signature and a docstring, judged by hidden
# § assertions.
# §
# § The prompt is that of openai/simple-evals (humaneval_eval.py), whose instruction comes
# § before the
# § published prompt. The check is the published one; how it is run is told in
# § suites/code_checks.py.


INSTRUCTION = (
    "Read the following function signature and docstring, and fully implement the function "
    "described. Your response should only contain the code for this function.\n"
)

STOPS = ("\nclass ", "\ndef ", "\n#", "\nif ", "\nprint")
"""Where a raw completion ends (arXiv 2107.03374, section 2.1)."""


@dataclass(frozen=True, slots=True)
class HumanEval:
    """The suite; `data` names a folder of local data (default: see suites/data.py)."""

    data: str | Path | None = None
    name: str = "humaneval"
    version: str = "1-A"
    dates: str = "2021-07"
    splits: tuple[Split, ...] = ("eval",)
    publishable: bool = True
    needs_box: bool = True
    image: str = IMAGE

    @property
    def card(self) -> Card:
        """Its table of suites/cards.toml."""
        return card(self.name)

    @property
    def data_revision(self) -> str:
        """The local file's digest, or the pinned hub revision where there is no file."""
        return data_revision("humaneval", self.data)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the 164 questions; UserError names a missing file."""
        if split != "eval":
            raise UserError(f"Suite humaneval has no {split!r} split; it has: eval.")
        return [_question(row, "humaneval") for row in fetch_rows("humaneval", self.data)]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of raw rows (JSONL, .gz or CSV); UserError names a bad row."""
        return read_questions(path, _question)

    def grade(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade by the published check, in a box; SandboxError when the box fails."""
        prompt, entry = question.metadata["prompt"], question.metadata["entry_point"]
        return grade_by_check(question, complete_program(prompt, entry, reply), box)


HUMANEVAL = HumanEval()


@task
@user_errors
def humaneval(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    box: str | None = None,
    data: str | None = None,
) -> Task:
    """HumanEval: 164 functions, judged in the sandbox that --sandbox or -T box=docker names."""
    return boxed_task(HumanEval(data=data), box, split=split, limit=limit, epochs=epochs)


def grade_by_check(question: Question, program: str | None, box: Box | None) -> Grade:
    """Return the grade of a program by the check that a question carries as its target."""
    if box is None:
        raise ValueError(f"{question.id} is graded by running programs: name a sandbox.")
    if question.target is None:
        raise ValueError(f"{question.id} is sealed, so it cannot be graded.")
    check = read_check(question.target)
    total = {"tests_total": len(check.asserts)}
    if program is None:
        reason = "no program found"
        return Grade(0.0, None, reason, {"tests_passed": 0, **total, "reason": reason})
    started = perf_counter()
    checked = judge_by_check(program, check, box)
    facts = {**_measured(checked), **total, "seconds": round(perf_counter() - started, 3)}
    return Grade(float(checked.passed), program, checked.reason, facts)


def complete_program(prompt: str, entry: str, reply: str) -> str | None:
    r"""Return the program that a reply makes of a prompt, or None when it has none.

    A reply that defines the function gets what the prompt says before it: imports, helpers. Any
    other is taken for the rest of the function.

    >>> completed("import math\ndef f(x):\n", "f", "    return x\ndef g(")
    'import math\ndef f(x):\n    return x'
    """
    block = extract_program(reply)
    said = reply if block is None else block
    if not said.strip():
        return None
    if defines_function(said, entry):
        whole = text_before_function(prompt, entry) + said
        return whole if compiles(whole) else said
    for rest in (said, cut_completion(said)):
        if compiles(prompt + rest):
            return prompt + rest
    return block


def defines_function(text: str, name: str) -> bool:
    """Return whether a text is Python that defines a function of this name at its top level."""
    try:
        found = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(one, kinds) and one.name == name for one in found)


def compiles(text: str) -> bool:
    """Return whether a text is Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def text_before_function(prompt: str, entry: str) -> str:
    """Return what a prompt says before the function to write."""
    return prompt[: prompt.rindex(f"def {entry}(")]


def cut_completion(text: str) -> str:
    """Return a raw completion up to the first thing that no longer belongs to the function."""
    ends = [at for stop in STOPS if (at := text.find(stop)) >= 0]
    return text[: min(ends, default=len(text))]


def _measured(checked: CheckResult) -> dict[str, Any]:
    return {
        "tests_passed": checked.held,
        "calls": checked.calls,
        "cpu_s": checked.cpu_s,
        "reason": checked.reason,
    }


def _question(row: Mapping[str, Any], where: str) -> Question:
    for key in ("task_id", "prompt", "entry_point", "test"):
        if not isinstance(row.get(key), str):
            raise UserError(f"{where} is no raw HumanEval row: {key} is missing or no text.")
    prompt, entry = row["prompt"], row["entry_point"]
    text = f"{row['test'].rstrip()}\n\ncheck({entry})\n"
    if f"def {entry}(" not in prompt or not (compiles(prompt) and compiles(text)):
        raise UserError(f"{where}: {row['task_id']} cannot be used: its prompt or test is no code.")
    return Question(
        id=row["task_id"],
        text=INSTRUCTION + prompt,
        kind="program",
        target=CheckCode(text, (entry,), setup=prompt).as_json(),
        metadata={"prompt": prompt, "entry_point": entry},
    )
