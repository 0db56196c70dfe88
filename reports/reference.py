"""Which rows may be compared, and with what: versions that must agree, and the reference system."""

from collections.abc import Sequence
from decimal import Decimal

from harness.errors import UserError
from harness.sittings import Sitting
from harness.totals import system_totals
from reports.intervals import Values, accuracy

BEST_SINGLE = "best-single"
SINGLE = "single:"

Group = tuple[str, str, str, str, str]
"""Suite, split, label, pool digest, seed: rows that a reference may be compared within."""


def graded_values(sitting: Sitting) -> Values:
    """Return question -> grades of its graded epochs."""
    values: dict[str, list[float]] = {}
    for attempt in sitting.attempts:
        if attempt.value is not None:
            values.setdefault(attempt.question, []).append(attempt.value)
    return values


def reference_of(sittings: Sequence[Sitting]) -> Sitting | None:
    """Return what the others are compared with; None when no single worker was graded.

    It is the best single worker as chosen beforehand, else the strongest `single:` worker, the
    cheaper one of equals. Never a choice in hindsight, never a system that looks at targets.
    """
    allowed = [
        sitting
        for sitting in sittings
        if sitting.facts.reference_allowed and not sitting.facts.uses_targets
    ]
    graded = [sitting for sitting in allowed if graded_values(sitting)]
    chosen = [sitting for sitting in graded if sitting.facts.system == BEST_SINGLE]
    singles = [sitting for sitting in graded if sitting.facts.system.startswith(SINGLE)]
    return min(chosen or singles, key=_strength, default=None)


def _strength(sitting: Sitting) -> tuple[float, Decimal, str]:
    usd = system_totals(sitting).usd
    known = Decimal("Infinity") if usd is None else usd
    return (-(accuracy(graded_values(sitting)) or 0.0), known, sitting.facts.system)


def refuse_mixed_versions(sittings: Sequence[Sitting]) -> None:
    """Raise UserError when an exam is there in two versions: its rows are no comparison."""
    for what in ("suite_version", "data_revision"):
        found: dict[tuple[str, str], str] = {}
        for sitting in sittings:
            facts = sitting.facts
            value = str(getattr(facts, what))
            first = found.setdefault((facts.suite, facts.split), value)
            if first != value:
                raise UserError(
                    f"Suite {facts.suite!r} is there with {what} {first} and {value} "
                    f"({sitting.logs[0]}): report the directories apart, or regrade the older one."
                )


def group_of(sitting: Sitting) -> Group:
    """Return what rows must share to be compared pair by pair."""
    facts = sitting.facts
    return (facts.suite, facts.split, facts.label, facts.pool_sha256, str(facts.seed))
