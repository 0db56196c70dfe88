"""The journal: lines that are written before and after every call, so that kill -9 loses no call.

One file per process and task below `LOG_DIR/ledger/`, one JSON object per line, written to the file
before the call is sent. A call with an `intent` and no `outcome` was in flight when its process
died: whether it was billed is unknown. The kinds of lines:

    head     the writer: schema, task, suite, system, label, price book, process; in a shard (a part
             of a run) also the number of the shard's lease of dollars
    book     the price book in full, if no log embeds it: for served requests
    request  a server has taken a request: the requested model, the API dialect, the client's key
    intent   a call is about to be dispatched
    retry    an HTTP attempt of the call has failed; another one is planned after a wait
    again    the planned attempt is about to be dispatched; without this line it was not sent
    outcome  the call has ended: usage, or the error
    answer   the digest of a sample's answer, and of the plan behind it; for a request to a server
             also its HTTP status, the reason of a refusal, its plan without texts, and how long it
             took: a request without such a line was in flight when its process died
    grade    the verdict on a sample's answer
    totals   calls and tokens per model as Inspect's hooks counted them, for comparison
    torn     the line before it is incomplete, as its process or machine stopped while writing it
    closed   the process has ended normally: no line after this one is missing

Each line contains the digest of the previous line. Digests reveal edits, insertions, deletions and
reorderings; only a manifest reveals missing last lines, or a file that was rewritten completely.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import orjson

from podium.harness.context import current
from podium.harness.files import parse_json, regular_size
from podium.harness.ledger.call import Cache, canonical
from podium.harness.records import Usage

SCHEMA = "podium-journal-2"
OLDER = "podium-journal-1"
"""Earlier schema without `again` lines: each `retry` line counts as followed by another attempt."""
FOLDER = "ledger"
"""The folder of a run's journals, below its log directory."""
SERVING = "serve_"
"""Prefix of the names of journal folders that `podium serve` writes."""
SERVED = f"**/{FOLDER}/{SERVING}*/*.jsonl"
"""Glob pattern of a server's journals, below any directory."""
BEGINNING = "0" * 64
"""The value of `prev` in the first line of a journal, which has no previous line."""


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a journal's first line: the task, suite, system and price book of its calls."""

    task: str
    """Inspect's task name: the task's log has the same calls; empty outside an eval."""
    suite: str
    system: str
    label: str
    book: str
    book_sha256: str
    shown: bool = True
    """False for suites whose questions may not be published."""


@dataclass(frozen=True, slots=True)
class SampleRef:
    """The running sample (a question in one epoch) that a call is made for."""

    question: str
    epoch: int
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """How a call ended: the fields of its `outcome` line."""

    event: str | None
    usage: Usage | None
    cache: Cache = "none"
    served_model: str | None = None
    request_id: str | None = None
    stop: str | None = None
    error: str | None = None
    """Kind of failure; never a provider's message, which may quote a question."""
    http_status: int | None = None
    refused: bool = False
    """True if nothing was generated or billed: the provider refused the request, or one of podium's
    limits ended the call before it was sent (then there is an error and no event)."""
    from_store: bool = False
    shared_from: str | None = None
    """Id of another system's call that paid for the reply; None if no other system paid."""
    latency_s: float | None = None
    output_sha256: str | None = None
    """Digest of the reply's text alone, the only digest of a reply in older journals."""
    sent_sha256: str | None = None
    """Digest of the logged request: Inspect may have merged messages, or added one."""
    reply_sha256: str | None = None
    """Digest of the whole reply: its text, its reasoning and its tool calls."""
    raw_usage: Mapping[str, Any] | None = None
    usd: str | None = None
    """Cost in dollars at the run's price book, which the audit recomputes; None if unknown."""
    usd_provider: str | None = None
    """The cost that the provider states, in dollars; None if the provider states none."""

    @property
    def unbelieved(self) -> bool:
        """Whether the call got a reply whose token counts are impossible."""
        return self.usage is None and self.error is None and self.raw_usage is not None


