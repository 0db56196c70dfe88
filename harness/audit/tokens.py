"""I1: the parts of every call's tokens are its whole, and what its provider itself counted.

A provider's own usage is read here by `usage_from_raw`, which shares nothing with Inspect's mapping
that made the ledger's counts: what either of them lost is a difference.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import orjson

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.ledger.row import LedgerRow
from harness.records import Usage
from harness.usage import NOTHING, Dialect, Raw, dialect_of, usage_from_raw

NO_TOTAL = "calls whose provider states no total"
UNBELIEVED = "calls whose token counts cannot be: unknown, between nothing and their bound"
UNREADABLE = "calls whose provider's own usage cannot be compared"
COUNTS = (
    "input",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "output",
    "reasoning",
    "orchestration_in",
    "orchestration_in_cached",
    "orchestration_out",
    "total_reported",
)
"""Fields of `Usage`."""


def token_partition(evidence: Evidence) -> Checked:
    """I1: a call's parts are its total, none is negative, and its provider counted the same."""
    found = Checked()
    for row in evidence.rows:
        usage = row.usage
        if usage is None:
            if row.raw_usage:
                found.weak[UNBELIEVED] += 1
            continue
        said = [*_wrong(usage)]
        if row.raw_usage:  # parsed only here: most rows of rehearsals have none
            said += _unlike(evidence, row, usage, found)
        found.faults += [Fault("I1", evidence.name, f"call {row.call}", one) for one in said]
        if usage.total_reported is None:
            found.weak[NO_TOTAL] += 1
    return found


def _wrong(usage: Usage) -> Iterator[str]:
    """Yield how a call's counts contradict each other."""
    reasoning, total = usage.reasoning or 0, usage.total_reported
    counts = (usage.input, usage.cache_read, usage.cache_write, usage.output, reasoning)
    if min(counts) < 0:
        yield "a count of tokens is negative"
    if reasoning > usage.output:
        yield f"{reasoning} reasoning tokens are more than its {usage.output} output tokens"
    if usage.cache_write_1h > usage.cache_write:
        yield "more tokens are cached for an hour than are cached"
    if usage.orchestration_in_cached > usage.orchestration_in:
        yield "more orchestration tokens are cached than there are"
    if total is not None and total != usage.parts_total:
        rest = total - usage.parts_total
        yield f"unexplained tokens: {rest:+,} of the {total:,} that are reported"


def _unlike(evidence: Evidence, row: LedgerRow, usage: Usage, found: Checked) -> list[str]:
    """Return how a row differs from its provider's own usage; weak where nobody can compare."""
    told: object = orjson.loads(row.raw_usage or "{}")
    raw = cast(Raw, told) if isinstance(told, dict) else NOTHING  # a journal may be forged
    dialect = dialect_of(raw)
    theirs = usage_from_raw(dialect, raw) if dialect else None
    several = dialect == "anthropic" and _of_several(evidence, row)
    if dialect is None or theirs is None or several:
        found.weak[UNREADABLE] += 1
        return []
    theirs = _as_inspect(dialect, theirs)
    return [
        f"the provider's own usage says {own:,} {name.replace('_', ' ')}, the ledger {ours:,}"
        for name in COUNTS
        if (own := getattr(theirs, name)) is not None and own != (ours := getattr(usage, name) or 0)
    ]


def _of_several(evidence: Evidence, row: LedgerRow) -> bool:
    """Whether Inspect added up requests of one call, or their parts; the last one's usage is left.

    It does for Anthropic's: a turn that pauses is continued, and one that is compacted has
    `iterations`, which its own counts leave out.
    """
    seen = evidence.seen.get(row.event or "")
    if seen is None:
        return False
    answered = [one for one in seen.event.request_ids if one.get("status") == 200]
    return len(answered) > 1 or bool((seen.event.raw_usage or {}).get("iterations"))


def _as_inspect(dialect: Dialect, usage: Usage) -> Usage:
    """Return a provider's counts with what Inspect puts right on purpose.

    It takes Google's input for none where more was cached than asked; the total then tells.
    """
    return replace(usage, input=max(usage.input, 0)) if dialect == "google" else usage
