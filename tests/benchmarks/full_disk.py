"""What becomes of a run on a disk that is full, once there is room again: the provider's bill says.

    python tests/benchmarks/full_disk.py --tmpfs          # real, small file systems; needs root
    python tests/benchmarks/full_disk.py                  # a limit on the size of each file
    python tests/benchmarks/full_disk.py --tmpfs 60 120 200

A hundred questions to one worker at a local provider, replies of 3 KB. A run begins on a disk of
some KiB; when it has ended the disk grows, and the same command goes on. Bought twice is what the
provider's own bill has beyond a request for each question.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.runs import calls_of
from tests.harness.billed_run import BilledRun, billed, default_signals

FILES = (20, 45, 80, 300)
"""KiB that one file may have."""
DISKS = (30, 60, 90, 120, 160, 200, 300)
"""KiB of a file system."""
QUESTIONS = 100
HEAD = "| KiB | exit | bought | written | exit again | bought twice | audit fails | weak |"


@contextmanager
def small(folder: Path, size: int) -> Generator[None]:
    """Mount a file system of some KiB."""
    kib = f"size={size}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", kib, "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def limited(size: int) -> Callable[[], None]:
    """Return what lets no file of a process grow beyond some KiB."""

    def limit() -> None:
        default_signals()
        resource.setrlimit(resource.RLIMIT_FSIZE, (size << 10, resource.RLIM_INFINITY))

    return limit


def on_small_disk(run: BilledRun, size: int) -> None:
    """Let the run begin on a file system of some KiB, and go on when it has 64 MiB."""
    run.log_dir.mkdir()
    with small(run.log_dir, size):
        code, words = run.finished(), run.said
        before = run.requests, written(run)
        subprocess.run(["mount", "-o", "remount,size=64m", str(run.log_dir)], check=True)
        show(run, size, (code, words), before)


def with_small_files(run: BilledRun, size: int) -> None:
    """Let the run begin where no file may grow beyond some KiB, and go on without that limit."""
    code, words = run.finished(prepare=limited(size)), run.said
    show(run, size, (code, words), (run.requests, written(run)))


def written(run: BilledRun) -> int:
    """Return how many replies have their outcome in a journal."""
    found = [call for path in run.log_dir.glob(f"{FOLDER}/*/*.jsonl") for call in calls_of(path)]
    return sum(call.outcome is not None and not call.outcome["error"] for call in found)


def show(run: BilledRun, size: int, ended: tuple[int, str], before: tuple[int, int]) -> None:
    """Resume with room, and print a row."""
    again = run.finished()
    fails, weak = ", ".join(run.failing) or "nothing", ", ".join(run.weak) or "nothing"
    row: Sequence[object] = (size, ended[0], *before, again, run.bought_twice, fails, weak)
    print(f"| {' | '.join(map(str, row))} |", flush=True)
    said = [one for one in ended[1].splitlines() if one.startswith("podium:")]
    words = "TRACEBACK" if "Traceback" in ended[1] else (said or ["nothing"])[-1]
    print(f"  said: {words.replace(str(run.log_dir), 'RUN')}", file=sys.stderr, flush=True)


def main() -> None:
    """Try all sizes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tmpfs", action="store_true")
    parser.add_argument("sizes", type=int, nargs="*", help="KiB")
    asked = parser.parse_args()
    print(f"{HEAD}\n|{'---|' * 8}")
    for size in asked.sizes or (DISKS if asked.tmpfs else FILES):
        with (
            tempfile.TemporaryDirectory() as folder,
            billed(Path(folder), QUESTIONS, workers=1, wait_s=0.05) as run,
        ):
            (on_small_disk if asked.tmpfs else with_small_files)(run, size)


if __name__ == "__main__":
    main()
