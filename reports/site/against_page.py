"""The page of two runs: what is not the same in both, and what that did to each system."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from reports.against import ChangedVerdict, CostChange, RunDifference, SystemDifference
from reports.render import UNKNOWN, Columns, interval, percent, points, tabulate, usd
from reports.site.index import SiteBlock
from reports.site.pages import query_address

MOST = 200
"""Questions of one system that the page lists; the matrix has all of this run."""


def against_context(found: RunDifference, blocks: Sequence[SiteBlock]) -> dict[str, Any]:
    """Return what runs.html shows of one run that is held against another."""
    changes = [
        [one.name, one.here, one.against, _concerned(one.systems, found)] for one in found.changes
    ]
    return {
        "here": found.here,
        "against": found.against,
        "summary": tabulate(SUMMARY, found.systems),
        "changes": [["what", found.here, found.against, "systems"], *changes],
        "alone": [(found.here, found.only_here), (found.against, found.only_against)],
        "systems": [
            {
                "name": f"{one.suite} {one.system}",
                "questions": [_question(one, each, blocks) for each in one.changed[:MOST]],
                "more": len(one.changed[MOST:]),
            }
            for one in found.systems
            if one.changed
        ],
    }


def _concerned(systems: Sequence[str], found: RunDifference) -> str:
    return "all" if len(systems) == len(found.systems) else ", ".join(systems)


def _question(
    found: SystemDifference, one: ChangedVerdict, blocks: Sequence[SiteBlock]
) -> tuple[str, str, str, str, str]:
    """Return a question, its address in this site, both grades and which way they went."""
    held = (
        block
        for block in blocks
        for row, _ in block.pairs
        if (row.suite, row.split, row.system) == (found.suite, found.split, found.system)
    )
    block = next((block for block in held if one.question in block.questions), None)
    address = query_address(block.name, one.question, 1, found.system) if block else ""
    way = "won" if one.here > one.against else "lost"
    return one.question, address, percent(one.against), percent(one.here), way


def _signed(value: Decimal) -> str:
    return ("+" if value > 0 else "-" if value < 0 else "") + usd(abs(value))


def _cost(found: CostChange | None) -> str:
    if found is None:
        return UNKNOWN
    bounds = found.interval
    low, high = map(_signed, map(Decimal, map(repr, bounds))) if bounds else ("", "")
    return f"{_signed(found.change)} [{low},{high}]" if bounds else _signed(found.change)


SUMMARY: Columns[SystemDifference] = (
    ("system", lambda one: f"{one.suite} {one.system}"),
    ("questions in both", lambda one: f"{one.difference.n_paired:,}"),
    ("difference, points", lambda one: points(one.difference.paired_diff)),
    (
        "95 % interval",
        lambda one: interval(one.difference.paired_low, one.difference.paired_high, signed=True),
    ),
    ("verdict", lambda one: one.difference.verdict),
    ("won", lambda one: f"{one.difference.n_better:,}"),
    ("lost", lambda one: f"{one.difference.n_worse:,}"),
    ("alike", lambda one: f"{one.tied:,}"),
    ("USD/query before", lambda one: usd(one.cost.against) if one.cost else UNKNOWN),
    ("USD/query now", lambda one: usd(one.cost.here) if one.cost else UNKNOWN),
    ("change", lambda one: _cost(one.cost)),
)
