"""Read a million mutated plans with every reader: `make fuzz`, or `make fuzz ARGS="100000 1"`.

Arguments: how many, and the seed. It stops at the first that makes a reader raise, and shows it.
"""

import sys
import time

from tests.conductor.fuzz_readers import FORMS, fuzz


def main() -> None:
    """Print what came of them."""
    count, seed = (*map(int, sys.argv[1:]), *(1_000_000, 0)[len(sys.argv) - 1 :])[:2]
    began = time.perf_counter()
    tally = fuzz(count, seed)
    took = time.perf_counter() - began
    results = ", ".join(f"{name} {number:,}" for name, number in sorted(tally.items()))
    print(f"{count:,} texts, seed {seed}, {len(FORMS)} forms each, none raised: {results}")
    print(f"{took:.0f} s")


if __name__ == "__main__":
    main()
