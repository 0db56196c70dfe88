"""A `System` is anything that can sit an exam; `planned` makes one from a plan.

A system sees a sealed question and a pool, and returns an answer. It never sees a target, a suite
or a grader. `harness/solver.py` turns it into an Inspect solver.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.execute import Budget, execute
from harness.pool import Pool
from harness.records import Answer, Question
from harness.workflow import Malformed, Workflow

Plan = Callable[[Question, Pool], Workflow]
"""A hand-written plan: a pure function of the sealed question and the pool's worker names."""


class System(Protocol):
    """Anything that can sit an exam."""

    async def __call__(self, question: Question, pool: Pool) -> Answer:
        """Answer one sealed question; raise `WorkerError` when a worker gave no reply."""
        ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a system says about itself: `podium systems NAME` prints it, the table footnotes it."""

    name: str
    """As in tables: `moa-lite`."""
    solver: str
    """Registry name for Inspect users: `baselines/moa_lite`."""
    summary: str
    source: str
    """Paper or repository, or `podium` for controls of our own."""
    calls: str
    """Expected worker calls per question, e.g. `n + 1`."""
    recorded: bool = False
    """True when it makes canonical single-worker requests only: recorded replies can serve it."""
    uses_targets: bool = False
    """True for labelled controls that look at targets (oracle); never comparable as a method."""
    deviations: tuple[str, ...] = ()
    on_label: Mapping[str, str] = field(default_factory=dict[str, str])
    """A footnote for pools of one label only: `recorded` or `rehearsal`."""


def planned(plan: Plan, budget: Budget | None = None) -> System:
    """Return the system that writes a workflow with `plan` and runs it within `budget`."""

    async def answer(question: Question, pool: Pool) -> Answer:
        return await execute(plan(question, pool), question, pool, budget or Budget())

    return answer


def malformed(reason: Malformed) -> Answer:
    """Return the empty answer of a system whose plan could not be run: graded, and wrong."""
    return Answer(text="", plan=f"malformed: {reason.reason}")
