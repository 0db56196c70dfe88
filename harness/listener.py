"""HTTP servers on this machine: socket, accepted host names, connection limits, shutdown.

A client that sends or reads slowly keeps a file open, and a process may open only few. So slow
connections are closed after a timeout. If a new connection exceeds the limit, the oldest one of the
most frequent kind (`Awaited`) is closed: a flood of one kind closes no connection of another kind.
"""

import asyncio
import errno
import hmac
import ipaddress
import resource
import signal
import socket
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address, ip_network
from types import FrameType
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from podium.harness.errors import UserError
from podium.harness.shutdown import stopping_signals

OPEN_FILES = 8192
"""Open files that `raise_open_files` aims at: enough for connections, calls and sandboxes."""
MOST = 2048
OWN_FILES = 256  # open files reserved for journals, calls to models and sandboxes
LEAST_READ = 64 * 1024  # bytes that a client must read in `unread_s`, else it is closed
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 53\r\n\r\n"
    b"All connections of this server are in use: ask again."
)

Awaited = Literal["headers", "body", "reading", "idle"]
"""What a server waits for: request headers, a request body, a client to read its answer, or a new
request."""
KINDS: tuple[Awaited, ...] = ("headers", "body", "reading", "idle")
"""All kinds of waiting; if several are equally frequent, connections of the first are closed
first."""


