"""The same tokens at another book: exact, labelled, and unknown where the book knows no price."""

import hashlib
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.runs import system_runs_below
from podium.harness.prices import Book
from podium.harness.prices.cost import Price
from podium.harness.prices.reprice import Repriced, repriced, show_repriced, write_repriced
from tests.harness.runs import BOOK, Crew, failing_on, sit, steps

SAGE, CLERK = BOOK.prices["scripted/sage"], BOOK.prices["scripted/clerk"]


def book(**prices: Price) -> Book:
    """Return a book with prices of scripted workers."""
    named = {f"scripted/{name}": price for name, price in prices.items()}
    return Book("other", "2026-02-03", "made up", named, "b" * 64)


def doubled(price: Price) -> Price:
    return Price(2 * price.input, 2 * price.output, evidence="carried-back")


def rows_below(folder: Path, other: Book) -> list[Repriced]:
    found = [repriced(files, other) for files in system_runs_below(folder)]
    return [row for row in found if row]


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_twice_the_rates_are_twice_the_dollars_and_the_same_tokens(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"))
    before = digests(tmp_path)
    (row,) = rows_below(tmp_path, book(sage=doubled(SAGE), clerk=doubled(CLERK)))
    assert row.then.usd is not None
    assert row.now.usd == 2 * row.then.usd
    assert row.ratio == 2
    assert (row.queries, row.label) == (4, "live")
    assert row.then.evidence == ("dated",)
    assert row.now.evidence == ("carried-back",)
    assert digests(tmp_path) == before


def test_the_same_book_changes_nothing(tmp_path: Path) -> None:
    logs = sit(tmp_path, "single:sage")
    (row,) = rows_below(tmp_path, BOOK)
    assert row.ratio == 1
    tokens = [usage for log in logs for usage in log.stats.model_usage.values()]
    assert row.tokens_in == sum(usage.input_tokens for usage in tokens)
    assert row.tokens_out == sum(usage.output_tokens for usage in tokens)
    assert row.tokens_in is not None
    assert row.tokens_out is not None
    exact = (row.tokens_in * SAGE.input + row.tokens_out * SAGE.output) / 1_000_000 / 4
    assert row.then.usd == exact


def test_a_worker_without_a_price_leaves_no_smaller_number(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"))
    (row,) = rows_below(tmp_path, book(sage=SAGE))
    assert (row.now.usd, row.ratio) == (None, None)
    assert row.then.usd is not None
    assert row.now.unpriced == ("scripted/clerk (not in the book)",)
    shown = show_repriced([row])
    assert "other:" in shown.splitlines()
    assert "  no price: scripted/clerk (not in the book)" in shown.splitlines()
    assert "$ at other" in shown.splitlines()[0]
    assert shown.splitlines()[1].split()[-2:] == ["—", "—"]


def test_a_book_s_long_name_is_cut_in_the_title_and_whole_beneath(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage")
    name = "a-book-with-a-very-long-name-2026-02-03"
    (row,) = rows_below(tmp_path, replace(book(sage=SAGE), name=name))
    shown = show_repriced([row])
    assert "$ at a-book-with-a-very-…" in shown.splitlines()[0]
    assert f"a-book-with-a-very-…: {name}" in shown.splitlines()


def test_graders_and_questions_without_a_grade_are_left_out(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=failing_on("Say 3")), ask_grader=True)
    (row,) = rows_below(tmp_path, book(sage=SAGE))
    assert row.queries == 3
    assert row.now.usd is not None


def test_runs_that_only_chose_a_worker_are_passed_over(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", purpose="selection")
    assert rows_below(tmp_path, BOOK) == []
    with pytest.raises(UserError, match="nothing to price"):
        show_repriced([])


def test_the_file_has_every_decimal_and_is_never_overwritten(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    rows = rows_below(tmp_path / "logs", book(sage=doubled(SAGE)))
    path = write_repriced(rows, tmp_path / "out")
    (kept,) = json.loads(path.read_text())
    assert Decimal(kept["now"]["usd"]) == rows[0].now.usd
    assert Decimal(kept["ratio"]) == 2
    with pytest.raises(UserError, match="already exists"):
        write_repriced(rows, tmp_path / "out")


def test_a_log_of_before_evidence_says_that_it_was_not_said(tmp_path: Path) -> None:
    old = {"scripted/sage": {"input": "2", "output": "10", "cache_read": None}}
    sit(tmp_path, "single:sage", prices={**BOOK.as_json(), "usd_per_mtok": old})
    (row,) = rows_below(tmp_path, BOOK)
    assert row.then.evidence == ("not said",)
    assert row.then.usd == row.now.usd


def test_the_command_prints_both_books_and_writes_only_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sit(tmp_path / "logs", "single:sage")
    before = digests(tmp_path / "logs")
    other = tmp_path / "other.toml"
    other.write_text(
        'date = "2026-02-03"\nsource = "made up"\n'
        '[usd_per_mtok."scripted/sage"]\ninput = "4"\noutput = "20"\n'
    )
    asked = ["reprice", str(tmp_path / "logs"), "--book", str(other)]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "2.000" in shown
    assert "$ at other" in shown
    lines = shown.splitlines()
    for line in (
        "then: test-book",
        "  date 2026-01-02",
        "  prices: as listed at that date",
        "other:",
        "  date 2026-02-03",
    ):
        assert line in lines
    assert digests(tmp_path / "logs") == before
    assert main([*asked, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "reprice.json").is_file()
    assert main(["reprice", str(tmp_path / "logs"), "--book", "no-such-book"]) == 2
    assert "known books" in capsys.readouterr().err
