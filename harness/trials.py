"""Trials: running a program on the tests that its question shows, for systems that ask.

A trial is no call and costs no dollars. It shares the scorer's places: programs that are tried and
programs that are graded are together no more than the run allows. Not here: which tests those are
(suites/shown_tests.py) and the judging (suites/programs.py).
"""

from contextvars import ContextVar
from typing import Any

import anyio
import anyio.to_thread
from inspect_ai.solver import Generate, Solver, TaskState, solver

from harness.pool import Trial
from harness.records import Grade, Question
from harness.suite import PubliclyTested, Suite

TRIAL: ContextVar[Trial | None] = ContextVar("podium_trial", default=None)
"""How the running sample's public tests are run, where its task says so (`inspect eval`)."""


def trial_of(suite: Suite[Any], box: Any | None, at_once: anyio.CapacityLimiter) -> Trial | None:
    """Return how a suite's public tests are run in a box; None where it has none, or no box.

    A trial raises what the box raises: then the sample has failed, and no reply is worse for it.
    """
    if box is None or not isinstance(suite, PubliclyTested):
        return None

    async def trial(question: Question, reply: str) -> Grade:
        return await anyio.to_thread.run_sync(
            suite.try_public, question.sealed(), reply, box, limiter=at_once
        )

    return trial


@solver
def offering_trials(trial: Trial) -> Solver:
    """Let the solvers that follow in this sample run public tests: for tasks made by themselves."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        TRIAL.set(trial)
        return state

    return solve
