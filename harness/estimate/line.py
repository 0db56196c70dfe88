"""One line of an estimate, and the lines of systems that have not learnt yet what they will ask."""

from dataclasses import dataclass
from decimal import Decimal

from harness.estimate.cost import Estimator, Take, dearness, mean_of
from harness.estimate.plans import CountedCall
from harness.estimate.work import Work
from harness.plural import counted
from harness.workflow import MAX_STEPS


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A call that a question begins with: whose it is, and what it can cost."""

    worker: str
    usd: Decimal


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
    first: FirstCall | None = None
    """The cheapest call that it may begin with; None where nothing bounds one."""


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
        basis = f"not trained yet; at most {counted(steps, 'call')} a question"
    expected = Take(Decimal(calls), None, None, None)
    past = estimator.past.of_system(work.suite.name, work.title)
    if work.budget is not None and (usual := _usual_call(work, estimator)):
        expected = usual.times(Decimal(calls))
        basis = "its budget, at its workers' mean past call; at most: each reads four replies"
    elif work.budget is None and past:
        expected = mean_of(past).times(Decimal(left))
        basis = f"{counted(len(past), 'past answer')} of the same system; not trained yet"
    usual_usd = None if expected.usd is None else expected.usd / left if left else None
    return Line(
        work.suite.name, work.title, left, expected, most, calls, basis, one, one.usd, usual_usd
    )


def _usual_call(work: Work, estimator: Estimator) -> Take | None:
    """Return what one call takes in the mean over workers; None where one was never called."""
    names = estimator.spec.names
    found = [estimator.past.of_worker(work.suite.name, name) for name in names]
    known = [mean_of([one]).times(1 / Decimal(one.calls)) for one in found if one is not None]
    if len(known) < len(names):
        return None
    return sum(known, Take()).times(1 / Decimal(len(names)))


def _chain(steps: int, work: Work, estimator: Estimator) -> Take:
    """Return the dearest chain of calls on the longest question, each reading all before it."""
    question = max((one for one, _ in work.pairs), key=lambda one: len(one.text.encode()))
    found: list[Take] = []
    for name in estimator.spec.names:
        size = len(question.text.encode())
        chained = [CountedCall(name, size, tuple(range(at))) for at in range(steps)]
        found.append(estimator.at_most(chained))
    return max(found, key=dearness)
