"""HumanEval: 164 functions to write from a signature and a docstring, judged by hidden assertions.

The prompt is that of openai/simple-evals (humaneval_eval.py): an instruction, then the published
prompt. The assertions are the published ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai import Task, task

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.suite import Split
from podium.suites.base import user_errors
from podium.suites.code_checks import CheckCode, UnitTestedSuite, compiles, refuse_untold

INSTRUCTION = (
    "Read the following function signature and docstring, and fully implement the function "
    "described. Your response should only contain the code for this function.\n"
)


@dataclass(frozen=True, slots=True)
class HumanEval(UnitTestedSuite):
    """The HumanEval suite: 164 functions, each judged by the published assertions."""

    name: str = "humaneval"
    version: str = "4-A"
    dates: str = "2021-07"
    source = "humaneval"

    def question(self, row: Mapping[str, Any], where: str) -> Question:
        """Return the question of a row of HumanEval's published file; UserError if malformed."""
        fields = ("task_id", "prompt", "entry_point", "test")
        refuse_untold(row, fields, f"{where} is not a raw HumanEval row")
        prompt, entry = row["prompt"], row["entry_point"]
        text = f"{row['test'].rstrip()}\n\ncheck({entry})\n"
        if f"def {entry}(" not in prompt or not (compiles(prompt) and compiles(text)):
            refused = (
                f"{where}: {row['task_id']} cannot be used: its prompt or test is not Python code"
            )
            raise UserError(f"{refused}. Correct or delete the row.")
        return Question(
            id=row["task_id"],
            text=INSTRUCTION + prompt,
            kind="program",
            target=CheckCode(text, (entry,), setup=prompt).as_json(),
            metadata={"prompt": prompt, "entry_point": entry},
        )


@task
@user_errors
def humaneval(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    box: str | None = None,
    data: str | None = None,
) -> Task:
    """HumanEval: 164 functions, judged in the sandbox of --sandbox or -T box=docker."""
    from podium.suites.inspect_box import boxed_task  # imports all sandboxes; only for Inspect

    return boxed_task(HumanEval(data), box, split=split, limit=limit, epochs=epochs)
