"""A hub on this machine, over real HTTP: datasets of one JSON Lines file, refusals, plain files.

It speaks as much of the hub's API as `datasets` and `huggingface_hub` ask for.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast

GATED = (401, "GatedRepo")
NO_REVISION = (404, "RevisionNotFound")
NO_DATASET = (404, "RepoNotFound")

NOWHERE = "http://127.0.0.1:9"
"""An address at which nothing answers."""

Refusal = tuple[int, str]


@dataclass
class FakeHub:
    """What the hub has: rows by dataset and split, or a refusal; `revision` is its only commit."""

    rows: Mapping[str, Mapping[str, list[dict[str, Any]]]] = field(
        default_factory=dict[str, Mapping[str, list[dict[str, Any]]]]
    )
    refused: Mapping[str, Refusal] = field(default_factory=dict[str, Refusal])
    url: str = ""
    asked: list[str] = field(default_factory=list[str])

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """Return status, body and headers for a path of the API."""
        parts = path.partition("?")[0].strip("/").removeprefix("api/").split("/")
        name = "/".join(parts[1:3])
        if name in self.refused:
            status, code = self.refused[name]
            return status, code.encode(), {"X-Error-Code": code}
        if name not in self.rows:
            return 404, b"", {}
        revision = parts[4] if len(parts) > 4 else ""
        commit = {"X-Repo-Commit": revision}
        files = {f"{split}.jsonl": _jsonl(rows) for split, rows in self.rows[name].items()}
        if "resolve" in parts:
            if parts[-1] not in files:
                return 404, b"", {"X-Error-Code": "EntryNotFound", **commit}
            content = files[parts[-1]]
            return 200, content, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', **commit}
        return 200, json.dumps(_facts(parts, name, revision, files)).encode(), {}


def _jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _facts(parts: list[str], name: str, revision: str, files: Mapping[str, bytes]) -> object:
    listed = [
        {"type": "file", "path": file, "size": len(content), "oid": "0" * 40}
        for file, content in files.items()
    ]
    if "tree" in parts:
        return listed if parts[-1] == revision else []
    names = [{"rfilename": file} for file in files]
    return {"_id": "1", "id": name, "sha": revision, "siblings": names, "gated": False}


@contextmanager
def serving(hub: FakeHub) -> Generator[FakeHub]:
    """Serve a hub while the block runs; its `url` is where."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            status, body, headers = hub.answer(self.path)
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that the base class looks for

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with _running(Handler) as url:
        hub.url = url
        yield hub


@dataclass
class Host:
    """Files to download, at one address; what is served can be cut off, or stalled."""

    content: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Contents by path, where there is more than one."""
    ranges: bool = True
    """Whether a part can be asked for."""
    asked: list[str] = field(default_factory=list[str])
    """The path and the part of each request."""
    status: int = 200
    sent: int | None = None
    """Bytes after which the connection breaks."""
    stalls: bool = False
    """Whether the other side then waits in silence instead."""


@contextmanager
def hosting(host: Host) -> Generator[str]:
    """Serve one content at every path while the block runs; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = host.files.get(self.path, host.content)
            part = self.headers.get("Range", "")
            host.asked.append(f"{self.path} {part}".strip())
            missing = host.files and self.path not in host.files
            status = 404 if missing else host.status
            if part and host.ranges and status == 200:
                status, content = 206, content[int(part[len("bytes=") : -1]) :]
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: host.sent])
            self.wfile.flush()
            while host.stalls:
                self.connection.settimeout(0.1)
                try:
                    if not self.connection.recv(1):
                        return
                except TimeoutError:
                    continue

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with _running(Handler) as url:
        yield url


@contextmanager
def _running(handler: type[BaseHTTPRequestHandler]) -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{cast(int, server.server_address[1])}"
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Done:
    """What a `podium` of its own said."""

    code: int
    out: str
    err: str


def podium(*words: str, home: Path, hub: str = NOWHERE, **env: str) -> Done:
    """Run a command of podium in a process of its own."""
    code = "import sys; from podium.cli import main; sys.exit(main())"
    return python(code, *words, home=home, hub=hub, **env)


def python(code: str, *words: str, home: Path, hub: str = NOWHERE, **env: str) -> Done:
    """Run Python with its own hub cache; without `hub` no hub can be reached.

    A process, because `huggingface_hub` reads its address and cache folder when it is imported.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={**kept, "HF_HOME": str(home / "hf"), "HF_ENDPOINT": hub, "PODIUM_MIRROR": NOWHERE}
        | env,
    )
    return Done(done.returncode, done.stdout, done.stderr)
