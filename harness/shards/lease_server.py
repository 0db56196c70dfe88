"""The process that hands out leases: `python -m harness.shards.lease_server LOG_DIR HOST LIMITS`.

What it has granted is in its journal: killed and started again, it goes on from there.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from harness.serving.listener import Access, bound_socket, listen, serve, with_access
from harness.shards.launcher import end_with_input
from harness.shards.lease import (
    ADDRESS,
    Fenced,
    Held,
    LeaseBook,
    RunLimits,
    ShardLease,
    open_book,
)

LOOPBACK, ALL = "127.0.0.1", "0.0.0.0"
START_S = 60.0
_LIMITS = TypeAdapter(RunLimits)


class LeaseRequest(BaseModel):
    """What a shard says: who it is, and what it has spent, wants or gives back."""

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
    """Return the application that grants from a book."""

    def opened(asked: LeaseRequest) -> dict[str, Any]:
        return _said(book, book.open(asked.shard, asked.spent, asked.machine))

    def extended(asked: LeaseRequest) -> dict[str, Any]:
        how = book.extend(asked.shard, asked.generation, asked.most, asked.idle)
        return _said(book, book.shards[asked.shard]) | {"how": how}

    def reserved(asked: LeaseRequest) -> dict[str, Any]:
        waits = book.reserve(asked.shard, asked.generation, asked.provider, asked.calls)
        return {"waits": waits}

    def beaten(asked: LeaseRequest) -> dict[str, Any]:
        return _said(book, book.beat(asked.shard, asked.generation, asked.keeps))

    def closed(asked: LeaseRequest) -> dict[str, Any]:
        book.close(asked.shard, asked.generation, asked.spent)
        return {}

    doors = {"open": opened, "extend": extended, "beat": beaten, "close": closed}
    doors["turns"] = reserved
    return Starlette(
        routes=[Route(f"/{name}", _door(door), methods=["POST"]) for name, door in doors.items()]
    )


def _door(answer: Callable[[LeaseRequest], dict[str, Any]]) -> Callable[[Request], Any]:
    async def door(request: Request) -> JSONResponse:
        try:
            asked = LeaseRequest.model_validate_json(await request.body())
            return JSONResponse(answer(asked))
        except ValidationError as error:
            return JSONResponse({"error": f"no request of a shard: {error.error_count()}"}, 422)
        except Fenced:
            return JSONResponse({"error": "a newer process has this shard's lease"}, 409)
        except Held:
            return JSONResponse({"error": "the lease of its last process has to run out"}, 423)

    return door


def _said(book: LeaseBook, one: ShardLease) -> dict[str, Any]:
    granted = None if book.limits.usd is None else f"{one.granted:f}"
    limited = [*book.limits.rpm]
    said = {"generation": one.generation, "granted": granted}
    return said | {"short": book.short, "limited": limited}


def main(log_dir: Path, host: str, limits: RunLimits) -> None:
    """Serve to this machine, or to all that know its name, until a signal."""
    token, book = secrets.token_urlsafe(32), open_book(log_dir, limits)
    with bound_socket(host, 0) as taken:
        url, name, port = listen(taken), _own_name(), taken.getsockname()[1]
        if host == ALL:
            url = f"http://{name}:{port}"
        access = Access(host, port, frozenset({name.lower()}), token)
        path = log_dir / ADDRESS
        made = path.with_suffix(".new")
        made.unlink(missing_ok=True)
        handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(handle, orjson.dumps({"url": url, "token": token}))
        os.close(handle)
        made.replace(path)
        serve(with_access(lease_app(book), access), taken, ready=lambda: None)


def _own_name() -> str:
    """Return under which name other machines reach this one; without any, itself alone does."""
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return LOOPBACK
    return name


@dataclass(slots=True)
class LeaseServer:
    """A server's process, which is started again where it was killed."""

    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        """Start the process unless it runs."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, start_new_session=True
            )


@contextmanager
def lease_server(log_dir: Path, limits: RunLimits, host: str = LOOPBACK) -> Generator[LeaseServer]:
    """Have leases handed out while what is within runs."""
    path = log_dir / ADDRESS
    path.unlink(missing_ok=True)  # of a launcher that was killed
    given = _LIMITS.dump_json(limits).decode()
    server = LeaseServer([sys.executable, "-m", __name__, str(log_dir), host, given])
    try:
        end = time.monotonic() + START_S
        while not path.exists() and time.monotonic() < end:
            server.tend()
            time.sleep(0.05)
        yield server
    finally:
        if server.process:
            server.process.terminate()
            server.process.communicate()
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    end_with_input()
    with suppress(KeyboardInterrupt):
        main(Path(sys.argv[1]), sys.argv[2], _LIMITS.validate_json(sys.argv[3]))
