"""The joined records of one system run, and the types of an audit's findings and verdicts.

A system run is one run of one system on one suite.
"""

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
"""Place and text of each fault that a check finds; `AuditFault` adds invariant and task."""
Status = Literal["pass", "weak", "fail", "not applicable"]
"""Verdict on an invariant. `weak`: nothing contradicts the invariant, but there are gaps in the
records or doubtful findings, on which a strict audit fails."""


@dataclass(frozen=True, slots=True, order=True)
class AuditFault:
    """One place where an invariant does not hold."""

    invariant: str
    task: str
    where: str
    """The place, e.g. `call ID`, `sample QUESTION epoch N`, `journal NAME` or `log NAME`."""
    said: str


@dataclass(slots=True)
class InvariantCheck:
    """The findings on one invariant, in one system run or added up over several."""

    faults: list[AuditFault] = field(default_factory=list[AuditFault])
    skipped: Counter[str] = field(default_factory=Counter[str])
    """Reason why a check was not made -> how often."""
    gaps: Counter[str] = field(default_factory=Counter[str])
    """Missing record -> how often; a strict audit fails on it."""
    weak: Counter[str] = field(default_factory=Counter[str])
    """Doubtful finding that breaks no invariant -> how often; a strict audit fails on it."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """Remark that is no fault -> how often."""
    checked: int = 0
    """Number of system runs that were checked without skips and gaps."""

    def add(self, check: "InvariantCheck") -> None:
        """Add findings on one system run; count the run as checked if there is no skip or gap."""
        check.checked = not check.skipped.total() + check.gaps.total()
        self.join(check)

    def join(self, check: "InvariantCheck") -> None:
        """Add findings on other system runs, and the number of those that were checked."""
        for name in ("faults", "skipped", "gaps", "weak", "notes", "checked"):
            setattr(self, name, getattr(self, name) + getattr(check, name))

    def status(self, *, strict: bool) -> Status:
        """Return the verdict; if `strict`, gaps in records and doubtful findings are failures."""
        if self.faults or (strict and (self.gaps or self.weak)):
            return "fail"
        if self.gaps or self.weak:
            return "weak"
        return "pass" if self.checked else "not applicable"

    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Return skips, gaps, weaknesses and notes, sorted by text, each with its count."""
        return tuple(sorted((self.skipped + self.gaps + self.weak + self.notes).items()))


@dataclass(frozen=True, slots=True)
class InvariantVerdict:
    """The verdict on one invariant over all system runs."""

    invariant: str
    title: str
    meaning: str
    status: Status
    checked: int
    reasons: tuple[tuple[str, int], ...]
    """Texts of skips, gaps, weaknesses and notes, each with how often it occurs."""
    faults: tuple[AuditFault, ...]


SERVED = "served: there is no log, and nothing was graded"
"""Why invariants about logs do not apply to the requests of `podium serve`."""

Tokens = tuple[int, int, int, int, int]
"""Token counts as in Inspect: input, output, cache reads, cache writes, reasoning."""
Sums = dict[str, Tokens]
"""Table of token counts: model, role or cause -> counts."""
NO_TOKENS: Tokens = (0, 0, 0, 0, 0)
NAMES = ("input", "output", "cache_read", "cache_write", "reasoning")
KEYS = tuple(name for name in FIELDS if name != "total_tokens")


