"""Smoothie: ask every worker, trust the one whose replies lie nearest to all others'.

Guha et al. 2024, arXiv 2412.04692, written from the paper. Each reply is embedded; with errors that
are independent, the squared distance of two replies is the sum of two workers' errors, and any
three workers (a triplet) give an estimate of each. No target is looked at. `smoothie-global` uses
one estimate for the exam, `smoothie-local` one per question.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.calling.hashing import hashed
from baselines.calling.teaching import about, refuse_too_few
from harness.errors import UserError
from harness.learning.exploring import Explorer, Round, Task, Tried
from harness.learning.learned import Learned, read_learned, refuse_other_workers
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Answer, Question
from harness.session import Session
from harness.solver import as_solver
from harness.system import Manifest, System, exactly
from harness.workflow import Step

LEAST = 3
"""Workers in a triplet."""
DIMS = 512
"""Numbers per reply."""
GLOBAL, LOCAL = "smoothie-global", "smoothie-local"
DISTANCES = "distances"
SOURCE = "Guha et al. 2024, arXiv 2412.04692"
_DEVIATIONS = (
    "replies are embedded by hashed words, offline (the authors: a sentence embedder)",
    "a worker without a reply leaves the question unscored",
)


def errors(distances: Floats) -> Floats:
    """Return each worker's estimated squared error from (n, n) mean squared distances.

    For each pair of others, (d_ij + d_ik - d_jk) / 2, averaged over all pairs: the triplet
    estimator (section 4 of the paper). The paper's weight is inversely proportional to it, so its
    largest weight is the smallest error; noise can make an estimate negative.

    >>> errors(np.array([[0, 3, 5], [3, 0, 6], [5, 6, 0.0]])).tolist()
    [1.0, 2.0, 4.0]
    """
    n = len(distances)
    others = distances.sum(axis=1)
    pairs = (n - 1) * (n - 2) / 2
    return ((n - 1) * others - distances.sum() / 2) / (2 * pairs)


def distances_of(replies: Sequence[str]) -> Floats:
    """Return the (n, n) squared distances of replies."""
    points = np.array([hashed(reply, DIMS) for reply in replies])
    squares: Floats = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    return squares


def chosen(distances: Floats) -> int:
    """Return the worker with the least estimated error; a tie goes to the first."""
    return int(np.argmin(np.round(errors(distances), 12)))


def smoothie_system(learned: Learned | None = None) -> System:
    """Return the system that asks all workers and answers with the reply of the one it trusts.

    With what was learnt on the train split, its distances count beside this question's.
    """

    async def answer(question: Question, pool: Pool) -> Answer:
        if len(pool.workers) < LEAST:
            raise UserError(
                f"Smoothie needs at least {LEAST} workers, and this pool has {len(pool.workers)}."
            )
        if learned:
            refuse_other_workers(learned, pool.workers)
        workers = learned.about.workers if learned else pool.workers
        session = Session(question, pool)
        replies = await session.ask_all([Step(worker) for worker in workers])
        here = distances_of([reply.text for reply in replies])
        trusted = chosen(learned.arrays[DISTANCES] + here if learned else here)
        upper = here[np.triu_indices(len(workers), 1)]
        noted = {"trusted": workers[trusted], DISTANCES: [round(float(one), 6) for one in upper]}
        return session.answer(replies[trusted].text, noted)

    return answer


@dataclass(frozen=True, slots=True)
class SmoothieExplorer:
    """Asks every worker as many train questions as the budget pays for, and keeps distances."""

    def next_round(self, task: Task, done: Sequence[Sequence[Tried]]) -> Round | None:
        """Return the one round there is."""
        refuse_too_few(GLOBAL, task, max(LEAST, len(task.workers)))
        if done:
            return None
        each = len(task.workers)
        most = min(len(task.questions), task.calls // each)
        return Round("baselines/smoothie_local", {}, questions=most, epochs=1, most_calls=each)

    def learnt(self, task: Task, done: Sequence[Sequence[Tried]]) -> Learned:
        """Return the sum of distances over all tries; grades are not looked at."""
        n = len(task.workers)
        total = np.zeros((n, n))
        tries = [one for tried in done for one in tried if DISTANCES in one.noted]
        for one in tries:
            total[np.triu_indices(n, 1)] += np.array(one.noted[DISTANCES], dtype=np.float64)
        settings = {"embedder": f"hashed words, {DIMS}", "tries": len(tries)}
        return Learned(about(GLOBAL, task, done, settings), {DISTANCES: total + total.T})


def _explorer() -> Explorer:
    return SmoothieExplorer()


SMOOTHIE_GLOBAL = Manifest(
    name=GLOBAL,
    solver="baselines/smoothie_global",
    summary="Every worker answers; the one whose replies agree most over the exam is trusted.",
    group="routers",
    source=SOURCE,
    calls="n",
    expected=exactly(lambda n, _: n),
    explorer=_explorer,
    deviations=(
        "fitted on replies to the train split and to the question (the authors: to the whole exam)",
        *_DEVIATIONS,
    ),
)
SMOOTHIE_LOCAL = Manifest(
    name=LOCAL,
    solver="baselines/smoothie_local",
    summary="Every worker answers; the reply nearest to all others is the answer.",
    group="routers",
    source=SOURCE,
    calls="n",
    expected=exactly(lambda n, _: n),
    deviations=(
        "fitted on the replies to the question itself (the authors: also to its neighbours in the "
        "exam)",
        *_DEVIATIONS,
    ),
)


@solver
def smoothie_global(
    learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Ask every worker; answer with the one that agreed most on the train split and here."""
    return as_solver(smoothie_system(read_learned(learned, GLOBAL, sha256)), pool)


@solver
def smoothie_local(pool: str | None = None) -> Solver:
    """Ask every worker; answer with the reply nearest to all others."""
    return as_solver(smoothie_system(), pool)
