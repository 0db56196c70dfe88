"""The evidence of one run, and what a check of it says: faults, weaknesses, verdicts.

Plain records without paths and without the time of the audit: the same files give the same bytes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import add, sub
from typing import Literal, cast

from harness.ledger.call import Call
from harness.ledger.join import LoggedEvent, Merged
from harness.ledger.logs import Json
from harness.ledger.runs import LogRecord, RunFacts, SampleRecord
from harness.ledger.totals import CallSum, add_up, sums_by

Status = Literal["pass", "weak", "fail", "not applicable"]
"""`weak`: nothing contradicts it, and a strict audit fails on what the record lacks."""


@dataclass(frozen=True, slots=True, order=True)
class AuditFault:
    """One place where an invariant does not hold."""

    invariant: str
    task: str
    where: str
    """`call ID`, `sample QUESTION epoch N`, `journal NAME` or `log NAME`."""
    said: str


@dataclass(slots=True)
class InvariantCheck:
    """What one invariant found in one system run."""

    faults: list[AuditFault] = field(default_factory=list[AuditFault])
    skipped: str = ""
    """Why nothing could be checked here; empty when it was."""
    matters: bool = False
    """True when `skipped` is a gap in the record, which a strict audit does not accept."""
    weak: Counter[str] = field(default_factory=Counter[str])
    """What holds and is less than a reviewer may ask for, with how often; strict: a failure."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """What a reader should know and holds against nobody, with how often."""

    def add(self, other: "InvariantCheck") -> None:
        """Take what another check of the same invariant found."""
        self.faults += other.faults
        self.weak += other.weak
        self.notes += other.notes


@dataclass(frozen=True, slots=True)
class InvariantVerdict:
    """One invariant over all system runs."""

    invariant: str
    title: str
    meaning: str
    status: Status
    checked: int
    reasons: tuple[tuple[str, int], ...]
    """Why it was not checked, what is weak, what else to know; with how many runs or rows."""
    faults: tuple[AuditFault, ...]


@dataclass(slots=True)
class Findings:
    """What is known of one invariant while system runs are added up."""

    checked: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])
    gaps: Counter[str] = field(default_factory=Counter[str])
    """Skipped for a gap in the record."""
    weak: Counter[str] = field(default_factory=Counter[str])
    notes: Counter[str] = field(default_factory=Counter[str])
    faults: list[AuditFault] = field(default_factory=list[AuditFault])

    def add(self, one: InvariantCheck) -> None:
        """Add one system run."""
        if one.skipped:
            (self.gaps if one.matters else self.skipped)[one.skipped] += 1
        else:
            self.checked += 1
        self.weak += one.weak
        self.notes += one.notes
        self.faults += one.faults

    def join(self, other: "Findings") -> None:
        """Add what another process found."""
        for name in ("checked", "skipped", "gaps", "weak", "notes", "faults"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def status(self, *, strict: bool) -> Status:
        """Return the verdict; a strict one takes gaps in the record for failures."""
        if self.faults or (strict and (self.gaps or self.weak)):
            return "fail"
        if self.gaps or self.weak:
            return "weak"
        return "pass" if self.checked else "not applicable"

    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Return why it was not checked everywhere, and what is weak."""
        return tuple(sorted((self.skipped + self.gaps + self.weak + self.notes).items()))


Tokens = tuple[int, int, int, int, int]
"""Input, output, cache reads, cache writes, reasoning: what Inspect counts too."""
NO_TOKENS: Tokens = (0, 0, 0, 0, 0)
NAMES = ("input", "output", "cache read", "cache write", "reasoning")
KEYS = (
    "input_tokens",
    "output_tokens",
    "input_tokens_cache_read",
    "input_tokens_cache_write",
    "reasoning_tokens",
)


