"""What users get wrong with the commands about money: one sentence, and nothing is overwritten."""

import csv
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.text import spreadsheet_safe
from tests.harness.runs import sit


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of one system."""
    folder = tmp_path_factory.mktemp("logs")
    sit(folder, "single:sage")
    return folder


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one sentence with which a command refuses, before it prints a result."""
    assert main(words) == 2
    heard = capsys.readouterr()
    assert heard.out == ""
    return heard.err


def test_an_audit_replaces_its_own_json_and_no_other_file(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "experiment.json"
    mine.write_text('{"mine": 1}')
    assert "Use another --json" in refused(["audit", str(logs), "--json", str(mine)], capsys)
    assert mine.read_text() == '{"mine": 1}'
    own = tmp_path / "audit.json"
    assert main(["audit", str(logs), "--json", str(own)]) == 0
    first = own.read_bytes()
    assert main(["audit", str(logs), "--json", str(own)]) == 0
    assert own.read_bytes() == first
    capsys.readouterr()
    assert main(["audit", str(logs), "--json"]) == 0
    assert capsys.readouterr().out.encode().rstrip() == first.rstrip()


def test_an_audit_asks_for_a_file_in_a_folder_that_is_there(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "none" / "audit.json"
    assert "use another --json" in refused(["audit", str(logs), "--json", str(nowhere)], capsys)
    assert "name another --json" in refused(["audit", str(logs), "--json", str(tmp_path)], capsys)


def test_an_empty_question_is_refused_and_not_taken_for_an_audit(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Add --query with the id of a question" in refused(
        ["audit", str(logs), "--query", ""], capsys
    )


def test_a_bill_s_options_without_a_bill_are_refused(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--invoice" in refused(["audit", str(logs), "--project", "p"], capsys)


def test_a_question_of_another_suite_is_answered_with_who_was_asked_it(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(["audit", str(logs), "--query", "wrong/q1"], capsys)
    assert "numbers/q1" in said
    assert "single:sage" in said


def test_an_audit_fits_a_screen_of_120_columns(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["audit", str(logs)])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120


def test_dollars_that_were_never_paid_say_so(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["audit", str(logs)])
    assert "only live dollars were paid" in capsys.readouterr().out.lower()


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\n=1", "\uff1d1"])
def test_a_model_s_text_is_no_formula_in_a_spreadsheet(text: str) -> None:
    assert spreadsheet_safe(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-1.5", "+7", "12", "a=b", "", -3, None, True])
def test_numbers_and_plain_texts_stay_as_they_are_in_csv(value: object) -> None:
    assert spreadsheet_safe(value) == value


def test_what_steers_a_terminal_is_spelt_out_in_csv() -> None:
    assert spreadsheet_safe("=\x1b[31m\x9b\u202e\r") == "'=\\u001b[31m\\u009b\\u202e\\u000d"
    assert spreadsheet_safe("two\nlines\tstay") == "two\nlines\tstay"


def test_sql_writes_no_formula_into_csv(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["ledger", "sql", str(logs), "SELECT '=1+1' AS x, -2 AS y", "--format", "csv"])
    assert list(csv.reader(capsys.readouterr().out.splitlines()))[1] == ["'=1+1", "-2"]


def test_reprice_refuses_a_place_that_is_taken_before_it_reads_a_log(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reprice.json").write_text("mine")
    words = ["reprice", str(logs), "--book", "rehearsal", "--out"]
    assert "give another --out" in refused([*words, str(tmp_path)], capsys)
    assert "is not a directory" in refused([*words, str(tmp_path / "reprice.json")], capsys)
    assert (tmp_path / "reprice.json").read_text() == "mine"


def test_a_root_that_is_none_is_refused(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "64 hex digits" in refused(["manifest", "verify", str(logs), "--root", "zz"], capsys)


def test_past_runs_to_go_by_are_refused_where_money_would_be_spent(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--suite", "practice-integer", "--log-dir", str(tmp_path / "new")]
    assert "--dry-run" in refused([*words, "--like", str(logs)], capsys)
    assert not (tmp_path / "new").exists()


def test_a_price_book_without_its_day_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.toml").touch()
    words = ["prices", "list", str(tmp_path / "empty.toml")]
    assert "it lacks 'date'" in refused(words, capsys)