def open_files() -> int:
    """Return how many files this process may have open at once; `OPEN_FILES` if unlimited."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> None:
    """Raise the soft limit of open files towards `OPEN_FILES`, as far as the hard limit allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if limit > open_files():
        with suppress(OSError, ValueError):  # some systems have a lower limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _most() -> int:
    files = open_files()
    return min(MOST, max(files - OWN_FILES, files // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """A server's limits on its clients' connections; times are in seconds."""

    most: int = field(default_factory=_most)
    """Simultaneous connections: 2,048, or fewer if the process may open fewer files."""
    headers_s: float = 10
    """Timeout from the connection, or a later request's first byte, to the end of its headers."""
    body_s: float = 120
    """Timeout from the end of a request's headers to the end of its body."""
    unread_s: float = 30
    """Time in which a client must read at least 64 KiB of an answer that waits to be sent."""
    idle_s: float = 120
    """Timeout between two requests; long, because a trainer pauses and fails if it is
    disconnected."""

    @property
    def per_address(self) -> int:
        """Maximum simultaneous connections of one client: three quarters of `most`."""
        return max(1, self.most * 3 // 4)

    @property
    def accepted_at_once(self) -> int:
        """Maximum connections accepted in one event loop iteration, before they are counted."""
        return max(8, min(MOST, (open_files() - self.most) // 4))

    def seconds(self, awaited: Awaited) -> float:
        """Return the timeout, in seconds, for what the server waits for, e.g. `headers`."""
        return cast(float, getattr(self, "unread_s" if awaited == "reading" else f"{awaited}_s"))


def limited_protocol(limits: ConnectionLimits) -> type[H11Protocol]:
    """Return a uvicorn protocol class that enforces these limits, for one server."""
    connections = _HeldConnections(limits)
    return type("LimitedProtocol", (_Connection,), {"held": connections})


class _Connection(H11Protocol):
    """An HTTP connection that records what the server waits for, and since when."""

    held: "_HeldConnections"  # all connections of the server; each server has a subclass
    noted: Awaited | None = None  # the awaited event at the last check
    since = 0.0
    _resumed = 0  # times that the client has read most of the write buffer
    _seen: object = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's
        """Start the connection; if there are too many, close this or another connection."""
        super().connection_made(transport)
        self.note(self.loop.time())
        self.held.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove this connection from the server's connections."""
        self.held.forget(self)
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Count that the client has read most of the write buffer, and continue writing."""
        self._resumed += 1
        super().resume_writing()

    @property
    def awaited(self) -> Awaited | None:
        """What the server waits for from the client; None while the client waits for an answer."""
        if self.transport.get_write_buffer_size():
            return "reading"
        if self.conn.their_state is h11.IDLE:
            is_first = cast(object, self.cycle) is None  # uvicorn's type wrongly excludes None
            return "headers" if is_first or self.conn.trailing_data[0] else "idle"
        is_read = self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused
        return "body" if is_read else None

    def note(self, now: float) -> None:
        """Note what the server waits for; restart the timeout if the client made progress."""
        self.noted = self.awaited
        state = (self.noted, self.cycle, self._resumed)
        unread = self.transport.get_write_buffer_size()
        if state != self._seen or unread <= self._unread - LEAST_READ:
            self.since, self._seen, self._unread = now, state, unread


Client = str  # an IPv4 address or an IPv6 network


class _HeldConnections:
    """All open connections of a server, oldest first, in total and by client."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._all: dict[_Connection, Client] = {}
        self._by_client = defaultdict[Client, dict[_Connection, None]](dict)
        self._slow: dict[Client | None, list[_Connection]] = {}  # next to close, the oldest last
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, new: _Connection) -> None:
        """Add a connection; if there are too many, close a slow connection, or else the new one."""
        client = _client(new.client[0] if new.client else "")
        same_client = self._by_client[client]
        for whose, among, limit in (
            (client, same_client, self._limits.per_address),
            (None, self._all, self._limits.most),
        ):
            if len(among) < limit:
                continue
            slowest = self._slowest(whose, among)
            if slowest is None:
                new.transport.write(FULL)
                new.transport.close()
                return
            self.forget(slowest)
            slowest.transport.abort()
        self._all[new], self._by_client[client][new] = client, None
        if self._timer is None:
            self._look_later(new.loop)

    def forget(self, connection: _Connection) -> None:
        """Remove a connection from the server's open connections."""
        client = self._all.pop(connection, None)
        if client is not None:
            del self._by_client[client][connection]
            if not self._by_client[client]:
                del self._by_client[client]
                self._slow.pop(client, None)

    def _slowest(self, whose: Client | None, among: Iterable[_Connection]) -> _Connection | None:
        """Return the connection to close; None if all clients wait for the server's answer."""
        slow = self._slow.get(whose, [])
        while slow:
            connection = slow.pop()
            if connection in self._all and connection.awaited == connection.noted:
                return connection
        by_kind = _by_kind(among)
        kind = max(KINDS, key=lambda awaited: len(by_kind[awaited]))
        oldest = sorted(by_kind[kind], key=lambda connection: connection.since)
        if not oldest:
            return None
        # Checking all connections is slow: an eighth of them may be closed before the next check.
        self._slow[whose] = oldest[1 : len(oldest) // 8][::-1]
        return oldest[0]

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        soon = min(1.0, *(self._limits.seconds(kind) / 4 for kind in KINDS))
        self._timer = loop.call_later(soon, partial(self._close_overdue, loop))

    def _close_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in [*self._all]:
            connection.note(now)
            awaited = connection.noted
            if awaited and now - connection.since >= self._limits.seconds(awaited):
                connection.transport.abort()
        self._timer = None
        if self._all:
            self._look_later(loop)


def _by_kind(connections: Iterable[_Connection]) -> Mapping[Awaited, list[_Connection]]:
    groups: dict[Awaited, list[_Connection]] = {kind: [] for kind in KINDS}
    for connection in connections:
        connection.note(connection.loop.time())
        if connection.noted:
            groups[connection.noted].append(connection)
    return groups


def _client(address: str) -> Client:
    """Return the client that an address belongs to: an IPv6 client has a whole /64 network.

    >>> _client("127.0.0.1"), _client("::ffff:10.0.0.1"), _client("2001:db8::1")
    ('127.0.0.1', '10.0.0.1', '2001:db8::/64')
    """
    with suppress(ValueError):
        ip = ip_address(address)
        if ip.version == 6:
            mapped = ip.ipv4_mapped
            return str(mapped or ip_network((int(ip), 64), strict=False))
    return address


@dataclass(frozen=True, slots=True)
class Access:
    """The host names and the token that a server requires in requests."""

    address: str
    port: int
    names: frozenset[str] = frozenset()  # other host names of the server
    token: str = ""  # required `Authorization: Bearer` token; empty: none
    remedy: str = " (--allow-host NAME allows one)"  # hint on allowing another name; may be empty

    def refusal(self, headers: Headers, reply: "ErrorReply") -> JSONResponse | None:
        """Return the HTTP response that refuses a request; None if the request is accepted."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            message = f"This service does not accept host {host!r:.80}{self.remedy}."
            return reply(421, message, "misdirected", {})
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(urlsplit(origin).netloc):
            message = "Web pages of other sites may not call this service. Call it from a program."
            return reply(403, message, "foreign_origin", {})
        scheme, _, token = headers.get("authorization", "").partition(" ")
        is_valid = hmac.compare_digest(token.strip().encode(), self.token.encode())
        if self.token and not (scheme.lower() == "bearer" and is_valid):
            message = "Send the token of the service: `Authorization: Bearer TOKEN`."
            return reply(401, message, "unauthorised", {"WWW-Authenticate": "Bearer"})
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            url = urlsplit(f"//{host}")
            name, port = (url.hostname or "").lower(), url.port or 80
        except ValueError:  # not a host
            return False
        here = name == self.address or _is_this_machine(name, self.address)
        return name in self.names or (port == self.port and here)


def is_loopback(host: str) -> bool:
    """Return whether an address or name reaches only this machine."""
    try:
        entries = socket.getaddrinfo(host, None)
        return all(ipaddress.ip_address(str(entry[4][0])).is_loopback for entry in entries)
    except (OSError, ValueError, UnicodeError):
        return False


def _is_this_machine(name: str, bound: str) -> bool:
    """Return whether a host is localhost, or an address and the server listens on all addresses."""
    with suppress(ValueError):  # a web page's host name cannot pretend to be an address
        address = ipaddress.ip_address(name)
        return address.is_loopback or ipaddress.ip_address(bound).is_unspecified
    return name == "localhost"


def error_reply(
    status: int, sentence: str, kind: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return an error response: a sentence for people, and a keyword (`kind`) for programs."""
    return JSONResponse({"error": sentence, "kind": kind}, status, headers)


ErrorReply = Callable[[int, str, str, dict[str, str]], JSONResponse]
"""(status, sentence, kind, headers) -> an error response in a service's format."""
ErrorReplies = Callable[[Scope], ErrorReply]
"""ASGI scope of a request -> the function that makes its error responses."""


def with_access(
    application: ASGIApp, access: Access, replies: ErrorReplies = lambda scope: error_reply
) -> ASGIApp:
    """Return an application that refuses the requests that `access` does not accept."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        refusal = access.refusal(Headers(scope=scope), replies(scope)) if is_http else None
        await (refusal or application)(scope, receive, send)

    return answer


WAITING = 2048
"""Connections that the operating system queues until the server accepts them (as in uvicorn)."""


@contextmanager
def bound_socket(host: str, port: int) -> Generator[socket.socket]:
    """Yield a bound socket; port 0 takes any free port. UserError if it cannot be bound."""
    # The protocol is given because asyncio switches Nagle's delay off only then: a reply is two
    # small writes, and the second would wait 40 ms for the first one's acknowledgement.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as server_socket:
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server_socket.bind((host, port))
        except (OSError, OverflowError) as error:
            raise UserError(_bind_refusal(host, port, error)) from None
        yield server_socket


def listen(server_socket: socket.socket) -> str:
    """Make a bound socket listen and return its URL; UserError if the port is in use now."""
    host, port = server_socket.getsockname()[:2]
    try:
        server_socket.listen(WAITING)
    except OSError as error:
        raise UserError(_bind_refusal(host, port, error)) from None
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    application: ASGIApp, server_socket: socket.socket, ready: Callable[[], None], **settings: Any
) -> None:
    """Serve an application until a stop signal, then return. Must run in the main thread."""
    raise_open_files()
    server = _Server(uvicorn_config(application, **settings))

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True  # for signals before uvicorn's handler, or raised again by it

    handlers = {code: signal.signal(code, stop) for code in stopping_signals()}
    try:
        ready()
        server.run(sockets=[server_socket])
    finally:
        for code, handler in handlers.items():
            signal.signal(code, handler)


class _Server(uvicorn.Server):
    """A uvicorn server whose queue of waiting connections has the length `WAITING`."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen again with a longer queue: uvicorn queues only as many as it accepts at once."""
        await super().startup(sockets)
        for server_socket in sockets or ():
            server_socket.listen(WAITING)


def uvicorn_config(
    application: ASGIApp,
    grace_s: int = 30,
    lifespan: Literal["on", "off"] = "off",
    limits: ConnectionLimits | None = None,
) -> uvicorn.Config:
    """Return uvicorn's settings for a server with these connection limits; no access log."""
    limits = limits or ConnectionLimits()
    return uvicorn.Config(
        application,
        loop="asyncio",
        lifespan=lifespan,
        ws="none",  # no endpoint uses it
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
        return f"--port must be from 0 (any free port) to 65535, not {port}."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use: name another --port, or 0 for any free port."
    if error.errno == errno.EACCES:
        return f"You may not use port {port} of {host}: name a --port above 1023."
    return f"Nothing can listen on --host {host}, --port {port}: {error.strerror or error}."
