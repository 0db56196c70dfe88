"""Which sequences of one to three workers are right most often on a practice suite?

    PYTHONPATH=. python tests/benchmarks/best_sequences.py [SUITE ...] [--split validation]

All of them are run on the pool `rehearsal`, each worker reading all before it, three draws a
question: what search could find, for a training to be held against. Suites that need no box.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from statistics import fmean

from podium.harness.pool_config import read_pool
from podium.suites import SUITES
from tests.benchmarks.deep_calibration import chain, right

NAMED = ("practice-integer", "practice-choice", "practice-composed")
DRAWS, LONGEST, SHOWN = range(1, 4), 3, 3


def main(words: Sequence[str] | None = None) -> int:
    """Print the best sequences of each length, in percent right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=NAMED)
    parser.add_argument("--split", choices=("train", "validation"), default="validation")
    parser.add_argument("--limit", type=int, default=60, help="questions of each suite")
    given = parser.parse_args(words)
    workers = read_pool("rehearsal").names
    for suite in (SUITES[name] for name in given.suites):
        asked = suite.load(given.split)[: given.limit]
        for length in range(1, LONGEST + 1):
            plans = {one: chain(one) for one in product(workers, repeat=length)}
            found = [
                (fmean(right(question, plan, DRAWS, suite) for question in asked), one)
                for one, plan in plans.items()
            ]
            best = sorted(found, reverse=True)[:SHOWN]
            told = "; ".join(f"{' '.join(one)} {100 * share:.1f}" for share, one in best)
            print(f"{suite.name}, {length} of {len(found)} sequences: {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
