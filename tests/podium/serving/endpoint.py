"""A real endpoint over a rehearsal pool, or a provider of the test's own, in a thread of the test.

with endpoint(tmp_path, "single:sage") as served:
    served.post("/v1/chat/completions", chat("Say 4", "podium/single:sage"))
"""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from podium.cli.list_commands import whole_catalogue
from podium.harness.ledger.journal import read_lines
from podium.harness.listener import bound_socket, listen
from podium.harness.run.experiment import manifested
from podium.serving.launch import EndpointRequest, model_server
from tests.harness.in_thread import served
from tests.providers import MODELS, serve, write_pool
from tests.providers.script import Script

HEAD = 'date = "2026-01-02"\nsource = "made up for tests"\n[usd_per_mtok]\n'
PRICES = HEAD + "".join(
    f'"{model}" = {{ input = "1", output = "100" }}\n' for model in MODELS.values()
)


@dataclass(frozen=True)
class Endpoint:
    """A running endpoint."""

    url: str
    log_dir: Path
    told: list[str] = field(default_factory=list[str])
    logged: list[str] = field(default_factory=list[str])

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """Return the answer to a JSON body; bytes go as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.post(
            f"{self.url}{path}", content=content, headers=headers, timeout=60, verify=False
        )

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=60, verify=False)

    def lines(self, *kinds: str) -> list[dict[str, Any]]:
        """Return what all journals have, of some kinds."""
        paths = sorted(self.log_dir.glob("ledger/*/*.jsonl"))
        found = (line for path in paths for line in read_lines(path))  # whole ones
        return [line for line in found if line["kind"] in kinds]


@contextmanager
def endpoint(
    folder: Path, *systems: str, pool: str = "rehearsal", **asked: Any
) -> Generator[Endpoint]:
    """Serve systems until the block ends; what is asked more is of `EndpointRequest`."""
    settings: dict[str, Any] = {"time_scale": 0.0, "grace_s": 5, **asked}
    request = EndpointRequest(pool=pool, systems=systems, log_dir=folder / "serving", **settings)
    request.log_dir.mkdir(parents=True, exist_ok=True)
    with bound_socket("127.0.0.1", request.port) as taken, manifested(request.log_dir):
        told, logged = list[str](), list[str]()
        made = model_server(request, whole_catalogue(), taken, (told.append, logged.append))
        url = listen(taken)
        with served(made.application, taken, lifespan="on"):
            yield Endpoint(url, request.log_dir, told, logged)


@contextmanager
def before_provider(
    folder: Path, script: Script, *systems: str, **asked: Any
) -> Generator[tuple[Endpoint, Any]]:
    """Serve systems whose workers are a provider of the test's own; yield its server, too."""
    settings = "max_tokens = 1000, max_retries = 0, max_connections = 64"
    with serve(script) as server:
        pool = write_pool(folder, server, asked.pop("settings", settings))
        (folder / "book.toml").write_text(PRICES)
        with endpoint(folder, *systems, pool=str(pool), **asked) as found:
            yield found, server


def chat(text: str, model: str, **more: Any) -> dict[str, Any]:
    """Return the body of a chat completion with one user message."""
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the data of a stream's events, `[DONE]` left out."""
    for line in response.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))
