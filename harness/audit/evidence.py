"""The evidence of one sitting: its rows, and what other records say of the same tokens.

What is compared with what, and which differences are faults, is in the files of the invariants.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from harness.ledger.logged import LogRecord, SampleRecord
from harness.ledger.merge import Merged, Seen
from harness.ledger.raw_log import Json
from harness.ledger.row import LedgerRow
from harness.logs import RunFacts

Tokens = tuple[int, int, int, int, int]
"""Input, output, cache reads, cache writes, reasoning: what Inspect counts too."""
NOTHING: Tokens = (0, 0, 0, 0, 0)
NAMES = ("input", "output", "cache read", "cache write", "reasoning")
KEYS = (
    "input_tokens",
    "output_tokens",
    "input_tokens_cache_read",
    "input_tokens_cache_write",
    "reasoning_tokens",
)
"""The same in Inspect's `ModelUsage`."""


@dataclass
class Evidence:
    """One sitting, joined. Not frozen: its tables are made when they are first asked for."""

    merged: Merged
    name: str
    """As faults call it."""

    @cached_property
    def rows(self) -> list[LedgerRow]:
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
    def counted(self) -> list[LedgerRow]:
        """All rows with the tokens that Inspect counted, which its totals have.

        They are the ledger's, but for usage that cannot be: the ledger takes it for unknown.
        """
        return [self._as_counted(row) for row in self.rows]

    def _as_counted(self, row: LedgerRow) -> LedgerRow:
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
    def by_event(self) -> Mapping[str, LedgerRow]:
        """Rows by the uuid of their event, with the tokens that Inspect counted."""
        return {row.event: row for row in self.counted if row.event}

    @cached_property
    def seen(self) -> Mapping[str, Seen]:
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
    def started(self) -> str:
        """When the first journal began; empty without one."""
        return min(
            (str(one.head.get("at", "")) for one in self.merged.gathered.journals), default=""
        )


def tokens_of(row: LedgerRow) -> Tokens:
    """Return a row's tokens; all 0 for what nobody counted, as in Inspect's totals."""
    if row.input_uncached is None:
        return NOTHING
    return (
        row.input_uncached,
        row.output or 0,
        row.cache_read or 0,
        row.cache_write or 0,
        row.reasoning or 0,
    )


def told(usage: Json | None) -> Tokens:
    """Return the tokens of one of Inspect's totals."""
    if not usage:
        return NOTHING
    one, two, three, four, five = (int(usage.get(key) or 0) for key in KEYS)
    return (one, two, three, four, five)


def plus(left: Tokens, right: Tokens) -> Tokens:
    """Add tokens, kind by kind."""
    return (
        left[0] + right[0],
        left[1] + right[1],
        left[2] + right[2],
        left[3] + right[3],
        left[4] + right[4],
    )


def minus(left: Tokens, right: Tokens) -> Tokens:
    """Subtract tokens, kind by kind."""
    return (
        left[0] - right[0],
        left[1] - right[1],
        left[2] - right[2],
        left[3] - right[3],
        left[4] - right[4],
    )


def spent(rows: Iterable[LedgerRow]) -> dict[str, Tokens]:
    """Return tokens by model of what providers counted: reads from a local cache are not spent."""
    found: dict[str, Tokens] = defaultdict(lambda: NOTHING)
    for row in rows:
        if row.cache != "read" and row.input_uncached is not None:
            found[row.model] = plus(found[row.model], tokens_of(row))
    return {name: tokens for name, tokens in found.items() if tokens != NOTHING}


def spent_by_role(rows: Iterable[LedgerRow]) -> dict[str, Tokens]:
    """Return the same by role; a call without a role is in no such total of Inspect's."""
    found: dict[str, Tokens] = defaultdict(lambda: NOTHING)
    for row in rows:
        if row.cache != "read" and row.input_uncached is not None and row.role != row.model:
            found[row.role] = plus(found[row.role], tokens_of(row))
    return {name: tokens for name, tokens in found.items() if tokens != NOTHING}


def said_tokens(tokens: Tokens) -> str:
    """Return tokens in words, without the kinds of which there are none."""
    parts = [f"{count:+,} {name}" for count, name in zip(tokens, NAMES, strict=True) if count]
    return ", ".join(parts) or "nothing"
