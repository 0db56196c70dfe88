"""`template-router`, the strongest control: a classifier picks one of the enumerated workflows.

It plans as a conductor does, from the same workers, train split and budget, but in words that no
one learnt (oracle.py). Tries are batched Thompson sampling (Thompson 1933) over templates and
clusters of questions. They are few, so a ridge logistic regression on who does what foretells, over
all questions and apart for each cluster, and what was seen is shrunk towards it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from podium.baselines.common import (
    Rounds,
    add_prefix,
    learnt_from,
    register,
    register_learner,
    strip_prefix,
)
from podium.baselines.oracle import FINISH, GATHER, USE, enumerate_plans
from podium.baselines.routers import TfIdf
from podium.baselines.routers.optimisers import k_means, ridge_logistic, sigmoid
from podium.harness.errors import UserError
from podium.harness.learning import (
    Arrays,
    Artifact,
    Floats,
    Round,
    TrainingBudget,
    one_thread,
)
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.rewards.splits import question_digest, refuse_unfit
from podium.harness.system import Calls, Exploring, System, SystemCard, planned
from podium.harness.workflow import Workflow

Ints = NDArray[np.int64]

RIDGE = 1.0  # on who does what, in log odds: a role's effect has standard deviation 1 beforehand
CLUSTER_RIDGE = 4.0  # ridge on how a cluster departs from all questions: half that deviation
TRUST_TEMPLATE, TRUST_CLUSTER = 8.0, 8.0
"""Tries after which what was seen of a template counts as much as the regression: over all
questions, and within a cluster. Set once, by hand, before any measurement on an eval split."""


TemplateTries = tuple[Ints, Ints, Floats]
"""Of each try its template, the cluster of its question, and its value between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Templates:
    """The enumerated workflows of some workers."""

    plans: tuple[Workflow, ...]
    calls: Ints  # (templates,), worker calls
    shapes: Ints  # (templates,): 0 singles, 1 and 2 pairs, 3 triples, 4 fan-ins
    roles: Floats
    """(templates, roles): 1 where a worker has a role, and where a template has a shape."""


@cache
def enumerate_templates(workers: tuple[str, ...]) -> Templates:
    """Return every template of some workers, shortest first."""
    plans = enumerate_plans(workers)
    shapes, played = zip(*map(_shape_and_roles, plans), strict=True)
    names = [{f"shape {shape}", *roles} for shape, roles in zip(shapes, played, strict=True)]
    known = sorted(set[str]().union(*names))
    roles = np.array([[float(one in named) for one in known] for named in names])
    calls = np.array([len(plan.steps) for plan in plans], dtype=np.int64)
    return Templates(plans, calls, np.array(shapes, dtype=np.int64), roles)


def _shape_and_roles(plan: Workflow) -> tuple[int, list[str]]:
    """Return a plan's shape and who does what; who computes has the same role in every shape."""
    steps = list(plan.steps)
    if len(steps) == 1:
        return 0, [f"alone {steps[0].worker}"]
    if len(steps) > 3:
        return 4, [f"aggregates {steps[-1].worker}"]
    gathers = steps[0].subtask == GATHER
    roles = [f"{'gathers' if gathers else 'drafts'} {steps[0].worker}", f"solves {steps[1].worker}"]
    if len(steps) == 2:
        return 1 if gathers else 2, roles
    return 3, [*roles, f"finishes {steps[2].worker}"]


def expected_scores(known: Templates, seen: TemplateTries, clusters: int) -> tuple[Floats, Floats]:
    """Return the score that tries foretell, and how many tries that is worth."""
    shape, (template, cluster, value) = (len(known.plans), clusters), seen
    if not len(value):
        return np.full(shape, 0.5), np.full(shape, 1.0)
    model = _regressed(known.roles, seen, clusters)
    counts, wins, foretold = np.zeros((3, *shape))
    at = (template, cluster)
    np.add.at(counts, at, 1.0)
    np.add.at(wins, at, value)
    np.add.at(foretold, at, model[at])
    tries = counts.sum(axis=1, keepdims=True)
    missed = (wins - foretold).sum(axis=1, keepdims=True) / (tries + TRUST_TEMPLATE)
    before = np.clip(model + missed, 0.0, 1.0)
    score = (wins + TRUST_CLUSTER * before) / (counts + TRUST_CLUSTER)
    return score, counts + 2.0 + TRUST_CLUSTER * (tries / (tries + TRUST_TEMPLATE))


