"""Samples per second of podium's run next to plain Inspect making the same number of calls.

    PYTHONPATH=. python tests/benchmarks/run_against_inspect.py [--epochs 5] [--rounds 5]

Both sides ask the same rehearsal workers the same 60 questions, each as often as there are epochs:
once per question (`single:sage`), and nine times (`moa-lite`: eight proposers at once, one
aggregator). The plain side is the shortest Inspect solver that does this (plain_inspect.py, frozen
by its digest); podium's has its journal, its reply store and its prices on. Both write `.eval` logs
through `eval_set` with real-time logging on and `log_buffer=1`, the settings that survive kill -9.
Rounds alternate, and so does who begins, so that a drifting machine slows both; a figure is the
median of the rounds' ratios, of seconds on the clock and of seconds of the processor.
"""

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

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
PLAIN_SHA256 = "903429c3c0e319c71cfc9393adbe977121eae0e335ffc2ef9e584ecc87c9553a"
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


def main() -> None:
    """Print a line per system, after a warm-up of both sides."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=60, help="of the 60 there are (60)")
    parser.add_argument("--epochs", type=int, default=5, help="answers to each question (5)")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    frozen = hashlib.sha256(Path(plain_inspect.__file__).read_bytes()).hexdigest()
    assert frozen == PLAIN_SHA256, "plain_inspect.py is not the peer that was measured before"
    compare("single:sage", plain_single, (2, 1), 1)
    for title, system, make in (
        ("single:sage, 1 call", "single:sage", plain_single),
        ("moa-lite, 9 calls", "moa-lite", plain_mixture),
        ("moa-lite, 9 calls, a span per call on both sides", "moa-lite", with_spans),
    ):
        line = compare(system, make, (asked.questions, asked.epochs), asked.rounds)
        print(f"{title}: {line}", flush=True)


if __name__ == "__main__":
    main()
