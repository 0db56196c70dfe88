"""Rows over all suites: a mean of suites, its interval, and what lacks a suite."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from podium.harness.ledger.totals import SystemRun
from podium.reports.across import (
    AcrossRow,
    across_markdown,
    across_rows,
    across_text,
    mean_interval,
)
from podium.reports.derived import compare
from podium.reports.intervals import accuracy_interval
from podium.reports.stats import wilson
from tests.harness.runs import Exam, sit
from tests.reports.made_runs import graded, made_run
from tests.reports.small_reports import report

PAPER = (99.4, 94.1, 44.75, 83.93, 93.3, 37.86, 87.5)
"""The Conductor's accuracies on seven suites (arXiv 2512.04388v5, table 1): 77.27 in the mean."""


def rows(*runs: SystemRun) -> tuple[AcrossRow, ...]:
    return compare(runs).across


def halves(right: int, n: int) -> dict[str, list[float | None]]:
    return graded(*[float(at < right) for at in range(n)])


def test_the_mean_gives_each_suite_equal_weight_as_the_papers_does() -> None:
    run = made_run("conductor", halves(3, 6))
    row = compare([run]).rows[0]
    sat = [replace(row, suite=f"suite-{at}", accuracy=one / 100) for at, one in enumerate(PAPER)]
    (found,) = across_rows([(one, run) for one in sat])
    assert found.accuracy is not None
    assert 100 * found.accuracy == pytest.approx(77.27, abs=0.01)
    assert (found.missing, found.rows) == ((), tuple(sat))


def test_a_large_suite_counts_no_more_than_a_small_one_and_dollars_are_added() -> None:
    small = made_run("single:sage", halves(5, 10), suite="small", usd="0.01")
    large = made_run("single:sage", halves(0, 90), suite="large", usd="0.001")
    (row,) = rows(small, large)
    assert (row.accuracy, row.n_graded) == (0.25, 100)
    assert row.usd_total == Decimal("0.19")
    assert row.usd_per_query == Decimal("0.0055")
    assert (row.tokens_in, row.tokens_out) == (30, 10)


def test_who_lacks_a_suite_is_shown_without_a_mean() -> None:
    both = [made_run("single:sage", halves(3, 6), suite=name) for name in ("a", "b")]
    whole, part = rows(*both, made_run("moa-lite", halves(6, 6), suite="a"))
    assert (whole.system, whole.accuracy) == ("single:sage", 0.5)
    assert (part.system, part.missing, part.accuracy, part.ci_low) == (
        "moa-lite",
        ("b",),
        None,
        None,
    )
    assert (part.usd_per_query, part.usd_total) == (None, Decimal("0.006"))
    line = across_text([whole, part]).splitlines()[-1]
    assert line.split() == ["moa-lite", "-", "-", "6", "-", "0.00600", "-", "-", "b"]
    assert "`moa-lite` | - | - |" in across_markdown([whole, part])


def test_nothing_graded_on_a_suite_is_a_suite_that_is_missing() -> None:
    lost = made_run("moa-lite", graded(None, None), suite="b")
    both = [made_run("single:sage", halves(3, 6), suite=name) for name in ("a", "b")]
    found = rows(*both, made_run("moa-lite", halves(6, 6), suite="a"), lost)
    assert found[1].missing == ("b",)


def test_a_suite_that_was_sat_twice_is_in_no_mean() -> None:
    runs = [made_run("pair", halves(right, 6), suite="a") for right in (1, 5)]
    found = rows(*runs, made_run("pair", halves(3, 6), suite="b"))
    assert [one.missing for one in found] == [("a (sat twice)",)]


def test_two_ways_of_one_system_are_two_rows() -> None:
    runs = [
        made_run("pair", halves(2 + k, 6), suite=suite, args={"k": k})
        for suite in ("a", "b")
        for k in (1, 3)
    ]
    assert [(one.args, one.accuracy) for one in rows(*runs)] == [
        ('{"k": 3}', pytest.approx(5 / 6)),
        ('{"k": 1}', pytest.approx(3 / 6)),
    ]


def test_other_labels_pools_and_seeds_are_not_one_mean() -> None:
    live = made_run("single:sage", halves(3, 6), suite="a")
    assert rows(live, made_run("single:sage", halves(3, 6), suite="b", label="rehearsal")) == ()
    assert rows(live, made_run("single:sage", halves(3, 6), suite="b", seed=1)) == ()
    assert rows(live) == ()


def test_the_interval_of_all_right_has_a_lower_end_and_epochs_do_not_narrow_it() -> None:
    (once,) = rows(*(made_run("pair", halves(20, 20), suite=name) for name in ("a", "b")))
    assert once.ci_low is not None
    alone = accuracy_interval({f"q{at}": [1.0] for at in range(20)})
    assert alone is not None
    assert once.ci_low == pytest.approx(1 - (1 - alone.low) / 2**0.5)
    assert once.ci_high == 1.0
    repeated = [made_run("pair", graded(*[1.0] * 20, epochs=4), suite=name) for name in ("a", "b")]
    assert rows(*repeated)[0].ci_low == once.ci_low


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.97, 0.6), (0.99, 0.95, 0.2)], ids=str)
def test_an_interval_holds_the_truth_about_as_often_as_it_says(shares: tuple[float, ...]) -> None:
    rng, hits = np.random.default_rng(11), 0
    for _ in range(2000):
        found = [float(rng.binomial(40, share)) / 40 for share in shares]
        bounds = [(one, wilson(one, 40)) for one in found]
        low, high = mean_interval([(one, of.low, of.high) for one, of in bounds])
        hits += low <= np.mean(shares) <= high
    assert 0.935 <= hits / 2000 <= 0.985


def test_a_report_of_two_suites_has_the_rows_in_each_of_its_files(tmp_path: Path) -> None:
    for name in ("numbers", "sums"):
        sit(tmp_path / "logs", "single:sage", exam=Exam(name=name))
    found = report(tmp_path)
    assert "Over all suites: numbers, sums (live, pool test-pool" in found.text
    assert "## Over all suites" in (tmp_path / "report" / "table.md").read_text()
    (row,) = json.loads((tmp_path / "report" / "table.json").read_text())["across"]
    assert (row["system"], row["accuracy"], row["rows"]) == ("single:sage", 1.0, [0, 1])
    assert (row["label"], row["pool"], row["missing"]) == ("live", "test-pool", [])
