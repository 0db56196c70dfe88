"""The page of two runs: what is not the same in both, and what that did to each system."""

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
"""Questions of one system that the page lists; the matrix has all of this run."""


def against_context(found: RunDifference, blocks: Sequence[SiteBlock]) -> dict[str, Any]:
    """Return what runs.html shows of one run that is held against another."""
    changes = [[one.name, *_sides(one), _concerned(one.systems, found)] for one in found.changes]
    return {
        "labels": sorted({row.label for block in blocks for row, _ in block.pairs}),
        "here": found.here,
        "against": found.against,
        "grades": tabulate(GRADES, found.systems),
        "costs": tabulate(COSTS, found.systems),
        "changes": [["what", found.here, found.against, "systems"], *changes],
        "alone": [(found.here, found.only_here), (found.against, found.only_against)],
        "systems": [
            {
                "name": _name(one),
                "questions": [_question(one, each, blocks) for each in one.changed[:MOST]],
                "more": len(one.changed[MOST:]),
            }
            for one in found.systems
            if one.changed
        ],
    }


def _sides(found: RunChange) -> tuple[str, str]:
    """Return what either run says, cut where it is long: a list of plans is for files."""
    return shortened(found.here, ARGUMENTS), shortened(found.against, ARGUMENTS)


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


def _bounds(found: CostChange) -> str:
    if found.interval is None:
        return UNKNOWN
    return "[{},{}]".format(*(_signed(Decimal(repr(one))) for one in found.interval))


def _cost(show: Callable[[CostChange], str]) -> Callable[[SystemDifference], str]:
    return lambda one: show(one.cost) if one.cost else UNKNOWN


def _name(found: SystemDifference) -> str:
    return f"{found.suite} {found.system}"


GRADES: Columns[SystemDifference] = (
    ("system", _name),
    ("questions", lambda one: f"{one.difference.n_paired:,}"),
    ("difference, points", lambda one: points(one.difference.paired_diff)),
    (
        "95 % interval",
        lambda one: interval(one.difference.paired_low, one.difference.paired_high, signed=True),
    ),
    ("verdict", lambda one: one.difference.verdict),
    ("won", lambda one: f"{one.difference.n_better:,}"),
    ("lost", lambda one: f"{one.difference.n_worse:,}"),
    ("alike", lambda one: f"{one.tied:,}"),
)
COSTS: Columns[SystemDifference] = (
    ("system", _name),
    ("questions", _cost(lambda one: f"{one.n:,}")),
    ("before", _cost(lambda one: usd(one.against))),
    ("now", _cost(lambda one: usd(one.here))),
    ("change", _cost(lambda one: _signed(one.change))),
    ("95 % interval", _cost(_bounds)),
)
