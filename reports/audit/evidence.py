"""The evidence of one run, and the results of its checks: faults, weaknesses, verdicts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import sub
from typing import Literal, cast

from podium.harness.ledger.call import Call
from podium.harness.ledger.hooks import FIELDS
from podium.harness.ledger.join import Merged
from podium.harness.ledger.logs import Json
from podium.harness.ledger.runs import LogRecord, RunFacts, SampleRecord
from podium.harness.ledger.served import ServedQuery, is_served, queries_of
from podium.harness.ledger.totals import CallSum, sums_by

Faults = Iterator[tuple[str, str]]
"""Place and text of each fault: an `AuditFault` without the fields that a check's faults share."""
Status = Literal["pass", "weak", "fail", "not applicable"]
"""`weak`: nothing contradicts it, but the record has gaps, on which a strict audit fails."""


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
    """The findings of one invariant, in one system run or added up over several."""

    faults: list[AuditFault] = field(default_factory=list[AuditFault])
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Reason why something could not be checked -> how often."""
    gaps: Counter[str] = field(default_factory=Counter[str])
    """The same for gaps in the record, which a strict audit does not accept."""
    weak: Counter[str] = field(default_factory=Counter[str])
    """Weakness that contradicts nothing -> how often; a strict audit fails on it."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """Note for the reader that counts against no run -> how often."""
    checked: int = 0
    """Added system runs in which nothing was skipped."""

    def add(self, check: "InvariantCheck") -> None:
        """Add one system run."""
        check.checked = not check.skipped.total() + check.gaps.total()
        self.join(check)

    def join(self, check: "InvariantCheck") -> None:
        """Add the findings of another check."""
        for name in ("faults", "skipped", "gaps", "weak", "notes", "checked"):
            setattr(self, name, getattr(self, name) + getattr(check, name))

    def status(self, *, strict: bool) -> Status:
        """Return the verdict; a strict one counts gaps in the record as failures."""
        if self.faults or (strict and (self.gaps or self.weak)):
            return "fail"
        if self.gaps or self.weak:
            return "weak"
        return "pass" if self.checked else "not applicable"

    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Return why it was not checked everywhere, the weaknesses and the notes."""
        return tuple(sorted((self.skipped + self.gaps + self.weak + self.notes).items()))


@dataclass(frozen=True, slots=True)
class InvariantVerdict:
    """One invariant over all system runs."""

    invariant: str
    title: str
    meaning: str
    status: Status
    checked: int
    reasons: tuple[tuple[str, int], ...]
    """Why it was not checked, weaknesses, notes; each with the number of runs or rows."""
    faults: tuple[AuditFault, ...]


SERVED = "served: there is no log, and nothing was graded"
"""Why invariants about logs do not apply to served requests."""

Tokens = tuple[int, int, int, int, int]
"""Input, output, cache reads, cache writes, reasoning: the counts of Inspect."""
Sums = dict[str, Tokens]
"""By model, role or cause."""
NO_TOKENS: Tokens = (0, 0, 0, 0, 0)
NAMES = ("input", "output", "cache_read", "cache_write", "reasoning")
KEYS = tuple(name for name in FIELDS if name != "total_tokens")


