"""`template-router`, the strongest control: a classifier picks one of the enumerated workflows.

It has a conductor's workers, train split and budget; its workflows, called templates, are those of
oracle.py with fixed subtasks. Training tries are chosen by batched Thompson sampling (Thompson
1933) over templates and clusters of questions. As tries are few, observed scores are shrunk towards
a ridge logistic regression on the workers' roles, over all questions and per cluster.
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

RIDGE = 1.0  # on weights of roles, in log odds: a prior standard deviation of 1
CLUSTER_RIDGE = 4.0  # on a cluster's deviation from the pooled weights: standard deviation 0.5
TRUST_TEMPLATE, TRUST_CLUSTER = 8.0, 8.0
"""Number of tries at which a template's observed score weighs as much as the regression: over all
questions, and within a cluster. Set once, by hand, before any measurement on an eval split."""


TemplateTries = tuple[Ints, Ints, Floats]
"""Graded training tries, as arrays: template index, question's cluster, grade from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Templates:
    """All enumerated workflows (templates) of a pool's workers, with their features."""

    plans: tuple[Workflow, ...]
    calls: Ints  # (templates,), worker calls
    shapes: Ints  # (templates,): 0 one step, 1 and 2 two steps, 3 three steps, 4 fan-in
    roles: Floats
    """(templates, features): 1 if the template has this shape, or this worker in this role."""


@cache
def enumerate_templates(workers: tuple[str, ...]) -> Templates:
    """Return all templates (enumerated workflows) of these workers, shortest first."""
    plans = enumerate_plans(workers)
    shapes, played = zip(*map(_shape_and_roles, plans), strict=True)
    names = [{f"shape {shape}", *roles} for shape, roles in zip(shapes, played, strict=True)]
    role_names = sorted(set[str]().union(*names))
    roles = np.array([[float(role in plan_names) for role in role_names] for plan_names in names])
    calls = np.array([len(plan.steps) for plan in plans], dtype=np.int64)
    return Templates(plans, calls, np.array(shapes, dtype=np.int64), roles)


def _shape_and_roles(plan: Workflow) -> tuple[int, list[str]]:
    """Return a plan's shape (0 to 4) and its workers' roles, e.g. `solves sage`."""
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


def expected_scores(
    templates: Templates, results: TemplateTries, clusters: int
) -> tuple[Floats, Floats]:
    """Return expected scores (templates, clusters), and the number of tries that supports each."""
    shape, (template, cluster, value) = (len(templates.plans), clusters), results
    if not len(value):
        return np.full(shape, 0.5), np.full(shape, 1.0)
    model = _regressed(templates.roles, results, clusters)
    counts, wins, foretold = np.zeros((3, *shape))
    cells = (template, cluster)
    np.add.at(counts, cells, 1.0)
    np.add.at(wins, cells, value)
    np.add.at(foretold, cells, model[cells])
    tries = counts.sum(axis=1, keepdims=True)
    missed = (wins - foretold).sum(axis=1, keepdims=True) / (tries + TRUST_TEMPLATE)
    prior = np.clip(model + missed, 0.0, 1.0)
    score = (wins + TRUST_CLUSTER * prior) / (counts + TRUST_CLUSTER)
    return score, counts + 2.0 + TRUST_CLUSTER * (tries / (tries + TRUST_TEMPLATE))


def _regressed(roles: Floats, tries: TemplateTries, clusters: int) -> Floats:
    """Return P(right) (templates, clusters), by a regression on workers' roles."""
    (template, cluster, value), width = tries, roles.shape[1]
    played = roles[template]
    apart = [np.where((cluster == number)[:, None], played, 0.0) for number in range(clusters)]
    rows = np.hstack([np.ones((len(value), 1)), played, *apart])
    pull = np.repeat([0.05, RIDGE, CLUSTER_RIDGE], [1, width, width * clusters])
    weights = ridge_logistic(rows, value, pull)
    common = weights[0] + roles @ weights[1 : 1 + width]
    departs = weights[1 + width :].reshape(clusters, width)
    return sigmoid(common[:, None] + roles @ departs.T)


NAME, READING = "template-router", "reading/"
CLUSTERS = 8  # maximum number of question clusters; fewer on a small train split
SHARES = (0.3, 0.15, 0.15, 0.15, 0.15, 0.1)
"""Shares of the training budget by round: the first round explores all templates, later rounds the
promising templates."""
FIRST_LOOK = (0.15, 0.35, 0.15, 0.3, 0.05)
"""Probability of each shape of workflow (0 to 4, see `Templates.shapes`) in round 1."""
COST_OF_A_CALL = 0.005  # score that one more call must add, so that ties go to fewer calls


@dataclass(frozen=True, slots=True)
class QuestionClusters:
    """Clusters of questions by TF-IDF and k-means on texts; needs no worker call."""

    reading: Arrays
    centres: Floats  # (clusters, terms)

    def of(self, texts: Sequence[str]) -> Ints:
        """Return the index of each text's cluster: the cluster with the nearest centre."""
        with one_thread():
            vectors = TfIdf().embed(self.reading, texts)
            far = (self.centres**2).sum(axis=1)[None, :] - 2.0 * vectors @ self.centres.T
        return np.argmin(far, axis=1).astype(np.int64)


