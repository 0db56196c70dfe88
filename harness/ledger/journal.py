"""The journal: what is written down before and after every call, so that kill -9 loses no call.

One file per process and task below `LOG_DIR/ledger/`, one JSON object per line, appended and handed
to the system before the call goes out. A call with an `intent` and no `outcome` was in flight when
its process died: nobody knows whether it was billed. Lines:

    head     who writes: schema, task, suite, system, label, book, process; of a shard, its lease
    book     the price book in full, where no log embeds it: of what is served
    request  a server has taken a request: the model as it was asked for, the dialect, whose key
    intent   a call is about to be dispatched
    retry    an HTTP attempt of it has failed; another follows after a wait
    again    that other attempt is about to be dispatched: without it, none followed
    outcome  the call has ended: usage, or what went wrong
    answer   what a sample was answered with, as a digest, and the plan behind it; of a request
             also its HTTP status, what it was refused for, its plan without texts, and how long
             it took: a request without such a line was in flight when its process died
    grade    the verdict on it
    totals   what Inspect's own hooks counted, per model: an independent sum
    torn     the line before it is part of one that a machine that went down had not written
    closed   the process has ended in good order: no line behind this one is missing

Each line names the digest of the one before it. That shows edits, insertions, deletions and
reorderings; that the end was cut off, or all of it written anew, only a manifest shows.
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
"""Has no `again` lines: every `retry` is taken for an attempt that was followed by another."""
FOLDER = "ledger"
"""Where a run's journals lie, below its log directory."""
SERVING = "serve_"
"""Begins the folders of systems that were served."""
SERVED = f"**/{FOLDER}/{SERVING}*/*.jsonl"
"""Where the journals of a server lie, below any directory."""
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
    """False for suites whose questions may not be published."""


@dataclass(frozen=True, slots=True)
class SampleRef:
    """The running sample that a call is made for."""

    question: str
    epoch: int
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """How a call has ended."""

    event: str | None
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
    from_store: bool = False
    shared_from: str | None = None
    """Id of the call that bought the reply for another system of the run."""
    latency_s: float | None = None
    output_sha256: str | None = None
    """Of the completion alone: all that older journals have of a reply."""
    sent_sha256: str | None = None
    """Of the request as the log has it: an adapter may have put turns together, or added one."""
    reply_sha256: str | None = None
    """Of the whole reply: its text, its reasoning and its calls of tools."""
    raw_usage: Mapping[str, Any] | None = None
    usd: str | None = None
    """At the run's book, in plain notation, for the audit to recompute; None when unknown."""
    usd_provider: str | None = None
    """What the provider itself says that it cost; None if it does not say."""

    @property
    def unbelieved(self) -> bool:
        """Whether a reply came with counts of tokens that cannot be."""
        return self.usage is None and self.error is None and self.raw_usage is not None


CAME = ("usage", "raw_usage", "usd_provider", "served_model", "stop", "output_sha256")
"""What a `retry` line has of a reply that was broken off; a line of any other failure lacks it."""


