"""One line of an estimate, and the lines of systems that have not learnt yet what they will ask."""

from dataclasses import dataclass, replace
from decimal import Decimal

from harness.estimate.cost import Estimator, Take, dearness
from harness.estimate.plans import CountedCall, worst_case
from harness.estimate.work import Work
from harness.workflow import MAX_STEPS


@dataclass(frozen=True, slots=True)
class Line:
    """One suite and system."""

    suite: str
    system: str
    left: int
    """Questions times epochs without an answer."""
    expected: Take
    most: Take
    most_calls: int
    """95th percentile of past answers times those left, or what the plan can come to."""
    basis: str
    one: Take
    """What one question is expected to take; where that is not known, at most."""
    dearest: Decimal | None = Decimal(0)
    """Dollars that one question can cost at most; None is unknown."""
    usual: Decimal | None = None
    """Dollars that one question is expected to cost; None is unknown. A judge is no part of it."""


def unlearnt(work: Work, estimator: Estimator) -> Line:
    """Return the line of tries to learn by, or of a system that has not learnt yet.

    At most: the dearest worker makes every call on the longest question, and each reads the replies
    before it; of tries, each call reads four.
    """
    if work.budget is not None:
        whole, before = _chain(MAX_STEPS, work, estimator), _chain(MAX_STEPS - 1, work, estimator)
        one = whole + before.times(Decimal(-1))
        calls, basis = work.budget, "its budget of worker calls; at most: each reads four replies"
        most, left = one.times(Decimal(calls)), calls
    else:
        steps = work.steps or 1
        one, left = _chain(steps, work, estimator), len(work.pairs)
        calls, most = steps * left, one.times(Decimal(left))
        basis = f"not trained yet; at most {steps} calls a question"
    expected = Take(Decimal(calls), None, None, None)
    return Line(work.suite.name, work.title, left, expected, most, calls, basis, one, one.usd)


def _chain(steps: int, work: Work, estimator: Estimator) -> Take:
    """Return the dearest chain of calls on the longest question, each reading all before it."""
    question = max((one for one, _ in work.pairs), key=lambda one: len(one.text.encode()))
    found: list[Take] = []
    for name in estimator.spec.names:
        calls = worst_case(name, CountedCall("", 0), question)[2 : 2 + steps]
        chained = [replace(call, reads=tuple(range(at))) for at, call in enumerate(calls)]
        found.append(estimator.at_most(chained))
    return max(found, key=dearness)
