"""A report against a named system, what is said first, and rows that are derived without a call."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import answer_key, load_runs
from podium.reports.blocks import DEFAULTS, ReportOptions
from podium.reports.derived import Comparison, compare
from podium.reports.intervals import difference, holm_adjusted
from podium.reports.row import TableRow
from tests.harness.runs import BOOK, Crew, Exam, Heard, number, sit, steps, wrong
from tests.reports.small_reports import EXAM, report, right_up_to, row_of


def shown(logs: Path, wanted: ReportOptions = DEFAULTS) -> Comparison:
    system_runs, _ = load_runs([logs])
    return compare(system_runs, wanted)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Let a worker, a worse one and a pair sit an exam of 6."""
    logs = tmp_path_factory.mktemp("three")
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(4)), exam=EXAM)
    sit(logs, "single:clerk", steps("clerk"), Crew(clerk=right_up_to(1)), exam=EXAM)
    sit(logs, "pair", steps("clerk", "sage"), Crew(clerk=wrong, sage=number), exam=EXAM)
    return logs


def test_a_report_holds_all_against_the_system_that_is_named(three: Path) -> None:
    rows = shown(three, ReportOptions(vs="pair")).rows
    assert row_of(rows, "pair").verdict == "reference"
    sage, clerk = row_of(rows, "single:sage"), row_of(rows, "single:clerk")
    assert (sage.reference, sage.reference_rule) == ("pair", "named by --vs")
    assert (sage.n_better, sage.n_worse, sage.n_paired, sage.test) == (0, 2, 6, "mcnemar")
    assert (sage.p_value, clerk.p_value) == (0.5, 0.0625)
    assert (sage.p_holm, clerk.p_holm) == (0.5, 0.125)
    usual = row_of(shown(three).rows, "pair")
    assert (usual.reference, usual.reference_rule) == (
        "single:sage", "first single worker in the pool's order",
    )  # fmt: skip


def test_a_reference_that_is_not_there_is_refused_with_those_that_are(three: Path) -> None:
    with pytest.raises(
        UserError, match=r"no system 'oracle' .* of: pair, single:clerk, single:sage"
    ):
        shown(three, ReportOptions(vs="oracle"))


def test_one_system_only_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sit(tmp_path / "logs", "single:sage", exam=EXAM)
    assert main(["report", str(tmp_path / "logs"), "--vs", "single:sage"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "podium: single:sage is the only system: nothing can be compared. Leave --vs out.\n"
    )
    text = report(tmp_path).text
    assert "6 questions; one system only: nothing is compared" in text
    assert "single:sage" in text


def test_a_block_without_a_reference_says_that_nothing_is_compared(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "oracle", exam=EXAM, uses_targets=True)
    sit(tmp_path / "logs", "pair", exam=EXAM)
    assert "6 questions; no reference: nothing is compared" in report(tmp_path).text


def test_what_so_many_questions_can_show_is_said_before_each_table(
    tmp_path: Path, three: Path
) -> None:
    found = report(tmp_path, three)
    said = [row.min_detectable for row in found.rows if row.min_detectable]
    least, most = 100 * min(said), 100 * max(said)
    words = f"6 questions: differences under {least:.1f} to {most:.1f} points (by system)"
    assert found.text.splitlines()[2].startswith(words)
    text = found.files[0].read_text()
    assert text.index(words) < text.index("| system | accuracy %")
    for title in ("Differences from the reference", "Costs", "Block by block", "Derived rows"):
        assert f"### {title}" in text


def test_many_comparisons_make_a_verdict_harder() -> None:
    """Ten systems that are each better on six questions of twelve and worse on none."""
    base = {f"q{n}": [0.0] for n in range(12)}
    better = {f"q{n}": [float(n < 6)] for n in range(12)}
    alone = difference(better, base)
    assert alone is not None
    assert (alone.verdict, alone.p_value) == ("better", 2 / 64)
    many = holm_adjusted([alone] * 10)
    assert {one.verdict for one in many if one} == {"inconclusive"}
    assert {one.p_holm for one in many if one} == {20 / 64}
    assert holm_adjusted([None, alone]) == [None, alone]


def test_costs_of_a_row_are_those_of_its_questions(three: Path) -> None:
    rows, (system_runs, _) = shown(three).rows, load_runs([three])
    for system_run in system_runs:
        row = row_of(rows, system_run.facts.system)
        usd = [float(one.totals.usd or 0) for one in system_run.attempts]
        right = sum(one.value or 0 for one in system_run.attempts)
        assert row.usd_median == pytest.approx(np.median(usd))
        assert row.usd_per_correct == pytest.approx(sum(usd) / right)
        assert row.share_infinite == pytest.approx(1 - right / 6)
    pair = row_of(rows, "pair")
    sage = row_of(rows, "single:sage")
    assert pair.usd_per_query is not None
    assert sage.usd_per_query is not None
    assert pair.usd_ratio == pytest.approx(float(pair.usd_per_query / sage.usd_per_query))
    assert all(row.pareto_probability is not None for row in rows)


def test_an_unpriced_system_has_no_dollars_and_is_on_no_frontier(tmp_path: Path) -> None:
    kept = {name: price for name, price in BOOK.prices.items() if name != "scripted/clerk"}
    book = replace(BOOK, prices=kept).as_json()
    for name, system in (("single:sage", steps("sage")), ("single:clerk", steps("clerk"))):
        sit(tmp_path / "logs", name, system, prices=book)
    clerk = row_of(shown(tmp_path / "logs").rows, "single:clerk")
    assert (clerk.usd_median, clerk.cost_of_pass, clerk.pareto_probability) == (None, None, None)
    assert clerk.tokens_per_correct is not None


def derived(rows: Sequence[TableRow], name: str) -> TableRow:
    (row,) = [row for row in rows if row.system.startswith(name)]
    return row


def test_the_oracle_router_takes_the_cheapest_right_worker(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(4)), exam=EXAM)
    knows_last = Crew(clerk=lambda heard: number(heard) if int(number(heard)) in (4, 5) else "no")
    sit(logs, "single:clerk", steps("clerk"), knows_last, exam=EXAM)
    found = shown(logs)
    row = derived(found.derived, "oracle-router*")
    assert row.accuracy == pytest.approx(5 / 6)
    assert row.uses_targets
    assert "no worker is right on 1 question," in row.notes
    assert "of equal ones the cheapest" in row.derived
    usd = {
        system_run.facts.system: [float(one.totals.usd or 0) for one in system_run.attempts]
        for system_run in load_runs([logs])[0]
    }
    sage, clerk = usd["single:sage"], usd["single:clerk"]
    assert clerk[3] < sage[3], "both are right on question 4"
    billed = [*sage[:3], *clerk[3:5], min(sage[5], clerk[5])]
    assert float(row.usd_per_query or 0) == pytest.approx(sum(billed) / 6)
    assert row.reference == "single:sage"


