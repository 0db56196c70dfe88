"""What `podium serve` adds to a request, and its memory with many streams; LiteLLM's proxy beside.

    PYTHONPATH=. python tests/benchmarks/serve_speed.py [--litellm FOLDER] [--only podium|litellm]

The upstream is a stub that answers after a fixed delay, in a process of its own, so the slowest
path is known: one delay for a single worker, two for `moa-lite`. "Beyond its calls" is less: calls
as the ledger has them, from the client that made them. FOLDER gets a virtual environment with
`litellm[proxy]`, installed there once. Both servers are asked in turns in one run, on the same
upstream, by the same client. Nothing is paid: rehearsal.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from podium.harness.ledger.call import Call
from podium.harness.ledger.critical_path import step_number
from podium.harness.ledger.served import served_requests
from tests.benchmarks.serve_upstream import (
    MODEL,
    Asker,
    free_port,
    many_connections,
    percentile,
    process,
    resident_mib,
    side_by_side,
    started_upstream,
    write_pool,
)
from tests.installed import new_environment, put

COMMAND = "import sys; from podium.cli import main; sys.exit(main())"
WORKER = "single:ada"
LITELLM = "LiteLLM's proxy, one worker"
LITELLM_PIN = Path(__file__).parents[1] / "conformance" / "litellm.txt"


@dataclass(frozen=True, slots=True)
class Measured:
    """One server, one model: where it is, and how many delays its slowest path has."""

    name: str
    model: str
    url: str
    server: psutil.Process | None
    delays: int


@contextmanager
def podium(folder: Path, upstream: str) -> Generator[list[Measured]]:
    """Yield what a started `podium serve` offers."""
    pool = write_pool(folder, upstream)
    command = [sys.executable, "-c", COMMAND, "serve", "--pool", str(pool), "--port", "0"]
    command += ["--system", "moa-lite", "--system", WORKER, "--log-dir", str(folder / "served")]
    command += ["--concurrency", "1000"]  # its cap a caller is not what is measured
    with process(command, stderr=(folder / "podium.log").open("w")) as (server, url):
        answered = httpx.get(f"{url}/v1/models", trust_env=False).json()
        ids = [one["id"] for one in answered["data"]]
        moa, single = (next(one for one in ids if name in one) for name in ("moa-lite", "ada"))
        yield [
            Measured("podium, one worker", single, url, server, 1),
            Measured("podium, moa-lite", moa, url, server, 2),
        ]


@contextmanager
def litellm(folder: Path, installed: Path, upstream: str) -> Generator[list[Measured]]:
    """Yield what a started proxy of LiteLLM offers."""
    params = {"model": f"openai/{MODEL}", "api_base": f"{upstream}/v1", "api_key": "stub"}
    models = [{"model_name": MODEL, "litellm_params": params}]
    with litellm_proxy(folder, installed, models) as (url, proxy):
        yield [Measured(LITELLM, MODEL, url, psutil.Process(proxy.pid), 1)]


@contextmanager
def litellm_proxy(
    folder: Path, installed: Path, models: Sequence[Any]
) -> Generator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start LiteLLM's proxy; it is installed first into an environment of its own if missing."""
    if not (installed / "bin" / "litellm").exists():
        pin = next(line for line in LITELLM_PIN.read_text().split() if line.startswith("litellm="))
        put(new_environment(installed), pin.replace("litellm", "litellm[proxy]", 1))
    config = folder / "litellm.yaml"
    settings = {"telemetry": False, "num_retries": 0}
    config.write_text(json.dumps({"model_list": models, "litellm_settings": settings}))
    port = free_port()
    command = [installed / "bin" / "litellm", "--config", config, "--host", "127.0.0.1"]
    command += ["--port", str(port)]
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    env["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # as ours, on loopback
    with (folder / "litellm.log").open("w") as log:
        proxy = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        await_ready(f"{url}/health/liveliness", proxy)
        yield url, proxy
    finally:
        proxy.terminate()
        proxy.wait(60)


def await_ready(url: str, server: "subprocess.Popen[bytes]") -> None:
    """Wait until a server answers; RuntimeError when it ends before."""
    until = time.monotonic() + 300  # the first import of a new environment is slow
    while time.monotonic() < until and server.poll() is None:
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    raise RuntimeError(f"{url} does not answer; its log says why")


def beyond_calls(log_dir: Path, took: Mapping[str, float]) -> dict[str, list[float]]:
    """Return by system what requests took beyond their slowest paths of calls, as measured."""
    found: dict[str, list[float]] = {}
    for query in served_requests(log_dir):
        if query.trace in took:
            *first, last = [row.latency_s or 0.0 for row in sorted(query.rows, key=by_step)]
            path = max(first, default=0.0) + last  # the last step reads all the others
            found.setdefault(query.system, []).append(1000 * (took[query.trace] - path))
    return found


def by_step(row: Call) -> int:
    """Return the step that a call was made for."""
    return step_number(row.step) or 0


async def overheads(
    shown: list[Measured], delay: float, asked: tuple[int, int], log_dir: Path
) -> None:
    """Print what each adds to its slowest path, in milliseconds; rounds alternate."""
    count, width = asked
    took: dict[str, float] = {}
    found: dict[str, list[float]] = {one.name: [] for one in shown}
    async with many_connections() as client:
        for one in shown:
            await side_by_side(Asker(client, one.url, one.model).ask, 2 * width + 10, width)
        for _ in range(5):
            for one in shown:
                asker = Asker(client, one.url, one.model, took=took)
                found[one.name] += await side_by_side(asker.ask, count // 5, width)
    bare = 1000 * (percentile(found[shown[0].name], 50) - delay)
    proxy = next((one for one in shown if one.name == LITELLM), None)
    beside = 1000 * (percentile(found[LITELLM], 50) - delay) - bare if proxy else None
    for one in shown:
        over = [1000 * (seconds - one.delays * delay) for seconds in found[one.name]]
        p50, p95 = percentile(over, 50), percentile(over, 95)
        net = p50 - one.delays * bare
        ratio = f"{net / beside:9.2f}" if beside and one.server else f"{'':9}"
        print(f"{one.name:32}{width:9}{len(over):7}{p50:9.1f}{p95:9.1f}{net:9.1f}{ratio}")
    for system, more in beyond_calls(log_dir, took).items():
        p50, p95 = percentile(more, 50), percentile(more, 95)
        print(f"{system + ', beyond its calls':32}{width:9}{len(more):7}{p50:9.1f}{p95:9.1f}")


async def streams(one: Measured, count: int, rounds: int) -> None:
    """Print the memory of a server before, during and after rounds of concurrent streams."""
    server = one.server
    if server is None:
        return
    before, most, after, failed = resident_mib(server), 0.0, list[float](), 0
    async with many_connections() as client:
        asker = Asker(client, one.url, one.model, stream=True)
        for _ in range(rounds):
            each = (asker.ask() for _ in range(count))
            asking = asyncio.gather(*each, return_exceptions=True)
            while not asking.done():
                most = max(most, resident_mib(server))
                await asyncio.sleep(0.02)
            failed += sum(isinstance(one, BaseException) for one in await asking)
            after.append(resident_mib(server))
    print(
        f"{one.name:32}{before:9.0f}{most:9.0f}{after[0]:9.0f}{after[len(after) // 2]:9.0f}"
        f"{after[-1]:9.0f}{failed:9}"
    )


def main() -> None:
    """Start all three and print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--litellm", type=Path, help="folder of its virtual environment")
    parser.add_argument("--only", choices=("podium", "litellm"))
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(started_upstream(asked.delay))
        shown = [Measured("the upstream itself", MODEL, url, None, 1)]
        if asked.only != "litellm":
            shown += stack.enter_context(podium(folder, url))
        if asked.litellm:
            shown += stack.enter_context(litellm(folder, asked.litellm, url))
        print(f"rehearsal; upstream delay {1000 * asked.delay:.0f} ms; ms over the slowest path")
        print(
            "net: p50 without what the upstream and the client themselves take, a path's calls each"
        )
        heads = ("at once", "calls", "p50", "p95", "net", "ratio")
        print(f"{'':32}{heads[0]:>9}{heads[1]:>7}" + "".join(f"{head:>9}" for head in heads[2:]))
        for width in (1, 32):
            asyncio.run(overheads(shown, asked.delay, (asked.count, width), folder / "served"))
        print(f"\n{asked.streams} streams at once, {asked.rounds} rounds; resident MiB")
        heads = ("before", "most", "round 1", "middle", "last", "failed")
        print(f"{'':32}" + "".join(f"{head:>9}" for head in heads))
        for one in shown:
            asyncio.run(streams(one, asked.streams, asked.rounds))


if __name__ == "__main__":
    main()
