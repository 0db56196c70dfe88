"""The evidence of one run, and what a check of it says: faults, weaknesses, verdicts."""

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
"""Where an invariant does not hold, and how: an `AuditFault` without what all of a check share."""
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
    """What one invariant found, in one system run or added up over some."""

    faults: list[AuditFault] = field(default_factory=list[AuditFault])
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Why nothing could be checked somewhere, with how often."""
    gaps: Counter[str] = field(default_factory=Counter[str])
    """The same for a gap in the record, which a strict audit does not accept."""
    weak: Counter[str] = field(default_factory=Counter[str])
    """What holds and is less than a reviewer may ask for, with how often; strict: a failure."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """What a reader should know and holds against nobody, with how often."""
    checked: int = 0
    """System runs, of those that were added, of which nothing was skipped."""

    def add(self, one: "InvariantCheck") -> None:
        """Add one system run."""
        one.checked = not one.skipped.total() + one.gaps.total()
        self.join(one)

    def join(self, other: "InvariantCheck") -> None:
        """Add what was found elsewhere."""
        for name in ("faults", "skipped", "gaps", "weak", "notes", "checked"):
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


SERVED = "served: there is no log, and nothing was graded"
"""Why invariants about logs say nothing of what a server was asked."""

Tokens = tuple[int, int, int, int, int]
"""Input, output, cache reads, cache writes, reasoning: what Inspect counts too."""
Sums = dict[str, Tokens]
"""By model, role or cause."""
NO_TOKENS: Tokens = (0, 0, 0, 0, 0)
NAMES = ("input", "output", "cache_read", "cache_write", "reasoning")
KEYS = tuple(name for name in FIELDS if name != "total_tokens")


@dataclass
class Evidence(Merged):
    """One system run, joined. Not frozen: its tables are made when they are first asked for."""

    name: str = ""

    @cached_property
    def facts(self) -> RunFacts | None:
        """What the newest log says about the run; None where podium did not write it."""
        return self.logs[0].facts if self.logs else None

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
    def is_served(self) -> bool:
        """Whether a server made the calls: then there is no log, and nothing was graded."""
        return is_served(self.files)

    @cached_property
    def requests(self) -> list[ServedQuery]:
        """What a server was asked."""
        return [*queries_of(self, self.rows)]

    @cached_property
    def counted(self) -> list[Call]:
        """All rows with the tokens that Inspect counted, which its totals have."""
        # They are the ledger's, but for usage that cannot be: the ledger takes it for unknown.
        return [self._as_counted(row) for row in self.rows]

    def _as_counted(self, row: Call) -> Call:
        seen = self.seen.get(row.event or "")
        usage = seen.event.counted if seen and seen.event.usage is None else None
        if usage is None or row.usage is not None:
            return row
        parts = {name: getattr(usage, name) for name in NAMES[1:]}
        return replace(row, input_uncached=usage.input, **parts)

    @cached_property
    def by_event(self) -> Mapping[str, Call]:
        """Rows by the uuid of their event, with the tokens that Inspect counted."""
        return {row.event: row for row in self.counted if row.event}

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
    def call_of(self) -> Mapping[str, str]:
        """The calls of journals by their spans, and by the events that they ended with."""
        names = ((call, record.intent.get("span")) for call, record in self.calls.items())
        ended = ((call, (one.outcome or {}).get("event")) for call, one in self.calls.items())
        return {str(name): call for call, name in (*names, *ended) if name}

    @cached_property
    def written_down(self) -> frozenset[str]:
        """The uuids of samples whose journal is recent enough to have answer and verdict too."""
        calls = self.calls.values()
        recent = (one.intent for one in calls if "reply_sha256" in (one.outcome or {}))
        samples: Iterable[Json] = (intent["sample"] for intent in recent if intent.get("sample"))
        return frozenset(str(one.get("uuid", "")) for one in samples)


def tokens_of(found: CallSum) -> Tokens:
    """Return the tokens of some calls; 0 for what nobody counted, as in Inspect's totals."""
    return cast(Tokens, tuple(getattr(found, name) for name in NAMES))


def told(usage: Json | None) -> Tokens:
    """Return the tokens of one of Inspect's totals."""
    return cast(Tokens, tuple(int((usage or {}).get(key) or 0) for key in KEYS))


def sum_tokens(parts: Iterable[Tokens]) -> Tokens:
    """Add tokens, kind by kind."""
    return cast(Tokens, tuple(map(sum, zip(NO_TOKENS, *parts, strict=True))))


def join_tokens(parts: Iterable[Sums]) -> Sums:
    """Add tokens by name."""
    found: Sums = {}
    for sums in parts:
        for name, tokens in sums.items():
            found[name] = sum_tokens((found.get(name, NO_TOKENS), tokens))
    return found


def minus(left: Tokens, right: Tokens) -> Tokens:
    """Subtract tokens, kind by kind."""
    return cast(Tokens, tuple(map(sub, left, right)))


def differences(theirs: Sums, ours: Sums) -> Iterator[tuple[str, Tokens]]:
    """Yield the names whose tokens differ, each with the first side less the other."""
    for name in sorted({*theirs, *ours}):
        rest = minus(theirs.get(name, NO_TOKENS), ours.get(name, NO_TOKENS))
        if rest != NO_TOKENS:
            yield name, rest


def spent_by(rows: Iterable[Call], name: Callable[[Call], str]) -> Sums:
    """Return what providers counted, by name: reads from a local cache are not spent."""
    sums = sums_by((row for row in rows if row.cache != "read"), name)
    found = ((one, tokens_of(calls)) for one, calls in sums.items())
    return {one: tokens for one, tokens in found if tokens != NO_TOKENS}


def spent(rows: Iterable[Call]) -> Sums:
    """Return what providers counted, by model."""
    return spent_by(rows, lambda row: row.model)


def spent_by_role(rows: Iterable[Call]) -> Sums:
    """Return the same by role; a call without a role is in no such total of Inspect's."""
    return spent_by((row for row in rows if row.role != row.model), lambda row: row.role)


def said_tokens(tokens: Tokens) -> str:
    """Return tokens in words, without the kinds of which there are none."""
    parts = [f"{count:+,} {name}" for count, name in zip(tokens, NAMES, strict=True) if count]
    return ", ".join(parts).replace("_", " ") or "nothing"
