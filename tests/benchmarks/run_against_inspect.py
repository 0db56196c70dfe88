"""Samples per second of podium's run next to plain Inspect making the same number of calls.

    python -m tests.benchmarks.run_against_inspect [--epochs 5] [--rounds 5]
    python -m tests.benchmarks.run_against_inspect --instructions    # about 20 minutes

Both sides ask the same rehearsal workers the same 60 questions, each as often as there are epochs:
once per question (`single:sage`), and nine times (`moa-lite`: eight proposers at once, one
aggregator). The plain side is the shortest Inspect solver that does this (plain_inspect.py, frozen
by its digest); podium's has its journal, its reply store and its prices on. Both write `.eval` logs
through `eval_set` with real-time logging on and `log_buffer=1`, the settings that survive kill -9.
Rounds alternate, and so does who begins, so that a drifting machine slows both; a figure is the
median of the rounds' ratios, of seconds on the clock and of seconds of the processor.

With `--instructions` each side runs in a process of its own with one hash seed, once with few
questions and once with many: the difference is what the additional samples take, without imports
and set-up. valgrind counts the instructions of user code; where it is missing, the figure is the
least processor time of three runs. Then come our ten dearest functions by profiled time, each with
the libraries that it calls and without Inspect's part; the rehearsal workers are on both sides.
"""

import argparse
import cProfile
import hashlib
import os
import pstats
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.solver import Solver

from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.pool import pool_models
from podium.harness.pool_config import read_pool
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.run import run
from podium.suites import SUITES
from tests.benchmarks import plain_inspect
from tests.benchmarks.plain_inspect import plain, plain_mixture, plain_single, with_spans

Times = tuple[float, float]

SUITE = "practice-integer"
PLAIN_SHA256 = "9ec5cf474b4301f8ddbcb56c0e5c8054d045ae2e6574342e76040a1bbccee6d0"
"""Of plain_inspect.py: what podium is measured against does not change with podium."""


def theirs(make: Callable[[], Solver], log_dir: Path, questions: int, epochs: int) -> None:
    """Run the plain side."""
    asked = SUITES[SUITE].load("eval")[:questions]
    samples = [Sample(id=one.id, input=one.text, target=one.target or "") for one in asked]
    plain(make, log_dir, samples, epochs, pool_models(read_pool("rehearsal")))


def ours(system: str, log_dir: Path, questions: int, epochs: int) -> None:
    """Run podium's side."""
    request = RunRequest(
        suites=(SUITE,),
        systems=(system,),
        pool="rehearsal",
        log_dir=log_dir,
        limit=questions,
        epochs=epochs,
        time_scale=0.0,
        display="none",
    )
    assert run(request, whole_catalogue(), controls()).finished


def seconds(side: Callable[[Path, int, int], None], log_dir: Path, size: tuple[int, int]) -> Times:
    """Return the seconds that one side takes: on the clock, and of the processor."""
    began, busy = time.perf_counter(), time.process_time()
    side(log_dir, *size)
    return time.perf_counter() - began, time.process_time() - busy


