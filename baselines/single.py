"""One worker, asked once, exactly as its own vendor would be asked: the row to beat.

`single:<worker>` is any worker of the pool; `best-single` is the one that did best on the train
split, so that the choice has not seen the exam. Not here: routers, which choose per question.
"""

from collections.abc import Mapping

from inspect_ai.solver import Solver, solver

from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard, exactly, planned
from harness.workflow import Step, Workflow

HINDSIGHT = "hindsight"
"""`chosen_on` of a best single that was picked by the evaluation it is then shown in."""

SINGLE = SystemCard(
    name="single:<worker>",
    solver="baselines/single",
    summary="One worker answers the question alone.",
    source="podium",
    calls="1",
    expected=exactly(lambda n, args: 1),
    recorded=True,
)
BEST_SINGLE = SystemCard(
    name="best-single",
    solver="baselines/best_single",
    summary="The one worker with the highest accuracy on the train split answers alone.",
    source="podium",
    calls="1",
    group="controls",
    expected=exactly(lambda n, args: 1),
    on_best=True,
    recorded=True,
)


def alone(worker: str) -> Workflow:
    """Return the canonical single-worker request: the question and nothing else."""
    return Workflow((Step(worker),))


def known(pool: Pool, worker: str) -> str:
    """Return the worker's name; UserError before anything is asked when the pool lacks it."""
    if worker not in pool.workers:
        names = ", ".join(pool.workers)
        raise UserError(f"This pool has no worker {worker!r}; its workers are: {names}.")
    return worker


def at_least_one(who: str, name: str, value: int) -> None:
    """Raise UserError for a number of samples, turns or agents that asks nobody."""
    if value < 1:
        raise UserError(f"{who} needs {name} of at least 1, not {value}.")


def single_system(worker: str) -> System:
    """Return the system that asks one worker once."""

    def plan(question: Question, pool: Pool) -> Workflow:
        return alone(known(pool, worker))

    return planned(plan)


def choose(accuracies: Mapping[str, float]) -> str:
    """Return the worker with the highest accuracy; a tie goes to the first in the mapping's order.

    Give the accuracies in pool order and measured on the train split: chosen on the evaluation
    itself, the best of n noisy singles looks better than it is.

    >>> choose({"abacus": 0.5, "sage": 0.7, "scribe": 0.7})
    'sage'
    """
    if not accuracies:
        raise UserError("No worker has an accuracy: run the singles on the train split first.")
    return max(accuracies, key=lambda worker: accuracies[worker])


def provenance(chosen_on: str, n: int) -> str:
    """Return the footnote of a best-single row.

    >>> provenance("train", 60), provenance("hindsight", 30)
    ('chosen on 60 train questions', 'chosen in hindsight, on the 30 evaluation questions')
    """
    if chosen_on == HINDSIGHT:
        return f"chosen in hindsight, on the {n} evaluation questions"
    return f"chosen on {n} {chosen_on} questions"


@solver
def single(worker: str, pool: str | None = None) -> Solver:
    """Let one worker answer alone."""
    return as_solver(single_system(worker), pool)


@solver
def best_single(worker: str, chosen_on: str, n: int, pool: str | None = None) -> Solver:
    """Let the chosen worker answer alone; `chosen_on` and `n` travel in the log as provenance.

    `chosen_on` is `train`, `validation` or `hindsight`, `n` the number of questions it was chosen
    on.
    """
    if chosen_on not in ("train", "validation", HINDSIGHT):
        raise UserError(f"chosen_on is train, validation or hindsight, not {chosen_on!r}.")
    return as_solver(single_system(worker), pool)
