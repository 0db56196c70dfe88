"""A book is made from genai-prices offline, and only says what that day's sources said."""

import sys
from dataclasses import replace
from datetime import date
from decimal import Decimal
from importlib import metadata
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.prices import Book, parse_book, read_book
from podium.harness.prices.book import book_text
from podium.harness.prices.cost import Price
from podium.harness.prices.snapshot import (
    HEAD,
    PACKAGE,
    SnapshotRequest,
    compared,
    installed,
    price_on,
    snapshot,
    write_new,
)

pytest.importorskip("genai_prices")

MADE_WITH = "0.2.3"
"""The shipped books' genai-prices; another version may answer otherwise, and `verify` shows it."""

TODAY = date(2026, 11, 22)
PAPER = date(2025, 12, 4)
QWEN = "openrouter/qwen/qwen3-32b"
GEMINI = "google/gemini-2.5-pro"


def on(day: date, model: str, launched: str | None = None) -> Price:
    """Return a model's price on a day."""
    vouched = {model: launched} if launched else {}
    return price_on(model, SnapshotRequest((model,), day, vouched), installed(TODAY))[0]


@pytest.mark.skipif(metadata.version(PACKAGE) != MADE_WITH, reason="another genai-prices")
@pytest.mark.parametrize("name", ["paper-2025-12-04", "list-2026-11-21"])
def test_the_shipped_books_are_what_the_package_says(name: str) -> None:
    beside = compared(read_book(name), installed(TODAY))
    assert beside.changes == ()
    assert all(other.startswith("fugu/") for other in beside.others)


@pytest.mark.skipif(metadata.version(PACKAGE) != MADE_WITH, reason="another genai-prices")
@pytest.mark.parametrize("name", ["list-2026-11-27", "list-2026-11-30"])
def test_a_day_for_which_a_price_was_announced_may_pass(name: str) -> None:
    beside = compared(read_book(name), installed(date(2027, 1, 2)))  # 15 prices begin on January 1
    assert beside.changes == ()


def test_a_book_of_ones_own_is_compared_as_on_the_day_on_which_it_was_made() -> None:
    text, _ = snapshot(SnapshotRequest((GEMINI,), TODAY, {}), Path("mine.toml"), TODAY)
    later = replace(installed(TODAY), known_on=date(2027, 1, 1))
    assert compared(parse_book(text.encode(), Path("mine.toml")), later).changes == ()


def test_a_price_on_record_from_the_time_wins_over_todays_answer_for_that_day() -> None:
    found = on(PAPER, "openrouter/qwen/qwen-2.5-7b-instruct")
    assert (found.input, found.evidence) == (Decimal("0.05"), "dated")
    assert "commit" in found.source


def test_a_price_that_nobody_dated_is_carried_back() -> None:
    assert on(PAPER, QWEN).evidence == "carried-back"
    assert on(date(2026, 10, 19), QWEN).evidence == "dated"
    assert on(TODAY, QWEN).evidence == "dated"


def test_a_dated_change_of_price_is_followed() -> None:
    before, after = on(date(2025, 6, 1), "openai/o3"), on(PAPER, "openai/o3")
    assert (before.output, before.evidence) == (Decimal("40"), "carried-back")
    assert (after.output, after.evidence) == (Decimal("8"), "dated")


def test_tiers_cached_rates_and_services_are_kept_exactly() -> None:
    found = on(TODAY, GEMINI)
    assert found.tiers[0].above == 200_000
    assert found.tiers[0].rates.cache_read == Decimal("0.25")
    assert (found.services, found.full_rate) == (
        {"batch": Decimal("0.5")},
        {"batch": ("cache_read",)},
    )
    assert on(PAPER, GEMINI).services == {}
    assert set(on(TODAY, "openai/gpt-5-2025-08-07").services) == {"batch", "flex", "priority"}
    assert on(TODAY, "anthropic/claude-sonnet-4-20250514").cache_write_1h == 6


