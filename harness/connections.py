"""Connections of a server: how many it holds at once, and how long each may keep it waiting.

A client that sends slowly or reads slowly holds an open file, of which a process has few. Slow ones
are closed after a time. If there is no room for a new one, the oldest of the most frequent kind
makes room: a flood pushes out itself, whatever it waits for, and no client of another kind.
"""

import asyncio
import resource
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Literal, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

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