@dataclass
class Evidence(Merged):
    """One system run, joined. Not frozen: its tables are made at their first use."""

    name: str = ""

    @cached_property
    def facts(self) -> RunFacts | None:
        """The newest log's facts about the run; None if podium did not write it."""
        return self.logs[0].facts if self.logs else None

    def why_no_journal(self) -> str:
        """Return why no journal is here, according to the newest log."""
        if self.facts is None:
            return "no journal: podium did not run it"
        if self.facts.redacted:
            return "no journal: redacted copies are shared without journals"
        if self.facts.journal is not None:
            return "no journal: the `ledger/` folder, which belongs to the logs, is missing"
        return "no journal: the run is older than journals"

    @cached_property
    def is_served(self) -> bool:
        """Whether a server made the calls: then there is no log, and nothing was graded."""
        return is_served(self.files)

    @cached_property
    def requests(self) -> list[ServedQuery]:
        """The requests to a server."""
        return [*queries_of(self, self.rows)]

    @cached_property
    def counted(self) -> list[Call]:
        """All rows with the tokens that Inspect counted and that its totals include."""
        # They equal the ledger's except for impossible usage: the ledger treats it as unknown.
        return [self._as_counted(row) for row in self.rows]

    def _as_counted(self, row: Call) -> Call:
        entry = self.seen.get(row.event or "")
        usage = entry.event.counted if entry and entry.event.usage is None else None
        if usage is None or row.usage is not None:
            return row
        counts = {name: getattr(usage, name) for name in NAMES[1:]}
        return replace(row, input_uncached=usage.input, **counts)

    @cached_property
    def by_event(self) -> Mapping[str, Call]:
        """Rows by the uuid of their event, with the tokens that Inspect counted."""
        return {row.event: row for row in self.counted if row.event}

    @cached_property
    def newest(self) -> Mapping[tuple[str, int], SampleRecord]:
        """The newest sample of every (question, epoch) pair."""
        samples = (sample for log in self.logs for sample in log.samples)
        return {(sample.question, sample.epoch): sample for sample in samples if sample.newest}

    @cached_property
    def first_log(self) -> Mapping[str, LogRecord]:
        """The oldest log that has an event, by the event's uuid: later ones carry it over."""
        return {
            event.id: log for log in self.logs for sample in log.samples for event in sample.events
        }

    @cached_property
    def call_of(self) -> Mapping[str, str]:
        """The calls of journals by their spans, and by the events that ended them."""
        names = ((call, record.intent.get("span")) for call, record in self.calls.items())
        ends = ((call, (record.outcome or {}).get("event")) for call, record in self.calls.items())
        return {str(name): call for call, name in (*names, *ends) if name}

    @cached_property
    def written_down(self) -> frozenset[str]:
        """The uuids of samples whose journal is recent enough to have answer and verdict too."""
        calls = self.calls.values()
        recent = (record.intent for record in calls if "reply_sha256" in (record.outcome or {}))
        samples: Iterable[Json] = (intent["sample"] for intent in recent if intent.get("sample"))
        return frozenset(str(sample.get("uuid", "")) for sample in samples)


def tokens_of(calls: CallSum) -> Tokens:
    """Return the tokens of some calls; 0 for unknown counts, as in Inspect's totals."""
    return cast(Tokens, tuple(getattr(calls, name) for name in NAMES))


def told(usage: Json | None) -> Tokens:
    """Return the tokens of one of Inspect's totals."""
    return cast(Tokens, tuple(int((usage or {}).get(key) or 0) for key in KEYS))


def sum_tokens(rows: Iterable[Tokens]) -> Tokens:
    """Add tokens, kind by kind."""
    return cast(Tokens, tuple(map(sum, zip(NO_TOKENS, *rows, strict=True))))


def join_tokens(tables: Iterable[Sums]) -> Sums:
    """Add tokens by name."""
    totals: Sums = {}
    for sums in tables:
        for name, tokens in sums.items():
            totals[name] = sum_tokens((totals.get(name, NO_TOKENS), tokens))
    return totals


def minus(tokens: Tokens, subtrahend: Tokens) -> Tokens:
    """Subtract tokens, kind by kind."""
    return cast(Tokens, tuple(map(sub, tokens, subtrahend)))


def differences(theirs: Sums, ours: Sums) -> Iterator[tuple[str, Tokens]]:
    """Yield the names whose tokens differ, each with the first side less the other."""
    for name in sorted({*theirs, *ours}):
        difference = minus(theirs.get(name, NO_TOKENS), ours.get(name, NO_TOKENS))
        if difference != NO_TOKENS:
            yield name, difference


def spent_by(rows: Iterable[Call], name: Callable[[Call], str]) -> Sums:
    """Return the tokens that providers counted, by name: reads from a local cache cost none."""
    sums = sums_by((row for row in rows if row.cache != "read"), name)
    spending = ((key, tokens_of(calls)) for key, calls in sums.items())
    return {key: tokens for key, tokens in spending if tokens != NO_TOKENS}


def spent(rows: Iterable[Call]) -> Sums:
    """Return the tokens that providers counted, by model."""
    return spent_by(rows, lambda row: row.model)


def spent_by_role(rows: Iterable[Call]) -> Sums:
    """Return the same by role; Inspect's totals by role leave out calls without a role."""
    return spent_by((row for row in rows if row.role != row.model), lambda row: row.role)


def said_tokens(tokens: Tokens) -> str:
    """Return tokens in words, without the kinds that are 0."""
    words = [f"{count:+,} {name}" for count, name in zip(tokens, NAMES, strict=True) if count]
    return ", ".join(words).replace("_", " ") or "nothing"
