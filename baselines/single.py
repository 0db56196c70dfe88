"""One worker alone: asked once, or with more turns or a higher token limit.

`single:<worker>` is any worker of the pool. `best-single`, the row to beat, is the worker with the
best train accuracy, so that the choice has not seen the eval split. The Conductor paper's controls
with five times the compute, `self-reflection` and `long-context`, get no feedback on the answer;
by_tests.py has systems with feedback from tests.
"""

from collections.abc import Mapping

from inspect_ai.solver import Solver, solver

from podium.baselines.common import register
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_solver
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.system import Calls, Expected, System, SystemCard, exactly, planned
from podium.harness.workflow import Sampling, Step, Workflow

ONE_CALL = exactly(lambda n, args: 1)


def calls_by(name: str, usual: int, extra: int = 0) -> Expected:
    """Return a function for expected calls: solver argument `name` (or `usual`) plus `extra`."""
    return exactly(lambda n, args: int(args.get(name) or usual) + extra)


SINGLE = SystemCard(
    name="single:<worker>",
    solver="podium/single",
    summary="One worker answers the question alone.",
    source="podium",
    calls=Calls("1", ONE_CALL),
    traits=frozenset({"recorded"}),
    acts="passes",
)
BEST_SINGLE = SystemCard(
    name="best-single",
    solver="podium/best_single",
    summary="The one worker with the highest accuracy on the train split answers alone.",
    source="podium",
    calls=Calls("1", ONE_CALL),
    group="controls",
    traits=frozenset({"best worker", "recorded"}),
    acts="passes",
)


def alone(worker: str) -> Workflow:
    """Return the plan of one step, in which `worker` gets the question and nothing else."""
    return Workflow((Step(worker),))


def known(pool: Pool, worker: str | None) -> str:
    """Return `worker` (None: the pool's first worker); UserError if the pool does not have it."""
    name = pool.workers[0] if worker is None else worker
    if name not in (*pool.workers, *pool.variants):
        names = ", ".join(pool.workers)
        raise UserError(f"This pool has no worker {name!r}; its workers are: {names}.")
    return name


def at_least_one(system: str, name: str, value: int) -> None:
    """Raise UserError if argument `name` of a system (a number of samples or agents) is below 1."""
    if value < 1:
        raise UserError(f"{system} needs {name} of at least 1, not {value}.")


def single_system(worker: str) -> System:
    """Return the system that asks `worker` once per question."""
    return planned(lambda _, pool: alone(known(pool, worker)))


def choose(accuracies: Mapping[str, float]) -> str:
    """Return the worker of highest accuracy, the first in a tie; UserError if there is no worker.

    >>> choose({"abacus": 0.5, "sage": 0.7, "scribe": 0.7})
    'sage'
    """
    if not accuracies:
        raise UserError(
            "No worker has a known accuracy. Run the workers alone on the train split first, with "
            "`podium run --system single --split train`."
        )
    return max(accuracies, key=lambda worker: accuracies[worker])


@solver
def single(worker: str, pool: str | None = None) -> Solver:
    """Return the Inspect solver in which one worker answers alone."""
    return as_solver(single_system(worker), pool)


@solver
def best_single(worker: str, chosen_on: str, n: int, pool: str | None = None) -> Solver:
    """Return the Inspect solver in which the best worker answers alone.

    The worker was chosen on `n` questions of the split `chosen_on`; `hindsight` means the evaluated
    questions. Both values are only logged.
    """
    if chosen_on not in ("train", "validation", "hindsight"):
        raise UserError(f"chosen_on must be train, validation or hindsight, not {chosen_on!r}.")
    return as_solver(single_system(worker), pool)


REVIEW = (
    "Review your work so far. Look for mistakes in every attempt above, correct what is wrong, and "
    "then give your final answer to the question, in the form it asks for."
)
"""The review prompt of self-reflection, in our words: the paper (arXiv 2512.04388) prints none."""

TIMES = 5  # prompts of self-reflection; also the factor of the token limit (arXiv 2512.04388)

PAPER = "the 5x rows of the Conductor paper, arXiv 2512.04388"

SELF_REFLECTION = SystemCard(
    name="self-reflection",
    solver="podium/self_reflection",
    summary="One worker answers, then reviews its answer k - 1 times in one conversation.",
    source=PAPER,
    calls=Calls("k, with k = 5 by default", calls_by("k", TIMES)),
    prompts=(REVIEW,),
    k="k",
    traits=frozenset({"best worker"}),
    deviations=(
        "the review prompt is in our own words (the paper prints none)",
        "always k prompts (the paper: up to five), and the last reply is the answer",
        "the worker is the best on the train split (the paper: each worker, a row of its own)",
    ),
    acts="last step acts",
)
LONG_CONTEXT = SystemCard(
    name="long-context",
    solver="podium/long_context",
    summary="One worker answers once, with five times its token limit.",
    source=PAPER,
    calls=Calls("1", ONE_CALL),
    k="times",
    traits=frozenset({"best worker"}),
    deviations=(
        "five times the worker's own token limit (the paper: 20 K after 4 K output tokens)",
        "a worker without a token limit is asked as it is, which makes this row a single one",
        "the worker is the best on the train split (the paper: each worker, a row of its own)",
    ),
    acts="passes",
)


@register
def self_reflection_system(worker: str | None = None, k: int = TIMES) -> System:
    """Return self-reflection: a worker answers, then is asked `k - 1` times to review its work."""
    at_least_one("Self-reflection", "k", k)

    def plan(question: Question, pool: Pool) -> Workflow:
        name = known(pool, worker)
        reviews = (Step(name, REVIEW, reads="all") for _ in range(k - 1))
        return Workflow((Step(name), *reviews))

    return planned(plan)


@register
def long_context_system(worker: str | None = None, times: int = TIMES) -> System:
    """Return the system that asks a worker once, with `times` times its own token limit."""
    at_least_one("Long context", "times", times)

    sampling = Sampling(times_max_tokens=times)
    return planned(lambda _, pool: Workflow((Step(known(pool, worker), sampling=sampling),)))
