"""An OpenAI-compatible upstream with a fixed delay, and a client that counts, for measurements.

    PYTHONPATH=. python tests/benchmarks/serve_upstream.py --delay 0.05   # prints its URL

Every reply says the same and uses the same tokens. The upstream is a process of its own.
"""

import argparse
import asyncio
import json
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL = "stub"
TEXT = "ANSWER: 42"
USAGE = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
ASKED = [{"role": "user", "content": "What is 6 times 7? End with ANSWER: and the number."}]


def upstream(delay: float) -> Starlette:
    """Return the stub: Chat Completions, whole or streamed, each after the delay."""
    number = count()

    async def completions(request: Request) -> Response:
        asked = await request.json()
        # As a provider: an id of its own for each reply, and the model that was asked for.
        head = {"id": f"chatcmpl-{next(number)}", "created": 0, "model": asked["model"]}
        await asyncio.sleep(delay)
        if asked.get("stream"):
            return StreamingResponse(chunks(head), media_type="text/event-stream")
        said = {"role": "assistant", "content": TEXT}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        return JSONResponse(whole)

    async def chunks(head: dict[str, Any]) -> AsyncGenerator[str]:
        first = {"index": 0, "delta": {"role": "assistant", "content": TEXT}, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        for choices, usage in (([first], None), ([last], None), ([], USAGE)):
            chunk = {**head, "object": "chat.completion.chunk", "choices": choices, "usage": usage}
            yield f"data: {json.dumps(chunk)}\n\n"
        yield "data: [DONE]\n\n"

    return Starlette(routes=[Route("/v1/chat/completions", completions, methods=["POST"])])


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def process(command: Sequence[str], **more: Any) -> Generator[tuple[psutil.Process, str]]:
    """Yield a server's process and the URL that it prints; it is stopped by SIGTERM."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more) as server:
        assert server.stdout
        found = None
        while not found and (line := server.stdout.readline()):
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, f"{command[0]} said no URL and ended with {server.poll()}"
        try:
            yield psutil.Process(server.pid), found.group()
        finally:
            server.terminate()
            server.communicate(timeout=60)


@contextmanager
def started_upstream(delay: float) -> Generator[str]:
    """Yield the stub's address in a process of its own."""
    with process([sys.executable, __file__, "--delay", str(delay)]) as (_, url):
        yield url


def write_pool(folder: Path, url: str, workers: Sequence[str] = ("ada", "bob", "cleo")) -> Path:
    """Write a pool of workers that are all the stub, at the list price of a known model."""
    lines = ['label = "live"', 'prices = "list-2026-11-21"']
    for name in workers:
        lines += [
            "[[workers]]",
            f'name = "{name}"',
            f'model = "openai-api/stub/{name}"',
            'price = "openai/gpt-5-2025-08-07"',
            'knowledge_cutoff = "unknown"',
            f'args = {{ base_url = "{url}/v1", api_key = "stub" }}',
            "config = { max_tokens = 256, max_connections = 1000 }",
        ]
    path = folder / "stub.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks one model of one server."""

    client: httpx.AsyncClient
    url: str
    model: str
    stream: bool = False
    took: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds by the id of the request, where its server gives one."""

    async def ask(self) -> float:
        """Ask once, read to the end; return the seconds. RuntimeError for no answer."""
        body = {"model": self.model, "messages": ASKED, "stream": self.stream}
        began = time.perf_counter()
        async with self.client.stream(
            "POST", f"{self.url}/v1/chat/completions", json=body
        ) as reply:
            text = (await reply.aread()).decode()
        if reply.status_code != 200 or TEXT not in text:
            raise RuntimeError(f"{self.model}: {reply.status_code} {text[:300]}")
        took = time.perf_counter() - began
        self.took[reply.headers.get("x-request-id", "")] = took
        return took


def many_connections() -> httpx.AsyncClient:
    """Return a client whose own limits are not what is measured."""
    limits = httpx.Limits(max_connections=2000, max_keepalive_connections=2000)
    headers = {"Authorization": "Bearer sk-bench"}
    return httpx.AsyncClient(limits=limits, timeout=120, headers=headers, trust_env=False)


async def side_by_side(ask: Callable[[], Awaitable[float]], times: int, width: int) -> list[float]:
    """Ask so many times, `width` at once; return the seconds of each."""
    left = iter(range(times))

    async def one_after_another() -> list[float]:
        return [await ask() for _ in left]

    parts = await asyncio.gather(*(one_after_another() for _ in range(width)))
    return [seconds for part in parts for seconds in part]


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile: 50 is the median."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def resident_mib(server: psutil.Process) -> float:
    """Return the memory of a server and of the processes that it started."""
    total = 0
    for one in (server, *server.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += one.memory_info().rss
    return total / 2**20


def main() -> None:
    """Serve the stub."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=0.05)
    delay, port = parser.parse_args().delay, free_port()
    app, keep = upstream(delay), 300  # a client must not ask while we close
    config = uvicorn.Config(app, port=port, log_level="error", timeout_keep_alive=keep)
    print(f"http://127.0.0.1:{port}", flush=True)
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
