"""What the solvers and scorers of a run find around them: folder, pool, journal, box."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from inspect_ai.solver import Generate, Solver, TaskState, solver

from harness.ledger.recorder import TaskJournal
from harness.pool import PublicTests
from harness.pool_config import PoolSpec
from harness.records import Grade, Question
from harness.suite import PubliclyTested, Suite

# § Where a run stands while its solvers and scorers are made: what names in their arguments
# § mean.


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run stands while its solvers are made.

    A solver's arguments are its identity when a run is resumed. So they hold names, and what the
    names mean (a pool file's content, a folder) comes from here: a moved directory stays the same.
    """

    log_dir: Path = Path()
    """Relative file arguments are found below it."""
    spec: PoolSpec | None = None
    """The pool of the run; its name means this content."""
    journal: TaskJournal | None = None
    """Where the calls of the task that is being made will be written down."""
    trial: PublicTests | None = None
    """How the exam's public tests are run, where it has some and a box."""
    at_once: anyio.CapacityLimiter | None = None
    """The places for programs that trials and scorers of the whole run share."""


PLACE: ContextVar[RunContext] = ContextVar("podium_place", default=RunContext())  # noqa: B039 - it is frozen


@contextmanager
def run_context(place: RunContext) -> Generator[None]:
    """Let solvers and scorers that are made within know where the run stands."""
    token = PLACE.set(place)
    try:
        yield
    finally:
        PLACE.reset(token)


# § Trials: running a program on the tests that its question shows, for systems that ask.
# §
# § A trial is no call and costs no dollars. It shares the scorer's places: programs that are
# § tried and
# § programs that are graded are together no more than the run allows. Not here: which tests
# § those are
# § (suites/code_grading.py) and the judging (suites/code_grading.py).


TRIAL: ContextVar[PublicTests | None] = ContextVar("podium_trial", default=None)
"""How the running sample's public tests are run, where its task says so (`inspect eval`)."""


def public_tests_of(
    suite: Suite[Any], box: Any | None, at_once: anyio.CapacityLimiter
) -> PublicTests | None:
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
def offer_public_tests(trial: PublicTests) -> Solver:
    """Let the solvers that follow in this sample run public tests: for tasks made by themselves."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        TRIAL.set(trial)
        return state

    return solve