def _regressed(roles: Floats, seen: TemplateTries, clusters: int) -> Floats:
    """Return (templates, clusters): the chance of being right by roles, pooled over clusters."""
    (template, cluster, value), width = seen, roles.shape[1]
    played = roles[template]
    apart = [np.where((cluster == one)[:, None], played, 0.0) for one in range(clusters)]
    rows = np.hstack([np.ones((len(value), 1)), played, *apart])
    pull = np.repeat([0.05, RIDGE, CLUSTER_RIDGE], [1, width, width * clusters])
    weights = ridge_logistic(rows, value, pull)
    common = weights[0] + roles @ weights[1 : 1 + width]
    departs = weights[1 + width :].reshape(clusters, width)
    return sigmoid(common[:, None] + roles @ departs.T)


NAME, READING = "template-router", "reading/"
CLUSTERS = 8  # kinds of question that are told apart, at most; fewer where the train split is small
SHARES = (0.3, 0.15, 0.15, 0.15, 0.15, 0.1)
"""Of the budget, round by round: the first looks everywhere, the others where it is promising."""
FIRST_LOOK = (0.15, 0.35, 0.15, 0.3, 0.05)
"""How the first round's tries are shared among shapes (see `Templates`), cheap ones more often."""
COST_OF_A_CALL = 0.005  # score that one more call must bring: a tie goes to fewer calls


@dataclass(frozen=True, slots=True)
class QuestionClusters:
    """How questions are told apart: TF-IDF and k-means, by texts alone, which cost no call."""

    reading: Arrays
    centres: Floats  # (clusters, terms)

    def of(self, texts: Sequence[str]) -> Ints:
        """Return the cluster of each text: the nearest centre."""
        with one_thread():
            vectors = TfIdf().embed(self.reading, texts)
            far = (self.centres**2).sum(axis=1)[None, :] - 2.0 * vectors @ self.centres.T
        return np.argmin(far, axis=1).astype(np.int64)


