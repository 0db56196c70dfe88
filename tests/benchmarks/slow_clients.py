"""Clients that keep a server waiting, and whether others are still answered meanwhile.

    PYTHONPATH=. python tests/benchmarks/slow_clients.py [--connections 400] [--seconds 30]

Against each attack a `podium serve` of its own, allowed `--files` open files (256): connections
that never finish their headers, or their body, or that are kept and ask nothing. They stay for
`--seconds`, and one whose connection was closed opens another. In between a client that behaves
asks for `/health` on a new connection; 1 if one of its requests took over two seconds. Loopback and
rehearsal: nothing is paid. Answers that nobody reads are in tests/podium/serving.
"""

import argparse
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

from tests.benchmarks.serve_speed import COMMAND
from tests.benchmarks.serve_upstream import process

PATIENCE_S, LIMIT_S = 10.0, 2.0
Address = tuple[str, int]


def headers(host: str) -> bytes:
    """Return a request without the end of its headers."""
    return f"GET /health HTTP/1.1\r\nHost: {host}\r\nX-First: 1\r\n".encode()


def body(host: str) -> bytes:
    """Return a request without most of its body."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000\r\n\r\n"
    return head.encode() + b"{"


def idle(host: str) -> bytes:
    """Return a whole request."""
    return f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


ATTACKS: dict[str, tuple[Callable[[str], bytes], bytes]] = {
    "headers that never end": (headers, b"X-More: 1\r\n"),
    "bodies that never end": (body, b" "),
    "kept and idle": (idle, b""),
}
"""What each connection sends at first, and then every second."""


class SlowClients:
    """Connections of one attack; one that was closed is opened again."""

    def __init__(self, address: Address, attack: str, count: int) -> None:
        """Open `count` connections."""
        first, self._more = ATTACKS[attack]
        self._address, self._first = address, first(f"{address[0]}:{address[1]}")
        self._begun = set[socket.socket]()
        self.closed = 0
        self._open = [self._connected() for _ in range(count)]

    def tick(self) -> None:
        """Send a little more on each, and open those again that were closed."""
        for number, connection in enumerate(self._open):
            try:
                self._moved(connection)
            except OSError:
                self.closed += 1
                self._begun.discard(connection)
                connection.close()
                self._open[number] = self._connected()

    def _moved(self, connection: socket.socket) -> None:
        with suppress(BlockingIOError):
            connection.send(self._more if connection in self._begun else self._first)
            self._begun.add(connection)
        with suppress(BlockingIOError):
            if connection.recv(65536) == b"":
                raise ConnectionResetError

    def _connected(self) -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(self._address)
        return connection

    def end(self) -> None:
        """Close all."""
        for connection in self._open:
            connection.close()


def attacked(attack: str, args: argparse.Namespace) -> tuple[str, float]:
    """Return a row of the table, and the seconds of the slowest request of a good client."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", f"{_limited(args.files)}{COMMAND}", "serve", "--port", "0"]
        command += ["--system", "single:abacus", "--log-dir", str(Path(folder) / "served")]
        log = (Path(folder) / "log").open("w")
        with process(command, stderr=log) as (server, url):
            parts = urlsplit(url)
            clients = SlowClients((str(parts.hostname), parts.port or 0), attack, args.connections)
            seconds, end = list[float](), time.monotonic() + args.seconds
            while time.monotonic() < end:
                seconds.append(_asked(url, clients))
            held = len(psutil.Process(server.pid).net_connections("tcp"))
            clients.end()
    answered = [one for one in seconds if one < PATIENCE_S]
    slowest = f"{max(seconds):.2f} s" if len(answered) == len(seconds) else "never"
    cells = (attack, f"{len(answered)} of {len(seconds)}", slowest, str(clients.closed), str(held))
    return f"| {' | '.join(cells)} |", max(seconds)


def _asked(url: str, clients: SlowClients) -> float:
    clients.tick()
    began = time.monotonic()
    try:
        httpx.get(f"{url}/health", trust_env=False, timeout=PATIENCE_S).raise_for_status()
    except httpx.HTTPError:
        return PATIENCE_S
    took = time.monotonic() - began
    time.sleep(max(0.0, 1 - took))
    return took


def _limited(files: int) -> str:
    return f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))\n"


def main() -> int:
    """Carry out the attacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=400)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--files", type=int, default=256)
    parser.add_argument("--only", choices=[*ATTACKS])
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("| attack | answered | slowest | hostile ones closed | held at the end |")
    print("|---|---|---|---|---|")
    slowest = 0.0
    for attack in [args.only] if args.only else ATTACKS:
        row, took = attacked(attack, args)
        print(row, flush=True)
        slowest = max(slowest, took)
    return 1 if slowest > LIMIT_S else 0


if __name__ == "__main__":
    sys.exit(main())
