"""Problems per second in Inspect's docker sandbox: one container and one exec per problem.

    PYTHONPATH=. python tests/benchmarks/inspect_box_speed.py [--problems 30] [--at-once N]

The same programs, tests and judge as in grade_programs.py, but each problem is a sample with a
sandbox of its own, made and removed by Inspect as for any code task of its. That is kind to it: a
scorer that executes a command per test pays for each. Inspect holds two sandboxes per core at once
unless `--at-once` says otherwise. No model is asked.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice

import anyio.to_thread
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import ComposeConfig, ComposeService, SandboxEnvironmentSpec

from podium.sandbox import IMAGE
from podium.suites.code_grading import judge_program
from podium.suites.inspect_box import InspectBox
from tests.suites.recorded_programs import Recorded, have, recorded

STOCK = ComposeConfig(
    services={
        "default": ComposeService.model_validate(
            {
                "image": IMAGE,
                "x-local": True,
                "init": True,
                "command": "tail -f /dev/null",
                "network_mode": "none",
                "stop_grace_period": "1s",
            }
        )
    }
)
"""What Inspect writes by itself for a task that names no compose file, with our image."""


def stock(rows: Sequence[Recorded], at_once: int | None = None) -> tuple[float, int]:
    """Grade programs in a sandbox each; return the seconds it took and how many passed."""

    @scorer(metrics=[mean()], name="graded")
    def graded() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            row = rows[int(state.sample_id)]
            found = await anyio.to_thread.run_sync(judge_program, row.code, row.tests, InspectBox())
            return Score(value=float(found.passed))

        return score

    @solver(name="silent")
    def silent() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            return state

        return solve

    made = Task(
        dataset=[Sample(id=place, input=row.question) for place, row in enumerate(rows)],
        solver=silent(),
        scorer=graded(),
        sandbox=SandboxEnvironmentSpec("docker", STOCK),
    )
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        options = {"log_dir": folder, "display": "none", "max_sandboxes": at_once}
        (log,) = eval(made, model="mockllm/model", **options)
        seconds = time.perf_counter() - started
        if log.status != "success":
            raise RuntimeError(log.error.message if log.error else log.status)
        scores = [(sample.scores or {})["graded"].value for sample in log.samples or []]
    return seconds, scores.count(1.0)


def main() -> int:
    """Measure and print; 2 when the recorded programs are not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--at-once", type=int)
    args = parser.parse_args()
    if reason := have():
        print(reason, file=sys.stderr)
        return 2
    rows = list(islice(recorded(), args.problems))
    seconds, passed = stock(rows, args.at_once)
    print(
        f"Inspect's docker: {len(rows)} problems, {sum(len(row.tests.cases) for row in rows)} "
        f"tests, {seconds:.1f} s, {len(rows) / seconds:.2f} problems/s, {passed} pass"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
