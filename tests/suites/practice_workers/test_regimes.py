"""What the practice suites and rehearsal pools are for: regimes in which orchestration wins or not.

Workers answer outside Inspect, through the same pool and executor. Train questions only: `eval` is
for released numbers.
"""

import asyncio
from collections.abc import Sequence
from functools import cache

import pandas as pd
import pytest

from podium.baselines.mixture import moa_system
from podium.baselines.oracle import GATHER, USE
from podium.baselines.single import single_system
from podium.baselines.voting import self_consistency_system
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import read_pool
from podium.harness.records import Question
from podium.harness.system import System, planned
from podium.harness.workflow import Step, Workflow
from podium.sandbox import open_box
from podium.suites import SUITES
from podium.suites.practice.unseen import paraphrases
from podium.suites.practice.workers.drawing import frozen_digest, workers_digest

KINDS = ("practice-integer", "practice-choice", "practice-code", "practice-composed")
LOOK_UP_THEN_COMPUTE = Workflow((Step("scholar", GATHER), Step("abacus", USE, reads=(0,))))


@cache
def train(suite: str, size: int) -> Sequence[Question]:
    return SUITES[suite].load("train")[:size]


def accuracy(
    system: System, questions: Sequence[Question], suite: str, pool: str = "rehearsal"
) -> float:
    """Return a system's mean grade over questions, each asked once."""
    spec = read_pool(pool)
    models = pool_models(spec, seed=5)
    box = open_box("subprocess") if SUITES[suite].needs_box else None

    async def grade(question: Question) -> float:
        answer = await system(question.sealed(), Pool(models=models, spec=spec))
        return SUITES[suite].grade(question, answer.text, box).value

    async def all_grades() -> list[float]:
        return [await grade(question) for question in questions]

    grades = asyncio.run(all_grades())
    return sum(grades) / len(grades)


def singles(suite: str, questions: Sequence[Question], pool: str = "rehearsal") -> dict[str, float]:
    names = read_pool(pool).names
    return {name: accuracy(single_system(name), questions, suite, pool) for name in names}


@cache
def both_wordings(suite: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return accuracies on generated questions and on those that a person wrote."""
    return singles(suite, train(suite, 60)), singles(suite, paraphrases()[suite])


@pytest.mark.slow
def test_no_single_worker_solves_composed_questions_and_a_plan_of_two_does() -> None:
    questions = train("practice-composed", 80)
    alone = singles("practice-composed", questions)
    together = accuracy(planned(lambda *_: LOOK_UP_THEN_COMPUTE), questions, "practice-composed")
    assert max(alone.values()) <= 0.25
    assert together >= max(alone.values()) + 0.25


@pytest.mark.slow
@pytest.mark.parametrize("worker", ["abacus", "swift"])
def test_self_consistency_gains_over_its_single_worker(worker: str) -> None:
    questions = train("practice-integer", 120)
    once = accuracy(single_system(worker), questions, "practice-integer")
    voted = accuracy(self_consistency_system(worker, k=5), questions, "practice-integer")
    assert voted > once


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["rehearsal-homogeneous", "rehearsal-correlated"])
def test_mixing_copies_of_one_worker_gains_no_more_than_asking_it_as_often(pool: str) -> None:
    questions = train("practice-integer", 80)
    first = read_pool(pool).names[0]
    voted = accuracy(self_consistency_system(first, k=5), questions, "practice-integer", pool)
    mixed = accuracy(moa_system(), questions, "practice-integer", pool)
    assert mixed <= voted + 0.08


@pytest.mark.slow
def test_voting_over_workers_that_fail_together_gains_nothing() -> None:
    questions = train("practice-integer", 80)
    alone = max(singles("practice-integer", questions, "rehearsal-correlated").values())
    mixed = accuracy(moa_system(), questions, "practice-integer", "rehearsal-correlated")
    assert mixed <= alone + 0.08


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["practice-integer", "practice-choice", "practice-composed"])
def test_where_one_worker_dominates_mixing_does_not_win(suite: str) -> None:
    questions = train(suite, 60)
    alone = max(singles(suite, questions, "rehearsal-dominant").values())
    mixed = accuracy(moa_system(), questions, suite, "rehearsal-dominant")
    assert mixed <= alone + 0.05


@pytest.mark.slow
def test_workers_rank_the_same_on_questions_that_a_person_wrote() -> None:
    """Over all pairs of workers that differ clearly on generated questions, within each kind."""
    agree, differ = 0, 0
    for suite in KINDS:
        generated, human = both_wordings(suite)
        for left, right in _clear_pairs(generated):
            agree += human[left] > human[right]
            differ += human[left] < human[right]
    assert agree + differ >= 20
    assert agree >= 4 * differ, f"{agree} pairs agree, {differ} differ"


@pytest.mark.slow
@pytest.mark.parametrize("suite", KINDS)
def test_ranks_correlate_between_generated_and_written_questions(suite: str) -> None:
    """Spearman's rank correlation over the eight workers, per kind."""
    generated, written = (pd.Series(figures).rank() for figures in both_wordings(suite))
    assert generated.corr(written) >= 0.6


def _clear_pairs(accuracies: dict[str, float], margin: float = 0.2) -> list[tuple[str, str]]:
    names = sorted(accuracies)
    return [
        (left, right)
        for left in names
        for right in names
        if accuracies[left] >= accuracies[right] + margin
    ]


def test_the_rehearsal_is_what_was_frozen() -> None:
    assert workers_digest() == frozen_digest()["sha256"], (
        "Rehearsal workers changed, and with them every rehearsal number: raise `version` in "
        "suites/practice/workers/frozen.toml, put there what its comment's command says, "
        "and name it under Scores in CHANGELOG.md."
    )
