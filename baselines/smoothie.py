"""Smoothie: ask every worker, trust the one whose answers lie nearest to all others'.

Guha et al. 2024, arXiv 2412.04692, written from the paper. Each answer is embedded; with errors
that are independent, the squared distance of two answers is the sum of two workers' errors, and any
three workers (a triplet) give an estimate of each. No target is looked at. Whole replies are not
embedded: workers that cannot answer say so in the same words, and were trusted for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from baselines.common import (
    Rounds,
    hash_words,
    learnt_from,
    refuse_too_few,
    refuse_unfit,
    registered,
    registered_learner,
)
from harness.errors import UserError
from harness.execute import Session
from harness.extract import normalised
from harness.learning import Artifact, Floats, Round, TrainingBudget
from harness.pool import Pool
from harness.records import Answer, Question
from harness.system import System, SystemCard, exactly
from harness.workflow import Step

LEAST = 3  # workers in a triplet
DIMS = 512  # numbers per answer
APART = 2.0  # squared distance of answers with nothing in common: orthogonal unit vectors
GLOBAL, DISTANCES = "smoothie-global", "distances"
_DEVIATIONS = (
    "the answers that are found in replies are embedded, by hashed words, offline (the authors: "
    "the first line of a reply, by a sentence embedder)",
    "a reply in which no answer is found agrees with nobody, and is given only where none is found "
    "in any",
    "the smallest estimate is trusted even where it is negative (the authors' code makes that a "
    "negative weight)",
    "a worker without a reply leaves the question unscored",
)


def triplet_errors(distances: Floats) -> Floats:
    """Return each worker's estimated squared error from (n, n) mean squared distances.

    For each pair of others, (d_ij + d_ik - d_jk) / 2, averaged over all pairs: the triplet
    estimator (section 4 of the paper). The paper's weight is inversely proportional to it, so its
    largest weight is the smallest error; noise can make an estimate negative.

    >>> triplet_errors(np.array([[0, 3, 5], [3, 0, 6], [5, 6, 0.0]])).tolist()
    [1.0, 2.0, 4.0]
    """
    n = len(distances)
    others = distances.sum(axis=1)
    pairs = (n - 1) * (n - 2) / 2
    return ((n - 1) * others - distances.sum() / 2) / (2 * pairs)


def answer_distances(answers: Sequence[str | None]) -> Floats:
    """Return (n, n) squared distances, 0 to 4; who has no answer is `APART` from all others."""
    points = np.array([hash_words(answer or "", DIMS) for answer in answers])
    squares: Floats = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    lacking = np.array([answer is None for answer in answers])
    squares[lacking, :] = squares[:, lacking] = APART
    np.fill_diagonal(squares, 0.0)
    return squares


def most_trusted(distances: Floats, answers: Sequence[str | None]) -> int:
    """Return the first worker with the least error, of those with an answer, or of all."""
    lacking = np.array([answer is None for answer in answers])
    barred = lacking & ~lacking.all()
    return int(np.argmin(np.where(barred, np.inf, np.round(triplet_errors(distances), 12))))


def smoothie_system(learned: Artifact | None = None) -> System:
    """Return the system that asks all workers and answers with the reply of the one it trusts.

    With what was learnt on the train split, its distances count beside this question's.
    """

    async def answer(question: Question, pool: Pool) -> Answer:
        if len(pool.workers) < LEAST:
            raise UserError(
                f"Smoothie needs at least {LEAST} workers, and this pool has {len(pool.workers)}."
            )
        if learned:
            refuse_unfit(learned, pool, question)
        workers = learned.about.workers if learned else pool.workers
        session = Session(question, pool)
        replies = await session.ask_all([Step(worker) for worker in workers])
        answers = [normalised(question.kind, reply.text) for reply in replies]
        here = answer_distances(answers)
        trusted = most_trusted(learned.arrays[DISTANCES] + here if learned else here, answers)
        upper = here[np.triu_indices(len(workers), 1)]
        noted = {"trusted": workers[trusted], DISTANCES: [round(float(one), 6) for one in upper]}
        return session.answer(replies[trusted].text, noted)

    return answer


@dataclass(frozen=True, slots=True)
class SmoothieExplorer:
    """Asks every worker as many train questions as the budget pays for, and keeps distances."""

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
        """Return the one round there is."""
        refuse_too_few(GLOBAL, given, max(LEAST, len(given.workers)))
        if done:
            return None
        each = len(given.workers)
        most = min(len(given.questions), given.calls // each)
        return Round("baselines/smoothie_local", {}, questions=most, epochs=1, most_calls=each)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the sum of distances over all tries; grades are not looked at."""
        n = len(given.workers)
        total = np.zeros((n, n))
        tries = [one for tried in done for one in tried if DISTANCES in one.noted]
        for one in tries:
            total[np.triu_indices(n, 1)] += np.array(one.noted[DISTANCES], dtype=np.float64)
        settings = {"embedder": f"hashed words of answers, {DIMS}", "tries": len(tries)}
        return Artifact(learnt_from(GLOBAL, given, done, settings), {DISTANCES: total + total.T})


SMOOTHIE_LOCAL = SystemCard(
    name="smoothie-local",
    solver="baselines/smoothie_local",
    summary="Every worker answers; the answer nearest to all others stands.",
    group="routers",
    source="Guha et al. 2024, arXiv 2412.04692",
    calls="n",
    expected=exactly(lambda n, _: n),
    workers=LEAST,
    deviations=(
        "fitted on the replies to the question itself (the authors: also to its neighbours in the "
        "suite)",
        *_DEVIATIONS,
    ),
)
SMOOTHIE_GLOBAL = replace(
    SMOOTHIE_LOCAL,
    name=GLOBAL,
    solver="baselines/smoothie_global",
    summary="Every worker answers; the one that agreed most on train questions is trusted.",
    explorer=SmoothieExplorer,
    deviations=(
        "fitted on replies to the train split and to the question (theirs: to the whole suite)",
        *_DEVIATIONS,
    ),
)


smoothie_global = registered_learner(GLOBAL, smoothie_system)
smoothie_local = registered(lambda: smoothie_system(), "smoothie_local")
