"""An hour of `podium serve` under a steady load: does it grow, and is all of it written down?

    PYTHONPATH=. python tests/benchmarks/serve_soak.py [--seconds 3600] [--rate 20]

Requests go out at a fixed rate, whether or not the last ones came back, to a single worker and to
`moa-lite` in turns, every other one streamed; the upstream is a stub. Memory, open files and
threads are sampled each ten seconds, and their slopes fitted without the first fifth. Then the
server is stopped, `podium audit --strict` reads its directory, and the journal's answers and calls
are counted beside the client's. Nothing is paid: rehearsal.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import httpx
import psutil

from tests.benchmarks.serve_speed import COMMAND, podium
from tests.benchmarks.serve_upstream import (
    Asker,
    many_connections,
    percentile,
    resident_mib,
    started_upstream,
)

EVERY_S = 10


@dataclass(frozen=True, slots=True)
class ServerSample:
    """What a server holds at one moment."""

    at_s: float
    mib: float
    files: int
    threads: int


async def sampled(server: psutil.Process, samples: list[ServerSample], began: float) -> None:
    """Sample until cancelled."""
    while True:
        at = time.monotonic() - began
        held = (resident_mib(server), server.num_fds(), server.num_threads())
        samples.append(ServerSample(at, *held))
        print(f"{at:8.0f} s {held[0]:8.1f} MiB {held[1]:5} files {held[2]:4} threads", flush=True)
        await asyncio.sleep(EVERY_S)


async def load(
    askers: Sequence[Asker], seconds: float, rate: float
) -> tuple[Counter[str], list[float]]:
    """Ask at a rate; return how each ended, and the seconds of those that were answered."""
    ended, took, asked = Counter[str](), list[float](), set[asyncio.Task[None]]()

    async def once(asker: Asker) -> None:
        try:
            took.append(await asker.ask())
            ended["answered"] += 1
        except (RuntimeError, httpx.HTTPError) as error:
            ended[f"{type(error).__name__}: {error}"[:120]] += 1

    began = time.monotonic()
    for number, asker in zip(range(round(seconds * rate)), cycle(askers), strict=False):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        task = asyncio.create_task(once(asker))
        asked.add(task)
        task.add_done_callback(asked.discard)
    await asyncio.gather(*asked)
    return ended, took


async def soak(
    models: Sequence[tuple[str, str]], server: psutil.Process, asked: argparse.Namespace
) -> tuple[Counter[str], list[ServerSample]]:
    """Load a server and print the latencies; return how requests ended, and the samples."""
    samples = list[ServerSample]()
    async with many_connections() as client:
        askers = [Asker(client, *one, stream=flag) for flag in (False, True) for one in models]
        watch = asyncio.create_task(sampled(server, samples, time.monotonic()))
        ended, took = await load(askers, asked.seconds, asked.rate)
        watch.cancel()
    p50, p95 = (1000 * percentile(took, at) for at in (50, 95))
    print(f"{sum(ended.values())} requests: {dict(ended)}; p50 {p50:.0f} ms, p95 {p95:.0f} ms")
    return ended, samples


def slopes(samples: Sequence[ServerSample]) -> None:
    """Print how much each grows in an hour, by least squares over the later four fifths."""
    late = samples[len(samples) // 5 :]
    if len(late) < 2:
        print("too few samples for a slope")
        return
    for name in ("mib", "files", "threads"):
        line = statistics.linear_regression(
            [one.at_s for one in late], [float(getattr(one, name)) for one in late]
        )
        print(f"{name}: {3600 * line.slope:+.2f} an hour, {getattr(late[-1], name):.0f} at the end")


def written(log_dir: Path) -> Counter[str]:
    """Return how many lines of each kind the journals have."""
    lines = (line for path in log_dir.glob("ledger/*/*.jsonl") for line in path.open())
    return Counter(str(json.loads(line).get("kind")) for line in lines)


def main() -> None:
    """Soak, stop, audit and count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--delay", type=float, default=0.05)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with ExitStack() as stack:
            url = stack.enter_context(started_upstream(asked.delay))
            shown = stack.enter_context(podium(folder, url))
            server = shown[0].server
            assert server
            models = [(one.url, one.model) for one in shown]
            ended, samples = asyncio.run(soak(models, server, asked))
        slopes(samples)
        kinds = written(folder / "served")
        print(f"journal: {dict(kinds)}; client: {ended['answered']} answered")
        command = [sys.executable, "-c", COMMAND, "audit", str(folder / "served"), "--strict"]
        audit = subprocess.run(command, capture_output=True, text=True, check=False)
        print(audit.stdout[-3000:], audit.stderr[-1000:])
        same = sum(ended.values()) == kinds["answer"] == kinds["request"]
        sys.exit(0 if same and audit.returncode == 0 else 1)


if __name__ == "__main__":
    main()
