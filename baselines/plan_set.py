"""The plans among which the oracle chooses: an enumerated, bounded set, shortest first.

With n workers it holds n singles, 2 n (n - 1) chains of two, n (n - 1) (n - 2) chains of three and,
from four workers on, n fan-ins of at most five steps: 464 plans for eight workers. Subtasks are
neutral, because a plan that spells out a solution would be one more worker. The best plan of *any*
wording may be better still, so the oracle is the oracle of this set.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations

from harness.workflow import MAX_STEPS, Step, Workflow

GATHER = "Write down the facts and intermediate results that answering the question needs."
USE = "Use the work above to answer the question."
FINISH = "State the final answer of the work above, in the form the question asks for."


def enumerate_plans(workers: Sequence[str]) -> tuple[Workflow, ...]:
    """Return every plan of the set, in the order in which they are tried.

    >>> len(enumerate_plans(["a", "b", "c"])), len(enumerate_plans("abcdefgh"))
    (21, 464)
    """
    return (
        *singles(workers),
        *_pairs(workers),
        *_triples(workers),
        *_fan_ins(workers),
    )


def singles(workers: Sequence[str]) -> tuple[Workflow, ...]:
    """Return the canonical requests: all that a recorded pool can answer."""
    return tuple(Workflow((Step(worker),)) for worker in workers)


def _pairs(workers: Sequence[str]) -> Iterator[Workflow]:
    """One answers or gathers, another one uses it."""
    for subtask in (GATHER, ""):
        for first, second in permutations(workers, 2):
            yield Workflow((Step(first, subtask), Step(second, USE, reads=(0,))))


def _triples(workers: Sequence[str]) -> Iterator[Workflow]:
    """One gathers, one uses, one finishes: look up, compute, put into form."""
    for first, second, third in permutations(workers, 3):
        steps = (Step(first, GATHER), Step(second, USE, "all"), Step(third, FINISH, "all"))
        yield Workflow(steps)


def _fan_ins(workers: Sequence[str]) -> Iterator[Workflow]:
    """The next workers in pool order answer at once, one aggregates; three workers are triples."""
    if len(workers) < MAX_STEPS - 1:
        return
    for at, aggregator in enumerate(workers):
        others = (*workers[at + 1 :], *workers[:at])[: MAX_STEPS - 1]
        steps = [Step(worker) for worker in others]
        yield Workflow((*steps, Step(aggregator, USE, reads="all")))
