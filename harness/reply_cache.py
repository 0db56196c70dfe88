"""Stores paid replies, so that a resumed run pays for nothing twice.

A stored reply is reused only for the same repetition of a request. Each process has one SQLite
file, which only its owner can read; it is written at once: kill -9 loses nothing. A run keeps
shared replies until it ends, and other replies until their sample is logged. A training keeps all
replies, but in memory only if their questions must not be published.
"""

import errno
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from weakref import WeakValueDictionary, finalize

import anyio
from anyio.lowlevel import RunVar

from podium.harness.errors import UserError
from podium.harness.records import Reply, Usage

FOLDER = "paid-replies"  # Below the folder of a run or a training
REMEMBERED = 1 << 14  # Maximum replies in memory, the latest ones, if there is no file
MORE = ("sample TEXT NOT NULL DEFAULT ''", "at REAL NOT NULL DEFAULT 0")  # added later
OPENING = f"""
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT, {", ".join(MORE)});
BEGIN EXCLUSIVE;
COMMIT;
"""
"""SQL that makes a file of replies and locks it for this process. Only a crash of the operating
system can lose a reply."""
ROOM = 16 << 20
"""Minimum free bytes for a call to begin: for replies in flight, and the ends of logs."""
Ask = Callable[[], Awaitable[Reply]]


def is_nearly_full(folder: Path) -> bool:
    """Return whether a disk has too little room for paid replies; False if its size is unknown."""
    disk = os.statvfs(folder)
    return bool(disk.f_blocks) and disk.f_bavail * disk.f_frsize < ROOM


_KEY = json.JSONEncoder(sort_keys=True, default=str).encode


def key_of(*values: object) -> bytes:
    """Return the key under which a reply is stored: a digest of `values`, plain JSON values."""
    return hashlib.sha256(_KEY(values).encode()).digest()


@dataclass(slots=True, weakref_slot=True)
class _File:
    """An open file of stored replies, with a lock for threads."""

    path: Path
    replies: sqlite3.Connection
    lock: threading.Lock = field(default_factory=threading.Lock)
    full: OSError | None = None  # why a reply could not be stored: no other may be paid for

    def read(self, key: bytes) -> str | None:
        with self.lock:
            rows = self.replies.execute("SELECT reply FROM replies WHERE key = ?", (key,))
            return next((str(row[0]) for row in rows.fetchall()), None)

    def write(self, key: bytes, reply: str, sample: str = "") -> None:
        sql = "INSERT OR IGNORE INTO replies (key, reply, sample, at) VALUES (?, ?, ?, ?)"
        try:
            with self.lock:
                self.replies.execute(sql, (key, reply, sample, time.time()))
        except sqlite3.OperationalError as error:
            self.full = OSError(errno.ENOSPC, str(error), str(self.path))
            raise self.full from error

    def drop(self, key: bytes) -> None:
        with self.lock:
            self.replies.execute("DELETE FROM replies WHERE key = ?", (key,))

    def forget(self, logged: Mapping[str, float]) -> int:
        """Delete replies stored before {sample: time of its log}; return how many remain."""
        sql = "DELETE FROM replies WHERE sample = ? AND at < ?"
        try:
            with self.lock:
                self.replies.executemany(sql, logged.items())
                return int(self.replies.execute("SELECT count(*) FROM replies").fetchone()[0])
        except sqlite3.OperationalError as error:
            raise OSError(errno.ENOSPC, str(error), str(self.path)) from error


_OPEN: "WeakValueDictionary[tuple[int, Path], _File]" = WeakValueDictionary()
"""Open files of replies by (process id, path): all reward functions of one process share a file."""
_OPENING = threading.Lock()


