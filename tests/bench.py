"""Samples per second of `podium run` beside plain Inspect making the same number of calls.

`make bench` prints one line per measurement and the ratio of the medians (target: 0.95 or more).
Both sides ask the same rehearsal workers the same questions (Mixture-of-Agents with one layer of
proposers, all at once, then the aggregator) through `eval_set` with the same settings: real-time
logging on, `log_buffer=1`. The plain side uses Inspect's own means and knows no workflow, pool or
ledger. Latency is not slept. The sides take turns, after one warm-up each.
"""

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from inspect_ai import Task, eval_set
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, Model, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from harness.cli import catalogue, controls
from harness.compose import Request
from harness.pool import pool_models
from harness.pool_file import read_pool
from harness.run import run

SUITE = "practice-integer"
POOL = "rehearsal"

Side = Callable[[Path, int], None]


def podium(log_dir: Path, questions: int) -> None:
    """Run the system as `podium run` does."""
    request = Request(
        suites=(SUITE,),
        systems=("moa-lite",),
        pool=POOL,
        log_dir=log_dir,
        limit=questions,
        time_scale=0.0,
        display="none",
    )
    run(request, catalogue(), controls())


def plain(log_dir: Path, questions: int) -> None:
    """Run the same calls with Inspect alone."""
    loaded = catalogue().suites[SUITE].load("eval")[:questions]
    samples = [Sample(id=q.id, input=q.text, target=q.target or "") for q in loaded]
    models = pool_models(read_pool(POOL), time_scale=0.0)
    task = Task(
        dataset=MemoryDataset(samples), solver=mixture(list(workers(models))), scorer=match()
    )
    eval_set(
        [task],
        log_dir=str(log_dir),
        model=None,
        model_roles=dict(models),
        display="none",
        log_buffer=1,
        retry_attempts=0,
        continue_on_fail=True,
        retry_cleanup=False,
        ctl_server=False,
        score_display=False,
    )


def workers(models: dict[str, Model]) -> Sequence[str]:
    return [name for name in models if name != "conductor"]


@solver
def mixture(roles: list[str]) -> Solver:
    """Ask every role at once, then the first one with all replies in its chat."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        question = ChatMessageUser(content=state.input_text)
        drafts = await collect(*(get_model(role=role).generate([question]) for role in roles))
        replies = [ChatMessageAssistant(content=draft.completion) for draft in drafts]
        state.output = await get_model(role=roles[0]).generate([question, *replies, question])
        return state

    return solve


def measured(side: Side, questions: int) -> tuple[float, int]:
    """Return seconds and model calls of one run into a fresh directory."""
    with tempfile.TemporaryDirectory() as folder:
        log_dir = Path(folder) / "logs"
        began = time.perf_counter()
        side(log_dir, questions)
        elapsed_s = time.perf_counter() - began
        return elapsed_s, calls(log_dir)


def calls(log_dir: Path) -> int:
    """Return how many model calls the logs hold."""
    logs = [read_eval_log(info) for info in list_eval_logs(str(log_dir), recursive=False)]
    samples = [sample for log in logs for sample in log.samples or []]
    return sum(isinstance(event, ModelEvent) for sample in samples for event in sample.events)


def main() -> int:
    """Measure both sides in turn; return 1 when they did not make the same number of calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    sides: dict[str, Side] = {"plain Inspect": plain, "podium run": podium}
    for side in sides.values():
        measured(side, 2)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    counted: set[int] = set()
    for _ in range(args.rounds):
        for name, side in sides.items():
            elapsed_s, made = measured(side, args.questions)
            rates[name].append(args.questions / elapsed_s)
            counted.add(made)
            rate = rates[name][-1]
            print(
                f"{name:14} {rate:7.2f} samples/s ({made} calls in {elapsed_s:.2f} s)", flush=True
            )
    theirs, ours = (statistics.median(rates[name]) for name in sides)
    print(f"podium run / plain Inspect = {ours / theirs:.3f} (medians of {args.rounds})")
    return 0 if len(counted) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