def unsure(heard: Heard) -> str:
    """Know every answer in the epochs 1, 2, and 4 of five."""
    return number(heard) if heard.epoch in (1, 2, 4) else wrong(heard)


def test_a_majority_of_epochs_is_self_consistency_for_free(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    sit(logs, "single:sage", crew=Crew(sage=unsure), exam=Exam(size=3), epochs=5)
    found = shown(logs)
    sage = row_of(found.rows, "single:sage")
    assert (sage.accuracy, sage.maj_k, sage.maj_accuracy) == (pytest.approx(0.6), 5, 1.0)
    vote5 = derived(found.derived, "self-consistency(maj@5 of single:sage)")
    assert (vote5.accuracy, vote5.calls, vote5.n_asked) == (1.0, 5.0, 3)
    assert sage.usd_per_query is not None
    assert vote5.usd_per_query == 5 * sage.usd_per_query
    # Of the ten ways to draw three of five tries, seven hold two or three right ones.
    three_of = shown(logs, ReportOptions(maj=3))
    assert derived(three_of.derived, "self-consistency(maj@3").accuracy == pytest.approx(0.7)
    with pytest.raises(UserError, match="A majority of 8 needs 8 epochs, and these logs have 5"):
        shown(logs, ReportOptions(maj=8))


def test_derived_rows_are_in_the_files_and_printed_when_asked(tmp_path: Path, three: Path) -> None:
    found = report(tmp_path, three)
    assert "oracle-router*" not in found.text
    with found.files[1].open() as file:
        told = {row["system"]: row["derived"] for row in csv.DictReader(file)}
    assert told["oracle-router*"].startswith("from 2 single workers")
    assert {name for name, how in told.items() if not how} == {row.system for row in found.rows}
    rows = json.loads(found.files[2].read_text())["rows"]
    assert [row["system"] for row in rows][-1] == "oracle-router*"
    assert rows[-1]["accuracy"] == pytest.approx(4 / 6, abs=1e-6)


def test_derived_rows_change_no_verdict_and_no_adjusted_p(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(4)), exam=EXAM)
    sit(logs, "single:clerk", steps("clerk"), Crew(clerk=right_up_to(1)), exam=EXAM)
    found = shown(logs)
    clerk = row_of(found.rows, "single:clerk")
    assert clerk.p_value == clerk.p_holm
    assert derived(found.derived, "oracle-router*").p_holm == 1.0


def test_votes_tell_options_apart_and_not_letters() -> None:
    first = {"question": {"permutation": [2, 0, 1, 3]}}
    later = {**first, "asked": {"permutation": [0, 1, 2, 3]}}
    assert answer_key(first, "A") == answer_key(later, "C") != answer_key(later, "A")
    assert answer_key(first, "0d1e") is None, "a letter's digest, from a log without texts"
    assert answer_key({}, "70") == answer_key({"question": {}}, "70") != answer_key({}, "71")
    assert answer_key({}, None) is answer_key({}, "") is None
    assert "70" not in str(answer_key({}, "70"))
