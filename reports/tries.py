"""Several tries and two verdicts: pass@k, maj@k, and what the published evaluator says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.ledger.totals import QuestionResult, SystemRun
from reports.intervals import Interval, Values, accuracy, accuracy_interval
from reports.render import UNKNOWN, percent
from reports.stats import maj_at_k
from reports.stats import pass_at_k as estimate

# § pass@k: how often at least one of k tries at a question is right, estimated without bias.
# §
# § The estimate of one question is reports/stats.py. pass@1 is the accuracy that a table
# § shows.


KS = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class PassAtK:
    """One pass@k with its interval; the question is the unit, as in the rest of a table."""

    k: int
    value: float
    interval: Interval
    questions: int


def pass_at_ks(values: Values) -> tuple[PassAtK, ...]:
    """Return pass@k for each k of `KS` that the tries allow; empty unless some k above 1 is.

    A question with fewer than k graded tries is left out of pass@k. Nothing is estimated from
    grades between 0 and 1.
    """
    grades = [grade for one in values.values() for grade in one]
    if not grades or not set(grades) <= {0.0, 1.0}:
        return ()
    most = max(len(one) for one in values.values())
    some = [k for k in KS if k <= most]
    return tuple(_pass_at(values, k) for k in some) if len(some) > 1 else ()


def _pass_at(values: Values, k: int) -> PassAtK:
    tried = {question: one for question, one in values.items() if len(one) >= k}
    means = {
        question: [estimate(len(one), sum(grade == 1.0 for grade in one), k)]
        for question, one in tried.items()
    }
    value, interval = accuracy(means), accuracy_interval(means)
    assert value is not None, "some question has k tries"
    assert interval is not None, "and so an interval"
    return PassAtK(k, value, interval, len(means))


# § maj@k of k-epoch logs: what the most frequent answer would have got, without one more
# § call.


FEWEST = 3
"""Of one or two tries the majority is one of them."""


def majority(sitting: SystemRun, k: int | None = None) -> tuple[int, Values] | None:
    """Return k and question -> expected grade of the majority of k tries; all epochs for no k.

    A question with fewer than k graded tries is left out. None where k is below 3, above the
    epochs, or where no answer that could be compared was logged.
    """
    k = sitting.epochs if k is None else k
    if not FEWEST <= k <= sitting.epochs:
        return None
    tries: dict[str, list[tuple[str | None, float]]] = {}
    for one in sitting.attempts:
        if one.value is not None:
            tries.setdefault(one.question, []).append((one.vote, one.value))
    whole = {question: made for question, made in tries.items() if len(made) >= k}
    if not any(vote for made in whole.values() for vote, _ in made):
        return None
    return k, {
        question: [maj_at_k([vote for vote, _ in made], [value for _, value in made], k)]
        for question, made in whole.items()
    }


def majority_columns(sitting: SystemRun, k: int | None) -> dict[str, Any]:
    """Return a row's columns on the majority of its tries; none where it has none."""
    found = majority(sitting, k)
    return {} if found is None else {"maj_k": found[0], "maj_accuracy": accuracy(found[1])}


# § Two verdicts on one reply: the suite's own, and the one its published evaluator would
# § give.
# §
# § LiveCodeBench's evaluator fails some correct programs (it mocks standard input, wraps the
# § program
# § and does not join its threads), so a table that shows one rule alone cannot be set beside
# § published
# § figures, and one that shows only the published rule understates some systems.


@dataclass(frozen=True, slots=True)
class OfficialAgreement:
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


def official_agreement(attempts: Sequence[QuestionResult]) -> OfficialAgreement | None:
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
    return OfficialAgreement(
        official_accuracy=accuracy(values) if whole else None,
        differ=len(other),
        ours=sum(attempt.value == 1.0 for attempt in other),
        errata=sum(attempt.erratum for attempt in other),
    )


def _official(attempt: QuestionResult) -> float | None:
    """Return the official verdict; a reply without a program is wrong by either rule."""
    if attempt.official is None and not attempt.parsed:
        return attempt.value
    return attempt.official


def official_columns(rules: OfficialAgreement | None) -> dict[str, Any]:
    """Return a row's columns on the published evaluator; none where the suite has none."""
    if rules is None:
        return {}
    return {
        "official_accuracy": rules.official_accuracy,
        "n_official_differ": rules.differ,
        "n_official_errata": rules.errata,
    }
