"""Requests to `podium serve`, read from journals alone: each with its calls and its outcome."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

from podium.harness.ledger.answers import AnswerRecord, LogHeader
from podium.harness.ledger.call import Call
from podium.harness.ledger.join import merged
from podium.harness.ledger.journal import SERVED, SERVING, read_sample
from podium.harness.ledger.logs import Json
from podium.harness.ledger.runs import (
    Gathered,
    JournalRecord,
    RunFiles,
    below,
    gather,
    keep_line,
    naming_system_run,
)
from podium.harness.prices import Book

SUITE, PURPOSE = "served", "serving"
"""Placeholders: the suite and purpose of served requests, which belong to no suite."""
TRACE = re.compile(r"req-(\d{8})-[0-9a-f]{16}")
"""Pattern of a request's id: the UTC date on which the request began, and a random part."""
ANSWERED, GONE = 200, 499
"""HTTP statuses of a request that got its answer, and of one whose client disconnected."""
Ending = Literal["answered", "refused", "cut off", "in flight"]


@dataclass(frozen=True, kw_only=True)
class ServedQuery:
    """One request to `podium serve`; a field is None if the journal does not have it."""

    journal: JournalRecord
    trace: str
    system: str
    model: str
    """The requested name: a system, an alias or a dated id."""
    resolved: str | None
    dialect: str
    key: str | None
    """The name of the API key whose budget paid for the request."""
    at: str
    status: int | None
    """HTTP status; None if the request is in flight, or was when its process died."""
    error: str | None
    """The kind of error if the request was refused."""
    depth: int | None
    steps: int | None
    stopped: str | None
    plan: str | None
    """The plan as JSON, without texts."""
    latency_s: float | None
    input_sha256: str | None
    answer_sha256: str | None
    shape_sha256: str | None
    rows: Sequence[Call]
    sent: Mapping[str, str | None]
    """Call id -> digest of the request as it was sent (Inspect's adapter may have changed it)."""

    @property
    def day(self) -> date:
        """The UTC date on which the request began."""
        return date.fromisoformat(self.at[:10])

    @property
    def ending(self) -> Ending:
        """How the request ended, derived from its HTTP status."""
        if self.status is None:
            return "in flight"
        if self.status == GONE:
            return "cut off"
        return "answered" if self.status == ANSWERED else "refused"

    @property
    def facts(self) -> Json:
        """The requested model, dialect and key, and the request's end and date, as plain values."""
        fields = {name: getattr(self, name) for name in ("ending", *ASKED, "status", "error")}
        return {**fields, "day": str(self.day)}

    @property
    def answer(self) -> AnswerRecord:
        """An answer record without a grade, made from the journal: served requests have no log."""
        head = self.journal.head
        fields = {name: str(head.get(name, "")) for name in ("task", "suite", "system", "label")}
        none = dict.fromkeys(("score", "answer", "target", "plan_sha256", "critical_path_s"))
        return AnswerRecord(
            header=LogHeader(**fields, shown=bool(head.get("shown", True)), purpose=PURPOSE),
            question=self.trace,
            epoch=1,
            sample=self.trace,
            reason=f"served, not graded{self._why}",
            parsed=True,
            **none,
            **{name: getattr(self, name) for name in (*SHAPE, "latency_s")},
        )

    @property
    def _why(self) -> str:
        if self.ending == "answered":
            return ""
        if self.ending == "in flight":
            return " (in flight, or its process was killed)"
        return f" ({self.ending} with status {self.status}: {self.error or 'no reason'})"


ASKED = ("model", "resolved", "dialect", "key")
SHAPE = ("depth", "steps", "stopped", "plan")
ENDED = ("status", "error", *SHAPE, "latency_s", "answer_sha256", "shape_sha256")


