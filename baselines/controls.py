"""Controls: a random worker, a random workflow, the best worker at a conductor's cost.

`random-workflow` uses a conductor's executor and plan limits. `compute-matched-*` tests whether
planning is worth its cost: the best worker answers k times, then a vote or public tests decide. The
run sets k, from costs and not grades, so that a query takes as many list dollars or tokens as a
conductor's.
"""

from math import ceil, floor
from random import Random

from podium.baselines.by_tests import best_of, is_tested, public_results
from podium.baselines.common import register, seeded_random
from podium.baselines.single import ONE_CALL, alone, known
from podium.baselines.voting import vote
from podium.harness.errors import UserError
from podium.harness.execute import Session
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from podium.harness.system import Calls, System, SystemCard, planned
from podium.harness.workflow import MAX_STEPS, Step, Workflow

SUBTASKS = (
    "",
    "Answer the question.",
    "Write down the facts that the question needs.",
    "Work out the next part of the solution.",
    "Check the work so far and correct mistakes.",
    "Use the work above, if there is any, to answer the question.",
)
"""Subtasks from which a random workflow draws; none mentions a subject or a worker. With the empty
subtask, a step sends only the question."""

RANDOM_WORKER = SystemCard(
    name="random-worker",
    solver="podium/random_worker",
    summary="A worker drawn uniformly for each question answers alone.",
    source="podium (control)",
    calls=Calls("1", ONE_CALL),
    group="controls",
    traits=frozenset({"recorded"}),
    acts="passes",
)
RANDOM_WORKFLOW = SystemCard(
    name="random-workflow",
    solver="podium/random_workflow",
    summary="A workflow of 1 to 5 steps drawn at random for each question.",
    source="podium (control)",
    calls=Calls("1-5, 3 on average", lambda n, args: (1, int(args.get("max_steps") or MAX_STEPS))),
    group="controls",
    prompts=tuple(filter(None, SUBTASKS)),
    acts="last step acts",
)


def random_steps(random: Random, workers: tuple[str, ...], max_steps: int) -> Workflow:
    """Return a random workflow of 1 to `max_steps` steps: workers, subtasks and steps to read."""
    steps = [
        Step(
            worker=random.choice(workers),
            subtask=random.choice(SUBTASKS),
            reads=tuple(read for read in range(index) if random.random() < 0.5),
        )
        for index in range(random.randint(1, max_steps))
    ]
    return Workflow(tuple(steps))


@register
def random_worker_system(seed: int = 0) -> System:
    """Return the system that asks one worker, drawn uniformly per question and epoch."""

    def plan(question: Question, pool: Pool) -> Workflow:
        random = seeded_random(RANDOM_WORKER.name, seed, question.id, pool.epoch)
        return alone(random.choice(pool.workers))

    return planned(plan)


@register
def random_workflow_system(seed: int = 0, max_steps: int = MAX_STEPS) -> System:
    """Return the system that runs a random workflow, drawn per question and epoch."""
    if max_steps < 1:
        raise UserError(f"random-workflow needs max_steps of at least 1, not {max_steps}.")

    def plan(question: Question, pool: Pool) -> Workflow:
        random = seeded_random(RANDOM_WORKFLOW.name, seed, question.id, pool.epoch)
        return random_steps(random, pool.workers, max_steps)

    return planned(plan)


MOST_SAMPLES = 1000  # highest k accepted: no conductor costs that many calls


def _matched(unit: str, quantity: str) -> SystemCard:
    return SystemCard(
        name=f"compute-matched-{unit}",
        solver="podium/compute_matched",
        summary=f"Samples the best single worker until a query takes as many {quantity}.",
        source="podium (control); self-consistency: Wang et al. 2022, arXiv 2203.11171",
        calls=Calls(
            "k, so that the means are equal",
            lambda _, args: (floor(args.get("k") or 1), ceil(args.get("k") or MOST_SAMPLES)),
        ),
        group="controls",
        needs=frozenset({"match"}),
        traits=frozenset({"best worker"}),
        deviations=(
            "k is a fraction: each question has one of the two whole numbers around it, drawn so "
            "that the mean is k, and never less than 1",
            "matched with what the other system cost on this suite; costs are no labels",
            "one call is what best-single's took on average on this suite, not each question's own",
            "a vote of equal answers; for programs the one that passes the most public tests where "
            "the suite shows some (best of n, the stronger and better-known), else identical texts",
        ),
        acts="votes",
    )


COMPUTE_MATCHED_USD = _matched("usd", "list dollars as a conductor's")
COMPUTE_MATCHED_TOKENS = _matched("tokens", "tokens, in and out, as a conductor's")


def sample_count(k: float, seed: int, question: str, epoch: int) -> int:
    """Return a question's number of samples: k rounded up or down, drawn so that the mean is k.

    >>> sample_count(3.0, 0, "q", 1), {sample_count(1.5, 0, str(n), 1) for n in range(9)}
    (3, {1, 2})
    """
    base = floor(k)
    return base + (seeded_random("compute-matched", seed, question, epoch).random() < k - base)


@register
def compute_matched_system(
    worker: str | None = None, k: float | None = None, matched_with: str = "", seed: int = 0
) -> System:
    """Return the system that asks a worker `k` times on average, then votes or runs public tests.

    `matched_with`, the name of the conductor whose cost `k` matches, is only logged.
    """
    if worker is None or k is None:
        raise UserError(
            "The number of samples (k) comes from the system that this control matches. Run that "
            "system on the suite first."
        )
    if not 1 <= k <= MOST_SAMPLES:
        raise UserError(
            f"The number of samples (k) of a compute-matched system must be between 1 and "
            f"{MOST_SAMPLES}, not {k}. Leave it out: `podium run` computes it."
        )

    async def answer(question: Question, pool: Pool) -> Answer:
        count = sample_count(k, seed, question.id, pool.epoch)
        session = Session(question, pool)
        drawn = await session.ask_all([Step(known(pool, worker))] * count)
        texts = [reply.text for reply in drawn]
        different = list(dict.fromkeys(texts))
        if not is_tested(session) or len(different) == 1:
            return session.answer(vote(question.kind, texts))
        return session.answer(different[best_of(await public_results(session, different))])

    return answer
