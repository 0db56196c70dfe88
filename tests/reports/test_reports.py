"""Reports from real logs: what a row says, what may be compared, and that it can be rebuilt."""

import csv
import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.reports.report import Report
from podium.reports.row import COLUMNS
from tests.harness.runs import BOOK, Crew, Exam, facts, sit, steps, wrong
from tests.reports.small_reports import (
    EXAM,
    interrupted_run,
    report,
    right_up_to,
    row_of,
    rows_of,
)

HEADER = (
    "suite,suite_version,label,system,n_asked,n_graded,epochs,accuracy,ci_low,ci_high,"
    "usd_per_query,usd_paid_per_query,tokens_in,tokens_out,worker_tokens_out,conductor_tokens,"
    "calls,steps,depth,latency_s,"
    "pool,data_revision,price_book,box,tokens_reasoning,n_unparsed,"
    "paired_diff,paired_low,paired_high,verdict,reference,min_detectable,split,dates,"
    "knowledge_cutoff,config,args,seed,time_scale,uses_targets,notes,reference_allowed,"
    "pool_sha256,price_book_sha256,"
    "box_python,box_image,box_image_id,box_packages,"
    "official_accuracy,n_official_differ,n_official_errata,n_fragile,pass_at_5,pass_at_10,"
    "prompt,"
    "order,usd_paid_low,usd_paid_high,n_unknown_billed,n_unpriced,usd_gpu_per_query,"
    "usd_scoring_per_query,price_book_date,price_evidence,deviations,source,calls_min,"
    "calls_max,calls_expected,prompt_sha256,"
    "se,se_clustered,paired_bca_low,paired_bca_high,p_value,p_holm,test,n_paired,n_better,"
    "n_worse,correlation,usd_low,usd_high,usd_median,usd_p95,usd_ratio,usd_ratio_low,"
    "usd_ratio_high,usd_per_correct,tokens_per_correct,cost_of_pass,share_infinite,"
    "pareto_probability,maj_k,maj_accuracy,reference_rule,derived,auditable,"
    "n_invalid_plans,invalid_plan_pct,invalid_plan_reason,conductor_s,"
    "regret_accuracy,regret_usd,equivalence_margin,equivalence_low,equivalence_high,"
    "p_equivalence,p_equivalence_holm,overhead_s"
    ",n_too_long,critical_path_s,turns,tool_calls,n_limited,usd_environment_per_query"
    ",equal,unused"
    ",tries_k,avg_at_k,avg_at_k_low,avg_at_k_high,pass_at_k,pass_at_k_low,pass_at_k_high,"
    "pass_all_k,pass_all_k_low,pass_all_k_high,"
    "valid_plan_accuracy,one_step_pct,distinct_plans,commonest_plan_pct,worker_entropy"
)


def test_the_columns_of_the_csv_are_append_only(made: Report) -> None:
    first, *_ = (made.files[1]).read_text().splitlines()
    assert first == HEADER
    assert ",".join(COLUMNS) == HEADER


def test_the_same_logs_give_the_same_bytes(logs: Path, tmp_path: Path) -> None:
    once, twice = (report(tmp_path / time, logs) for time in ("once", "twice"))
    for left, right in zip(once.files, twice.files, strict=True):
        assert left.read_bytes() == right.read_bytes()


def test_a_row_counts_pairs_and_names_questions_with_an_unscored_epoch(made: Report) -> None:
    row = row_of(made.rows, "moa-lite")
    assert (row.n_asked, row.n_graded, row.epochs) == (12, 10, 2)
    assert row.accuracy == 1.0
    assert "with an unscored epoch: q2 (BoxDown: the box is down)" in row.notes
    assert (row.calls, row.steps, row.depth) == (3, 3, 1)
    assert row.worker_tokens_out == row.tokens_out == 3
    assert row.conductor_tokens == 0


def test_a_notebook_shows_a_report_as_its_table_and_repr_is_a_short_line(made: Report) -> None:
    assert repr(made) == f"Report({len(made.rows)} rows, {len(made.files)} files)"
    assert unescape(made._repr_html_()) == f"<pre>{made.text}</pre>"


def test_rows_are_sorted_by_accuracy(made: Report) -> None:
    values = [row.accuracy for row in made.rows]
    assert values == sorted(values, key=lambda value: -(value or 0))


def test_the_csv_and_the_json_say_the_same(made: Report) -> None:
    with made.files[1].open() as file:
        lines = list(csv.DictReader(file))
    data = json.loads(made.files[2].read_text())
    assert [line["system"] for line in lines] == [row["system"] for row in data["rows"]]
    for line, row in zip(lines, data["rows"], strict=True):
        assert float(line["usd_per_query"]) == pytest.approx(row["usd_per_query"])
        assert list(line) == list(row) == data["columns"]


def test_the_reference_is_the_best_single_that_was_chosen_beforehand(made: Report) -> None:
    assert row_of(made.rows, "best-single").verdict == "reference"
    other = row_of(made.rows, "single:clerk")
    assert other.reference == "best-single"
    assert other.paired_diff == pytest.approx(-0.5)
    assert other.verdict == "inconclusive"


def test_a_choice_in_hindsight_is_never_the_reference(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    hindsight = {"reference_allowed": False, "notes": ["chosen in hindsight"]}
    sit(logs, "best-single", exam=EXAM, **hindsight)
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(4)), exam=EXAM)
    sit(logs, "single:clerk", steps("clerk"), Crew(clerk=right_up_to(1)), exam=EXAM)
    found = report(tmp_path)
    assert row_of(found.rows, "single:sage").verdict == "reference"
    assert row_of(found.rows, "best-single").reference == "single:sage"
    assert "chosen in hindsight" in found.files[0].read_text()


