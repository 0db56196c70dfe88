"""Equivalence against statsmodels, a likelihood maximised by scipy, and exact chances of error."""

from pathlib import Path

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats
from statsmodels.stats.weightstats import ttost_paired

from podium.cli import main
from podium.harness.errors import UserError
from podium.reports.blocks import ReportOptions
from podium.reports.derived import compare
from podium.reports.intervals import Difference, difference, holm_adjusted
from podium.reports.stats import (
    Floats,
    equivalence_interval,
    equivalence_p,
    fewest_questions,
    non_inferiority_p,
    tango,
    tost,
)
from tests.reports.made_runs import graded, made_run
from tests.reports.small_reports import row_of

NUISANCE = (0.0, 0.004, 0.01, 0.03, 0.08, 0.2)
"""Shares of questions that the reference alone gets right, of those that are tried."""


def split(won: int, lost: int, n: int) -> Floats:
    """Return the differences of n questions of single draws."""
    return np.array([1.0] * won + [-1.0] * lost + [0.0] * (n - won - lost))


def compared(won: int, lost: int, n: int, margin: float = 0.02) -> Difference:
    deltas = split(won, lost, n)
    ours = {f"q{at}": [float(one >= 0)] for at, one in enumerate(deltas)}
    theirs = {f"q{at}": [float(one <= 0)] for at, one in enumerate(deltas)}
    found = difference(ours, theirs, margin)
    assert found is not None
    (held,) = holm_adjusted([found])
    assert held is not None
    return held


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.3])
def test_students_part_is_that_of_statsmodels(margin: float) -> None:
    rng = np.random.default_rng(3)
    ours, theirs = rng.random(40), rng.random(40)
    p_value, *_ = ttost_paired(ours, theirs, -margin, margin)
    assert tost(ours - theirs, margin) == pytest.approx(p_value, abs=1e-12)
    found = equivalence_interval(ours - theirs)
    assert found is not None
    assert (found.low > -margin and found.high < margin) == (p_value < 0.05)


def p_below(deltas: Floats, margin: float) -> float:
    """Return the p-value of "the mean is `margin` or more", the largest of three tests'."""
    n, mean, error = deltas.size, deltas.mean(), scipy_stats.sem(deltas)
    gap = float(np.clip(margin - mean, 0, 1))
    more = np.sqrt(error**2 + gap * (1 - gap) / n)
    if margin > 0:
        share = scipy_stats.binom.cdf(np.floor(deltas.sum() + 1e-9), n, margin)
    else:
        share = scipy_stats.binom.sf(np.ceil(-deltas.sum() - 1e-9) - 1, n, -margin)
    student = scipy_stats.t.cdf((mean - margin) / error, n - 1)
    return float(max(student, scipy_stats.t.cdf(-gap / more, n - 1), share))


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.15])
@pytest.mark.parametrize("n", [2, 40])
def test_means_over_epochs_have_the_largest_of_three_p_values(
    n: int, shift: float, margin: float
) -> None:
    draws = np.random.default_rng(n).integers(-2, 3, n) / 4
    deltas = np.clip(draws - draws.mean() + shift, -1, 1)
    expected = max(p_below(deltas, margin), p_below(-deltas, margin))
    assert equivalence_p(deltas, margin, single=False) == pytest.approx(expected, abs=1e-12)
    worse_by_less, worse_by_more = non_inferiority_p(deltas, margin, single=False)
    assert worse_by_less == pytest.approx(p_below(-deltas, margin), abs=1e-12)
    assert worse_by_more == pytest.approx(p_below(deltas, -margin), abs=1e-12)
    interval = equivalence_interval(deltas)
    theirs = scipy_stats.t.interval(0.9, n - 1, deltas.mean(), scipy_stats.sem(deltas))
    assert interval == pytest.approx(np.clip(theirs, -1, 1), abs=1e-12)


def test_one_question_shows_no_equivalence() -> None:
    assert equivalence_p(np.array([0.25]), 0.5, single=False) == 1.0


@pytest.mark.parametrize(
    ("won", "lost", "n", "margin"),
    [(0, 0, 133, 0.02), (3, 5, 44, 0.1), (12, 4, 200, 0.05), (50, 50, 1055, 0.02), (0, 7, 30, 0.2)],
)
def test_tangos_score_is_the_one_of_the_restricted_likelihood(
    won: int, lost: int, n: int, margin: float
) -> None:
    def unlikely(share: float) -> float:
        same = n - won - lost
        parts = ((won, share + margin), (lost, share), (same, 1 - 2 * share - margin))
        return -sum(count * np.log(max(chance, 1e-300)) for count, chance in parts if count)

    top = (1 - margin) / 2
    share = optimize.minimize_scalar(
        unlikely, bounds=(0, top), method="bounded", options={"xatol": 1e-12}
    ).x
    z = (won - lost - n * margin) / np.sqrt(n * (2 * share + margin * (1 - margin)))
    expected = scipy_stats.norm.cdf(z)
    assert tango(split(won, lost, n), margin) == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_five_of_five_beside_five_of_five_shows_nothing() -> None:
    assert compared(0, 0, 5).verdict == "inconclusive"
    assert compared(0, 0, 5).p_equivalence == pytest.approx(0.98**5)
    assert compared(0, 0, 5).equivalence_low is None


