"""A price beside a worker in a pool file: what it may say, and that it travels with the run."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.prices import book_from_json
from podium.harness.prices.cost import Rates
from tests.providers import CLIENTS_WARN, serve

pytestmark = CLIENTS_WARN
OWN = "{ input = 1.25, output = 10.0, cache_read = 0.125 }"
MODEL = "openai-api/acme/sage"


def mine(folder: Path, price: str = OWN, head: str = "", model: str = MODEL, more: str = "") -> str:
    path = folder / "mine.toml"
    path.write_text(
        f'label = "live"\n{head}\n[[workers]]\nname = "sage"\nmodel = "{model}"\nprice = {price}\n'
        f"config = {{ max_tokens = 100 }}\n{more}"
    )
    return str(path)


def test_a_price_beside_a_worker_needs_no_book_and_is_exact(tmp_path: Path) -> None:
    book = read_pool(mine(tmp_path)).book()
    price = book.price(MODEL)
    assert price is not None
    assert price.base == Rates(Decimal("1.25"), Decimal("10"), Decimal("0.125"))
    assert price.source == "pool file 'mine'"
    assert (book.name, book.evidence(MODEL)) == ("none+mine", "not said")
    assert book_from_json(book.as_json()).prices == book.prices
    other = read_pool(mine(tmp_path, "{ input = 1.25, output = 10.1 }")).book()
    assert other.sha256 != book.sha256


@pytest.mark.parametrize(
    ("price", "why"),
    [
        pytest.param("{ input = -1, output = 2 }", "input must be a number from 0 up", id="below"),
        pytest.param('{ input = "x", output = 2 }', "input must be a number", id="word"),
        pytest.param("{ input = 1, ouput = 2 }", "unknown rate 'ouput'", id="unknown"),
        pytest.param("{ input = 1 }", "has no output rate", id="absent"),
        pytest.param("{}", "has no input rate", id="empty"),
        pytest.param("3", "USD per million tokens such as", id="number"),
    ],
)
def test_a_bad_price_is_one_sentence_with_its_line(tmp_path: Path, price: str, why: str) -> None:
    with pytest.raises(UserError, match=why) as caught:
        read_pool(mine(tmp_path, price))
    assert "mine.toml, line 6, field workers.0.price: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_model_has_one_price_in_a_pool(tmp_path: Path) -> None:
    more = f'[[workers]]\nname = "two"\nmodel = "{MODEL}"\nprice = {{ input = 9, output = 9 }}\n'
    with pytest.raises(UserError, match="two prices for openai-api/acme/sage: put them into a"):
        read_pool(mine(tmp_path, more=more))


def test_a_pool_without_a_book_gives_every_worker_a_price(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="field prices: name a price book, or give every worker"):
        read_pool(mine(tmp_path, '"some/key"'))


def test_the_pool_file_wins_over_its_book_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    pool = mine(tmp_path, OWN, 'prices = "list-2026-11-27"', "openai/gpt-5-2025-08-07")
    assert main(["doctor", "--pool", pool]) == 0
    assert "note: 'sage' has its own price" not in capsys.readouterr().out  # the same figures
    pool = mine(
        tmp_path,
        "{ input = 2, output = 3 }",
        'prices = "list-2026-11-27"',
        "openai/gpt-5-2025-08-07",
    )
    assert main(["doctor", "--pool", pool]) == 0
    said = capsys.readouterr().out
    assert (
        "note: 'sage' has its own price in the pool file: 2 and 3 dollars per million tokens in "
        "and out." in said
    )
    assert main(["workers", "--pool", pool, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["workers"]
    assert row["usd_1000_in_1000_out"] == "0.005"


def test_a_model_without_a_price_is_told_the_line_to_add_to_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    path = tmp_path / "mine.toml"
    path.write_text(
        Path(mine(tmp_path, model="openai/new"))
        .read_text()
        .replace(f"price = {OWN}\n", "")
        .replace("[[workers]]", 'prices = "list-2026-11-27"\n[[workers]]')
    )
    assert main(["doctor", "--pool", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"below its model in {path}" in said
    assert "price = { input = ..., output = ... }" in said


def test_a_run_is_audited_verified_and_repriced_by_its_logs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as server:
        monkeypatch.setenv("ACME_API_KEY", "k")
        monkeypatch.setenv("ACME_BASE_URL", f"{server.url}/v1")
        pool = mine(tmp_path)
        run = tmp_path / "run"
        asked = ["run", "--suite", "practice-integer", "--limit", "2", "--pool", pool]
        assert main([*asked, "--system", "single", "--yes", "--log-dir", str(run)]) == 0
        capsys.readouterr()
    Path(pool).unlink()
    assert main(["report", str(run), "--out", str(tmp_path / "table")]) == 0
    (row,) = json.loads((tmp_path / "table" / "table.json").read_text())["rows"]
    assert row["price_book"] == "none+mine"
    assert row["usd_per_query"]
    assert main(["audit", str(run)]) == 0
    assert main(["manifest", "verify", str(run)]) == 0
    assert main(["reprice", str(run), "--book", "list-2026-11-27"]) == 0
    assert MODEL in capsys.readouterr().out