def test_without_a_single_worker_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "oracle", uses_targets=True)
    row = row_of(rows_of(tmp_path), "oracle")
    assert (row.reference, row.verdict, row.paired_diff) == ("", "", None)
    assert "uses targets" in row.notes


def test_rows_of_two_labels_are_compared_within_their_label_only(tmp_path: Path) -> None:
    sit(tmp_path / "logs" / "a", "single:sage", label="live")
    sit(tmp_path / "logs" / "b", "single:clerk", steps("clerk"), label="rehearsal")
    found = rows_of(tmp_path)
    assert [row.label for row in found] == ["live", "rehearsal"]
    assert [row.reference for row in found] == ["single:sage", "single:clerk"]


def test_two_pools_are_two_blocks_and_never_mixed(tmp_path: Path) -> None:
    for pool in ("first", "second"):
        home: dict[str, Any] = {"pool": pool, "pool_sha256": pool}
        sit(tmp_path / "logs" / pool, "single:sage", **home)
        sit(tmp_path / "logs" / pool, "single:clerk", steps("clerk"), Crew(clerk=wrong), **home)
    found = rows_of(tmp_path)
    assert [row.pool for row in found] == ["first", "first", "second", "second"]
    assert [row.verdict for row in found] == ["reference", "inconclusive"] * 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Exam(version="2-A"), id="suite-version"),
        pytest.param(Exam(data_revision="generated-2"), id="data-revision"),
    ],
)
def test_two_versions_of_an_exam_are_refused(tmp_path: Path, other: Exam) -> None:
    sit(tmp_path / "logs" / "a", "single:sage")
    sit(tmp_path / "logs" / "b", "single:clerk", steps("clerk"), exam=other)
    with pytest.raises(UserError, match=r"Suite 'numbers' has \w+ .+ in some logs"):
        rows_of(tmp_path)


def test_a_table_holds_no_path_of_the_machine_it_was_made_on(tmp_path: Path) -> None:
    arguments = {"plans": str(tmp_path / "plans.json"), "draws": 8}
    sit(tmp_path / "logs", "oracle", args=arguments)
    row = row_of(rows_of(tmp_path), "oracle")
    assert json.loads(row.args) == {"plans": "plans.json", "draws": 8}
    assert "oracle: plans=plans.json, draws=8" in row.notes


def test_choosing_the_best_single_is_no_row_and_its_spend_is_printed(made: Report) -> None:
    assert all(row.split == "eval" for row in made.rows)
    (line,) = made.spend
    assert "choosing the best single worker on numbers (6 calls" in line
    assert line in made.text
    assert "| selection | numbers (train) | `single:sage` |" in made.files[0].read_text()


def test_only_choosing_is_nothing_to_report(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", purpose="selection")
    with pytest.raises(UserError, match="These logs only choose a system; none evaluates a suite"):
        report(tmp_path)


def test_workers_are_printed_with_settings_price_and_cutoff(tmp_path: Path) -> None:
    workers = facts("x")["workers"]
    sage = {
        **workers["sage"],
        "knowledge_cutoff": "2024-06 (model card)",
        "args": {"effort": "low"},
    }
    sit(tmp_path / "logs", "single:sage", workers={**workers, "sage": sage})
    found = report(tmp_path)
    row = row_of(found.rows, "single:sage")
    assert row.knowledge_cutoff == "sage: 2024-06 (model card)"
    assert row.dates == "2026-01"
    told = {"model": "scripted/sage", "temperature": 0.2, "effort": "low"}
    assert json.loads(row.config) == {"sage": told}
    text = found.files[0].read_text()
    assert "| temperature=0.2, effort=low | 2 / 10 (dated) | 2024-06 (model card) |" in text
    assert "questions dated 2026-01" in text


def test_our_own_workers_have_no_knowledge_cutoff(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", label="rehearsal", time_scale=0.01)
    found = report(tmp_path)
    assert row_of(found.rows, "single:sage").knowledge_cutoff == ""
    assert "rehearsal latency slept times 0.01" in found.files[0].read_text()


def test_an_unknown_figure_is_an_empty_cell_and_null(tmp_path: Path) -> None:
    prices = {**BOOK.as_json(), "usd_per_mtok": {}}
    sit(tmp_path / "logs", "single:sage", label="recorded", prices=prices)
    found = report(tmp_path)
    with found.files[1].open() as file:
        (line,) = csv.DictReader(file)
    (row,) = json.loads(found.files[2].read_text())["rows"]
    for column in ("usd_per_query", "latency_s"):
        assert line[column] == ""
        assert row[column] is None
    assert line["usd_paid_per_query"] == "0"
    assert "4 calls have no price" in row["notes"]


def test_nothing_graded_has_no_accuracy(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", crew=Crew(sage=lambda heard: "broken"))
    row = row_of(rows_of(tmp_path), "single:sage")
    assert (row.n_graded, row.accuracy, row.ci_low, row.usd_per_query) == (0, None, None, None)


def test_an_interrupted_run_says_how_much_was_not_asked(tmp_path: Path) -> None:
    interrupted_run(tmp_path / "logs")
    row = row_of(rows_of(tmp_path), "single:sage")
    assert row.n_asked == 4
    assert row.n_graded == 2
