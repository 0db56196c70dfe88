"""The exported ledger: exact, typed, the same bytes every time, and free of withheld texts."""

import csv
import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs] - it has no types
import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.call import SAME, Call, attributes
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.ledger_tables import (
    DIGITS,
    FORMATS,
    PLACES,
    QUOTIENTS,
    SCHEMA,
    SOURCE,
    TABLES,
    ParquetWriter,
    each_of,
    export,
    rows_in,
    schema_of,
    table_of,
    writer_for,
)
from podium.harness.ledger.queries import QueryRow, query_rows
from podium.harness.ledger.runs import system_runs_below
from tests.harness.ledger.ledger_rows import answer, killed, row
from tests.harness.runs import Crew, failing_on, sit, steps
from tests.harness.toy_run import Toy, toy_pool, toy_run


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of two systems, one of which failed once and was resumed."""
    folder = tmp_path_factory.mktemp("logs")
    sit(folder, "single:sage")
    sit(folder, "pair", steps("sage", "clerk"), Crew(clerk=failing_on("Say 2")))
    sit(folder, "pair", steps("sage", "clerk"))
    return folder


def digests(folder: Path) -> dict[str, str]:
    found = sorted(folder.iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def every_row(logs: Path) -> list[Call]:
    return [one for files in system_runs_below(logs) for one in rows_of(files)]


def total(rows: list[Call]) -> Decimal:
    return sum((one.usd_list for one in rows if one.usd_list is not None), Decimal(0))


def test_every_call_and_query_is_a_row_with_every_column(logs: Path, tmp_path: Path) -> None:
    done = export(logs, tmp_path / "out")
    rows = every_row(logs)
    calls = pd.read_parquet(tmp_path / "out" / "calls.parquet")
    queries = pd.read_parquet(tmp_path / "out" / "queries.parquet")
    assert (len(calls), len(queries)) == (len(rows), 8)
    assert done.startswith(f"{len(rows)} attempts in 8 queries, ")
    assert list(calls.columns) == schema_of(Call).names
    assert list(queries.columns) == schema_of(QueryRow).names
    assert list(calls["call"]) == [one.call for one in rows]


def test_dollars_add_up_exactly_in_duckdb_and_in_pandas(tmp_path: Path) -> None:
    rows = [row(call=str(n), usd_list=Decimal(n) / 10**12) for n in range(1, 1001)]
    path = tmp_path / "calls.parquet"
    table = table_of(Call, rows)
    writer = ParquetWriter(path, table.schema)
    writer.write(table)
    writer.close({})
    exact = total(rows)
    asked = duckdb.execute(f"SELECT sum(usd_list) FROM '{path}'").fetchone()
    assert asked == (exact,)
    assert pd.read_parquet(path)["usd_list"].sum() == exact


def test_a_million_cent_fractions_add_up_exactly(tmp_path: Path) -> None:
    path = tmp_path / "calls.parquet"
    table = table_of(Call, [row(usd_list=Decimal("0.000000000001"))] * 1000)
    writer = ParquetWriter(path, table.schema)
    for _ in range(1000):
        writer.write(table)
    writer.close({})
    asked = duckdb.execute(f"SELECT count(*), sum(usd_list) FROM '{path}'").fetchone()
    assert asked == (1_000_000, Decimal("0.000001"))


@pytest.mark.parametrize("dollars", ["0.0000000000000000001", "1e20"])
def test_dollars_that_do_not_fit_are_refused_and_not_rounded(dollars: str) -> None:
    with pytest.raises(UserError, match=r"Column usd_list .*\. Nothing was rounded"):
        table_of(Call, [row(usd_list=Decimal(dollars))])


def test_a_share_of_gpu_time_is_rounded_at_the_last_place() -> None:
    table = table_of(Call, [row(gpu_s=Decimal(2) / 3)])
    assert table["gpu_s"][0].as_py() == Decimal("0.666666666666666667")


def test_unknown_is_null_in_the_table() -> None:
    table = table_of(Call, [killed()])
    for name in ("usd", "usd_list", "output", "latency_s"):
        assert table[name][0].as_py() is None
    (query,) = query_rows([row(call="a"), row(call="b", usd_list=None)], [answer()])
    assert table_of(QueryRow, [query])["usd_list"][0].as_py() is None


def test_an_empty_sitting_is_an_empty_table() -> None:
    assert table_of(Call, []).num_rows == 0


def test_the_same_logs_give_the_same_bytes(logs: Path, tmp_path: Path) -> None:
    export(logs, tmp_path / "one")
    export(logs, tmp_path / "two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


@pytest.mark.slow
def test_two_processes_give_the_tables_that_one_gives(logs: Path) -> None:
    system_runs = system_runs_below(logs)
    alone, together = list(each_of(system_runs)), list(each_of(system_runs, large=0))
    for (one, books), (two, same_books) in zip(alone, together, strict=True):
        assert one["calls"].equals(two["calls"])
        assert one["queries"].equals(two["queries"])
        assert books == same_books == {f"test-book sha256:{'0' * 64}"}


def test_the_footer_names_schema_version_and_price_books(logs: Path, tmp_path: Path) -> None:
    export(logs, tmp_path)
    asked = duckdb.execute(
        f"SELECT decode(key), decode(value) FROM parquet_kv_metadata('{tmp_path}/queries.parquet')"
    )
    found = dict(asked.fetchall())
    assert found["podium.schema"] == "podium-ledger-1"
    assert found["podium.version"]
    assert found["podium.price_books"] == f"test-book sha256:{'0' * 64}"


def test_others_read_what_a_column_means_beside_its_values(logs: Path, tmp_path: Path) -> None:
    export(logs, tmp_path)
    for table, record in TABLES.items():
        schema = parquet.read_schema(tmp_path / f"{table}.parquet")
        assert all(field.metadata[b"description"] for field in schema)
        assert schema.field("usd_list").metadata[b"unit"] == b"USD"
        nullable = [field.metadata[b"null"] != b"never" for field in schema]
        assert nullable == [field.nullable for field in schema_of(record)]
        asked = (
            f"SELECT decode(value) FROM parquet_kv_metadata('{tmp_path}/{table}.parquet') "
            "WHERE decode(key) = 'podium.dictionary'"
        )
        (footer,) = duckdb.execute(asked).fetchall()
        beside = duckdb.execute(
            f"""SELECT * FROM read_json('{tmp_path}/dictionary.json') WHERE "table" = '{table}'"""
        )
        names = [column[0] for column in beside.description or ()]
        rows = [dict(zip(names, one, strict=True)) for one in beside.fetchall()]
        assert json.loads(footer[0]) == rows
        described = [(one["column"], one["type"], one["meaning"]) for one in rows]
        fields = [
            (one.name, str(one.type), one.metadata[b"description"].decode()) for one in schema
        ]
        assert described == fields


def test_csv_and_json_lines_say_the_same_dollars(logs: Path, tmp_path: Path) -> None:
    export(logs, tmp_path, "csv")
    export(logs, tmp_path, "jsonl")
    with (tmp_path / "calls.csv").open(newline="") as file:
        from_csv = [Decimal(one["usd_list"]) for one in csv.DictReader(file) if one["usd_list"]]
    lines = (tmp_path / "calls.jsonl").read_text().splitlines()
    from_json = [json.loads(line)["usd_list"] for line in lines]
    assert sum(from_csv) == sum(Decimal(one) for one in from_json if one) == total(every_row(logs))


def test_an_export_replaces_its_own_files_and_keeps_its_other_formats(
    logs: Path, tmp_path: Path
) -> None:
    for format in ("parquet", "csv", "parquet"):
        export(logs, tmp_path, format)
    listed = json.loads((tmp_path / "export.json").read_text())["files"]
    names = {"calls.parquet", "calls.csv", "queries.parquet", "queries.csv", "schema.md"}
    names.add("dictionary.json")
    assert set(listed) == names
    assert listed == {name: sha for name, sha in digests(tmp_path).items() if name in names}


@pytest.mark.parametrize(
    "name", ["calls.parquet", "queries.parquet", "dictionary.json", "export.json"]
)
def test_a_foreign_file_is_not_overwritten(logs: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=r"was not written by an export.*--out"):
        export(logs, tmp_path)
    assert digests(tmp_path) == {name: hashlib.sha256(b"mine").hexdigest()}


def test_an_exported_file_that_was_changed_is_not_overwritten(logs: Path, tmp_path: Path) -> None:
    export(logs, tmp_path, "csv")
    (tmp_path / "calls.csv").write_text("annotated")
    with pytest.raises(UserError, match=r"calls.csv was not written by an export, or has changed"):
        export(logs, tmp_path, "csv")


def test_tables_are_not_put_where_journals_lie(logs: Path) -> None:
    with pytest.raises(UserError, match="holds journals"):
        export(logs, logs / "ledger" / "tables", "jsonl")
    assert not (logs / "ledger" / "tables").exists()


def test_a_damaged_log_leaves_what_was_there(logs: Path, tmp_path: Path) -> None:
    out, run = tmp_path / "out", tmp_path / "run"
    export(logs, out)
    before = digests(out)
    run.mkdir()
    for log in logs.glob("*.eval"):
        content = log.read_bytes()
        (run / log.name).write_bytes(content[:100] + b"?" + content[101:])
    with pytest.raises(UserError, match="is damaged"):
        export(run, out)
    assert digests(out) == before


def test_the_schema_page_has_every_column_with_its_type_its_unit_and_a_meaning() -> None:
    page = SOURCE.read_text()
    for name, record in TABLES.items():
        table = page.split(f"\n## {name}\n\n")[1].split("\n\n")[0]
        rows = [[cell.strip() for cell in line.split(" | ")] for line in table.splitlines()[2:]]
        schema = schema_of(record)
        said = [(one[0].strip("| `"), one[1], one[3] == "yes") for one in rows]
        assert said == [(one.name, str(one.type), one.nullable) for one in schema]
        for column, (_, kind, unit, _, meaning) in zip(schema.names, rows, strict=True):
            assert len(meaning) > 8, column
            assert unit == "USD" if column.startswith("usd") else kind != "double" or unit


def test_the_schema_page_names_format_places_and_every_attribute_of_the_conventions() -> None:
    page = SOURCE.read_text()
    assert page.startswith(f"# The exported ledger ({SCHEMA})\n")
    assert f"`decimal({DIGITS},{PLACES})`: {PLACES} places, {DIGITS - PLACES} digits" in page
    assert " and ".join(f"`{one}`" for one in sorted(QUOTIENTS)) in page
    for attribute, column in SAME.items():
        assert f"| `{attribute}` | `{column}`" in page
    ours = {
        name for name in attributes(next(rows_in(table_of(Call, [row()])))) if "podium" not in name
    }
    assert all(f"| `{name}` |" in page for name in ours)


def test_texts_of_models_cannot_break_a_page(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | a\n| b"
    (query,) = query_rows([row()], [answer(answer=evil)])
    table = table_of(QueryRow, [query])
    writer = writer_for("md", tmp_path / "page", table.schema)
    writer.write(table)
    writer.close({})
    text = (tmp_path / "page").read_text()
    assert "<script>" not in text
    assert "&lt;script" in text
    assert "\n| b" not in text


def test_opentelemetry_counts_cached_tokens_as_input_and_omits_what_is_unknown() -> None:
    first, second = rows_in(table_of(Call, [row(), killed()]))
    found = attributes(first)
    assert found["gen_ai.usage.input_tokens"] == 15
    assert found["gen_ai.usage.cache_read.input_tokens"] == 4
    assert found["gen_ai.usage.output_tokens"] == 5
    assert found["gen_ai.provider.name"] == "scripted"
    assert found["podium.usd_list"] == "0.000065"
    assert not any(name.startswith("gen_ai.usage") for name in attributes(second))


class Private(Toy):
    """A toy whose questions may not be published."""

    name = "private"
    publishable = False


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_holds_no_text_of_a_withheld_exam(
    private: tuple[Path, list[str]], tmp_path: Path, format: str
) -> None:
    folder, texts = private
    export(folder, tmp_path, format)
    for path in tmp_path.iterdir():
        content = _text(path)
        assert [text for text in texts if text in content] == []


def _text(path: Path) -> str:
    if path.suffix != ".parquet":
        return path.read_text()
    frame: Any = pd.read_parquet(path)
    return frame.to_csv()


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a run of an exam that may not be published, and texts that its logs hold."""
    folder = tmp_path_factory.mktemp("private") / "logs"
    toy_pool(folder)
    Path(f"{folder}.broken").write_text("eval-1")
    toy_run(folder, Private(), limit=2, systems=("moa-lite",))
    assert "the provider is down" in _all_samples(folder)
    return folder, ["is what?", "synthesize", "the provider is down", "Question eval"]


def _all_samples(folder: Path) -> str:
    from podium.harness.ledger.logs import open_log

    found: list[str] = []
    for path in folder.glob("*.eval"):
        with open_log(path) as log:
            found.extend(json.dumps(sample) for sample in log.samples())
    return "".join(found)


def test_the_command_says_what_it_wrote(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "export", str(logs), "--out", str(tmp_path), "--format", "md"]) == 0
    assert "queries.md" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["ledger", "export", str(logs), "--out", str(tmp_path), "--format", "html"])
    assert "use `podium report DIR --site D` for pages" in capsys.readouterr().err
    assert main(["ledger", "export", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert "There is no" in capsys.readouterr().err
