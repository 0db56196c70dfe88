"""Smoothie: ask every worker, trust the one whose answers lie nearest to all others'.

Guha et al. 2024, arXiv 2412.04692, written from the paper. Each answer is embedded; with errors
that are independent, the squared distance of two answers is the sum of two workers' errors, and any
three workers (a triplet) give an estimate of each. No target is looked at. `smoothie-global` uses
one estimate for the exam, `smoothie-local` one per question.

Whole replies are not embedded: workers that cannot answer all say so in the same words, and were
trusted for it (0 of 60 on practice-code).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.common import hash_words, learnt_from, refuse_taught, refuse_too_few
from harness.errors import UserError
from harness.execute import Session
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.learning.fit import (
    Artifact,
    Explorer,
    Round,
    TrainingBudget,
    TrialResult,
    read_artifact,
    refuse_other_workers,
)
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Answer, Kind, Question
from harness.system import System, SystemCard, exactly
from harness.workflow import Step

LEAST = 3
"""Workers in a triplet."""
DIMS = 512
"""Numbers per answer."""
APART = 2.0
"""Squared distance of two answers that have nothing in common: of two orthogonal unit vectors."""
GLOBAL, LOCAL = "smoothie-global", "smoothie-local"
DISTANCES = "distances"
EMBEDDER = f"hashed words of answers, {DIMS}"
SOURCE = "Guha et al. 2024, arXiv 2412.04692"
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


def extract_answers(kind: Kind, replies: Sequence[str]) -> list[str | None]:
    """Return the answer that is found in each reply, None where there is none."""
    return [normalised(kind, reply) for reply in replies]


def answer_distances(answers: Sequence[str | None]) -> Floats:
    """Return the (n, n) squared distances of answers, 0 to 4.

    Who has no answer is `APART` from all others, even from those without one.
    """
    points = np.array([hash_words(answer or "", DIMS) for answer in answers])
    squares: Floats = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    lacking = np.array([answer is None for answer in answers])
    squares[lacking, :] = squares[:, lacking] = APART
    np.fill_diagonal(squares, 0.0)
    return squares


def most_trusted(distances: Floats, answers: Sequence[str | None]) -> int:
    """Return the worker with the least estimated error among those that have an answer here.

    All are among them when nobody has one. A tie goes to the first.
    """
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
            refuse_other_workers(learned, pool.workers)
            refuse_taught(learned, question)
        workers = learned.about.workers if learned else pool.workers
        session = Session(question, pool)
        replies = await session.ask_all([Step(worker) for worker in workers])
        answers = extract_answers(question.kind, [reply.text for reply in replies])
        here = answer_distances(answers)
        trusted = most_trusted(learned.arrays[DISTANCES] + here if learned else here, answers)
        upper = here[np.triu_indices(len(workers), 1)]
        noted = {"trusted": workers[trusted], DISTANCES: [round(float(one), 6) for one in upper]}
        return session.answer(replies[trusted].text, noted)

    return answer


@dataclass(frozen=True, slots=True)
class SmoothieExplorer:
    """Asks every worker as many train questions as the budget pays for, and keeps distances."""

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return the one round there is."""
        refuse_too_few(GLOBAL, given, max(LEAST, len(given.workers)))
        if done:
            return None
        each = len(given.workers)
        most = min(len(given.questions), given.calls // each)
        return Round("baselines/smoothie_local", {}, questions=most, epochs=1, most_calls=each)

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the sum of distances over all tries; grades are not looked at."""
        n = len(given.workers)
        total = np.zeros((n, n))
        tries = [one for tried in done for one in tried if DISTANCES in one.noted]
        for one in tries:
            total[np.triu_indices(n, 1)] += np.array(one.noted[DISTANCES], dtype=np.float64)
        settings = {"embedder": EMBEDDER, "tries": len(tries)}
        return Artifact(learnt_from(GLOBAL, given, done, settings), {DISTANCES: total + total.T})


def _explorer() -> Explorer:
    return SmoothieExplorer()


SMOOTHIE_GLOBAL = SystemCard(
    name=GLOBAL,
    solver="baselines/smoothie_global",
    summary="Every worker answers; the one that agreed most on train questions is trusted.",
    group="routers",
    source=SOURCE,
    calls="n",
    expected=exactly(lambda n, _: n),
    workers=LEAST,
    explorer=_explorer,
    deviations=(
        "fitted on replies to the train split and to the question (the authors: to the whole exam)",
        *_DEVIATIONS,
    ),
)
SMOOTHIE_LOCAL = SystemCard(
    name=LOCAL,
    solver="baselines/smoothie_local",
    summary="Every worker answers; the answer nearest to all others stands.",
    group="routers",
    source=SOURCE,
    calls="n",
    expected=exactly(lambda n, _: n),
    workers=LEAST,
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
    return as_solver(smoothie_system(read_artifact(learned, GLOBAL, sha256)), pool)


@solver
def smoothie_local(pool: str | None = None) -> Solver:
    """Ask every worker; answer with the reply nearest to all others."""
    return as_solver(smoothie_system(), pool)
