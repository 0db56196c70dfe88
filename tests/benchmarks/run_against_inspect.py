"""Samples per second of podium's run next to plain Inspect making the same number of calls.

    python tests/benchmarks/run_against_inspect.py [--questions 60] [--rounds 3]

Both sides ask the same rehearsal workers the same questions: once per question (`single:sage`), and
nine times (`moa-lite`: eight proposers at once, one aggregator). The plain side is the shortest
Inspect solver that does this. Both write `.eval` logs through `eval_set` with real-time logging on
and `log_buffer=1`, the settings that survive kill -9. Rounds alternate, so that a drifting machine
slows both; the figure is the median of the rounds' ratios.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from inspect_ai import Task, eval_set
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    Model,
    ModelOutput,
    get_model,
    model_roles,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from harness.answers import integer
from harness.cli import catalogue, controls
from harness.compose import Request
from harness.pool import pool_models
from harness.pool_file import read_pool
from harness.run import run
from suites import SUITES

SUITE = "practice-integer"
AGGREGATOR = "formatter"


@solver
def plain_single() -> Solver:
    """Ask one worker."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        output = await get_model(role="sage").generate([ChatMessageUser(content=state.input_text)])
        state.output = ModelOutput.from_content("plain", output.completion)
        return state

    return solve


@solver
def plain_mixture() -> Solver:
    """Ask every worker at once, then one with all replies in its system message."""

    async def ask(model: Model, text: str) -> str:
        return (await model.generate([ChatMessageUser(content=text)])).completion

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        workers = [get_model(role=name) for name in model_roles() if name != "conductor"]
        replies = await asyncio.gather(*(ask(worker, state.input_text) for worker in workers))
        numbered = "\n".join(f"{n}. {reply}" for n, reply in enumerate(replies, start=1))
        messages = [
            ChatMessageSystem(content=f"Responses from models:\n{numbered}"),
            ChatMessageUser(content=state.input_text),
        ]
        output = await get_model(role=AGGREGATOR).generate(list(messages))
        state.output = ModelOutput.from_content("plain", output.completion)
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def plain_score() -> Scorer:
    """Compare integers."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float(str(integer(state.output.completion)) == target.text))

    return score


def plain(make: Callable[[], Solver], log_dir: Path, questions: int) -> None:
    """Run the plain side."""
    asked = SUITES[SUITE].load("eval")[:questions]
    samples = [Sample(id=one.id, input=one.text, target=one.target or "") for one in asked]
    task = Task(dataset=MemoryDataset(samples), solver=make(), scorer=plain_score(), name="plain")
    eval_set(
        [task],
        log_dir=str(log_dir),
        model=None,
        model_roles=dict(pool_models(read_pool("rehearsal"))),
        display="none",
        retry_attempts=0,
        log_buffer=1,
        ctl_server=False,
    )


def ours(system: str, log_dir: Path, questions: int) -> None:
    """Run podium's side."""
    request = Request(
        suites=(SUITE,),
        systems=(system,),
        pool="rehearsal",
        log_dir=log_dir,
        limit=questions,
        time_scale=0.0,
        display="none",
    )
    assert run(request, catalogue(), controls()).finished


def seconds(work: Callable[[], None]) -> float:
    """Return the wall time of some work."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Print one line per system: samples per second of both sides, and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    pairs = (("single:sage", plain_single, 1), ("moa-lite", plain_mixture, 9))
    with tempfile.TemporaryDirectory() as scratch:
        plain(plain_single, Path(scratch) / "warm", 2)
        ours("single:sage", Path(scratch) / "warm-too", 2)
        for system, make, calls in pairs:
            rates: list[tuple[float, float]] = []
            for number in range(asked.rounds):
                place = Path(scratch) / f"{system}-{number}"
                theirs = seconds(lambda: plain(make, place / "plain", asked.questions))
                mine = seconds(lambda: ours(system, place / "ours", asked.questions))
                rates.append((asked.questions / mine, asked.questions / theirs))
            ratio = statistics.median(mine / theirs for mine, theirs in rates)
            mine, theirs = (statistics.median(side) for side in zip(*rates, strict=True))
            print(
                f"{system} ({calls} calls): podium {mine:.1f} samples/s, "
                f"plain Inspect {theirs:.1f} samples/s, ratio {ratio:.2f}"
            )


if __name__ == "__main__":
    main()
