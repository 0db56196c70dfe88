"""Each learned router on made matrices whose right routing is known."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from podium.baselines.routers import Examples, Router, choose_workers
from podium.baselines.routers.learners import (
    ClusterRouter,
    ContrastiveRouter,
    FactorsRouter,
    KnnRouter,
    LogisticRouter,
    MlpRouter,
    cluster_slope,
    worker_slope,
)
from podium.baselines.routers.optimisers import hold_out
from podium.baselines.routers.router_systems import (
    ROUTERS,
    Estimator,
    load_router,
    question_texts,
    train_router,
)
from podium.harness.errors import UserError
from podium.harness.learning import Floats, Matrix
from tests.baselines import topics

EACH = pytest.mark.parametrize("name", list(ROUTERS))
TAUGHT = topics.two_topics(200, seed=0)
ASKED = topics.two_topics(300, seed=1)


@cache
def trained(name: str) -> Estimator:
    """Return a router with default settings that has learnt two topics."""
    return load_router(train_router(ROUTERS[name](), TAUGHT, seed=3))


def routed(name: str, taught: Matrix, asked: Matrix, willingness: float | None = None) -> list[int]:
    """Return whom a router with default settings sends each question to."""
    learned = train_router(ROUTERS[name](), taught, seed=3)
    return choose_workers(load_router(learned)(question_texts(asked)), willingness).tolist()


def mean_of(asked: Matrix, chosen: list[int]) -> float:
    return float(asked.scores[np.arange(len(chosen)), chosen].mean())


@EACH
def test_a_question_goes_to_the_specialist_of_its_topic(name: str) -> None:
    chosen = choose_workers(trained(name)(question_texts(ASKED)))
    assert topics.share_right(ASKED.questions, chosen) >= 0.95


@EACH
def test_unknown_scores_teach_nothing_and_are_no_zeros(name: str) -> None:
    gaps = topics.with_gaps(TAUGHT, 0.3, seed=5)
    chosen = routed(name, gaps, ASKED)
    assert topics.share_right(ASKED.questions, np.array(chosen)) >= 0.95


@pytest.mark.parametrize("name", [name for name in ROUTERS if name != "router-contrastive"])
def test_a_worker_that_was_seldom_graded_but_always_right_is_not_held_to_be_wrong(
    name: str,
) -> None:
    scores = np.tile((0.5, np.nan, 0.1), (200, 1))
    # Graded on every other question: as zeros the gaps would make it one half. A contrast compares
    # workers on one question alone, so it cannot know.
    scores[::2, 1] = 1.0
    scores[::2, 0] = 0.8
    chosen = routed(name, replace(TAUGHT, scores=scores), ASKED)
    assert chosen.count(1) >= 0.95 * len(chosen)


@EACH
def test_a_worker_that_was_never_graded_is_never_asked(name: str) -> None:
    unknown = np.where(np.arange(3) == 0, np.nan, TAUGHT.scores)
    assert 0 not in routed(name, replace(TAUGHT, scores=unknown), ASKED)


@EACH
def test_the_one_worker_that_is_always_right_is_always_asked(name: str) -> None:
    assert set(routed(name, topics.one_best(120, 0), ASKED)) == {1}


@EACH
def test_where_nothing_explains_the_scores_a_router_is_right_by_chance_alone(name: str) -> None:
    asked = topics.noise(400, seed=1)
    got = mean_of(asked, routed(name, topics.noise(150, seed=0), asked))
    assert abs(got - 0.5) <= 3.5 * 0.5 / 400**0.5


@EACH
def test_who_is_willing_to_pay_less_pays_less(name: str) -> None:
    sweep = (None, 1.0, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003)
    estimate = trained(name)(question_texts(ASKED))
    paid = [float(np.mean(np.array(topics.USD)[choose_workers(estimate, one)])) for one in sweep]
    assert paid == sorted(paid, reverse=True)
    assert paid[-1] < paid[0]


@EACH
def test_a_router_learns_from_a_handful_of_questions(name: str) -> None:
    few = TAUGHT.rows([0, 1, 2])
    assert set(routed(name, few, ASKED)) <= {0, 1, 2}
    assert set(routed(name, TAUGHT.rows([0]), ASKED)) <= {0, 1, 2}


@EACH
def test_without_a_single_score_there_is_nothing_to_learn(name: str) -> None:
    ungraded = replace(TAUGHT, scores=np.full_like(TAUGHT.scores, np.nan))
    with pytest.raises(UserError, match="no train question has a score"):
        train_router(ROUTERS[name](), ungraded)


def fitted_on(count: int) -> Examples:
    rng = np.random.default_rng(0)
    return Examples(rng.random((count, 4)), rng.random((count, 3)), rng.random((count, 3)))


def test_as_many_neighbours_as_train_questions_are_their_mean() -> None:
    seen = fitted_on(6)
    router = KnnRouter(k=6)
    expected = router.estimate(router.fit(seen, 0), np.ones((2, 4)))
    assert np.allclose(expected.score, seen.scores.mean(axis=0))
    assert np.allclose(expected.usd, seen.usd.mean(axis=0))


def test_one_neighbour_is_the_question_of_the_smallest_angle() -> None:
    seen = Examples(np.eye(3), np.diag([0.1, 0.2, 0.3]), np.ones((3, 3)))
    router = KnnRouter(k=1)
    expected = router.estimate(router.fit(seen, 0), np.array([[0.1, 0.9, 0.2]]))
    assert expected.score.tolist() == [[0.0, 0.2, 0.0]]


@pytest.mark.parametrize("k", [0, 7])
def test_more_neighbours_than_train_questions_are_refused(k: int) -> None:
    with pytest.raises(UserError, match="k must be 1 to 6"):
        KnnRouter(k=k).fit(fitted_on(6), 0)


def test_more_clusters_than_train_questions_are_refused() -> None:
    with pytest.raises(UserError, match="clusters must be 1 to 6"):
        ClusterRouter(clusters=7).fit(fitted_on(6), 0)


@pytest.mark.parametrize(
    "router",
    [
        ClusterRouter(clusters=-1),
        ContrastiveRouter(top_k=0),
        FactorsRouter(noise=-1.0),
        LogisticRouter(c=0.0),
        MlpRouter(units=0),
    ],
    ids=lambda router: router.name,
)
def test_a_setting_that_means_nothing_is_refused(router: Router) -> None:
    with pytest.raises(UserError, match=router.name):
        router.fit(fitted_on(6), 0)


def test_fewer_clusters_route_as_well() -> None:
    learned = train_router(ClusterRouter(clusters=2), TAUGHT, 3)
    chosen = choose_workers(load_router(learned)(question_texts(ASKED)))
    assert topics.share_right(ASKED.questions, chosen) >= 0.95


def test_a_logistic_head_is_where_the_slope_of_its_loss_is_0() -> None:
    rng = np.random.default_rng(2)
    inputs, scores = rng.normal(size=(80, 5)), rng.random((80, 2))
    scores[::3, 1] = np.nan
    found = LogisticRouter().fit(Examples(inputs, scores, np.ones((80, 2))), 0)
    for worker in range(2):
        weights, known = found["weights"][:, worker], ~np.isnan(scores[:, worker])
        chance = 1 / (1 + np.exp(-inputs[known] @ weights - found["bias"][worker]))
        gaps = chance - scores[known, worker]
        assert np.allclose(inputs[known].T @ gaps + weights, 0, atol=1e-2)
        assert abs(gaps.sum()) < 1e-2


def held_apart(near: Floats, scores: Floats) -> float:
    """Return RouterDC's sample-LLM loss (equation 4), of the two best and the two worst."""
    total = 0.0
    for row, points in zip(near, scores, strict=True):
        order = np.argsort(-points)
        worst = [one for one in order[-2:] if points[one] <= 0.5]
        for best in (one for one in order[:2] if points[one] > 0):
            below = np.exp(row[best]) + np.exp(row[worst]).sum()
            total += -np.log(np.exp(row[best]) / below)
    return total / len(near)


