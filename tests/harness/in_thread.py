"""A real server of an application of ours, in a thread of the test."""

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from harness.serving import uvicorn_config


@contextmanager
def served(application: ASGIApp, taken: socket.socket) -> Generator[None]:
    """Serve on a socket until the block ends."""
    server = uvicorn.Server(uvicorn_config(application, grace_s=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        thread.join()
