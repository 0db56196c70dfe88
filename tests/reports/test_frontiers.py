"""Costs and frontiers, by hand and by counting."""

import numpy as np
import pytest

from podium.reports.costs import (
    aiq,
    cost_of_pass,
    cost_ratio,
    frontier_cost_of_pass,
    hull,
    non_dominated,
)
from podium.reports.stats import resampled_counts, resampled_means

COUNTS = resampled_counts(6, 500)


def test_a_cost_ratio_is_paired() -> None:
    theirs = np.array([1.0, 2, 3, 4, 5, 6])
    means = resampled_means(COUNTS, np.column_stack((3 * theirs, theirs)))
    found = cost_ratio(3 * theirs, theirs, means)
    assert found is not None
    assert found[0] == pytest.approx(3.0)
    assert found[1] is None, "three times as dear on every question: there is no spread"
    assert cost_ratio(theirs, 0 * theirs, means) is None


def test_cost_of_pass_divides_by_the_share_of_right_answers() -> None:
    found = cost_of_pass(np.array([1.0, 2.0, 9.0]), np.array([1.0, 0.5, 0.0]))
    assert found is not None
    assert found.mean == pytest.approx((1 + 4) / 2)
    assert found.infinite == pytest.approx(1 / 3)
    assert found.ratio_of_means == pytest.approx(12 / 1.5)
    nothing = cost_of_pass(np.array([1.0]), np.array([0.0]))
    assert nothing is not None
    assert (nothing.mean, nothing.infinite, nothing.ratio_of_means) == (None, 1.0, None)
    assert cost_of_pass(np.array([np.nan]), np.array([1.0])) is None


def test_the_frontier_takes_the_cheapest_right_answer_of_each_question() -> None:
    costs = np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0]])
    right = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    found = frontier_cost_of_pass(costs, right)
    assert found is not None
    assert (found.mean, found.infinite) == (3.0, pytest.approx(1 / 3))


def test_who_is_on_the_frontier() -> None:
    costs = np.array([1.0, 2.0, 2.0, 3.0, 1.0, np.nan])
    scores = np.array([0.5, 0.7, 0.6, 0.7, 0.5, 0.9])
    assert non_dominated(costs, scores).tolist() == [True, True, False, False, True, False]


def test_membership_is_counted_over_resamples_that_systems_share() -> None:
    """Every resample of six questions is drawn the slow way too."""
    rng = np.random.default_rng(8)
    scores, costs = rng.random((6, 3)).round(), rng.random((6, 3))
    drawn = non_dominated(resampled_means(COUNTS, costs), resampled_means(COUNTS, scores))
    found = drawn.mean(axis=0)
    hits = np.zeros(3)
    for row in COUNTS.astype(int):
        at = np.repeat(np.arange(6), row)
        mean_cost, mean_score = costs[at].mean(axis=0), scores[at].mean(axis=0).round(9)
        for one in range(3):
            better = (mean_cost <= mean_cost[one]) & (mean_score >= mean_score[one])
            strictly = (mean_cost < mean_cost[one]) | (mean_score > mean_score[one])
            hits[one] += not (better & strictly).any()
    assert found == pytest.approx(hits / 500)


def test_the_hull_leaves_out_what_random_mixing_beats() -> None:
    costs, scores = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.4, 0.45, 0.8, 0.7])
    assert hull(costs, scores) == [(1.0, 0.4), (3.0, 0.8)]
    assert hull(costs[:1], scores[:1]) == [(1.0, 0.4)]


def test_the_area_below_the_hull_by_hand() -> None:
    """From (1, 0.5) to (3, 0.8) the mean height is 0.65.

    RouterBench's own code, which divides by the larger cost alone, says 1.3 / 3 = 0.433 there.
    """
    costs, scores = np.array([1.0, 3.0]), np.array([0.5, 0.8])
    assert aiq(costs, scores, 1.0, 3.0) == pytest.approx(0.65)
    assert aiq(costs, scores, 0.0, 3.0) == pytest.approx(1.3 / 3), "0 below the cheapest"
    assert aiq(costs, scores, 1.0, 5.0) == pytest.approx((1.3 + 1.6) / 4), "level beyond"
    assert aiq(costs, scores, 2.0, 3.0) == pytest.approx(0.725)
    assert aiq(costs, scores, 0.0, 0.5) == 0.0
    assert aiq(costs, scores, 3.0, 3.0) is None
    assert aiq(np.array([np.nan]), np.array([0.5]), 0.0, 1.0) is None
