"""What systems say of themselves beside what they did: sources, deviations, calls.

The figures of the comparison itself are reports/tables.py; whether each single answer keeps the
promise is the audit's I7.
"""

from collections.abc import Sequence
from typing import Any

from harness.plural import from_to
from harness.sittings import Sitting
from reports.render import UNKNOWN
from reports.row import Row


def manifest_columns(sitting: Sitting) -> dict[str, Any]:
    """Return a row's columns on its manifest, and the worker calls that were counted."""
    facts = sitting.facts
    calls = [one.totals.worker_calls for one in sitting.attempts if one.graded]
    return {
        "deviations": "; ".join(one.replace("; ", ", ") for one in facts.deviations),
        "source": facts.source,
        "calls_min": min(calls, default=None),
        "calls_max": max(calls, default=None),
        "calls_expected": from_to(facts.calls_expected),
        "prompt_sha256": facts.prompt_sha256,
    }


def calls_table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return worker calls a question against manifests, a line per row, heads first."""
    heads = ("system", "by its manifest", "fewest", "most", "mean of all calls")
    return [heads, *(_calls(row) for row in rows)]


def _calls(row: Row) -> tuple[str, ...]:
    mean = UNKNOWN if row.calls is None else f"{row.calls:.2f}"
    found = (row.calls_min, row.calls_max)
    fewest, most = (UNKNOWN if one is None else str(one) for one in found)
    return (f"`{row.system}` ({row.label})", row.calls_expected or UNKNOWN, fewest, most, mean)


def systems_table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return where each system is from and where it deviates, a line per system, heads first."""
    heads = ("system", "source", "prompts (sha256)", "deviations")
    lines = {
        (f"`{row.system}`", row.source, row.prompt_sha256[:12] or "none", row.deviations or "none")
        for row in rows
        if row.source
    }
    return [heads, *sorted(lines)]