@pytest.mark.parametrize(
    ("day", "model", "said"),
    [
        pytest.param(date(2024, 1, 1), "openai/gpt-5", "launched on 2025-08-07", id="launch"),
        pytest.param(PAPER, "openai/gpt-4o", "--launched openai/gpt-4o=", id="no-launch-day"),
        pytest.param(TODAY, "openai/no-such-model", "no price of 'openai/no-such", id="model"),
        pytest.param(TODAY, "nobody/gpt-5", "no price of 'nobody/gpt-5'", id="provider"),
        pytest.param(TODAY, "gpt-5", "PROVIDER/MODEL", id="no-provider"),
        pytest.param(TODAY, "vllm/Qwen/Qwen3-32B", "no price of 'vllm/", id="own-hardware"),
        pytest.param(TODAY, "deepseek/deepseek-chat", "changes within a day", id="off-peak"),
        pytest.param(date(2027, 1, 1), GEMINI, "of 2027-01-01 are not known yet", id="future"),
    ],
)
def test_a_price_that_nobody_can_know_is_refused(day: date, model: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        snapshot(SnapshotRequest((model,), day, {}), Path("b.toml"), TODAY)
    assert "\n" not in str(caught.value)


def test_a_launch_day_may_be_vouched_for() -> None:
    found = on(PAPER, "openai/gpt-4o", launched="2024-05-13")
    assert (found.launched, found.evidence) == ("2024-05-13", "carried-back")
    with pytest.raises(UserError, match="launched on 2024-05-13"):
        on(date(2024, 5, 12), "openai/gpt-4o", launched="2024-05-13")


def test_a_launch_day_on_record_cannot_be_talked_away(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="launched on 2025-08-07"):
        on(date(2024, 1, 1), "openai/gpt-5", launched="2023-01-01")
    path = tmp_path / "early.toml"
    path.write_text(
        'date = "2024-01-01"\nsource = "s"\n[usd_per_mtok."openai/gpt-5"]\n'
        'input = "1"\noutput = "1"\nlaunched = "2023-01-01"\n'
    )
    with pytest.raises(UserError, match="launched on 2025-08-07, after the date of the book"):
        read_book(str(path))


def test_a_model_that_is_taken_for_another_name_is_said() -> None:
    model = "openai/gpt-5-2025-08-07"
    notes = price_on(model, SnapshotRequest((model,), TODAY, {}), installed(TODAY))[1]
    assert notes == (f"{model}: genai-prices treats it as its model 'gpt-5'",)


def test_a_made_book_reads_back_and_says_where_it_is_from() -> None:
    text, notes = snapshot(SnapshotRequest((GEMINI, QWEN), PAPER, {}), Path("mine.toml"), TODAY)
    book = parse_book(text.encode(), Path("mine.toml"))
    assert set(book.prices) == {GEMINI, QWEN}
    assert (book.date, book.retrieved) == ("2025-12-04", "2026-11-22")
    assert book.source.startswith("genai-prices 0.")
    assert "= 0." not in text
    assert notes == ()
    again = Book(book.name, book.date, book.source, book.prices, "", book.retrieved)
    assert HEAD + book_text(again) == text


def test_a_book_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    write_new("first", path)
    with pytest.raises(UserError, match="never overwritten"):
        write_new("second", path)
    assert path.read_text() == "first"
    with pytest.raises(UserError, match=r"does not end in \.toml"):
        write_new("x", tmp_path / "mine.json")


def test_a_missing_package_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("genai_prices", "genai_prices.data"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=r"pip install '\.\[prices\]'` in the checkout") as caught:
        installed(TODAY)
    assert "\n" not in str(caught.value)
    assert main(["prices", "verify"]) == 0
    assert "The books were only read, not compared with genai-prices" in capsys.readouterr().out


def test_the_command_makes_a_book_that_verify_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "mine.toml")
    old = ["--date", "2025-12-04", "--pool", "openrouter"]
    assert main(["prices", "snapshot", *old, "--out", out]) == 0
    assert "4 models" in capsys.readouterr().out
    assert main(["prices", "verify", out]) == 0
    assert main(["prices", "snapshot", "--pool", "openrouter", "--out", out]) == 2
    assert "never overwritten" in capsys.readouterr().err


def test_verify_prints_what_differs_and_what_is_malformed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tmp_path / "changed.toml"
    changed.write_text(
        'date = "2026-11-21"\nsource = "genai-prices 0.2.3"\n'
        f'[usd_per_mtok."{QWEN}"]\ninput = "0.13"\noutput = "0.4"\ncache_read = "0.09"\n'
    )
    broken = tmp_path / "broken.toml"
    broken.write_text('date = "2026-11-21"\nsource = "s"\n[usd_per_mtok."a/b"]\ninput = 0.1\n')
    assert main(["prices", "verify", str(changed), str(broken), "rehearsal"]) == 1
    said = capsys.readouterr().out
    assert "0.13" in said
    assert "0.14" in said
    assert "quote it" in " ".join(said.split())
    assert "3 books, 2 with differences or errors." in said


def test_a_model_that_the_package_forgot_is_a_difference_and_no_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone.toml"
    gone.write_text(
        'date = "2026-11-21"\nsource = "genai-prices 0.2.3"\n'
        '[usd_per_mtok."openai/withdrawn"]\ninput = "1"\noutput = "2"\n'
    )
    assert main(["prices", "verify", str(gone)]) == 1
    assert "no price of 'openai/withdrawn'" in " ".join(capsys.readouterr().out.split())


def test_verify_refuses_a_book_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prices", "verify", "nope"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "There is no price book 'nope'; known books: " in said.err


def test_a_rate_that_repeats_for_ever_is_cut_and_every_live_pool_has_a_price_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "today.toml"
    assert main(["prices", "snapshot", "--date", "2026-11-27", "--out", str(out)]) == 0
    capsys.readouterr()
    assert 'cache_write = "0.083333"' in out.read_text()
    assert main(["prices", "verify", str(out)]) == 0
    assert main(["prices", "diff", "list-2026-11-27", str(out)]) == 1
    assert "anthropic/claude-sonnet-4-20250514" not in capsys.readouterr().out  # it ended
