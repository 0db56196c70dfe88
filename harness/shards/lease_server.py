"""The server process that grants leases of dollars to a run's shards; `main` starts it."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from signal import SIGINT
from threading import Thread
from typing import Any, Protocol

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from podium.harness.errors import UserError
from podium.harness.listener import Access, bound_socket, listen, serve, with_access
from podium.harness.shards.launcher import end_with_input
from podium.harness.shards.lease import (
    ADDRESS,
    Fenced,
    Held,
    LeaseBook,
    RunLimits,
    ShardLease,
    open_book,
)

LOOPBACK, ALL = "127.0.0.1", "0.0.0.0"
START_S, LOOK_S = 120.0, 1.0
_LIMITS = TypeAdapter(RunLimits)


class LeaseRequest(BaseModel):
    """A shard's request to the lease server: its number, and its spent, needed or kept dollars."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    shard: str = Field(pattern=r"^\d{1,9}$")
    generation: int = 0
    spent: Decimal = Field(default=Decimal(0), ge=0, allow_inf_nan=False)
    most: Decimal | None = Field(default=None, ge=0, allow_inf_nan=False)
    idle: bool = False
    keeps: Decimal | None = Field(default=None, ge=0, allow_inf_nan=False)
    machine: str = Field(default="", max_length=64)
    provider: str = ""
    calls: int = Field(default=1, ge=1)


def lease_app(book: LeaseBook) -> Starlette:
    """Return the web application that grants shards leases from `book`, the run's leases."""

    def opened(request: LeaseRequest) -> dict[str, Any]:
        return _said(book, book.open(request.shard, request.spent, request.machine))

    def extended(request: LeaseRequest) -> dict[str, Any]:
        status = book.extend(request.shard, request.generation, request.most, request.idle)
        return _said(book, book.shards[request.shard]) | {"how": status}

    def reserved(request: LeaseRequest) -> dict[str, Any]:
        waits = book.reserve(request.shard, request.generation, request.provider, request.calls)
        return {"waits": waits}

    def beaten(request: LeaseRequest) -> dict[str, Any]:
        return _said(book, book.beat(request.shard, request.generation, request.keeps))

    def closed(request: LeaseRequest) -> dict[str, Any]:
        book.close(request.shard, request.generation, request.spent)
        return {}

    doors = {"open": opened, "extend": extended, "beat": beaten, "close": closed}
    doors["turns"] = reserved
    return Starlette(
        routes=[Route(f"/{name}", _door(door), methods=["POST"]) for name, door in doors.items()]
    )


def _door(answer: Callable[[LeaseRequest], dict[str, Any]]) -> Callable[[Request], Any]:
    async def door(request: Request) -> JSONResponse:
        try:
            message = LeaseRequest.model_validate_json(await request.body())
            return JSONResponse(answer(message))
        except ValidationError as error:
            return JSONResponse({"error": f"not a request of a shard: {error.error_count()}"}, 422)
        except Fenced:
            return JSONResponse({"error": "a newer process has this shard's lease"}, 409)
        except Held:
            return JSONResponse({"error": "the lease of its last process must expire first"}, 423)

    return door


def _said(book: LeaseBook, lease: ShardLease) -> dict[str, Any]:
    granted = None if book.limits.usd is None else f"{lease.granted:f}"
    limited = [*book.limits.rpm]
    reply = {"generation": lease.generation, "granted": granted}
    return reply | {"short": book.short, "limited": limited}


def main(log_dir: Path, host: str, command: str, limits: RunLimits) -> None:
    """Serve leases to this machine, or to all hosts, until a signal or newer command ends it."""
    # This thread starts first, because `open_book` may wait long for an earlier server's lock.
    Thread(target=_end_with_command, args=(log_dir, command), daemon=True).start()
    token, book = secrets.token_urlsafe(32), open_book(log_dir, limits)
    with bound_socket(host, 0) as sock:
        url, name, port = listen(sock), _own_name(), sock.getsockname()[1]
        if host == ALL:
            url = f"http://{name}:{port}"
        access = Access(host, port, frozenset({name.lower()}), token)
        if _address(log_dir).get("command") != command:
            return
        _write_address(log_dir, {"command": command, "url": url, "token": token})
        serve(with_access(lease_app(book), access), sock, ready=lambda: None)


def _address(log_dir: Path) -> dict[str, str]:
    """Return the lease server's address, token and command id from their file; empty for none."""
    with suppress(FileNotFoundError):
        return orjson.loads((log_dir / ADDRESS).read_bytes())
    return {}


def _write_address(log_dir: Path, content: dict[str, str]) -> None:
    path = log_dir / ADDRESS
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(handle, orjson.dumps(content))
    os.close(handle)
    draft.replace(path)


def _end_with_command(log_dir: Path, command: str) -> None:
    while _address(log_dir).get("command") == command:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), SIGINT)


def _own_name() -> str:
    """Return the name by which other machines reach this machine; loopback if it has none."""
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return LOOPBACK
    return name


class LeaseKeeper(Protocol):
    """Protocol of classes that keep a lease server running, on this or another machine."""

    def tend(self) -> None:
        """Start the lease server unless it is running."""
        ...

    def close(self) -> None:
        """End the lease server."""
        ...


@dataclass(slots=True)
class LeaseServer:
    """Keeps the lease server running as a process on this machine; restarts it if it was killed."""

    words: Sequence[str]
    process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        """Start the server's process unless it is running."""
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, *self.words]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def close(self) -> None:
        """End the server's process, and wait for its end."""
        if self.process:
            self.process.terminate()
            self.process.communicate()


@contextmanager
def lease_server(
    log_dir: Path,
    limits: RunLimits,
    host: str = LOOPBACK,
    keeper: Callable[[Sequence[str]], LeaseKeeper] = LeaseServer,
) -> Generator[LeaseKeeper]:
    """Run a lease server for a run's shards during the block; UserError if no server starts."""
    limits_json, command = _LIMITS.dump_json(limits).decode(), secrets.token_hex(8)
    _write_address(log_dir, {"command": command})
    server = keeper(["-m", __name__, str(log_dir.absolute()), host, command, limits_json])
    try:
        end = time.monotonic() + START_S
        while "url" not in _address(log_dir):
            if time.monotonic() > end:
                raise UserError(NO_SERVER.format(log_dir))
            server.tend()
            time.sleep(0.05)
        yield server
    finally:
        server.close()
        (log_dir / ADDRESS).unlink(missing_ok=True)


NO_SERVER = (
    "The lease server of {} did not start. Repeat the command; on a cluster, all nodes must see "
    "this directory under the same path and have podium installed."
)


if __name__ == "__main__":
    end_with_input()
    with suppress(KeyboardInterrupt):
        place, host, command, limits_json = sys.argv[1:]
        main(Path(place), host, command, _LIMITS.validate_json(limits_json))
