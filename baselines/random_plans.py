"""Random controls: what choosing costs when nobody chooses.

`random-worker` is the router that knows nothing, `random-workflow` the conductor that knows
nothing: the same executor and the same room for plans, without a policy. A conductor that does not
beat it has learned nothing. Draws depend on seed, question and epoch only, so a resumed run repeats
them.
"""

from random import Random

from inspect_ai.solver import Solver, solver

from baselines.draws import draws
from baselines.single import alone
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Question
from harness.system import System, SystemCard, exactly, planned
from harness.workflow import MAX_STEPS, Step, Workflow

SUBTASKS = (
    "",
    "Answer the question.",
    "Write down the facts that the question needs.",
    "Work out the next part of the solution.",
    "Check the work so far and correct mistakes.",
    "Use the work above, if there is any, to answer the question.",
)
"""Neutral on purpose: they name no field and no worker. Empty is the question alone."""

RANDOM_WORKER = SystemCard(
    name="random-worker",
    solver="baselines/random_worker",
    summary="A worker drawn uniformly for each question answers alone.",
    source="podium (control)",
    calls="1",
    group="controls",
    expected=exactly(lambda n, args: 1),
    recorded=True,
)
RANDOM_WORKFLOW = SystemCard(
    name="random-workflow",
    solver="baselines/random_workflow",
    summary="A workflow of 1 to 5 steps drawn at random for each question.",
    source="podium (control)",
    calls="1-5, 3 on average",
    group="controls",
    expected=lambda n, args: (1, int(args.get("max_steps") or MAX_STEPS)),
    prompts=tuple(filter(None, SUBTASKS)),
)


def random_steps(random: Random, workers: tuple[str, ...], max_steps: int) -> Workflow:
    """Draw a valid workflow: its length, then each step's worker, subtask and reads, uniformly."""
    steps = [
        Step(
            worker=random.choice(workers),
            subtask=random.choice(SUBTASKS),
            reads=tuple(read for read in range(index) if random.random() < 0.5),
        )
        for index in range(random.randint(1, max_steps))
    ]
    return Workflow(tuple(steps))


def random_worker_system(seed: int = 0) -> System:
    """Return the system that asks one worker, drawn uniformly per question and epoch."""

    def plan(question: Question, pool: Pool) -> Workflow:
        return alone(draws(RANDOM_WORKER.name, seed, question.id, pool.epoch).choice(pool.workers))

    return planned(plan)


def random_workflow_system(seed: int = 0, max_steps: int = MAX_STEPS) -> System:
    """Return the system that runs a random workflow, drawn per question and epoch."""
    if max_steps < 1:
        raise UserError(f"A workflow has at least 1 step, so max_steps cannot be {max_steps}.")

    def plan(question: Question, pool: Pool) -> Workflow:
        random = draws(RANDOM_WORKFLOW.name, seed, question.id, pool.epoch)
        return random_steps(random, pool.workers, max_steps)

    return planned(plan)


@solver
def random_worker(seed: int = 0, pool: str | None = None) -> Solver:
    """Let a random worker answer alone."""
    return as_solver(random_worker_system(seed), pool)


@solver
def random_workflow(seed: int = 0, max_steps: int = MAX_STEPS, pool: str | None = None) -> Solver:
    """Run a random workflow of at most `max_steps` steps."""
    return as_solver(random_workflow_system(seed, max_steps), pool)
