"""I1: the parts of every call's tokens are its whole."""

from collections.abc import Iterator

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.ledger.row import LedgerRow


def token_partition(evidence: Evidence) -> Checked:
    """I1: what a provider says of the total is the sum of the parts, and no part is negative."""
    found = Checked()
    for row in evidence.rows:
        if row.input_uncached is None:
            continue
        for said in _wrong(row):
            found.faults.append(Fault("I1", evidence.name, f"call {row.call}", said))
        if row.total_reported is None:
            found.weak["calls whose provider states no total"] += 1
    return found


def _wrong(row: LedgerRow) -> Iterator[str]:
    prompt = row.input_total or 0
    output, reasoning = row.output or 0, row.reasoning or 0
    orchestrated = (row.orchestration_in or 0) + (row.orchestration_out or 0)
    counts = (row.input_uncached, row.cache_read, row.cache_write, row.output, row.reasoning)
    if any(count is not None and count < 0 for count in counts):
        yield "a count of tokens is negative"
    if reasoning > output:
        yield f"{reasoning} reasoning tokens are more than its {output} output tokens"
    if (row.cache_write_1h or 0) > (row.cache_write or 0):
        yield "more tokens are cached for an hour than are cached"
    if (row.orchestration_in_cached or 0) > (row.orchestration_in or 0):
        yield "more orchestration tokens are cached than there are"
    total = prompt + output + orchestrated
    if row.total_reported is not None and row.total_reported != total:
        rest = row.total_reported - total
        yield f"unexplained tokens: {rest:+,} of the {row.total_reported:,} that are reported"
