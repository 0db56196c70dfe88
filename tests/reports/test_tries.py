"""avg@k, pass@k and pass^k of runs with several epochs."""

from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest

from podium.reports import stats
from podium.reports.intervals import accuracy_interval, pass_at_ks, tries_columns
from tests.harness.runs import Crew, Exam, sit
from tests.reports.small_reports import report, right_up_to, row_of

VALUES = {"a": [1.0] * 3, "b": [1.0, 0.0, 0.0], "c": [0.0] * 3, "ungraded once": [1.0, 1.0]}


@pytest.mark.parametrize("n", range(1, 6))
def test_both_chances_are_those_of_all_draws(n: int) -> None:
    for right in range(n + 1):
        tries = [True] * right + [False] * (n - right)
        for k in range(1, n + 1):
            draws = [*combinations(tries, k)]
            assert stats.pass_at_k(n, right, k) == pytest.approx(fmean(map(any, draws)))
            assert stats.pass_all_k(n, right, k) == pytest.approx(fmean(map(all, draws)))


def test_k_is_all_epochs_and_a_question_without_a_grade_of_each_is_left_out() -> None:
    found = tries_columns(VALUES, 3)
    names = ("tries_k", "avg_at_k", "pass_at_k", "pass_all_k")
    assert [found[name] for name in names] == pytest.approx([3, 4 / 9, 2 / 3, 1 / 3])
    for name, share in (("pass_at_k", 2 / 3), ("pass_all_k", 1 / 3)):
        assert (found[f"{name}_low"], found[f"{name}_high"]) == stats.wilson(share, 3)
    whole = {name: grades for name, grades in VALUES.items() if len(grades) == 3}
    assert (found["avg_at_k_low"], found["avg_at_k_high"]) == accuracy_interval(whole)
    found = tries_columns(VALUES, 3, 2)  # k below the epochs: of all tries that were made
    assert found["pass_at_k"] == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert found["pass_all_k"] == pytest.approx((1 + 0 + 0 + 1) / 4)


def test_pass_at_1_5_and_10_are_drawn_from_as_many_tries() -> None:
    chances = pass_at_ks({"a": [1.0] * 4 + [0.0] * 6, "b": [0.0] * 5})
    assert {k: sorted(values) for k, values in chances.items()} == {
        1: ["a", "b"],
        5: ["a", "b"],
        10: ["a"],
    }
    assert chances[1]["a"] == pytest.approx([0.4])
    assert pass_at_ks({"a": [1.0] * 4}) == pass_at_ks({}) == pass_at_ks({"a": [0.5] * 5}) == {}


def test_one_epoch_and_shares_of_a_point_have_none() -> None:
    assert tries_columns({"a": [1.0]}, 1) == {}
    assert tries_columns({"a": [1.0, 0.5]}, 2) == {}
    assert tries_columns({"a": [1.0]}, 2) == {}


def test_a_report_shows_them_for_rows_of_several_epochs_only(tmp_path: Path) -> None:
    crew = Crew(sage=right_up_to(1))
    for name, epochs in (("several", 2), ("single", 1)):
        sit(tmp_path / name, "single:sage", crew=crew, exam=Exam(size=2), epochs=epochs)
    several = report(tmp_path / "a", tmp_path / "several")
    row = row_of(several.rows, "single:sage")
    assert (row.tries_k, row.avg_at_k, row.pass_at_k, row.pass_all_k) == (2, 0.5, 0.5, 0.5)
    text = several.files[0].read_text()
    assert "| system | k | avg@k % | pass@k % | pass^k % |" in text
    assert "| `single:sage` | 2 | 50.0 [" in text
    single = report(tmp_path / "b", tmp_path / "single")
    assert row_of(single.rows, "single:sage").tries_k is None
    assert "pass^k %" not in single.files[0].read_text()
