"""`template-router`: the strongest control. A classifier picks one of enumerated workflows.

It plans as a conductor does, from the same workers, train split and budget of worker calls, but in
words that nobody learnt: the templates of `plan_set.py`. Its tries are rounds of batched Thompson
sampling (Thompson 1933) over templates and clusters of questions; what they say is templates.py.
A conductor that does not beat it has learnt no more than whom to ask in what order.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from inspect_ai.solver import Solver, solver
from numpy.random import Generator, default_rng

from baselines.calling.teaching import refuse_taught
from baselines.extras import needed
from baselines.plan_set import FINISH, GATHER, USE
from baselines.routing.embedders import TfIdf
from baselines.routing.threads import one_thread
from baselines.templates import Expected, Ints, Seen, Templates, expected, templates
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.learning.fit import (
    Arrays,
    Artifact,
    ArtifactSource,
    Round,
    TrainingBudget,
    TrialResult,
    read_artifact,
    refuse_other_workers,
)
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Question
from harness.rewards.splits import question_digest
from harness.system import System, SystemCard, planned
from harness.workflow import Workflow

NAME = "template-router"
CLUSTERS = 8
"""Kinds of question that are told apart, at most; fewer where the train split is small."""
SHARES = (0.3, 0.15, 0.15, 0.15, 0.15, 0.1)
"""Of the budget, round by round: the first looks everywhere, the others where it is promising."""
FIRST_LOOK = (0.15, 0.35, 0.15, 0.3, 0.05)
"""How the first round's tries are shared among shapes (templates.py), cheap ones more often."""
COST_OF_A_CALL = 0.005
"""Score that one more call must bring: a tie goes to fewer calls, and noise is a tie."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """How questions are told apart: TF-IDF and k-means, by texts alone, which cost no call."""

    reading: Arrays
    centres: Floats
    """(clusters, terms)."""

    def of(self, texts: Sequence[str]) -> Ints:
        """Return the cluster of each text: the nearest centre."""
        with one_thread():
            vectors = TfIdf().embed(self.reading, texts)
            far = (self.centres**2).sum(axis=1)[None, :] - 2.0 * vectors @ self.centres.T
        return np.argmin(far, axis=1).astype(np.int64)


@lru_cache(maxsize=8)
def kinds(texts: tuple[str, ...], seed: int) -> Kinds:
    """Return the clusters of some train questions; found once for all rounds of a training."""
    cluster = needed("sklearn.cluster", "routers")
    reading = TfIdf().fit(texts)
    vectors = TfIdf().embed(reading, texts)
    distinct = len(np.unique(vectors, axis=0))
    wanted = max(1, min(CLUSTERS, len(texts) // 10, distinct))
    with one_thread():
        found = cluster.KMeans(wanted, n_init=4, random_state=seed).fit(vectors)
    return Kinds(reading, np.asarray(found.cluster_centers_, dtype=np.float64))


def _kinds_in(given: TrainingBudget) -> Kinds:
    return kinds(tuple(one.text for one in given.questions), given.seed)


@dataclass(slots=True)
class TemplateExplorer:
    """Tries templates on train questions, and learns which one suits which kind of question."""

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return a round of tries that fits its share of the budget; None when all is spent."""
        if not given.publishable:
            raise UserError(
                f"{NAME} cannot learn from {', '.join(given.suites)}: its artefact would hold "
                "words of questions that must not be published; name others with --train-on."
            )
        if len(done) == len(SHARES):
            return None
        spent = sum(one.calls for tries in done for one in tries)
        last = len(done) == len(SHARES) - 1
        share = given.calls - spent if last else int(given.calls * SHARES[len(done)])
        known, told = templates(given.workers), _kinds_in(given)
        random = default_rng([given.seed, len(done)])
        size = len(given.questions)
        epochs = max(1, -(-share // (3 * size)))
        first = sum(_questions(tries) for tries in done) % size if epochs == 1 else 0
        asked = given.questions[first:]
        of = told.of([one.text for one in asked])
        now = expected(known, _seen(known, told, given, done), len(told.centres))
        tries: dict[str, list[int]] = {}
        for question, cluster in zip(asked, of, strict=True):
            drawn = _draw(known, now, int(cluster), epochs, random, looking=not done)
            share -= sum(int(known.calls[one]) for one in drawn)
            if share < 0:
                break
            tries[question.id] = drawn
        if not tries:
            return None
        return Round("baselines/try_templates", {"tries": tries}, len(tries), epochs, first)

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the chosen template of every cluster; UserError when no try was made."""
        if not any(done):
            raise UserError(f"{NAME}: {given.calls} worker calls are too few for a single try.")
        known, told = templates(given.workers), _kinds_in(given)
        seen = _seen(known, told, given, done)
        score = expected(known, seen, len(told.centres)).score
        worth = score - COST_OF_A_CALL * known.calls[:, None]
        about = ArtifactSource(
            system=NAME,
            rows_sha256=_rows_sha256(done),
            suites=given.suites,
            questions=tuple(question_digest(one.text) for one in given.questions),
            workers=given.workers,
            embedder=TfIdf().name,
            calls=sum(one.calls for tries in done for one in tries),
            settings={
                "seed": given.seed,
                "clusters": len(told.centres),
                "tries": len(seen.value),
            },
        )
        chosen = np.argmax(worth, axis=0).astype(np.int64)
        arrays = {f"reading/{name}": values for name, values in told.reading.items()}
        return Artifact(
            about, {**arrays, "centres": told.centres, "chosen": chosen, "score": score}
        )


def _questions(tries: Sequence[TrialResult]) -> int:
    return len({one.question for one in tries})


def _draw(
    known: Templates,
    now: Expected,
    cluster: int,
    count: int,
    random: Generator,
    *,
    looking: bool,
) -> list[int]:
    """Return templates to try on one question: by shape at first, then by a draw of their worth."""
    if looking:
        shapes = [int(one) for one in np.unique(known.shapes)]
        chance = np.array([FIRST_LOOK[one] for one in shapes])
        picked = random.choice(shapes, size=count, p=chance / chance.sum())
        return [int(random.choice(np.flatnonzero(known.shapes == one))) for one in picked]
    score, weight = now.score[:, cluster], now.weight[:, cluster]
    spread = np.sqrt(np.clip(score * (1.0 - score), 0.01, None) / (1.0 + weight))
    worth = score + spread * random.standard_normal((count, len(score)))
    return [int(one) for one in np.argmax(worth - COST_OF_A_CALL * known.calls, axis=1)]


def _seen(
    known: Templates, told: Kinds, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
) -> Seen:
    """Return the graded tries as arrays."""
    index = {plan.as_json(): at for at, plan in enumerate(known.plans)}
    of = dict(
        zip(
            (one.id for one in given.questions),
            told.of([one.text for one in given.questions]),
            strict=True,
        )
    )
    rows = [
        (index[one.plan], int(of[one.question]), one.value)
        for tries in done
        for one in tries
        if one.value is not None and one.plan in index
    ]
    return Seen(
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.float64),
    )


def _rows_sha256(done: Sequence[Sequence[TrialResult]]) -> str:
    """Return the digest of all tries: question, epoch, plan, score and calls."""
    rows = [(at, *_row(one)) for at, tries in enumerate(done) for one in tries]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _row(tried: TrialResult) -> tuple[object, ...]:
    return tried.question, tried.epoch, tried.plan, tried.value, tried.calls


TEMPLATE_ROUTER = SystemCard(
    name=NAME,
    solver="baselines/template_router",
    summary="A classifier sends each question to one of enumerated workflows.",
    source="podium (control)",
    calls="1-5",
    group="controls",
    expected=lambda n, args: (1, 5),
    prompts=(GATHER, USE, FINISH),
    needs=frozenset({"train"}),
    extra="routers",
    modules=("sklearn",),
    explorer=TemplateExplorer,
    deviations=(
        "its budget of worker calls is that of every system that learns, and all of it are its own "
        "tries: what single workers did alone is not used",
        "its workflows are those of baselines/plan_set.py, in neutral words",
    ),
)


def template_system(learned: Artifact) -> System:
    """Return the system that runs the template of a question's cluster."""
    reading = {
        name.removeprefix("reading/"): values
        for name, values in learned.arrays.items()
        if name.startswith("reading/")
    }
    told = Kinds(reading, np.asarray(learned.arrays["centres"], dtype=np.float64))
    plans = templates(learned.about.workers).plans
    chosen = [int(one) for one in learned.arrays["chosen"]]

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_other_workers(learned, pool.workers)
        refuse_taught(learned, question)
        return plans[chosen[int(told.of([question.text])[0])]]

    return planned(plan)


@solver
def template_router(
    learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Run the workflow that suits a question's kind, as learnt by `podium run`."""
    return as_solver(template_system(read_artifact(learned, NAME, sha256)), pool)


def trying_system(tries: Mapping[str, Sequence[int]]) -> System:
    """Return the system that tries, at each epoch of a question, the template that is listed."""

    def plan(question: Question, pool: Pool) -> Workflow:
        return templates(pool.workers).plans[tries[question.id][pool.epoch - 1]]

    return planned(plan)


@solver
def try_templates(tries: Mapping[str, Sequence[int]], pool: str | None = None) -> Solver:
    """Try templates on train questions: question id -> one index per epoch."""
    return as_solver(trying_system(tries), pool)