def queries_of(ledger: Gathered, rows: Iterable[Call]) -> Iterator[ServedQuery]:
    """Yield the requests to a served system, journal by journal, with the rows of their calls."""
    rows_by_sample: dict[str, list[Call]] = {}
    for row in rows:
        rows_by_sample.setdefault(row.sample, []).append(row)
    for journal in ledger.journals:
        for uuid, request in journal.requests.items():
            answer: Json = ledger.answer_lines.get(uuid, [{}])[-1]
            fields: dict[str, Any] = {
                **{name: request.get(name) for name in (*ASKED, "at", "input_sha256")},
                **{name: answer.get(name) for name in ENDED},
            }
            yield ServedQuery(
                journal=journal,
                trace=str(request["sample"]["question"]),
                system=str(journal.head.get("system", "")),
                rows=rows_by_sample.get(uuid, ()),
                sent={
                    row.call: (ledger.calls[row.call].outcome or {}).get("sent_sha256")
                    for row in rows_by_sample.get(uuid, ())
                },
                **fields,
            )


def rows_from(lines: Iterable[Json], head: Json, book: Book | None = None) -> list[Call]:
    """Return the call rows of journal lines in memory; the same lines in a file give equal rows."""
    journal = JournalRecord(Path(), head)
    ledger = Gathered(RunFiles("", str(head.get("task", "")), (), ()), journals=[journal])
    for line in lines:
        keep_line(journal, line, ledger)
    return merged(ledger, book and {book.sha256: book}).rows


def served_below(log_dir: Path) -> list[RunFiles]:
    """Return the journals of each served system below a directory, sorted; empty if none."""
    places: dict[Path, list[Path]] = {}
    for path in sorted(log_dir.glob(SERVED)):
        places.setdefault(path.parent, []).append(path)
    return [
        RunFiles(below(place.parents[1], log_dir), place.name, (), tuple(paths))
        for place, paths in places.items()
    ]


def is_served(files: RunFiles) -> bool:
    """Return whether `podium serve` wrote the files of a system run."""
    return not files.logs and files.task.startswith(SERVING)


def served_requests(log_dir: Path) -> Iterator[ServedQuery]:
    """Yield every request to `podium serve` in the journals below a directory."""
    for files in served_below(log_dir):
        with naming_system_run(files):
            joined = merged(gather(files))
        yield from queries_of(joined, joined.rows)


def read_trace(log_dir: Path, trace: str) -> ServedQuery | None:
    """Return the request with this id, parsing only its own lines; None if no journal has it."""
    for files in served_below(log_dir):
        if ledger := gather_trace(files, trace):
            return next(queries_of(ledger, merged(ledger).rows))
    return None


def gather_trace(files: RunFiles, trace: str) -> Gathered | None:
    """Return what a served system's journals have about one request; None if they have nothing."""
    for path in _of_its_day(files.journals, trace):
        journal = JournalRecord(path, {})
        ledger = Gathered(files, journals=[journal])
        with naming_system_run(files):
            for line in read_sample(path, trace):
                keep_line(journal, line, ledger)
        if trace in journal.requests:
            return ledger
    return None


def _of_its_day(paths: Iterable[Path], trace: str) -> Iterator[Path]:
    """Yield the journals that may contain a request: created within a day of the request's date."""
    if not (match := TRACE.fullmatch(trace)):
        return
    try:
        day = date.fromisoformat(match[1])
        days = {f"{day + timedelta(days=by):%Y%m%d}" for by in (-1, 0, 1)}
    except (ValueError, OverflowError):
        return
    yield from (path for path in paths if path.name[:8] in days)


def traces_below(log_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield the id and the system of every served request below a directory."""
    for query in served_requests(log_dir):
        yield query.trace, query.system


def as_it_was_asked(query: ServedQuery) -> str:
    """Return a line on a request: the requested model, the API key's name, and how it ended."""
    key = f", key {query.key}" if query.key else ""
    status = "" if query.status is None else f" with status {query.status}"
    error = f": {query.error}" if query.error else ""
    return f"asked as {query.model} ({query.dialect}{key}); {query.ending}{status}{error}"
