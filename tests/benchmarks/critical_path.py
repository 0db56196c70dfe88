"""Wall time of answers with parallel steps, next to their critical path.

    PYTHONPATH=. python tests/benchmarks/critical_path.py [--unit 0.2] [--repeats 5]

Workers reply after a fixed time that is really slept (one to three units, by worker), so the
critical path of an answer is known: the slowest chain of reads in the workflow that was run. Shapes
are run by the executor, systems as in a run, both through the real pool; no model is asked. The
aim is a wall time within 5 % of the critical path.
"""

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.baselines.frameworks import planner_executor_verifier_system
from podium.baselines.mixture import moa_system
from podium.baselines.voting import debate_system, self_consistency_system
from podium.harness.execute import execute
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from podium.harness.workflow import Step, Workflow

QUESTION = Question("q1", "What is 6 times 7?", "integer")
UNITS = {"ada": 1.0, "bob": 2.0, "cleo": 3.0, "dan": 1.5, "eve": 2.5, "fay": 1.0}
"""How many units each worker takes."""


class SleepingAPI(ModelAPI):
    """Replies after `seconds`, always the same."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        """Keep how long it takes."""
        super().__init__(model_name, base_url, api_key, [], config)
        self.seconds = float(model_args["seconds"])

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Sleep, then answer."""
        await anyio.sleep(self.seconds)
        output = ModelOutput.from_content(self.model_name, "ANSWER: 42")
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output


@modelapi(name="sleeping")
def sleeping() -> type[ModelAPI]:
    """Register the provider with Inspect."""
    return SleepingAPI


def fan_out(width: int) -> Workflow:
    """Return `width` steps side by side and one that reads them all."""
    return Workflow((*(Step(name) for name in list(UNITS)[:width]), Step("ada", reads="all")))


def chain(length: int) -> Workflow:
    """Return steps that each read the one before."""
    names = list(UNITS)
    steps = (Step(names[at], reads=(at - 1,) if at else ()) for at in range(length))
    return Workflow(tuple(steps))


DIAMOND = Workflow(
    (Step("ada"), Step("bob", reads=(0,)), Step("cleo", reads=(0,)), Step("dan", reads=(1, 2)))
)
TWO_CHAINS = Workflow(
    (
        Step("ada"),
        Step("cleo"),
        Step("eve", reads=(0,)),
        Step("fay", reads=(1,)),
        Step("bob", reads=(2, 3)),
    )
)
LAYERS = Workflow(
    (
        *(Step(name) for name in ("ada", "bob", "cleo")),
        *(Step(name, reads=(0, 1, 2)) for name in ("dan", "eve", "fay")),
        Step("bob", reads=(3, 4, 5)),
    )
)
SHAPES: dict[str, Workflow] = {
    **{f"fan-out {width}": fan_out(width) for width in (3, 4, 5, 6)},
    "chain 2": chain(2),
    "chain 5": chain(5),
    "diamond": DIAMOND,
    "two chains": TWO_CHAINS,
    "layers 3 + 3 + 1": LAYERS,
}

Ask = Callable[[Pool], Awaitable[Answer]]


def asks() -> dict[str, Ask]:
    """Return what is measured, by name: shapes first, then systems."""
    systems = {
        "moa-lite": moa_system(),
        "moa-3": moa_system(layers=3),
        "debate": debate_system(),
        "self-consistency": self_consistency_system(),
        "planner-executor-verifier": planner_executor_verifier_system(),
    }

    def shape(workflow: Workflow) -> Ask:
        return lambda pool: execute(workflow, QUESTION, pool)

    def system(one: Any) -> Ask:
        return lambda pool: one(QUESTION, pool)

    found = {name: shape(workflow) for name, workflow in SHAPES.items()}
    return found | {name: system(one) for name, one in systems.items()}


def critical_path(answer: Answer, unit: float) -> float:
    """Return the seconds of the slowest chain of reads in the workflow that was run."""
    ends: list[float] = []
    for at, step in enumerate(json.loads(answer.plan or "[]")):
        reads: Sequence[int] = range(at) if step["reads"] == "all" else step["reads"]
        begins = max((ends[read] for read in reads), default=0.0)
        ends.append(begins + unit * UNITS[step["worker"]])
    return max(ends)


async def measured(ask: Ask, models: dict[str, Model], unit: float) -> tuple[int, float, float]:
    """Return steps, critical path and wall time of one answer, in seconds."""
    started = time.perf_counter()
    answer = await ask(Pool(models))
    wall = time.perf_counter() - started
    return len(answer.replies), critical_path(answer, unit), wall


async def table(unit: float, repeats: int) -> None:
    """Print a line per shape and system: the median of the repeats, and the worst."""
    models = {
        name: get_model(f"sleeping/{name}", memoize=False, seconds=unit * units)
        for name, units in UNITS.items()
    }
    print(f"{'':28}steps  critical path s  wall s  median over  worst over")
    for name, ask in asks().items():
        await measured(ask, models, unit)  # what is imported or opened once
        rows = [await measured(ask, models, unit) for _ in range(repeats)]
        over = [wall / path - 1 for _, path, wall in rows]
        steps, path, _ = rows[0]
        wall = statistics.median(row[2] for row in rows)
        print(
            f"{name:28}{steps:5}{path:17.2f}{wall:8.3f}"
            f"{statistics.median(over):12.1%}{max(over):12.1%}"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unit", type=float, default=0.2, help="seconds of a unit (0.2)")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    anyio.run(table, asked.unit, asked.repeats)


if __name__ == "__main__":
    main()