@dataclass
class Evidence:
    """One system run, joined. Not frozen: its tables are made when they are first asked for."""

    merged: Merged
    name: str

    @cached_property
    def rows(self) -> list[Call]:
        """All rows, in the ledger's order."""
        return self.merged.rows

    @cached_property
    def logs(self) -> list[LogRecord]:
        """Newest first."""
        return self.merged.gathered.logs

    @cached_property
    def facts(self) -> RunFacts | None:
        """What the newest log says about the run; None where podium did not write it."""
        return self.logs[0].facts if self.logs else None

    @property
    def has_journal(self) -> bool:
        """Say whether anything was written down before the calls."""
        return bool(self.merged.gathered.journals)

    def why_no_journal(self) -> str:
        """Return why no journal is here, as far as the newest log tells."""
        if self.facts is None:
            return "no journal: podium did not run it"
        if self.facts.redacted:
            return "no journal: redacted copies are shared without"
        if self.facts.journal is not None:
            return "no journal: the `ledger/` folder belongs to the logs and is not here"
        return "no journal: the run is older than journals"

    @cached_property
    def counted(self) -> list[Call]:
        """All rows with the tokens that Inspect counted, which its totals have."""
        # They are the ledger's, but for usage that cannot be: the ledger takes it for unknown.
        return [self._as_counted(row) for row in self.rows]

    def _as_counted(self, row: Call) -> Call:
        seen = self.seen.get(row.event) if row.event else None
        usage = seen.event.counted if seen and seen.event.usage is None else None
        if usage is None or row.usage is not None:
            return row
        return replace(
            row,
            input_uncached=usage.input,
            output=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            reasoning=usage.reasoning,
        )

    @cached_property
    def by_event(self) -> Mapping[str, Call]:
        """Rows by the uuid of their event, with the tokens that Inspect counted."""
        return {row.event: row for row in self.counted if row.event}

    @cached_property
    def seen(self) -> Mapping[str, LoggedEvent]:
        """Events by uuid."""
        return self.merged.seen

    @cached_property
    def newest(self) -> Mapping[tuple[str, int], SampleRecord]:
        """The newest sample of every (question, epoch) pair."""
        samples = (sample for log in self.logs for sample in log.samples)
        return {(one.question, one.epoch): one for one in samples if one.newest}

    @cached_property
    def first_log(self) -> Mapping[str, LogRecord]:
        """The oldest log that has an event, by the event's uuid: later ones carry it over."""
        return {
            event.id: log for log in self.logs for sample in log.samples for event in sample.events
        }

    @cached_property
    def written_down(self) -> frozenset[str]:
        """The uuids of samples whose journal is recent enough to have answer and verdict too."""
        calls = self.merged.gathered.calls.values()
        recent = (one.intent for one in calls if "reply_sha256" in (one.outcome or {}))
        samples: Iterable[Json] = (intent["sample"] for intent in recent if intent.get("sample"))
        return frozenset(str(one.get("uuid", "")) for one in samples)

    @cached_property
    def same_logs(self) -> Mapping[tuple[str, str], list[LogRecord]]:
        """Logs by Inspect's id of their run and by when they were written: each is one file."""
        # Of a run that was killed Inspect recovers what it can into another file.
        found: dict[tuple[str, str], list[LogRecord]] = defaultdict(list)
        for log in self.logs:
            if log.eval_id and log.status != "started":
                found[log.eval_id, log.created].append(log)
        return found

    @cached_property
    def started(self) -> str:
        """When the first journal began; empty without one."""
        return min(
            (str(one.head.get("at", "")) for one in self.merged.gathered.journals), default=""
        )


def tokens_of(row: Call) -> Tokens:
    """Return a row's tokens; all 0 for what nobody counted, as in Inspect's totals."""
    return sum_tokens(add_up([row]))


def sum_tokens(found: CallSum) -> Tokens:
    """Return the tokens that are known of a sum."""
    return (found.input, found.output, found.cache_read, found.cache_write, found.reasoning)


def told(usage: Json | None) -> Tokens:
    """Return the tokens of one of Inspect's totals."""
    if not usage:
        return NO_TOKENS
    return cast(Tokens, tuple(int(usage.get(key) or 0) for key in KEYS))


def plus(left: Tokens, right: Tokens) -> Tokens:
    """Add tokens, kind by kind."""
    return cast(Tokens, tuple(map(add, left, right)))


def minus(left: Tokens, right: Tokens) -> Tokens:
    """Subtract tokens, kind by kind."""
    return cast(Tokens, tuple(map(sub, left, right)))


def spent(rows: Iterable[Call]) -> dict[str, Tokens]:
    """Return tokens by model of what providers counted: reads from a local cache are not spent."""
    return _by((row for row in rows if row.cache != "read"), lambda row: row.model)


def spent_by_role(rows: Iterable[Call]) -> dict[str, Tokens]:
    """Return the same by role; a call without a role is in no such total of Inspect's."""
    named = (row for row in rows if row.cache != "read" and row.role != row.model)
    return _by(named, lambda row: row.role)


def _by(rows: Iterable[Call], name: Callable[[Call], str]) -> dict[str, Tokens]:
    found = ((one, sum_tokens(tokens)) for one, tokens in sums_by(rows, name).items())
    return {one: tokens for one, tokens in found if tokens != NO_TOKENS}


def said_tokens(tokens: Tokens) -> str:
    """Return tokens in words, without the kinds of which there are none."""
    parts = [f"{count:+,} {name}" for count, name in zip(tokens, NAMES, strict=True) if count]
    return ", ".join(parts) or "nothing"
