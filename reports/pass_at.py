"""pass@k: how often at least one of k tries at a question is right, estimated without bias.

The estimate of one question is reports/stats/tries.py. pass@1 is the accuracy that a table shows.
"""

from dataclasses import dataclass

from reports.intervals import Interval, Values, accuracy, accuracy_interval
from reports.stats.tries import pass_at as estimate

KS = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class PassAt:
    """One pass@k with its interval; the question is the unit, as in the rest of a table."""

    k: int
    value: float
    interval: Interval
    questions: int


def pass_at(values: Values) -> tuple[PassAt, ...]:
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


def _pass_at(values: Values, k: int) -> PassAt:
    tried = {question: one for question, one in values.items() if len(one) >= k}
    means = {
        question: [estimate(len(one), sum(grade == 1.0 for grade in one), k)]
        for question, one in tried.items()
    }
    value, interval = accuracy(means), accuracy_interval(means)
    assert value is not None, "some question has k tries"
    assert interval is not None, "and so an interval"
    return PassAt(k, value, interval, len(means))