CAME = ("usage", "raw_usage", "usd_provider", "served_model", "stop", "output_sha256")
"""Fields that a `retry` line has only if a partial reply came before the failure."""


@dataclass(slots=True)
class Journal:
    """An open journal file, which several threads may write to. Made by `open_journal`."""

    path: Path
    _handle: int
    _last: str = BEGINNING
    _whole: int = 0
    _torn: bool = False
    """Whether the file has an incomplete line after its first `_whole` bytes."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def intent(self, fields: Mapping[str, Any]) -> str:
        """Record a call before it is dispatched; return its id, for the call's other lines."""
        call = secrets.token_hex(8)
        self.write("intent", {"call": call, **fields})
        return call

    def retry(
        self,
        call: str,
        attempt: int,
        error: str | None,
        status: int | None,
        partial: CallOutcome | None = None,
    ) -> None:
        """Record that an HTTP attempt (1: the first) of a call failed and another will follow."""
        # `partial` is the part of a reply that came before the failure: it may have been billed.
        failed = {"attempt": attempt, "error": error, "http_status": status}
        reply_fields = {name: getattr(partial, name) for name in CAME} if partial else {}
        if partial and partial.usage:
            reply_fields["usage"] = _values(partial.usage)
        self.write("retry", {"call": call, **failed, **reply_fields})

    def again(self, call: str, after_s: float | None = None) -> None:
        """Record that a call's next attempt, after a failed one, is about to be dispatched."""
        # `after_s`: seconds since the first attempt, by a monotonic clock.
        self.write("again", {"call": call, "after_s": after_s})

    def outcome(self, call: str, outcome: CallOutcome) -> None:
        """Record how a call ended, in an `outcome` line."""
        # `asdict` would make a deep copy of the provider's raw usage.
        usage = outcome.usage and _values(outcome.usage)
        self.write("outcome", {"call": call, **_values(outcome), "usage": usage})

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append a line in one system call: kill -9 leaves no partial line. OSError on failure."""
        with self._lock:
            line, digest = _linked({"kind": kind, "at": _now(), **fields}, self._last)
            try:
                self._append(line)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            self._last = digest

    def _append(self, line: bytes) -> None:
        if self._torn:
            os.ftruncate(self._handle, self._whole)
        self._torn, remaining = True, line
        try:
            while remaining:  # a disk that is nearly full may write only a part
                remaining = remaining[os.write(self._handle, remaining) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, self._whole)
                self._torn = False
            raise
        self._torn, self._whole = False, self._whole + len(line)

    def sync(self) -> None:
        """Flush the journal's lines to disk, so that they survive a power failure."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the journal's file; nothing can be written afterwards."""
        os.close(self._handle)


def open_journal(log_dir: Path, head: Head) -> Journal:
    """Create a new journal for this process below a log directory; it never reuses a file."""
    folder = folder_of(log_dir, head.task or head.system)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(3)}.jsonl"
    path = folder / name
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
    journal = Journal(path, handle)
    with suppress(OSError):  # not every file system has locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # so that `mend` skips it
    try:
        lease = current().generation
        shard = {} if lease is None else {"generation": lease}
        journal.write("head", {"schema": SCHEMA, "pid": os.getpid(), **asdict(head), **shard})
    except OSError:
        journal.close()
        path.unlink()
        raise
    return journal


def mend(log_dir: Path) -> None:
    """End each incomplete last line in a run's journals, and append a `torn` line about it."""
    # Removes journals without a complete line: no call was sent. Skips those in use by a process.
    for path in sorted(log_dir.glob(f"{FOLDER}/*/*.jsonl")):
        with path.open("rb+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    continue
            lines = file.read().splitlines(keepends=True)
            if not lines or (len(lines) == 1 and not lines[0].endswith(b"\n")):
                path.unlink()
            elif not lines[-1].endswith(b"\n"):
                file.write(b"\n" + _named_torn(lines[-1], lines[-2]))


def _named_torn(torn: bytes, previous: bytes) -> bytes:
    """Return the `torn` line about an incomplete line; empty if only its newline was missing."""
    if isinstance(_object(torn), dict):
        return b""
    previous_line = _object(previous)
    fields = {"bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()}
    prev = str(previous_line.get("hash", BEGINNING)) if previous_line else BEGINNING
    return _linked({"kind": "torn", "at": _now(), **fields}, prev)[0]


def _linked(fields: Mapping[str, Any], prev: str) -> tuple[bytes, str]:
    # Keys are sorted: those before and after `hash` are encoded once, for the digest and the line.
    line = {**fields, "prev": prev}
    start = canonical({name: line[name] for name in line if name < "hash"})[:-1]
    end = canonical({name: line[name] for name in line if name > "hash"})[1:]
    digest = hashlib.sha256(b"%b,%b" % (start, end)).hexdigest()
    return b'%b,"hash":"%b",%b\n' % (start, digest.encode(), end), digest


def _values(record: CallOutcome | Usage) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def folder_of(log_dir: Path, task: str) -> Path:
    """Return the folder of a task's journals, below a run's log directory."""
    return log_dir / FOLDER / re.sub(r"[^A-Za-z0-9._-]+", "_", task)


def read_lines(path: Path, unreadable: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """Yield a journal's lines, without a last line that was cut short, e.g. by a full disk."""
    # Also omits a complete line that is no JSON object and adds its number to `unreadable`: such a
    # line breaks the hash chain, so an audit detects it (`read_chain`).
    regular_size(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            if (entry := _object(line)) is not None:
                yield entry
            elif unreadable is not None:
                unreadable.append(number)


def read_sample(path: Path, uuid: str) -> Iterator[dict[str, Any]]:
    """Yield a journal's head, price book and one sample's lines; if these have no end, `closed`."""
    # A sample's first lines and its intents have its uuid; later lines have only the call's id.
    # Reading ends after the sample's answer, once each of its calls has ended.
    uuid_bytes, calls, answered, line = uuid.encode(), set[bytes](), False, b""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            match = CALL.search(line)
            call = match[1] if match else b""
            entry = _object(line) if call in calls or uuid_bytes in line or number < FIRST else None
            if entry is None or not (call in calls or _is_about(entry, uuid)):
                continue
            yield entry
            answered |= entry.get("kind") == "answer"
            if entry.get("kind") == "intent":
                calls.add(call)
            elif entry.get("kind") == "outcome":
                calls.discard(call)
            if answered and not calls:
                return
    if line.endswith(b"\n") and (entry := _object(line)) and entry.get("kind") == "closed":
        yield entry


def _is_about(line: Mapping[str, Any], uuid: str) -> bool:
    """Return whether a line is about the sample `uuid`, or about the journal as a whole."""
    sample: Mapping[str, Any] = line.get("sample") or {}
    return line.get("kind") in ("head", "book") or sample.get("uuid") == uuid


FIRST = 2
"""Number of lines at a journal's beginning that can be its head and its price book."""
CALL = re.compile(rb'"call":"([^"]*)"')


def usage_of(line: Mapping[str, Any]) -> Usage | None:
    """Return the token usage in an `outcome` line; None if the line has none."""
    stored = line.get("usage")
    return Usage(**stored) if stored else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


ChainFaultKind = Literal["edited", "inserted", "deleted", "reordered", "truncated"]

HASH = re.compile(rb'"hash":"([0-9a-f]{64})",')
PREV = re.compile(rb'"prev":"([^"]{64})')
TORN = b'"kind":"torn"'


@dataclass(frozen=True, slots=True)
class ChainFault:
    """A place where a journal's hash chain is broken; `line` counts from 1."""

    line: int
    kind: ChainFaultKind
    said: str


class Link(NamedTuple):
    """The digests in a journal line: its own (None if wrong), and that of the line before it."""

    own: str | None
    prev: str | None


@dataclass(frozen=True, slots=True)
class JournalChain:
    """The result of checking a journal's hash chain (each line has the previous one's digest)."""

    lines: int
    """Number of complete lines."""
    last: str
    faults: tuple[ChainFault, ...]


def read_chain(path: Path) -> JournalChain:
    """Return the result of checking a journal's hash chain; OSError if it cannot be read."""
    links: list[Link] = []
    cut: list[ChainFault] = []
    previous = b""
    regular_size(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                link = _link(line[:-1])
                torn = json.loads(line).get("sha256") if link.own and TORN in line else None
                if torn and torn == hashlib.sha256(previous.removesuffix(b"\n")).hexdigest():
                    links.pop()  # the incomplete line that this `torn` line is about
                links.append(link)
                previous = line
            else:
                cut.append(ChainFault(number, "truncated", "it ends in the middle of a line"))
    last_digest = next((link.own for link in reversed(links) if link.own), BEGINNING)
    return JournalChain(len(links), last_digest, (*_faults_of(links), *cut))


def _faults_of(links: Sequence[Link]) -> tuple[ChainFault, ...]:
    # If a line's `prev` is not the digest of the previous line, lines are missing between the two,
    # unless the file has the line with that digest elsewhere: then lines were moved or inserted.
    places = {link.own: index for index, link in enumerate(links) if link.own}
    if _is_shuffled(links):
        index = next(index for index in range(len(links)) if not _follows(links, index))
        there = places.get(links[index].prev or BEGINNING)
        predecessor = "the first line" if there is None else f"line {there + 1}"
        return (ChainFault(index + 1, "reordered", f"it belongs after {predecessor}"),)
    return tuple(_faults(links, places))


def _faults(links: Sequence[Link], places: Mapping[str, int]) -> Iterator[ChainFault]:
    for index, link in enumerate(links):
        if link.own is None:
            yield ChainFault(index + 1, "edited", "it does not match its own digest")
        elif not _follows(links, index) and not (index and links[index - 1].own is None):
            there = -1 if link.prev == BEGINNING else places.get(link.prev or BEGINNING)
            if there is None:
                yield ChainFault(index + 1, "deleted", "the line before it was deleted or replaced")
            elif there < index - 1:
                message = f"it follows line {there + 1}, so lines were inserted between them"
                yield ChainFault(there + 2, "inserted", message)
            else:
                yield ChainFault(index + 1, "reordered", f"it belongs after line {there + 1}")


def _follows(links: Sequence[Link], index: int) -> bool:
    return links[index].prev == (links[index - 1].own if index else BEGINNING)


def _is_shuffled(links: Sequence[Link]) -> bool:
    """Return whether a journal has all lines, each once and unchanged, but in another order."""
    digests = {link.own for link in links}
    prev_digests = {link.prev for link in links}
    complete = None not in digests and len(digests) == len(links) == len(prev_digests)
    one_chain = len(digests - prev_digests) == 1 and prev_digests - digests == {BEGINNING}
    return complete and one_chain and any(not _follows(links, index) for index in range(len(links)))


def _link(line: bytes) -> Link:
    """Return a line's digests; only a line in canonical JSON matches its own digest."""
    hashes, prevs = HASH.findall(line), PREV.findall(line)
    if len(hashes) != 1 or len(prevs) != 1:  # a provider's usage may have such a key too
        return _slow_link(line)
    matches = hashlib.sha256(HASH.sub(b"", line)).hexdigest().encode() == hashes[0]
    return Link(hashes[0].decode() if matches else None, prevs[0].decode(errors="replace"))


def _slow_link(line: bytes) -> Link:
    try:
        value: object = parse_json(line)
    except ValueError:
        return Link(None, None)
    if not isinstance(value, dict):
        return Link(None, None)
    row = cast(dict[str, object], value)
    digest, prev = row.pop("hash", None), row.get("prev")
    try:
        same = canonical({**row, "hash": digest}) == line
        matches = same and hashlib.sha256(canonical(row)).hexdigest() == digest
    except ValueError:  # a lone surrogate, which podium never writes
        return Link(None, str(prev))
    return Link(digest if matches and isinstance(digest, str) else None, str(prev))
