"""Statistics on arrays against statsmodels, scipy and Inspect, to 1e-9; they share no code."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from inspect_ai.scorer import SampleScore, Score, ci, ci_wilson, pass_at, stderr
from scipy import stats as scipy_stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import cochrans_q
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from podium.reports import stats
from podium.reports.intervals import difference
from podium.reports.stats import (
    Variance,
    bca_interval,
    bca_ratio,
    bootstrap_means,
    clustered_error,
    cochran_q,
    correlation_of,
    detectable,
    effective_wilson,
    holm,
    mcnemar,
    questions_needed,
    resampled_counts,
    resampled_means,
    sign_flips,
    standard_error,
    t_interval,
    variance_of_accuracies,
    variance_of_draws,
    wilson,
)


def drawn(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def inspects(metric: Any, values: np.ndarray, clusters: np.ndarray) -> Any:
    """Apply one of Inspect's metrics."""
    return metric(
        [
            SampleScore(score=Score(value=float(v)), sample_metadata={"cluster": str(c)})
            for v, c in zip(values, clusters, strict=True)
        ]
    )


CLUSTERS = np.arange(60) // 4
VALUES = (drawn(60) + drawn(15, seed=2)[CLUSTERS]) / 2


def test_the_standard_error_is_inspects() -> None:
    found = inspects(stderr(), VALUES, CLUSTERS)
    assert standard_error(VALUES) == pytest.approx(found)


def test_the_clustered_error_is_inspects_and_without_correction_that_of_statsmodels() -> None:
    found = inspects(stderr(cluster="cluster"), VALUES, CLUSTERS)
    assert clustered_error(VALUES, CLUSTERS.tolist()) == pytest.approx(found)
    fitted = OLS(VALUES, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": CLUSTERS, "use_correction": False}
    )
    uncorrected = found * (14 / 15) ** 0.5
    assert uncorrected == pytest.approx(float(fitted.bse[0]), rel=1e-9)


def test_one_cluster_has_no_error_and_gaps_are_left_out() -> None:
    assert clustered_error([0.0, 1.0], ["a", "a"]) is None
    gap = [0.0, float("nan"), 1.0, 1.0]
    assert clustered_error(gap, "aabc") == clustered_error([0.0, 1.0, 1.0], "abc")
    assert standard_error(gap) == standard_error([0.0, 1.0, 1.0])


def test_students_interval_is_inspects() -> None:
    found = inspects(ci(0.95, method="t"), VALUES, CLUSTERS)
    ours = t_interval(VALUES)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((found["lower"], found["upper"]))
    assert t_interval([1.0, 1.0]) is None


@pytest.mark.parametrize(("right", "n"), [(0, 10), (29, 30), (10, 10), (81, 263)])
def test_intervals_of_shares_are_those_of_statsmodels(right: int, n: int) -> None:
    theirs = proportion_confint(right, n, method="wilson")
    assert wilson(right / n, n) == pytest.approx(theirs, abs=1e-9)


def test_wilsons_interval_on_an_effective_size_is_inspects() -> None:
    error = clustered_error(VALUES, CLUSTERS.tolist()) or 0.0
    found = inspects(ci_wilson(0.95, cluster="cluster"), VALUES, CLUSTERS)
    ours = effective_wilson(float(VALUES.mean()), 60, error, 15)
    assert tuple(ours) == pytest.approx((found["lower"], found["upper"]))


@pytest.mark.parametrize("kind", ["continuous", "binary", "skewed"])
def test_the_bca_interval_is_scipys_from_the_same_draws(kind: str) -> None:
    values = drawn(37)
    values = {"continuous": values, "binary": values.round(), "skewed": np.exp(4 * values)}[kind]
    counts = resampled_counts(37, 900, seed=5)
    ours = bca_interval(values, resampled_means(counts, values[:, None])[:, 0])
    rng = np.random.default_rng(5)
    theirs = scipy_stats.bootstrap((values,), np.mean, n_resamples=900, rng=rng).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high))


def test_the_bca_interval_of_a_ratio_is_scipys_paired_one() -> None:
    top, below = drawn(25), 1 + drawn(25, seed=2)
    counts = resampled_counts(25, 900, seed=5)
    means = resampled_means(counts, np.column_stack((top, below)))
    theirs = scipy_stats.bootstrap(
        (top, below),
        lambda one, other, axis: one.sum(axis=axis) / other.sum(axis=axis),
        paired=True,
        n_resamples=900,
        rng=np.random.default_rng(5),
    ).confidence_interval
    ours = bca_ratio(top, below, means[:, 0] / means[:, 1])
    assert ours == pytest.approx((theirs.low, theirs.high))


