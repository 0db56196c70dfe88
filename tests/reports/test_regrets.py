"""Regret to the oracle, and accuracy by subject."""

from dataclasses import replace

import pytest

from podium.harness.ledger.totals import SystemRun
from podium.reports.derived import MOST_GROUPS, compare, group_scores, largest_groups
from podium.reports.markdown import markdown
from podium.reports.row import TableRow
from podium.reports.terminal import table_text
from tests.reports.made_runs import graded, made_run
from tests.reports.small_reports import row_of


def rows(*runs: SystemRun) -> tuple[TableRow, ...]:
    return compare(runs).rows


def test_regret_is_what_the_best_of_each_question_gets_more_and_what_it_costs_less() -> None:
    dear = made_run("single:sage", graded(1.0, 1.0, 0.0, 0.0), usd="0.010")
    cheap = made_run("single:clerk", graded(1.0, 0.0, 1.0, 0.0), usd="0.002")
    found = rows(dear, cheap)
    sage, clerk = row_of(found, "single:sage"), row_of(found, "single:clerk")
    # The oracle is right on three of four. Of sage's two right answers clerk had one for less.
    assert (sage.regret_accuracy, clerk.regret_accuracy) == (0.25, 0.25)
    assert sage.regret_usd == pytest.approx((0.008 + 0) / 2)
    assert clerk.regret_usd == 0


def test_who_looks_at_targets_is_no_oracle_and_has_no_regret() -> None:
    found = rows(
        made_run("single:sage", graded(1.0, 0.0)),
        made_run("single:clerk", graded(0.0, 0.0)),
        made_run("oracle", graded(1.0, 1.0), uses_targets=True),
    )
    assert row_of(found, "oracle").regret_accuracy is None
    assert row_of(found, "single:sage").regret_accuracy == 0
    assert row_of(found, "single:clerk").regret_usd is None, "it got nothing right"


def test_regret_is_over_the_questions_that_all_were_graded_on() -> None:
    found = rows(
        made_run("single:sage", graded(1.0, 0.0, 0.0)),
        made_run("single:clerk", graded(0.0, 1.0, None)),
    )
    assert [row.regret_accuracy for row in found] == [0.5, 0.5]


def test_dollars_that_nobody_knows_make_no_regret_and_win_no_question() -> None:
    found = rows(
        made_run("single:sage", graded(1.0, 1.0), usd=None),
        made_run("single:clerk", graded(1.0, 1.0), usd="0.003"),
    )
    assert row_of(found, "single:sage").regret_usd is None
    assert row_of(found, "single:clerk").regret_usd == 0


def test_one_system_alone_is_its_own_oracle() -> None:
    assert rows(made_run("single:sage", graded(1.0, 0.0)))[0].regret_accuracy is None


def subjects(count: int, each: int) -> dict[str, str]:
    """Return a subject for each of count * each questions, and one more for the last ones."""
    return {f"q{at + 1}": f"subject {at // each:02}" for at in range(count * each)}


def test_accuracy_by_subject_has_intervals_as_other_parts_have() -> None:
    run = made_run("single:sage", graded(1.0, 1.0, 0.0, 0.0), topics=subjects(2, 2))
    found = group_scores(rows(run)[0], run)
    assert [(one.grouping, one.group, one.n, one.value) for one in found] == [
        ("subject", "subject 00", 2, 1.0),
        ("subject", "subject 01", 2, 0.0),
    ]
    assert found[0].ci_low == pytest.approx(0.342, abs=1e-3), "Wilson's of 2 of 2"


def test_a_suite_of_one_subject_has_no_parts() -> None:
    run = made_run("single:sage", graded(1.0, 0.0), topics=dict.fromkeys(("q1", "q2"), "sums"))
    assert compare([run]).parts == ()


def test_files_show_the_largest_subjects_and_table_json_all() -> None:
    grades = graded(*[1.0] * 57 * 12)
    run = made_run("single:sage", grades, topics={**subjects(57, 12), "q1": "subject 56"})
    shown = compare([run])
    kept, said = largest_groups(shown.parts, MOST_GROUPS)
    assert said == "the 12 largest of 57 groups; table.json has all"
    assert len(kept) == 12
    assert kept[-1].group == "subject 56", "with 13 questions the largest"
    assert "subject 00" not in {one.group for one in kept}, "with 11 the smallest"
    text = markdown(shown, [run], ())
    assert "graded questions. Of the questions the 12 largest of 57 groups; table.json" in text
    lines = table_text(shown).splitlines()
    assert lines[-1].startswith("subject: the ")
    assert max(map(len, lines)) <= 120


def test_subjects_of_a_few_questions_stay_out_of_the_terminal() -> None:
    run = made_run("single:sage", graded(1.0, 1.0, 0.0, 0.0), topics=subjects(2, 2))
    line = table_text(compare([run])).splitlines()[-1]
    assert line == "subject: see table.md, no group has more than 2 questions"


def test_what_is_called_the_difficulty_already_is_no_subject() -> None:
    topics = {"q1": "easy", "q2": "hard"}
    run = made_run("single:sage", graded(1.0, 0.0), topics=topics)
    named = [replace(one, groups={"difficulty": one.topic}) for one in run.attempts]
    run = replace(run, attempts=tuple(named))
    assert {one.grouping for one in compare([run]).parts} == {"difficulty"}
