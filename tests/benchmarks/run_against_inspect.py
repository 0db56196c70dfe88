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
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from inspect_ai import Task, eval_set
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    Model,
    ModelOutput,
    get_model,
    model_roles,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from harness.cli.catalogue import controls, whole_catalogue
from harness.extract import extract_integer
from harness.pool import pool_models
from harness.pool_config import read_pool
from harness.run.catalogue import RunRequest
from harness.run.run import run
from suites import SUITES

SUITE = "practice-integer"
AGGREGATOR = "sage"
"""The first worker of the pool, as in `moa-lite`: it has more to compute than others."""


@solver
def plain_single() -> Solver:
    """Ask one worker."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        output = await get_model(role="sage").generate([ChatMessageUser(content=state.input_text)])
        state.output = ModelOutput.from_content("plain", output.completion)
        return state

    return solve


@solver
def plain_mixture(spans: bool = False) -> Solver:
    """Ask every worker at once, then one with all replies in its system message.

    With `spans` each call has a span of its own, as podium's steps have and a log needs that is to
    say which call belongs to which step.
    """

    async def ask(model: Model, *messages: ChatMessage) -> str:
        async with span("call", type="step") if spans else nullcontext():
            return (await model.generate(list(messages))).completion

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        workers = [get_model(role=name) for name in model_roles() if name != "conductor"]
        asked = ChatMessageUser(content=state.input_text)
        replies = await asyncio.gather(*(ask(worker, asked) for worker in workers))
        numbered = "\n".join(f"{n}. {reply}" for n, reply in enumerate(replies, start=1))
        system = ChatMessageSystem(content=f"Responses from models:\n{numbered}")
        text = await ask(get_model(role=AGGREGATOR), system, asked)
        state.output = ModelOutput.from_content("plain", text)
        return state

    return solve


def with_spans() -> Solver:
    """Return the mixture with a span per call."""
    return plain_mixture(spans=True)


@scorer(metrics=[mean(), stderr()])
def plain_score() -> Scorer:
    """Compare integers."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float(str(extract_integer(state.output.completion)) == target.text))

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
    request = RunRequest(
        suites=(SUITE,),
        systems=(system,),
        pool="rehearsal",
        log_dir=log_dir,
        limit=questions,
        time_scale=0.0,
        display="none",
    )
    assert run(request, whole_catalogue(), controls()).finished


def rate(side: Callable[[Path, int], None], log_dir: Path, questions: int) -> float:
    """Return the samples per second of one side."""
    began = time.perf_counter()
    side(log_dir, questions)
    return questions / (time.perf_counter() - began)


def compare(system: str, make: Callable[[], Solver], questions: int, rounds: int) -> str:
    """Return one line: samples per second of both sides, and their ratio."""
    mine: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(rounds):
            place = Path(scratch) / str(number)
            theirs.append(rate(partial(plain, make), place / "plain", questions))
            mine.append(rate(partial(ours, system), place / "ours", questions))
    ratio = statistics.median(left / right for left, right in zip(mine, theirs, strict=True))
    return (
        f"podium {statistics.median(mine):.1f} samples/s, plain Inspect "
        f"{statistics.median(theirs):.1f} samples/s, ratio {ratio:.2f}"
    )


def main() -> None:
    """Print a line per system, after a warm-up of both sides."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    compare("single:sage", plain_single, 2, 1)
    for title, system, make in (
        ("single:sage, 1 call", "single:sage", plain_single),
        ("moa-lite, 9 calls", "moa-lite", plain_mixture),
        ("moa-lite, 9 calls, a span per call on both sides", "moa-lite", with_spans),
    ):
        print(f"{title}:", compare(system, make, asked.questions, asked.rounds))


if __name__ == "__main__":
    main()
