"""Engines that are not well: real servers on real sockets that answer as a sick engine does."""

import json
import socket as sockets
import socketserver
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

FIT = {"Version": "26.1.5", "ApiVersion": "1.45"}


@contextmanager
def answering(
    socket: Path, version: Mapping[str, str] = FIT, trouble: str | None = None
) -> Generator[str]:
    """Serve an engine that says its version and fails every other call with `trouble`, status 500.

    Yields its address.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/version"):
                self._answer(200, dict(version))
            else:
                self._answer(500, {"message": trouble})

        do_POST = do_GET  # noqa: N815  (so the library calls it)

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def address_string(self) -> str:
            return "a unix socket"

        def _answer(self, status: int, body: Mapping[str, Any]) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with serving(socket, Handler) as address:
        yield address


@contextmanager
def serving(socket: Path, handler: type[socketserver.BaseRequestHandler]) -> Generator[str]:
    """Serve a socket with these answers; yields its address."""
    with socketserver.ThreadingUnixStreamServer(str(socket), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"unix://{socket}"
        finally:
            server.shutdown()
            thread.join()


TROUBLE = b'{"message": "driver is not ready"}'
REFUSED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"
REFUSED += b"Content-Length: %d\r\n\r\n%b" % (len(TROUBLE), TROUBLE)


@contextmanager
def that_removes_nothing(socket: Path, engine: str) -> Generator[str]:
    """Serve the engine at the path `engine`, except that removing a container fails.

    Yields its address.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with sockets.socket(sockets.AF_UNIX) as real:
                real.connect(engine)
                back = threading.Thread(target=self._answers, args=(real,), daemon=True)
                back.start()
                while data := self.request.recv(65536):
                    if data.startswith(b"DELETE /"):
                        self.request.sendall(REFUSED)
                    else:
                        real.sendall(data)
                real.shutdown(sockets.SHUT_WR)
                back.join()

        def _answers(self, real: sockets.socket) -> None:
            with suppress(OSError):  # who asked has gone
                while data := real.recv(65536):
                    self.request.sendall(data)

    with serving(socket, Handler) as address:
        yield address
