"""Parts of an exam: how a system did by difficulty and by platform, and pass@k of several tries."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from harness.ledger import GROUPINGS, Attempt
from harness.sittings import Sitting
from reports.derived import derived_rows
from reports.field import Field, field_of
from reports.intervals import Values, accuracy, accuracy_interval
from reports.pass_at import pass_at
from reports.reference import graded_values
from reports.row import Row
from reports.tables import pair_rows
from reports.wanted import EVERYTHING, Wanted

PASS_AT = "pass@k"
RANKS = ("easy", "medium", "hard")
"""These come first and in this order; other groups follow by name."""


@dataclass(frozen=True, slots=True)
class Part:
    """One system on one part of an exam, or by one reading of its tries."""

    row: Row
    grouping: str
    """`difficulty`, `platform` or `pass@k`."""
    group: str
    """E.g. `hard`, `atcoder` or `pass@5`."""
    n: int
    """Graded questions."""
    value: float
    """Accuracy, or pass@k."""
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that tables show of some sittings."""

    rows: tuple[Row, ...]
    parts: tuple[Part, ...]
    """In the order of the rows."""
    fields: tuple[Field, ...] = ()
    """Block by block, in the order of the rows: what holds for all its rows together."""
    derived: tuple[Row, ...] = ()
    """Rows made from the logs of others, block by block."""

    def blocks(self, rows: Sequence[Row]) -> list[tuple[str, list[Part]]]:
        """Return the parts of some rows, one entry for each grouping that they have."""
        chosen = [part for part in self.parts if any(part.row is row for row in rows)]
        names = (*GROUPINGS, PASS_AT)
        found = [(name, [part for part in chosen if part.grouping == name]) for name in names]
        return [(name, parts) for name, parts in found if parts]


def compare(sittings: Sequence[Sitting], wanted: Wanted = EVERYTHING) -> Comparison:
    """Return rows and parts; UserError when the rows are no comparison."""
    blocks = pair_rows(sittings, wanted)
    pairs = [pair for block in blocks for pair in block]
    return Comparison(
        rows=tuple(row for row, _ in pairs),
        parts=tuple(part for row, sitting in pairs for part in parts_of(row, sitting)),
        fields=tuple(map(field_of, blocks)),
        derived=tuple(row for block in blocks for row in derived_rows(block, wanted)),
    )


def parts_of(row: Row, sitting: Sitting) -> list[Part]:
    """Return the parts of one row; none where questions belong to nothing and were asked once."""
    parts: list[Part] = []
    for grouping in GROUPINGS:
        graded = [one for one in sitting.attempts if one.graded and grouping in one.groups]
        graded.sort(key=lambda one: _rank(one.groups[grouping]))
        for name, members in groupby(graded, key=lambda one: one.groups[grouping]):
            parts.append(_part(row, (grouping, name), list(members)))
    for one in pass_at(graded_values(sitting)):
        low, high = one.interval.low, one.interval.high
        parts.append(Part(row, PASS_AT, f"pass@{one.k}", one.questions, one.value, low, high))
    return parts


def groups_of(parts: Sequence[Part]) -> list[str]:
    """Return the groups of one grouping, in the order in which they are shown."""
    return sorted({part.group for part in parts}, key=_rank)


def _part(row: Row, place: tuple[str, str], attempts: Sequence[Attempt]) -> Part:
    values: dict[str, list[float]] = {}
    for attempt in attempts:
        if attempt.value is not None:
            values.setdefault(attempt.question, []).append(attempt.value)
    return Part(row, *place, len(values), *_figures(values))


def _figures(values: Values) -> tuple[float, float | None, float | None]:
    value, interval = accuracy(values), accuracy_interval(values)
    assert value is not None, "a group has a graded question"
    return value, interval and interval.low, interval and interval.high


def _rank(group: str) -> tuple[int, int, str]:
    """Sort easy before hard, and pass@5 before pass@10."""
    rank = RANKS.index(group) if group in RANKS else len(RANKS)
    return (rank, len(group) if group.startswith("pass@") else 0, group)
