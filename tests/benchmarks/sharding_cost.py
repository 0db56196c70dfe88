"""What it costs to cut a run into shards, in processor seconds of all its processes (rehearsal).

    python tests/benchmarks/sharding_cost.py                # 8,000 queries a side, minutes
    python tests/benchmarks/sharding_cost.py --queries 100      # what is fixed

One process asks four systems of equal price; four local shards ask one of them each, with learning,
leases, manifests and figures. Who begins alternates. What an ended process left behind is waited
for, so that its seconds count as well.
"""

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

SHARDS = 4
QUESTIONS = 50
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans become children of this process
SYSTEMS = [f"single:sage-{number}" for number in range(1, SHARDS + 1)]
SUITE = ["--suite", "practice-integer", "--pool", "rehearsal-homogeneous", "--time-scale", "0"]


def seconds(words: Sequence[str]) -> float:
    """Return the processor seconds of a command and of all processes below it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "podium", *words], check=True, stdout=subprocess.DEVNULL)
    with suppress(ChildProcessError):
        while os.wait():
            print("  one process outlived its parent", file=sys.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(folder: Path, queries: int, *more: str) -> float:
    """Ask so many queries of each system."""
    epochs = max(queries // QUESTIONS, 1)
    extent = ["--limit", str(QUESTIONS), "--epochs", str(epochs), "--display", "none"]
    named = [word for name in SYSTEMS for word in ("--system", name)]
    spent = seconds(["run", *SUITE, *named, *extent, "--log-dir", str(folder), *more])
    made = len([*folder.glob("shards/*/outcome.json")])
    assert made == (SHARDS if more else 0), f"{made} shards"
    return spent


def main() -> None:
    """Run both sides in turn and print them."""
    parser = argparse.ArgumentParser(description="Processor seconds of shards and of one process.")
    parser.add_argument("--queries", type=int, default=2000, help="of a shard (2000)")
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    sides = {"one process": [], "shards": ["--shards", str(SHARDS)]}
    ratios: list[float] = []
    for number in range(asked.rounds):
        spent: dict[str, float] = {}
        for name in sorted(sides, reverse=bool(number % 2)):
            with tempfile.TemporaryDirectory() as folder:
                spent[name] = run(Path(folder) / "run", asked.queries, *sides[name])
        ratios.append(spent["shards"] / spent["one process"])
        told = ", ".join(f"{name} {value:.1f} s" for name, value in spent.items())
        print(f"{told}; ratio {ratios[-1]:.3f}", flush=True)
    print(f"{SHARDS} x {asked.queries} queries, median ratio {median(ratios):.3f}")


if __name__ == "__main__":
    main()
