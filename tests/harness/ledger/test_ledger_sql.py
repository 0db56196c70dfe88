"""SQL over the ledger: exact, read-only, and with nothing but two views to reach."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.ledger_tables import (
    as_csv,
    as_json,
    as_text,
    ask,
    export,
    exported_tables,
)
from podium.harness.ledger.runs import system_runs_below
from tests.harness.runs import BOOK, sit, steps


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep exports that are made on the fly in a folder of the test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of two systems, one of which asks a worker that has no price."""
    folder = tmp_path_factory.mktemp("logs")
    sit(folder, "single:sage")
    priced = {ref: price for ref, price in BOOK.prices.items() if ref != "scripted/clerk"}
    book = replace(BOOK, prices=priced, sha256="2" * 64)
    sit(folder, "pair", steps("sage", "clerk"), prices=book.as_json())
    return folder


@pytest.fixture(scope="module")
def tables(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    export(logs, folder)
    return folder


def asked(source: Path, query: str) -> list[tuple[Any, ...]]:
    return list(ask(source, query).rows)


def test_the_sum_of_a_systems_calls_is_the_ledgers_own(tables: Path, logs: Path) -> None:
    ((found,),) = asked(tables, "SELECT sum(usd_list) FROM calls WHERE system = 'single:sage'")
    rows = (one for files in system_runs_below(logs) for one in rows_of(files))
    sums = [one.usd_list for one in rows if one.system == "single:sage"]
    assert Decimal(found) == sum(one for one in sums if one is not None) > 0


def test_a_query_with_an_unpriced_call_has_no_dollars(tables: Path) -> None:
    query = "SELECT system, count(usd_list), count(*), sum(n_unpriced) FROM queries GROUP BY ALL"
    assert sorted(asked(tables, query)) == [("pair", 0, 4, 4), ("single:sage", 4, 4, 0)]


def test_the_schema_pages_own_question_yields_null_where_a_price_is_missing(tables: Path) -> None:
    page = (tables / "schema.md").read_text()
    query = "SELECT system" + page.split("    SELECT system")[1].split("\n\n")[0]
    found = {name: usd for name, _, usd in asked(tables, query)}
    assert found["pair"] is None
    assert Decimal(found["single:sage"]) == 4 * Decimal("0.000014")


FORBIDDEN = [
    "COPY calls TO '{here}/x.csv'",
    "CREATE TABLE mine AS SELECT 1",
    "DROP VIEW calls",
    "INSERT INTO calls VALUES (1)",
    "ATTACH '{here}/x.db'",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "EXPORT DATABASE '{here}/x'",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 1; SELECT 2",
    "",
]


@pytest.mark.parametrize("query", FORBIDDEN)
def test_only_one_select_is_run(tables: Path, tmp_path: Path, query: str) -> None:
    with pytest.raises(UserError, match="Write one SELECT statement at a time"):
        ask(tables, query.format(here=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM '{here}/calls.parquet'",
        "SELECT * FROM read_parquet('{here}/calls.parquet')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{here}/schema.md')",
        "SELECT * FROM glob('{here}/*')",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "SELECT * FROM query('COPY calls TO ''{here}/x.csv''')",
        "SELECT getenv('PATH')",
        "SELECT * FROM views",
        "SELECT * FROM tables",
    ],
)
def test_no_file_variable_or_network_can_be_read(tables: Path, query: str) -> None:
    before = sorted(tables.iterdir())
    with pytest.raises(UserError):
        asked(tables, query.format(here=tables))
    assert sorted(tables.iterdir()) == before


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT nope FROM calls", '"nope" not found'),
        ("SELECT 'x", "unterminated"),
        ("SELECT CAST('x' AS INT)", "Could not convert"),
    ],
)
def test_wrong_sql_is_one_sentence_that_names_the_views(
    tables: Path, query: str, said: str
) -> None:
    with pytest.raises(UserError, match=said) as error:
        asked(tables, query)
    assert "\n" not in str(error.value)
    assert "Views: calls and queries" in str(error.value)


def test_a_run_is_exported_on_the_fly_for_its_owner_alone(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", limit=2)
    count = "SELECT count(*) FROM queries"
    assert asked(tmp_path, count) == [(2,)]
    made = exported_tables(tmp_path)["calls"]
    assert not made.is_relative_to(tmp_path)
    assert (made.parent.stat().st_mode & 0o777) == 0o700
    sit(tmp_path, "single:clerk", steps("clerk"), limit=2)
    assert asked(tmp_path, count) == [(4,)]


def test_one_parquet_file_is_one_view(tables: Path) -> None:
    assert asked(tables / "queries.parquet", "SELECT count(*) FROM queries") == [(8,)]
    with pytest.raises(UserError, match="Views: queries"):
        asked(tables / "queries.parquet", "SELECT count(*) FROM calls")


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no"):
        ask(tmp_path / "none", "SELECT 1")
    with pytest.raises(UserError, match=r"neither logs nor calls\.parquet"):
        ask(tmp_path, "SELECT 1")
    foreign = tmp_path / "calls.parquet"
    foreign.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="damaged or no Parquet file"):
        ask(foreign, "SELECT 1")


def test_a_table_is_aligned_and_has_no_control_character(tables: Path) -> None:
    query = "SELECT 'a' || chr(27) || '[31m' AS name, 1.50 AS usd, NULL AS gone"
    assert list(as_text(ask(tables, query))) == [
        "name    usd  gone",
        "------  ---  ----",
        "a [31m  1.5  NULL",
    ]


def test_a_long_table_says_how_much_it_leaves_out(tables: Path) -> None:
    lines = list(as_text(ask(tables, "SELECT * FROM range(5)"), limit=2))
    assert lines[-1] == "(3 more rows; --format csv or json shows all)"
    assert len(lines) == 5


def test_csv_and_json_have_every_row_and_exact_decimals(tables: Path) -> None:
    query = "SELECT 'a,b' AS name, 0.10 AS usd, NULL AS gone"
    assert list(as_csv(ask(tables, query))) == ["name,usd,gone", '"a,b",0.1,']
    (line,) = as_json(ask(tables, query))
    assert json.loads(line) == {"name": "a,b", "usd": "0.1", "gone": None}


def lines_of(capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    yield from capsys.readouterr().out.splitlines()


def test_the_command_prints_a_table(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT system, sum(calls) AS calls FROM queries GROUP BY ALL ORDER BY ALL"
    assert main(["ledger", "sql", str(tables), query]) == 0
    assert list(lines_of(capsys)) == [
        "system       calls",
        "-----------  -----",
        "pair             8",
        "single:sage      4",
    ]
    assert main(["ledger", "sql", str(tables), "DROP VIEW calls"]) == 2
