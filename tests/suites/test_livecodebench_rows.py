"""Reading LiveCodeBench rows: encoded tests without unpickling, large files by offset, bad rows."""

import base64
import csv
import gzip
import io
import json
import os
import pickle
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.suites.code_grading import ProgramCase
from podium.suites.data import DataSource
from podium.suites.livecodebench import LIVECODEBENCH, LiveCodeBench
from podium.suites.livecodebench_data import (
    RowIndex,
    digest_of_tests,
    find_tests,
    index_file,
    index_raw_rows,
    pickled_text,
    pinned_index,
    private_cases,
    program_tests,
)
from tests.suites.livecodebench_rows import (
    Row,
    all_rows,
    case,
    encoded,
    jsonl,
    needs_data,
    pinned,
    row,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


class Touch:
    """What an attacker pickles: loading it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


# --- tests of one row -------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ["", "[]", "é\u2028\n\\u0041", "x" * 70_000, "\ud800"])
def test_a_pickled_text_of_any_protocol_is_read_as_pickle_reads_it(
    protocol: int, text: str
) -> None:
    assert pickled_text(pickle.dumps(text, protocol)) == text


def test_public_tests_come_first_then_private_ones() -> None:
    tests = program_tests(row())
    assert [one.input for one in tests.cases] == ["4\n", "5\n", "0\n"]
    assert tests.method is None


def test_private_tests_may_be_plain_json() -> None:
    text = json.dumps([case("1", "2")])
    assert (
        private_cases(text) == private_cases(encoded([case("1", "2")])) == (ProgramCase("1", "2"),)
    )


def test_a_method_is_named_by_the_metadata() -> None:
    assert program_tests(row(metadata='{"func_name": "join"}')).method == "join"
    assert program_tests(row(metadata='{"func_name": null}')).method is None


def test_a_pickle_that_would_run_something_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    data = pickle.dumps(Touch(trap))
    with pytest.raises(ValueError, match="a pickle, but not of one text"):
        private_cases(packed(data))
    assert not trap.exists()
    pickle.loads(data)
    assert trap.exists(), "the trap works"


@pytest.mark.parametrize("thing", [["[]"], {"a": 1}, 7, b"[]", None, ("[]",)])
def test_a_pickle_of_anything_but_text_is_refused(thing: object) -> None:
    with pytest.raises(ValueError, match="a pickle, but not of one text"):
        private_cases(packed(pickle.dumps(thing)))


def test_a_pickle_with_a_gigantic_memo_costs_no_memory() -> None:
    data = b"\x80\x04X\x02\x00\x00\x00[]r\xff\xff\xff\x7f."  # LONG_BINPUT at 2**31 - 1
    assert pickled_text(data) == "[]"


def test_a_decompression_bomb_stops_at_the_limit() -> None:
    bomb = packed(b"\0" * (64 << 20))
    assert len(bomb) < 100_000
    with pytest.raises(ValueError, match="more than 1 MiB"):
        private_cases(bomb, largest=1 << 20)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("private_test_cases", "", "cut off"),
        ("private_test_cases", "not base64 at all", "cannot be decoded"),
        ("private_test_cases", "é", "cut off"),
        ("private_test_cases", base64.b64encode(b"no zlib").decode(), "cannot be decoded"),
        ("private_test_cases", packed(b"no pickle"), "private tests are not a pickle"),
        ("private_test_cases", packed(pickle.dumps("no JSON")), "private tests are not JSON"),
        ("private_test_cases", packed(pickle.dumps("[" * 9999)), "private tests are not JSON"),
        ("private_test_cases", "{}", "private tests are not a list"),
        ("private_test_cases", "[1]", "is not a JSON object"),
        ("private_test_cases", '[{"input": "1"}]', "lacks an input or an output"),
        ("private_test_cases", '[{"input": 1, "output": "1"}]', "lacks an input or an output"),
        ("public_test_cases", "?", "public tests are not JSON"),
        ("metadata", "[]", "metadata is not a JSON object"),
        ("metadata", '{"func_name": "a b"}', "func_name is not a Python name"),
        ("contest_date", "January", "Invalid isoformat"),
        ("contest_date", "2025-01-01T00:00:00+00:00", "time zone"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_with_file_line_and_question(
    tmp_path: Path, field: str, value: str, said: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(jsonl([row("good"), row("bad", **{field: value})]))
    with pytest.raises(UserError, match=rf"rows\.jsonl, line 2: question bad .*{said}"):
        LIVECODEBENCH.read_problems(path)


def test_a_cut_off_encoding_is_refused() -> None:
    whole = zlib.compress(pickle.dumps(json.dumps([case("1", "2")] * 99)))
    with pytest.raises(ValueError, match="cut off"):
        private_cases(base64.b64encode(whole[:-6]).decode())


def test_a_problem_without_tests_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(jsonl([row(public_test_cases="[]", private_test_cases=encoded([]))]))
    with pytest.raises(UserError, match="abc999_a cannot be used: the problem has no tests"):
        LIVECODEBENCH.read_problems(path)


# --- files ------------------------------------------------------------------------------------


def write_csv(path: Path, rows: list[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write(path: Path, rows: list[Row]) -> None:
    if ".csv" in path.suffixes:
        write_csv(path, rows)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(jsonl(rows).encode()))
    else:
        path.write_text(jsonl(rows))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.csv", "rows.csv.gz"])
def test_raw_rows_of_every_form_become_the_same_questions_with_the_same_tests(
    tmp_path: Path, name: str
) -> None:
    rows = [row("one"), row("two", private_test_cases=encoded([case("é\r\n", "x" * 200_000)]))]
    write(tmp_path / name, rows)
    questions = LIVECODEBENCH.read_problems(tmp_path / name)
    assert [(q.id, q.target) for q in questions] == [
        (one["question_id"], digest_of_tests(one)) for one in rows
    ]
    for question, one in zip(questions, rows, strict=True):
        assert find_tests(question.target or "", question.id) == program_tests(one)


@needs_data
def test_all_1055_problems_can_be_read_as_raw_rows(tmp_path: Path) -> None:
    rows = list(all_rows().values())
    write(tmp_path / "all.jsonl", rows)
    questions = LIVECODEBENCH.read_problems(tmp_path / "all.jsonl")
    assert len({q.id for q in questions}) == 1055
    assert sum(bool(q.metadata["starter_code"]) for q in questions) == 444


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no rows"),
        ("{", r"line 1 is not a JSON object"),
        ("[]\n", r"line 1 is not a JSON object"),
        ('{"question_id": "q", "reply": "r"}\n', "question_title is missing"),
        (jsonl([row(), row()]), "has question abc999_a twice"),
        (jsonl([row(difficulty=None)]), "difficulty is missing or not text"),
    ],
)
def test_a_file_of_other_rows_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=said):
        index_raw_rows(path)


def test_a_file_that_is_absent_or_not_zipped_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        index_raw_rows(tmp_path / "none.jsonl")
    (tmp_path / "rows.jsonl.gz").write_text("plain")
    with pytest.raises(UserError, match="cannot be read as JSON Lines"):
        index_raw_rows(tmp_path / "rows.jsonl.gz")
    (tmp_path / "rows.csv").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UserError, match="cannot be read as CSV"):
        index_raw_rows(tmp_path / "rows.csv")


def test_a_file_once_read_is_remembered_until_it_changes(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(jsonl([row("one")]))
    index_file(path)
    (memory,) = (cache / "podium" / "livecodebench").iterdir()
    kept = RowIndex.model_validate_json(memory.read_bytes())
    assert [entry.question_id for entry in kept.entries] == ["one"]
    assert "10\\n" not in memory.read_text(), "hidden tests are not copied"
    path.write_text(jsonl([row("two"), row("three")]))
    assert [entry.question_id for entry in index_file(path).entries] == ["two", "three"]


def test_a_remembered_file_that_is_broken_is_made_again(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(jsonl([row()]))
    index_file(path)
    (memory,) = (cache / "podium" / "livecodebench").iterdir()
    memory.write_text("{")
    os.utime(path, ns=(1, 1))
    assert len(index_file(path).entries) == 1
    assert RowIndex.model_validate_json(memory.read_bytes()).mtime_ns == 1


def test_tests_that_changed_since_they_were_indexed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(jsonl([row(contest_id="changing")]))
    (entry,) = index_file(path).entries
    path.write_text(jsonl([row(contest_id="changing", public_test_cases="[]")]))
    with pytest.raises(UserError, match=r"rows\.jsonl changed while it was in use"):
        find_tests(entry.digest, entry.question_id)
    path.unlink()
    with pytest.raises(UserError, match="changed while it was in use"):
        find_tests(entry.digest, entry.question_id)


# --- pinned files -----------------------------------------------------------------------------


def test_a_pinned_file_is_held_to_its_size_its_digest_and_its_rows(tmp_path: Path) -> None:
    table = pinned(tmp_path, {"one": [row()]})
    assert len(pinned_index("one", table, tmp_path).entries) == 1
    for changes, said in (
        ({"size": 5}, r"bytes, not 5\. Remove this copy of the data, then"),
        ({"sha256": "0" * 64}, r"not 000000000000\. Remove this copy"),
        ({"rows": 2}, r"has 1 rows, not the pinned 2\. Remove this copy"),
    ):
        wrong = {"one": table["one"].model_copy(update=changes)}
        with pytest.raises(UserError, match=said):
            pinned_index("one", wrong, tmp_path)


def test_a_missing_file_says_which_to_put_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    said = rf"test6\.jsonl of livecodebench/code_generation_lite .* {tmp_path}/livecodebench/test6"
    with pytest.raises(UserError, match=said):
        replace(LIVECODEBENCH, data=tmp_path).load()


def test_a_missing_file_that_no_hub_has_says_where_to_put_it(tmp_path: Path) -> None:
    source = DataSource(file="livecodebench/one.jsonl", sha256="0" * 64, rows=1, licence="test")
    with pytest.raises(UserError, match=r"Put one\.jsonl there"):
        pinned_index("one", {"one": source}, tmp_path)


def test_a_suite_has_no_split_but_eval(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no 'train' split"):
        LiveCodeBench(data=tmp_path).load("train")