def test_resamples_are_the_same_for_the_same_seed_and_skip_gaps() -> None:
    counts = resampled_counts(5, 40)
    assert (counts == resampled_counts(5, 40)).all()
    assert (counts.sum(axis=1) == 5).all()
    gap = np.array([[1.0], [2.0], [np.nan], [4.0], [5.0]])
    means = resampled_means(counts, gap)[:, 0]
    at = [n for n in range(5) if n != 2]
    assert means[0] == pytest.approx(np.average(gap[at, 0], weights=counts[0, at]))


def test_resamples_made_some_at_a_time_are_those_made_at_once() -> None:
    values = drawn(3000, 2)
    assert stats.CELLS < 3000 * 2000
    at_once = resampled_means(resampled_counts(3000, 2000), values)
    assert bootstrap_means(values, 2000) == pytest.approx(at_once)


def test_without_spread_nothing_is_bootstrapped() -> None:
    counts = resampled_counts(4, 20)
    same = np.full(4, 0.3)
    assert bca_interval(same, resampled_means(counts, same[:, None])[:, 0]) is None
    assert bca_ratio(same, 2 * same, np.full(20, 0.5)) is None


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (7, 2), (12, 12), (40, 22)])
def test_mcnemars_exact_test_is_that_of_statsmodels(b: int, c: int) -> None:
    theirs: Any = their_mcnemar([[5, b], [c, 5]], exact=True)
    assert mcnemar(b, c) == pytest.approx(theirs.pvalue, rel=1e-9)


def test_all_sign_flips_of_few_questions_are_scipys_exact_permutation_test() -> None:
    deltas = drawn(9) - 0.3
    found = scipy_stats.permutation_test(
        (deltas,), np.mean, permutation_type="samples", n_resamples=2**9
    )
    assert sign_flips(deltas) == pytest.approx(found.pvalue, rel=1e-9)


def test_drawn_sign_flips_come_near_the_t_test_and_are_never_0() -> None:
    deltas = drawn(80) - 0.42
    student: Any = scipy_stats.ttest_1samp(deltas, 0)
    assert sign_flips(deltas) == pytest.approx(student.pvalue, abs=0.01)
    assert sign_flips(np.ones(40)) == pytest.approx(1 / 10_001)
    flips = np.random.default_rng(7).choice((-1.0, 1.0), (40_000, 80)) @ (drawn(80) - 0.52)
    exact = (np.abs(flips) >= abs((drawn(80) - 0.52).sum())).mean()
    assert sign_flips(drawn(80) - 0.52) == pytest.approx(exact, abs=0.015)
    assert exact > 0.1
    assert sign_flips(np.zeros(4)) == 1.0


def test_discordant_counts_and_correlation() -> None:
    ours, theirs = np.array([1.0, 1, 0, 0, 1]), np.array([1.0, 0, 0, 1, 0])
    mine, other = ({str(at): [one] for at, one in enumerate(x)} for x in (ours, theirs))
    found = difference(mine, other)
    assert found
    assert (found.n_better, found.n_worse) == (2, 1)
    assert found.correlation == pytest.approx(np.corrcoef(ours, theirs)[0, 1])
    assert correlation_of(np.ones(3), np.array([1.0, 0, 1])) is None


def test_cochrans_q_is_that_of_statsmodels() -> None:
    values = (drawn(50, 4) < [0.4, 0.5, 0.6, 0.8]).astype(float)
    found, theirs = cochran_q(values), cochrans_q(values)
    assert found is not None
    told = (theirs.statistic, theirs.df, theirs.pvalue)
    assert (found.q, found.df, found.p_value) == pytest.approx(told, rel=1e-9)


def test_cochrans_q_of_two_systems_is_that_of_statsmodels() -> None:
    values = (drawn(50, 2) < [0.4, 0.7]).astype(float)
    result, theirs = cochran_q(values), cochrans_q(values)
    assert result is not None
    assert (result.q, result.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
    assert result.differing == (values[:, 0] != values[:, 1]).sum()


@pytest.mark.parametrize(
    "values",
    [np.ones(3), np.ones((3, 1)), np.ones((3, 2)), np.array([[0.5, 1.0]]), np.array([[np.nan, 1]])],
    ids=["one-dimension", "one-system", "all-agree", "averages", "a-gap"],
)
def test_cochrans_q_is_silent_where_it_has_no_say(values: np.ndarray) -> None:
    assert cochran_q(values) is None


def test_holms_adjustment_is_that_of_statsmodels() -> None:
    for ps in ([0.04, 0.001, 0.03, 0.2, 0.9, 0.011], [0.5] * 4, [0.0, 0.0, 1.0], [0.03]):
        assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1], rel=1e-9)
    assert holm([]) == []


