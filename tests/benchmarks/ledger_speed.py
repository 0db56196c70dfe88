"""How fast a ledger is read: calls per second against Inspect's `events_df`, and a million calls.

    python tests/benchmarks/ledger_speed.py /scratch/folder            # about 2 GB and 3 minutes
    python tests/benchmarks/ledger_speed.py /scratch/folder --logs 10  # a small one

Every log is a clone of a real run's (many_logs.py): 200 samples of 5 calls each,
one system to a log. Measured are (1) our reader and `events_df`, unfiltered and filtered to model
events, by processor time, in alternating rounds on the same logs in this one process; (2) `podium
report` and `podium audit`: wall time, processor time and the peak of all its processes' resident
memory together, at 10,000, 100,000 and 1,000,000 calls; (3) bytes per call. What was made already
is used again.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from inspect_ai.analysis import events_df

sys.path.insert(0, str(Path(__file__).parents[2]))
from podium.harness.ledger.logs import events_of, lost_in, open_log
from tests.harness.ledger.many_logs import Size, copies, rehearse

CALLS = 1000
"""In one log."""
ROUNDS = 5
COMPARED = 3
"""Logs on which the readers are compared."""


def read(logs: Sequence[Path]) -> int:
    """Read calls as reports and audits do; return how many there are."""
    found = 0
    for path in logs:
        with open_log(path) as log:
            for sample in log.samples():
                found += len([*events_of(sample), *lost_in(sample)])
    return found


def whole_frame(logs: Sequence[Path]) -> int:
    """Read all events into Inspect's data frame, with its default columns: it is quickest so."""
    frame = events_df([str(path) for path in logs], quiet=True)
    return int((frame["event"] == "model").sum())


def model_frame(logs: Sequence[Path]) -> int:
    """Read model events alone into Inspect's data frame, with its default columns."""
    paths = [str(path) for path in logs]
    return len(events_df(paths, filter=lambda event: event.event == "model", quiet=True))


def per_second(reader: Callable[[Sequence[Path]], int], logs: Sequence[Path]) -> float:
    """Return calls per second of processor time, of one round: each reader keeps one core busy."""
    began = time.process_time()
    found = reader(logs)
    assert found == CALLS * len(logs), f"{reader.__name__} found {found} calls"
    return found / (time.process_time() - began)


def compare(logs: Sequence[Path]) -> None:
    """Print calls per second of three readers, and how many times as fast ours is."""
    readers = (read, whole_frame, model_frame)
    rounds = [[per_second(reader, logs) for reader in readers] for _ in range(ROUNDS)]
    ours, whole, model = (statistics.median(rates) for rates in zip(*rounds, strict=True))
    print(f"calls per second of one core, median of {ROUNDS} rounds over {len(logs)} logs:")
    print(f"  podium {ours:,.0f}; events_df {whole:,.0f}; events_df of model events {model:,.0f}")
    for name, at in (("unfiltered", 1), ("model events", 2)):
        ratios = [row[0] / row[at] for row in rounds]
        middle = statistics.median(ratios)
        print(f"  {name}: {middle:.1f} times (from {min(ratios):.1f} to {max(ratios):.1f})")


def resident(pid: int) -> int:
    """Return the resident bytes of a process and of all below it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident(int(one)) for one in below)


def measure(words: Sequence[str]) -> str:
    """Run a podium command; return its times and its peak memory."""
    began, before = time.perf_counter(), os.times()
    command = [sys.executable, "-c", "import sys; from podium.cli import main; sys.exit(main())"]
    peak = 0
    with subprocess.Popen([*command, *words], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.05)
    assert process.returncode == 0, process.returncode
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    wall = time.perf_counter() - began
    return f"{wall:.1f} s wall, {used:.1f} s of processors, peak {peak / 2**20:,.0f} MiB"


def made(scratch: Path, source: Path, logs: int) -> Path:
    """Return a folder of so many logs, made now if it is not there."""
    folder = scratch / f"{logs}-logs"
    done = scratch / f"{logs}-logs.done"
    if not done.exists():
        began = time.perf_counter()
        copies(source, folder, Size(logs), os.cpu_count() or 1)
        done.touch()
        print(f"{logs} logs made in {time.perf_counter() - began:.0f} s")
    return folder


def main() -> None:
    """Make the logs and measure."""
    parser = argparse.ArgumentParser(description="How fast a ledger is read.")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--logs", type=int, default=1000, help="of the largest run (1000)")
    asked = parser.parse_args()
    place = asked.scratch / "source"
    found = sorted(place.glob("*.eval"))
    source = found[0] if found else rehearse(place)
    sizes = [size for size in (10, 100) if size < asked.logs] + [asked.logs]
    logs = sorted(made(asked.scratch, source, sizes[0]).glob("*.eval"))
    bytes_per_call = sum(path.stat().st_size for path in logs) / len(logs) / CALLS
    print(f"{bytes_per_call:.0f} bytes of .eval per call")
    compare(logs[:COMPARED])
    for size in sizes:
        folder = made(asked.scratch, source, size)
        words = ["report", str(folder), "--out", str(asked.scratch / f"{size}-report")]
        print(f"podium report of {size * CALLS:,} calls in {size} logs: {measure(words)}")
        print(f"podium audit of {size * CALLS:,} calls: {measure(['audit', str(folder)])}")


if __name__ == "__main__":
    main()
