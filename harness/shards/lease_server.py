"""The process that hands out leases: `python -m podium.harness.shards.lease_server ARGUMENTS`."""

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


def main(log_dir: Path, host: str, command: str, limits: RunLimits) -> None:
    """Serve to this machine, or to all that know its name, until a signal or another command."""
    # First, as it may wait for the journal: where its launcher was killed, it would wait for long.
    Thread(target=_end_with_command, args=(log_dir, command), daemon=True).start()
    token, book = secrets.token_urlsafe(32), open_book(log_dir, limits)
    with bound_socket(host, 0) as taken:
        url, name, port = listen(taken), _own_name(), taken.getsockname()[1]
        if host == ALL:
            url = f"http://{name}:{port}"
        access = Access(host, port, frozenset({name.lower()}), token)
        if _address(log_dir).get("command") != command:
            return
        _write_address(log_dir, {"command": command, "url": url, "token": token})
        serve(with_access(lease_app(book), access), taken, ready=lambda: None)


def _address(log_dir: Path) -> dict[str, str]:
    """Return whose server there is, and where; empty where there is none."""
    with suppress(FileNotFoundError):
        return orjson.loads((log_dir / ADDRESS).read_bytes())
    return {}


def _write_address(log_dir: Path, said: dict[str, str]) -> None:
    path = log_dir / ADDRESS
    made = path.with_suffix(".new")
    made.unlink(missing_ok=True)
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(handle, orjson.dumps(said))
    os.close(handle)
    made.replace(path)


def _end_with_command(log_dir: Path, command: str) -> None:
    while _address(log_dir).get("command") == command:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), SIGINT)


def _own_name() -> str:
    """Return under which name other machines reach this one; without any, itself alone does."""
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return LOOPBACK
    return name


class LeaseKeeper(Protocol):
    """Has a server of leases run somewhere."""

    def tend(self) -> None:
        """Start the server unless it runs."""
        ...

    def close(self) -> None:
        """End it."""
        ...


@dataclass(slots=True)
class LeaseServer:
    """A server's process of this machine, which is started again where it was killed."""

    words: Sequence[str]
    process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        """Start the process unless it runs."""
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, *self.words]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def close(self) -> None:
        """End the process, and wait for that."""
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
    """Have leases handed out while what is within runs; UserError where no server begins."""
    given, command = _LIMITS.dump_json(limits).decode(), secrets.token_hex(8)
    _write_address(log_dir, {"command": command})
    server = keeper(["-m", __name__, str(log_dir.absolute()), host, command, given])
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
    "nobody could be found to hand out leases of {}: on a cluster, all nodes must see this "
    "directory under the same path and have podium installed."
)


if __name__ == "__main__":
    end_with_input()
    with suppress(KeyboardInterrupt):
        place, host, command, given = sys.argv[1:]
        main(Path(place), host, command, _LIMITS.validate_json(given))
