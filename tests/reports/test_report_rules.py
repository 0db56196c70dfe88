"""What a report compares with what, how it names that, and when it refuses to be written."""

import json
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.reports.report import write_report
from tests.harness.runs import BOOK, Crew, sit, steps, wrong
from tests.reports.small_reports import EXAM, report, right_up_to, row_of, rows_of

CHEAPER = {**BOOK.as_json(), "sha256": "c" * 64}


def test_the_reference_is_the_first_single_worker_of_the_pool_and_not_the_best(
    tmp_path: Path,
) -> None:
    logs = tmp_path / "logs"
    sit(logs, "single:clerk", steps("clerk"), exam=EXAM)
    sit(logs, "single:sage", crew=Crew(sage=right_up_to(2)), exam=EXAM)
    found = report(tmp_path)
    assert row_of(found.rows, "single:sage").verdict == "reference"
    assert row_of(found.rows, "single:clerk").paired_diff == pytest.approx(4 / 6)
    text = found.files[0].read_text()
    assert "reference: single:sage (first single worker in the pool's order)" in text


def test_the_first_single_worker_that_sat_the_exam_is_the_reference(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    sit(logs, "single:sage", crew=Crew(sage=lambda heard: "broken"))
    sit(logs, "single:clerk", steps("clerk"), Crew(clerk=wrong))
    assert row_of(rows_of(tmp_path), "single:clerk").verdict == "reference"


def test_a_table_says_that_its_reference_was_chosen_beforehand(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "best-single", args={"chosen_on": "train"})
    text = report(tmp_path).files[0].read_text()
    assert "reference: best-single (chosen on the train split)" in text


def test_a_table_without_a_single_worker_says_that_nothing_is_the_reference(
    tmp_path: Path,
) -> None:
    sit(tmp_path / "logs", "oracle", uses_targets=True)
    assert "reference: none |" in report(tmp_path).files[0].read_text()


def test_rows_at_two_price_books_are_two_blocks_and_never_compared(tmp_path: Path) -> None:
    sit(tmp_path / "logs" / "a", "single:sage")
    sit(tmp_path / "logs" / "b", "single:clerk", steps("clerk"), prices=CHEAPER)
    found = report(tmp_path)
    assert {row.verdict for row in found.rows} == {"reference"}
    assert {row.price_book_sha256[:1] for row in found.rows} == {"0", "c"}
    text = found.files[0].read_text()
    for digest in ("00000000", "cccccccc"):
        assert f"price book test-book ({digest})" in text
    assert found.text.count("prices test-book (") == 2


def test_one_price_book_needs_no_digest_in_the_terminal(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    text = report(tmp_path).text
    assert "pool test-pool, prices test-book; reference" in text


def test_two_pools_of_one_name_are_two_blocks(tmp_path: Path) -> None:
    for digest in ("a", "b"):
        home: dict[str, Any] = {"pool_sha256": digest * 64}
        sit(tmp_path / "logs" / digest, "single:sage", **home)
        sit(tmp_path / "logs" / digest, "single:clerk", steps("clerk"), Crew(clerk=wrong), **home)
    found = report(tmp_path)
    assert [row.verdict for row in found.rows] == ["reference", "inconclusive"] * 2
    assert found.text.count("pool test-pool (") == 2


@pytest.mark.parametrize("folder", ["air/oracle/", "./", "/home/somebody/"])
def test_a_table_names_a_file_without_its_folder(tmp_path: Path, folder: str) -> None:
    arguments = {"plans": f"{folder}aime25.json", "model": "openai/gpt-4.1", "digest": "0a1b"}
    sit(tmp_path / "logs", "oracle", args=arguments)
    row = row_of(rows_of(tmp_path), "oracle")
    told = {"plans": "aime25.json", "model": "openai/gpt-4.1", "digest": "0a1b"}
    assert json.loads(row.args) == told


def test_notes_of_the_log_header_are_footnotes_of_their_row(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", label="recorded", notes=["prompt not recorded"])
    found = report(tmp_path)
    assert row_of(found.rows, "single:sage").notes == "prompt not recorded"
    text = found.files[0].read_text()
    assert "| `single:sage` (1) |" in text
    assert "\n1. prompt not recorded\n" in text


def test_a_file_in_place_of_the_output_directory_is_refused_before_anything_is_read(
    tmp_path: Path,
) -> None:
    out = tmp_path / "report"
    out.write_text("mine")
    with pytest.raises(UserError, match="report is not a directory"):
        write_report([tmp_path / "no logs are here"], out)
    with pytest.raises(UserError, match="report is not a directory"):
        write_report([tmp_path / "no logs are here"], out / "deeper")
    assert out.read_text() == "mine"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    blocked = tmp_path / "report" / "table.csv.new"
    blocked.mkdir(parents=True)
    with pytest.raises(UserError, match=r"cannot be written .*IsADirectoryError"):
        report(tmp_path)


def test_a_refused_report_leaves_no_directory_behind(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no"):
        write_report([tmp_path / "nowhere"], tmp_path / "nowhere" / "report")
    assert list(tmp_path.iterdir()) == []
