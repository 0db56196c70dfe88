"""Did a conductor learn to orchestrate? What its plans have in common, and when they collapsed.

An open reproduction of the Conductor's method went from 40.0 to 81.7 % while its accuracy given a
valid plan stayed at 96 %: it had learnt the format and one worker. These figures tell both apart.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

COLLAPSED = 0.98
"""Share of steps, or of plans, from which on they count as all alike."""
FEWEST = 20  # plans that say something of a habit


@dataclass(frozen=True, slots=True)
class PlanHabits:
    """What the plans of many questions have in common."""

    plans: int
    one_step: float
    """Share of plans with one step."""
    distinct: int
    """Different shapes: whom a plan asks, and who reads whom (`Workflow.shape`)."""
    commonest: float
    """Share of plans with the commonest shape."""
    workers: Mapping[str, float]
    """Each worker's share of all steps."""

    @property
    def worker_entropy(self) -> float:
        """Entropy of the workers' shares, in bits: 0 if all steps ask one worker."""
        return entropy(self.workers.values())

    @property
    def collapse(self) -> str:
        """To what the plans have collapsed, in words; empty if they have not."""
        if self.plans < FEWEST:
            return ""
        return collapse_of(self.workers, self.one_step, self.distinct)


def plan_habits(shapes: Sequence[str]) -> PlanHabits | None:
    """Return the habits of plans, by their shapes; None without any.

    >>> found = plan_habits(["sage"] * 3 + ["scholar, abacus(1)"])
    >>> found.one_step, found.distinct, found.commonest, round(found.worker_entropy, 2)
    (0.75, 2, 0.75, 1.37)
    """
    if not shapes:
        return None
    count = Counter(shapes)
    asked: Counter[str] = Counter()
    alone = 0
    for shape, times in count.items():
        workers = [step.partition("(")[0] for step in shape.split(", ")]
        alone += times * (len(workers) == 1)
        asked.update({name: times * number for name, number in Counter(workers).items()})
    return PlanHabits(
        plans=len(shapes),
        one_step=alone / len(shapes),
        distinct=len(count),
        commonest=max(count.values()) / len(shapes),
        workers={name: number / asked.total() for name, number in sorted(asked.items())},
    )


def entropy(shares: Iterable[float]) -> float:
    """Return the entropy of shares that add up to 1, in bits."""
    return sum(-share * log2(share) for share in shares if share > 0) or 0.0


def collapse_of(workers: Mapping[str, float], one_step: float, distinct: float | None) -> str:
    """Return to what plans have collapsed: one worker, one step, two plans; empty if to none.

    `distinct` is None where nobody counted the different plans.
    """
    top = max(workers, key=lambda name: workers[name], default="")
    parts = [f"one worker ({top})"] if top and workers[top] >= COLLAPSED else []
    parts += ["one step"] if one_step >= COLLAPSED else []
    few = {1: "one plan", 2: "two plans"}.get(int(distinct or 0), "")
    return " and ".join(parts) or few
