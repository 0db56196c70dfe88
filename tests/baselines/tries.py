"""Rounds of tries without Inspect: an explorer, scripted or rehearsal workers, and a grader.

`explored` runs what the engine of `podium run` runs (harness/run/lessons.py), in memory and at
once. Not here: logs, budgets that are refused, resuming; those are tests of the engine itself.
"""

from collections.abc import Callable
from typing import Any

import anyio

from podium.baselines import _registry
from podium.harness.inspect_adapters import system_of
from podium.harness.learning import Explorer, Round, TrainingBudget, TrialResult
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from podium.harness.system import System

PoolOf = Callable[[int], Pool]
"""Returns a fresh pool for an epoch."""


def ask(system: System, pool: Pool, question: Question) -> Answer:
    """Let a system answer one sealed question."""
    return anyio.run(system, question.sealed(), pool)


def tried_in(
    asked: Round, task: TrainingBudget, targets: dict[str, str], pool_of: PoolOf
) -> list[TrialResult]:
    """Make the tries of one round; a reply is right when it ends in the target."""
    make: Any = getattr(_registry, asked.solver.partition("/")[2])
    system = system_of(make(**asked.args))
    found: list[TrialResult] = []
    for question in task.questions[asked.first : asked.first + asked.questions]:
        for epoch in range(1, asked.epochs + 1):
            answer = ask(system, pool_of(epoch), question)
            value = float(answer.text.endswith(targets[question.id]))
            calls, plan = len(answer.replies), answer.plan or ""
            found.append(TrialResult(question.id, epoch, value, calls, 0.001, plan, answer.noted))
    return found


def explored(
    explorer: Explorer, task: TrainingBudget, targets: dict[str, str], pool_of: PoolOf
) -> list[list[TrialResult]]:
    """Run an explorer to the end of its budget."""
    done: list[list[TrialResult]] = []
    while (asked := explorer.next_round(task, done)) is not None:
        done.append(tried_in(asked, task, targets, pool_of))
    return done
