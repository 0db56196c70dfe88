"""Grade rows by the scorers of inspect-evals, in an environment that has it.

    python inspect_evals_scorers.py < ROWS.jsonl > VERDICTS.jsonl

A row has `scorer` (aime, choice, math or math-sympy), `reply`, `target` and, for choices,
`choices`; a verdict has `value`. Run by agree_with_inspect_evals.py; it imports nothing of ours.
"""

import json
import sys
from importlib import import_module
from typing import Any

import anyio
from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Score, Target, choice
from inspect_ai.solver import TaskState
from inspect_ai.solver._multiple_choice import (
    parse_answers,
    set_choices_based_on_generated_response,
)


def scorers() -> dict[str, Any]:
    """Return their scorers by our names for them."""
    mathematics = import_module("inspect_evals.math.math")
    return {
        "aime": import_module("inspect_evals.utils.aime_common").aime_scorer(),
        "choice": choice(),
        "math": mathematics.expression_exact_match(),
        "math-sympy": mathematics.expression_exact_match_sympy(),
    }


async def verdict(row: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return what their scorer says, or how it failed."""
    state = TaskState(
        model=ModelName("none/none"),
        sample_id=1,
        epoch=1,
        input="?",
        messages=[ChatMessageUser(content="?")],
        target=Target(row["target"]),
        choices=row.get("choices"),
        output=ModelOutput.from_content("none/none", row["reply"]),
    )
    try:
        if row["scorer"] == "choice":
            answers = parse_answers(state, multiple_correct=False)
            set_choices_based_on_generated_response(state, answers)
        score: Score | None = await theirs[row["scorer"]](state, state.target)
    except Exception as error:
        return {"value": 0.0, "failed": type(error).__name__}
    return {"value": float(score is not None and score.value == "C")}


async def main() -> None:
    """Answer line by line."""
    theirs = scorers()
    for line in sys.stdin:
        print(json.dumps(await verdict(json.loads(line), theirs)), flush=True)


if __name__ == "__main__":
    anyio.run(main)
