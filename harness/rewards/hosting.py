"""A reward service on a port: bound before anything is promised, stopped in good order.

The first Ctrl-C or SIGTERM takes no new request and gives those in flight a while; then it ends
normally. A second one ends at once. Not here: what is answered (service.py).
"""

import errno
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from harness.errors import UserError

GRACE_S = 30
"""Seconds that requests in flight are given, unless the caller says otherwise."""


WAITING = 2048
"""Connections that the system keeps waiting while all of ours are busy: uvicorn's own number."""


@contextmanager
def bound(host: str, port: int) -> Generator[socket.socket]:
    """Yield a bound socket, on any free port for 0; UserError when it cannot be had.

    Its protocol is named because asyncio switches Nagle's delay off only where it is: a reply is
    two small writes, and the second would wait 40 ms for the first one's acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((host, port))
        except (OSError, OverflowError) as error:
            raise UserError(_refusal(host, port, error)) from None
        yield taken


def listen(taken: socket.socket) -> str:
    """Let a bound socket listen and return its URL: who connects now is served once `serve` runs.

    UserError when another program that bound the port as well was faster.
    """
    host, port = taken.getsockname()[:2]
    try:
        taken.listen(WAITING)
    except OSError as error:
        raise UserError(_refusal(host, port, error)) from None
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    application: ASGIApp,
    taken: socket.socket,
    ready: Callable[[], None],
    grace_s: int = GRACE_S,
) -> None:
    """Serve until a signal says stop; returns normally then. For the main thread.

    `ready` is called once a signal ends it in good order: whoever reads that it serves may stop it.
    """
    server = uvicorn.Server(configured(application, grace_s))

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True  # before uvicorn listens to signals, and when it raises them anew

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        ready()
        server.run(sockets=[taken])
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def configured(application: ASGIApp, grace_s: int = GRACE_S) -> uvicorn.Config:
    """Return how uvicorn is to run: without a line per request, which would hold no more than one.

    Keep-alive is long because a trainer pauses between steps, and a connection that is closed as
    the next request comes is a failure there.
    """
    return uvicorn.Config(
        application,
        loop="asyncio",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=grace_s,
    )


def _refusal(host: str, port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"--port is 0 (any free one) to 65535, not {port}."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use: name another --port, or 0 for any free one."
    if error.errno == errno.EACCES:
        return f"Port {port} of {host} may not be used by you: name a --port above 1023."
    return f"Nothing can listen on --host {host}, --port {port}: {error.strerror or error}."
