"""A server on this machine: a socket, the hosts that it answers to, its connections, its end.

A client that sends slowly or reads slowly holds an open file, of which a process has few. Slow ones
are closed after a time. If there is no room for a new one, the oldest of the most frequent kind
makes room: a flood pushes out itself, whatever it waits for, and no client of another kind.
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
"""What `raise_open_files` asks for: room for every connection, for upstream calls and for boxes."""
MOST = 2048
OWN_FILES = 256  # open files that are kept for journals, upstream calls and boxes
LEAST_READ = 64 * 1024  # bytes that a client must read in `unread_s`, or it counts as stopped
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 53\r\n\r\n"
    b"All connections of this server are in use: ask again."
)

Awaited = Literal["headers", "body", "reading", "idle"]
"""What a server waits for: the rest of either, its answer to be read, or the next request."""
KINDS: tuple[Awaited, ...] = ("headers", "body", "reading", "idle")
"""Of kinds that are equally frequent, the first makes room."""


def open_files() -> int:
    """Return how many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> None:
    """Raise the soft limit of open files towards `OPEN_FILES`, as far as the hard limit allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if wanted > open_files():
        with suppress(OSError, ValueError):  # some systems have a lower limit that they do not say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _most() -> int:
    files = open_files()
    return min(MOST, max(files - OWN_FILES, files // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What a server allows its clients; times are in seconds."""

    most: int = field(default_factory=_most)
    """Connections at once: 2,048, or fewer if the process may open fewer files."""
    headers_s: float = 10
    """From the connection, or from the first byte of a later request, to the end of its headers."""
    body_s: float = 120
    """From the end of the headers to the end of the body."""
    unread_s: float = 30
    """While a client reads less than 64 KiB of an answer that waits for it."""
    idle_s: float = 120
    """Between two requests. A trainer pauses between steps, and a close is its failure."""

    @property
    def per_address(self) -> int:
        """Connections of one client at once: three quarters, so that one alone never fills all."""
        return max(1, self.most * 3 // 4)

    @property
    def accepted_at_once(self) -> int:
        """Connections that are accepted before any of them is counted."""
        return max(8, min(MOST, (open_files() - self.most) // 4))

    def seconds(self, awaited: Awaited) -> float:
        """Return how long a client may take."""
        return cast(float, getattr(self, "unread_s" if awaited == "reading" else f"{awaited}_s"))


def limited_protocol(limits: ConnectionLimits) -> type[H11Protocol]:
    """Return uvicorn's protocol with limits, for one server."""
    held = _HeldConnections(limits)
    return type("LimitedProtocol", (_Connection,), {"held": held})


class _Connection(H11Protocol):
    """A connection that can say what it waits for, and since when."""

    held: "_HeldConnections"  # of the server; a class of its own has it
    noted: Awaited | None = None  # what it waited for at the last look
    since = 0.0
    _resumed = 0  # times that a client has read what was waiting
    _seen: object = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's
        """Begin, if there is room for it."""
        super().connection_made(transport)
        self.note(self.loop.time())
        self.held.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self.held.forget(self)
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Go on, as most of what was waiting has been read."""
        self._resumed += 1
        super().resume_writing()

    @property
    def awaited(self) -> Awaited | None:
        """What its client must do next; None while it waits for us."""
        if self.transport.get_write_buffer_size():
            return "reading"
        if self.conn.their_state is h11.IDLE:
            is_first = cast(object, self.cycle) is None  # uvicorn types it as if it were there
            return "headers" if is_first or self.conn.trailing_data[0] else "idle"
        is_read = self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused
        return "body" if is_read else None

    def note(self, now: float) -> None:
        """Begin to count anew if the client has moved on since the last look."""
        self.noted = self.awaited
        seen = (self.noted, self.cycle, self._resumed)
        unread = self.transport.get_write_buffer_size()
        if seen != self._seen or unread <= self._unread - LEAST_READ:
            self.since, self._seen, self._unread = now, seen, unread


Client = str  # an address, or a network of IPv6


class _HeldConnections:
    """All connections of a server, oldest first, in all and by client."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._all: dict[_Connection, Client] = {}
        self._by_client = defaultdict[Client, dict[_Connection, None]](dict)
        self._slow: dict[Client | None, list[_Connection]] = {}  # next to close, the oldest last
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, new: _Connection) -> None:
        """Hold a connection; another one is closed for it if there are too many, or it is."""
        client = _client(new.client[0] if new.client else "")
        own = self._by_client[client]
        for whose, among, most in (
            (client, own, self._limits.per_address),
            (None, self._all, self._limits.most),
        ):
            if len(among) < most:
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
        """Count a connection no more."""
        client = self._all.pop(connection, None)
        if client is not None:
            del self._by_client[client][connection]
            if not self._by_client[client]:
                del self._by_client[client]
                self._slow.pop(client, None)

    def _slowest(self, whose: Client | None, among: Iterable[_Connection]) -> _Connection | None:
        """Return which connection makes room; None if each of them waits for our answer."""
        slow = self._slow.get(whose, [])
        while slow:
            connection = slow.pop()
            if connection in self._all and connection.awaited == connection.noted:
                return connection
        by_kind = _by_kind(among)
        kind = max(KINDS, key=lambda one: len(by_kind[one]))
        oldest = sorted(by_kind[kind], key=lambda one: one.since)
        if not oldest:
            return None
        # To look at all of them takes a while: an eighth is closed before the next look.
        self._slow[whose] = oldest[1 : len(oldest) // 8][::-1]
        return oldest[0]

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        soon = min(1.0, *(self._limits.seconds(one) / 4 for one in KINDS))
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
    found: dict[Awaited, list[_Connection]] = {kind: [] for kind in KINDS}
    for connection in connections:
        connection.note(connection.loop.time())
        if connection.noted:
            found[connection.noted].append(connection)
    return found


def _client(address: str) -> Client:
    """Return whose address it is: of IPv6, one client has 2**64.

    >>> _client("127.0.0.1"), _client("::ffff:10.0.0.1"), _client("2001:db8::1")
    ('127.0.0.1', '10.0.0.1', '2001:db8::/64')
    """
    with suppress(ValueError):
        found = ip_address(address)
        if found.version == 6:
            mapped = found.ipv4_mapped
            return str(mapped or ip_network((int(found), 64), strict=False))
    return address


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
