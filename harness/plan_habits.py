"""Did a conductor learn to orchestrate? Statistics of its plans, and whether they collapsed.

An open reproduction of the Conductor's method went from 40.0 to 81.7 % while its accuracy given a
valid plan stayed at 96 %: it had learnt the format and one worker. These figures reveal such cases.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

COLLAPSED = 0.98
"""A conductor's plans count as collapsed if this share of steps has one worker, or of plans has one
step."""
FEWEST = 20  # minimum number of plans to judge a collapse


@dataclass(frozen=True, slots=True)
class PlanHabits:
    """Statistics of a conductor's plans for many questions."""

    plans: int
    one_step: float
    """Share of a conductor's plans with exactly one step."""
    distinct: int
    """Number of different shapes: a plan's workers and the steps that each reads
    (`Workflow.shape`)."""
    commonest: float
    """Share of plans with the most frequent shape."""
    workers: Mapping[str, float]
    """Worker -> its share of the steps of all plans."""

    @property
    def worker_entropy(self) -> float:
        """Entropy of the workers' shares, in bits; 0 if all steps have the same worker."""
        return entropy(self.workers.values())

    @property
    def collapse(self) -> str:
        """How the plans have collapsed, e.g. `one step`; empty if they have not."""
        if self.plans < FEWEST:
            return ""
        return collapse_of(self.workers, self.one_step, self.distinct)


def plan_habits(shapes: Sequence[str]) -> PlanHabits | None:
    """Return the statistics of plans, given their shapes; None if there are no plans.

    >>> found = plan_habits(["sage"] * 3 + ["scholar, abacus(1)"])
    >>> found.one_step, found.distinct, found.commonest, round(found.worker_entropy, 2)
    (0.75, 2, 0.75, 1.37)
    """
    if not shapes:
        return None
    count = Counter(shapes)
    counts: Counter[str] = Counter()
    alone = 0
    for shape, times in count.items():
        workers = [step.partition("(")[0] for step in shape.split(", ")]
        alone += times * (len(workers) == 1)
        counts.update({name: times * number for name, number in Counter(workers).items()})
    return PlanHabits(
        plans=len(shapes),
        one_step=alone / len(shapes),
        distinct=len(count),
        commonest=max(count.values()) / len(shapes),
        workers={name: number / counts.total() for name, number in sorted(counts.items())},
    )


def entropy(shares: Iterable[float]) -> float:
    """Return the entropy of shares that add up to 1, in bits."""
    return sum(-share * log2(share) for share in shares if share > 0) or 0.0


def collapse_of(workers: Mapping[str, float], one_step: float, distinct: float | None) -> str:
    """Return how plans collapsed: one worker, one step, one or two plans; empty if they did not.

    `workers` has each worker's share of the steps, `one_step` the share of plans with one step.
    `distinct` is the number of different plans; None if they were not counted.
    """
    top = max(workers, key=lambda name: workers[name], default="")
    habits = [f"one worker ({top})"] if top and workers[top] >= COLLAPSED else []
    habits += ["one step"] if one_step >= COLLAPSED else []
    few = {1: "one plan", 2: "two plans"}.get(int(distinct or 0), "")
    return " and ".join(habits) or few
