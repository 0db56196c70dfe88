"""A server on this machine: a socket, the hosts that it answers to, and an end by a signal."""

import errno
import hmac
import ipaddress
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal
from urllib.parse import urlsplit

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from podium.harness.connections import ConnectionLimits, limited_protocol, raise_open_files
from podium.harness.errors import UserError
from podium.harness.shutdown import stopping_signals


@dataclass(frozen=True, slots=True)
class Access:
    """Whom a request must name as its host, and who it must say it is."""

    address: str
    port: int
    names: frozenset[str] = frozenset()  # other names under which it is known
    token: str = ""  # what `Authorization: Bearer` must hold; empty where nobody is asked
    remedy: str = " (--allow-host NAME allows one)"  # what lets another name in; empty: nothing

    def refusal(self, headers: Headers, reply: "ErrorReply") -> JSONResponse | None:
        """Return the answer to a request that is not let in; None to one that is."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            said = f"This is no host of this service: {host!r:.80}{self.remedy}."
            return reply(421, said, "misdirected", {})
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(urlsplit(origin).netloc):
            return reply(403, "Web pages may not ask this service.", "foreign_origin", {})
        scheme, _, token = headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(token.strip().encode(), self.token.encode())
        if self.token and not (scheme.lower() == "bearer" and known):
            said = "Send the token of the service: `Authorization: Bearer TOKEN`."
            return reply(401, said, "unauthorised", {"WWW-Authenticate": "Bearer"})
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, port = (parts.hostname or "").lower(), parts.port or 80
        except ValueError:  # no host at all
            return False
        here = name == self.address or _is_this_machine(name, self.address)
        return name in self.names or (port == self.port and here)


def is_loopback(host: str) -> bool:
    """Say whether an address or name reaches this machine alone."""
    try:
        found = socket.getaddrinfo(host, None)
        return all(ipaddress.ip_address(str(one[4][0])).is_loopback for one in found)
    except (OSError, ValueError, UnicodeError):
        return False


def _is_this_machine(name: str, bound: str) -> bool:
    """Say whether a name is this machine's, or an address where all of them are listened on."""
    with suppress(ValueError):  # no page can have an address for its name
        address = ipaddress.ip_address(name)
        return address.is_loopback or ipaddress.ip_address(bound).is_unspecified
    return name == "localhost"


def error_reply(
    status: int, sentence: str, kind: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return a refusal: a sentence, and the word by which a program knows it."""
    return JSONResponse({"error": sentence, "kind": kind}, status, headers)


ErrorReply = Callable[[int, str, str, dict[str, str]], JSONResponse]
"""(status, sentence, kind, headers) -> a refusal in the words of a service."""
ErrorReplies = Callable[[Scope], ErrorReply]
"""What answers a request that is not let in, by what it asks for."""


def with_access(
    application: ASGIApp, access: Access, replies: ErrorReplies = lambda scope: error_reply
) -> ASGIApp:
    """Return an application that answers only those who are let in."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http"
        refusal = access.refusal(Headers(scope=scope), replies(scope)) if asked else None
        await (refusal or application)(scope, receive, send)

    return answer


WAITING = 2048
"""Connections that the system keeps waiting while all of ours are busy: uvicorn's own number."""


@contextmanager
def bound_socket(host: str, port: int) -> Generator[socket.socket]:
    """Yield a bound socket, on any free port for 0; UserError when it cannot be had."""
    # The protocol is named because asyncio switches Nagle's delay off only where it is: a reply is
    # two small writes, and the second would wait 40 ms for the first one's acknowledgement.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((host, port))
        except (OSError, OverflowError) as error:
            raise UserError(_bind_refusal(host, port, error)) from None
        yield taken


def listen(taken: socket.socket) -> str:
    """Let a bound socket listen and return its URL; UserError when another program was faster."""
    host, port = taken.getsockname()[:2]
    try:
        taken.listen(WAITING)
    except OSError as error:
        raise UserError(_bind_refusal(host, port, error)) from None
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    application: ASGIApp, taken: socket.socket, ready: Callable[[], None], **settings: Any
) -> None:
    """Serve until a signal says stop; returns normally then. For the main thread."""
    raise_open_files()
    server = _Server(uvicorn_config(application, **settings))

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True  # before uvicorn listens to signals, and when it raises them anew

    before = {one: signal.signal(one, stop) for one in stopping_signals()}
    try:
        ready()
        server.run(sockets=[taken])
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


class _Server(uvicorn.Server):
    """A server whose waiting connections are as many as the system allows."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen again: uvicorn lets as few wait as it accepts at once, and others try later."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(WAITING)


def uvicorn_config(
    application: ASGIApp,
    grace_s: int = 30,
    lifespan: Literal["on", "off"] = "off",
    limits: ConnectionLimits | None = None,
) -> uvicorn.Config:
    """Return how uvicorn is to run: without a line per request, which would say nothing."""
    limits = limits or ConnectionLimits()
    return uvicorn.Config(
        application,
        loop="asyncio",
        lifespan=lifespan,
        ws="none",  # no endpoint of ours speaks it
        access_log=False,
        log_level="warning",
        server_header=False,
        http=limited_protocol(limits),
        backlog=limits.accepted_at_once,
        timeout_keep_alive=int(limits.idle_s) or 1,
        timeout_graceful_shutdown=grace_s,
    )


def _bind_refusal(host: str, port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"--port is 0 (any free one) to 65535, not {port}."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use: name another --port, or 0 for any free one."
    if error.errno == errno.EACCES:
        return f"Port {port} of {host} may not be used by you: name a --port above 1023."
    return f"Nothing can listen on --host {host}, --port {port}: {error.strerror or error}."
