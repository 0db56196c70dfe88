"""Published figures: their arithmetic, their marks, and that they are compared with nothing."""

import csv
from collections import defaultdict
from pathlib import Path

from podium.harness.ledger.system_runs import load_runs
from podium.reports.blocks import ReportOptions
from podium.reports.published import Figure, figures, of_suite
from tests.harness.runs import Exam, sit
from tests.reports.small_reports import report

AVERAGE = "average"


def rows_of_tables() -> dict[tuple[str, ...], dict[str, Figure]]:
    """Return table rows by suite, of the tables that print an average."""
    found: dict[tuple[str, ...], dict[str, Figure]] = defaultdict(dict)
    for one in figures():
        assert one.suite not in found[one.source, one.table, one.setting, one.system]
        found[one.source, one.table, one.setting, one.system][one.suite] = one
    return {key: row for key, row in found.items() if AVERAGE in row and len(row) > 1}


def test_the_averages_that_are_called_misprints_are_exactly_those_that_are_wrong() -> None:
    """A hundredth is rounding: the tables round each column on its own."""
    wrong: set[tuple[str, ...]] = set()
    for key, row in rows_of_tables().items():
        values = [float(one.value) for suite, one in row.items() if suite != AVERAGE]
        if abs(sum(values) / len(values) - float(row[AVERAGE].value)) > 0.011:
            wrong.add(key)
    marked = {key for key, row in rows_of_tables().items() if "misprint" in row[AVERAGE].note}
    assert wrong == marked
    assert {(table, system) for _, table, _, system in wrong} == {
        ("1", "Qwen3-32B"),
        ("2 and 8", "GPT-5"),
        ("7", "R1-Distill-Qwen-32B"),
        ("7", "5x context: R1-Distill-Qwen-32B"),
        ("7", "5x reflection: R1-Distill-Qwen-32B"),
    }


def test_every_figure_is_a_percentage_with_its_source() -> None:
    for one in figures():
        assert 0 <= float(one.value) <= 100
        assert one.source.startswith("arXiv ")
        assert all((one.table, one.setting, one.system, one.metric == "accuracy"))
        assert all(not part or float(part) >= 0 for part in (one.se, one.tokens, one.usd))


def test_token_counts_say_that_they_are_workers_output_only() -> None:
    told = [one for one in figures() if one.tokens]
    assert len(told) == 12
    assert all("tokens are workers' output only" in one.note for one in told)


def test_shares_of_few_questions_are_whole_numbers_of_them() -> None:
    """66.67 % of 30 is 20 questions; a figure that is none was averaged over several passes."""
    once = {one.system: float(one.value) * 0.3 for one in of_suite("aime25")
            if one.table == "2 and 8"}  # fmt: skip
    apart = {name for name, right in once.items() if abs(right - round(right)) > 0.01}
    assert apart == {"Claude Sonnet 4"}, "35.33 % of 30 is 10.6 questions"


def test_published_figures_stand_apart_and_only_where_they_are_asked_for(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", exam=Exam(name="aime25"))
    found = report(tmp_path)
    assert "Conductor" not in found.text
    text = found.files[0].read_text()
    assert "### aime25: published, other harness" in text
    assert "No comparison or verdict uses them." in text
    with found.files[1].open() as file:
        assert [row["system"] for row in csv.DictReader(file)] == ["single:sage"]
    asked = report(tmp_path, wanted=ReportOptions(published=True))
    assert "Conductor-Recursive" in asked.text
    assert max(map(len, asked.text.splitlines())) <= 120
    assert asked.rows == found.rows
    assert len(load_runs([tmp_path / "logs"])[0]) == 1


def test_a_suite_that_nobody_published_has_no_such_section(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    assert "other harness" not in report(tmp_path).files[0].read_text()
    assert of_suite("practice-integer") == []
