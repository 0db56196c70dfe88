"""The page that compares two runs: what differs between them, and the results of each system."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from podium.reports.against import (
    ChangedVerdict,
    CostChange,
    RunChange,
    RunDifference,
    SystemDifference,
)
from podium.reports.comparison_rows import ARGUMENTS
from podium.reports.render import (
    UNKNOWN,
    Columns,
    interval,
    percent,
    points,
    shortened,
    tabulate,
    usd,
)
from podium.reports.site.index import SiteBlock
from podium.reports.site.pages import query_address

MOST = 200
"""Maximum number of changed questions per system on this page; the matrix page has all."""


def against_context(diff: RunDifference, blocks: Sequence[SiteBlock]) -> dict[str, Any]:
    """Return the template variables of runs.html: one run compared with another."""
    changes = [[item.name, *_sides(item), _concerned(item.systems, diff)] for item in diff.changes]
    return {
        "labels": sorted({row.label for block in blocks for row, _ in block.pairs}),
        "here": diff.here,
        "against": diff.against,
        "grades": tabulate(GRADES, diff.systems),
        "costs": tabulate(COSTS, diff.systems),
        "changes": [["what", diff.here, diff.against, "systems"], *changes],
        "alone": [(diff.here, diff.only_here), (diff.against, diff.only_against)],
        "systems": [
            {
                "name": _name(row),
                "questions": [_question(row, verdict, blocks) for verdict in row.changed[:MOST]],
                "more": len(row.changed[MOST:]),
            }
            for row in diff.systems
            if row.changed
        ],
    }


def _sides(change: RunChange) -> tuple[str, str]:
    """Return both runs' values of a changed property, shortened: a list of plans may be long."""
    return shortened(change.here, ARGUMENTS), shortened(change.against, ARGUMENTS)


def _concerned(systems: Sequence[str], difference: RunDifference) -> str:
    return "all" if len(systems) == len(difference.systems) else ", ".join(systems)


def _question(
    system: SystemDifference, verdict: ChangedVerdict, blocks: Sequence[SiteBlock]
) -> tuple[str, str, str, str, str]:
    """Return a changed question: id, link in the site, grade before and now, `won` or `lost`."""
    candidates = (
        block
        for block in blocks
        for row, _ in block.pairs
        if (row.suite, row.split, row.system) == (system.suite, system.split, system.system)
    )
    block = next((block for block in candidates if verdict.question in block.questions), None)
    address = query_address(block.name, verdict.question, 1, system.system) if block else ""
    way = "won" if verdict.here > verdict.against else "lost"
    return verdict.question, address, percent(verdict.against), percent(verdict.here), way


def _signed(value: Decimal) -> str:
    return ("+" if value > 0 else "-" if value < 0 else "") + usd(abs(value))


def _bounds(change: CostChange) -> str:
    if change.interval is None:
        return UNKNOWN
    return "[{},{}]".format(*(_signed(Decimal(repr(bound))) for bound in change.interval))


def _cost(show: Callable[[CostChange], str]) -> Callable[[SystemDifference], str]:
    return lambda row: show(row.cost) if row.cost else UNKNOWN


def _name(row: SystemDifference) -> str:
    return f"{row.suite} {row.system}"


GRADES: Columns[SystemDifference] = (
    ("system", _name),
    ("questions", lambda row: f"{row.difference.n_paired:,}"),
    ("difference, points", lambda row: points(row.difference.paired_diff)),
    (
        "95 % interval",
        lambda row: interval(row.difference.paired_low, row.difference.paired_high, signed=True),
    ),
    ("verdict", lambda row: row.difference.verdict),
    ("won", lambda row: f"{row.difference.n_better:,}"),
    ("lost", lambda row: f"{row.difference.n_worse:,}"),
    ("alike", lambda row: f"{row.tied:,}"),
)
COSTS: Columns[SystemDifference] = (
    ("system", _name),
    ("questions", _cost(lambda cost: f"{cost.n:,}")),
    ("before", _cost(lambda cost: usd(cost.against))),
    ("now", _cost(lambda cost: usd(cost.here))),
    ("change", _cost(lambda cost: _signed(cost.change))),
    ("95 % interval", _cost(_bounds)),
)