@lru_cache(maxsize=8)
def cluster_questions(texts: tuple[str, ...], seed: int) -> QuestionClusters:
    """Return clusters of train questions; cached, so that all training rounds share them."""
    reading = TfIdf().fit(texts)
    vectors = TfIdf().embed(reading, texts)
    distinct = len(np.unique(vectors, axis=0))
    clusters = max(1, min(CLUSTERS, len(texts) // 10, distinct))
    return QuestionClusters(reading, k_means(vectors, clusters, 4, seed)[0])


def _clusters_in(budget: TrainingBudget) -> QuestionClusters:
    return cluster_questions(tuple(question.text for question in budget.questions), budget.seed)


class TemplateExplorer:
    """Training procedure: try templates on train questions, learn the best template per cluster."""

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
        """Return the next round of training tries; None after the last, or if no try is affordable.

        A round stays within its share (`SHARES`) of the budget; the last may use all that is left.
        """
        if not given.publishable:
            raise UserError(
                f"{NAME} cannot learn from {', '.join(given.suites)}: its artefact would hold "
                "words of questions that must not be published. Give others with --train-on."
            )
        if len(done) == len(SHARES):
            return None
        spent = sum(result.calls for tries in done for result in tries)
        is_last = len(done) == len(SHARES) - 1
        share = given.calls - spent if is_last else int(given.calls * SHARES[len(done)])
        templates, clusters = enumerate_templates(given.workers), _clusters_in(given)
        random = default_rng([given.seed, len(done)])
        size = len(given.questions)
        epochs = max(1, -(-share // (3 * size)))
        covered = sum(len({trial.question for trial in tries}) for tries in done)
        start = covered % size if epochs == 1 else 0
        questions = given.questions[start:]
        results = _tries_of(templates, clusters, given, done)
        now = expected_scores(templates, results, len(clusters.centres))
        tries: dict[str, list[int]] = {}
        numbers = clusters.of([question.text for question in questions])
        for question, cluster in zip(questions, numbers, strict=True):
            expected = (now[0][:, cluster], now[1][:, cluster]) if done else None
            drawn = _draw(templates, expected, epochs, random)
            share -= int(templates.calls[drawn].sum())
            if share < 0:
                break
            tries[question.id] = drawn
        if not tries:
            return None
        return Round("podium/try_templates", {"tries": tries}, len(tries), epochs, start)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the artefact with each cluster's best template; UserError if no try was made."""
        if not any(done):
            raise UserError(
                f"{NAME}: {given.calls} worker calls are too few for one try. Raise --train-calls."
            )
        templates, clusters = enumerate_templates(given.workers), _clusters_in(given)
        results = _tries_of(templates, clusters, given, done)
        score, _ = expected_scores(templates, results, len(clusters.centres))
        worth = score - COST_OF_A_CALL * templates.calls[:, None]
        rows = [
            (number, result.question, result.epoch, result.plan, result.value, result.calls)
            for number, tries in enumerate(done)
            for result in tries
        ]
        settings = {"clusters": len(clusters.centres), "tries": len(results[2])}
        about = replace(
            learnt_from(NAME, given, done, settings),
            rows_sha256=hashlib.sha256(repr(rows).encode()).hexdigest(),
            questions=tuple(question_digest(question.text) for question in given.questions),
            embedder=TfIdf().name,
        )
        chosen = np.argmax(worth, axis=0).astype(np.int64)
        arrays = {"centres": clusters.centres, "chosen": chosen, "score": score}
        return Artifact(about, {**add_prefix(READING, clusters.reading), **arrays})


def _draw(
    templates: Templates, expected: tuple[Floats, Floats] | None, count: int, random: Generator
) -> list[int]:
    """Draw indices of `count` templates: by score, or by shape in round 1 (`expected` is None)."""
    if expected is None:
        shapes = np.unique(templates.shapes)
        chance = np.array(FIRST_LOOK)[shapes]
        picked = random.choice(shapes, size=count, p=chance / chance.sum())
        return [int(random.choice(np.flatnonzero(templates.shapes == shape))) for shape in picked]
    score, weight = expected
    spread = np.sqrt(np.clip(score * (1.0 - score), 0.01, None) / (1.0 + weight))
    worth = score + spread * random.standard_normal((count, len(score)))
    return [int(index) for index in np.argmax(worth - COST_OF_A_CALL * templates.calls, axis=1)]


def _tries_of(
    templates: Templates, clustering: QuestionClusters, budget: TrainingBudget, rounds: Rounds
) -> TemplateTries:
    index = {plan.as_json(): number for number, plan in enumerate(templates.plans)}
    clusters = clustering.of([question.text for question in budget.questions])
    of = {q.id: cluster for q, cluster in zip(budget.questions, clusters, strict=True)}
    graded = [t for tries in rounds for t in tries if t.value is not None and t.plan in index]
    return (
        np.array([index[trial.plan] for trial in graded], dtype=np.int64),
        np.array([of[trial.question] for trial in graded], dtype=np.int64),
        np.array([trial.value for trial in graded], dtype=np.float64),
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
    """Return the system that runs the template chosen for a question's cluster."""
    reading = strip_prefix(READING, learned.arrays)
    clusters = QuestionClusters(reading, np.asarray(learned.arrays["centres"], dtype=np.float64))
    plans = enumerate_templates(learned.about.workers).plans
    chosen = [int(template) for template in learned.arrays["chosen"]]

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_unfit(learned, pool.workers, question)
        return plans[chosen[int(clusters.of([question.text])[0])]]

    return planned(plan)


register_learner(NAME, template_system)


@register
def try_templates(tries: Mapping[str, Sequence[int]]) -> System:
    """Return a training system; `tries`: question id -> index of the template in each epoch."""

    def plan(question: Question, pool: Pool) -> Workflow:
        return enumerate_templates(pool.workers).plans[tries[question.id][pool.epoch - 1]]

    return planned(plan)