def test_without_any_difference_it_takes_as_many_questions_as_an_exact_bound_does() -> None:
    assert fewest_questions(0.02) == 149
    assert compared(0, 0, 148).verdict == "inconclusive"
    assert compared(0, 0, 149).verdict == "equivalent"
    assert (fewest_questions(1.0), fewest_questions(0.999)) == (1, 1)


@pytest.mark.parametrize(
    ("won", "lost", "n", "verdict"),
    [
        pytest.param(50, 50, 1055, "equivalent", id="many-questions"),
        pytest.param(50, 50, 300, "inconclusive", id="too-few"),
        pytest.param(8, 4, 300, "inconclusive", id="up-to-the-margin"),
        pytest.param(60, 10, 5000, "better", id="different-and-within"),
        pytest.param(10, 60, 5000, "worse", id="worse-and-within"),
        pytest.param(100, 10, 1000, "better", id="different"),
    ],
)
def test_a_difference_that_is_shown_keeps_its_word(
    won: int, lost: int, n: int, verdict: str
) -> None:
    assert compared(won, lost, n).verdict == verdict


def test_several_equivalences_are_adjusted_as_one_family() -> None:
    alone = compared(0, 0, 149)
    assert alone.p_equivalence is not None
    many = [one for one in holm_adjusted([alone] * 3) if one]
    assert {one.verdict for one in many} == {"inconclusive"}
    assert many[0].p_equivalence_holm == pytest.approx(3 * alone.p_equivalence)


def test_who_is_not_asked_says_nothing_of_equivalence() -> None:
    found = difference({"a": [1.0]}, {"a": [1.0]})
    assert found is not None
    assert (found.equivalence_margin, found.p_equivalence, found.p_equivalence_holm) == (None,) * 3


@pytest.mark.parametrize(("n", "margin"), [(60, 0.1), (149, 0.02), (200, 0.05)])
def test_single_draws_are_called_equivalent_by_chance_in_5_percent(n: int, margin: float) -> None:
    """Exact: every outcome of n questions, where the true difference is the margin itself."""
    most = int(n * (margin + 0.2) + 5)
    claims = [
        (won, lost)
        for won in range(most)
        for lost in range(min(most, n - won))
        if abs(won - lost) < n * margin
        and equivalence_p(split(won, lost, n), margin, single=True) < 0.05
    ]
    chances = scipy_stats.multinomial
    for lost in (one for one in NUISANCE if 2 * one + margin < 1):
        shares = [lost + margin, lost, 1 - 2 * lost - margin]
        outcomes = [[w, c, n - w - c] for w, c in claims]
        size = float(chances.pmf(outcomes, n, shares).sum()) if outcomes else 0.0
        assert size <= 0.0515, f"{size} at {lost}"


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0], ids=["alike", "some-noise", "all-noise"])
def test_means_over_epochs_are_called_equivalent_by_chance_in_5_percent(noise: float) -> None:
    rng, n, epochs, margin = np.random.default_rng(5), 100, 8, 0.05
    claims = 0
    for _ in range(1000):
        kind = rng.random(n)
        won, tossed = kind < margin, (kind >= margin) & (kind < margin + noise)
        ours = rng.binomial(epochs, np.where(tossed, 0.5, 1.0))
        theirs = rng.binomial(epochs, np.where(won, 0.0, np.where(tossed, 0.5, 1.0)))
        claims += equivalence_p((ours - theirs) / epochs, margin, single=False) < 0.05
    assert claims / 1000 <= 0.06


def test_a_table_names_what_is_equivalent_and_what_it_takes() -> None:
    sage = made_run("single:sage", graded(*[1.0] * 160))
    same = made_run("moa-lite", graded(*[1.0] * 160))
    rows = compare([sage, same], ReportOptions(equivalence=0.02)).rows
    row = row_of(rows, "moa-lite")
    assert (row.verdict, row.equivalence_margin) == ("equivalent", 0.02)
    assert row_of(compare([sage, same]).rows, "moa-lite").verdict == "inconclusive"


def test_a_report_says_in_the_terminal_what_equivalence_takes(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(logs), "--out", str(tmp_path / "out"), "--equivalence", "2"]) == 0
    assert "equivalent: shown to differ by less than 2 points" in capsys.readouterr().out
    text = (tmp_path / "out" / "table.md").read_text()
    assert "### Equivalence" in text
    assert "it takes 149 questions or more." in text


@pytest.mark.parametrize("points", ["0", "-2", "101", "nan"])
def test_a_margin_that_is_none_is_refused(points: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", "logs", "--equivalence", points])
    assert "not above 0 and at most 100 points" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"0\.02 is two points"):
        compare([made_run("pair", graded(1.0))], ReportOptions(equivalence=float(points)))