@dataclass(slots=True)
class Journal:
    """An open file; safe to write from several threads. Made by `open_journal`."""

    path: Path
    _handle: int
    _last: str = BEGINNING
    _whole: int = 0
    _torn: bool = False
    """Whether part of a line lies behind them."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def intent(self, asked: Mapping[str, Any]) -> str:
        """Write a call down before it is dispatched; return the id that its other lines name."""
        call = secrets.token_hex(8)
        self.write("intent", {"call": call, **asked})
        return call

    def retry(
        self,
        call: str,
        attempt: int,
        error: str | None,
        status: int | None,
        came: CallOutcome | None = None,
    ) -> None:
        """Write down that an HTTP attempt (1 for the first) has failed and another is to follow."""
        # `came` is the part of a reply that came before the failure: it may have been billed.
        failed = {"attempt": attempt, "error": error, "http_status": status}
        part = {name: getattr(came, name) for name in CAME} if came else {}
        if came and came.usage:
            part["usage"] = _values(came.usage)
        self.write("retry", {"call": call, **failed, **part})

    def again(self, call: str, after_s: float | None = None) -> None:
        """Write down that the attempt after a failed one is about to be dispatched."""
        # `after_s` is how long after the first, by a steady clock.
        self.write("again", {"call": call, "after_s": after_s})

    def outcome(self, call: str, outcome: CallOutcome) -> None:
        """Write down how a call has ended."""
        # `asdict` would copy all that a provider counted.
        usage = outcome.usage and _values(outcome.usage)
        self.write("outcome", {"call": call, **_values(outcome), "usage": usage})

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append one line in one system call, so that kill -9 leaves whole lines; OSError else."""
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
        self._torn, left = True, line
        try:
            while left:  # a disk that is nearly full takes a part, and refuses the rest
                left = left[os.write(self._handle, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, self._whole)
                self._torn = False
            raise
        self._torn, self._whole = False, self._whole + len(line)

    def sync(self) -> None:
        """Let what is written outlast a machine that goes down."""
        os.fsync(self._handle)

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
    with suppress(OSError):  # not every file system has locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # so that nobody mends it meanwhile
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
    """End lines that processes left torn in a run's journals, and name each in a line behind."""
    # A journal without a whole line is removed: no call goes out before there is one. One that a
    # process still writes is left alone.
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


def _named_torn(part: bytes, before: bytes) -> bytes:
    """Return the line that names a torn one; nothing where it lacked but its end."""
    if isinstance(_object(part), dict):
        return b""
    last = _object(before)
    fields = {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
    prev = str(last.get("hash", BEGINNING)) if last else BEGINNING
    return _linked({"kind": "torn", "at": _now(), **fields}, prev)[0]


def _linked(fields: Mapping[str, Any], prev: str) -> tuple[bytes, str]:
    # Both halves of a sorted line are encoded once; its own digest stands between them.
    line = {**fields, "prev": prev}
    before = canonical({name: line[name] for name in line if name < "hash"})[:-1]
    after = canonical({name: line[name] for name in line if name > "hash"})[1:]
    digest = hashlib.sha256(b"%b,%b" % (before, after)).hexdigest()
    return b'%b,"hash":"%b",%b\n' % (before, digest.encode(), after), digest


def _values(record: CallOutcome | Usage) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def folder_of(log_dir: Path, task: str) -> Path:
    """Return where the journals of a task lie."""
    return log_dir / FOLDER / re.sub(r"[^A-Za-z0-9._-]+", "_", task)


def read_lines(path: Path, unreadable: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """Yield a journal's lines; a last line that was cut short, by a full disk say, is left out."""
    # A whole line that is no JSON object is left out too, and its number goes to `unreadable`: it
    # breaks the chain (harness/ledger/journal.py), which is how an audit knows of it.
    regular_size(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            if (found := _object(line)) is not None:
                yield found
            elif unreadable is not None:
                unreadable.append(number)


def read_sample(path: Path, uuid: str) -> Iterator[dict[str, Any]]:
    """Yield a journal's first lines, those of one sample, and its last one; no other is parsed."""
    # What a sample begins with and its calls name the sample; what follows names only the call. All
    # is read once its answer is there and each of its calls has ended.
    wanted, calls, answered, line = uuid.encode(), set[bytes](), False, b""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            known = CALL.search(line)
            call = known[1] if known else b""
            found = _object(line) if call in calls or wanted in line or number < FIRST else None
            if found is None or not (call in calls or _is_about(found, uuid)):
                continue
            yield found
            answered |= found.get("kind") == "answer"
            if found.get("kind") == "intent":
                calls.add(call)
            elif found.get("kind") == "outcome":
                calls.discard(call)
            if answered and not calls:
                return
    if line.endswith(b"\n") and (found := _object(line)) and found.get("kind") == "closed":
        yield found


def _is_about(line: Mapping[str, Any], uuid: str) -> bool:
    """Say whether a line is of a sample, or of all of its journal."""
    sample: Mapping[str, Any] = line.get("sample") or {}
    return line.get("kind") in ("head", "book") or sample.get("uuid") == uuid


FIRST = 2
"""Lines that say who writes and at which prices."""
CALL = re.compile(rb'"call":"([^"]*)"')


def usage_of(line: Mapping[str, Any]) -> Usage | None:
    """Return the usage of an outcome line."""
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
    """Where a chain does not hold; `line` counts from 1."""

    line: int
    kind: ChainFaultKind
    said: str


class Link(NamedTuple):
    """A line's own digest and the one it names; None where the line does not match its digest."""

    own: str | None
    prev: str | None


@dataclass(frozen=True, slots=True)
class JournalChain:
    """What a journal's chain says."""

    lines: int
    """Whole lines; one that was cut short is none."""
    last: str
    faults: tuple[ChainFault, ...]


def read_chain(path: Path) -> JournalChain:
    """Follow a journal's chain from its first line to its last; OSError as reading does."""
    links: list[Link] = []
    cut: list[ChainFault] = []
    before = b""
    regular_size(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                link = _link(line[:-1])
                torn = json.loads(line).get("sha256") if link.own and TORN in line else None
                if torn and torn == hashlib.sha256(before.removesuffix(b"\n")).hexdigest():
                    links.pop()  # the line before, which this one names (`mend`)
                links.append(link)
                before = line
            else:
                cut.append(ChainFault(number, "truncated", "it ends in the middle of a line"))
    last = next((link.own for link in reversed(links) if link.own), BEGINNING)
    return JournalChain(len(links), last, (*_faults_of(links), *cut))


def _faults_of(links: Sequence[Link]) -> tuple[ChainFault, ...]:
    # A line that names another one than its predecessor is where lines are missing, unless both are
    # here in another order, or the lines between them were put in.
    places = {link.own: at for at, link in enumerate(links) if link.own}
    if _is_shuffled(links):
        at = next(at for at in range(len(links)) if not _follows(links, at))
        there = places.get(links[at].prev or BEGINNING)
        after = "the first line" if there is None else f"line {there + 1}"
        return (ChainFault(at + 1, "reordered", f"it belongs behind {after}"),)
    return tuple(_faults(links, places))


def _faults(links: Sequence[Link], places: Mapping[str, int]) -> Iterator[ChainFault]:
    for at, link in enumerate(links):
        if link.own is None:
            yield ChainFault(at + 1, "edited", "it does not match its own digest")
        elif not _follows(links, at) and not (at and links[at - 1].own is None):
            there = -1 if link.prev == BEGINNING else places.get(link.prev or BEGINNING)
            if there is None:
                yield ChainFault(at + 1, "deleted", "the line it follows is gone or replaced")
            elif there < at - 1:
                said = f"it follows line {there + 1}, so lines between them were put in"
                yield ChainFault(there + 2, "inserted", said)
            else:
                yield ChainFault(at + 1, "reordered", f"it belongs behind line {there + 1}")


def _follows(links: Sequence[Link], at: int) -> bool:
    return links[at].prev == (links[at - 1].own if at else BEGINNING)


def _is_shuffled(links: Sequence[Link]) -> bool:
    """Say whether all lines are here, each once and unchanged, and not in their order."""
    own = {link.own for link in links}
    named = {link.prev for link in links}
    whole = None not in own and len(own) == len(links) == len(named)
    one_chain = len(own - named) == 1 and named - own == {BEGINNING}
    return whole and one_chain and any(not _follows(links, at) for at in range(len(links)))


def _link(line: bytes) -> Link:
    """Return a line's digests. Only canonical JSON matches, so a digest is one of exact bytes."""
    hashes, prevs = HASH.findall(line), PREV.findall(line)
    if len(hashes) != 1 or len(prevs) != 1:  # a provider's usage may have such a key too
        return _slow_link(line)
    matches = hashlib.sha256(HASH.sub(b"", line)).hexdigest().encode() == hashes[0]
    return Link(hashes[0].decode() if matches else None, prevs[0].decode(errors="replace"))


def _slow_link(line: bytes) -> Link:
    try:
        found: object = parse_json(line)
    except ValueError:
        return Link(None, None)
    if not isinstance(found, dict):
        return Link(None, None)
    row = cast(dict[str, object], found)
    own, prev = row.pop("hash", None), row.get("prev")
    try:
        same = canonical({**row, "hash": own}) == line
        matches = same and hashlib.sha256(canonical(row)).hexdigest() == own
    except ValueError:  # half a character, which no line of ours holds
        return Link(None, str(prev))
    return Link(own if matches and isinstance(own, str) else None, str(prev))
