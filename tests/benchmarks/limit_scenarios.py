"""What limits of dollars come to against a provider that gets dearer, answers in bursts, or lies.

    python tests/benchmarks/limit_scenarios.py

A local server bills each request; a call can cost `bound` at most. `ramp`: twelve cheap calls
(forty, for questions), then dear ones. `burst`: all calls take what their requests allow, and come
together. `lie`: all take three times that, from the first on or after one honest call. Limits are
of a run, of each question (`spent`: the dearest one), and of a training in one and two processes.
"""

import logging
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.harness.limited_runs import (
    CHEAP,
    CameTo,
    Limits,
    asked,
    burst,
    lie,
    ramp,
    taking,
    trained,
)

SCRIPTS = {
    "ramp": ramp(12, 300),
    "burst": burst(300),
    "lie": lie(300),
    "honest, then lie": [taking(CHEAP), *lie(300)],
}
FIVE, EACH = Decimal(5), Decimal("2.5")
HEAD = ("limit of", "scenario", "at once", "limit", "spent", "bound", "requests", "refused")


def found(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for each limit and scenario."""
    for name, script in SCRIPTS.items():
        for at_once in (1, 32):
            limits = Limits(run=FIVE, at_once=at_once)
            came_to = asked(folder / f"run-{name}-{at_once}", script, limits)
            yield _row("run", name, str(at_once), FIVE, came_to.billed, came_to)
    for name, script in {**SCRIPTS, "ramp": ramp(40, 300)}.items():
        limits = Limits(question=EACH, questions=20, calls=8)
        came_to = asked(folder / f"question-{name}", script, limits)
        over = sum(one > EACH for one in came_to.by_question)
        title = f"query ({over} of 20 over)"
        yield _row(title, name, "8 of 20", EACH, max(came_to.by_question), came_to)
    for name, script in SCRIPTS.items():
        for processes in (1, 2):
            came_to = trained(folder / f"training-{name}-{processes}", script, FIVE, processes)
            title = f"training, {processes} process{'es' * (processes > 1)}"
            yield _row(title, name, "32", FIVE, came_to.billed, came_to)


def _row(
    title: str, name: str, at_once: str, limit: Decimal, spent: Decimal, came_to: CameTo
) -> tuple[str, ...]:
    requests, refused = len(came_to.bill.lines), len(came_to.refused)
    counts = (f"{came_to.bound:.4f}", str(requests), str(refused))
    return (title, name, at_once, f"{limit:.2f}", f"{spent:.2f}", *counts)


def main() -> None:
    """Print the table."""
    logging.disable(logging.WARNING)  # a lie is said once a run
    with TemporaryDirectory() as folder:
        rows = [HEAD, *found(Path(folder))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