@lru_cache(maxsize=8)
def cluster_questions(texts: tuple[str, ...], seed: int) -> QuestionClusters:
    """Return the clusters of some train questions; found once for all rounds of a training."""
    reading = TfIdf().fit(texts)
    vectors = TfIdf().embed(reading, texts)
    distinct = len(np.unique(vectors, axis=0))
    wanted = max(1, min(CLUSTERS, len(texts) // 10, distinct))
    return QuestionClusters(reading, k_means(vectors, wanted, 4, seed)[0])


def _clusters_in(given: TrainingBudget) -> QuestionClusters:
    return cluster_questions(tuple(one.text for one in given.questions), given.seed)


class TemplateExplorer:
    """Tries templates on train questions, and learns which one suits which kind of question."""

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
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
        known, told = enumerate_templates(given.workers), _clusters_in(given)
        random = default_rng([given.seed, len(done)])
        size = len(given.questions)
        epochs = max(1, -(-share // (3 * size)))
        seen = sum(len({one.question for one in tried}) for tried in done)
        first = seen % size if epochs == 1 else 0
        asked = given.questions[first:]
        now = expected_scores(known, _tries_of(known, told, given, done), len(told.centres))
        tries: dict[str, list[int]] = {}
        for question, at in zip(asked, told.of([one.text for one in asked]), strict=True):
            expected = (now[0][:, at], now[1][:, at]) if done else None
            drawn = _draw(known, expected, epochs, random)
            share -= int(known.calls[drawn].sum())
            if share < 0:
                break
            tries[question.id] = drawn
        if not tries:
            return None
        return Round("podium/try_templates", {"tries": tries}, len(tries), epochs, first)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the chosen template of every cluster; UserError when no try was made."""
        if not any(done):
            raise UserError(f"{NAME}: {given.calls} worker calls are too few for a single try.")
        known, told = enumerate_templates(given.workers), _clusters_in(given)
        seen = _tries_of(known, told, given, done)
        score, _ = expected_scores(known, seen, len(told.centres))
        worth = score - COST_OF_A_CALL * known.calls[:, None]
        rows = [
            (at, one.question, one.epoch, one.plan, one.value, one.calls)
            for at, tries in enumerate(done)
            for one in tries
        ]
        settings = {"clusters": len(told.centres), "tries": len(seen[2])}
        about = replace(
            learnt_from(NAME, given, done, settings),
            rows_sha256=hashlib.sha256(repr(rows).encode()).hexdigest(),
            questions=tuple(question_digest(one.text) for one in given.questions),
            embedder=TfIdf().name,
        )
        chosen = np.argmax(worth, axis=0).astype(np.int64)
        arrays = {"centres": told.centres, "chosen": chosen, "score": score}
        return Artifact(about, {**add_prefix(READING, told.reading), **arrays})


def _draw(
    known: Templates, expected: tuple[Floats, Floats] | None, count: int, random: Generator
) -> list[int]:
    """Return templates to try on a question: by shape at first, then by a draw of their worth."""
    if expected is None:
        shapes = np.unique(known.shapes)
        chance = np.array(FIRST_LOOK)[shapes]
        picked = random.choice(shapes, size=count, p=chance / chance.sum())
        return [int(random.choice(np.flatnonzero(known.shapes == one))) for one in picked]
    score, weight = expected
    spread = np.sqrt(np.clip(score * (1.0 - score), 0.01, None) / (1.0 + weight))
    worth = score + spread * random.standard_normal((count, len(score)))
    return [int(one) for one in np.argmax(worth - COST_OF_A_CALL * known.calls, axis=1)]


def _tries_of(
    known: Templates, told: QuestionClusters, given: TrainingBudget, done: Rounds
) -> TemplateTries:
    index = {plan.as_json(): at for at, plan in enumerate(known.plans)}
    clusters = told.of([one.text for one in given.questions])
    of = {one.id: at for one, at in zip(given.questions, clusters, strict=True)}
    kept = [one for tries in done for one in tries if one.value is not None and one.plan in index]
    return (
        np.array([index[one.plan] for one in kept], dtype=np.int64),
        np.array([of[one.question] for one in kept], dtype=np.int64),
        np.array([one.value for one in kept], dtype=np.float64),
    )


TEMPLATE_ROUTER = SystemCard(
    name=NAME,
    solver="podium/template_router",
    summary="A classifier sends each question to one of enumerated workflows.",
    source="podium (control)",
    calls=Calls("1-5", lambda n, args: (1, 5)),
    group="controls",
    prompts=(GATHER, USE, FINISH),
    needs=frozenset({"train"}),
    methods=Exploring(TemplateExplorer),
    deviations=(
        "its budget of worker calls is that of every system that learns, and all of it are its own "
        "tries: what single workers did alone is not used",
        "its workflows are those of baselines/oracle.py, in neutral words",
    ),
    acts="last step acts",
)


def template_system(learned: Artifact) -> System:
    """Return the system that runs the template of a question's cluster."""
    reading = strip_prefix(READING, learned.arrays)
    told = QuestionClusters(reading, np.asarray(learned.arrays["centres"], dtype=np.float64))
    plans = enumerate_templates(learned.about.workers).plans
    chosen = [int(one) for one in learned.arrays["chosen"]]

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_unfit(learned, pool.workers, question)
        return plans[chosen[int(told.of([question.text])[0])]]

    return planned(plan)


register_learner(NAME, template_system)


@register
def try_templates(tries: Mapping[str, Sequence[int]]) -> System:
    """Try templates on train questions: question id -> one index per epoch."""

    def plan(question: Question, pool: Pool) -> Workflow:
        return enumerate_templates(pool.workers).plans[tries[question.id][pool.epoch - 1]]

    return planned(plan)
