"""The journal: what is written down before and after every call, so that kill -9 loses no call.

One file per process and task below `LOG_DIR/ledger/`, one JSON object per line, appended and handed
to the system before the call goes out. Each line carries the digest of the line before it. A call
with an `intent` and no `outcome` was in flight when its process died: nobody knows whether it was
billed. Lines:

    head     who writes: schema, task, suite, system, label, book, process
    intent   a call is about to be dispatched
    retry    an HTTP attempt of it has failed and another follows
    outcome  the call has ended: usage, or what went wrong
    totals   what Inspect's own hooks counted, per model: an independent sum
"""

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import orjson

from harness.file_limits import regular
from harness.ledger.row import Cache, Scope, canonical
from harness.records import Usage

SCHEMA = "podium-journal-1"
FOLDER = "ledger"
"""Where a run's journals lie, below its log directory."""
BEGINNING = "0" * 64
"""What the first line of a file names as the digest before it."""


@dataclass(frozen=True, slots=True)
class Head:
    """Whose calls a journal holds."""

    task: str
    """Inspect's task name: its log has the same calls; empty outside an eval."""
    suite: str
    system: str
    label: str
    book: str
    book_sha256: str
    shown: bool = True
    """False for exams whose questions may not be published."""


@dataclass(frozen=True, slots=True)
class SampleRef:
    """The running sample that a call is made for."""

    question: str
    epoch: int
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A call that is about to be dispatched."""

    scope: Scope
    sample: SampleRef | None
    role: str
    step: str | None
    model: str
    price_ref: str
    service: str = "standard"
    prompt_sha256: str
    prompt_bytes: int
    max_tokens: int | None
    span: str | None
    """Inspect's span around the call: the log's events name it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call has ended."""

    event: str | None
    """uuid of the ModelEvent of the last attempt."""
    usage: Usage | None
    cache: Cache = "none"
    served_model: str | None = None
    request_id: str | None = None
    stop: str | None = None
    error: str | None = None
    """Kind of failure; never a provider's words, which may quote a question."""
    http_status: int | None = None
    refused: bool = False
    """True when nothing was generated or billed: the provider refused the request, or a limit of
    ours ended it before it was sent (then there is an error and no event)."""
    latency_s: float | None = None
    output_sha256: str | None = None
    raw_usage: Mapping[str, Any] | None = None
    usd: str | None = None
    """What it cost at the run's book, in plain notation, for the audit to recompute; None when that
    is unknown."""


@dataclass(slots=True)
class Journal:
    """An open file; safe to write from several threads. Made by `open_journal`."""

    path: Path
    _handle: int
    _last: str = BEGINNING
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def intent(self, intent: Intent) -> str:
        """Write a call down before it is dispatched; return the id that its other lines name."""
        call = secrets.token_hex(8)
        self.write("intent", {"call": call, **asdict(intent)})
        return call

    def retry(self, call: str, attempt: int, error: str | None, status: int | None) -> None:
        """Write down that an HTTP attempt (1 for the first) has failed and another follows."""
        failed = {"attempt": attempt, "error": error, "http_status": status}
        self.write("retry", {"call": call, **failed})

    def outcome(self, call: str, outcome: Outcome) -> None:
        """Write down how a call has ended."""
        self.write("outcome", {"call": call, **asdict(outcome)})

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append one line in one system call: a process that is killed leaves whole lines.

        Raises OSError when it cannot be written: a call that nobody will remember is not made.
        """
        with self._lock:
            line = {"kind": kind, "at": _now(), **fields, "prev": self._last}
            digest = hashlib.sha256(canonical(line)).hexdigest()
            os.write(self._handle, canonical({**line, "hash": digest}) + b"\n")
            self._last = digest

    def close(self) -> None:
        """Close the file; nothing is written after."""
        os.close(self._handle)


def open_journal(log_dir: Path, head: Head) -> Journal:
    """Begin a new journal of this process below a log directory; an older one is never touched."""
    folder = folder_of(log_dir, head.task or head.system)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(3)}.jsonl"
    path = folder / name
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
    journal = Journal(path, handle)
    journal.write("head", {"schema": SCHEMA, "pid": os.getpid(), **asdict(head)})
    return journal


def folder_of(log_dir: Path, task: str) -> Path:
    """Return where the journals of a task lie."""
    return log_dir / FOLDER / re.sub(r"[^A-Za-z0-9._-]+", "_", task)


def read_lines(path: Path, unreadable: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """Yield a journal's lines; a last line that was cut short, by a full disk say, is left out.

    A whole line that is no JSON object is left out too, and its number goes to `unreadable`: it
    breaks the chain (harness/ledger/chain.py), which is how an audit knows of it.
    """
    regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                found: object = orjson.loads(line)
            except orjson.JSONDecodeError:
                found = None
            if isinstance(found, dict):
                yield cast(dict[str, Any], found)
            elif unreadable is not None:
                unreadable.append(number)


def usage_of(line: Mapping[str, Any]) -> Usage | None:
    """Return the usage of an outcome line."""
    stored = line.get("usage")
    return Usage(**stored) if stored else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
