"""How long the whole field takes on one practice suite: the table of a reviewer, on this machine.

    python tests/benchmarks/the_field.py [--suite practice-integer] [--limit 1000] [--system NAME]
        [--train-calls N] [--seed S]

Every system that fits the rehearsal pool sits the same questions in one run, as `podium run` does
it: training included, latency not slept (`time_scale` 0), logs and journals written. The suite is
generated as large as asked. Prints each system's accuracy, what it took by its own logs (samples
and calls per second between its first and last sample, while others ran beside it), and the wall
time of all.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.ledger.logs import Json, open_log
from podium.harness.ledger.system_runs import load_runs
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.run.catalogue import Catalogue, RunRequest
from podium.harness.run.run import run
from podium.harness.run.systems import default_systems, why_unfit
from podium.harness.suite import PubliclyTested

POOL = "rehearsal"


def field(parts: Catalogue, spec: PoolSpec, suite: Any) -> list[str]:
    """Return every system that can sit the suite: what is run by default, and what learns."""
    systems = default_systems(parts, spec)
    for name, manifest in parts.systems.items():
        tested = "public tests" not in manifest.needs or isinstance(suite, PubliclyTested)
        if tested and "<" not in name and not why_unfit(name, parts, spec):
            systems.append(name)
    return [name for name in dict.fromkeys(systems) if name != "oracle"]


def times(path: Path) -> tuple[float, float]:
    """Return when the first sample of a log began and the last one ended, in seconds."""
    with open_log(path) as log:
        samples: Sequence[Json] = list(log.samples())
    began = [datetime.fromisoformat(one["started_at"]).timestamp() for one in samples]
    ended = [datetime.fromisoformat(one["completed_at"]).timestamp() for one in samples]
    return min(began), max(ended)


def main() -> None:
    """Run the field and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="practice-integer")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--system", action="append", default=[])
    parser.add_argument("--train-calls", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-dir", type=Path)
    asked = parser.parse_args()
    parts, spec = whole_catalogue(), read_pool(POOL)
    sizes = {"train": 200, "validation": 60, "eval": asked.limit}
    suite = replace(parts.suites[asked.suite], sizes=sizes)  # pyright: ignore[reportArgumentType]
    parts = replace(parts, suites={asked.suite: suite})
    systems = asked.system or field(parts, spec, suite)
    with tempfile.TemporaryDirectory() as scratch:
        log_dir = asked.log_dir or Path(scratch) / "run"
        request = RunRequest(
            suites=(asked.suite,),
            systems=tuple(systems),
            pool=POOL,
            log_dir=log_dir,
            seed=asked.seed,
            time_scale=0.0,
            train_calls=asked.train_calls,
        )
        start = time.perf_counter()
        outcome = run(request, parts, controls())
        wall = time.perf_counter() - start
        print_table(log_dir, wall)
        print("" if outcome.finished else f"unfinished: {'; '.join(outcome.trouble)}")


def print_table(log_dir: Path, wall: float) -> None:
    """Print a line per system, slowest last, and the sums."""
    system_runs, _ = load_runs([log_dir])
    rows: list[tuple[float, str]] = []
    samples = calls = 0
    for one in system_runs:
        asked = sum(tally.calls for tally in one.spend.values())
        samples, calls = samples + len(one.attempts), calls + asked
        if one.facts.purpose == "eval":
            began, ended = times(one.paths[0])
            took = max(ended - began, 1e-3)
            rates = f"{len(one.attempts) / took:8.1f} samples/s {asked / took:8.1f} calls/s"
            right = fmean(attempt.value or 0.0 for attempt in one.attempts)
            name = f"{one.facts.system:26} {100 * right:5.1f} %"
            rows.append((took, f"{name} {asked:8} calls {took:7.1f} s {rates}"))
    for _, line in sorted(rows):
        print(line)
    print(f"{len(rows)} systems, learning included: {samples} samples, {calls} calls")
    print(f"wall {wall:.1f} s: {samples / wall:.1f} samples/s, {calls / wall:.1f} calls/s")


if __name__ == "__main__":
    main()
