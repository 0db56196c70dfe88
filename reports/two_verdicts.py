"""Two verdicts on one reply: the suite's own, and the one its published evaluator would give.

LiveCodeBench's evaluator fails some correct programs (it mocks standard input, wraps the program
and does not join its threads), so a table that shows one rule alone cannot be set beside published
figures, and one that shows only the published rule understates some systems.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.ledger import Attempt
from reports.intervals import accuracy
from reports.render import UNKNOWN, percent


@dataclass(frozen=True, slots=True)
class TwoVerdicts:
    """How a system fares by the published evaluator's rule, beside its graded values."""

    official_accuracy: float | None
    """None when some graded reply has no official verdict."""
    differ: int
    """Graded (question, epoch) pairs on which the two verdicts differ."""
    ours: int
    """Of those, how many only the suite's own rule accepts."""
    errata: int
    """Of those, how many are to questions with a known fault."""

    @property
    def sentence(self) -> str:
        """The difference in words, for a footnote."""
        shown = percent(self.official_accuracy)
        rate = "accuracy unknown" if shown == UNKNOWN else f"accuracy {shown} %"
        verdicts = "1 verdict differs" if self.differ == 1 else f"{self.differ} verdicts differ"
        errata = f", {self.errata} with an erratum" if self.errata else ""
        return f"published evaluator: {rate}, {verdicts} ({self.ours} right only here{errata})"


def two_verdicts(attempts: Sequence[Attempt]) -> TwoVerdicts | None:
    """Compare both verdicts of the graded replies; None when the suite gives no second one."""
    graded = [attempt for attempt in attempts if attempt.graded]
    if not any(attempt.official is not None for attempt in graded):
        return None
    pairs = [(attempt, _official(attempt)) for attempt in graded]
    values: dict[str, list[float]] = {}
    for attempt, official in pairs:
        if official is not None:
            values.setdefault(attempt.question, []).append(official)
    whole = all(official is not None for _, official in pairs)
    other = [attempt for attempt, official in pairs if official not in (None, attempt.value)]
    return TwoVerdicts(
        official_accuracy=accuracy(values) if whole else None,
        differ=len(other),
        ours=sum(attempt.value == 1.0 for attempt in other),
        errata=sum(attempt.erratum for attempt in other),
    )


def _official(attempt: Attempt) -> float | None:
    """Return the official verdict; a reply without a program is wrong by either rule."""
    if attempt.official is None and not attempt.parsed:
        return attempt.value
    return attempt.official


def rule_columns(rules: TwoVerdicts | None) -> dict[str, Any]:
    """Return a row's columns on the published evaluator; none where the suite has none."""
    if rules is None:
        return {}
    return {
        "official_accuracy": rules.official_accuracy,
        "n_official_differ": rules.differ,
        "n_official_errata": rules.errata,
    }
