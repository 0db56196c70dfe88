"""What tries of workflows say of all of them: expected scores by template and kind of question.

A template is a workflow of `plan_set.py`. Tries are few and templates many, so what is expected of
one is pooled: a ridge logistic regression on who does what in it (over all questions, and a
departure from that for each cluster of questions), then shrinkage of what was seen towards it.
Arrays in, arrays out; trying and routing are template_router.py.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from baselines.plan_set import FINISH, GATHER, enumerate_plans
from baselines.ridge_logistic import fitted
from baselines.routing.descent import sigmoid
from harness.learning.matrix import Floats
from harness.workflow import Step, Workflow

Ints = NDArray[np.int64]

PULL = 1.0
"""Ridge on who does what, in log odds: a role's effect has standard deviation 1 beforehand."""
PULL_OF_CLUSTER = 4.0
"""Ridge on how a cluster departs from all questions: half that deviation."""
TRUST_TEMPLATE, TRUST_CLUSTER = 8.0, 8.0
"""Tries after which what was seen of a template counts as much as the regression: over all
questions, and within a cluster. Set once, by hand, before any measurement on an eval split."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Tries: row i is one of them."""

    template: Ints
    cluster: Ints
    value: Floats
    """Between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of each template on each cluster of questions."""

    score: Floats
    """(templates, clusters)."""
    weight: Floats
    """(templates, clusters), how many tries the score is worth."""


@dataclass(frozen=True, slots=True)
class Templates:
    """The enumerated workflows of some workers."""

    plans: tuple[Workflow, ...]
    calls: Ints
    """(templates,), worker calls."""
    shapes: Ints
    """(templates,): 0 singles, 1 and 2 pairs, 3 triples, 4 fan-ins."""
    roles: Floats
    """(templates, roles): 1 where a worker has a role, and where a template has a shape."""


@cache
def templates(workers: tuple[str, ...]) -> Templates:
    """Return every template of some workers, shortest first."""
    plans = enumerate_plans(workers)
    shapes = [_shape(plan) for plan in plans]
    names = [[f"shape {shape}", *_roles(plan)] for plan, shape in zip(plans, shapes, strict=True)]
    known = {name: at for at, name in enumerate(sorted({one for all_ in names for one in all_}))}
    roles = np.zeros((len(plans), len(known)))
    for at, all_ in enumerate(names):
        for one in all_:
            roles[at, known[one]] = 1.0
    calls = np.array([len(plan.steps) for plan in plans], dtype=np.int64)
    return Templates(plans, calls, np.array(shapes, dtype=np.int64), roles)


def _shape(plan: Workflow) -> int:
    steps = list(plan.steps)
    first = steps[0]
    if len(steps) == 1:
        return 0
    if len(steps) == 2:
        return 1 if first.subtask == GATHER else 2
    return 3 if steps[-1].subtask == FINISH else 4


def _roles(plan: Workflow) -> list[str]:
    """Return who does what; the one who computes is the same role in every shape."""
    steps = list(plan.steps)
    if len(steps) > 3:
        return [f"aggregates {steps[-1].worker}"]
    names = [_first(steps[0], len(steps))]
    if len(steps) > 1:
        names.append(f"solves {steps[1].worker}")
    if len(steps) > 2:
        names.append(f"finishes {steps[2].worker}")
    return names


def _first(step: Step, steps: int) -> str:
    if steps == 1:
        return f"alone {step.worker}"
    return f"{'gathers' if step.subtask == GATHER else 'drafts'} {step.worker}"


def expected(known: Templates, seen: Seen, clusters: int) -> Expected:
    """Return what the tries so far say of every template on every cluster."""
    n = len(known.plans)
    if not len(seen.value):
        return Expected(np.full((n, clusters), 0.5), np.full((n, clusters), 1.0))
    model = _regressed(known.roles, seen, clusters)
    counts, wins, foretold = (np.zeros((n, clusters)) for _ in range(3))
    at = (seen.template, seen.cluster)
    np.add.at(counts, at, 1.0)
    np.add.at(wins, at, seen.value)
    np.add.at(foretold, at, model[at])
    tries = counts.sum(axis=1, keepdims=True)
    missed = (wins - foretold).sum(axis=1, keepdims=True) / (tries + TRUST_TEMPLATE)
    before = np.clip(model + missed, 0.0, 1.0)
    score = (wins + TRUST_CLUSTER * before) / (counts + TRUST_CLUSTER)
    share = tries / (tries + TRUST_TEMPLATE)
    return Expected(score, counts + 2.0 + TRUST_CLUSTER * share)


def _regressed(roles: Floats, seen: Seen, clusters: int) -> Floats:
    """Return (templates, clusters): the chance of being right by roles, pooled over clusters."""
    width = roles.shape[1]
    rows = np.zeros((len(seen.value), 1 + width * (1 + clusters)))
    rows[:, 0] = 1.0
    rows[:, 1 : 1 + width] = roles[seen.template]
    for cluster in range(clusters):
        of = seen.cluster == cluster
        start = 1 + width * (1 + cluster)
        rows[of, start : start + width] = roles[seen.template[of]]
    pull = np.full(rows.shape[1], PULL)
    pull[0], pull[1 + width :] = 0.05, PULL_OF_CLUSTER
    weights = fitted(rows, seen.value, pull)
    common = weights[0] + roles @ weights[1 : 1 + width]
    apart = weights[1 + width :].reshape(clusters, width)
    return sigmoid(common[:, None] + roles @ apart.T)
