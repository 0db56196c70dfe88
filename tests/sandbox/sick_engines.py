"""Engines that are not well: real servers on real sockets that answer as a sick engine does."""

import json
import socketserver
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
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

    with socketserver.ThreadingUnixStreamServer(str(socket), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"unix://{socket}"
        finally:
            server.shutdown()
            thread.join()
