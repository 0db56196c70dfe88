"""Sources: every suite's data is pinned, and rows are those that are pinned or are refused."""

import csv
import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from podium.harness.errors import UserError
from podium.suites import SUITES
from podium.suites.data import (
    DataSource,
    by_hand,
    check_rows,
    hub_left_alone,
    local_bytes,
    local_rows,
    parse_rows,
    sources,
)
from podium.suites.data_command import describe_source, sources_of, suite_of_source
from podium.suites.practice import PracticeSuite

PLAIN = (".jsonl", ".json", ".csv")
SUFFIXES = (*PLAIN, *(f"{suffix}.gz" for suffix in PLAIN), ".parquet", ".zip")
ROWS: list[dict[str, Any]] = [{"id": "1", "problem": "é"}, {"id": "2", "problem": "2\n+2"}]


# --- pins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_whose_questions_are_not_generated_has_pinned_sources(name: str) -> None:
    assert bool(sources_of(SUITES[name])) != isinstance(SUITES[name], PracticeSuite)


@pytest.mark.parametrize("name", [name for name in SUITES if sources_of(SUITES[name])])
def test_a_suite_reads_another_folder_of_data_when_told_to(name: str, tmp_path: Path) -> None:
    moved: Any = replace(cast(Any, SUITES[name]), data=tmp_path)
    with hub_left_alone(), pytest.raises(UserError, match=str(tmp_path)):
        moved.load("eval")


@pytest.mark.parametrize("name", sources())
def test_a_source_is_pinned_by_its_file_s_digest_or_by_a_commit_of_the_hub(name: str) -> None:
    source = sources()[name]
    assert source.licence
    assert len(source.sha256) == 64 or (source.hub and len(source.revision or "") == 40)
    assert source.hub is None or len(source.revision or "") == 40
    assert source.rows is not None or not source.sha256, "who could hash it could count it"
    assert not source.at or (source.sha256 and source.size), "a download is held to its digest"
    assert all(len(one.sha256) == 64 for one in source.public)
    assert bool(source.made) == bool(source.originals)
    assert source.instead_of is None or source.instead_of in sources()


@pytest.mark.parametrize("name", sources())
def test_a_source_s_file_can_be_read_by_its_name(name: str) -> None:
    assert sources()[name].file.endswith(SUFFIXES)
    assert not Path(sources()[name].file).is_absolute()


def test_two_sources_name_one_file_only_when_it_is_the_same_file() -> None:
    digests = dict[str, str]()
    for source in sources().values():
        assert digests.setdefault(source.file, source.sha256) == source.sha256


def test_a_source_belongs_to_the_suite_whose_name_it_begins_with() -> None:
    assert suite_of_source("livecodebench-6") == "livecodebench"
    assert suite_of_source("recorded-aime25") is None
    assert sources_of(SUITES["livecodebench-v2"]) == ("livecodebench-1", "livecodebench-2")


def test_a_source_is_described_by_where_it_is_from_and_what_it_is_held_to() -> None:
    said = describe_source(sources()["livecodebench-6"])
    assert "hub livecodebench/code_generation_lite at 0fe84c3912ea, test6.jsonl" in said
    assert "(sha256 bb4c364f7192); 175 rows" in said


# --- a local file ---------------------------------------------------------------------------------


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def content(suffix: str) -> bytes:
    """Return the two rows as a file that ends so has them."""
    plain = suffix.removesuffix(".gz")
    lines = "\n".join(json.dumps(row) for row in ROWS).encode()
    text = {".jsonl": lines, ".json": json.dumps(ROWS).encode(), ".csv": as_csv(ROWS)}[plain]
    return gzip.compress(text) if suffix.endswith(".gz") else text


@pytest.mark.parametrize("suffix", [one for one in SUFFIXES if one not in (".zip", ".parquet")])
def test_rows_are_read_by_the_name_of_their_file(suffix: str) -> None:
    assert parse_rows(content(suffix), Path(f"v0.1.csv-like{suffix}")) == ROWS


def test_rows_of_parquet_are_read_as_the_hub_s_loader_reads_them(tmp_path: Path) -> None:
    import pandas

    path = tmp_path / "rows.parquet"
    pandas.DataFrame(ROWS).to_parquet(path)
    assert parse_rows(path.read_bytes(), path) == ROWS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jsonl", b'{"id": 1}\n{"id": '),
        ("x.jsonl", b"[1]\n"),
        ("x.json", b"7"),
        ("x.json.gz", b"no gzip"),
        ("x.csv", b"\xff\xfe"),
        ("x.parquet", b"PAR1"),
    ],
)
def test_a_file_that_is_none_of_its_name_is_refused_by_name_without_a_cell(
    name: str, text: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(UserError, match=f"{name} cannot be read"):
        parse_rows(text, path)


def test_a_file_with_another_digest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / sources()["aime25"].file
    path.parent.mkdir()
    path.write_text("{}\n")
    said = "its sha256 is ca3d163bab05, not f25b933cfadf\\. Move it away, then download "
    with pytest.raises(UserError, match=f"is not the pinned file: {said}"):
        local_bytes("aime25", tmp_path)


def test_a_file_that_is_absent_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"There is no .*aime25\.jsonl\. Run `podium data fetch aime25`, or put"
    ):
        local_rows("aime25", tmp_path)
    assert str(tmp_path / "aime25_problems" / "aime25.jsonl") in by_hand(
        sources()["aime25"], tmp_path
    )


def test_another_number_of_rows_and_a_missing_column_are_refused_by_name() -> None:
    source = DataSource(file="x.jsonl", rows=2, licence="MIT", columns=("id", "answer"))
    with pytest.raises(UserError, match=r"x has 1 rows, not the pinned 2\. Remove this copy"):
        check_rows(ROWS[:1], source, "x")
    with pytest.raises(UserError, match=r"x, row 1 has no column 'answer'\. Remove this copy"):
        check_rows(ROWS, source, "x")
