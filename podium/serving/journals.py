"""The journals of served requests (JSON lines): one file per system, UTC day and server process."""

import json
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from podium.harness.ledger.journal import Head, Journal
from podium.harness.ledger.kept_texts import texts_path
from podium.harness.ledger.recorder import CallInFlight, TaskJournal, call_in_flight
from podium.harness.prices import Book
from podium.harness.text import make_storable

OWNER_ONLY = 0o600


class RequestLines(Journal):
    """The journal of one request; it writes to a shared file and keeps its lines in memory."""

    def __init__(self, shared: Journal) -> None:
        """Write to `shared`, the journal of all requests to one system on one day."""
        self.shared, self.path = shared, shared.path
        self.lines: list[dict[str, Any]] = []
        self.calls: dict[str, CallInFlight] = {}
        """Call id -> the request to the worker, and the worker's reply once it has arrived."""

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append one line to the journal and keep it in memory; OSError if it cannot be written."""
        self.shared.write(kind, fields)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.lines.append({"kind": kind, "at": now, **fields})
        call = call_in_flight()
        if kind == "intent" and call is not None:
            self.calls[str(fields["call"])] = call

    def close(self) -> None:
        """Leave the shared journal open, since other requests write to it."""


@dataclass(slots=True)
class RequestJournal(TaskJournal):
    """A system's journal, through which one request writes its lines."""

    lines: RequestLines | None = None

    def journal(self) -> RequestLines:
        """Return the journal of this request alone."""
        assert self.lines is not None, "made by DailyJournals"
        return self.lines


@dataclass(slots=True)
class _Day:
    journal: TaskJournal
    users: int = 0


@dataclass(slots=True)
class DailyJournals:
    """The open journals of all systems; each system gets a new file on each UTC day."""

    log_dir: Path
    heads: Mapping[str, Head]
    """System -> the metadata with which its journals begin."""
    book: Book
    today: Callable[[], date]
    _open: dict[tuple[str, date], _Day] = field(default_factory=dict[tuple[str, date], _Day])

    @contextmanager
    def request(self, system: str) -> Generator[RequestJournal]:
        """Open the journal for one request to `system`; OSError if it cannot be written."""
        key, head = (system, self.today()), self.heads[system]
        day = self._open.get(key) or self._begun(key, TaskJournal(self.log_dir, head))
        day.users += 1
        try:
            yield RequestJournal(self.log_dir, head, lines=RequestLines(day.journal.journal()))
        finally:
            day.users -= 1
            self._close_past()

    def _begun(self, key: tuple[str, date], journal: TaskJournal) -> _Day:
        """Begin a day's journal and write the prices to it, since there is no Inspect log."""
        journal.journal().write("book", {"prices": self.book.as_json()})
        return self._open.setdefault(key, _Day(journal))

    def _close_past(self) -> None:
        """Close the journals of earlier days that no request still uses."""
        now = self.today()
        for key in [key for key, day in self._open.items() if key[1] < now and not day.users]:
            self._open.pop(key).journal.close()

    def close(self) -> None:
        """Close all open journals."""
        for day in self._open.values():
            day.journal.close()
        self._open.clear()


def keep_texts(lines: RequestLines, trace: str, texts: Mapping[str, Any]) -> None:
    """Append a request's texts to a file that only its owner can read; OSError if that fails."""
    path = texts_path(lines.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"query": trace, **texts, "calls": [*_calls(lines.calls.items())]}
    text = json.dumps(make_storable(row), ensure_ascii=False)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ONLY)
    with os.fdopen(handle, "ab") as file:
        file.write(text.encode() + b"\n")


def _calls(calls: Iterable[tuple[str, CallInFlight]]) -> Iterable[dict[str, Any]]:
    for call, sent in calls:
        prompt = [[turn.role, turn.text] for turn in sent.request.messages]
        reply = sent.output.completion if sent.output and not sent.output.empty else None
        yield {"call": call, "prompt": prompt, "reply": reply}
