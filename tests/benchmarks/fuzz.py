"""Fuzz at length what tests fuzz briefly: plan readers, files that users hand over, and Ctrl-C.

    python -m tests.benchmarks.fuzz plans [1000000] [--seed 0]   # texts for every reader of plans
    python -m tests.benchmarks.fuzz files [4] [--seed 100]       # seeds of 1,056 commands each
    python -m tests.benchmarks.fuzz starts [30]                  # moments of a run's first 3 s

The exit status is 1 if a reader raises, or if a command ends in a traceback of podium's own, in an
unexpected exit code, too late, or in a refusal of several lines. `starts` breaks `python -m podium`
and the installed command; what Python prints before it reads podium is counted apart.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.conductor import fuzz_readers
from tests.podium.cli import hostile_files
from tests.podium.cli.test_break import MODULE, broken


def plans(count: int, seed: int) -> bool:
    """Read mutated plans; print the outcomes by reader. The first that makes one raise ends it."""
    began = time.perf_counter()
    tally = fuzz_readers.fuzz(count, seed)
    results = ", ".join(f"{name} {number:,}" for name, number in sorted(tally.items()))
    forms = len(fuzz_readers.FORMS)
    print(f"{count:,} texts, seed {seed}, {forms} forms each, none raised: {results}")
    print(f"{time.perf_counter() - began:.0f} s")
    return True


def files(count: int, seed: int) -> bool:
    """Replace files by hostile ones; print exit codes, tracebacks and slow cases."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("PODIUM_DATA", folder)
        cases = (case for each in range(seed, seed + count) for case in hostile_files.cases(each))
        tally = hostile_files.fuzz(Path(folder) / "files", cases, print)
    codes = ", ".join(f"{number:,} with {code}" for code, number in sorted(tally.codes.items()))
    print(f"{tally.inputs:,} inputs in {time.monotonic() - began:,.0f} s: {codes}")
    print(f"{len(tally.tracebacks)} tracebacks, {len(tally.wrong_codes)} other exit codes or hangs")
    print(f"{len(tally.slow)} over a second, {len(tally.many_lines)} refusals of several lines")
    return not (tally.tracebacks or tally.wrong_codes or tally.slow or tally.many_lines)


def starts(count: int, _: int) -> bool:
    """Interrupt `podium run` at moments of its start; print exit codes and tracebacks."""
    installed, ours = [str(Path(sys.executable).with_name("podium"))], 0
    for command in (MODULE, installed):
        codes, tracebacks, early = Counter[int](), 0, 0
        for number in range(count):
            after_s = 3.0 * number / max(1, count - 1)
            with tempfile.TemporaryDirectory() as folder:
                code, text = broken(command, Path(folder), after_s)
            codes[code] += 1
            if "Traceback" in text or "KeyboardInterrupt" in text:
                is_ours = "harness/" in text
                tracebacks, early = tracebacks + is_ours, early + (not is_ours)
                print(f"  after {after_s:.2f} s: {text.strip().splitlines()[-1]}")
        ours += tracebacks
        shown = ", ".join(f"{number} with {code}" for code, number in sorted(codes.items()))
        print(f"{Path(command[0]).name} {' '.join(command[1:])}: {count} breaks: {shown}")
        print(f"  {tracebacks} tracebacks, {early} while Python itself started")
    return not ours


SUBJECTS = {"plans": (plans, 1_000_000, 0), "files": (files, 4, 100), "starts": (starts, 30, 0)}


def main() -> int:
    """Fuzz one subject and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("count", type=int, nargs="?", help="texts, seeds or moments")
    parser.add_argument("--seed", type=int, help="first seed (plans: 0, files: 100)")
    given = parser.parse_args()
    fuzz, count, seed = SUBJECTS[given.subject]
    count = count if given.count is None else given.count
    passed = fuzz(count, seed if given.seed is None else given.seed)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