@pytest.mark.parametrize(("n", "right", "k"), [(8, 3, 2), (10, 0, 5), (5, 5, 1), (6, 1, 6)])
def test_pass_at_k_is_inspects(n: int, right: int, k: int) -> None:
    tried = [Score(value=float(at < right)) for at in range(n)]
    assert stats.pass_at_k(n, right, k) == pytest.approx(pass_at(k)(tried).as_float())


def brute(answers: str, right: str, k: int) -> float:
    """Vote in every subset of k answers; `-` is no answer; ties share."""
    won: list[float] = []
    for subset in combinations(answers, k):
        votes = {one: subset.count(one) for one in subset if one != "-"}
        best = [one for one, n in votes.items() if n == max(votes.values())]
        won.append(best.count(right) / len(best) if best else 0.0)
    return sum(won) / len(won)


@pytest.mark.parametrize("answers", ["aabbc", "a----", "-----", "abcde", "aaaabbbb", "bbbaa--"])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_maj_at_k_is_a_vote_in_every_subset(answers: str, k: int) -> None:
    given = [None if one == "-" else one for one in answers]
    grades = [float(one == "a") for one in answers]
    assert stats.maj_at_k(given, grades, k) == pytest.approx(brute(answers, "a", k))


def test_maj_at_k_of_many_tries_is_drawn_and_close() -> None:
    answers = "aaaaaaaaabbbbbbbccc"
    grades = [float(one == "a") for one in answers]
    exact = brute(answers, "a", 5)
    assert stats.maj_at_k(answers, grades, 5) == pytest.approx(exact, abs=0.03)
    with pytest.raises(ValueError, match=r"maj@20 needs 20 tries, and there are 19\. Give a k"):
        stats.maj_at_k(answers, grades, 20)


@pytest.mark.parametrize(("n", "points"), [(30, 16), (198, 6.3), (175, 6.7), (1055, 2.7)], ids=str)
def test_detectable_differences_at_ten_percent_discordant_pairs(n: int, points: float) -> None:
    """The figures of reference/baselines.md, section 5."""
    assert 100 * detectable(0.1, n) == pytest.approx(points, abs=0.2)


def test_questions_needed_are_those_of_a_power_analysis() -> None:
    found = questions_needed(0.2, 0.05)
    assert detectable(0.2, found) <= 0.05 < detectable(0.2, found - 1)
    power = TTestPower().power(0.05 / np.sqrt(0.2), found, 0.05)
    assert power == pytest.approx(0.8, abs=0.003)


@pytest.mark.parametrize(
    ("value", "limit", "variance", "questions"),
    [
        # ((1.959964 * sqrt(0.5 * 0.5) + 0.841621 * sqrt(0.6 * 0.4)) / 0.1)^2 = 193.85
        pytest.param(0.6, 0.5, None, 194, id="binomial"),
        # ((1.959964 * sqrt(0.9 * 0.1) + 0.841621 * sqrt(0.8 * 0.2)) / 0.1)^2 = 85.51
        pytest.param(0.8, 0.9, None, 86, id="below-the-limit"),
        pytest.param(0.6, 0.5, 0.2, 157, id="variance"),  # (1.959964 + 0.841621)^2 * 0.2 / 0.01
        pytest.param(0.5, 0.5, None, None, id="equal"),
        pytest.param(0.5, 0.5, 0.2, None, id="equal-with-variance"),
    ],
)
def test_questions_that_tell_a_value_from_a_limit(
    value: float, limit: float, variance: float | None, questions: int | None
) -> None:
    assert stats.questions_to_tell(value, limit, variance) == questions


def test_variance_parts_are_recovered_from_draws() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random((2, 4000))
    truth[1] = (truth[0] + truth[1]) / 2
    draws = (rng.random((2, 4000, 4)) < truth[:, :, None]).astype(float)
    found = variance_of_draws(draws[0], draws[1])
    assert found.between == pytest.approx((truth[0] - truth[1]).var(), abs=0.01)
    assert found.within == pytest.approx((truth * (1 - truth)).mean(axis=1).sum(), abs=0.01)
    assert found.at(4) == pytest.approx((draws[0] - draws[1]).mean(axis=1).var(ddof=1))
    single = variance_of_draws(draws[0, :, :1], draws[1, :, :1])
    assert single.within == 0.0
    assert Variance(0.1, 0.2).at(4) == pytest.approx(0.15)


def test_the_variance_of_two_accuracies_falls_with_their_correlation() -> None:
    assert variance_of_accuracies(0.8, 0.8, 0.0).between == pytest.approx(0.32)
    assert variance_of_accuracies(0.8, 0.8, 0.5).between == pytest.approx(0.16)
    assert variance_of_accuracies(0.8, 0.8, 1.0).between == 0.0
    assert variance_of_accuracies(0.8, 0.4, 0.5).between == pytest.approx(0.4 - 0.0384**0.5)
