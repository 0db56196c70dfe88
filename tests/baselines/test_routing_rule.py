"""The one rule by which routers choose: a score against dollars, and how ties end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.baselines.routers import Estimates, choose_workers
from podium.harness.errors import UserError
from podium.harness.learning import mean_known

NAN = float("nan")


def estimates(score: list[list[float]], usd: list[list[float]]) -> Estimates:
    return Estimates(np.array(score), np.array(usd))


def test_without_a_willingness_the_highest_score_wins_whatever_it_costs() -> None:
    assert choose_workers(estimates([[0.5, 0.6]], [[0.01, 9.0]])).tolist() == [1]
    assert choose_workers(estimates([[0.5, 0.6]], [[0.01, 9.0]]), float("inf")).tolist() == [1]


def test_a_willingness_is_dollars_per_right_answer() -> None:
    # One tenth of a right answer more for 2 dollars more: worth it from 20 dollars per answer on.
    expected = estimates([[0.5, 0.6]], [[1.0, 3.0]])
    assert choose_workers(expected, 19.9).tolist() == [0]
    assert choose_workers(expected, 20.1).tolist() == [1]


def test_ties_go_to_the_cheaper_and_then_to_the_earlier_in_the_pool() -> None:
    assert choose_workers(estimates([[0.5, 0.5, 0.5]], [[2.0, 1.0, 1.0]])).tolist() == [1]
    assert choose_workers(estimates([[0.5, 0.5]], [[NAN, 1.0]])).tolist() == [1]
    assert choose_workers(estimates([[0.5, 0.5]], [[NAN, NAN]])).tolist() == [0]


def test_scores_that_differ_by_less_than_arithmetic_can_tell_are_a_tie() -> None:
    assert choose_workers(estimates([[0.1 + 0.2, 0.3]], [[2.0, 1.0]])).tolist() == [1]


def test_a_worker_without_a_known_score_is_never_chosen() -> None:
    assert choose_workers(estimates([[NAN, 0.0]], [[1.0, 1.0]])).tolist() == [1]
    with pytest.raises(UserError, match="knows no worker's score"):
        choose_workers(estimates([[NAN, NAN]], [[1.0, 1.0]]))


def test_an_unknown_price_leaves_only_scores_to_choose_by() -> None:
    expected = estimates([[0.5, 0.6]], [[NAN, 1.0]])
    assert choose_workers(expected).tolist() == [1]
    with pytest.raises(UserError, match=r"no known price.*Omit the willingness"):
        choose_workers(expected, 1.0)


@pytest.mark.parametrize("willingness", [0.0, -1.0, NAN])
def test_a_willingness_that_is_no_price_is_refused(willingness: float) -> None:
    with pytest.raises(UserError, match="must be above 0"):
        choose_workers(estimates([[0.5, 0.6]], [[1.0, 3.0]]), willingness)


TENTHS = st.integers(0, 10).map(lambda tenths: tenths / 10)
ROWS = st.lists(st.tuples(TENTHS, TENTHS), min_size=1, max_size=6)


@given(rows=ROWS, willing=st.lists(st.integers(1, 100), min_size=2, max_size=8))
def test_who_is_willing_to_pay_more_never_pays_less(
    rows: list[tuple[float, float]], willing: list[int]
) -> None:
    score, usd = [one[0] for one in rows], [one[1] for one in rows]
    expected = estimates([score], [usd])
    chosen = [int(choose_workers(expected, float(one))[0]) for one in sorted(willing)]
    paid = [usd[at] for at in chosen]
    assert paid == sorted(paid)
    assert [score[at] for at in chosen] == sorted(score[at] for at in chosen)


@given(rows=ROWS, willingness=st.sampled_from([None, 0.5, 2.0]))
def test_no_other_worker_does_better_than_the_chosen(
    rows: list[tuple[float, float]], willingness: float | None
) -> None:
    score, usd = [one[0] for one in rows], [one[1] for one in rows]
    at = int(choose_workers(estimates([score], [usd]), willingness)[0])
    price = 1 / willingness if willingness else 0.0
    values = [one - price * paid for one, paid in zip(score, usd, strict=True)]
    assert values[at] >= max(values) - 1e-9


def test_a_mean_of_nothing_known_is_unknown() -> None:
    assert mean_known(np.array([[1.0, NAN], [NAN, NAN]])).tolist()[0] == 1.0
    assert np.isnan(mean_known(np.array([[1.0, NAN], [NAN, NAN]]))[1])
