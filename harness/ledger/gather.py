"""Everything that the files of one sitting say, before it is joined: logs and journals.

What one row says is harness/ledger/merge.py; which files belong together, sitting_files.py.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UserError
from harness.ledger.chain import Chain, read_chain
from harness.ledger.journal import AttemptLines, read_lines
from harness.ledger.logged import LogRecord, read_log
from harness.ledger.raw_log import UNFOUNDED, Json
from harness.ledger.sitting_files import Files
from harness.parsing import first_line


@dataclass(slots=True)
class CallRecord:
    """One call of a journal: its intent, its failed HTTP attempts and how it ended."""

    journal: str
    intent: Json
    tries: AttemptLines = field(default_factory=AttemptLines)
    outcome: Json | None = None

    @property
    def retries(self) -> list[Json]:
        """Its failed HTTP attempts that another was to follow."""
        return self.tries.retries


@dataclass(slots=True)
class JournalRecord:
    """One journal, apart from its calls."""

    path: Path
    head: Json
    totals: list[Json] = field(default_factory=list[Json])
    """What Inspect's own hooks counted."""
    torn: int = 0
    """Lines of which a machine that went down, say, has left a part."""
    calls: int = 0
    """Intents in it."""
    closed: bool = False
    """Whether its process ended in good order: the last line says so, in older ones the totals."""

    @property
    def name(self) -> str:
        """File name."""
        return self.path.name

    @property
    def chain(self) -> Chain:
        """Whether its digests hold: read when it is asked for, since no row needs it."""
        return read_chain(self.path)


@dataclass(slots=True)
class Gathered:
    """Everything that the files of a sitting say."""

    files: Files
    logs: list[LogRecord]
    """Newest first."""
    journals: list[JournalRecord]
    calls: dict[str, CallRecord]
    """By id, in the order of the journals."""
    answer_lines: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    """What journals say of answers, by the sample's uuid."""
    grade_lines: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    twice: list[str] = field(default_factory=list[str])
    """Sentences about calls that are written down twice, or end without having begun."""


def gather(files: Files, *, answers: bool = False, digests: bool = False) -> Gathered:
    """Read the files of one sitting, with each answer, and the digests of texts, where asked for.

    UserError for a damaged file.
    """
    found = Gathered(files, [], [], {})
    for path in files.journals:
        _read_journal(path, found)
    seen: set[tuple[str, int]] = set()
    for path in files.logs:
        found.logs.append(read_log(path, seen, answers=answers, digests=digests))
    return found


@contextmanager
def naming_sitting(files: Files) -> Generator[None]:
    """Turn what logs and journals of one sitting make fail into a UserError that names them."""
    try:
        yield
    except UNFOUNDED as error:
        places = {path.parent for path in (*files.logs, *files.journals)}
        where = " or ".join(map(str, sorted(places)))
        raise UserError(
            f"A log or journal of {files.task!r} in {where} says what no run writes "
            f"({type(error).__name__}: {first_line(error)}); restore it."
        ) from error


def _read_journal(path: Path, found: Gathered) -> None:
    """Keep a journal's lines; one that is no JSON breaks the chain, which says so."""
    journal = JournalRecord(path, {})
    found.journals.append(journal)
    for entry in read_lines(path):
        _keep(journal, entry, found)


def _keep(journal: JournalRecord, entry: Json, found: Gathered) -> None:
    kind = entry.get("kind")
    if kind == "head":
        journal.head = entry
    elif kind == "totals":
        journal.totals.append(entry)
        journal.closed = True
    elif kind == "torn":
        journal.torn += 1
    elif kind == "closed":
        journal.closed = True
    elif kind in ("answer", "grade"):
        made = found.answer_lines if kind == "answer" else found.grade_lines
        sample: Json = entry.get("sample") or {}
        made.setdefault(str(sample.get("uuid", "")), []).append(entry)
    else:
        journal.calls += kind == "intent"
        _keep_call(journal, entry, found)


def _keep_call(journal: JournalRecord, entry: Json, found: Gathered) -> None:
    kind, call = str(entry.get("kind", "")), str(entry.get("call", ""))
    known = found.calls.get(call)
    if kind == "intent":
        if known:
            found.twice.append(f"call {call} has two intents")
        found.calls[call] = CallRecord(journal.name, entry)
    elif known is None:
        found.twice.append(f"call {call} has a line of kind {kind!r} and no intent")
    elif kind in ("retry", "again"):
        known.tries.add(entry, journal.head.get("schema"))
    elif known.outcome is not None:
        found.twice.append(f"call {call} has two outcomes")
    else:
        known.outcome = entry
