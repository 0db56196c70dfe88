"""Intervals over seeds and questions: known values, and how often they hold the truth."""

import numpy as np
import pytest

from podium.reports.stats import Floats, t_interval
from tests.reports.crossed import crossed_mean, crossed_resamples, percentile

DRAWS = 400


def simulated(rng: np.random.Generator, seeds: int, spread: float) -> list[Floats]:
    """Return four suites of 30 questions whose true mean is 0."""
    shift = rng.normal(0, spread, (seeds, 1))
    return [shift + rng.normal(0, 0.4, (1, 30)) + rng.normal(0, 0.3, (seeds, 30)) for _ in range(4)]


@pytest.mark.parametrize(("seeds", "spread"), [(1, 0.0), (3, 0.0), (3, 0.04), (5, 0.04)])
def test_an_interval_holds_the_truth_about_as_often_as_it_says(seeds: int, spread: float) -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(DRAWS):
        found = crossed_mean(simulated(rng, seeds, spread)).interval
        assert found is not None
        hits += found.low <= 0 <= found.high
    assert 0.92 <= hits / DRAWS <= 0.985


def test_the_bootstrap_of_three_seeds_is_too_short_where_seeds_differ_much() -> None:
    rng, mine, theirs = np.random.default_rng(7), 0, 0
    for at in range(200):
        strata = simulated(rng, 3, 0.15)
        ours, other = crossed_mean(strata).interval, percentile(crossed_resamples(strata, 300, at))
        assert ours is not None
        assert other is not None
        mine += ours.low <= 0 <= ours.high
        theirs += other.low <= 0 <= other.high
    assert theirs / 200 < 0.88 < mine / 200


def test_one_seed_and_one_suite_is_students_interval_over_questions() -> None:
    values = np.random.default_rng(1).random((1, 12))
    found, plain = crossed_mean([values]), t_interval(values[0])
    assert plain is not None
    assert found.interval == pytest.approx(plain)
    assert found.seed_error is None


def test_seeds_that_do_not_differ_add_nothing() -> None:
    values = np.random.default_rng(1).random((1, 12))
    found = crossed_mean([np.repeat(values, 3, axis=0)])
    assert found.interval == pytest.approx(t_interval(values[0]))
    assert found.seed_error == pytest.approx(0)


def test_suites_weigh_the_same_whatever_their_size() -> None:
    found = crossed_mean([np.ones((2, 3)), np.zeros((2, 9))])
    assert found.mean == 0.5
    assert found.interval is None


def test_resamples_are_about_the_mean_and_the_same_each_time() -> None:
    strata = simulated(np.random.default_rng(3), 3, 0.05)
    drawn = crossed_resamples(strata, 2000)
    assert drawn.mean() == pytest.approx(crossed_mean(strata).mean, abs=0.01)
    assert np.array_equal(drawn, crossed_resamples(strata, 2000))


def test_a_gap_is_refused() -> None:
    with pytest.raises(ValueError, match="every seed"):
        crossed_mean([np.array([[1.0, np.nan]])])