@dataclass(slots=True)
class PaidReplies:
    """The paid replies of one process; without a `folder` they are kept only in memory."""

    folder: Path | None = None
    rank: int = 0  # Number of this process in a training: each has a separate file
    _file: _File | None = None
    _known: OrderedDict[bytes, Reply] = field(default_factory=OrderedDict[bytes, Reply])

    @property
    def path(self) -> Path | None:
        """The path of the file of replies; None if replies are kept only in memory."""
        return self.folder / FOLDER / f"rank-{self.rank}.sqlite" if self.folder else None

    def open(self) -> _File | None:
        """Open the file of replies, if any; UserError if damaged or open in another process."""
        if self._file is None and (path := self.path) is not None:
            with _OPENING:
                self._file = _OPEN.get((os.getpid(), path)) or _opened(path)
                _OPEN[os.getpid(), path] = self._file
        return self._file

    def known(self, key: bytes) -> str | None:
        """Return a run's stored reply for a key; None if there is none."""
        return file.read(key) if (file := self.open()) else None

    def keep(self, key: bytes, reply: str, sample: str) -> None:
        """Store a reply of a run until its sample is logged; without a sample, until the run ends.

        Raises OSError if the reply cannot be written.
        """
        if file := self.open():
            file.write(key, reply, sample)

    def refuse_full(self) -> None:
        """Raise OSError before a call is paid for, if its reply could not be stored."""
        if (file := self.open()) is None:
            return
        if file.full:
            raise file.full
        if is_nearly_full(file.path.parent):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.path))

    def drop(self, key: bytes) -> None:
        """Delete the stored reply of a key."""
        if file := self.open():
            file.drop(key)

    def forget(self, logged: Mapping[str, float]) -> None:
        """Delete replies of logged samples, given as {sample: time of log}, older than the log."""
        if self.path is None or not self.path.exists():
            return
        if (file := self.open()) and not file.forget(logged):
            self.clear()

    def close(self) -> None:
        """Close the file of replies, for all stores of this process that share it."""
        if self.path is not None:
            with _OPENING:
                shared = _OPEN.pop((os.getpid(), self.path), None)
            if shared:
                shared.replies.close()
        self._file = None

    def clear(self) -> None:
        """Delete the file of replies, and its folder if that is empty then."""
        self.close()
        if (path := self.path) is None:
            return
        for name in (path, *path.parent.glob(f"{path.name}-*")):
            name.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()

    async def reply(self, key: bytes, ask: Ask, *, lasting: bool) -> tuple[Reply, bool]:
        """Return a reply and whether it was read from the store; `ask` runs once for equal keys.

        With `lasting`, a new reply is stored in the file, if there is one; else in memory.
        """
        async with self.turn(key):
            if (stored := self._read(key, lasting)) is not None:
                return stored, True
            reply = await ask()
            self._write(key, reply, lasting)
            return reply, False

    @asynccontextmanager
    async def turn(self, key: bytes) -> AsyncGenerator[None]:
        """Let one task at a time look up or request the reply of a key; other tasks wait.

        If the task that requests the reply fails or is cancelled, the next task requests it.
        """
        if (under_way := _UNDER_WAY.get(None)) is None:
            _UNDER_WAY.set(under_way := dict[tuple[int, bytes], anyio.Event]())
        mine = id(self.open() or self), key
        while event := under_way.get(mine):
            await event.wait()
        under_way[mine] = event = anyio.Event()
        try:
            yield
        finally:
            del under_way[mine]
            event.set()

    def _read(self, key: bytes, lasting: bool) -> Reply | None:
        file = self.open()
        if file is None or not lasting:
            return self._known.get(key)
        if (stored := file.read(key)) is None:
            return None
        worker, text, usage, usd, too_long = json.loads(stored)
        return Reply(worker, text, usage and Usage(**usage), usd and Decimal(usd), too_long)

    def _write(self, key: bytes, reply: Reply, lasting: bool) -> None:
        if self._file is not None and lasting:
            usage = None if reply.usage is None else asdict(reply.usage)
            usd = None if reply.usd is None else str(reply.usd)
            row = [reply.worker, reply.text, usage, usd, reply.too_long]
            self._file.write(key, json.dumps(row))
            return
        self._known[key] = reply
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


_UNDER_WAY: RunVar[dict[tuple[int, bytes], anyio.Event]] = RunVar("podium replies under way")
"""(store, key) -> event, set when the task that requests the reply has ended; per event loop."""


def _opened(path: Path) -> _File:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
    file = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
    try:
        file.executescript(OPENING)
        here = {row[1] for row in file.execute("PRAGMA table_info(replies)")}
        for column in MORE:
            if column.split()[0] not in here:
                file.execute(f"ALTER TABLE replies ADD COLUMN {column}")
    except sqlite3.DatabaseError as error:
        file.close()
        if any(word in str(error) for word in ("is full", "I/O error", "unable to open")):
            raise OSError(errno.ENOSPC, str(error), str(path)) from error
        busy = "locked" in str(error) or "busy" in str(error)
        waiting = "another process has it open: wait until that process ends"
        reason = waiting if busy else "it is damaged: move it away"
        raise UserError(f"The replies in {path} cannot be read: {reason}.") from None
    opened = _File(path, file)
    finalize(opened, file.close)
    return opened
