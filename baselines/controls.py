"""Controls: a random worker, a random workflow, the best worker at a conductor's cost."""

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from random import Random

from inspect_ai.solver import Solver, solver

from baselines.by_tests import best_of, public_results
from baselines.common import seeded_random
from baselines.single import alone, known
from baselines.voting import vote
from harness.errors import UserError
from harness.execute import Session, execute
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import Answer, Question, Reply
from harness.system import System, SystemCard, exactly, planned
from harness.workflow import MAX_STEPS, Step, Workflow

# § Random controls: what choosing costs when nobody chooses.
# §
# § `random-worker` is the router that knows nothing, `random-workflow` the conductor that
# § knows
# § nothing: the same executor and the same room for plans, without a policy. A conductor that
# § does not
# § beat it has learned nothing. Draws depend on seed, question and epoch only, so a resumed
# § run repeats
# § them.


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
        return alone(
            seeded_random(RANDOM_WORKER.name, seed, question.id, pool.epoch).choice(pool.workers)
        )

    return planned(plan)


def random_workflow_system(seed: int = 0, max_steps: int = MAX_STEPS) -> System:
    """Return the system that runs a random workflow, drawn per question and epoch."""
    if max_steps < 1:
        raise UserError(f"A workflow has at least 1 step, so max_steps cannot be {max_steps}.")

    def plan(question: Question, pool: Pool) -> Workflow:
        random = seeded_random(RANDOM_WORKFLOW.name, seed, question.id, pool.epoch)
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


# § The best single worker with as much compute as a conductor: is planning worth what it
# § costs?
# §
# § Self-consistency over k samples, k chosen so that a query takes as many list dollars, or
# § as many
# § tokens in and out, as the conductor's in the same run. Costs are no labels, so matching
# § them on the
# § exam itself gives nothing away. Not here: finding k (harness/run/entries.py).


MOST_SAMPLES = 1000
"""No conductor costs as much; a k beyond it is a mistake."""


def _matched(unit: str, what: str) -> SystemCard:
    return SystemCard(
        name=f"compute-matched-{unit}",
        solver="baselines/compute_matched",
        summary=f"The best single worker, sampled until a query takes as many {what}.",
        source="podium (control); self-consistency: Wang et al. 2022, arXiv 2203.11171",
        calls="k, so that the means are equal",
        group="controls",
        expected=lambda n, args: (_whole(args.get("k"), 0), _whole(args.get("k"), 1)),
        needs=frozenset({"match"}),
        on_best=True,
        deviations=(
            "k is a fraction: each question has one of the two whole numbers around it, drawn so "
            "that the mean is k, and never less than 1",
            "matched with what the other system cost on this exam; costs are no labels",
            "one call is what best-single's took on average on this exam, not each question's own",
            "a vote of equal answers; for programs the one that passes the most public tests where "
            "the exam shows some (best of n, the stronger and better-known), else identical texts",
        ),
    )


def _whole(k: float | None, more: int) -> int:
    if k is None:
        return 1 if not more else MOST_SAMPLES
    return floor(k) + (more if k > floor(k) else 0)


COMPUTE_MATCHED_USD = _matched("usd", "list dollars as a conductor's")
COMPUTE_MATCHED_TOKENS = _matched("tokens", "tokens, in and out, as a conductor's")


def sample_count(k: float, seed: int, question: str, epoch: int) -> int:
    """Return how often one question is asked: the floor or the ceiling of k, k on average.

    >>> sample_count(3.0, 0, "q", 1), {sample_count(1.5, 0, str(n), 1) for n in range(9)}
    (3, {1, 2})
    """
    whole = floor(k)
    return whole + (seeded_random("compute-matched", seed, question, epoch).random() < k - whole)


def compute_matched_system(worker: str, k: float, seed: int = 0) -> System:
    """Return the system that asks one worker k times on average, and votes."""
    if not 1 <= k <= MOST_SAMPLES:
        raise UserError(f"A matched k is between 1 and {MOST_SAMPLES}, not {k}.")

    async def answer(question: Question, pool: Pool) -> Answer:
        count = sample_count(k, seed, question.id, pool.epoch)
        asked = known(pool, worker)
        drawn = await execute(Workflow(tuple(Step(asked) for _ in range(count))), question, pool)
        return replace(drawn, text=await _choose_text(question, pool, drawn.replies))

    return answer


async def _choose_text(question: Question, pool: Pool, replies: Sequence[Reply]) -> str:
    """Return the best program by public tests where there are any, else what most replies say."""
    texts = list(dict.fromkeys(reply.text for reply in replies))
    if question.kind != "program" or pool.public_tests is None or len(texts) == 1:
        return vote(question.kind, [reply.text for reply in replies])
    return texts[best_of(await public_results(Session(question, pool), texts))]


@solver
def compute_matched(
    worker: str | None = None,
    k: float | None = None,
    matched_with: str = "",
    seed: int = 0,
    pool: str | None = None,
) -> Solver:
    """Ask one worker k times on average; `matched_with` travels in the log as provenance."""
    if worker is None or k is None:
        raise UserError("k is known once the system that is matched has sat the exam")
    return as_solver(compute_matched_system(worker, k, seed), pool)
