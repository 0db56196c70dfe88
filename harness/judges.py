"""Models that judge: who must have one, and how it is asked, in the role `grader`.

A judge is no worker. No pool of a sample holds it, no plan can name it, and its calls are in the
log in the phase of scoring: they are no system's cost. Not here: what a judge is told (the suite
that needs one writes that), and the rules that need none.
"""

from collections.abc import Sequence
from typing import Any

from inspect_ai.model import model_roles
from inspect_ai.solver import Generate, Solver, TaskState, solver

from harness.errors import UserError
from harness.pool_file import PoolSpec
from harness.records import GRADER, Question
from harness.suite import Judged, Suite

NO_JUDGE = (
    "Only a model can judge {} of the {} questions of suite {!r}: add a [grader] table to pool {}, "
    "or under `inspect eval` give --model-role grader=PROVIDER/MODEL."
)


def refuse_unjudged(suite: Suite[Any], questions: Sequence[Question], spec: PoolSpec) -> None:
    """Raise UserError when only a model can grade some of the questions and the pool has none."""
    if spec.grader is None:
        _refuse(suite, questions, repr(spec.name))


@solver
def judge_required(suite: Suite[Any], questions: Sequence[Question]) -> Solver:
    """Return a task's setup that refuses to answer what nobody could grade.

    Without the role Inspect would let the model that is examined grade itself. The roles of an eval
    are known only once it runs, so every sample is refused, before its first model call.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if GRADER not in model_roles():
            _refuse(suite, questions, "file")
        return state

    return solve


def _refuse(suite: Suite[Any], questions: Sequence[Question], pool: str) -> None:
    judged = sum(map(suite.needs_judge, questions)) if isinstance(suite, Judged) else 0
    if judged:
        raise UserError(NO_JUDGE.format(judged, len(questions), suite.name, pool))
