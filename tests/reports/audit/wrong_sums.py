"""Make a report for each corrupted copy of `totals.py`, in forks of one process.

    python wrong_sums.py CODE RUNS OUT < corruptions.json

CODE holds a copy of `podium` that each fork imports; what is not ours is imported once, before
the first. OUT gets a folder per corruption, by its number.
"""

import json
import os
import sys
from pathlib import Path

# Once, for all forks.
import duckdb  # noqa: F401
import inspect_ai.log
import inspect_ai.solver  # noqa: F401
import matplotlib.pyplot  # noqa: F401
import pandas  # noqa: F401
import scipy.stats  # noqa: F401

TOTALS = Path("podium") / "harness" / "ledger" / "totals.py"


def report(runs: str, out: Path) -> int:
    """Report some runs with the code that is first on the path."""
    from podium.cli import main

    return main(["report", runs, "--out", str(out)])


def main() -> None:
    """Write each corruption into the copy and report with it."""
    code, runs, out = sys.argv[1:]
    path = Path(code) / TOTALS
    text = path.read_text()
    for number, (right, wrong) in enumerate(json.load(sys.stdin)):
        path.write_text(text.replace(right, wrong))
        child = os.fork()
        if not child:
            sys.path.insert(0, code)
            os._exit(report(runs, Path(out) / str(number)))
        assert os.waitpid(child, 0)[1] == 0, wrong


if __name__ == "__main__":
    main()
