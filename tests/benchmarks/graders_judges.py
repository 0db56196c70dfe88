"""One grader as a process that may be killed: rows of the battery in, a line each, verdicts out.

    PYTHONPATH=CHECKOUT:. python tests/benchmarks/graders_judges.py JUDGE < ROWS

A row has `suite`, `gold`, `reply` and perhaps `choices`; a verdict is 1, 0, or null where a scorer
raised. `podium` is whatever checkout stands first in PYTHONPATH. math-verify is used as its readme
says, Inspect's scorers as a task uses them.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Scorer, Target, answer, choice, includes, match, math
from inspect_ai.solver import TaskState
from inspect_ai.solver._multiple_choice import (
    parse_answers,
    set_choices_based_on_generated_response,
)

Judge = Callable[[Mapping[str, Any]], bool]

OPTIONS = ("one", "two", "three", "four")
"""Where a row has no options of its own: Inspect's scorer needs some."""


def podium(row: Mapping[str, Any]) -> bool:
    from podium.suites import SUITES
    from tests.suites.battery import BatteryRow

    asked = BatteryRow(reply=row["reply"], gold=row["gold"], right=True, why="-")
    asked = asked.model_copy(update={"choices": row.get("choices")})
    return SUITES[row["suite"]].grade(asked.question(row["suite"]), row["reply"]).value == 1.0


def math_verify(row: Mapping[str, Any]) -> bool:
    from math_verify import parse, verify

    return verify(parse(f"${row['gold']}$"), parse(row["reply"]))


def inspect(make: Callable[[], Scorer], row: Mapping[str, Any]) -> bool:
    state = _state(row)
    score = asyncio.run(make()(state, state.target))
    return score is not None and score.value == "C"


def inspect_choice(row: Mapping[str, Any]) -> bool:
    """Read the reply as the solver `multiple_choice` does, then score it."""
    state = _state(row)
    set_choices_based_on_generated_response(state, parse_answers(state, multiple_correct=False))
    score = asyncio.run(choice()(state, state.target))
    return score is not None and score.value == "C"


def _state(row: Mapping[str, Any]) -> TaskState:
    return TaskState(
        model=ModelName("none/none"),
        sample_id=1,
        epoch=1,
        input="?",
        messages=[ChatMessageUser(content="?")],
        target=Target(row["gold"]),
        choices=[*(row.get("choices") or OPTIONS)],
        output=ModelOutput.from_content("none/none", row["reply"]),
    )


JUDGES: Mapping[str, Judge] = {
    "podium": podium,
    "math-verify": math_verify,
    "match()": partial(inspect, match),
    "match(numeric=True)": partial(inspect, partial(match, numeric=True)),
    "math()": partial(inspect, math),
    'answer("line")': partial(inspect, partial(answer, "line")),
    'answer("letter")': partial(inspect, partial(answer, "letter")),
    "choice()": inspect_choice,
    "includes()": partial(inspect, includes),
}


def verdict(judge: Judge, line: str) -> int | None:
    """Return what the judge says of one row; None where it raises."""
    try:
        return int(judge(json.loads(line)))
    except Exception as error:
        print(f"{type(error).__name__}: {error}"[:200], file=sys.stderr)
        return None


def main() -> None:
    """Answer line by line."""
    judge, said = JUDGES[sys.argv[1]], sys.stdout
    sys.stdout = sys.stderr  # what a scorer prints is no verdict
    for line in sys.stdin:
        print(json.dumps(verdict(judge, line)), file=said, flush=True)


if __name__ == "__main__":
    main()
