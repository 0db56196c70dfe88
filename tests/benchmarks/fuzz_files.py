"""Replace every file that a user hands over by hostile ones, thousands of times, and count.

    PYTHONPATH=. python tests/benchmarks/fuzz_files.py [SEEDS] [--from SEED]

Prints the inputs, exit codes, tracebacks, other exit codes, hangs, and the cases that took a second
of processor time more than the valid file does; 1 when any of the last four is not 0. A seed is
1,056 cases, each a command in process. The fuzzer is tests/podium/cli/hostile_files.py.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.podium.cli.hostile_files import cases, fuzz


def main() -> int:
    """Fuzz and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=4)
    parser.add_argument("--from", type=int, default=100, dest="first")
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("PODIUM_DATA", folder)
        seeds = range(args.first, args.first + args.seeds)
        tally = fuzz(Path(folder) / "files", (one for seed in seeds for one in cases(seed)), print)
    codes = ", ".join(f"{count:,} with {code}" for code, count in sorted(tally.codes.items()))
    print(f"{tally.inputs:,} inputs in {time.monotonic() - started:,.0f} s: {codes}")
    print(f"{len(tally.tracebacks)} tracebacks, {len(tally.wrong_codes)} other exit codes or hangs")
    print(f"{len(tally.slow)} over a second, {len(tally.many_lines)} refusals of several lines")
    found = (tally.tracebacks, tally.wrong_codes, tally.slow, tally.many_lines)
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
