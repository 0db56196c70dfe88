"""Planner, executor, verifier: the three-step workflow that people write by hand.

It is what a conductor must beat to show that *learning* the plan was worth it: same executor, same
workers, same number of calls for every question.
"""

from collections.abc import Sequence

from baselines.common import register
from baselines.single import known
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard, exactly, planned
from harness.workflow import Step, Workflow

PLAN = (
    "Do not answer the question yet. Write a short numbered plan for answering it: which facts are "
    "needed, what must be worked out, in which order."
)
EXECUTE = "Follow the plan above and answer the question, in the form it asks for."
VERIFY = (
    "Check the answer above: redo what could be wrong and correct any mistake. Then state the "
    "final answer to the question, in the form it asks for."
)
"""Our own wording; there is no published prompt for this workflow."""

ROLES = ("planner", "executor", "verifier")

PLANNER_EXECUTOR_VERIFIER = SystemCard(
    name="planner-executor-verifier",
    solver="baselines/planner_executor_verifier",
    summary="A planner writes a plan, an executor follows it, a verifier corrects the result.",
    source="podium (a common hand-written workflow)",
    calls="3",
    expected=exactly(lambda n, args: 3),
    prompts=(PLAN, EXECUTE, VERIFY),
    deviations=("roles go to workers of those names, else in pool order: nobody is best at one",),
)


def cast(workers: Sequence[str], named: Sequence[str | None]) -> tuple[str, ...]:
    """Return who plays which of `ROLES`.

    A role named by the user is taken as given; else a worker whose name is the role plays it; else
    the next worker in pool order who plays nothing yet; in a small pool they play twice.

    >>> cast(["abacus", "planner", "sage"], [None, "sage", None])
    ('planner', 'sage', 'abacus')
    """
    players = [
        given or (role if role in workers else None)
        for role, given in zip(ROLES, named, strict=True)
    ]
    free = [worker for worker in workers if worker not in players]
    queue = iter((free or list(workers)) * len(ROLES))
    return tuple(player or next(queue) for player in players)


@register
def planner_executor_verifier_system(
    planner: str | None = None, executor: str | None = None, verifier: str | None = None
) -> System:
    """Return the three-step system, each step reading all before it; `cast` fills open roles."""

    def plan(question: Question, pool: Pool) -> Workflow:
        players = [known(pool, one) for one in cast(pool.workers, (planner, executor, verifier))]
        reads = ((), (0,), (0, 1))
        return Workflow(tuple(map(Step, players, (PLAN, EXECUTE, VERIFY), reads)))

    return planned(plan)
