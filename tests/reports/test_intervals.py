"""Intervals and verdicts against figures from published tables and worked by hand."""

from math import sqrt

import pytest

from podium.reports.intervals import Values, accuracy, accuracy_interval, difference
from podium.reports.stats import sign_test


def one_epoch(right: int, n: int) -> dict[str, list[float]]:
    """Return n questions of one epoch, the first `right` of them right."""
    return {f"q{at}": [float(at < right)] for at in range(n)}


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [
        # Wilson bounds as scipy 1.17.1 gives them: binomtest(k, n).proportion_ci(method="wilson").
        pytest.param(29, 30, 0.833296, 0.994091, id="29-of-30"),
        pytest.param(0, 10, 0.0, 0.277533, id="none"),
        pytest.param(10, 10, 0.722467, 1.0, id="all"),
        pytest.param(81, 263, 0.255289, 0.366210, id="newcombe-1998-table-1"),
    ],
)
def test_one_epoch_gets_the_wilson_interval(right: int, n: int, low: float, high: float) -> None:
    found = accuracy_interval(one_epoch(right, n))
    assert found is not None
    assert found.low == pytest.approx(low, abs=2e-6)
    assert found.high == pytest.approx(high, abs=2e-6)


def test_epochs_are_averaged_within_a_question_first() -> None:
    assert accuracy({"a": [1.0, 0.0, 0.0, 0.0], "b": [1.0]}) == pytest.approx((0.25 + 1) / 2)


def test_asking_the_same_again_does_not_narrow_the_interval() -> None:
    once = accuracy_interval(one_epoch(12, 30))
    values = {name: grades * 8 for name, grades in one_epoch(12, 30).items()}
    again = accuracy_interval(values)
    assert once is not None
    assert again is not None
    assert again.high - again.low >= once.high - once.low


def test_epochs_that_disagree_narrow_the_interval() -> None:
    once = accuracy_interval(one_epoch(15, 30))
    halves = accuracy_interval({f"q{at}": [1.0, 0.0] * 4 for at in range(29)} | {"q": [1.0] * 8})
    assert once is not None
    assert halves is not None
    assert halves.high - halves.low < once.high - once.low


def test_all_right_in_every_epoch_counts_questions_and_not_epochs() -> None:
    assert accuracy_interval({name: [1.0] * 4 for name in "abcdefghij"}) == accuracy_interval(
        one_epoch(10, 10)
    )


def test_nothing_graded_has_no_accuracy_and_no_interval() -> None:
    empty: Values = {"a": []}
    assert accuracy(empty) is None
    assert accuracy_interval(empty) is None


def test_a_paired_difference_is_students_t_on_the_differences() -> None:
    ours = {f"q{n}": [grade] for n, grade in enumerate([1.0, 1, 1, 0, 1])}
    theirs = {f"q{n}": [grade] for n, grade in enumerate([1.0, 0, 0, 0, 1])}
    found = difference(ours, theirs)
    # Differences 0, 1, 1, 0, 0: mean 0.4, variance 0.3; t(4, 0.975) = 2.776445 as scipy has it.
    half = 2.776445 * sqrt(0.3) / sqrt(5)
    assert found is not None
    assert found.paired_low is not None
    assert found.paired_diff == pytest.approx(0.4)
    assert found.paired_low == pytest.approx(0.4 - half, abs=1e-5)
    assert found.paired_high == 1.0, "no two accuracies differ by more, so it is cut there"
    # 2.801585 is the normal quantile of 0.975 plus that of 0.8.
    assert found.min_detectable == pytest.approx(2.801585 * sqrt(0.3) / sqrt(5), abs=1e-5)
    assert found.verdict == "inconclusive"


def test_only_questions_that_both_were_graded_on_are_paired() -> None:
    found = difference({"a": [1.0], "b": [0.0]}, {"b": [0.0], "c": [1.0]})
    assert found is not None
    assert found.n_paired == 1
    assert found.paired_diff == 0.0
    assert difference({"a": [1.0]}, {"b": [1.0]}) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        pytest.param(one_epoch(28, 30), one_epoch(10, 30), "better", id="clearly-better"),
        pytest.param(one_epoch(10, 30), one_epoch(28, 30), "worse", id="clearly-worse"),
        pytest.param(one_epoch(16, 30), one_epoch(14, 30), "inconclusive", id="too-close"),
        pytest.param(one_epoch(9, 30), one_epoch(9, 30), "inconclusive", id="equal"),
        pytest.param(one_epoch(3, 3), one_epoch(0, 3), "inconclusive", id="three-questions"),
        pytest.param(one_epoch(6, 6), one_epoch(0, 6), "better", id="six-of-six"),
    ],
)
def test_a_verdict_needs_more_than_a_difference(ours: Values, theirs: Values, verdict: str) -> None:
    found = difference(ours, theirs)
    assert found is not None
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("grades", "test"),
    [([1.0], "mcnemar"), ([], "mcnemar"), ([0.5], "sign-flip"), ([1.0, 0.0], "sign-flip")],
)
def test_one_grade_of_0_or_1_a_question_has_mcnemars_test(grades: list[float], test: str) -> None:
    compared = difference(one_epoch(3, 5) | {"more": grades}, one_epoch(2, 5))
    assert compared is not None
    assert compared.test == test


def test_the_sign_test_is_exact() -> None:
    assert sign_test([1, 1, 1, 1, 1, 1]) == pytest.approx(2 / 64)
    assert sign_test([1, 1, 1, -1]) == pytest.approx(2 * (1 + 4) / 16)
    assert sign_test([0, 0]) == 1.0