def test_the_slope_of_the_contrast_between_workers_is_that_of_its_loss() -> None:
    rng = np.random.default_rng(4)
    near, scores = (
        rng.normal(size=(6, 5)),
        rng.permuted(np.tile([0, 0.2, 0.4, 0.7, 1], (6, 1)), axis=1),
    )
    slope = worker_slope(near, scores, (2, 2), rng)
    for at in np.ndindex(near.shape):
        step = np.zeros_like(near)
        step[at] = 1e-6
        rise = held_apart(near + step, scores) - held_apart(near - step, scores)
        assert slope[at] == pytest.approx(rise / 2e-6, abs=1e-6)


def test_questions_of_one_cluster_are_drawn_together_and_others_pushed_apart() -> None:
    slope = cluster_slope(np.zeros((4, 4)), np.array([0, 0, 1, 1]), 2, np.random.default_rng(0))
    assert (slope[:2, :2] <= 0).all()
    assert (slope[:2, 2:] >= 0).all()
    assert np.allclose(slope.sum(axis=1), 0)
    alone = cluster_slope(np.zeros((3, 3)), np.zeros(3, dtype=np.intp), 2, np.random.default_rng(0))
    assert not alone.any()


def test_held_out_questions_are_no_part_of_what_is_learnt_from() -> None:
    learn, held_out = hold_out(50, np.random.default_rng(0))
    assert len(held_out) == 10
    assert sorted([*learn.tolist(), *held_out.tolist()]) == list(range(50))
