"""One worker, asked once, exactly as its own vendor would be asked: the row to beat.

`single:<worker>` is any worker of the pool; `best-single` is the one that did best on the train
split, so that the choice has not seen the eval split.
"""

from collections.abc import Mapping

from inspect_ai.solver import Solver, solver

from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.system import Expected, System, SystemCard, exactly, planned
from harness.workflow import Step, Workflow

ONE_CALL = exactly(lambda n, args: 1)


def calls_by(name: str, usual: int, more: int = 0) -> Expected:
    """Return the expectation of as many calls as an argument says, and `more`."""
    return exactly(lambda n, args: int(args.get(name) or usual) + more)


SINGLE = SystemCard(
    name="single:<worker>",
    solver="baselines/single",
    summary="One worker answers the question alone.",
    source="podium",
    calls="1",
    expected=ONE_CALL,
    recorded=True,
)
BEST_SINGLE = SystemCard(
    name="best-single",
    solver="baselines/best_single",
    summary="The one worker with the highest accuracy on the train split answers alone.",
    source="podium",
    calls="1",
    group="controls",
    expected=ONE_CALL,
    on_best=True,
    recorded=True,
)


def alone(worker: str) -> Workflow:
    """Return the canonical single-worker request: the question and nothing else."""
    return Workflow((Step(worker),))


def known(pool: Pool, worker: str | None) -> str:
    """Return a worker's name, by default the pool's first; UserError when the pool lacks it."""
    asked = pool.workers[0] if worker is None else worker
    if asked not in pool.workers:
        names = ", ".join(pool.workers)
        raise UserError(f"This pool has no worker {asked!r}; its workers are: {names}.")
    return asked


def at_least_one(who: str, name: str, value: int) -> None:
    """Raise UserError for a number of samples, turns or agents that asks nobody."""
    if value < 1:
        raise UserError(f"{who} needs {name} of at least 1, not {value}.")


def single_system(worker: str) -> System:
    """Return the system that asks one worker once."""
    return planned(lambda _, pool: alone(known(pool, worker)))


def choose(accuracies: Mapping[str, float]) -> str:
    """Return the worker with the highest accuracy on the train split; a tie goes to the first.

    >>> choose({"abacus": 0.5, "sage": 0.7, "scribe": 0.7})
    'sage'
    """
    if not accuracies:
        raise UserError("No worker has an accuracy: run the singles on the train split first.")
    return max(accuracies, key=lambda worker: accuracies[worker])


@solver
def single(worker: str, pool: str | None = None) -> Solver:
    """Let one worker answer alone."""
    return as_solver(single_system(worker), pool)


@solver
def best_single(worker: str, chosen_on: str, n: int, pool: str | None = None) -> Solver:
    """Let the worker answer alone that was chosen on `n` questions of `chosen_on`.

    Both travel in the log as provenance; `hindsight` is the evaluation that it is then shown in.
    """
    if chosen_on not in ("train", "validation", "hindsight"):
        raise UserError(f"chosen_on is train, validation or hindsight, not {chosen_on!r}.")
    return as_solver(single_system(worker), pool)