@dataclass
class Evidence(Merged):
    """The joined records of one system run. Not frozen: it caches tables at their first use."""

    name: str = ""

    @cached_property
    def facts(self) -> RunFacts | None:
        """The settings of the run in its newest log; None if podium did not write that log."""
        return self.logs[0].facts if self.logs else None

    def why_no_journal(self) -> str:
        """Return why the run has no journal of calls, according to its newest log."""
        if self.facts is None:
            return "no journal: podium did not run it"
        if self.facts.redacted:
            return "no journal: redacted copies are shared without journals"
        if self.facts.journal is not None:
            return "no journal: the `ledger/` folder, which belongs to the logs, is missing"
        return "no journal: the run is older than journals"

    @cached_property
    def is_served(self) -> bool:
        """Whether `podium serve` made the calls: then there is no log, and nothing was graded."""
        return is_served(self.files)

    @cached_property
    def requests(self) -> list[ServedQuery]:
        """The requests that `podium serve` received, each with its calls."""
        return [*queries_of(self, self.rows)]

    @cached_property
    def counted(self) -> list[Call]:
        """All rows of the ledger (attempts of calls), with token counts as in Inspect's totals."""
        # Only impossible counts differ: the ledger treats them as unknown.
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
        """Uuid of a model event -> its row of the ledger, with the tokens that Inspect counted."""
        return {row.event: row for row in self.counted if row.event}

    @cached_property
    def newest(self) -> Mapping[tuple[str, int], SampleRecord]:
        """Query, as (question id, epoch) -> the newest sample of the query in the logs."""
        samples = (sample for log in self.logs for sample in log.samples)
        return {(sample.question, sample.epoch): sample for sample in samples if sample.newest}

    @cached_property
    def first_log(self) -> Mapping[str, LogRecord]:
        """Uuid of a model event -> the oldest log with the event; later logs repeat the event."""
        return {
            event.id: log for log in self.logs for sample in log.samples for event in sample.events
        }

    @cached_property
    def call_of(self) -> Mapping[str, str]:
        """Span id of a call, or uuid of its final event in a log -> id of the call in a journal."""
        names = ((call, record.intent.get("span")) for call, record in self.calls.items())
        ends = ((call, (record.outcome or {}).get("event")) for call, record in self.calls.items())
        return {str(name): call for call, name in (*names, *ends) if name}

    @cached_property
    def written_down(self) -> frozenset[str]:
        """Uuids of samples with calls in journals whose format also has answers and verdicts."""
        calls = self.calls.values()
        recent = (record.intent for record in calls if "reply_sha256" in (record.outcome or {}))
        samples: Iterable[Json] = (intent["sample"] for intent in recent if intent.get("sample"))
        return frozenset(str(sample.get("uuid", "")) for sample in samples)


def tokens_of(calls: CallSum) -> Tokens:
    """Return the token counts in a sum of calls; 0 for unknown counts, as in Inspect's totals."""
    return cast(Tokens, tuple(getattr(calls, name) for name in NAMES))


def told(usage: Json | None) -> Tokens:
    """Return the token counts of a usage object of Inspect; 0 for missing counts."""
    return cast(Tokens, tuple(int((usage or {}).get(key) or 0) for key in KEYS))


def sum_tokens(rows: Iterable[Tokens]) -> Tokens:
    """Return the sum of several token counts, per kind of token."""
    return cast(Tokens, tuple(map(sum, zip(NO_TOKENS, *rows, strict=True))))


def join_tokens(tables: Iterable[Sums]) -> Sums:
    """Merge tables of token counts; add up counts under the same name (model, role or cause)."""
    totals: Sums = {}
    for sums in tables:
        for name, tokens in sums.items():
            totals[name] = sum_tokens((totals.get(name, NO_TOKENS), tokens))
    return totals


def minus(tokens: Tokens, subtrahend: Tokens) -> Tokens:
    """Return token counts `tokens` less `subtrahend`, per kind of token."""
    return cast(Tokens, tuple(map(sub, tokens, subtrahend)))


def differences(theirs: Sums, ours: Sums) -> Iterator[tuple[str, Tokens]]:
    """Yield each name (model or role) whose token counts differ, with `theirs` less `ours`."""
    for name in sorted({*theirs, *ours}):
        difference = minus(theirs.get(name, NO_TOKENS), ours.get(name, NO_TOKENS))
        if difference != NO_TOKENS:
            yield name, difference


def spent_by(rows: Iterable[Call], name: Callable[[Call], str]) -> Sums:
    """Return the tokens of ledger rows, added up by `name(row)`; leave out local cache reads."""
    sums = sums_by((row for row in rows if row.cache != "read"), name)
    spending = ((key, tokens_of(calls)) for key, calls in sums.items())
    return {key: tokens for key, tokens in spending if tokens != NO_TOKENS}


def spent(rows: Iterable[Call]) -> Sums:
    """Return the tokens of ledger rows, added up by model; leave out local cache reads."""
    return spent_by(rows, lambda row: row.model)


def spent_by_role(rows: Iterable[Call]) -> Sums:
    """Return the tokens of ledger rows with a role, added up by role, as Inspect does."""
    return spent_by((row for row in rows if row.role != row.model), lambda row: row.role)


def said_tokens(tokens: Tokens) -> str:
    """Return token counts as text, e.g. `+12 input, -3 output`; leave out counts of 0."""
    words = [f"{count:+,} {name}" for count, name in zip(tokens, NAMES, strict=True) if count]
    return ", ".join(words).replace("_", " ") or "nothing"
