"""A real server of an application of ours, in a thread of the test."""

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from podium.harness.listener import uvicorn_config


@contextmanager
def served(application: ASGIApp, taken: socket.socket, **settings: Any) -> Generator[None]:
    """Serve on a socket until the block ends; the settings are those of `uvicorn_config`."""
    server = uvicorn.Server(uvicorn_config(application, **{"grace_s": 5, **settings}))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        thread.join()