def compare(system: str, make: Callable[[], Solver], size: tuple[int, int], rounds: int) -> str:
    """Return one line: samples per second of both sides, and the ratios."""
    sides = {"plain": partial(theirs, make), "podium": partial(ours, system)}
    took: dict[str, list[Times]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(rounds):
            for name in sorted(sides, reverse=number % 2 == 1):
                place = Path(scratch) / str(number) / name
                took[name].append(seconds(sides[name], place, size))
    pairs = list(zip(took["plain"], took["podium"], strict=True))
    clock, busy = (
        statistics.median(left[at] / right[at] for left, right in pairs) for at in (0, 1)
    )
    speeds = {
        name: size[0] * size[1] / statistics.median(wall for wall, _ in found)
        for name, found in took.items()
    }
    return (
        f"podium {speeds['podium']:.1f} samples/s, plain Inspect {speeds['plain']:.1f} samples/s, "
        f"ratio {clock:.2f} (processor {busy:.2f})"
    )


SIDES: dict[str, Callable[[Path, int, int], None]] = {
    "plain-1": partial(theirs, plain_single),
    "plain-9": partial(theirs, plain_mixture),
    "plain-9-spans": partial(theirs, with_spans),
    "podium-1": partial(ours, "single:sage"),
    "podium-9": partial(ours, "moa-lite"),
}
PAIRS = (("podium-1", "plain-1"), ("podium-9", "plain-9"), ("podium-9", "plain-9-spans"))
FEW, MANY = 10, 40
COUNTER = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
COUNTED = re.compile(r"I +refs: +([\d,]+)")
MODULE = "tests.benchmarks.run_against_inspect"
ROOT = str(Path(plain_inspect.__file__).parents[2])
WORKERS = "/suites/practice/workers/"


def run_side(side: str, questions: int) -> None:
    """Run one side in a directory that is removed."""
    with tempfile.TemporaryDirectory() as scratch:
        SIDES[side](Path(scratch) / side, questions, 1)


def counted(side: str, questions: int) -> float:
    """Return the instructions of a side in its own process, in millions; else milliseconds."""
    command = [sys.executable, "-m", MODULE, "--side", side, "--questions", str(questions)]
    where = {"cwd": ROOT, "env": {**os.environ, "PYTHONHASHSEED": "0"}}
    if shutil.which(COUNTER[0]):
        done = subprocess.run([*COUNTER, *command], **where, capture_output=True, text=True)
        matches = COUNTED.search(done.stderr)
        assert done.returncode == 0, done.stderr[-2000:]
        assert matches
        return int(matches[1].replace(",", "")) / 1e6
    times: list[float] = []
    for _ in range(3):
        began = os.times().children_user
        subprocess.run(command, **where, check=True, capture_output=True)
        times.append(1000 * (os.times().children_user - began))
    return min(times)


def dearest(side: str, questions: int, most: int = 10) -> list[str]:
    """Return a line for each of our dearest functions: profiled time and calls per sample."""
    run_side(side, 2)
    profile = cProfile.Profile()
    profile.runcall(run_side, side, questions)
    rows: dict[tuple[str, int, str], tuple[int, int, float, float, dict[Any, Any]]]
    rows = vars(pstats.Stats(profile))["stats"]
    own = Counter({row: rows[row][2] for row in rows if is_ours(row[0])})
    for row, (*_, callers) in rows.items():
        if not is_ours(row[0]) and "inspect_ai" not in row[0]:
            for caller, (_, _, alone, _) in callers.items():
                own[caller] += alone if is_ours(caller[0]) else 0
    return [
        f"  {1e6 * took / questions:8.0f} us{rows[row][1] / questions:7.1f} calls  "
        f"{row[0].removeprefix(ROOT + '/').removeprefix('podium/')}:{row[2]}"
        for row, took in own.most_common(most)
    ]


def is_ours(path: str) -> bool:
    """Say whether a file is podium's, other than of the workers and of these benchmarks."""
    return path.startswith(f"{ROOT}/podium/") and WORKERS not in path


def count_instructions() -> None:
    """Print what a sample takes on both sides, the ratio, the speeds and our dearest functions."""
    unit = "million instructions" if shutil.which(COUNTER[0]) else "ms of user time"
    size = MANY - FEW
    costs = {side: (counted(side, MANY) - counted(side, FEW)) / size for side in SIDES}
    for side, peer in PAIRS:
        print(
            f"{side}: {costs[side]:.1f} {unit} a sample, {peer} {costs[peer]:.1f}, "
            f"ratio {costs[side] / costs[peer]:.3f}",
            flush=True,
        )
    for title, system, make in SYSTEMS:
        print(f"{title}: {compare(system, make, (MANY, 1), 3)}", flush=True)
    for side in ("podium-1", "podium-9"):
        print(f"{side}, our dearest functions, a sample:", *dearest(side, MANY), sep="\n")


SYSTEMS = (
    ("single:sage, 1 call", "single:sage", plain_single),
    ("moa-lite, 9 calls", "moa-lite", plain_mixture),
    ("moa-lite, 9 calls, a span per call on both sides", "moa-lite", with_spans),
)


def main() -> None:
    """Print a line per system, after a warm-up of both sides."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=60, help="of the 60 there are (60)")
    parser.add_argument("--epochs", type=int, default=5, help="answers to each question (5)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--instructions", action="store_true", help="count them")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    frozen = hashlib.sha256(Path(plain_inspect.__file__).read_bytes()).hexdigest()
    assert frozen == PLAIN_SHA256, "plain_inspect.py is not the peer that was measured before"
    if asked.side:
        run_side(asked.side, asked.questions)
        return
    compare("single:sage", plain_single, (2, 1), 1)
    if asked.instructions:
        count_instructions()
        return
    for title, system, make in SYSTEMS:
        line = compare(system, make, (asked.questions, asked.epochs), asked.rounds)
        print(f"{title}: {line}", flush=True)


if __name__ == "__main__":
    main()
