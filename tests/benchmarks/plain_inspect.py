"""Plain Inspect making the calls of `single:` and `moa-lite`: the peer of run_against_inspect.py.

The shortest solvers that do this, in one `eval_set` with real-time logging on and `log_buffer=1`,
the settings that survive kill -9. The file is frozen, its digest stands in run_against_inspect.py:
a peer that is changed is another peer.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
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

from podium.harness.extract import extract_integer

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


def plain(
    make: Callable[[], Solver],
    log_dir: Path,
    samples: Sequence[Sample],
    epochs: int,
    models: Mapping[str, Model],
) -> None:
    """Let a solver answer all samples, each `epochs` times, by the models of the roles."""
    task = Task(
        dataset=MemoryDataset(list(samples)),
        solver=make(),
        scorer=plain_score(),
        epochs=epochs,
        name="plain",
    )
    eval_set(
        [task],
        log_dir=str(log_dir),
        model=None,
        model_roles=dict(models),
        display="none",
        retry_attempts=0,
        log_buffer=1,
        ctl_server=False,
    )
